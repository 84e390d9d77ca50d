"""Change one operator or number of the perturbation's code at a time: some test must fail, or why none can is told.

    python -m tests.reliability.mutants  # or some files of perturbation/: choice space

Each mutant is tried with the tests that reach it, mostly of `tests/perturbation`, until one fails: `mutant_tests.py`.
A survivor is one that no test notices. Those that would be the same program are in `mutants_explained.py`; one of
them that a test notices has no place there. What was found stays in `records/mutants_found.json`, so that a run that
was stopped goes on; survivors are tried again.
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

from mutants_explained import EXPLAINED
from records import FOLDER, record

ROOT = Path(__file__).parents[2]
CODE = ROOT / "src" / "wordward" / "perturbation"
FILES = sorted(file.stem for file in CODE.glob("*.py") if file.stem != "__init__")
# In this order: what is quick and notices much comes first. The messages of errors are tested for the whole project.
QUICK = "losses choice space nearest padding adversary more_methods checks own_recipes refresh tap numbers dropout"
SLOWER = "direction_dropout", "embedding", "in_training"
TESTS = [f"tests/perturbation/test_{name}.py" for name in (*QUICK.split(), *SLOWER)]
TESTS += ["tests/project/test_names_and_errors.py"]

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


def named(file: Path) -> Iterator[tuple[str, int, int]]:
    """Every change to a file by its name, with the numbers of its place, and of the change among those there."""
    seen = Counter[str]()
    for at, (node, where) in enumerate(_places(ast.parse(file.read_text(encoding="utf-8")))):
        for number in range(len(_changes(node))):
            twin = copy.deepcopy(node)
            _changes(twin)[number]()
            name = f"{file.name} {where}: {ast.unparse(node):.90} -> {ast.unparse(twin):.90}"
            seen[name] += 1
            yield f"{name} ({seen[name]})" if seen[name] > 1 else name, at, number  # the same change in another place


def mutants(file: Path) -> Iterator[Mutant]:
    """Every change to a file: an operator for its neighbour, a number for the next, a condition for its opposite."""
    whole = ast.parse(file.read_text(encoding="utf-8"))
    for name, at, number in named(file):
        tree = copy.deepcopy(whole)
        _changes(_places(tree)[at][0])[number]()
        yield Mutant(name, file, ast.fix_missing_locations(tree))


def _places(tree: ast.Module) -> list[tuple[Any, str]]:
    return [(node, where) for node, where in _spots(tree, "module") if _changes(node)]


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

    store, note, until = FOLDER / "mutants_found.json", FOLDER / ".failed", time.monotonic() + 60 * limit
    every = [mutant for name in names for mutant in mutants(CODE / f"{name}.py")]

    def found() -> dict[str, str]:
        return json.loads(store.read_text()) if store.exists() else {}

    def keep_in_mind(known: dict[str, str]) -> None:
        store.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")

    def left() -> list[Mutant]:
        known = found()
        untried = [mutant for mutant in every if mutant.name not in known]
        return sorted(untried, key=lambda mutant: mutant.name in EXPLAINED)  # these take long: every test is run

    def tell(mutant: Mutant, why: str) -> bool:
        keep_in_mind(found() | {mutant.name: why})
        print("noticed " if why else "SURVIVED", mutant.name, flush=True)
        return time.monotonic() < until

    if limit:
        keep_in_mind({name: why for name, why in found().items() if why})  # survivors are tried again
        in_place(left(), TESTS, note, tell)
    for mutant in left():
        if time.monotonic() > until or not tell(mutant, anew(mutant, TESTS, note, [*found().values()])):
            break
    known = found()
    tried = {mutant.name: known[mutant.name] for mutant in every if mutant.name in known}
    alive = [name for name, why in tried.items() if not why]
    survivors = [name for name in alive if name not in EXPLAINED]
    explained = [mutant for mutant in every if mutant.name in EXPLAINED and not known.get(mutant.name)]
    files = {f"{name}.py" for name in names}
    noticed = {name for name in EXPLAINED if name.partition(" ")[0] in files} - {mutant.name for mutant in every}
    noticed |= {name for name, why in tried.items() if why and name in EXPLAINED}
    for name in sorted(noticed):
        print("explained, but a test notices it (or there is no such change):", name, flush=True)
    figures = {"files": names, "mutants": len(every), "noticed": len(tried) - len(alive)}
    untried = [mutant for mutant in every if mutant.name not in tried and mutant.name not in EXPLAINED]
    figures |= {"explained": len(explained), "untried": len(untried)}
    record("mutants", {**figures, "survived": survivors}, keep=keep)
    return 1 if survivors or noticed else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", default=FILES)
    parser.add_argument("--minutes", type=float, default=600, help="0: only tell what was found before")
    parser.add_argument("--record", action="store_true", help="keep the figures for the documentation")
    given = parser.parse_args()
    os.chdir(ROOT)
    sys.exit(main(given.names, given.minutes, keep=given.record))
