"""The layout: few rooms, and imports that go down only, also those inside functions."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import wordward

ROOT = Path(wordward.__file__).parent
# From the ground up: a room imports from those before it only.
ROOMS = (
    *("support", "perturbation", "datasets", "config", "text", "models", "runs", "explain"),
    *("attack", "hf", "train", "report", "serve", "sklearn", "cli", "__init__", "__main__"),
)
PUT_TOGETHER = ("", "config.settings")  # settings are imported from where they are put together, too
MODULES = {
    path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__"): path
    for path in sorted(ROOT.rglob("*.py"))
}


def room(module: str) -> str:
    return module.split(".")[0]


@cache
def imports(module: str) -> list[str]:
    """The modules of ours that one imports, wherever in the file."""
    found = []
    for node in ast.walk(ast.parse(MODULES[module].read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: imports are written in full"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
    ours = [name.removeprefix("wordward").removeprefix(".") for name in found if name.split(".")[0] == "wordward"]
    return [known for name in ours if (known := _module(name)) != module]


def _module(name: str) -> str:
    while name not in MODULES and name:
        name = name.rpartition(".")[0]
    return name or "__init__"


def test_few_rooms_each_in_the_order():
    entries = {path.name for path in ROOT.iterdir()} - {"__pycache__"}
    assert len(entries) <= 18
    assert {path.removesuffix(".py") for path in entries} == {*ROOMS, "py.typed"}


def test_imports_go_down():
    order = {name: floor for floor, name in enumerate(ROOMS)}
    climbing = [
        f"{module} -> {imported}"
        for module in MODULES
        for imported in imports(module)
        if order[room(imported)] > order[room(module)]
    ]
    assert not climbing


def test_no_circle_within_a_room():
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " -> ".join([*path[path.index(module) :], module])
        if module in done:
            return
        for imported in imports(module):
            if room(imported) == room(module) and imported != room(module):
                visit(imported, (*path, module))
        done.add(module)

    for module in MODULES:
        visit(module, ())


def test_a_name_is_imported_from_where_it_is_defined() -> None:
    passed_on = []
    for module, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (source := _file(node.module)) not in PUT_TOGETHER:
                names = {alias.name for alias in node.names} & _taken(source)
                passed_on += [f"{module}: {name} from {source}" for name in sorted(names)]
    assert not passed_on


def _file(name: str | None) -> str:
    """The module of ours that is a file of its own; "" for others."""
    module = (name or "").removeprefix("wordward.")
    return module if module in MODULES and MODULES[module].name != "__init__.py" else ""


@cache
def _taken(module: str) -> set[str]:
    """The names that a module imports from other modules of ours."""
    nodes = ast.walk(ast.parse(MODULES[module].read_text())) if module else ()
    return {
        alias.asname or alias.name
        for node in nodes
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("wordward")
        for alias in node.names
    }


def test_the_map_names_every_room():
    table = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text()
    listed = re.findall(r"^\| `(\w+)(?:/|\.py)` \|", table, re.MULTILINE)
    assert listed == [name for name in ROOMS if not name.startswith("__")]


def test_what_few_need_is_imported_where_it_is_used() -> None:
    code = "import sys, wordward.explain, wordward.report, wordward.attack.textattack, wordward.hf\n"
    code += "print({'jinja2', 'textattack', 'nltk', 'transformers.trainer'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
