"""The command that shows what pulls a text's words: `wordward explain`."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from wordward.commands.tables import Device
from wordward.commands.use import Format, changed, standard_input

if TYPE_CHECKING:
    from wordward.datasets import Example
    from wordward.explanation import Explanation
    from wordward.predict import Run

SOME = 256  # texts between two steps of the bar


@dataclass(frozen=True)
class Explain:
    """Show which words pull each word of a text, and how strongly: in the terminal, as HTML, a figure or JSON."""

    run: tyro.conf.Positional[str]
    """Run folder."""
    texts: tyro.conf.Positional[tuple[str, ...]] = ()
    """Texts; a tagger's are split at blanks. Without any and without --file: the lines of standard input."""
    file: str | None = None
    """File of texts: a line each, or any format that can be trained on; its labels count where it has some."""
    text_column: str | None = None
    """Name or number of the column that holds the text; by default as in the run."""
    label_column: str | None = None
    """Name or number of the column that holds the label; by default as in the run."""
    tag_column: int | None = None
    """Column of the tag in a CoNLL file, from 0; by default as in the run."""
    format: Format = None
    """Kind of the file; by default as in the run."""
    label: str | None = None
    """The true label, whose loss is to rise; by default what the model predicts. With --focus: that word's tag."""
    method: str = "iadvt"
    """What looks for the words, of `wordward methods`."""
    compare: str | None = None
    """A second method, shown beside the first."""
    top: int = 3
    """Words to name for each word, at most."""
    focus: Annotated[str | None, tyro.conf.arg(metavar="N|WORD")] = None
    """For a tagger: the one word whose tag counts, itself or its position from 0."""
    html: Annotated[str | None, tyro.conf.arg(metavar="FILE")] = None
    """Write a page that needs nothing else."""
    figure: Annotated[str | None, tyro.conf.arg(metavar="FILE.png|.svg|.pdf", aliases=["--png"])] = None
    """Draw one text as in the paper's figure (needs `pip install 'wordward[figure]'`)."""
    json: Annotated[str | None, tyro.conf.arg(metavar="FILE|-")] = None
    """Write JSON Lines, an explanation each; - prints them."""
    device: Device = "auto"
    """Where to compute."""

    def __call__(self) -> None:
        from wordward.predict import load_run

        self._check()
        run = load_run(self.run, device=self.device)
        examples = self._examples(run)
        if self.figure and len(examples) != 1:
            raise ValueError(f"--figure draws one text; got {len(examples)}: give one, or --html for many")
        shown = self._explain(run, examples)
        self._show(shown)
        empty = sum(not each[0].places and each[0].predicted is None for each in shown)
        if empty:
            which = "the text" if len(shown) == 1 else f"{empty} of {len(shown)} texts"
            raise ValueError(f"no words to explain in {which}")

    def _check(self) -> None:
        """Refuse what is wrong on its face, before the time is spent."""
        from wordward.rendering.figure import FORMATS

        if self.file is not None and self.texts:
            raise ValueError(
                f"expected texts as arguments or in a file; got {len(self.texts)} and --file {self.file}: "
                "leave one out"
            )
        for flag, path in (("--html", self.html), ("--figure", self.figure), ("--json", self.json)):
            if path in (None, "-"):
                continue
            if Path(path).is_dir():
                raise ValueError(f"{flag} {path}: expected the name of a file; this is a folder")
        if self.figure is not None and Path(self.figure).suffix.lower() not in FORMATS:
            raise ValueError(f"expected --figure with a name in {', '.join(FORMATS)}; got {self.figure}")

    def _examples(self, run: "Run") -> "list[Example]":
        """The texts, with the labels that came with them or were given."""
        from wordward.datasets import Example

        if self.file is not None:
            examples = self._read(run)
        else:
            texts = self.texts or [line for some in standard_input() for line in some]
            examples = [Example(text) for text in texts]
        for number, example in enumerate(examples, start=1):
            try:
                example.text.encode()
            except UnicodeEncodeError:
                raise ValueError(f"text {number}: expected UTF-8; got other bytes") from None
        if self.label is not None:
            examples = [replace(example, label=self.label, tags=None) for example in examples]
        return examples

    def _read(self, run: "Run") -> "list[Example]":
        """The texts of a file, with labels where they can be read as the run's were."""
        from wordward.console import say
        from wordward.datasets import DataError
        from wordward.prepare import read_as

        assert self.file is not None
        data = changed(
            replace(run.config.data, limit=None),
            text_column=self.text_column,
            label_column=self.label_column,
            tag_column=self.tag_column,
            format=self.format,
        )
        try:
            examples = read_as(data, self.file)
        except DataError:
            if self.label_column is not None or self.tag_column is not None:
                raise
            examples = read_as(data, self.file, labelled=False)
            say(f"{self.file} has no labels: each text is explained for what the model predicts")
        if run.tagging:  # a label of the whole text is none that a tagger gives
            examples = [replace(example, label=None) for example in examples]
        return examples

    def _explain(self, run: "Run", examples: "Sequence[Example]") -> "list[list[Explanation]]":
        """For each text its explanations, one a method."""
        from wordward.console import progress
        from wordward.explain import explain, one_method

        methods = [self.method, *([self.compare] if self.compare else [])]
        objectives = [one_method(run, method).recipe.objective for method in methods]
        if self.label is not None and "label_loss" not in objectives:
            raise ValueError(
                f"--label is for methods that raise a label's loss, not for {' and '.join(methods)}: leave it out"
            )
        shown: list[list[Explanation]] = [[] for _ in examples]
        with progress(quiet=len(examples) <= SOME) as bars:
            bar = bars.add_task("explaining", total=len(examples) * len(methods), unit="texts")
            for focus, numbers in self._by_focus(run, examples):
                for start in range(0, len(numbers), SOME):
                    some = numbers[start : start + SOME]
                    asked = [examples[number] for number in some]
                    for method in methods:
                        found = explain(run, asked, method=method, top=self.top, focus=focus)
                        for number, explanation in zip(some, found, strict=True):
                            shown[number].append(explanation)
                        bars.advance(bar, len(some))
        return shown

    def _by_focus(self, run: "Run", examples: "Sequence[Example]") -> list[tuple[int | None, list[int]]]:
        """Which texts have their focus at which position."""
        from wordward.reading import read

        if self.focus is None:
            return [(None, list(range(len(examples))))]
        if not run.tagging:
            raise ValueError("--focus is for taggers: this run gives one label to the whole text")
        found: dict[int | None, list[int]] = {}
        for number, example in enumerate(examples):
            words = [token.text for token in read(run, example).tokens]
            wanted = self.focus.lower() if run.text.lowercase else self.focus
            if not wanted.isdecimal() and wanted not in words:
                there = ", ".join(words[:20]) + (", ..." if len(words) > 20 else "") or "no words"
                raise ValueError(
                    f"expected --focus to be a word of text {number + 1} ({there}); got {self.focus!r}"
                )
            at = int(wanted) if wanted.isdecimal() else words.index(wanted)
            found.setdefault(at, []).append(number)
        return list(found.items())

    def _show(self, shown: "Sequence[Sequence[Explanation]]") -> None:
        """Write what was asked for, each file whole or not at all; else print."""
        from rich.console import Console

        from wordward.console import say
        from wordward.render import figure, html_fragment, page, terminal, to_json
        from wordward.run_folder import write

        if self.figure is not None:
            Path(self.figure).parent.mkdir(parents=True, exist_ok=True)
            figure(shown[0], self.figure)
        if self.html is not None:
            write(Path(self.html), page("Which words pull", "\n".join(html_fragment(each) for each in shown)))
        if self.json is not None:
            lines = [json.dumps(to_json(e), ensure_ascii=False) for each in shown for e in each]
            if self.json == "-":
                sys.stdout.writelines(f"{line}\n" for line in lines)
            else:
                write(Path(self.json), "".join(f"{line}\n" for line in lines))
        written = [name for name in (self.figure, self.html, self.json) if name not in (None, "-")]
        if written:
            say(f"wrote {', '.join(map(str, written))}")
        if not written and self.json is None:
            console = Console(highlight=False)
            for number, each in enumerate(shown):
                if number:
                    console.rule(style="dim")
                terminal(each, console)
