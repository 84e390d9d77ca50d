"""The time of training: how long it has taken, when it is over, and when a checkpoint is worth its time."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from wordward.support.console import say
from wordward.support.distributed import ALONE, Team

RARELY = 10  # times as long as writing a checkpoint takes, at least, until the next one is written


class Clock:
    """Counts the `seconds` of training, those before a run was resumed included."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet, self.seconds = quiet, 0.0
        self._started: float | None = None
        self._next_checkpoint = 0.0  # when one is due, on the clock of time.monotonic

    def start(self) -> None:
        """Count time as time of training, until `stop`."""
        self._started = time.monotonic()

    def stop(self) -> None:
        """Stop counting time."""
        if self._started is not None:
            self.seconds += time.monotonic() - self._started
        self._started = None

    @property
    def checkpoint_due(self) -> bool:
        """Whether so much has been done since the last checkpoint that it is worth the time of writing one."""
        return time.monotonic() >= self._next_checkpoint

    @contextmanager
    def writing_checkpoint(self) -> Iterator[None]:
        """Measure how long the block takes to write a checkpoint, which decides when the next is due."""
        began = time.monotonic()
        yield
        now = time.monotonic()
        self._next_checkpoint = now + RARELY * (now - began)

    def deadline(self, minutes: float | None) -> float | None:
        """When `minutes` of training will be over, including those before it was resumed; None: never."""
        return None if minutes is None else time.monotonic() + 60 * minutes - self.seconds

    def say_out_of_time(self, minutes: float | None, *, trained: bool) -> None:
        """Say that the minutes are over; `trained`: not before a resumed run has trained any further."""
        if trained:
            say(f"stopping: {minutes:g} minute{' is' if minutes == 1 else 's are'} over", quiet=self.quiet)
            return
        say(
            f"nothing was trained: `minutes` are those of the whole run, which has trained for "
            f"{self.seconds / 60:.2g} of {minutes:g}; give more",
            quiet=self.quiet,
        )

    def out_of_time(self, deadline: float | None, team: Team = ALONE) -> bool:
        """Whether the deadline has passed."""
        return deadline is not None and bool(team.agree(time.monotonic() >= deadline))
