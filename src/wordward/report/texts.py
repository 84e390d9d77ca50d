"""The dev and test texts of a report, and how its runs do on them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from wordward.config.texts import DataSettings
from wordward.datasets import DataError, Example
from wordward.datasets.streams import STANDARD_INPUT, called
from wordward.runs.run import Run
from wordward.support.errors import SettingError
from wordward.text.corpora import PACK
from wordward.text.corpus import Corpus
from wordward.text.loading import labelled_examples, read_as, split_examples

SPLITS = ("dev", "test")


@dataclass(frozen=True)
class Tested:
    """Test texts as each run reads them."""

    source: str
    examples: list[Example]  # to attack and show: without those of unknown tags; none where only ids are known
    corpora: list[Corpus]


def texts_to_score(
    runs: Sequence[Run], test: str | None, columns: Mapping[str, Any] | None = None, *, quiet: bool = False
) -> Tested | None:
    """The texts of a file, or of a split of the corpus that all runs are on; None where none are asked for.

    `columns`: settings of data that the file is read with where the first run's do not fit. Unless `quiet`, says
    which tags of the texts are unknown to the runs: they count as wrong.
    """
    if test is None:
        return None
    data = runs[0].config.data
    if not data.corpus or test not in SPLITS:
        several = bool(runs[0].among)
        read = read_as(replace(data, limit=None, **(columns or {})), test, several_labels=several)
        examples = runs[0].examples(read)
        source = called(test)
        corpora = [run.encode_to_score(examples, source=source, quiet=quiet or run is not runs[0]) for run in runs]
        strange = set(corpora[0].unknown)
        return Tested(source, [each for each in examples if not strange.intersection(each.names)], corpora)
    if other := {run.config.data.corpus for run in runs} - {data.corpus}:
        raise SettingError(
            "test",
            f"{test} names a split of {data.corpus}, but a run is on {other.pop() or 'files'}: give a file of texts",
        )
    corpora = [run.split(test, quiet=quiet) for run in runs]
    return Tested(f"{data.corpus} {test}", _split(replace(data, limit=None), test), corpora)


def dev_texts(run: Run) -> tuple[list[Example], Corpus | None, str]:
    """The dev texts of a run, encoded as in training, and ""; or none and the reason why they cannot be read."""
    config = run.config
    if not run.trained_here:
        return [], None, ""
    try:
        if not config.data.corpus:
            if STANDARD_INPUT in (config.data.train, config.data.dev):
                raise DataError("they came from standard input, which is not kept")
            _, examples, _ = labelled_examples(config)
            source = config.data.dev or config.data.train
            return examples, run.encode(examples, labelled=True, source=source, cut=True), ""
        examples = _split(config.data, "dev")
        return examples, run.split("dev", limit=config.data.limit, cut=True, quiet=True), ""
    except (OSError, ValueError) as error:
        why = str(error) or type(error).__name__
        return ([], None, f"The dev texts of {run.folder.name} cannot be read again, so they are not scored: {why}.")


def _split(data: DataSettings, name: str) -> list[Example]:
    """The texts of a split; none of a packed file, which holds word numbers alone."""
    return [] if str(data.corpus).endswith(PACK) else split_examples(data, name)
