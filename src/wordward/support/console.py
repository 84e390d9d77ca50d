"""What a command shows on the terminal: messages and progress bars (of the first process only), plainer symbols."""

import codecs
import io
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from wordward.support.wording import plain, shown


class Output(Console):
    """Standard output; where the reader of a pipe has gone, rich itself would end the process with status 1."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, **options)

    def on_broken_pipe(self) -> None:
        """Tell the command."""
        raise BrokenPipeError


console = Console(stderr=True, highlight=False)
EVERY = 30.0  # seconds between two lines of progress, where there are no bars
PERIOD = 180.0  # seconds that count as recent: two steps at least must be over in it for a pace to be told
PLAINER = dict(zip("→…“”▏▎▍▌▋▊▉█", '>.""---#####', strict=True))


def _speed(task: Task) -> float | None:
    """Recent steps per second, capped by the overall average, since results that come in bursts seem faster."""
    late = task.finished_speed or task.speed
    return min(late, task.completed / task.elapsed) if late and task.elapsed else None


class _Speed(ProgressColumn):
    """Steps (or another unit) per second, or seconds per step where it takes more than one."""

    def render(self, task: Task) -> Text:
        speed, unit = _speed(task), task.fields.get("unit", "steps")
        if not speed:
            return Text()
        pace = f"{speed:.1f} {unit}/s" if speed >= 1 else f"{1 / speed:.1f} s/{unit.removesuffix('s')}"
        return Text(pace, style="dim")


class _Left(ProgressColumn):
    """The time left at that speed."""

    max_refresh = 0.5  # more often, its digits would jump about

    def render(self, task: Task) -> Text:
        if task.total is None:
            return Text()
        speed = _speed(task)
        if not speed:
            return Text("--:--", style="cyan")
        minutes, seconds = divmod(ceil(max(0.0, task.total - task.completed) / speed), 60)
        hours, minutes = divmod(minutes, 60)
        return Text(f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes:02}:{seconds:02}", "cyan")


class _Lines(Progress):
    """Progress bars, or a plain line now and then where the output is not a terminal."""

    def __init__(self, *columns: ProgressColumn, plain: bool, **options: Any) -> None:
        super().__init__(*columns, **options)
        self._plain, self._over = plain, threading.Event()
        self._teller = threading.Thread(target=self._tell, daemon=True)

    def start(self) -> None:
        """Start showing."""
        super().start()
        if self._plain:
            self._teller.start()

    def stop(self) -> None:
        """Stop showing."""
        self._over.set()
        if self._teller.is_alive():
            self._teller.join()
        super().stop()

    def _tell(self) -> None:
        """Print where each task stands, until all is over."""
        while not self._over.wait(EVERY):
            for task in self.tasks:
                if not task.finished:
                    console.print(_line(task), markup=False, soft_wrap=True)


def _line(task: Task) -> str:
    """Where a task stands, in one line: `epoch 1/30: 40/250, 3.1 steps/s, 01:08 left`."""
    speed, left = _Speed().render(task).plain, _Left().render(task).plain if _speed(task) else ""
    if task.total is None and not task.completed:  # of unknown length: that it goes on is all there is to say
        return f"{task.description}: {task.elapsed or 0:.0f} s so far"
    done = f"{task.completed:,.0f}" + ("" if task.total is None else f"/{task.total:,.0f}")
    return ", ".join(part for part in (f"{task.description}: {done}", speed, left and f"{left} left") if part)


def progress(*, quiet: bool = False) -> Progress:
    """Progress bars with speed and time left; where the output is not a terminal, a line every half minute."""
    shown = not quiet and _first()
    bars = shown and console.is_terminal
    return _Lines(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        _Speed(),
        _Left(),
        plain=shown and not bars,
        speed_estimate_period=PERIOD,
        console=console,
        auto_refresh=bars,  # else `track` counts in a thread, which ends at once where there are no bars
        disable=not bars,
        transient=True,
        redirect_stdout=False,  # else output printed meanwhile would go to the terminal, even if redirected to a file
    )


@contextmanager
def waiting(what: str, *, quiet: bool = False) -> Iterator[None]:
    """A moving bar for work of unknown length."""
    with progress(quiet=quiet) as bars:
        bars.add_task(what, total=None)
        yield


def say(text: str, *, quiet: bool = False) -> None:
    """Print a message on standard error."""
    if not quiet and _first():
        console.print(plain(shown(text), keep="\n"), markup=False, soft_wrap=True)


def _first() -> bool:
    """Whether this is the first of the processes that a launcher such as torchrun started."""
    return os.environ.get("RANK", "0") == "0"


def print_plainer(output: io.TextIOWrapper) -> None:
    """Let an output that is not UTF-8 take any text."""
    codecs.register_error("wordward", _plainer)
    output.reconfigure(errors="wordward")


def _plainer(error: UnicodeError) -> tuple[str, int]:
    """Replacements for characters that an output cannot hold: symbols of the same width, else a question mark."""
    assert isinstance(error, UnicodeEncodeError)
    return "".join(PLAINER.get(char, "?") for char in error.object[error.start : error.end]), error.end
