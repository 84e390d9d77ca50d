"""Errors on the command line: settings become flags, and what is no error of ours keeps its traceback."""

import re
from ast import literal_eval
from collections.abc import Iterable
from dataclasses import is_dataclass
from shlex import quote
from typing import Any, get_args, get_type_hints

from wordward.config.toml import flag_of
from wordward.support.errors import SettingError, WordwardError

SETTING = re.compile(r"`([a-z][a-z0-9_.]*)(?:=([^`]+))?`")  # `epochs`, `text.max_length`, `force=True`
MEMORY = (
    *("allocate memory", "out of memory", "not enough memory"),
    *("Storage size calculation overflowed", "Overflow when unpacking long"),  # sizes that no machine has
)


class UsageError(WordwardError, ValueError):
    """A command whose arguments do not go together, or cannot be used."""


def in_flags(message: str, commands: Iterable[type]) -> str:
    """A message with flags in the place of its settings, those that one of the commands has."""

    def flag(match: re.Match[str]) -> str:
        name = match[1].rpartition(".")[2]
        return _flag(name, match[2]) if any(name in settings_of(kind) for kind in commands) else match[0]

    return SETTING.sub(flag, message)


def _flag(name: str, written: str | None) -> str:
    """A setting as a flag; a value is written as in Python."""
    if written is None:
        return flag_of(name)
    value = literal_eval(written)
    if isinstance(value, bool):
        return flag_of(name) if value else flag_of(f"no_{name}")
    return f"{flag_of(name)} {quote(str(value))}"


def settings_of(kind: Any) -> set[str]:
    """The names of a command's settings: its own, those of its parts, and those of its actions."""
    if not (isinstance(kind, type) and is_dataclass(kind)):
        return {name for part in get_args(kind) for name in settings_of(part)}
    found: set[str] = set()
    for name, hint in get_type_hints(kind, include_extras=True).items():
        found |= settings_of(hint) or {name}
    return found


def message_of(error: Exception) -> str | None:
    """The message of an error that a user can mend, its settings in backquotes; None for a bug of ours."""
    message = str(error)
    ours = isinstance(error, WordwardError)
    if isinstance(error, MemoryError) or (not ours and any(part in message for part in MEMORY)):
        reason = message.partition("\n")[0] or type(error).__name__
        return (
            f"not enough memory ({reason}): the longest text matters most, so shorten it or give `max_length`; "
            "otherwise try a smaller `batch_size`, `dim` or `hidden`, or fewer `jobs`"
        )
    if isinstance(error, SettingError):  # a message may begin with the setting's name
        leaf = error.name.rpartition(".")[2]
        return f"`{leaf}`{message[len(leaf) :]}" if message.startswith(f"{leaf} ") else message
    if ours:
        return message
    # What the system refuses comes with its number: a file that is not there, a full disk.
    if isinstance(error, OSError) and error.errno is not None:
        named = "" if error.filename is None else f"{error.filename}: "
        return f"{named}{error.strerror}"
    return None
