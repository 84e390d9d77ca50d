"""Errors that a user can mend: each says what was expected, what came, what to do.

A setting named inside a message stands in backquotes, as it is written in Python: `epochs`, `force=True`. The command
line shows it as a flag.
"""

from typing import Any


class WordwardError(Exception):
    """What every error below is: texts, run folders, settings or a model that do not fit."""


class DataError(WordwardError, ValueError):
    """A problem in the user's data, to be fixed there."""

    path: object  # the file, folder or member of an archive
    line: int

    def __init__(self, message: str, path: object = None, line: int = 0) -> None:
        where = ", ".join([*([str(path)] if path else []), *([f"line {line}"] if line else [])])
        super().__init__(f"{where}: {message}" if where else message)
        self.message = message  # without the place
        self.path = path
        self.line = line


class ColumnError(DataError):
    """A requested column that a file does not have."""


class MissingError(DataError):
    """A corpus or file that does not exist."""


class RunError(WordwardError, ValueError):
    """A run folder that is not what was expected."""


class SettingError(WordwardError, ValueError):
    """A setting or an argument that does not fit; `name` is its name: epochs, data.train, mask."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, str(self))


class SettingTypeError(SettingError, TypeError):
    """An argument of the wrong type."""


class ModelError(WordwardError, RuntimeError):
    """A model that runs in a way in which it cannot be perturbed."""


class DivergedError(WordwardError, RuntimeError):
    """The loss became NaN or infinite."""


class BusyError(WordwardError, RuntimeError):
    """Something that another process is working on."""


class MissingExtraError(WordwardError, ModuleNotFoundError, RuntimeError, ValueError):
    """An optional package that is not installed."""
