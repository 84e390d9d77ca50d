"""Explanations as HTML that needs nothing from elsewhere."""

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files

from rich.cells import cell_len

from wordward.explain.explanation import Explanation, Place
from wordward.explain.wording import (
    UNKNOWN,
    Part,
    Row,
    headings,
    likeliest,
    marked,
    much,
    part_of,
    percent,
    plain,
    question,
    tags_of,
)

__all__ = ["STYLE", "column_heads", "html_fragment", "page", "safe", "shade"]

READ, BARS = 600, 40  # words of a text that are shown as running text, and as bars
LINE = 30  # columns of a word that stays on one line, also on a phone
STEPS = 50  # shades; classes rather than style attributes, which a strict content security policy refuses
LEGEND = "Shade and length of a bar: how strong a pull is, relative to the text's strongest; no bar: no word pulls."

_STYLES = files("wordward.explain") / "style"
STYLE = (_STYLES / "explanation.css").read_text() + "".join(
    f".ww-s{step} {{ --s: {step / STEPS:g}; }}\n" for step in range(STEPS + 1)
)


def page(title: str, body: str, *, style: str = "") -> str:
    """A page of its own around HTML that is already escaped; the title is escaped here. `style`: more CSS."""
    # The policy is a second lock: even if some text slipped through as markup, no script of it would run.
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{safe(title)}</title>
<style>
{(_STYLES / "page.css").read_text()}{STYLE}{style}</style>
</head>
<body>
<main>
<h1>{safe(title)}</h1>
{body}
</main>
</body>
</html>
"""


def html_fragment(explanations: Sequence[Explanation]) -> str:
    """One text's explanations side by side, to stand in a page that holds STYLE."""
    read, drawn = part_of(explanations, READ), part_of(explanations, BARS)
    first, names = explanations[0], headings(explanations)
    inside = [_predictions(explanations)]
    if not read.rows:
        inside.append(f'<p class="ww-text" dir="auto">{safe(first.text)}</p>')
        inside.append('<p class="ww-note">no words to read</p>')
    else:
        inside += [
            f'<p class="ww-ask"><b>{safe(name)}</b> {safe(question(explanation))}</p>\n'
            f'<p class="ww-text" dir="auto">{_running(explanation, read)}</p>'
            for name, explanation in zip(names, explanations, strict=True)
        ]
        inside.append(_bars(explanations, names, drawn))
        inside.append(f'<p class="ww-note">{safe(_notes(drawn))}</p>')
        inside.append(_alternatives(names, drawn))
    kind = "ww ww-several" if len(explanations) > 1 else "ww"
    return f'<section class="{kind} ww-{first.task}">\n' + "\n".join(inside) + "\n</section>"


def safe(text: str) -> str:
    """A text that nothing in it can turn into markup."""
    return escape(plain(text, keep="\n\t"), quote=True)


def column_heads(names: Iterable[str]) -> str:
    """The cells at the head of a table's columns."""
    return "".join(f'<th scope="col">{safe(name)}</th>' for name in names)


def shade(share: float) -> str:
    """The class of a share from 0 to 1; 0 alone has the class of nothing."""
    return f"ww-s{min(STEPS, max(1, round(STEPS * share))) if share > 0 else 0}"


def _predictions(explanations: Sequence[Explanation]) -> str:
    """What the models say, once where all say the same."""
    lines = {}
    for explanation in explanations:
        ranked, others = likeliest(explanation)
        labels = [
            f'<span class="ww-label {shade(chance)}"><b>{safe(label)}</b> {safe(percent(chance))}</span>'
            for label, chance in ranked
        ]
        labels += [f"<span>and {others} more</span>"] if others else []
        labels += [f"<span><b>{safe(tag)}</b> {safe(times)}</span>" for tag, times in tags_of(explanation)]
        model = f'<span class="ww-model">{safe(explanation.model)}</span>' if explanation.model else ""
        lines[f'<p class="ww-said">{" ".join([*labels, model])}</p>'] = None
    return "\n".join(lines)


