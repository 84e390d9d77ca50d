"""Settings as TOML and back; unknown keys and values of another type are refused by name."""

import json
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from wordward.config.fields import NAME
from wordward.support.errors import DataError, SettingError
from wordward.support.given_settings import TracksGiven, mark_given
from wordward.support.wording import did_you_mean

Config = TypeVar("Config", bound=TracksGiven)
FLAGS = {"transformer": "model"}  # settings whose flag has another name, since a section has that one
ONLY_FLAGS = ("out", "config", "sweep", "force", "resume", "quiet")  # not for a TOML file
WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", NoneType: "None"}


def to_toml(config: Any) -> str:
    """A config as TOML, one section a part; a setting that is None is left out."""
    import tomli_w  # which `wordward --help` does without

    return tomli_w.dumps(_plain(config))


def _plain(settings: Any) -> dict[str, Any]:
    """Settings as TOML knows them; only a None that is not the default is written, as "None"."""
    values: dict[str, Any] = {}
    for item in fields(settings):
        value = getattr(settings, item.name)
        if is_dataclass(value):
            values[item.name] = _plain(value)
        elif value is not None or item.default is not None:
            values[item.name] = "None" if value is None else value
    return values


def from_toml(kind: type[Config], text: str, *, source: str = "the file") -> Config:
    """The config that a TOML text gives, such as `to_toml` writes; what it leaves out has its default."""
    return built(kind, named(parsed(text), kind, source=source))


def parsed(text: str) -> dict[str, Any]:
    """What the text of a TOML file holds."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise tomllib.TOMLDecodeError("its values are nested too deeply") from None


def read_toml(path: str | Path) -> dict[str, Any]:
    """What a TOML file holds."""
    try:
        return parsed(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path}: expected a TOML file; there is none of this name") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise DataError(f"{path} is not a TOML file: {error}") from None


def named(values: Mapping[str, Any], kind: type, *, source: str) -> dict[str, Any]:
    """The settings of a file by name, each of its type; a section's name may be left out, but must not be wrong."""
    known, sections = _known(kind), {item.name for item in fields(kind) if _part(item)}
    alone = {flag: name for name, flag in FLAGS.items() if name in known}  # model = "..." as --model
    found: dict[str, Any] = {}
    for key, value in values.items():
        if key in sections and isinstance(value, Mapping):
            inside = [(name, inner, key) for name, inner in value.items()]
        else:
            inside = [(alone.get(key, key), value, None)]
        for name, inner, section in inside:
            _refuse_unknown(name, known, source, section)
            found[name] = _of_type(name, inner, known[name][1], source)
    return found


def built(kind: type[Config], values: Mapping[str, Any], *, checked: bool = True) -> Config:
    """A config that is given these settings, its parts too; not `checked` where flags may still change them."""
    own: dict[str, Any] = {}
    for item in fields(kind):  # type: ignore[arg-type]
        if part := _part(item):
            own[item.name] = built(part, values, checked=checked)
        elif item.name in values or item.default is not MISSING:
            own[item.name] = values.get(item.name, item.default)
    if checked:
        return mark_given(kind(**own), values)
    config = object.__new__(kind)
    for name, value in own.items():
        object.__setattr__(config, name, value)
    return mark_given(config, values)


def typed(value: Any, hint: Any) -> Any:
    """A value of TOML, or a word, as a setting of some type takes it; otherwise ValueError with what it takes."""
    kind = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    left_out = value is None or (value == "None" and NAME not in getattr(hint, "__metadata__", ()))
    if left_out and NoneType in kinds:
        return None
    for kind in kinds:
        if get_origin(kind) is tuple:
            return tuple(map(str, value if isinstance(value, list | tuple) else [value]))
        if get_origin(kind) is Literal and value in get_args(kind):
            return value
        if isinstance(value, bool) != (kind is bool) or isinstance(value, list | dict):
            continue
        if kind in (bool, str):
            return kind(value)
        with suppress(ValueError):
            if kind in (int, float):
                return kind(str(value))
    words = [get_args(kind) if get_origin(kind) is Literal else [WORDS[kind]] for kind in kinds]
    raise ValueError(" or ".join(word for several in words for word in several))


def flag_of(name: str) -> str:
    """The flag of a setting."""
    return "--" + FLAGS.get(name, name).replace("_", "-")


def _refuse_unknown(key: str, known: Mapping[str, Any], source: str, section: str | None) -> None:
    """Refuse a key that is not a setting, or is in the wrong section."""
    if key in ONLY_FLAGS:
        raise SettingError(key, f"{source} sets {key!r}, which only the command line can set: give `{key}` there")
    if key not in known:
        sections = {home for home, _ in known.values() if home}
        hint = did_you_mean(key, [*known, *sections]) or f"; the settings are {', '.join(sorted(known))}"
        raise SettingError(key, f"{source} sets {key!r}, which is not a setting{hint}")
    home = known[key][0]
    if section is not None and home != section:
        place = f"in [{home}]" if home else "at the top, above all sections"
        raise SettingError(key, f"{source} sets {key!r} in [{section}], but it belongs {place}: move it there")


def _of_type(name: str, value: Any, hint: Any, source: str) -> Any:
    try:
        return typed(value, hint)
    except ValueError as error:
        wanted = "neither true nor false" if isinstance(value, bool) else str(error)
        wanted += ", without quotes" if hint is bool else ""
        raise SettingError(
            name, f"{source} sets {name} = {json.dumps(value, default=str)}; expected {wanted}"
        ) from None


def differing(one: Any, other: Any) -> list[str]:
    """Names of the settings in which two configs differ."""
    theirs = settings_of(other)
    return [name for name, value in settings_of(one).items() if value != theirs[name]]


def settings_of(config: Any) -> dict[str, Any]:
    """The settings of a config by name, its parts' included."""
    settings: dict[str, Any] = {}
    for item in fields(config):
        value = getattr(config, item.name)
        settings |= settings_of(value) if is_dataclass(value) else {item.name: value}
    return settings


def setting_names(kind: type) -> set[str]:
    """Names of all settings of a config, its parts included."""
    return set(_known(kind))


def hint_of(kind: type, name: str) -> Any:
    """The type of a setting."""
    return _known(kind)[name][1]


def _known(kind: type, section: str | None = None) -> dict[str, tuple[str | None, Any]]:
    """Section and type of each setting of a config, its parts' included."""
    hints, known = get_type_hints(kind, include_extras=True), {}
    for item in fields(kind):
        if part := _part(item):
            known |= _known(part, item.name)
        else:
            known[item.name] = section, hints[item.name]
    return known


def _part(item: Any) -> Any:
    """The dataclass a field holds, if it holds one."""
    return item.default_factory if is_dataclass(item.default_factory) else None
