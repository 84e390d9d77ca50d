"""Which settings a command line gives: by --config and --preset, by flags, and beside --resume."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from wordward.cli.errors import UsageError
from wordward.config.model import PRESETS
from wordward.config.toml import FLAGS, flag_of, named, read_toml, setting_names, settings_of
from wordward.support.given_settings import given_names

# What a run takes instead where its texts or its model do not allow what was asked.
FITTED = {("tokenizer", "words"): "characters", ("average", "sentences"): "tokens"}


def refuse_settings(settings: Any, out: str, *changing: str) -> None:
    """Refuse settings given with --resume that are not the run's own, which it keeps; but some may be changed."""
    from wordward.runs.run_folder import CONFIG, load_config
    from wordward.support.errors import RunError

    if not Path(out, CONFIG).exists():
        return
    asked, kept, given = settings_of(settings), {}, given_names(settings) - {*changing}
    with suppress(RunError):  # one of another kind
        kept = settings_of(load_config(out, type(settings)))
    names = [name for name, value in asked.items() if name in given and value != "auto"]
    names = [name for name in names if not kept or kept[name] not in (asked[name], FITTED.get((name, asked[name])))]
    if names:
        flags = ", ".join(map(flag_of, names))
        raise UsageError(
            f"--resume keeps the run's own settings, but {flags} came with it, not as the run has "
            f"{'them' if len(names) > 1 else 'it'}: leave that out (only --{', --'.join(changing)} may be changed), "
            "or start a new run in another --out"
        )


def defaults(arguments: list[str], kind: Any) -> dict[str, Any]:
    """The settings that --config and --preset make the defaults of a command, which other flags override."""
    values: dict[str, Any] = {}
    for file in values_of(arguments, "--config"):
        found = read_toml(file)
        if (preset := found.pop("preset", None)) is not None:
            if preset not in PRESETS:
                raise UsageError(f"{file} sets preset = {preset!r}; known are {', '.join(PRESETS)}")
            values |= PRESETS[preset]
        values |= named(found, kind, source=file)
    for preset in values_of(arguments, "--preset"):
        values |= PRESETS.get(preset, {})  # tyro refuses others
    return values


def flagged(arguments: list[str], kind: Any) -> set[str]:
    """The settings that have a flag on the command line, be it with their default."""
    words = [word[2:].partition("=")[0].replace("-", "_") for word in arguments if word.startswith("--")]
    names = {name: name for name in setting_names(kind)}
    names |= {f"no_{name}": name for name in names} | {flag: name for name, flag in FLAGS.items() if name in names}
    return {names[word] for word in words if word in names}


def values_of(arguments: list[str], flag: str) -> list[str]:
    """What follows a flag, each time it is given."""
    values: list[str] = []
    for at, argument in enumerate(arguments):
        if argument == flag and at + 1 < len(arguments):
            values.append(arguments[at + 1])
        elif argument.startswith(f"{flag}="):
            values.append(argument.partition("=")[2])
    return values


def repeated(arguments: list[str], flag: str) -> list[str]:
    """`--sweep A B` as `--sweep A --sweep B`."""
    expanded: list[str] = []
    inside = False
    for argument in arguments:
        inside = argument == flag or (inside and not argument.startswith("-"))
        if inside and argument != flag and expanded[-1] != flag:
            expanded.append(flag)
        expanded.append(argument)
    return expanded
