"""Messages of self-training, whose second half alone uses unlabelled texts, where time is too short for it."""

from typing import Literal

from wordward.config.settings import TrainConfig
from wordward.perturbation.recipes import parse_methods
from wordward.support.console import say
from wordward.train.data import Data

Ended = Literal["stopped", "minutes", "patience"]  # "stopped": by Ctrl-C
AGAIN = {"stopped": "", "minutes": " with more `minutes`", "patience": " with a larger `patience`"}


def say_unreached(config: TrainConfig, data: Data, *, ended: Ended, quiet: bool) -> None:
    """Say that training ended before its second half, and what to do."""
    say(
        f"training ended before its second half, the only one with {_used(config, data)}: this model was trained "
        f"without that; `resume=True`{AGAIN[ended]} goes on to it",
        quiet=quiet,
    )


def say_pace(config: TrainConfig, data: Data, *, seconds: float, quiet: bool) -> None:
    """After the first epoch, which took so many `seconds`: say if the time given will end before the second half."""
    minutes, epochs = config.training.minutes, config.training.epochs
    if minutes is None or epochs is None or 60 * minutes >= seconds * epochs / 2:
        return
    say(
        f"at this pace {minutes:g} minutes end after about {60 * minutes / seconds:.1f} of {epochs} epochs, before "
        f"the second half, the only one with {_used(config, data)}: give more `minutes` or fewer `epochs`",
        quiet=quiet,
    )


def _used(config: TrainConfig, data: Data) -> str:
    """What the second half has that the first has not."""
    methods = parse_methods(config.method, config.perturbation)
    names = "+".join(method.name for method in methods if not method.recipe.needs_labels)
    return f"{names} and texts without labels" if data.unlabelled is not None else names
