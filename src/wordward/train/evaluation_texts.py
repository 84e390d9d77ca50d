"""The test texts that are scored when training has ended, checked before it begins."""

from dataclasses import replace
from pathlib import Path

from wordward.config.settings import TrainConfig
from wordward.datasets.streams import called
from wordward.runs.label_cells import with_names
from wordward.support.console import waiting
from wordward.text.labels import label_numbers
from wordward.text.loading import read_as


def check_test_texts(config: TrainConfig, classes: tuple[str, ...], *, tagging: bool, quiet: bool) -> None:
    """Refuse test texts with a label that the model will not know; a tagger's tags may be others."""
    file = config.data.test
    if not file or tagging:
        return
    with waiting(f"reading {Path(called(file)).name}", quiet=quiet):
        examples = read_as(replace(config.data, limit=None), file, quiet=True)
        if config.transformer is not None:  # whose labels may be given as numbers
            examples = with_names(classes, examples)
        label_numbers(examples, classes, config.text, tagging=False, source=called(file))
