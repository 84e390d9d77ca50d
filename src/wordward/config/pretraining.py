"""Every setting of `wordward pretrain`."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

import tyro

from wordward.config.fields import OPEN, File, FileFormat, OpenInt, Tracker, given, shown
from wordward.config.model import ModelSettings
from wordward.config.texts import TextSettings
from wordward.support import rules
from wordward.support.given_settings import TracksGiven

READING = {"epochs": 50}  # where none is given


@dataclass(frozen=True)
class PretrainConfig(TracksGiven):
    """Everything that decides what `wordward pretrain` computes.

    Examples:
        >>> from wordward.config import PretrainConfig
        >>> PretrainConfig(("reviews.txt",), minutes=10).streams
        32
    """

    texts: Annotated[tuple[str, ...], tyro.conf.arg(metavar="[FILE ...]", help_behavior_hint="")] = ()
    """Files of text, labelled or not; labels are not read."""
    corpus: Annotated[str | None, tyro.conf.arg(metavar="NAME|FILE")] = None
    """Instead of files, or in addition: training and unlabelled texts of a corpus, as in `wordward train`."""
    limit: int | None = None
    """Use at most this many texts of each kind, to try things out."""
    vectors: File = None
    """Word vectors to start from, in word2vec or GloVe text format, also .gz and .xz."""
    text_column: str = "text"
    """Name of the column that holds the text."""
    format: FileFormat = "auto"
    """File format; by default recognised by the file name."""
    skip_empty: bool = False
    """Leave out texts that are empty, which are refused otherwise."""
    epochs: Annotated[OpenInt, shown(READING["epochs"])] = OPEN
    """Maximum number of passes over the texts."""
    minutes: float | None = None
    """Stop after this many minutes, in the middle of an epoch if need be."""
    shuffle: bool = True
    """Read the texts in a new random order each epoch; otherwise always as they are given, so that texts that belong
    together, such as reviews of one film, follow each other."""
    schedule: Literal["constant", "linear"] = "constant"
    """Learning rate: constant, or falling linearly to zero over all epochs (better in short runs)."""
    streams: int = 32
    """Streams of text read in parallel: the batch size."""
    window: int = 100
    """Words between two updates (truncated back-propagation through time)."""
    learning_rate: float = 0.001
    """Adam's, at the first step."""
    clip: float = 5.0
    """Clip gradients to this norm."""
    held_out_share: float = 0.02
    """Share of the texts held out to choose the best epoch."""
    precision: Literal["auto", "fp32", "fp16", "bf16"] = "auto"
    """Precision to compute in; auto: fp16 (the LSTM is up to four times as fast) on a CUDA GPU, fp32 elsewhere."""
    report_to: Tracker = None
    """Also tell this tracker the settings and the metrics of each epoch; its package must be installed. TensorBoard's
    files are in the run folder."""
    device: str = "auto"
    """cpu, cuda or mps; auto takes the fastest available."""
    seed: int = 0
    """Random seed."""
    text: TextSettings = field(default_factory=TextSettings)
    model: ModelSettings = field(default_factory=ModelSettings)

    def __post_init__(self) -> None:
        """Refuse what cannot be used."""
        rules.check_choices(self)
        rules.check(self, rules.COUNT, *given(self, "epochs"), "streams", "window")
        rules.check(self, rules.COUNT_OR_NONE, "limit")
        rules.check(self, rules.POSITIVE, "learning_rate", "clip")
        rules.check(self, rules.POSITIVE_OR_NONE, "minutes")
        rules.check(self, rules.SHARE, "held_out_share")
        rules.check(self, rules.SEED, "seed")
