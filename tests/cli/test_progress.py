"""Output that goes to a file: a line of progress at least every half minute, none where all is quiet or quick."""

import io
import re
import time
from collections.abc import Iterator

import pytest
from rich.console import Console

from wordward.support import console


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What is written to an output that is not a terminal, with a short half minute."""
    output = io.StringIO()
    monkeypatch.setattr(console, "console", Console(file=output, highlight=False))
    monkeypatch.setattr(console, "EVERY", 0.1)
    return output


def work(*, quiet: bool = False, steps: int = 20) -> None:
    with console.progress(quiet=quiet) as bars:
        bar = bars.add_task("epoch 1/3", total=1000, unit="steps")
        for _ in range(steps):
            time.sleep(0.05)
            bars.advance(bar)


def test_lines_say_how_far_it_is(shown: io.StringIO) -> None:
    work()
    *more, last = shown.getvalue().splitlines()
    assert re.fullmatch(r"epoch 1/3: \d+/1,000, \d+\.\d steps/s, [\d:]+ left", last)
    assert more  # while it goes on, several
    count = len(shown.getvalue())
    time.sleep(0.25)
    assert len(shown.getvalue()) == count  # none when it is over


def test_what_is_tracked_is_counted_as_it_comes(shown: io.StringIO) -> None:
    def results() -> Iterator[int]:
        for number in range(20):
            time.sleep(0.05)
            yield number

    with console.progress() as bars:
        assert list(bars.track(results(), 20, task_id=bars.add_task("attack", total=20, unit="texts"))) == [
            *range(20)
        ]
    counts = [int(count) for count in re.findall(r"attack: (\d+)/20", shown.getvalue())]
    assert counts[-1] > 1
    assert counts == sorted(counts)


def test_work_of_unknown_length_is_seen_to_go_on(shown: io.StringIO) -> None:
    with console.waiting("reading reviews.csv"):
        time.sleep(0.25)
    assert shown.getvalue().startswith("reading reviews.csv: 0 s so far\n")


def test_nothing_where_it_is_quiet_quick_or_not_the_first_process(
    shown: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    work(quiet=True)
    work(steps=1)
    monkeypatch.setenv("RANK", "1")
    work()
    assert not shown.getvalue()


def test_half_a_minute() -> None:
    assert console.EVERY <= 30


def test_a_name_in_brackets_is_no_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    output = io.StringIO()
    monkeypatch.setattr(console, "console", Console(file=output, force_terminal=True, width=80))
    with console.progress() as bars:
        bars.add_task("runs/[/red]", total=2)
        bars.refresh()
    assert "runs/[/red]" in output.getvalue()


@pytest.mark.parametrize(("seconds", "said"), [(0.5, "2.0 texts/s"), (1.0, "1.0 texts/s"), (40.0, "40.0 s/text")])
def test_slow_steps_are_told_by_their_seconds(seconds: float, said: str) -> None:
    clock = [0.0]
    bars = console.progress()
    bars.get_time = lambda: clock[0]
    bar = bars.add_task("attack", total=10, unit="texts")
    for _ in range(3):
        clock[0] += seconds
        bars.advance(bar)
    assert console._Speed().render(bars.tasks[0]).plain == said