def _running(explanation: Explanation, part: Part) -> str:
    """The text itself, each word as shaded as it is pulled; above the strongest, the words that pull them."""
    text, at = explanation.text, part.start
    out = ["… " if part.before else ""]
    above = {place.position for place in marked(explanation)}
    for place in explanation.places:
        if not part.start <= place.start < part.end:
            continue
        out.append(safe(text[at : place.start]))
        at = place.end
        word = safe(place.word)
        if not place.pulls:
            out.append(word)
            continue
        pull = place.pulls[0]
        if place.position in above and max(cell_len(place.word), cell_len(pull.toward)) <= LINE:
            word = f"<ruby>{word}<rp> [</rp><rt><bdi>{safe(pull.toward)}</bdi></rt><rp>] </rp></ruby>"
        out.append(f'<span class="ww-word {shade(pull.relative)}">{word}</span>')
    return "".join(out) + safe(text[at : part.end]) + (" …" if part.after else "")


def _bars(explanations: Sequence[Explanation], names: Sequence[str], part: Part) -> str:
    """The figure: the sentence down the left, and for each word a bar with the word that pulls it."""
    head = column_heads(names)
    lines = "\n".join(_row(row, explanations[0].focus) for row in part.rows)
    return (
        f'<table class="ww-bars">\n<thead><tr><th scope="col"><span>word</span></th>{head}</tr></thead>\n'
        f"<tbody>\n{lines}\n</tbody>\n</table>"
    )


def _notes(part: Part) -> str:
    """What the figure leaves unsaid."""
    notes = [LEGEND]
    if part.has_unknown:
        notes.append(f"Grey words are {UNKNOWN}.")
    if part.note:
        notes.append(f"{part.note[:1].upper()}{part.note[1:]}.")
    return " ".join(notes)


def _row(row: Row, focus: int | None) -> str:
    tag, place = "", next(place for place in row.places if place)
    if place.label is not None:
        sure = percent(place.probability or 0.0)
        tag = f' <span class="ww-is">{safe(place.label)} {safe(sure)}</span>'
    kind = ' class="ww-focus"' if focus is not None and place.position == focus else ""
    unknown = "" if place.known else f' class="ww-unknown" title="{UNKNOWN}"'
    word = f'<th scope="row"><bdi{unknown}>{safe(row.word)}</bdi>{tag}</th>'
    return f"<tr{kind}>{word}{''.join(_bar(each) for each in row.places)}</tr>"


def _bar(place: Place | None) -> str:
    if place is None or not place.pulls:
        return f"<td>{'<i>not read</i>' if place is None else ''}</td>"
    pull = place.pulls[0]
    more = "".join(
        f"<span><bdi>{safe(other.toward)}</bdi> {safe(much(other.relative))}, cosine {other.cosine:.2f}</span>"
        for other in place.pulls
    )
    return (
        f'<td><div class="ww-bar {shade(pull.relative)}" tabindex="0"><bdi>{safe(pull.toward)}</bdi>'
        f'<span class="ww-much">{safe(much(pull.relative))}</span><span class="ww-more">{more}</span></div></td>'
    )


def _alternatives(names: Sequence[str], part: Part) -> str:
    """All words that pull, to unfold."""
    head = column_heads(names)
    lines = []
    for row in part.rows:
        cells = "".join(
            "<td>"
            + ", ".join(
                f"<bdi>{safe(pull.toward)}</bdi>&nbsp;<small>{safe(much(pull.relative))}</small>"
                for pull in (place.pulls if place else ())
            )
            + "</td>"
            for place in row.places
        )
        lines.append(f'<tr><th scope="row"><bdi>{safe(row.word)}</bdi></th>{cells}</tr>')
    return (
        '<details class="ww-all"><summary>All words that pull</summary>\n'
        f'<table>\n<thead><tr><th scope="col">word</th>{head}</tr></thead>\n<tbody>\n'
        + "\n".join(lines)
        + "\n</tbody>\n</table></details>"
    )
