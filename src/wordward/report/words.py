"""The parts of a report's page that show texts and words: telling sentences, adversarial texts, neighbours."""

import re

from wordward.attack.attacked import Attacked
from wordward.attack.summary import telling as most_telling
from wordward.explain.html import html_fragment, safe
from wordward.explain.wording import percent as chance_of
from wordward.report.closeness import Moved, Standing
from wordward.report.gathering import SWAPS, Report, Subject, of_sense
from wordward.report.tables import between, percent, under_attack
from wordward.report.telling import Telling

AROUND = 90  # characters of a long text that are kept on each side of a swapped word
KEPT = (
    "No word that speaks for the label was lost, so a person should give the old label still: here the model is "
    "fooled. The rule behind this only counts in which training texts words stand; read for yourself."
)
CHANGED = (
    "A word that speaks for the label gave way to one that does not, so a person may well agree with the new "
    "prediction. Such texts show what the model relies on, not that it is fooled."
)
UNKNOWN = "Some of these words are too rare in the training texts for the rule to judge them."
UNJUDGED = "Whether these swaps change the sense is not judged for this run; read for yourself."
UNCORRECTED = (
    "The flag is gone; whether the error is too cannot be told without its correction. Read for yourself."
)


def sentences(report: Report) -> str:
    """Short sentences with their bars, and what the strongest swap does."""
    if not report.tellings:
        return ""
    say = (
        f"Short sentences of the {report.shown_from} texts that the model gets right. Beside each word a bar names "
        "the word that pulls it: a step toward it makes the right answer less likely. The longer the "
        "bar, the stronger the pull. The line above each picture says what the model answers once the strongest "
        "swap is really made; sentences that it moves most come first."
    )
    parts = [f'<p class="rp-say">{say}</p>', *(_telling(telling) for telling in report.tellings)]
    if report.compared:
        parts.append(
            "<details><summary>The first sentence again, beside AdvT, which may push in any direction</summary>"
            '<p class="rp-note">Its words are those, of all known, that lie most nearly in that direction.</p>'
            f"{html_fragment(report.compared)}</details>"
        )
    return "\n".join(parts)


def _telling(telling: Telling) -> str:
    focus = telling.explanation.focus
    about = "the prediction"
    if focus is not None:
        word = next(place.word for place in telling.explanation.places if place.position == focus)
        about = f"the tag of “{safe(word)}”"
    verdict = (
        f"{about} becomes <b>{safe(telling.predicted_after)}</b>" if telling.changes else f"{about} stays"
    )
    return (
        f'<figure class="rp-telling">\n<figcaption><span><del><bdi>{safe(telling.place.word)}</bdi></del> → '
        f"<ins><bdi>{safe(telling.toward)}</bdi></ins></span><span>{safe(telling.label)} {_likely(telling.before)} → "
        f"{_likely(telling.after)}: {verdict}</span></figcaption>\n{html_fragment([telling.explanation])}\n</figure>"
    )


def _likely(chance: float) -> str:
    """A probability as explanations write it, where “<” is no markup."""
    return safe(chance_of(chance))


def adversarial(report: Report) -> str:
    """How the runs hold out, and texts that turned the first of them."""
    first = report.subjects[0]
    if not first.attacks:
        return ""
    goal = "no error is flagged any more" if first.run.tagging else "the prediction changes"
    say = (
        f"Words of {len(first.attacks['any']):,} {report.shown_from} texts are swapped one after another, "
        f"{max(SWAPS)} at most, until {goal}; what pulls a word says for which other. Every text that is shown or "
        "counted was read again by the model, as plain text."
    )
    parts = [f'<p class="rp-say">{say}</p>', under_attack(report), _summaries(first)]
    every = first.attacks["any"]
    unknown = UNCORRECTED if first.run.tagging else UNKNOWN if "kept" in first.attacks else UNJUDGED
    groups = [
        ("Fooled: the sense should be the same", of_sense(first.attacks.get("kept", every), "kept"), KEPT),
        ("Swayed: the sense likely changes", of_sense(every, "changed"), CHANGED),
        ("Not judged", of_sense(every, "unknown"), unknown),
    ]
    seen: set[str] = set()
    for heading, flipped, note in groups:
        chosen = [attacked for attacked in most_telling(flipped) if attacked.text not in seen][
            : report.settings.sentences
        ]
        seen |= {attacked.text for attacked in chosen}
        if chosen:
            texts = "\n".join(_pair(attacked) for attacked in chosen)
            parts.append(f'<h3>{heading}</h3>\n<p class="rp-note">{note}</p>\n{texts}')
    return "\n".join(parts)


