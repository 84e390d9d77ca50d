"""Change one operator or number of the perturbation's code at a time: some test must fail, or why none can is told.

    python -m tests.reliability.mutants choice space nearest directions adversary

Each mutant is tried with the tests of `tests/perturbation` that reach it until one fails (`mutant_tests.py`). A
survivor is one that no test notices. Those that would be the same program are in EXPLAINED, and not tried. What was
found stays in `records/mutants_found.json`, so that a run that was stopped goes on; survivors are tried again.
"""

import argparse
import ast
import copy
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

if __name__ == "__main__":
    os.environ |= {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "support")]

from records import FOLDER, record

ROOT = Path(__file__).parents[2]
CODE = ROOT / "src" / "wordward" / "perturbation"
QUICK = (
    "losses",
    "choice",
    "space",
    "nearest",
    "padding",
    "adversary",
    "more_methods",
    "checks",
    "own_recipes",
    "refresh",
    "tap",
    "numbers",
    "dropout",
    "embedding",
)

SWAPS: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.And: ast.Or, ast.Or: ast.And, ast.Is: ast.IsNot,
    ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Mod: ast.Mult, ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
}  # fmt: skip


class Mutant(NamedTuple):
    """A module with one change."""

    name: str  # file, function, what was and what is
    file: Path
    tree: ast.Module


def mutants(file: Path) -> Iterator[Mutant]:
    """Every change to a file: an operator for its neighbour, a number for the next, a condition for its opposite."""
    whole = ast.parse(file.read_text(encoding="utf-8"))
    spots = [(node, where) for node, where in _spots(whole, "module") if _changes(node)]
    names = Counter[str]()
    for at, (node, where) in enumerate(spots):
        for number in range(len(_changes(node))):
            tree = copy.deepcopy(whole)
            twin = [each for each, _ in _spots(tree, "module") if _changes(each)][at]
            was = ast.unparse(twin)
            _changes(twin)[number]()
            name = f"{file.name} {where}: {was:.90} -> {ast.unparse(twin):.90}"
            names[name] += 1
            numbered = f"{name} ({names[name]})" if names[name] > 1 else name  # the same change in another place
            yield Mutant(numbered, file, ast.fix_missing_locations(tree))


