"""A model that wordward did not train: where its files are, and its words counted in labelled texts."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from wordward.config.texts import TextSettings
from wordward.datasets import Example
from wordward.runs.inputs import Text, as_example
from wordward.runs.label_cells import decided
from wordward.support.errors import RunError
from wordward.text.corpus import Corpus
from wordward.text.labels import label_numbers
from wordward.text.tokenizers import split_words
from wordward.text.vocabulary import Vocabulary


class CountedWords(NamedTuple):
    """Words in lower case, and how many texts of each label hold each, (words, classes)."""

    vocabulary: Vocabulary
    counts: Tensor


class ExternalSource:
    """What models have in common that wordward did not train: words are known only as counted in other texts."""

    folder: Path
    labels: tuple[str, ...]
    source: str | None
    counted: CountedWords | None
    among: tuple[str, ...]  # labels of which it is the no and yes of one; none: it gives each text one label
    trained_here: ClassVar[bool] = False

    def example(self, text: Text) -> Example:
        """A text with its label; that of one of several labels at once is its no or yes."""
        return decided(as_example(text), self.among, *self.labels) if self.among else as_example(text)

    @property
    def place(self) -> Path:
        """Where its files lie; of a function, the Python file that names it."""
        return self.folder if self.source is None else _place_of(self.source)

    @property
    def weights(self) -> list[Path]:
        return [self.place] if self.place.is_file() else sorted(self.place.glob("*.safetensors"))

    @property
    def learnt(self) -> Vocabulary:
        if self.counted is None:
            raise RunError(f"the words that {self.folder} was trained on are not known")
        return self.counted.vocabulary

    def class_counts(self) -> Tensor | None:
        return None if self.counted is None else self.counted.counts


def _place_of(source: str) -> Path:
    """The folder of a model, of one of the hub that in the cache; of `module:name` the file."""
    if Path(source).is_dir():
        return Path(source)
    module, named, _ = source.partition(":")
    if named:
        return Path(getattr(sys.modules.get(module.removesuffix(".py")), "__file__", None) or source)
    from huggingface_hub import try_to_load_from_cache

    cached = try_to_load_from_cache(source, "config.json")
    return Path(cached).parent if isinstance(cached, str) else Path(source)


def count_words(examples: Sequence[Example], labels: Sequence[str], source: str = "") -> CountedWords:
    """The words of labelled texts, counted by label."""
    words = [split_words(example.text, "characters", lowercase=True) for example in examples]
    vocabulary = Vocabulary.build(words, min_documents=1)
    rows = [np.array(vocabulary.encode(of_text, eos=False), dtype=np.int32) for of_text in words]
    numbers = label_numbers(examples, labels, TextSettings(), tagging=False, source=source)
    counts = Corpus(rows, numbers).class_counts(len(vocabulary), len(labels))
    return CountedWords(vocabulary, torch.from_numpy(counts))
