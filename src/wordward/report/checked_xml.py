"""A check as JUnit's XML."""

from collections import Counter
from collections.abc import Iterator
from xml.etree import ElementTree

from wordward.attack.checked import Check
from wordward.report.checked import SHOWN, inline, rows, way_out
from wordward.support.wording import plain


def junit(check: Check) -> str:
    """The check as JUnit's XML, a test case for each condition.

    Args:
        check: What `wordward.attack.check` found.

    Returns:
        XML that continuous integration servers show as tests.

    Examples:
        >>> limits = wordward.attack.CheckLimits(max_flip_rate=0.5)
        >>> texts = [wordward.Example("the film was warm and funny", "good")]
        >>> settings = wordward.attack.CheckSettings(wordward.attack.AttackSettings(sense="any"), limits)
        >>> "falls short" in wordward.report.junit(wordward.attack.check(run, texts, settings))
        True
    """
    found = Counter(condition.standing for condition in check.conditions)
    name = plain(f"wordward check {check.model}")
    counted = {
        "tests": str(max(len(check.conditions), 1)),
        "failures": str(found["falls short"]),
        "errors": str(found["not measured"]),
    }
    suites = ElementTree.Element("testsuites", counted)
    suite = ElementTree.SubElement(suites, "testsuite", {"name": name, **counted})
    properties = ElementTree.SubElement(suite, "properties")
    for title, value in _properties(check):
        ElementTree.SubElement(properties, "property", {"name": plain(title), "value": value})
    for condition in check.conditions:
        title = plain(f"{condition.title} {condition.asked}")
        case = ElementTree.SubElement(suite, "testcase", {"classname": name, "name": title})
        if not condition.measured:
            message = plain(f"could not be measured: {condition.title} {condition.asked}; {way_out(check)}")
            ElementTree.SubElement(case, "error", {"message": message}).text = plain(condition.found)
        elif not condition.holds:
            message = plain(f"falls short: {condition.title} {condition.asked}, but {condition.found}")
            failure = ElementTree.SubElement(case, "failure", {"message": message})
            examples = check.examples(SHOWN) if condition.under_attack else ()
            failure.text = "\n".join([message, *map(inline, examples)])
    if not check.conditions:
        ElementTree.SubElement(suite, "testcase", {"classname": name, "name": "measured; no limits were given"})
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _properties(check: Check) -> Iterator[tuple[str, str]]:
    """The numbers of a check, its threshold, and the numbers of its groups, by name."""
    yield from _measured(check)
    if check.unmeasured:
        yield "under edits", plain(check.unmeasured)
    yield "attacked texts left as they are", f"{check.unedited} of {len(check.attacked)}"
    if check.caveat:
        yield "caveat", plain(check.caveat)
    if check.guard is not None:
        yield f"threshold of {check.guard.target}", f"{check.guard.threshold:g}"
    for group, of in check.by_group.items():
        yield from ((f"{group}: {title}", number) for title, number in _measured(of))


def _measured(check: Check) -> Iterator[tuple[str, str]]:
    return ((title, f"{interval.value:.4f}") for title, interval, _ in rows(check) if interval is not None)
