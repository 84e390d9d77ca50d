"""Rows compared run by run: gains over the baseline, and which texts only one of two methods gets wrong."""

import base64
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from experiments.intervals import half, half_of_pairs
from wordward.runs.metrics import mcnemar

PAIRS = (("iadvt", "advt"), ("ivat", "vat"))
BASELINE, ERROR = "baseline", "error"  # the row, and the score of which less is better


def pack_bits(wrong: Iterable[bool]) -> str:
    """Which predictions were wrong, one bit each, for paired tests later."""
    return base64.b64encode(np.packbits(np.fromiter(wrong, dtype=bool)).tobytes()).decode()


def unpack_bits(text: str, count: int) -> np.ndarray:
    """The inverse of `pack_bits`."""
    return np.unpackbits(np.frombuffer(base64.b64decode(text), dtype=np.uint8), count=count).astype(bool)


def gain(row: str, records: Sequence[dict[str, Any]]) -> str:
    """What a row gains over the baseline with the same seeds (or folds), in points, with its 95 % interval."""
    pairs = _pairs(row, BASELINE, records)
    if row == BASELINE or not pairs:
        return ""
    sign = -1 if pairs[0][0]["criterion"] == ERROR else 1
    gains = [100 * sign * (ours["test"]["value"] - theirs["test"]["value"]) for ours, theirs in pairs]
    mean = sum(gains) / len(gains)
    if len(gains) > 1:
        around = half(gains)
    elif sign < 0:  # of errors, whose texts are known one by one
        around = 100 * half_of_pairs(*_wrong(*pairs[0]))
    else:
        return f"{mean:+.2f}"
    return f"{mean:+.2f} ({mean - around:+.2f} to {mean + around:+.2f})"


def one_by_one(records: Sequence[dict[str, Any]], *, together: bool = False) -> list[str]:
    """McNemar's test on the same test predictions, seed by seed; or of folds, which test other texts, together."""
    lines = []
    for ours, theirs in PAIRS:
        pairs = _pairs(ours, theirs, records)
        counts = [(f"seed {a['seed']}", *_only(a, b)) for a, b in pairs]
        if together and counts:
            _, first, second = zip(*counts, strict=True)
            counts = [(f"{len(pairs)} folds", sum(first), sum(second))]
        for name, only_a, only_b in counts:
            p = mcnemar(only_a, only_b)
            lines.append(
                f"- {ours} against {theirs}, {name}: only {ours} wrong on {only_a}, only {theirs} on {only_b}; "
                f"McNemar p {'< 0.001' if p < 0.001 else f'= {p:.3f}'}"
            )
    return lines


def _only(a: dict[str, Any], b: dict[str, Any]) -> tuple[int, int]:
    """How many texts only the first is wrong on, and only the second."""
    first, second = _wrong(a, b)
    return int((first & ~second).sum()), int((second & ~first).sum())


def _pairs(ours: str, theirs: str, records: Sequence[dict[str, Any]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Records of two rows that have a seed in common, in the order of seeds."""
    runs = {(record["row"], record["seed"]): record for record in records}
    seeds = sorted(seed for row, seed in runs if row == ours and (theirs, seed) in runs)
    return [(runs[ours, seed], runs[theirs, seed]) for seed in seeds]


def _wrong(*records: dict[str, Any]) -> list[np.ndarray]:
    """Which texts each was wrong on."""
    return [unpack_bits(record["wrong"], record["counted"]) for record in records]
