"""Explanations on their way from `wordward explain` to the terminal and into files."""

import json
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from wordward.cli.errors import UsageError
from wordward.cli.standard import json_line
from wordward.explain.explanation import Explanation, from_json, to_json
from wordward.explain.figure import figure
from wordward.explain.html import html_fragment, page
from wordward.explain.terminal import terminal
from wordward.runs.results_file import ResultsFile
from wordward.support.console import Output, say
from wordward.support.files import write


class ExplainOutput:
    """Where explanations go, text by text; a page, a figure and a file without `results` are written at the end."""

    def __init__(
        self, results: ResultsFile | None, *, json: str | None, html: str | None, figure: str | None
    ) -> None:
        self.results, self.json, self.html, self.figure = results, json, html, figure
        self.to_files = [name for name in (figure, html, json) if name not in (None, "-")]
        self.count = self.empty = 0  # texts, and those without words
        self._lines: list[str] = []
        self._fragments: list[str] = []
        self._first: Sequence[Explanation] = ()
        self._console = Output()
        if results is not None:
            self._read_earlier(results)

    def _read_earlier(self, results: ResultsFile) -> None:
        """Count the texts that were explained before, and draw them again where there is to be a page."""
        of_text: list[Mapping[str, Any]] = []
        for record in results.records(dict):
            of_text.append(record)
            if len(of_text) == results.lines:
                self._count([from_json(one) for one in of_text] if self.html else of_text)
                of_text = []

    def _count(self, explanations: Sequence[Any]) -> None:
        """Count a text and draw it for the page."""
        self.count += 1
        first = explanations[0]
        get = first.get if isinstance(first, Mapping) else partial(getattr, first)
        self.empty += not get("places") and get("predicted") is None
        if self.html is not None:
            self._fragments.append(html_fragment(explanations))

    def add(self, explanations: Sequence[Explanation]) -> None:
        """One more text's explanations, one a method."""
        if self.results is not None:
            self.results.append(*map(to_json, explanations))
        elif self.json is not None:
            records = map(to_json, explanations)
            if self.json == "-":
                sys.stdout.writelines(f"{json_line(record)}\n" for record in records)
                sys.stdout.flush()
            else:
                self._lines += [f"{json.dumps(record, ensure_ascii=False)}\n" for record in records]
        if self.figure is not None:
            self._first = explanations
        if not self.to_files and self.json is None:
            if self.count:
                self._console.rule(style="dim")
            terminal(explanations, self._console)
        self._count(explanations)

    def finish(self) -> None:
        """Write what is written at the end, each file whole or not at all."""
        if self.figure is not None:
            Path(self.figure).parent.mkdir(parents=True, exist_ok=True)
            if missing := figure(self._first, self.figure):
                boxes = f"no font that can be used has {' '.join(missing)}, drawn as boxes"
                say(f"{boxes}: install one of Noto's that does, or take --html")
        if self.html is not None:
            write(Path(self.html), page("Which words pull", "\n".join(self._fragments)))
        if self.json not in (None, "-") and self.results is None:
            write(Path(self.json), "".join(self._lines))
        if self.to_files:
            say(f"wrote {', '.join(map(str, self.to_files))}")
        if self.empty:
            which = "the text" if self.count == 1 else f"{self.empty} of {self.count} texts"
            raise UsageError(f"no words to explain in {which}")
