"""The command `wordward report`."""

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from wordward.cli.arguments import Device, FileColumns, RunFolder, several
from wordward.cli.errors import UsageError
from wordward.cli.texts import check_files, holding
from wordward.config.fields import Name


@dataclass(frozen=True)
class Report:
    """Write one HTML page on a run: results, learning curves, telling sentences, adversarial texts, nearest words."""

    run: RunFolder
    """Run folder, or another model as `wordward check` takes it."""
    test: Annotated[str | None, tyro.conf.arg(metavar="FILE|test")] = None
    """Labelled texts to score on, read as those of the run were; or test, for a run on a known corpus. By default
    only the dev texts are used."""
    columns: FileColumns = field(default_factory=FileColumns)
    against: Annotated[tuple[str, ...], several("RUN")] = ()
    """Other runs with the same labels, to compare with."""
    out: Annotated[str, tyro.conf.arg(metavar="FILE.html", aliases=("--html",))] = "report.html"
    """The page to write; an existing one is replaced."""
    json: Annotated[str | None, tyro.conf.arg(metavar="FILE.json")] = None
    """Write its numbers, too: scores, accuracy under attack and faithfulness, with intervals."""
    positive: Annotated[Name, tyro.conf.arg(metavar="TAG")] = None
    """The tag of taggers whose F0.5 counts and which attacks make them miss, or, of several labels at once,
    the one to attack; by default the runs' own."""
    sentences: int = 4
    """Sentences to show, and adversarial texts of each kind."""
    attack: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    """Texts to attack, drawn at random; 0: none. By default 200, of a Transformer on a CPU 80."""
    seed: int = 0
    """Seed of that draw; 0 draws the same texts as `wordward attack --limit`."""
    edits: Annotated[tuple[str, ...], tyro.conf.arg(metavar="KIND ...")] = ("swap",)
    """Kinds of edits that attacks may make, as those of `wordward attack`."""
    device: Device = "auto"
    quiet: bool = False
    """Say nothing but errors."""

    def __call__(self) -> None:
        self._check()
        from wordward.report.contents import ReportSettings
        from wordward.report.html import write_report
        from wordward.support.console import say

        columns = self.columns.given()
        settings = ReportSettings(
            self.test, self.sentences, self.attack, self.seed, self.positive, columns, self.edits
        )
        how = {"against": self.against, "device": self.device, "quiet": self.quiet, "json": self.json}
        with holding(self, "out", "json"):
            path = write_report(self.out, self.run, settings, **how)
        say(f"wrote {shlex.quote(str(path))}: open it in a browser", quiet=self.quiet)

    def _check(self) -> None:
        """Refuse a page that cannot be written before any time is spent."""
        check_files(self, "out", "json")
        if Path(self.out).suffix.lower() not in (".html", ".htm"):
            raise UsageError(f"--out {self.out}: expected a name that ends in .html")
