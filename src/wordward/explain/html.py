"""Explanations as HTML that needs nothing from elsewhere."""

from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from wordward.explain import wording
from wordward.explain.explanation import Explanation, Pull
from wordward.explain.wording import Part, headings, marked, part_of, predicted
from wordward.support.wording import plain

if TYPE_CHECKING:
    from jinja2 import Environment

READ, BARS = 600, 40  # words of a text that are shown as running text, and as bars
LINE = 30  # columns of a word that stays on one line, also on a phone
STEPS = 50  # shades; classes rather than style attributes, which a strict content security policy refuses

STYLE = (files("wordward.explain") / "style" / "explanation.css").read_text() + "".join(
    f".ww-s{step} {{ --s: {step / STEPS:g}; }}\n" for step in range(STEPS + 1)
)


def page(title: str, body: str) -> str:
    """A page of its own around HTML such as `html_fragment` gives, which stands there as it is.

    Args:
        title: The page's title and heading, as plain text.
        body: HTML, already escaped.

    Returns:
        The page.

    Examples:
        >>> wordward.explain.page("Pulls", wordward.explain.html_fragment(run.explain(["a warm film"])))[:15]
        '<!doctype html>'
    """
    from markupsafe import Markup

    return render("explain/templates/page.html.j2", title=title, body=Markup(body))


def html_fragment(explanations: Sequence[Explanation]) -> str:
    """One text's explanations side by side, to stand in a page that holds STYLE.

    Args:
        explanations: One text's, one for each column.

    Returns:
        HTML, escaped.

    Examples:
        >>> "warm" in wordward.explain.html_fragment(run.explain(["a warm film"]))
        True
    """
    read = part_of(explanations, READ)
    return render(
        "explain/templates/explanation.html.j2",
        explanations=explanations,
        predictions={predicted(explanation): explanation for explanation in explanations}.values(),
        names=headings(explanations),
        read=read,
        stretches=[list(_stretches(explanation, read)) for explanation in explanations],
        drawn=part_of(explanations, BARS),
    )


def render(template: str, **values: Any) -> str:
    """A template of this package, filled in: values are escaped, except those that are `Markup`."""
    return _environment().get_template(template).render(values)


@cache
def _environment() -> "Environment":
    """The one environment of all templates; Jinja2 is imported when HTML is first made."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("wordward", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_without_control_characters,
    )
    functions = (
        wording.effect,
        wording.likeliest,
        wording.percent,
        wording.question,
        wording.tags_of,
        wording.two_digits,
        shade,
    )
    environment.globals.update({function.__name__: function for function in functions})
    environment.globals.update(STYLE=Markup(STYLE), UNKNOWN=wording.UNKNOWN)
    return environment


def _without_control_characters(value: Any) -> Any:
    """A text for a template; escaping leaves characters that no page may hold, such as NUL."""
    return plain(value, keep="\n\t") if type(value) is str else value


def shade(share: float) -> str:
    """The class of a share from 0 to 1; 0 alone has the class of nothing."""
    return f"ww-s{min(STEPS, max(1, round(STEPS * share))) if share > 0 else 0}"


def _stretches(explanation: Explanation, part: Part) -> Iterator[tuple[str, Pull | None, bool]]:
    """The running text: each word with its strongest pull, and what stands between two words.

    The last value says whether the word that pulls is written above the word, as for the most strongly pulled.
    """
    text, at = explanation.text, part.start
    strongest = {place.position for place in marked(explanation)}
    for place in explanation.places:
        if part.start <= place.start < part.end:
            yield text[at : place.start], None, False
            pull, at = place.pull, place.end
            words = (place.word, pull.toward if pull else "")
            yield place.word, pull, place.position in strongest and max(map(cell_len, words)) <= LINE
    yield text[at : part.end], None, False
