"""Settings that know which of their fields were given, be it with the default value."""

from collections.abc import Iterable
from dataclasses import fields, replace
from inspect import Signature, signature
from typing import Any, Self, TypeVar

Settings = TypeVar("Settings", bound="TracksGiven")


class _OfInit:
    """A class's signature, which `inspect` would take from `__new__`."""

    def __get__(self, settings: Any, kind: type) -> Signature:
        _, *taken = signature(kind.__init__).parameters.values()
        return Signature(taken)


class TracksGiven:
    """What dataclasses of settings inherit; `replace` names all of them, so that then those count that differ."""

    __slots__ = ("_given",)
    _given: frozenset[str] | None
    __signature__ = _OfInit()

    def __new__(cls, *values: Any, **named: Any) -> Self:
        settings, names = super().__new__(cls), [item.name for item in fields(cls)]  # type: ignore[arg-type]
        found = {*names[: len(values)], *named}
        object.__setattr__(settings, "_given", None if len(found) == len(names) else frozenset(found))
        return settings

    def __setstate__(self, state: tuple[dict[str, Any], dict[str, Any]]) -> None:
        for values in state:
            for name, value in values.items():  # pickle and copy would set them on what is frozen
                object.__setattr__(self, name, value)


def given_names(settings: TracksGiven) -> set[str]:
    """Names of the settings that were given, those of its parts too; a None that is the default was not given."""
    found, known = set(), settings._given
    for item in fields(settings):  # type: ignore[arg-type]
        value = getattr(settings, item.name)
        if isinstance(value, TracksGiven):
            found |= given_names(value)
        elif value is None and item.default is None:
            continue
        elif value != item.default if known is None else item.name in known:
            found.add(item.name)
    return found


def mark_given(settings: Settings, names: Iterable[str]) -> Settings:
    """The same settings, which now take those of these names for given, its parts too."""
    object.__setattr__(settings, "_given", frozenset(names))
    for item in fields(settings):  # type: ignore[arg-type]
        if isinstance(part := getattr(settings, item.name), TracksGiven):
            mark_given(part, names)
    return settings


def changed(settings: Settings, **values: Any) -> Settings:
    """Settings with these values, which count as given like those that were before."""
    new = replace(settings, **values)  # type: ignore[type-var]
    object.__setattr__(new, "_given", frozenset({*given_names(settings), *values}))
    return new
