"""What commands work on: a model; the texts of a split of its corpus, or of a file; all, or some of them."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordward.cli.errors import UsageError
from wordward.support.files import check_file
from wordward.support.rules import COUNT, check

if TYPE_CHECKING:
    from wordward.config.settings import TrainConfig
    from wordward.datasets import Example
    from wordward.runs.run import Run

SPLITS = ("train", "dev", "test")
READ_AGAIN = 100_000_000  # bytes of a file of training texts, at most, to look for texts that were learnt


def opened(command: Any, model: str) -> "Run":
    """A model as a command's flags say: `device`, `positive`, and the columns of its files."""
    from wordward.runs.opening import open_model

    return open_model(
        model, device=command.device, positive=command.positive, pair_column=command.columns.pair_column
    )


def is_split(run: "Run", data: str) -> bool:
    """Whether this names a split of the known corpus that a run is on."""
    return bool(run.config.data.corpus) and data in SPLITS


def texts_of(run: "Run", data: str, *, quiet: bool = False, **reading: Any) -> "list[Example]":
    """The texts of a split, or of a file, as `texts_in` reads it."""
    if not is_split(run, data):
        return texts_in(run, data, quiet=quiet, **reading)
    if reading.get("group_column") is not None:
        raise UsageError(f"--group-column names a column of a file, but {data} is a split of a known corpus")
    from wordward.support.console import waiting
    from wordward.text.loading import split_examples

    with waiting(f"reading {data}", quiet=quiet):
        return split_examples(replace(run.config.data, limit=None), data)


def texts_in(
    run: "Run",
    file: str,
    *,
    labelled: bool = True,
    group_column: str | None = None,
    quiet: bool = False,
    **columns: Any,
) -> "list[Example]":
    """The texts of a file, which is read as those of the run were but for the `columns` that are given."""
    from wordward.datasets.streams import called
    from wordward.runs.label_cells import numbers_read
    from wordward.support.console import say, waiting
    from wordward.text.loading import read_as

    chosen = {name: value for name, value in columns.items() if value is not None and value is not False}
    with waiting(f"reading {Path(called(file)).name}", quiet=quiet):
        data = replace(run.config.data, limit=None, **chosen)
        several = run.several_labels or bool(run.among)
        examples = read_as(
            data, file, labelled=labelled, group_column=group_column, several_labels=several, quiet=quiet
        )
    with naming(called(file)):
        known = run.examples(examples)
    if not (several or run.trained_here) and (read := numbers_read(run.labels, examples)):
        say(f"labels are numbers, read as those of {run.folder}: {read}", quiet=quiet)
    return known


def learnt_too(config: "TrainConfig", examples: "Sequence[Example]") -> int:
    """How many texts are also training texts; 0 where those cannot be read again."""
    from wordward.datasets.example import drop_shared
    from wordward.text.loading import read_as

    data = config.data
    if data.corpus or data.train == "-":
        return 0
    try:
        return len(examples) - len(drop_shared(examples, read_as(data, data.train)))
    except (OSError, ValueError):  # they are gone, or are being changed
        return 0


def say_learnt(run: "Run", examples: "Sequence[Example]") -> None:
    """Say how many texts are also training texts of a run; nothing where reading these again would take long."""
    from wordward.support.console import say

    train = run.config.data.train
    if not run.trained_here or not is_file(train) or Path(train).stat().st_size > READ_AGAIN:
        return
    if shared := learnt_too(run.config, examples):
        what = f"{shared:,} of {len(examples):,} texts {'is' if shared == 1 else 'are'} also in {train}"
        say(f"{what}, which the model was trained with: such texts do not tell how it does on others")


def judged(command: Any, run: "Run", whole: "Sequence[Example]") -> "Run":
    """The run with what its edits are judged by: the texts of `sense_from`, else those that are attacked."""
    from wordward.attack.sense_texts import check_sense_from, with_sense_texts

    source = command.sense_from
    if source is None:
        return with_sense_texts(run, run.examples(whole))
    check_sense_from(run)
    with naming(source):
        return with_sense_texts(run, texts_of(run, source, quiet=command.quiet, **vars(command.columns)))


def is_file(name: str) -> bool:
    """Whether a text is also the name of a file, which may be meant."""
    try:
        return Path(name).is_file()
    except (OSError, ValueError):  # too long, or with a character that no name holds
        return False


def say_cut(run: "Run", examples: "Sequence[Example]", *, quiet: bool) -> None:
    """Say how many texts are not read, and so not edited, to their ends."""
    from wordward.support.console import say

    most = run.text.max_length
    if quiet or most is None:
        return
    if cut := sum(bool(reading.unread) for part in run.readings(examples) for reading in part):
        unit = "words" if run.config.transformer is None else "word pieces"
        read = f"the {most:,} {unit} that are read of each; edits are within them"
        say(f"{cut:,} of {len(examples):,} texts cut to {read}")


@contextmanager
def naming(source: str | None) -> Iterator[None]:
    """Add the name of the file to an error that names only its line."""
    from wordward.datasets import DataError

    try:
        yield
    except DataError as error:
        if source is None or error.path or not error.line:
            raise
        raise DataError(error.message, source, error.line) from None


def check_texts(texts: Sequence[str], file: str | None) -> None:
    """Refuse texts as arguments together with a file of texts."""
    if file is not None and texts:
        count = len(texts)
        raise UsageError(f"expected texts as arguments or in a file; got {count} and --file {file}: leave one out")


def check_files(command: object, *names: str) -> None:
    """Refuse files of these settings that cannot be written, before time is spent on their content, or are one."""
    settings: dict[str, str] = {}  # by the file that they name
    for name in names:
        if (path := getattr(command, name)) not in (None, "-"):
            check_file(path, name)
            other = settings.setdefault(str(Path(path).resolve()), name)
            if other != name and (Path(path).is_file() or not Path(path).exists()):
                raise UsageError(f"--{other} and --{name} are both {path}, which holds one of them: name two files")


@contextmanager
def holding(command: object, *names: str) -> Iterator[None]:
    """Hold the files of these settings until they are written; refuse those that another command holds."""
    from wordward.runs.results_file import held

    files = {path: f"--{name}" for name in names if (path := getattr(command, name)) not in (None, "-")}
    with ExitStack() as stack:
        for path, flag in files.items():
            stack.enter_context(held(path, flag))
        yield


def check_counts(command: object, *names: str) -> None:
    """Refuse counts that are given but not 1 or more."""
    check(command, COUNT, *(name for name in names if getattr(command, name) is not None))


def warn(*runs: "Run") -> None:
    """Say which of the runs are no better than chance, before anything is shown of them."""
    from wordward.runs.chance import at_chance
    from wordward.support.console import say

    for line in filter(None, map(at_chance, runs)):
        say(line)
