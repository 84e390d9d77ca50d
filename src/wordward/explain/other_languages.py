"""Texts that are not English: telling them, and what replaces the rules for English words there."""

from contextlib import suppress
from copy import copy

import torch
from torch import Tensor

from wordward.config import TrainConfig
from wordward.explain.english import fold, looks_english
from wordward.explain.word_kinds import Fitting
from wordward.runs.checkpoint import load_contexts
from wordward.runs.input_table import installed_model
from wordward.runs.run import Run
from wordward.support.errors import RunError
from wordward.text.vocabulary import SPECIALS, Vocabulary

ENOUGH = 500  # words by which a language is told
COMMONEST, SHORT = 100, 4  # words that carry grammar are among so many, and have so many letters at most


def words_of(run: Run) -> Vocabulary | None:
    """The words of a run's training texts where these are not English; None where they are, or nothing tells."""
    words = _enough(run)
    return None if words is None or are_english(words) else words


def are_english(words: Vocabulary) -> bool:
    """Whether the texts of a vocabulary are English, by its commonest words."""
    plain = slice(len(SPECIALS), words.plain)
    return looks_english(words.words[plain], words.counts[plain].tolist())


def reads_contexts(config: TrainConfig, words: Vocabulary) -> bool:
    """Whether explanations may ask where the words of a run stand: not of English ones that started from vectors."""
    return not ((config.vectors or config.pretrained) and are_english(words))


def contexts_of(run: Run) -> Tensor | None:
    """Where a run's words stand in its training texts, (ids, dim), if it has kept that and nothing better is known.

    What is better are the rules for English words, with word vectors: those of an installed package, or its own.
    """
    words = _enough(run)
    if words is None or words is not run.vocabulary or not reads_contexts(run.config, words):  # pieces; nobody asks
        return None
    return None if installed_model() and are_english(words) else load_contexts(run.folder, words)


def _enough(run: Run) -> Vocabulary | None:
    """The words of a run's training texts, if these are known and enough to tell."""
    with suppress(RunError):  # training texts that are not known
        words = run.learnt
        return words if run.trained_here and words.plain - len(SPECIALS) >= ENOUGH else None
    return None


def short_words(run: Run, words: Vocabulary) -> Tensor:
    """Which ids are the commonest short words, (ids,) bool: most carry grammar."""
    first = len(SPECIALS)
    order = sorted(range(first, words.plain), key=lambda at: -words.counts[at])[:COMMONEST]
    grammar = {fold(words.words[at]) for at in order if len(words.words[at]) <= SHORT}
    return torch.tensor([fold(word) in grammar for word in run.vocabulary.words])


def without_grammar(fits: Fitting, run: Run) -> Fitting:
    """As `fits`, but where texts are not English their commonest short words fit none."""
    words = words_of(run)
    if words is None:
        return fits
    result = copy(fits)
    result.kinds = fits.kinds.clone()
    result.kinds[short_words(run, words).to(fits.kinds.device)] = 0
    return result


def by_rules_for_english(run: Run) -> str:
    """That rules for English words tell which words fit in texts that are not English, in words; empty where not."""
    words = words_of(run)
    if words is None or 2 * sum(len(word) > 1 for word in words.words) < len(words):  # single characters fit nothing
        return ""
    if contexts_of(run) is not None:
        return ""
    return (
        "by their commonest words the texts of this model are not English: which words fit is told by rules and "
        "vectors for English, and may be wrong here (`words='any'` does without)"
    )
