"""The commands that use a run: `wordward evaluate`, `wordward predict` and `wordward neighbors`."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from wordward.cli.arguments import Device, FileColumns, Format, Quiet, RunFolder, several
from wordward.cli.errors import UsageError
from wordward.cli.standard import json_line, standard_input
from wordward.cli.texts import check_texts, is_file, is_split, opened, say_learnt, texts_in, texts_of
from wordward.config.fields import Name

if TYPE_CHECKING:
    from wordward.datasets import Example
    from wordward.runs.inputs import Text
    from wordward.runs.metrics import ClassScores
    from wordward.runs.prediction import Prediction
    from wordward.runs.run import Run

READ = ("text_column", "pair_column", "tag_column", "format", "skip_empty")
CHUNK = 256  # texts that are predicted before their answers are printed


@dataclass(frozen=True)
class Evaluate:
    """Score a run on labelled texts, with 95 % intervals, and label by label."""

    run: RunFolder
    """Run folder, or another model as `wordward check` takes it."""
    data: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="FILE|dev|test")]]
    """Labelled texts, read as those of the run were (- is standard input); or dev or test, for a run on a known
    corpus."""
    columns: FileColumns = field(default_factory=FileColumns)
    positive: Annotated[Name, tyro.conf.arg(metavar="TAG")] = None
    """The tag of a tagger, or the one of several labels at once, whose precision, recall and F0.5 count; by default
    the run's own."""
    json: bool = False
    """Print JSON instead of a table."""
    device: Device = "auto"

    def __call__(self) -> None:
        from wordward.datasets.streams import called
        from wordward.runs.metrics import by_class, intervals_to_json

        run = opened(self, self.run)
        source = called(self.data)
        if is_split(run, self.data):
            evaluation = run.evaluate_corpus(run.split(self.data), source, quiet=False)
        else:
            examples = texts_of(run, self.data, **vars(self.columns))
            say_learnt(run, examples)
            evaluation = run.evaluate(examples, source=source, quiet=False)
        labels = *run.labels, *evaluation.unknown
        classes = evaluation.several or dict(zip(labels, by_class(evaluation.confusion), strict=True))
        if self.json:
            record: dict[str, Any] = intervals_to_json(evaluation.scores)
            record["classes"] = {name: class_scores._asdict() for name, class_scores in classes.items()}
            if evaluation.entities:
                record["entities"] = {name: of_type._asdict() for name, of_type in evaluation.entities.items()}
            print(json.dumps({"run": self.run, "data": self.data, "texts": evaluation.texts, **record}))
            return
        print(f"{evaluation.texts} {'sentences' if run.tagging else 'texts'} of {source}")
        longest = max(10, *map(len, evaluation.scores))
        for name, interval in evaluation.scores.items():
            ends = f"95 % interval {interval.low:.2%} to {interval.high:.2%}"
            if interval.tells_nothing:
                ends = "no interval: every resample gives the same"
            print(f"{name:{longest}} {interval.value:7.2%}   {ends}")
        if evaluation.entities:
            _print_classes("type", "entities", evaluation.entities)
        _print_classes("label", "tokens" if run.tagging else "texts", classes)


def _print_classes(kind: str, unit: str, classes: "Mapping[str, ClassScores]") -> None:
    """A table of the scores of each class; a dash for what is a share of nothing."""
    from rich.cells import cell_len, set_cell_size

    from wordward.support.wording import plain

    names = {name: plain(name) for name in classes}  # a label may hold a line break
    width = max(len(kind), *map(cell_len, names.values()))
    places = max(7, len(unit))
    print(f"\n{kind:{width}}  {unit:>{places}}  predicted  precision   recall       F1")
    for name, (count, predicted, *shares) in classes.items():
        wholes = predicted, count, count + predicted
        precision, recall, f1 = (f"{part:.2%}" if of else "–" for part, of in zip(shares, wholes, strict=True))
        shown = set_cell_size(names[name], width)  # some characters are two columns wide
        print(f"{shown}  {count:{places}}  {predicted:9}  {precision:>9}  {recall:>7}  {f1:>7}")


