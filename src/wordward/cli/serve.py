"""The command `wordward serve`."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated

import tyro

from wordward.cli.arguments import Device, FileColumns, RunFolder
from wordward.cli.texts import warn
from wordward.support.errors import MissingExtraError, SettingError

if TYPE_CHECKING:
    from wordward.runs.run import Run

EXAMPLES = 12


@dataclass(frozen=True)
class Serve:
    """Open a page on this machine to type texts, see what pulls their words, and swap them."""

    run: RunFolder
    """Run folder."""
    other: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="[RUN2]")] = None
    """A second run of the same task, to compare."""
    port: int = 8000
    """Port of the page, http://127.0.0.1:PORT/, which only this machine can reach."""
    open: bool = False
    """Open the page in the browser."""
    examples: Annotated[str | None, tyro.conf.arg(metavar="FILE")] = None
    """File whose first texts the page offers, in any format that can be trained on; by default our own."""
    columns: FileColumns = field(default_factory=FileColumns)
    device: Device = "auto"
    """Where to compute."""

    def __call__(self) -> None:
        from wordward.support.console import say

        try:
            from wordward.serve.app import create_app, listen, serve, warm_up
        except ModuleNotFoundError as missing:
            if missing.name is None or missing.name.startswith("wordward"):
                raise
            raise MissingExtraError(
                f"the page needs {missing.name}, which is not installed: pip install 'wordward[serve]'"
            ) from None
        from wordward.runs.opening import load_run

        if not 0 <= self.port <= 65535:
            raise SettingError("port", f"expected a port from 1 to 65535 (0: any that is free); got {self.port}")
        with listen(self.port) as listener:
            folders = [self.run, *([self.other] if self.other else [])]
            runs = [load_run(folder, device=self.device) for folder in folders]
            warn(*runs)
            examples = self._examples(runs[0]) if self.examples else None
            port = listener.getsockname()[1]
            app = create_app(runs, port=port, examples=examples)
            warm_up(runs)
            say(f"{' and '.join(folders)}: open http://127.0.0.1:{port}/ in a browser; Ctrl-C stops")
            serve(app, listener, open_page=self.open)

    def _examples(self, run: "Run") -> list[str]:
        from wordward.text.chosen import read_as

        data = replace(run.config.data, limit=None, **self.columns.given())
        return [example.text for example in read_as(data, str(self.examples), labelled=False)[:EXAMPLES]]
