"""What `help` tells: every public name says what it takes and gives, with an example that runs."""

import ast
import doctest
import importlib
import inspect
import re
from dataclasses import fields, is_dataclass
from itertools import pairwise
from operator import attrgetter
from typing import Any

import pytest
from any_model import word_vectors
from hf_tiny import bert, word_pieces
from reviews import reviews
from small_training import SMALL

import wordward
from wordward.config import TrainConfig, TrainingSettings
from wordward.train import train

# Rooms whose names users import.
ROOMS = ("config", "datasets", "text", "explain", "attack", "hf", "train", "report", "serve", "sklearn")
# Those whose help names other settings for most of what they take.
REFERRING = ("hf.AdversarialSettings", "sklearn.TextClassifier")
SECTIONS = ("Args:", "Returns:", "Examples:")


def public() -> list[str]:
    """Every public name by its path: wordward's own, and those of its rooms."""
    rooms = [f"wordward.{room}" for room in ROOMS]
    names = [f"wordward.{name}" for name in wordward.__all__ if not name.startswith("__")]
    for room in rooms:
        try:
            names += [f"{room}.{name}" for name in importlib.import_module(room).__all__]
        except ImportError:  # an optional extra that is not installed
            continue
    return [*names, *(f"wordward.Run.{verb}" for verb in ("predict", "evaluate", "adversary"))]


def found(path: str) -> Any:
    return attrgetter(path.removeprefix("wordward."))(wordward)


CALLABLE = [path for path in public() if callable(found(path))]


def told_below(value: Any) -> set[str]:
    """The fields of a dataclass with a docstring below them, and those whose type, itself settings, tells of them."""
    if not is_dataclass(value):
        return set()
    (kind,) = ast.parse(inspect.getsource(value)).body  # type: ignore[arg-type]
    assert isinstance(kind, ast.ClassDef)
    told = {item.name for item in fields(value) if is_dataclass(item.default_factory)}
    for field, below in pairwise(kind.body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(below, ast.Expr):
            told.add(field.target.id)
    return told


def help_of(value: Any) -> str:
    """What `help` says; the attributes of a named tuple are what it takes."""
    said = inspect.getdoc(value) or ""
    return said.replace("Attributes:", "Args:") if isinstance(value, type) and issubclass(value, tuple) else said


def lacking(path: str) -> list[str]:
    """The sections that a public name's help should have and does not."""
    value = found(path)
    if isinstance(value, type) and issubclass(value, Exception):
        return []  # an error says what it is in its message
    said = help_of(value)
    takes = {name for name in inspect.signature(value).parameters if name not in ("self", "args", "kwargs")}
    gives = not isinstance(value, type) and inspect.signature(value).return_annotation not in (None, "None")
    wanted = {"Args:": bool(takes - told_below(value)), "Returns:": gives, "Examples:": True}
    return [section for section in SECTIONS if wanted[section] and section not in said]


@pytest.mark.parametrize("path", CALLABLE)
def test_says_what_it_takes_and_gives(path: str) -> None:
    assert not (missing := lacking(path)), f"help({path}) lacks {', '.join(missing)}"


@pytest.mark.parametrize("path", CALLABLE)
def test_names_every_argument(path: str) -> None:
    value, others = found(path), {"args", "options", "kwargs"}
    if isinstance(value, type) and issubclass(value, Exception):
        pytest.skip("takes a message")
    args = re.split(r"\n(?:Returns|Raises|Examples):", help_of(value).partition("Args:")[2])[0]
    named = set(re.findall(r"^    \*{0,2}(\w+)(?: \(.*?\))?:", args, re.MULTILINE)) | told_below(value)
    taken = {name for name in inspect.signature(value).parameters if name != "self" and name[0] != "_"}
    assert not (strange := named - taken - others), f"help({path}) names what it does not take: {strange}"
    if path.removeprefix("wordward.") not in REFERRING:
        assert not (missing := taken - named - others), f"help({path}) does not name {missing}"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the examples may use: a folder with a run, runs/mine, that run opened, and a Hugging Face model."""
    folder, names = tmp_path_factory.mktemp("world"), {0: "bad", 1: "good"}
    training = TrainingSettings(epochs=8, learning_rate=0.02, device="cpu")
    config = TrainConfig(method="baseline", model=SMALL, training=training)
    train(config, folder / "runs" / "mine", train=reviews(160), quiet=True)
    word_vectors(folder / "vectors.txt")
    tokenizer = word_pieces()
    run, model = wordward.load_run(folder / "runs" / "mine", device="cpu"), bert("sequence", len(tokenizer))
    model.config.id2label = names
    return {"folder": folder, "run": run, "model": model.eval(), "tokenizer": tokenizer, "wordward": wordward}


@pytest.mark.parametrize("path", [path for path in CALLABLE if ">>> " in (inspect.getdoc(found(path)) or "")])
def test_examples_run(path: str, world: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    value = found(path)
    if value is wordward.explain.figure:
        pytest.importorskip("matplotlib", reason="needs pip install 'wordward[figure]'")
    monkeypatch.chdir(world["folder"])
    finder = doctest.DocTestFinder(recurse=False)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    said: list[str] = []
    for test in finder.find(value, path, module=False, globs=dict(world)):
        runner.run(test, out=said.append)
    assert not runner.failures, "".join(said)
    assert runner.tries
