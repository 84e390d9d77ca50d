"""A check as files: a page of HTML, a card in Markdown to stand beside a model."""

from collections import Counter

from wordward.attack.attacked import Attacked
from wordward.attack.checked import BreakingWord, Check
from wordward.attack.conditions import under
from wordward.attack.wording import seen, stretches, told
from wordward.explain.html import render
from wordward.report.tables import between, count, rate
from wordward.runs.metrics import Interval
from wordward.support.markdown import escaped
from wordward.support.version import __version__
from wordward.support.wording import plain, shown

SHOWN = 5  # texts on a card and on a page
MANY = 0.25  # of the texts, left as they are, which is told
NONE = "\N{EN DASH}"  # in the place of a number that was not measured
JUDGED = {"kept": "sense kept", "changed": "sense changed", "unknown": "sense unknown"}


def rows(check: Check) -> list[tuple[str, Interval | None, str]]:
    """The numbers of a check by name, each with its interval, None where it was not measured, and what it is of."""
    unit = "sentences" if check.tagging else "texts"
    of_all = f"{count(len(check.results))} {unit}"
    if check.tagging:
        with_tag = sum(each.errors != 0 for each in check.results)
        of_all = f"{count(with_tag)} sentences with a word tagged {check.target}"
    found: list[tuple[str, Interval | None, str]] = []
    for number, interval in check.accuracy.items():
        found.append((under("accuracy", number), interval, of_all))
    attacked = f"{count(len(check.attacked))} {unit} predicted right" if check.given else f"{of_all}, as predicted"
    if check.target is not None and not check.tagging:
        own = sum(each.given and each.label == check.target for each in check.results)
        for number, interval in check.recalls.items():
            found.append((under("recall", number), interval, f"{count(own)} texts labelled {check.target}"))
        attacked = f"{count(len(check.attacked))} texts labelled {check.target} that are found"
    found.append(("flip rate", check.flip_rate, attacked))
    if check.target is not None:
        other = f"sentences without {check.target}" if check.tagging else f"texts not labelled {check.target}"
        found.append(("false positives", check.false_positives, f"{count(len(check.others))} {other}"))
    hidden = {"flip rate", *(under(name, n) for name in ("accuracy", "recall") for n in check.budgets)}
    hidden = hidden if check.unmeasured else set()
    return [(name, None if name in hidden else interval, of) for name, interval, of in found if interval is not None]


def by_group(check: Check, *, ends: bool = True) -> tuple[list[str], list[list[str]]]:
    """The numbers of each group as a table: its heads, and a row for each group; empty where there are no groups.

    `ends`: with intervals.
    """
    if not check.groups:
        return [], []
    most = check.budgets[-1]
    names = ["accuracy", under("accuracy", most), "flip rate"]
    if check.target is not None and not check.tagging:
        names = ["recall", under("recall", most), "flip rate", "false positives"]
    lines = []
    for group, of in check.by_group.items():
        found = {name: interval for name, interval, _ in rows(of)}
        lines.append(
            [
                group,
                count(len(of.results)),
                *(_short(found[name], ends=ends) if name in found else "" for name in names),
            ]
        )
    return ["group", "texts", *names], lines


def _short(interval: Interval | None, *, ends: bool) -> str:
    if interval is None:
        return NONE
    return f"{interval.value:.1%}{f' ({interval.low:.1%} to {interval.high:.1%})' * ends}"


def flags(check: Check) -> str:
    """From where on texts are flagged, and how that was found, in words; empty where no threshold decides."""
    if (guard := check.guard) is None:
        return ""
    what = f"a text is flagged where p({guard.target}) is {guard.threshold:g} or more"
    if guard.false_positive_rate is None:
        return what
    return (
        f"{what}: the lowest threshold that flags at most {100 * guard.false_positive_rate:g}% of the "
        f"{count(guard.found_on)} texts not labelled {guard.target}. It was found on these texts, so of others it "
        "may flag more"
    )


def unedited(check: Check) -> str:
    """That many texts were left as they are, in words; empty where they were few."""
    left, total = check.unedited, len(check.attacked)
    if left <= MANY * total:
        return ""
    none, useless = check.untried, left - check.untried
    why = [f"for {count(none)} no edit may be made"] * bool(none)
    why += [f"for {count(useless)} no edit makes another prediction likelier"] * bool(useless)
    return f"{count(left)} of {count(total)} texts were left as they are: {', and '.join(why)}"


def judged(check: Check) -> str:
    """How the edits of the flipped texts are judged, in words; empty where none was flipped."""
    return ", ".join(f"{count(number)} {JUDGED[sense]}" for sense, number in check.senses.items())


def verdict(check: Check) -> str:
    """The outcome in a line."""
    if not check.conditions:
        return "no limits were given: nothing decides"
    found = Counter(condition.standing for condition in check.conditions)
    short, unmeasured, total = found["falls short"], found["not measured"], len(check.conditions)
    what = f"{total} condition{'s' * (total != 1)}"
    if short:
        return f"falls short: {short} of {what} not fulfilled{f', {unmeasured} not measured' * bool(unmeasured)}"
    return f"could not be measured: {unmeasured} of {what}" if unmeasured else f"holds: {what} fulfilled"


def way_out(check: Check) -> str:
    """What to do where numbers under edits were not measured, in words; empty where they were."""
    if not check.unmeasured:
        return ""
    own = check.judged_by is None
    more = "a run trained on more labelled texts" if own else "more labelled texts to judge edits by as `sense_from`"
    return shown(
        f"to measure it under edits, give {more}, or `sense='any'`, which also makes edits whose sense is unknown"
    )


