"""Kinds of fields that settings are made of: names, files, and numbers that may be left open."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from tyro.constructors import PrimitiveConstructorSpec

OPEN: Any = None  # a number that is left open until `filled`: in a resumed run, or with a Transformer, it is another
if TYPE_CHECKING:  # what trains has the numbers
    OpenInt = int
    OpenFloat = float
else:
    OpenInt, OpenFloat = int | None, float | None


def shown(default: float) -> Any:
    """How `--help` shows the default of a number that is left open."""
    return tyro.conf.arg(help_behavior_hint=lambda text: f"(default: {default if text == 'None' else text})")


def _share(words: list[str]) -> float | None:
    """A share as it is written; the word None is none."""
    try:
        return None if words == ["None"] else float(words[0])
    except ValueError:
        raise ValueError(f"expected a share such as 0.9; got {words[0]!r}") from None


# A column, tag or label: the word None is a name like any other, where it means nothing to a file or a number.
NAME = PrimitiveConstructorSpec[Any](
    nargs=1,
    metavar="STR",
    instance_from_str=lambda words: words[0],
    is_instance=lambda value: value is None or isinstance(value, str),
    str_from_instance=lambda value: [str(value)],
)
Name = Annotated[str | None, NAME]
SHARE = PrimitiveConstructorSpec[Any](
    nargs=1,
    metavar="FLOAT",
    instance_from_str=_share,
    is_instance=lambda value: value is None or isinstance(value, int | float),
    str_from_instance=lambda value: [str(value)],
)
Share = Annotated[float | None, SHARE]
File = Annotated[str | None, tyro.conf.arg(metavar="FILE")]
Tracker = Literal["tensorboard", "wandb", "mlflow", "trackio"] | None
FileFormat = Literal["auto", "csv", "tsv", "jsonl", "conll", "txt", "parquet", "excel"]


def given(settings: Any, *names: str) -> dict[str, Any]:
    """Those of the named settings that are not left open."""
    return {name: value for name in names if (value := getattr(settings, name)) is not OPEN}
