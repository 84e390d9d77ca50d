"""The code blocks of the documentation: found, and done as a reader would."""

import io
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from hf_tiny import saved

from experiments import __main__ as experiments
from wordward.cli import main as wordward
from wordward.cli.data import ACTIONS
from wordward.datasets import read

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", "CONTRIBUTING.md", *sorted(f"docs/{path.name}" for path in ROOT.glob("docs/*.md"))]
FENCE = re.compile(r"^( *)```([^\n`]*)\n(.*?)^\1``` *$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"(?<!`)`([^`\n]+(?:\n[^`\n]+)?)`(?!`)")
FLAG = re.compile(r"(?<![\w-])--[a-z][\w-]*")

# Commands whose flags are checked but that are not run here: words that they hold, and why.
ONLY_PARSED = {
    "data fetch": "downloads",
    "data add": "takes a corpus as published: tests/cli/test_data.py",
    "data check": "reads such a corpus: tests/cli/test_data.py",
    "data stats": "reads such a corpus: tests/cli/test_data.py",
    "data pack": "reads such a corpus: tests/text/test_corpora.py",
    "--corpus": "reads such a corpus: tests/text/test_corpora.py",
    "reproduce": "trains whole tables: tests/experiments/test_reproduce.py",
    "yardsticks": "needs WordNet and a sentence encoder: tests/attack/test_protocol.py",
    "serve": "runs until it is stopped: tests/serve/test_serve.py",
}
PROGRAMS: dict[str, Any] = {"wordward": wordward, "experiments": experiments}  # `python -m experiments`
FEW_EPOCHS = ["--epochs", "1"]  # where a command leaves it open


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    line: int  # of its first line, from 1
    language: str
    title: str  # the name of a file that it shows, or nothing
    code: str


class DocumentationError(AssertionError):
    """A block that does not do what it says."""


def blocks(page: str, text: str) -> list[Block]:
    """All fenced blocks of a page, those in its comments too."""
    found = []
    for match in FENCE.finditer(text):
        indent, info, code = match.groups()
        language, _, rest = info.strip().partition(" ")
        title = re.search(r'title="([^"]*)"', rest)
        line = text.count("\n", 0, match.start()) + 2
        found.append(Block(page, line, language, title[1] if title else "", re.sub(f"(?m)^{indent}", "", code)))
    return found


def commands(block: Block) -> Iterator[tuple[int, str]]:
    """The commands of a block with their lines: all of a shell's, and what follows `$ ` in shown output."""
    shell = block.language in ("", "sh", "bash")
    line, held = block.line, ""
    for number, each in enumerate(block.code.split("\n"), start=block.line):
        line = line if held else number
        if not held and not shell and not each.startswith("$ "):
            continue
        held += each if shell else each.removeprefix("$ ")
        if held.endswith("\\"):
            held = held[:-1]
            continue
        if held.strip() and not held.lstrip().startswith("#"):
            yield line, held
        held = ""


def do(block: Block, names: dict[str, Any]) -> None:
    """Run a block in the current folder; DocumentationError says what is wrong with it, and where."""
    if block.language == "python":
        if block.title:  # a module that commands below it name
            Path(block.title).write_text(block.code, encoding="utf-8")
        exec(compile("\n" * (block.line - 1) + block.code, block.page, "exec"), names)
    elif block.language == "py":
        compile(block.code, block.page, "exec")  # what cannot run here: TextAttack's own test runs it
    elif block.language == "toml" and block.title:
        Path(block.title).write_text(block.code, encoding="utf-8")
    elif block.language == "yaml" and block.title:
        yaml.safe_load(block.code)  # tests/cli/test_check.py runs its command
    elif block.language in ("csv", "json", "text") and block.title:
        _show(block)
    elif block.language in ("", "sh", "bash", "text"):
        for line, command in commands(block):
            try:
                command_line(shlex.split(command, comments=True))
            except (AssertionError, ValueError) as error:
                raise DocumentationError(f"{block.page}, line {line}: {command.strip()}\n{error}") from error
    else:
        raise DocumentationError(
            f"{block.page}, line {block.line}: expected a block of python, sh, toml or text, or a file's name in its "
            f"title; got {block.language!r}: tests/documented.py says how blocks are checked"
        )


def _show(block: Block) -> None:
    """Lines of a data file are read as the file would be; the file itself is longer."""
    folder = Path("shown")
    folder.mkdir(exist_ok=True)
    path = folder / block.title
    path.write_text(block.code, encoding="utf-8")
    text, label = re.findall(r'"(\w+)":', block.code.split("\n")[0]) or ("text", "label")  # keys of JSON
    for example in read(path, text_column=text, label_column=label):
        assert example.label or example.tags, f"{block.page}, line {block.line}: a text without label"


def command_line(words: list[str]) -> None:
    """Do one line of a shell, or at least see that it could be done."""
    program = words[0]
    if program == "wordward" or words[1:3] == ["-m", "experiments"]:
        _do(*called(words))
    elif program in ("torchrun", "accelerate"):  # several processes: tests/processes/test_distributed.py
        parse(*called(words))
    elif program == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert set(words[1:]) <= set(targets), f"no such target; there are {', '.join(targets)}"
    elif program.rsplit("/")[-1] == "pip":
        _extras(words)
    elif program.rsplit("/")[-1] in ("python", "python3"):
        _python(words[1:])
    elif program != "curl":  # asks the server of `wordward serve`: tests/serve/test_serve.py
        assert (ROOT / program).is_file(), f"{program} is no program that tests/documented.py knows"


def called(words: list[str]) -> tuple[str, list[str]]:
    """Which of our programs a line of a shell calls, and with what; no name if it calls another."""
    for name in PROGRAMS:
        if name in words:
            return name, words[words.index(name) + 1 :]
    return "", []


def _do(program: str, arguments: list[str]) -> None:
    if reason_not_to_run(arguments):
        parse(program, arguments)
        return
    if arguments[0] in ("train", "pretrain") and "--epochs" not in arguments:
        arguments = [*arguments, *FEW_EPOCHS]
    if arguments[0] == "train" and "--model" in arguments:
        _tiny_model(Path(arguments[arguments.index("--model") + 1]))
    errors = io.StringIO()
    try:
        with redirect_stderr(errors):
            status = PROGRAMS[program].main(arguments)
    except SystemExit as stopped:
        status = stopped.code
    # That a model falls short of its limits is an answer, too, and that a limit could not be measured.
    refused = any(sign in errors.getvalue() for sign in ("wordward: ", "Traceback"))
    assert not status or (arguments[0] == "check" and not refused), errors.getvalue()


def _tiny_model(folder: Path) -> None:
    """In the place of a Hugging Face model of that name, one that is trained in a second."""
    if not folder.exists():
        saved(folder)


def reason_not_to_run(arguments: list[str]) -> str:
    """Which words of ONLY_PARSED a command has; none if it is to be run."""
    for words in ONLY_PARSED:
        if words in arguments if words.startswith("--") else words.split() == arguments[: len(words.split())]:
            return words
    return ""


def parse(program: str, arguments: list[str]) -> Any:
    """The command, not run; an unknown flag is refused. `...` stands for flags that are left out."""
    if "..." in arguments:
        assert arguments[0] in PROGRAMS[program].COMMANDS, f"no command {arguments[0]}"
        return None
    errors = io.StringIO()
    try:
        with redirect_stderr(errors):
            return PROGRAMS[program]._parse(arguments)
    except SystemExit:
        raise DocumentationError(errors.getvalue()) from None


def _extras(words: list[str]) -> None:
    """Extras that pip is to install are those of the project."""
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for word in words:
        if found := re.fullmatch(r"(?:wordward|\.)\[(.*)\]", word):
            assert set(found[1].split(",")) <= known.keys(), f"no extra {found[1]}; there are {', '.join(known)}"


def _python(arguments: list[str]) -> None:
    """A module or a program that is there."""
    if arguments[0] == "-m":
        path = ROOT / arguments[1].replace(".", "/")
        there = path.with_suffix(".py").is_file() or (path / "__main__.py").is_file()
        there = there or arguments[1] in sys.stdlib_module_names
        assert there, f"no module {arguments[1]}"
    else:
        assert (ROOT / arguments[0]).is_file(), f"no program {arguments[0]}"


def help_flags() -> dict[str, set[str]]:
    """The flags of each command."""
    found = {}
    commands = [(program, name) for program, module in PROGRAMS.items() for name in module.COMMANDS]
    for program, name in [*commands, *(("wordward", f"data {action}") for action in ACTIONS)]:
        shown = io.StringIO()
        try:
            with redirect_stdout(shown):
                PROGRAMS[program]._parse([*name.split(), "--help"])
        except SystemExit:
            found[name] = set(FLAG.findall(shown.getvalue()))
    return found


def inline(text: str) -> Iterator[tuple[str, set[str]]]:
    """What stands between backquotes in running text, with the flags in it."""
    for span in INLINE.findall(FENCE.sub("", text)):
        if flags := set(FLAG.findall(span)):
            yield " ".join(span.split()), flags
