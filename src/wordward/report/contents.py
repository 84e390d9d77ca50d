"""What a report holds: what is asked for, its runs with their numbers, and what is shown of the first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wordward.attack.attacked import Attacked, Sense
from wordward.attack.robustness import accuracies
from wordward.attack.summary import Summary, summarise
from wordward.attack.wording import telling
from wordward.config.attack import AttackSettings
from wordward.config.fields import given
from wordward.explain.explanation import Explanation
from wordward.explain.faithfulness import Faithfulness
from wordward.report.closeness import Opposites
from wordward.report.examples import Telling
from wordward.runs.metrics import Interval
from wordward.runs.run import Run
from wordward.runs.scoring import Evaluation
from wordward.runs.yardstick_scores import Yardstick
from wordward.support.rules import NOT_NEGATIVE, check

SWAPS = (0, 1, 2, 4)  # numbers of swaps that accuracy under attack is told for
SENSES = {"any": "any swaps", "kept": "swaps judged to keep the sense"}  # which swaps attacks may make


@dataclass(frozen=True)
class ReportSettings:
    """What goes into a report.

    Args:
        test: A file of labelled texts; or test, for a run on a known corpus.
        sentences: To show with the words that pull them, and adversarial texts of each kind.
        attack: Texts to attack, drawn at random; 0: none; None: 200, of a Transformer on a CPU 80.
        seed: Of that draw.
        positive: The tag of taggers that counts, instead of the one they were trained for.
        columns: Settings of data (`text_column`, `label_column`, `pair_column`, `format` and so on) that the file
            `test` is read with; by default those of the run.
        edits: Kinds of edits that attacks may make, as in `AttackSettings`.

    Examples:
        >>> from wordward.report import ReportSettings
        >>> ReportSettings(test="test.csv", attack=0).sentences
        4
    """

    test: str | None = None
    sentences: int = 4
    attack: int | None = None
    seed: int = 0
    positive: str | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)
    edits: tuple[str, ...] = ("swap",)

    def __post_init__(self) -> None:
        """Refuse invalid settings."""
        object.__setattr__(self, "edits", AttackSettings(edits=self.edits).edits)
        check(self, NOT_NEGATIVE, "sentences", "seed", *given(self, "attack"))


@dataclass(frozen=True)
class Subject:
    """One run of a report."""

    run: Run
    name: str
    result: dict[str, Any]  # of result.json; empty if the run is not finished
    metrics: list[dict[str, Any]]  # of metrics.jsonl
    dev: Evaluation | None = None
    test: Evaluation | None = None
    attacks: dict[str, list[Attacked]] = field(default_factory=dict)  # by which swaps may be made: any, kept
    notes: tuple[str, ...] = ()
    edits: tuple[str, ...] = ("swap",)  # that the attacks may make
    faithfulness: Faithfulness | None = None  # of its pulls; None where that cannot be measured
    yardstick: Yardstick | None = None  # what it was measured against on dev; runs of older versions have none

    @property
    def scored(self) -> Evaluation | None:
        """The scores on the test texts, or if there are none on the dev texts."""
        return self.test or self.dev

    def allowed(self, sense: str) -> str:
        """Which swaps, or which edits, an attack may make, in words."""
        return SENSES[sense] if self.edits == ("swap",) else SENSES[sense].replace("swaps", "edits")

    @property
    def summaries(self) -> dict[str, Summary]:
        """The numbers of the attacks that attacked any text, by which swaps they may make, in words."""
        how: Any = {"edits": self.edits, "tagging": self.run.tagging}
        found = {self.allowed(sense): summarise(attacked, **how) for sense, attacked in self.attacks.items()}
        return {allowed: summary for allowed, summary in found.items() if summary.success is not None}

    def accuracy(self, sense: str) -> dict[int, Interval]:
        """The share of texts still right by number of swaps; for a tagger, of sentences whose error it flags."""
        return accuracies(self.attacks[sense], SWAPS)


@dataclass(frozen=True)
class Report:
    """A run, and others to compare it with."""

    subjects: tuple[Subject, ...]  # the first is what the report is about
    settings: ReportSettings
    shown_from: str  # dev or test: where the sentences come from
    same_dev: bool = True  # whether all runs have the same dev texts
    tellings: Sequence[Telling] = ()
    compared: Sequence[Explanation] = ()  # of the first of them, by iAdvT and AdvT
    words: Sequence[Opposites] = ()
    words_note: str = ""
    fewer: str = ""  # why fewer texts than usual are attacked and measured

    @property
    def by_sense(self) -> dict[Sense, list[Attacked]]:
        """The most telling flipped texts of the first run, by what is judged of their sense; each text once."""
        attacks = self.subjects[0].attacks
        every = attacks.get("any", [])
        found: dict[Sense, list[Attacked]] = {"kept": attacks.get("kept", every), "changed": every, "unknown": every}
        seen: set[str] = set()
        for sense, results in found.items():
            unseen = [each for each in telling(results) if each.sense == sense and each.text not in seen]
            found[sense] = unseen[: self.settings.sentences]
            seen |= {each.text for each in found[sense]}
        return found
