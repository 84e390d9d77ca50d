"""The command `wordward push`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from wordward.cli.arguments import RunFolder


@dataclass(frozen=True)
class Push:
    """Upload the fine-tuned model of a run to the Hugging Face hub, with a model card."""

    run: RunFolder
    """Run folder of `wordward train --model`; the model card is README.md in its folder `model`."""
    repo: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="OWNER/NAME")]]
    """Repository to upload to; made if there is none."""
    card: Annotated[str | None, tyro.conf.arg(metavar="FILE.md")] = None
    """What `wordward check --card FILE.md` wrote: its tables become part of the model card."""
    private: bool = False
    """Make a new repository one that only you see."""
    dry_run: bool = False
    """Write the model card and show what would be uploaded, but upload nothing."""

    def __call__(self) -> None:
        from wordward.hf.pushing import push
        from wordward.runs.run_folder import TRANSFORMER
        from wordward.support.console import say

        address = push(self.run, self.repo, card=self.card, private=self.private, dry_run=self.dry_run)
        if not self.dry_run:
            say(f"pushed to {address}")
            return
        files = sorted(path for path in Path(self.run, TRANSFORMER).rglob("*") if path.is_file())
        for path in files:
            print(f"{path.stat().st_size:>14,}  {path}")
        say(f"nothing was uploaded; without --dry-run these {len(files)} files are, to {address}")
