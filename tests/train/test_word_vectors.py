"""Vectors from the texts themselves."""

import numpy as np
import torch
from reviews import BLAME, PRAISE, reviews

from wordward.config.settings import TextSettings
from wordward.text.corpus import Corpus, encode
from wordward.text.tokens import vocabulary_of
from wordward.train.word_vectors import text_vectors


def test_words_in_the_same_surroundings_are_near_each_other_and_the_same_each_time() -> None:
    texts, settings = reviews(400), TextSettings()
    words = vocabulary_of(texts, settings)
    corpus = encode(texts, words, settings, ("bad", "good"), tagging=False, source="")
    torch.manual_seed(1)
    vectors = text_vectors([corpus], len(words), 16)
    assert torch.equal(vectors, text_vectors([corpus], len(words), 16))
    near = torch.nn.functional.normalize(vectors, dim=1)
    praise, blame = ([words[word] for word in group] for group in (PRAISE, BLAME))
    alike = (near[praise] @ near[praise].T).mean()
    assert alike > (near[praise] @ near[blame].T).mean() + 0.1


def test_fewer_words_than_numbers() -> None:
    vectors = text_vectors([Corpus([np.array([3, 4, 5, 3])])], 6, 16)
    assert vectors.shape == (6, 16)
    assert vectors.isfinite().all()
