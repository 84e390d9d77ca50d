"""What a command says when something is wrong: flags for settings, a traceback only for a bug of ours."""

import ast
import errno
import json
import pickle
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import wordward
from experiments import __main__ as experiments
from experiments.reproduce import TableError
from wordward.cli.errors import SETTING, UsageError, in_flags, message_of, settings_of
from wordward.cli.main import COMMANDS, main
from wordward.cli.standard import json_line
from wordward.config import DataSettings, TrainingSettings
from wordward.config.toml import flag_of
from wordward.perturbation.settings import MethodSettings
from wordward.support import console, errors
from wordward.support.wording import showing

ROOT = Path(wordward.__file__).parent
TABLES = Path(experiments.__file__).parent
MESSAGES = [path for path in sorted(ROOT.rglob("*.py")) if not path.is_relative_to(ROOT / "cli")]
MESSAGES += [path for path in sorted(TABLES.glob("*.py")) if path.name != "__main__.py"]
SETTINGS = {name for command in (COMMANDS | experiments.COMMANDS).values() for name in settings_of(command)}
FLAGS = {flag_of(name) for name in SETTINGS} | {flag_of(f"no_{name}") for name in SETTINGS}
flags = partial(in_flags, commands=COMMANDS.values())


def strings(tree: ast.AST) -> list[tuple[int, str]]:
    """Every string of a file with its line, docstrings and parts of f-strings included."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return [(node.lineno, node.value) for node in nodes if isinstance(node.value, str)]


def test_below_the_command_line_no_message_names_a_flag() -> None:
    found = [
        f"{path}:{line}: {', '.join(named)}"
        for path in MESSAGES
        for line, text in strings(ast.parse(path.read_text()))
        if (named := set(re.findall(r"--[a-z-]+", text)) & FLAGS)
    ]
    assert found == []


def test_no_message_steers_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nor does a record on standard output turn the direction of what follows, or end its line."""
    (tmp_path / "a.csv").write_text("te\x1b[2Jxt\x07,\x9b31mlabel\nwarm,good\n", encoding="utf-8")
    assert main(["train", "--train", str(tmp_path / "a.csv"), "--out", str(tmp_path / "run")]) == 1
    said = capsys.readouterr().err
    assert "found te [2Jxt ,  31mlabel" in said
    console.say("x\x1b[2Jy\nz")
    assert capsys.readouterr().err == "x [2Jy\nz\n"
    line = json_line(text := "\x1b\x9b\u2028\u202e\u2067שלום 👍🏽 \N{LATIN SMALL LETTER O WITH DIAERESIS}")
    assert (json.loads(line), line.isprintable()) == (text, True)


def test_every_setting_in_a_message_is_a_flag_of_a_command() -> None:
    """Only the room that no command speaks for has arguments of its own in backquotes, such as `mask=`."""
    unknown = [
        f"{path}: {match[0]}"
        for path in MESSAGES
        if not path.is_relative_to(ROOT / "perturbation")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Raise)
        for _, text in strings(node)
        for match in SETTING.finditer(text)
        if match[1].rpartition(".")[2] not in SETTINGS
    ]
    assert unknown == []


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("choose another `out`, or `force=True`", "choose another --out, or --force"),
        ("lower `learning_rate` or `perturbation.epsilon`", "lower --learning-rate or --epsilon"),
        ("give `lowercase=False` `max_length=None`", "give --no-lowercase --max-length None"),
        ("give `text_column='the text'`, `format='tsv'`", "give --text-column 'the text', --format tsv"),
        ("as `transformer`, such as `port=8001`", "as --model, such as --port 8001"),
        (
            "`wordward data pack`, `mask=`, `lambda: model(ids)`",
            "`wordward data pack`, `mask=`, `lambda: model(ids)`",
        ),
    ],
)
def test_settings_become_flags(message: str, shown: str) -> None:
    assert flags(message) == shown


