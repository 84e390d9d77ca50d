"""The command `wordward export`."""

from dataclasses import dataclass
from typing import Annotated

import tyro

from wordward.cli.arguments import RunFolder
from wordward.cli.texts import check_files, holding


@dataclass(frozen=True)
class Export:
    """Write a classifier of ours, an LSTM or a convolution, as an ONNX file: word ids in, probabilities out."""

    run: RunFolder
    """Run folder of `wordward train`."""
    onnx: Annotated[str, tyro.conf.arg(metavar="FILE.onnx")]
    """File to write, which ONNX Runtime is seen to read as the run does; an existing one is replaced."""

    def __call__(self) -> None:
        from wordward.runs.onnx_file import export_onnx
        from wordward.runs.opening import open_model
        from wordward.support.console import say

        check_files(self, "onnx")
        with holding(self, "onnx"):
            path = export_onnx(open_model(self.run, device="cpu"), self.onnx)
        say(f"wrote {path}: {path.stat().st_size / 1e6:,.1f} MB, with the same probabilities as {self.run}")
