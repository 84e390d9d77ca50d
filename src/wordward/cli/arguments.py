"""Kinds of arguments that several commands take, and how `--help` writes them."""

from dataclasses import dataclass
from typing import Annotated, Any, get_args

import tyro

from wordward.config.fields import FileFormat, Name


def several(what: str) -> Any:
    """How `--help` writes an argument that takes several, and says nothing of a default that is empty."""
    return tyro.conf.arg(metavar=f"[{what} ...]", help_behavior_hint="")


Device = Annotated[str, tyro.conf.arg(metavar="cpu|cuda|mps|auto", help="Where to compute.")]
Quiet = Annotated[bool, tyro.conf.arg(help="Show no progress.")]
Jobs = Annotated[
    int | None,
    tyro.conf.arg(
        help="Number of processes; by default one per core for 2,000 texts and more on a CPU, else one.",
    ),
]
SenseFrom = Annotated[
    str | None,
    tyro.conf.arg(
        metavar="FILE",
        help="Labelled texts, such as those a model was trained on that wordward did not train, whose words are "
        "counted by label to judge which edits change the sense; by default all texts of the file, even with "
        "--limit.",
    ),
]
Format = Annotated[FileFormat | None, tyro.conf.arg(metavar="|".join(get_args(FileFormat)))]


@dataclass(frozen=True)
class FileColumns:
    """How a file of texts is read; by default as those of the run were."""

    text_column: Name = None
    """Name or number of the column that holds the text; by default as in the run."""
    label_column: Name = None
    """Name or number of the column that holds the label; by default as in the run."""
    pair_column: Name = None
    """Name or number of the column that holds a second text, judged together with the first; by default as in the
    run."""
    tag_column: int | None = None
    """Column of the tag in a CoNLL file, from 0; by default as in the run."""
    format: Format = None
    """Kind of the file; by default as in the run."""
    skip_empty: bool = False
    """Leave out texts that are empty or lack a label that is needed, as a run trained with it does."""

    def given(self) -> dict[str, Any]:
        """Those that are given, as settings of data."""
        return {name: value for name, value in vars(self).items() if value is not None and value is not False}


Model = tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="MODEL")]]
RunFolder = tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="RUN")]]
