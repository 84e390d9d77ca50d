"""What is said before a network of ours is trained: what on what, and that a text is very long."""

from wordward.config.settings import TrainConfig
from wordward.support.console import say
from wordward.text.vocabulary import UNK
from wordward.train.data import Data
from wordward.train.trainer import Trainer

LONG = 5_000  # words of a text, where reviews have hundreds


def description(trainer: Trainer) -> str:
    """What is about to be trained on what, in one line."""
    data = trainer.data
    several = f" in {trainer.team.size} processes" if trainer.team.size > 1 else ""
    others = data.vocabulary.plain - data.met  # forms are no words
    more = f" and {others:,} more by their vectors" if others > 0 else ""
    return (
        f"{trainer.config.method} on {trainer.device}{several}: {data.describe()}, "
        f"{data.met:,} words{more} ({_unknown(trainer.config, data)})"
    )


def _unknown(config: TrainConfig, data: Data) -> str:
    """What becomes of other words, or their share of the dev texts: training texts have none where all are known."""
    if config.text.unknown == "drop" and not data.tagging:
        return "others are left out"
    if config.model.kind == "spelling":
        return "others are read by their form"
    if data.others and data.vocabulary.plain == data.met:
        return "others are read as what they begin with"
    counts = data.dev.word_counts(len(data.vocabulary))
    return f"{counts[UNK] / counts.sum():.1%} of the words of the dev texts unknown"


def warn_of_length(data: Data) -> None:
    """A single text may use up all memory, and the system then kills the run without a message."""
    words = max(int(corpus.lengths.max()) for corpus in data.corpora.values()) - (not data.tagging)  # but for <eos>
    if words > LONG:
        say(
            f"the longest text{data.longest} has {words:,} words, and takes time and memory for all of them in each "
            "epoch: shorten it or leave it out, or give `max_length`, which cuts all texts; where many are as long, "
            "a smaller `batch_size` takes fewer at once"
        )