def test_a_message_that_is_no_error_has_flags_too(capsys: pytest.CaptureFixture[str]) -> None:
    with showing(flags):
        console.say("continue with `resume=True`")
    console.say("continue with `resume=True`")
    assert capsys.readouterr().err == "continue with --resume\ncontinue with `resume=True`\n"


def test_a_setting_error_knows_its_setting() -> None:
    for make, name in (
        (lambda: TrainingSettings(epochs=0), "epochs"),
        (lambda: MethodSettings(epsilon=-1), "epsilon"),
        (lambda: DataSettings(train="a.csv", corpus="imdb"), "corpus"),
    ):
        with pytest.raises(errors.SettingError) as refused:
            make()
        assert refused.value.name == name
        again = pickle.loads(pickle.dumps(refused.value))
        assert (again.name, str(again)) == (name, str(refused.value))


def test_one_family_which_older_code_catches_as_before() -> None:
    kinds: dict[type[Exception], type[Exception]] = {
        errors.DataError: ValueError,
        errors.RunError: ValueError,
        errors.SettingError: ValueError,
        errors.SettingTypeError: TypeError,
        errors.ModelError: RuntimeError,
        errors.DivergedError: RuntimeError,
        errors.BusyError: RuntimeError,
        errors.MissingExtraError: ImportError,
        TableError: RuntimeError,
        UsageError: ValueError,
    }
    for kind, before in kinds.items():
        assert issubclass(kind, wordward.WordwardError)
        assert issubclass(kind, before)


@pytest.mark.parametrize(
    "error",
    [
        errors.SettingError("data.dev_share", "dev_share must be between 0 and 1"),
        errors.DataError("expected texts", "a.csv", 3),
        OSError(errno.ENOSPC, "No space left on device"),
        FileNotFoundError(errno.ENOENT, "No such file or directory", "runs/x"),
        MemoryError(),
    ],
)
def test_what_a_user_can_mend_has_no_traceback(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fails_with(error, monkeypatch) == 1
    shown = capsys.readouterr().err
    assert shown == f"wordward: {flags(message_of(error) or '')}\n"
    assert "dev_share" not in shown


@pytest.mark.parametrize(
    "bug", [ValueError("x"), RuntimeError("x"), TypeError("x"), KeyError("x"), OSError("x"), AssertionError()]
)
def test_a_bug_shows_its_traceback(bug: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(type(bug)):
        fails_with(bug, monkeypatch)


def fails_with(error: Exception, monkeypatch: pytest.MonkeyPatch) -> int:
    """The exit status of a command in which this is raised."""

    def fail(*arguments: Any, **settings: Any) -> None:
        raise error

    monkeypatch.setattr("wordward.runs.opening.open_model", fail)
    return main(["predict", "run", "a text"])


def test_damaged_run_folders_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.toml").write_bytes(b"\x8c\xff")
    assert main(["predict", str(tmp_path), "a text"]) == 1
    assert "config.toml cannot be read" in capsys.readouterr().err
    (tmp_path / "config.toml").unlink()
    (tmp_path / "sweep.json").write_text("{")
    train = ["train", "--train", "x.csv", "--sweep", "epsilon=1,2", "--out", str(tmp_path), "--resume"]
    assert main(train) == 1
    assert "sweep.json cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("neighbors none film", "none is not a run folder: there is no such folder here; give one"),
        ("neighbors t.csv film", "t.csv is not a run folder: it is a file; give one"),
        ("neighbors empty film", "empty is not a run folder: it holds no vocabulary.txt; give one"),
        ("train empty --out new --kind lstm", "empty: expected files empty/<label>/*.txt; found none"),
        (
            "train t.csv --out new --vectors t.csv",
            "expected word vectors, a word and its numbers a line; got 'text,label",
        ),
        ("demo --out t.csv", "t.csv: File exists"),
    ],
)
def test_what_is_not_there_or_something_else(
    command: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("t.csv").write_text("text,label\n" + "a warm film,good\na dull film,bad\n" * 8)
    assert main(command.split()) == 1
    assert told in capsys.readouterr().err