def _spots(node: ast.AST, where: str) -> Iterator[tuple[Any, str]]:
    """The nodes of the code with the name of their function; none of annotations, messages and documentation."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "type_comment") or isinstance(node, ast.Raise):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                inner = child.name if isinstance(child, ast.FunctionDef | ast.ClassDef) else where
                yield child, inner
                yield from _spots(child, inner)


def _changes(node: Any) -> list[Any]:
    """What can be done to a node, as functions that do it."""
    found = []
    if isinstance(node, ast.BinOp) and type(node.op) in SWAPS and not _is_type(node):
        found.append(lambda: setattr(node, "op", SWAPS[type(node.op)]()))
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        found.append(lambda: node.ops.__setitem__(0, SWAPS[type(node.ops[0])]()))
    elif isinstance(node, ast.BoolOp):
        found.append(lambda: setattr(node, "op", SWAPS[type(node.op)]()))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        found.append(lambda: setattr(node, "op", ast.UAdd()))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        found.append(lambda: setattr(node, "operand", ast.UnaryOp(ast.Not(), node.operand)))
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        found.append(lambda: setattr(node, "value", not node.value))
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        found.append(lambda: setattr(node, "value", node.value + 1))  # type: ignore[operator]
    elif isinstance(node, ast.If | ast.IfExp | ast.While) and not isinstance(node.test, ast.Compare):
        found.append(lambda: setattr(node, "test", ast.UnaryOp(ast.Not(), node.test)))
    return found


def _is_type(node: ast.BinOp) -> bool:
    """Whether this is a type such as `Tensor | None`."""
    return isinstance(node.op, ast.BitOr) and isinstance(node.right, ast.Constant | ast.Name)


def main(names: list[str], limit: float, *, keep: bool) -> int:
    """Try every mutant of the files, and tell which survived unexplained."""
    import numpy  # noqa: F401  # loaded once, for all copies
    import pytest  # noqa: F401
    import torch  # noqa: F401
    from mutant_tests import anew, in_place

    tests = [f"tests/perturbation/test_{name}.py" for name in QUICK]
    store, note, until = FOLDER / "mutants_found.json", FOLDER / ".failed", time.monotonic() + 60 * limit
    every = [mutant for name in names for mutant in mutants(CODE / f"{name}.py")]

    def found() -> dict[str, str]:
        return json.loads(store.read_text()) if store.exists() else {}

    def keep_in_mind(known: dict[str, str]) -> None:
        store.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")

    def left() -> list[Mutant]:
        return [mutant for mutant in every if mutant.name not in found() and mutant.name not in EXPLAINED]

    def tell(mutant: Mutant, why: str) -> bool:
        keep_in_mind(found() | {mutant.name: why})
        print("noticed " if why else "SURVIVED", mutant.name, flush=True)
        return time.monotonic() < until

    if limit:
        keep_in_mind({name: why for name, why in found().items() if why})  # survivors are tried again
        in_place(left(), tests, note, tell)
    for mutant in left():
        if time.monotonic() > until or not tell(mutant, anew(mutant, tests, note, [*found().values()])):
            break
    known = {name: why for name, why in found().items() if name not in EXPLAINED}
    tried = {mutant.name: known[mutant.name] for mutant in every if mutant.name in known}
    survivors = [name for name, why in tried.items() if not why]
    explained = [mutant for mutant in every if mutant.name in EXPLAINED]
    figures = {"files": names, "mutants": len(every), "noticed": len(tried) - len(survivors)}
    figures |= {"explained": len(explained), "untried": len(every) - len(tried) - len(explained)}
    record("mutants", {**figures, "survived": survivors}, keep=keep)
    return 1 if survivors else 0


ZEROS = "what is divided by it is zero"
PIECES = "only how much is computed at a time, or kept: the numbers are the same"
SAMPLE = "how large a sample is; any size near it is as good"
# Changes that are the same program, or one whose numbers no test can tell from it, with the reason.
EXPLAINED: dict[str, str] = {
    "choice.py _lengths: peak > 0 -> peak >= 0": "a text of zeros stays so, whichever of its tokens is chosen",
    "choice.py _lengths: 1.0 -> 2.0": ZEROS,
    "choice.py unit: 1.0 -> 2.0": ZEROS,
    "choice.py unit: 1.0 -> 2.0 (2)": ZEROS,
    "choice.py module: 256 -> 257": SAMPLE,
    "choice.py module: 1 -> 2": SAMPLE,
    "choice.py module: 13 -> 14": SAMPLE,
    "space.py module: 1 << 23 -> 1 >> 23": PIECES,
    "space.py module: 1 -> 2": PIECES,
    "space.py module: 23 -> 24": PIECES,
    "space.py module: 1 << 23 -> 1 >> 23 (2)": PIECES,
    "space.py module: 1 -> 2 (2)": PIECES,
    "space.py module: 23 -> 24 (2)": PIECES,
    "space.py _computed: 0 -> 1": PIECES,
    "space.py _computed: 1 -> 2 (2)": PIECES,
    "space.py vectors: True -> False": "there are always as many strengths as directions",
    "space.py __init__: 0.0 -> 1.0": "distances are NaN only where vectors are",
    "space.py __init__: 0.0 -> 1.0 (2)": "where words coincide it is multiplied by their difference, zero",
    "objective.py module: 10000.0 -> 10001.0": "any lead that leaves the others no probability",
    "objective.py kl: 0.0 -> 1.0": "it is multiplied by the probability of an impossible class, zero",
    "directions.py module: 200000 -> 200001": PIECES,
    "directions.py module: 256 -> 257": PIECES,
    "directions.py module: 1 -> 2 (2)": PIECES,
    "directions.py module: 26 -> 27": PIECES,
}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", default=["choice", "space", "nearest", "directions", "adversary"])
    parser.add_argument("--minutes", type=float, default=600, help="0: only tell what was found before")
    parser.add_argument("--record", action="store_true", help="keep the figures for the documentation")
    given = parser.parse_args()
    os.chdir(ROOT)
    sys.exit(main(given.names, given.minutes, keep=given.record))
