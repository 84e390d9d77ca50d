"""In which labelled texts words stand, counted for a model whose training texts are not known."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from wordward.config.settings import TextSettings
from wordward.datasets import Example
from wordward.text.corpus import Corpus, label_numbers
from wordward.text.vocabulary import Vocabulary, split_words


class Counted(NamedTuple):
    """Words in lower case, and how many texts of each label hold each, (words, classes)."""

    vocabulary: Vocabulary
    counts: Tensor


def count_words(examples: Sequence[Example], labels: Sequence[str], source: str = "") -> Counted:
    """The words of labelled texts, counted by label."""
    words = [split_words(example.text, "characters", lowercase=True) for example in examples]
    vocabulary = Vocabulary.build(words, min_documents=1)
    rows = [np.array(vocabulary.encode(of_text, eos=False), dtype=np.int32) for of_text in words]
    numbers = label_numbers(examples, labels, TextSettings(), tagging=False, source=source)
    return Counted(vocabulary, torch.from_numpy(Corpus(rows, numbers).class_counts(len(vocabulary), len(labels))))