def _summaries(subject: Subject) -> str:
    items = []
    for sense, what in (("any", "any swaps"), ("kept", "swaps judged to keep the sense")):
        if sense not in subject.attacks:
            continue
        summary = subject.summary(sense)
        if summary.success is None:
            continue
        swaps = "" if summary.swaps is None else f", {summary.swaps:.1f} swaps in the mean"
        kind = "sentences with a flagged error" if subject.run.tagging else "texts it got right"
        items.append(
            f"<li>{safe(subject.name)}, {what}: {summary.flipped:,} of {summary.attacked:,} {kind} were flipped "
            f"({percent(summary.success.value, 1)}; 95\u00a0% interval {between(summary.success, 1)}){swaps}. "
            f"The model read {summary.passes:.0f} texts for each.</li>"
        )
    return f'<ul class="rp-list">{"".join(items)}</ul>' if items else ""


def _pair(attacked: Attacked) -> str:
    """A text before and after, the changed words marked, as in the paper's table."""
    tagging = bool(attacked.flagged)
    verdicts = ("error flagged", "not flagged") if tagging else (attacked.before, attacked.after)
    name = "" if tagging else f"{safe(attacked.before)} "
    chances = attacked.probability_before, attacked.probability_after
    lines = [
        f'<div><dt>{kind}</dt><dd class="rp-one" dir="auto">{text}</dd>'
        f"<dd><b>{safe(label)}</b><small>{name}{_likely(chance)}</small></dd></div>"
        for kind, text, label, chance in zip(
            ("original", "adversarial"), _marked(attacked), verdicts, chances, strict=True
        )
    ]
    for change in attacked.changes:
        if change.correct is not None:
            right = f"“{change.correct}”" if change.correct else "left out"
            lines.append(f"<div><dt>correct</dt><dd>“{safe(change.word)}” should be {safe(right)}</dd></div>")
    return f'<dl class="rp-pair">{"".join(lines)}</dl>'


def _marked(attacked: Attacked) -> tuple[str, str]:
    """Both texts with the swapped words marked, long stretches between them cut."""
    both: tuple[list[str], list[str]] = [], []
    at = 0
    for number, change in enumerate(attacked.changes):
        between = safe(_cut(attacked.text[at : change.start], first=number == 0, last=False))
        words = f"<del>{safe(change.word)}</del>", f"<ins>{safe(change.toward)}</ins>"
        for side, word in zip(both, words, strict=True):
            side += [between, word]
        at = change.end
    rest = safe(_cut(attacked.text[at:], first=not attacked.changes, last=True))
    return "".join([*both[0], rest]), "".join([*both[1], rest])


def _cut(text: str, *, first: bool, last: bool) -> str:
    """A stretch of a text between swapped words, its middle (or its far end) left out where it is long."""
    if len(text) <= 2 * AROUND:
        return text
    start = "" if first else re.sub(r"\S*$", "", text[:AROUND]).rstrip() + " "
    end = "" if last else " " + re.sub(r"^\S*", "", text[-AROUND:]).lstrip()
    return f"{start}…{end}"


def neighbours(report: Report) -> str:
    """Where the opposites of some words stood, and where they stand now."""
    if not report.words:
        return ""
    judged = any(moved.label is not None for moved in report.words)
    say = "Words whose vectors lie near each other look alike to the model."
    if not report.words_note:
        say = (
            "Vectors learnt from running text hold opposites near each other, since both stand in the same places: "
            "“bad” is a neighbour of “good”. Learning from labels should move them apart."
        )
    say += (
        " Here are words with an opposite nearby, one that speaks for another label; all such neighbours are marked."
        if judged
        else " Here are words that were swapped in the adversarial texts; the word that came for them is marked."
    )
    note = f'<p class="rp-note">{safe(report.words_note)}</p>' if report.words_note else ""
    return f'<p class="rp-say">{say}</p>{note}' + "\n".join(_moved(word) for word in report.words)


def _moved(moved: Moved) -> str:
    speaks = f" <small>speaks for {safe(moved.label)}</small>" if moved.label else ""
    sentence = f"<b>{safe(moved.other)}</b> is {_place(moved.after)}."
    if moved.before is not None:
        sentence = f"<b>{safe(moved.other)}</b> was {_place(moved.before)}; now it is {_place(moved.after)}."
    rows = [("before", moved.before), ("after" if moved.before else "nearest", moved.after)]
    lists = "".join(
        f"<div><dt>{name}</dt><dd>{_near(standing)}</dd></div>" for name, standing in rows if standing
    )
    return f'<div class="rp-moved"><h3>{safe(moved.word)}{speaks}</h3><p>{sentence}</p><dl>{lists}</dl></div>'


def _near(standing: Standing) -> str:
    return " ".join(
        f"<span{' class=rp-against' if near.against else ''}>{safe(near.word)}</span>"
        for near in standing.nearest
    )


def _place(standing: Standing) -> str:
    """Its 2nd, 3rd, 11th nearest word."""
    rank, cosine = standing.rank, f"{standing.cosine:.2f}".replace("-", "−")
    ending = "th" if rank % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(rank % 10, "th")
    return f"its {'' if rank == 1 else f'{rank:,}{ending} '}nearest word (cosine {cosine})"
