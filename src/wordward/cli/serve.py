"""The command `wordward serve`."""

from dataclasses import dataclass, field
from typing import Annotated

import tyro

from wordward.cli.arguments import Device, FileColumns, RunFolder
from wordward.cli.texts import opened, texts_in, warn
from wordward.config.fields import Name
from wordward.support.errors import MissingExtraError, SettingError

EXAMPLES = 12


@dataclass(frozen=True)
class Serve:
    """Open a page on this machine to type texts, see what pulls their words, and swap them."""

    run: RunFolder
    """Run folder, or another model as `wordward check` takes it."""
    other: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="[RUN2]")] = None
    """A second run of the same task, to compare."""
    port: int = 8000
    """Port of the page, http://127.0.0.1:PORT/, which only this machine can reach."""
    open: bool = False
    """Open the page in the browser."""
    examples: Annotated[str | None, tyro.conf.arg(metavar="FILE")] = None
    """File whose first texts the page offers, in any format that can be trained on; by default our own."""
    columns: FileColumns = field(default_factory=FileColumns)
    positive: Annotated[Name, tyro.conf.arg(metavar="LABEL")] = None
    """For models that give several labels at once: the one whose yes or no is explained."""
    device: Device = "auto"

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

        if not 0 <= self.port <= 65535:
            raise SettingError("port", f"expected a port from 1 to 65535 (0: any that is free); got {self.port}")
        with listen(self.port) as listener:
            folders = [self.run, *([self.other] if self.other else [])]
            runs = [opened(self, folder) for folder in folders]
            for run in runs:
                run.adversary("iadvt")  # the page explains: a function without gradients is refused here
            warn(*runs)
            examples = None
            if self.examples:
                some = texts_in(runs[0], self.examples, labelled=False, **vars(self.columns))[:EXAMPLES]
                examples = [example.text for example in some]
            port = listener.getsockname()[1]
            app = create_app(runs, port=port, examples=examples)
            warm_up(runs)
            say(f"{' and '.join(folders)}: open http://127.0.0.1:{port}/ in a browser; Ctrl-C stops")
            serve(app, listener, open_page=self.open)
