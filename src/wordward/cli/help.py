"""How `--help` reads: plain names of values, and lines as wide as the terminal, whatever those of the source."""

import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import is_dataclass, replace
from textwrap import fill
from typing import Any, TextIO, cast, get_args

from tyro.constructors import (
    ConstructorRegistry,
    PrimitiveConstructorSpec,
    PrimitiveTypeInfo,
    StructConstructorSpec,
    StructTypeInfo,
)

READ = "read by tyro's own rule"  # a marker of ours
STYLE = re.compile(r"\x1b\[[0-9;]*m")  # of a terminal
PLAIN = ConstructorRegistry()


@PLAIN.primitive_rule
def _may_be_none(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    """`--limit INT` where tyro would write `--limit {None}|INT`; the word None is taken as before."""
    kinds = [kind for kind in get_args(info.type) if kind is not type(None)]
    if len(kinds) != 1 or type(None) not in get_args(info.type):
        return None
    inner = ConstructorRegistry.get_primitive_spec(PrimitiveTypeInfo.make(kinds[0], info.markers))
    if not isinstance(inner, PrimitiveConstructorSpec) or inner.nargs != 1:
        return None
    return replace(
        inner,
        instance_from_str=lambda words: None if words == ["None"] else inner.instance_from_str(words),
        is_instance=lambda value: value is None or inner.is_instance(value),
        str_from_instance=lambda value: ["None"] if value is None else inner.str_from_instance(value),
        choices=inner.choices and ("None", *inner.choices),
    )


@PLAIN.struct_rule
def _flowing(info: StructTypeInfo) -> StructConstructorSpec | None:
    """What is said of each field as paragraphs, where tyro would break lines as the source does."""
    if not is_dataclass(info.type) or READ in info.markers:
        return None
    found = ConstructorRegistry.get_struct_spec(replace(info, markers=(*info.markers, READ)))
    if not isinstance(found, StructConstructorSpec):
        return None
    return replace(found, fields=tuple(replace(each, helptext=_joined(each.helptext)) for each in found.fields))


def _joined(helptext: str | Callable[[], str | None] | None) -> Callable[[], str | None]:
    def text() -> str | None:
        said = helptext() if callable(helptext) else helptext
        return said and re.sub(r"(?<!\n)\n(?!\n)", " ", said)

    return text


class _Fitting:
    """Standard output whose lines are folded where the terminal ends, but those of boxes, which fit already."""

    def __init__(self, out: Any, commands: Iterable[str]) -> None:
        self.out, self.commands = out, f"{{{','.join(commands)}}}"

    def __getattr__(self, name: str) -> Any:
        return getattr(self.out, name)

    def write(self, text: str) -> int:
        return self.out.write("\n".join(map(self._folded, text.split("\n"))))

    def _folded(self, line: str) -> str:
        width = shutil.get_terminal_size().columns
        if len(STYLE.sub("", line)) <= width:
            return line
        return fill(line.replace(self.commands, "COMMAND ..."), width, break_on_hyphens=False)


@contextmanager
def fitted(arguments: Iterable[str], commands: Iterable[str]) -> Iterator[None]:
    """Let help that is printed meanwhile fit the terminal; what shells complete commands by stays as it is."""
    out = _Fitting(sys.stdout, commands) if {"-h", "--help"} & {*arguments} else sys.stdout
    with redirect_stdout(cast(TextIO, out)):
        yield
