"""What `--help` looks like in terminals of several widths."""

import re

import pytest

from wordward.cli.main import COMMANDS, main

DEEP = r" {14,}\S"  # a line that belongs to the flag above it


def helped(
    arguments: list[str], width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--help"])
    assert ended.value.code == 0
    return capsys.readouterr().out


def broken_early(shown: str) -> list[str]:
    """The lines of what is said of an option that have room for the word with which the next one goes on."""
    found, before = [], ""
    for line in (line[2:-2] for line in shown.splitlines() if line.startswith("│")):
        word = re.split(r"(?<=,)| ", line.strip())[0]
        if re.match(DEEP, before) and re.match(DEEP, line) and len(before.rstrip()) + 1 + len(word) <= len(before):
            found.append(f"{before.strip()} | {word}")
        before = line
    return found


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_lines_of_help_are_as_wide_as_the_terminal(
    command: str, width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = helped([command] if command else [], width, monkeypatch, capsys)
    assert max(map(len, shown.splitlines())) <= width
    assert broken_early(shown) == []


def test_commands_are_named_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Their list would break in the midst of a name; the box below has them, each with what it does."""
    shown = helped([], 80, monkeypatch, capsys)
    assert shown.startswith("usage: wordward [-h] COMMAND ...\n")
    assert all(f"• {command} " in shown for command in COMMANDS)


@pytest.mark.parametrize(("typed", "meant"), [("trian", "; did you mean 'train'? The"), ("xyz", ". The")])
def test_a_command_that_is_none_is_told_in_a_line(typed: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([typed, "reviews.csv", "--out", "runs/mine"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"wordward: {typed!r} is no command{meant}")
    assert said.count("\n") == 1
    assert all(name in said for name in COMMANDS)
