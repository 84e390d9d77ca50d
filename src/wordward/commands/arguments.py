"""Kinds of arguments that several commands take."""

from typing import Annotated, Literal

import tyro

Device = Annotated[str, tyro.conf.arg(metavar="cpu|cuda|mps|auto")]
Format = Annotated[
    Literal["auto", "csv", "tsv", "jsonl", "conll", "txt"] | None,
    tyro.conf.arg(metavar="auto|csv|tsv|jsonl|conll|txt"),
]