@dataclass(frozen=True)
class Predict:
    """Label texts given as arguments, in a file, or on standard input; JSON Lines out."""

    run: RunFolder
    """Run folder, or another model as `wordward check` takes it."""
    texts: Annotated[tyro.conf.Positional[tuple[str, ...]], several("TEXT")] = ()
    """Texts; a tagger's are split at blanks."""
    file: Annotated[str | None, tyro.conf.arg(metavar="FILE")] = None
    """File of texts: a line each, or any format that can be trained on; - is standard input."""
    text_column: Name = None
    """Name or number of the column that holds the text; by default as in the run."""
    pair_column: Name = None
    """Name or number of the column that holds a second text, judged together with the first (TEXT is then written
    as "first ||| second"); by default as in the run."""
    tag_column: int | None = None
    """Column of the tag in a CoNLL file, from 0; by default as in the run."""
    format: Format = None
    """Kind of the file; by default as in the run."""
    skip_empty: bool = False
    """Leave out texts of the file that are empty."""
    conll: bool = False
    """Of a tagger: print each token and its tag on a line, and an empty line after each sentence, as a file that
    can be trained on and evaluated."""
    device: Device = "auto"
    quiet: Quiet = False

    def __call__(self) -> None:
        from wordward.runs.opening import open_model
        from wordward.text.batches import chunks

        check_texts(self.texts, self.file)
        if self.texts == ("-",):
            replace(self, texts=(), file="-")()
            return
        if len(self.texts) == 1:
            _say_doubts(self.texts[0])
        run = open_model(self.run, device=self.device, pair_column=self.pair_column)
        if self.conll and not run.tagging:
            raise UsageError(
                f"--conll prints a tag for each token, but {self.run} gives a label to each text: leave it out"
            )
        if self.file is None and not self.texts:
            parts, total = standard_input(), None
        else:
            texts = self.texts if self.file is None else self._read(run, self.file)
            parts, total = chunks(texts, CHUNK), len(texts)
        if failed := self._answer(run, parts, total):
            where = "they are left out" if self.conll else "see the error in their lines"
            raise UsageError(f"{failed} of the texts could not be read; {where}")

    def _answer(self, run: "Run", parts: "Iterable[Sequence[Text]]", total: int | None) -> int:
        """Print one answer per text, some texts at a time; returns how many could not be read."""
        from wordward.support.console import progress

        failed, seen = 0, sys.stdout.isatty()  # answers on the screen show the progress already
        with progress(quiet=self.quiet or seen) as bars:
            bar = bars.add_task("predicting", total=total, unit="texts")
            for texts in parts:
                for prediction in run.predict(texts):
                    failed += prediction.problem is not None
                    print(self._line(prediction))
                sys.stdout.flush()  # someone may wait for these answers before writing the next line
                bars.advance(bar, len(texts))
        return failed

    def _line(self, prediction: "Prediction") -> str:
        """An answer as it is printed."""
        if not self.conll:
            return json_line(prediction.to_json())
        from wordward.datasets.conll import sentence_lines

        return sentence_lines([token.token for token in prediction.tokens], prediction.labels)

    def _read(self, run: "Run", file: str) -> "list[Example]":
        """The texts of a file; a tagger's with the tokens that a file of tokens has."""
        columns = {name: getattr(self, name) for name in READ}
        return texts_in(run, file, labelled=False, quiet=self.quiet, **columns)


def _say_doubts(text: str) -> None:
    """Say so where a text is the name of a file, or like that of a file of texts."""
    from wordward.datasets.files import ENDINGS
    from wordward.support.console import say

    if is_file(text):
        say(f"{text} is read as a text; for the texts in that file give --file {text}")
    elif text.lower().endswith(tuple(ENDINGS)) and not any(map(str.isspace, text)):
        say(f"there is no file {text}, so it is read as a text; texts in a file are given with --file")


@dataclass(frozen=True)
class Neighbors:
    """Show the nearest words of some words in a run's table."""

    run: RunFolder
    """Run folder, of `train` or `pretrain`."""
    words: Annotated[
        tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="WORD ...", help_behavior_hint="(required)")
    ]
    """Words to look up."""
    k: int = 10
    """Number of neighbours to show."""
    metric: Literal["cosine", "euclidean"] = "cosine"
    """What "nearest" means."""
    min_count: int = 5
    """How often a word must occur in the texts to be shown."""

    def __call__(self) -> None:
        from wordward.runs.neighbors import nearest_words
        from wordward.support.console import say

        for word, nearest in nearest_words(
            self.run, self.words, k=self.k, metric=self.metric, min_count=self.min_count
        ):
            print(f"{word}: " + ", ".join(f"{other} {near:.2f}" for other, near in nearest))
        what = "cosine with the word" if self.metric == "cosine" else "distance from the word"
        say(f"numbers: {what}; nearest first")
