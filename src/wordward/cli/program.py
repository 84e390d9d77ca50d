"""A program of several commands: reading its arguments, showing its errors, its exit status."""

import io
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stderr
from functools import partial, reduce
from operator import or_
from traceback import print_exc
from typing import Annotated, Any

import tyro

from wordward.cli.errors import in_flags, message_of
from wordward.cli.help import PLAIN, fitted
from wordward.cli.standard import until_unread
from wordward.support.errors import WordwardError
from wordward.support.threads import keep_memory, wait_passively
from wordward.support.version import __version__
from wordward.support.wording import did_you_mean, plain, showing

STOPPED = 130  # exit status after Ctrl-C
USAGE = 2  # of arguments that are none


def parse(
    arguments: list[str],
    commands: Mapping[str, Any],
    *,
    name: str,
    description: str,
    defaults: Mapping[str, Any] | None = None,
) -> Any:
    """The command with its settings; a setting that its class refuses is reported plainly, without tyro's frame."""
    shown, given = io.StringIO(), defaults or {}
    kinds: Any = reduce(
        or_,
        (
            Annotated[
                Any, tyro.conf.subcommand(each, constructor=kind, default=given.get(each, tyro.MISSING_NONPROP))
            ]
            for each, kind in commands.items()
        ),
    )
    try:
        with redirect_stderr(shown), fitted(arguments, commands):
            return tyro.cli(
                kinds,
                prog=name,
                description=description,
                args=arguments,
                config=(tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes),
                registry=PLAIN,
            )
    except SystemExit as stopped:
        refusal = stopped.__context__  # tyro's, of a setting or of what our class said of it
        if refusal is not None and isinstance(refusal.__context__, WordwardError):
            raise refusal.__context__ from None
        sys.stderr.write(shown.getvalue())
        raise


def run(parsed: Callable[[list[str]], Any], commands: Mapping[str, Any], arguments: Sequence[str] | None) -> int:
    """Run the command that `parsed` makes of the arguments, by default this process's own; the exit status."""
    _print_anywhere()
    wait_passively()
    keep_memory()
    command_line = list(sys.argv[1:] if arguments is None else arguments)
    if command_line in (["--version"], ["-V"]):
        print(f"wordward {__version__}")
        return 0
    if command_line and not command_line[0].startswith("-") and command_line[0] not in commands:
        print(f"wordward: {_unknown(command_line[0], commands)}", file=sys.stderr)
        return USAGE
    # A command may say that its status 1 means something else than an error.
    failed = getattr(commands.get(next(iter(command_line), "")), "COULD_NOT_RUN", 1)
    flags = partial(in_flags, commands=commands.values())
    try:
        with showing(flags), until_unread():
            return parsed(command_line or ["--help"])() or 0
        return 0  # the reader of a pipe has seen enough
    except Exception as error:
        if (message := message_of(error)) is None:
            if failed == 1:
                raise
            print_exc()
            return failed
        print(f"wordward: {plain(flags(message), keep=chr(10))}", file=sys.stderr)
        return failed
    except KeyboardInterrupt:
        print("wordward: stopped", file=sys.stderr)
        return STOPPED


def _unknown(name: str, commands: Iterable[str]) -> str:
    meant = did_you_mean(name, commands) or "."
    return f"{plain(name)!r} is no command{meant} The commands are {', '.join(commands)}"


def _print_anywhere() -> None:
    """Let standard output take any text even where it is not UTF-8, as in a pipe on Windows, or is closed."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper) and not sys.stdout.encoding.lower().startswith("utf"):
        from wordward.support.console import print_plainer  # with rich, which `wordward --help` does without

        print_plainer(sys.stdout)
