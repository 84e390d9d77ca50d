"""Type checks on the JSON of a run folder, which may be damaged or a stranger's."""

from typing import Any

# int (0 or more), float (whole numbers, too), SHARE, str, bool, None, [kind], {str: kind},
# {"name": kind, "name?": kind}, or a tuple of these.
Kind = Any
SHARE: Kind = "a number from 0 to 1"
SCORES: Kind = {str: SHARE}
AUGMENTED: Kind = {"attacked": int, "added": int}
METRICS: Kind = {"epoch": int, "loss": float, "seconds": float, "dev?": SCORES, "best?": bool, "steps?": int}
METRICS |= {"augmented?": AUGMENTED}
RESULT: Kind = {
    "stopped": bool,
    "criterion?": str,
    "dev?": (None, SCORES),
    "best_epoch?": int,
    "epochs?": int,
    "steps?": int,
    "seed?": int,
    "method?": str,
    "device?": str,
    "words?": int,
    "perplexity?": (None, float),
    "seconds?": float,
    "majority_error?": SHARE,
    "texts?": {str: int},
    "yardstick?": (None, {"name": str, "dev": SCORES, "intervals": {str: [SHARE]}}),
    "test?": {
        "file": str,
        "texts": int,
        "scores": {str: {"value": SHARE, "low": SHARE, "high": SHARE}},
        "majority_error?": SHARE,
    },
    "versions?": {str: str},
    "augmented?": AUGMENTED,
}
CHECKPOINT: Kind = {
    "file": str,
    "steps": int,
    "epoch?": int,
    "best": {"epoch": int, "score?": (None, float), "perplexity?": (None, float)},
    "seconds": float,
    "metrics": [METRICS],
    "loss?": float,
    "counted?": int,
    "labelled?": [int],
    "unlabelled?": (None, [int]),
    "scaler?": {str: (float, None)},
    "recent?": [float],
    "predicted?": (None, [float]),
    "tokens?": int,
    "data?": str,
    "augmented?": (None, {"texts": [[str]], "counts": AUGMENTED}),
    "ahead?": (None, METRICS),
}
TRAINER_MARK: Kind = {
    name: kind for name, kind in CHECKPOINT.items() if name != "file"
}  # in the Trainer's own folder
SWEEP: Kind = {"config": str, "tried": [{"choice": {str: str}, "failed?": str}]}
WORDS = {int: "a whole number, 0 or more", float: "a number", str: "a string", bool: "true or false", None: "null"}


def check_kind(value: Any, kind: Kind, where: str = "") -> None:
    """Refuse a value of another kind with a ValueError that says where it is.

    >>> check_kind({"epoch": "2"}, {"epoch": int})
    Traceback (most recent call last):
    ValueError: expected a whole number, 0 or more as epoch; got '2'
    """
    options = kind if isinstance(kind, tuple) else (kind,)
    fitting = [option for option in options if _is(value, option)]
    if not fitting:
        wanted = " or ".join(_said(option) for option in options)
        raise ValueError(f"expected {wanted}{f' as {where}' if where else ''}; got {_shown(value)}")
    _check_inside(value, fitting[0], where)


def _check_inside(value: Any, kind: Kind, where: str) -> None:
    before = f"{where}." if where else ""
    if isinstance(kind, list):
        for at, inner in enumerate(value):
            check_kind(inner, kind[0], f"{before}{at}")
    elif isinstance(kind, dict) and str in kind:
        for key, inner in value.items():
            check_kind(inner, kind[str], f"{before}{key[:40]}")
    elif isinstance(kind, dict):
        for key, of_key in kind.items():
            name = key.removesuffix("?")
            if name in value:
                check_kind(value[name], of_key, f"{before}{name}")
            elif name == key:
                raise ValueError(f"expected {before}{name}; there is none")


def _is(value: Any, kind: Kind) -> bool:
    if kind is None:
        return value is None
    if isinstance(kind, (list, dict)):
        return isinstance(value, type(kind))
    if isinstance(value, bool):
        return kind is bool
    if kind is SHARE:
        return isinstance(value, (int, float)) and 0 <= value <= 1
    if kind is int:
        return isinstance(value, int) and 0 <= value < 1 << 63
    if kind is float:  # a perplexity may be infinite, but nothing is NaN
        return (isinstance(value, float) and value == value) or (isinstance(value, int) and abs(value) < 1e300)
    return isinstance(value, kind)


def _said(kind: Kind) -> str:
    if isinstance(kind, (list, dict)):
        return "a list" if isinstance(kind, list) else "an object"
    return SHARE if kind is SHARE else WORDS[kind]


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
