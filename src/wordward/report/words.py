"""The texts and words of a report's page: adversarial texts and neighbours."""

from wordward.attack.attacked import Attacked, Sense
from wordward.attack.summary import Summary
from wordward.attack.summary import telling as most_telling
from wordward.report.closeness import Rank
from wordward.report.contents import SENSES, Report, Subject, of_sense


def summaries(subject: Subject) -> dict[str, Summary]:
    """The numbers of the attacks on a run, by which swaps may be made."""
    found = {subject.allowed(sense): subject.summary(sense) for sense in SENSES if sense in subject.attacks}
    return {which: summary for which, summary in found.items() if summary.success is not None}


def groups(report: Report) -> dict[Sense, list[Attacked]]:
    """The most telling adversarial texts of the first run, by what is judged of their sense; each text once."""
    attacks = report.subjects[0].attacks
    every = attacks.get("any", [])
    found: dict[Sense, list[Attacked]] = {
        "kept": of_sense(attacks.get("kept", every), "kept"),
        "changed": of_sense(every, "changed"),
        "unknown": of_sense(every, "unknown"),
    }
    seen: set[str] = set()
    for sense, flipped in found.items():
        unseen = [attacked for attacked in most_telling(flipped) if attacked.text not in seen]
        found[sense] = unseen[: report.settings.sentences]
        seen |= {attacked.text for attacked in found[sense]}
    return found


def rank(found: Rank) -> str:
    """Which of a word's nearest words another is: its 2nd, 3rd, 11th."""
    number, cosine = found.rank, f"{found.cosine:.2f}".replace("-", "−")
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"its {'' if number == 1 else f'{number:,}{ending} '}nearest word (cosine {cosine})"
