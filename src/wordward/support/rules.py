"""What values a setting may take, in words and as a test, and how others are refused."""

from collections.abc import Callable, Sequence
from functools import cache
from math import inf
from typing import Any, Literal, get_args, get_origin, get_type_hints

from wordward.support.errors import SettingError


def _whole(value: Any) -> bool:
    """Whether this is a whole number, numpy's too."""
    return hasattr(value, "__index__")


Rule = tuple[str, Callable[[Any], bool]]  # what is accepted, in words and as a test
WHOLE: Rule = "a whole number", _whole
COUNT: Rule = "a whole number, 1 or more", lambda value: _whole(value) and value >= 1
COUNT_OR_NONE: Rule = f"{COUNT[0]}, or None", lambda value: value is None or COUNT[1](value)
POSITIVE: Rule = "greater than 0", lambda value: 0 < value < inf
ABOVE_ZERO: Rule = "greater than 0", lambda value: value > 0  # inf, too: no bound
POSITIVE_OR_NONE: Rule = "greater than 0, or None", lambda value: value is None or 0 < value < inf
FACTOR: Rule = "greater than 0 and at most 1", lambda value: 0 < value <= 1
SHARE: Rule = "between 0 and 1", lambda value: 0 < value < 1
DROPOUT: Rule = "0 or more and less than 1", lambda value: 0 <= value < 1
NOT_NEGATIVE: Rule = "0 or more", lambda value: 0 <= value < inf
SEED: Rule = "a whole number, 0 or more and less than 2**64", lambda value: _whole(value) and 0 <= value < 1 << 64
SEED_OR_NONE: Rule = f"{SEED[0]}, or None", lambda value: value is None or SEED[1](value)


def check(settings: Any, rule: Rule, *names: str) -> None:
    """Refuse a setting that breaks the rule."""
    wanted, accepts = rule
    for name in names:
        value = getattr(settings, name)
        try:
            accepted = accepts(value)
        except TypeError:  # text instead of a number
            accepted = False
        if not accepted:
            raise SettingError(name, f"{name} must be {wanted}, but is {value!r}")


def check_among(settings: Any, name: str, known: Sequence[str]) -> None:
    """Refuse a setting that is none of those known."""
    if (value := getattr(settings, name)) not in known:
        raise SettingError(name, f"{name} must be {' or '.join(known)}, but is {value!r}")


def check_choices(settings: Any) -> None:
    """Refuse a setting that is none of the choices that its type names."""
    for name, known in _choices(type(settings)).items():
        check_among(settings, name, known)


@cache
def _choices(kind: type) -> dict[str, tuple[str, ...]]:
    hints = get_type_hints(kind)
    return {name: get_args(hint) for name, hint in hints.items() if get_origin(hint) is Literal}
