"""Which words the model of a run knows, and as what it reads others."""

from collections.abc import Iterable
from pathlib import Path

from wordward.config.settings import PretrainConfig, TrainConfig
from wordward.datasets import Example
from wordward.runs import run_folder
from wordward.runs.input_table import plain_words
from wordward.text.spelling import beginnings_of
from wordward.text.tokens import vocabulary_of
from wordward.text.vocabulary import Vocabulary


def vocabulary_for(config: TrainConfig, texts: Iterable[Example]) -> tuple[Vocabulary, int]:
    """What the model knows; and how many ids there are before those of words and forms that none of the texts has."""
    vocabulary = read_vocabulary(config) if config.pretrained else vocabulary_of(texts, config.text)
    if config.model.kind == "spelling":
        vocabulary = vocabulary.with_forms()
    own = len(vocabulary)
    if _reads_beginnings(config):
        vocabulary = vocabulary.with_forms(beginnings_of)
    if _knows_others(config):
        vocabulary = vocabulary.with_others(plain_words(Path(str(config.vectors))))
    return vocabulary, own


def _reads_beginnings(config: TrainConfig) -> bool:
    """Whether a convolution reads words that no text has as what they begin with: it has no vectors of them."""
    return _knows_every_word(config) and not config.vectors and config.text.unknown == "unk"


def _knows_others(config: TrainConfig) -> bool:
    """Whether a convolution's word vectors tell of words that no text has."""
    return _knows_every_word(config) and bool(config.vectors) and Path(str(config.vectors)).is_dir()


def _knows_every_word(config: TrainConfig) -> bool:
    """Whether a convolution knows all words of the texts that it learns from."""
    every = config.text.min_documents == 1 and config.text.max_vocabulary is None
    return every and config.model.kind == "convolution"


def read_vocabulary(config: TrainConfig) -> Vocabulary:
    """The vocabulary of the language model, which must split texts into words in the same way."""
    theirs = run_folder.load_config(str(config.pretrained), PretrainConfig).text
    for name in ("tokenizer", "lowercase"):
        if getattr(theirs, name) != getattr(config.text, name):
            raise run_folder.RunError(
                f"{config.pretrained} reads texts with {name} = {getattr(theirs, name)}, but this run with "
                f"{getattr(config.text, name)}: set the same `{name}`"
            )
    return run_folder.load_vocabulary(str(config.pretrained))
