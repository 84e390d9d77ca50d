"""The command `wordward augment`."""

from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import tyro

from wordward.cli.arguments import Device, FileColumns, Jobs, Model, Quiet, SenseFrom
from wordward.cli.errors import UsageError
from wordward.cli.texts import check_counts, check_files, holding, judged, naming, opened, say_cut, texts_of, warn
from wordward.config.attack import AttackSettings, kinds_of
from wordward.config.fields import Name

if TYPE_CHECKING:
    from wordward.attack.attacked import Attacked
    from wordward.datasets import Example
    from wordward.runs.run import Run


@dataclass(frozen=True)
class Augment:
    """Write the texts that fool a run, with their true labels, as training data for `wordward train`."""

    run: Model
    """Run folder of a classifier, or another as `wordward check` takes it."""
    data: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="FILE|train")]]
    """Labelled texts, read as those of the run were; or a split of the known corpus that the run is on."""
    out: Annotated[str, tyro.conf.arg(metavar="FILE.csv|FILE.jsonl")]
    """Where to write: the texts as they are, then the adversarial ones; the column "changed" says what was done."""
    settings: AttackSettings = field(default_factory=lambda: AttackSettings(sense="kept"))
    sense_from: SenseFrom = None
    limit: int | None = None
    """Attack only this many of the texts: a random but fixed selection."""
    only_new: bool = False
    """Write the adversarial texts only."""
    positive: Annotated[Name, tyro.conf.arg(metavar="LABEL")] = None
    """For models that give several labels at once: the one whose yes or no is attacked."""
    force: bool = False
    """Overwrite --out."""
    jobs: Jobs = None
    columns: FileColumns = field(default_factory=FileColumns)
    device: Device = "auto"
    quiet: Quiet = False

    def __call__(self) -> None:
        self._check()
        from wordward.attack.augment import as_given, augmented, doubtful, write_augmented
        from wordward.datasets import sample
        from wordward.support.console import say

        run = opened(self, self.run)
        if run.tagging:
            raise UsageError(f"expected a run that labels texts; {self.run} is a tagger, whose sentences have tags")
        examples = texts_of(run, self.data, quiet=self.quiet, **vars(self.columns))
        warn(run)
        with naming(self.data), holding(self, "out"):
            some = sample(examples, self.limit, apart=True)
            say_cut(run, some, quiet=self.quiet)
            results = self._attack(judged(self, run, examples), some)
            found = augmented(results)
            texts = [*([] if self.only_new else as_given(examples)), *found]
            text, label, pair = self._names(run)
            write_augmented(self.out, texts, (text, label), pair)
        tried = sum(result.outcome in ("flipped", "kept") for result in results)
        if found:
            beside = "" if self.only_new else f", after the {len(examples):,} texts themselves"
            made = f"{len(found):,} adversarial text{'s' * (len(found) != 1)}"
            many = f"{made} of {tried:,} that were predicted right, in {self.out}{beside}"
            say(f"{many}; next: {self._next(text, label, pair)}", quiet=self.quiet)
            if unknown := doubtful(results):
                say(self._doubt(unknown, len(found)))
        else:
            say(self._nothing(tried, len(examples)), quiet=self.quiet)

    def _next(self, text: str, label: str, pair: str | None) -> str:
        """The command that trains on what was written."""
        named = (text, label) != ("text", "label")
        columns = f" --text-column {quote(text)} --label-column {quote(label)}" if named else ""
        columns += "" if pair is None else f" --pair-column {quote(pair)}"
        near = f"(texts held out of {self.out} would be near copies)"
        return f"wordward train --train {quote(self.out)}{columns} --dev FILE {near}"

    def _doubt(self, unknown: int, found: int) -> str:
        """That labels may be wrong, and where to see it."""
        kept = "" if self.settings.sense == "kept" else "; --sense kept makes only edits that are judged to keep it"
        return (
            f"warning: in {unknown:,} of these {found:,} texts the edits have an unknown sense, and labels are "
            "copied from the texts as they were, so they may be wrong: see the column changed before you train "
            f"on them{kept}"
        )

    def _nothing(self, tried: int, texts: int) -> str:
        """What to try where no adversarial text was found."""
        ways = ["more texts" if self.limit is None or self.limit >= texts else "more texts (a larger --limit)"]
        some = "--sense any (also edits whose sense is unknown, with labels copied that may then be wrong)"
        ways += [some] * (self.settings.sense != "any")
        ways += ["--edits all"] * (self.settings.edits != kinds_of("all"))
        held = "no texts" if self.only_new else f"the {texts:,} texts themselves only"
        return (
            f"no adversarial texts of {tried:,} that were predicted right were found, so nothing was added: "
            f"{self.out} holds {held}; try {' or '.join(ways)}"
        )

    def _check(self) -> None:
        """Refuse what cannot be written, before anything is read."""
        from wordward.attack.augment import check_suffix

        check_suffix(self.out)
        if Path(self.out).exists() and not self.force:
            raise UsageError(f"{self.out} exists: give --force to overwrite it, or another --out")
        check_counts(self, "limit", "jobs")
        check_files(self, "out")

    def _attack(self, run: "Run", examples: list["Example"]) -> list["Attacked"]:
        from wordward.attack.attacker import attack
        from wordward.attack.edits import not_made
        from wordward.attack.sense import little_to_judge_by
        from wordward.attack.sense_texts import more_to_judge_by
        from wordward.support.console import progress, say
        from wordward.support.workers import jobs_for

        judging = self.settings.sense == "kept" and "swap" in self.settings.edits
        if judging and (why := little_to_judge_by(run)):
            say(f"{why}: {more_to_judge_by(run)}", quiet=self.quiet)
        if why := not_made(self.settings.edits, (each.text for each in examples)):
            say(why, quiet=self.quiet)
        jobs = jobs_for(self.jobs, len(examples), on_cpu=run.is_on_cpu)
        attacks = attack(run, examples, self.settings, jobs=jobs)
        with closing(attacks), progress(quiet=self.quiet) as bars:
            bar = bars.add_task("attack", total=len(examples), unit="texts")
            return list(bars.track(attacks, len(examples), task_id=bar))

    def _names(self, run: "Run") -> tuple[str, str, str | None]:
        """The columns of text, label and second text as in the texts; those by number get plain names.

        The name of a nested key, such as review.text, is one name here, by which both kinds of files are read.
        """
        data = run.config.data
        text, label = self.columns.text_column or data.text_column, self.columns.label_column or data.label_column
        pair = self.columns.pair_column or data.pair_column
        return ("text", "label", pair and "pair") if text.isdecimal() else (text, label, pair)
