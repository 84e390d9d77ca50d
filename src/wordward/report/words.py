"""The texts and words of a report's page: adversarial texts and neighbours."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from wordward.attack.attacked import Attacked, Change
from wordward.attack.summary import Summary
from wordward.attack.summary import telling as most_telling
from wordward.report.closeness import Standing
from wordward.report.gathering import SENSES, Report, Subject, of_sense

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


class Group(NamedTuple):
    """Adversarial texts of which the same is judged."""

    heading: str
    note: str
    texts: Sequence[Attacked]


def values(report: Report) -> dict[str, Any]:
    """What the templates of texts show."""
    first = report.subjects[0]
    return {"summaries": summaries(first), "groups": groups(report) if first.attacks else []}


def summaries(subject: Subject) -> dict[str, Summary]:
    """The numbers of the attacks on a run, by which swaps may be made."""
    found = {what: subject.summary(sense) for sense, what in SENSES.items() if sense in subject.attacks}
    return {what: summary for what, summary in found.items() if summary.success is not None}


def groups(report: Report) -> list[Group]:
    """Texts that turned the first run, by what is judged of their sense; each text once."""
    first = report.subjects[0]
    every = first.attacks["any"]
    unknown = UNCORRECTED if first.run.tagging else UNKNOWN if "kept" in first.attacks else UNJUDGED
    candidates = [
        Group(
            "Fooled: the sense should be the same", KEPT, of_sense(first.attacks.get("kept", every), "kept")
        ),
        Group("Swayed: the sense likely changes", CHANGED, of_sense(every, "changed")),
        Group("Not judged", unknown, of_sense(every, "unknown")),
    ]
    seen: set[str] = set()
    found = []
    for group in candidates:
        unseen = [attacked for attacked in most_telling(group.texts) if attacked.text not in seen]
        chosen = unseen[: report.settings.sentences]
        seen |= {attacked.text for attacked in chosen}
        found.append(group._replace(texts=chosen))
    return [group for group in found if group.texts]


def stretches(attacked: Attacked) -> list[tuple[str, Change | None]]:
    """The text before each swapped word, with its swap, and the rest; long stretches are cut."""
    found, at = [], 0
    for change in attacked.changes:
        found.append((_cut(attacked.text[at : change.start], first=not found, last=False), change))
        at = change.end
    return [*found, (_cut(attacked.text[at:], first=not found, last=True), None)]


def _cut(text: str, *, first: bool, last: bool) -> str:
    """A stretch of a text between swapped words, its middle (or its far end) left out where it is long."""
    if len(text) <= 2 * AROUND:
        return text
    start = "" if first else re.sub(r"\S*$", "", text[:AROUND]).rstrip() + " "
    end = "" if last else " " + re.sub(r"^\S*", "", text[-AROUND:]).lstrip()
    return f"{start}…{end}"


def rank(standing: Standing) -> str:
    """Which of a word's nearest words another is: its 2nd, 3rd, 11th."""
    number, cosine = standing.rank, f"{standing.cosine:.2f}".replace("-", "−")
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"its {'' if number == 1 else f'{number:,}{ending} '}nearest word (cosine {cosine})"
