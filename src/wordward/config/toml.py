"""Settings to TOML and back, and as command-line flags; unknown keys are refused by name."""

import difflib
import json
import tomllib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

from wordward.support.errors import DataError, SettingError

Config = TypeVar("Config")
FLAGS = {"transformer": "model"}  # settings whose flag has another name, since a section has that one
ONLY_FLAGS = ("out", "config", "sweep", "force", "resume", "quiet")  # not for a TOML file


def to_toml(config: Any) -> str:
    """A config as TOML, one section a part; None is written as "None"."""
    top, sections = [], []
    for item in fields(config):
        value = getattr(config, item.name)
        if is_dataclass(value):
            lines = [f"{inner.name} = {_toml(getattr(value, inner.name))}" for inner in fields(value)]
            sections.append("\n".join([f"[{item.name}]", *lines]))
        else:
            top.append(f"{item.name} = {_toml(value)}")
    return "\n\n".join(["\n".join(top), *sections]) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if value is None or isinstance(value, str):
        return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)


def from_toml(kind: type[Config], text: str) -> Config:
    """What `to_toml` wrote."""
    values = tomllib.loads(text)
    parts: dict[str, Any] = {item.name: _part(item) for item in fields(kind)}  # type: ignore[arg-type]
    if unknown := values.keys() - parts.keys():
        raise TypeError(f"{kind.__name__} has no {', '.join(sorted(unknown))}")
    for name, value in values.items():
        part = parts[name]
        values[name] = part(**{key: _plain(v) for key, v in value.items()}) if part else _plain(value)
    return kind(**values)


def _plain(value: Any) -> Any:
    return None if value == "None" else tuple(value) if isinstance(value, list) else value


def read_toml(path: str | Path) -> dict[str, Any]:
    """What a TOML file holds."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path}: expected a TOML file; there is none of this name") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not a TOML file: {error}") from None


def flags(path: str | Path, kind: type) -> list[str]:
    """The settings of a TOML file as command-line flags; unknown keys are refused by name."""
    return flags_of(read_toml(path), kind, source=str(path))


def flags_of(values: dict[str, Any], kind: type, *, source: str) -> list[str]:
    """Settings as flags; a section's name may be left out, but must not be wrong."""
    parts = {item.name: _part(item) for item in fields(kind) if _part(item)}
    named = {flag: name for name, flag in FLAGS.items() if name in setting_names(kind)}
    arguments: list[str] = []
    for key, value in values.items():
        if key in parts and isinstance(value, dict):
            for inner, inner_value in value.items():
                _refuse_unknown(inner, kind, source, section=key)
                _refuse_kind(inner, inner_value, kind, source)
                arguments += _flag(inner, inner_value)
        else:
            key = named.get(key, key)  # model = "..." as --model
            _refuse_unknown(key, kind, source)
            _refuse_kind(key, value, kind, source)
            arguments += _flag(key, value)
    return arguments


def flag_of(name: str) -> str:
    """The flag of a setting."""
    return "--" + FLAGS.get(name, name).replace("_", "-")


def _flag(name: str, value: Any) -> list[str]:
    flag = flag_of(name)
    if isinstance(value, bool):
        return [flag if value else f"--no-{flag.removeprefix('--')}"]
    if isinstance(value, list):
        return [flag, *map(str, value)]
    return [f"{flag}={value}"]  # one word, so that a value may begin with a dash


def _refuse_unknown(key: str, kind: type, source: str, section: str | None = None) -> None:
    """Refuse a key that is not a setting, or is in the wrong section."""
    home = {item.name: None for item in fields(kind) if not _part(item)}
    home |= {name: item.name for item in fields(kind) if _part(item) for name in setting_names(_part(item))}
    if key in ONLY_FLAGS:
        raise SettingError(
            key, f"{source} sets {key!r}, which only the command line can set: give `{key}` there"
        )
    if key not in home:
        close = difflib.get_close_matches(key, [*home, *filter(None, home.values())], 1)
        hint = f"; did you mean {close[0]!r}?" if close else f"; the settings are {', '.join(sorted(home))}"
        raise SettingError(key, f"{source} sets {key!r}, which is not a setting{hint}")
    if section is not None and home[key] != section:
        place = f"in [{home[key]}]" if home[key] else "at the top, above all sections"
        raise SettingError(
            key, f"{source} sets {key!r} in [{section}], but it belongs {place}: move it there"
        )


def _refuse_kind(key: str, value: Any, kind: type, source: str) -> None:
    """Refuse a switch that is not true or false, and any other setting that is: as flags both would be lost."""
    if (key in _switches(kind)) == isinstance(value, bool):
        return
    wanted = "neither true nor false" if isinstance(value, bool) else "true or false, without quotes"
    raise SettingError(key, f"{source} sets {key} = {json.dumps(value, default=str)}; expected {wanted}")


def differing(one: Any, other: Any) -> list[str]:
    """Names of the settings in which two configs differ."""
    names: list[str] = []
    for item in fields(one):
        mine, theirs = getattr(one, item.name), getattr(other, item.name)
        if is_dataclass(mine):
            names += differing(mine, theirs)
        elif mine != theirs:
            names.append(item.name)
    return names


def setting_names(kind: type) -> set[str]:
    """Names of all settings of a config, its parts included."""
    return {item.name for item in _settings(kind)}


def _switches(kind: type) -> set[str]:
    """Names of the settings that are on or off."""
    return {item.name for item in _settings(kind) if isinstance(item.default, bool)}


def _settings(kind: type) -> Iterator[Any]:
    """The settings of a config: its own fields and those of its parts, but not the parts themselves."""
    for item in fields(kind):
        part = _part(item)
        yield from _settings(part) if part else [item]


def _part(item: Any) -> Any:
    """The dataclass a field holds, if it holds one."""
    return item.default_factory if is_dataclass(item.default_factory) else None
