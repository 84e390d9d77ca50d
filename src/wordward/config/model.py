"""Which model is trained, and its sizes."""

from dataclasses import dataclass
from typing import Any, Literal

from wordward.support import rules
from wordward.support.given_settings import TracksGiven


@dataclass(frozen=True)
class ModelSettings(TracksGiven):
    """Which model, and its sizes; the sizes are by default the paper's for sentiment (SEC).

    Examples:
        >>> from wordward.config import ModelSettings
        >>> ModelSettings(dim=64, hidden=128).head
        30
    """

    kind: Literal["auto", "lstm", "convolution", "spelling"] = "auto"
    """lstm: the paper's model. convolution: a convolution over phrases of up to three words, beside a linear model on
    words; the best of our own on few texts; for labels only. spelling: the Bi-LSTM beside a linear model on the
    spelling of words and their neighbours; for tags only. auto: lstm if any size, `pretrained` or a corpus is given;
    else what suits texts and machine, with settings that suit where none are given: a small Transformer if one is
    installed, else convolution (for tags: spelling). The choice is shown."""
    dim: int = 256
    """Length of a word vector."""
    hidden: int = 1024
    """LSTM state size, in each direction; filters of each width of a convolution."""
    head: int = 30
    """Hidden units of the LSTM's feed-forward net."""
    word_dropout: float = 0.5
    """Dropout on word vectors."""
    head_dropout: float = 0.5
    """Dropout inside the feed-forward net."""
    rescaled: bool = False
    """Restore the scale of a language model's vectors, kept at unit deviation, after dropout instead of folding it
    into the LSTM's weights: training is slower, but more stable from a large language model."""

    pairs: bool = False
    """Let the linear model of a convolution read pairs of neighbouring words, too."""

    def __post_init__(self) -> None:
        """Refuse what cannot be used."""
        rules.check_choices(self)
        rules.check(self, rules.COUNT, "dim", "hidden", "head")
        rules.check(self, rules.DROPOUT, "word_dropout", "head_dropout")


PRESETS: dict[str, dict[str, Any]] = {
    "sec": {"kind": "lstm", "dim": 256, "hidden": 1024, "head": 30},
    "cac": {"kind": "lstm", "dim": 256, "hidden": 1024, "head": 128},
    "ged": {"kind": "lstm", "dim": 300, "hidden": 200, "head": 50},
    "small": {"kind": "lstm", "dim": 64, "hidden": 128, "head": 30},
}