def value(interval: Interval | None) -> str:
    """A number of a check, or a dash."""
    return NONE if interval is None else rate(interval.value, 1)


def ends(interval: Interval | None) -> str:
    """The ends of its interval, if it was measured."""
    return "" if interval is None else between(interval, 1)


def edited(word: BreakingWord) -> str:
    """What comes in the place of a word."""
    return ", ".join(seen(toward.strip(" ,")) or "(left out)" for toward in word.toward)


def flipped(word: BreakingWord) -> str:
    """In how many of the texts that hold a word its edits took part in a flip."""
    return f"{word.flipped} of {word.texts} texts{' with it' if word.word else ''}"


def inline(attacked: Attacked) -> str:
    """A text with each edit as (old → new); long stretches are cut."""
    parts = []
    for text, change in stretches(attacked):
        parts.append(text)
        if change is not None:
            put_in, left_out = f"(+{change.toward})", f"(−{change.word})"
            swapped = f"({change.word} → {seen(change.toward)})"
            parts.append(put_in if not change.word else left_out if not change.toward else swapped)
    return plain("".join(parts))


def card(check: Check) -> str:
    """The check in Markdown, for ROBUSTNESS.md beside a model card.

    Args:
        check: What `wordward.attack.check` found.

    Returns:
        Markdown.

    Examples:
        >>> texts = [wordward.Example("the film was warm and funny", "good")]
        >>> wordward.report.card(wordward.attack.check(run, texts)).partition(chr(10))[0]
        '# Robustness of mine'
    """
    lines = [f"# Robustness of {_mark(check.model)}", "", f"**{_mark(verdict(check))}.**", ""]
    if check.unmeasured:
        lines += [f"{_mark(_upper(check.unmeasured))}; {_mark(way_out(check))}.", ""]
    if check.conditions:
        lines += ["| condition | asked | found | |", "|---|---|---|---|"]
        for each in check.conditions:
            cells = map(_mark, (each.title, each.asked, each.found))
            lines.append(f"| {' | '.join(cells)} | {each.standing if each.holds else f'**{each.standing}**'} |")
        lines.append("")
    lines += ["| measured | value | 95 % interval | of |", "|---|---|---|---|"]
    for name, interval, of in rows(check):
        lines.append(f"| {_mark(name)} | {value(interval)} | {ends(interval)} | {_mark(of)} |")
    source = f" of {check.source}" if check.source else ""
    lines += ["", f"Texts: {count(len(check.results))}{_mark(source)}. {_mark(_how(check))}"]
    heads, groups = by_group(check)
    if groups:
        lines += ["", "## By group", "", f"| {' | '.join(map(_mark, heads))} |", f"|{'---|' * len(heads)}"]
        lines += [f"| {' | '.join(map(_mark, line))} |" for line in groups]
    if check.flipped:
        lines += ["", f"Flipped texts: {count(len(check.flipped))} ({judged(check)}).", ""]
        lines += ["## Words that break it most", "", "| word | edited to | flipped texts |", "|---|---|---|"]
        for word in check.words():
            cells = word.word or "(put in)", edited(word), flipped(word)
            lines.append(f"| {' | '.join(map(_mark, cells))} |")
        lines += ["", "## Worst examples", ""]
        for each in check.examples(SHOWN):
            lines.append(
                f"- **{_mark(each.before)} → {_mark(each.after)}**, {JUDGED[each.sense]}: {_mark(inline(each))}"
            )
    return "\n".join([*lines, "", f"Made by wordward {__version__}, `wordward check`.", ""])


def _how(check: Check) -> str:
    most, flagging = check.budgets[-1], flags(check)
    attack = f"An attack makes up to {most} edit{'s' * (most != 1)} ({', '.join(check.settings.edits)}) in each"
    if check.guard is None:
        how = f"{attack} text that is predicted right until the prediction changes"
    else:
        how = f"{_upper(flagging)}. {attack} flagged {check.target} text until it no longer is"
    verified = "every flip was verified by predicting the edited text"
    left, caveat = unedited(check), check.caveat
    proof = f"Not finding one is no proof that there is none{left and f': {left}'}."
    return f"{how}; {verified}. {proof}{caveat and f' {_upper(caveat)}.'}"


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _mark(text: str) -> str:
    """A text on one line in which Markdown finds nothing to read."""
    return escaped(plain(text))


def check_page(check: Check) -> str:
    """The check as a page of HTML that needs nothing from elsewhere.

    Args:
        check: What `wordward.attack.check` found.

    Returns:
        HTML, escaped.

    Examples:
        >>> texts = [wordward.Example("the film was warm and funny", "good")]
        >>> wordward.report.check_page(wordward.attack.check(run, texts))[:15]
        '<!doctype html>'
    """
    return render(
        "report/templates/check.html.j2",
        title=f"Robustness of {check.model}",
        check=check,
        rows=rows(check),
        groups=by_group(check),
        verdict=verdict(check),
        judged=judged(check),
        how=_how(check),
        examples=check.examples(SHOWN),
        tag=check.target if check.tagging else None,
        version=__version__,
        JUDGED=JUDGED,
        count=count,
        edited=edited,
        flipped=flipped,
        ends=ends,
        value=value,
        unmeasured=f"{_upper(check.unmeasured)}; {way_out(check)}." if check.unmeasured else "",
        stretches=stretches,
        told=told,
    )
