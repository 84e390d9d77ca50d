"""What `help` tells: every public name says what it takes and gives, with an example that runs."""

import doctest
import importlib
import inspect
import re
from operator import attrgetter
from typing import Any

import pytest
from hf_tiny import bert, word_pieces
from reviews import reviews
from small_training import SMALL

import wordward
from wordward.config import TrainConfig, TrainingSettings
from wordward.train import train

# Rooms whose names users import.
ROOMS = ("config", "datasets", "text", "explain", "attack", "hf", "train", "report", "serve", "sklearn")
SECTIONS = ("Args:", "Returns:", "Examples:")
# Rooms and names that do not say all of it yet: only to be made fewer.
PENDING = {"config", "report", "serve", "attack.AttackSettings", "attack.Attacked", "attack.Change"}
PENDING |= {f"explain.{name}" for name in wordward.explain.__all__ if name not in ("explain", "STYLE")}
PENDING |= {
    "datasets.Columns",
    "datasets.CorpusInfo",
    "datasets.Splits",
    "datasets.check_labels",
}
PENDING |= {
    "datasets.drop_shared",
    "datasets.find",
    "datasets.load",
    "datasets.read_each",
}
PENDING |= {"text.Token", "text.split_words"}


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


def lacking(path: str) -> list[str]:
    """The sections that a public name's help should have and does not."""
    value = found(path)
    if isinstance(value, type) and issubclass(value, Exception):
        return []  # an error says what it is in its message
    said = inspect.getdoc(value) or ""
    takes = any(name not in ("self", "args", "kwargs") for name in inspect.signature(value).parameters)
    gives = not isinstance(value, type) and inspect.signature(value).return_annotation not in (None, "None")
    wanted = {"Args:": takes, "Returns:": gives, "Examples:": True}
    return [section for section in SECTIONS if wanted[section] and section not in said]


def pending(path: str) -> str | None:
    """The entry of PENDING that a name falls under."""
    name = path.removeprefix("wordward.")
    return next((entry for entry in PENDING if name == entry or name.startswith(f"{entry}.")), None)


@pytest.mark.parametrize("path", [path for path in CALLABLE if not pending(path)])
def test_says_what_it_takes_and_gives(path: str) -> None:
    assert not (missing := lacking(path)), f"help({path}) lacks {', '.join(missing)}"


def test_nothing_is_pending_that_says_all_of_it() -> None:
    still = {pending(path) for path in CALLABLE if lacking(path)}
    assert still >= PENDING, f"take out of PENDING: {PENDING - still}"


@pytest.mark.parametrize("path", CALLABLE)
def test_names_every_argument(path: str) -> None:
    said = inspect.getdoc(found(path)) or ""
    if "Args:" not in said:
        pytest.skip("takes nothing")
    args = re.split(r"\n(?:Returns|Raises|Examples):", said.split("Args:")[1])[0]
    named = set(re.findall(r"^    \*{0,2}(\w+)(?: \(.*?\))?:", args, re.MULTILINE))
    taken = {
        name for name in inspect.signature(found(path)).parameters if name not in ("self",) and name[0] != "_"
    }
    strange = named - taken - {"args", "options", "kwargs"}
    assert not strange, f"help({path}) names what it does not take: {strange}"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the examples may use: a folder with a run, runs/mine, that run opened, and a Hugging Face model."""
    folder, names = tmp_path_factory.mktemp("world"), {0: "bad", 1: "good"}
    training = TrainingSettings(epochs=8, learning_rate=0.02, device="cpu")
    config = TrainConfig(method="baseline", model=SMALL, training=training)
    train(config, folder / "runs" / "mine", train=reviews(160), quiet=True)
    tokenizer = word_pieces()
    run, model = wordward.load_run(folder / "runs" / "mine", device="cpu"), bert("sequence", len(tokenizer))
    model.config.id2label = names
    return {"folder": folder, "run": run, "model": model.eval(), "tokenizer": tokenizer, "wordward": wordward}


@pytest.mark.parametrize("path", [path for path in CALLABLE if ">>> " in (inspect.getdoc(found(path)) or "")])
def test_examples_run(path: str, world: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    value = found(path)
    monkeypatch.chdir(world["folder"])
    finder = doctest.DocTestFinder(recurse=False)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    said: list[str] = []
    for test in finder.find(value, path, module=False, globs=dict(world)):
        runner.run(test, out=said.append)
    assert not runner.failures, "".join(said)
    assert runner.tries
