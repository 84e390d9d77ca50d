"""Standard input as texts, and records on standard output."""

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from typing import Any, cast

from wordward.cli.errors import UsageError

# What JSON leaves as it is: further controls, ends of lines, and marks that turn the direction of what follows.
STEERING = re.compile(r"[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def standard_input() -> Iterator[list[str]]:
    """The lines of standard input, as many at a time as have come."""
    rest, number = b"", 0
    incoming = cast(BufferedReader, sys.stdin.buffer)
    while True:
        received = incoming.read1(1 << 16)
        *lines, rest = (rest + received).split(b"\n")
        if not received and rest:
            lines = [rest]
        texts: list[str] = []
        for line in lines:
            number += 1
            try:
                texts.append(line.decode().rstrip("\r"))
            except UnicodeDecodeError as error:
                yield texts  # the lines before it get their answers
                raise UsageError(f"standard input, line {number}: expected UTF-8 ({error})") from None
        if texts:
            yield texts
        if not received:
            return


@contextmanager
def until_unread() -> Iterator[None]:
    """Print until the reader of a pipe has seen enough; what comes after goes nowhere."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        with suppress(OSError):  # an output that is no file
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def json_line(record: Any) -> str:
    """A record as JSON for standard output; escaped where that is not UTF-8, and what steers a terminal."""
    text = json.dumps(record, ensure_ascii=not (sys.stdout.encoding or "utf-8").lower().startswith("utf"))
    return STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
