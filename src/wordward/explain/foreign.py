"""Models of texts that are not English: telling them, and what the rules for English words must not do there."""

from contextlib import suppress
from copy import copy

import torch

from wordward.explain.english import fold, looks_english
from wordward.explain.word_kinds import Fitting
from wordward.runs.run import Run
from wordward.support.errors import RunError
from wordward.text.vocabulary import SPECIALS, Vocabulary

ENOUGH = 500  # words by which a language is told
COMMONEST, SHORT = 100, 4  # words that carry grammar are among so many, and have so many letters at most


def words_of(run: Run) -> Vocabulary | None:
    """The words of a run's training texts where these are not English; None where they are, or nothing tells."""
    with suppress(RunError):  # training texts that are not known
        words = run.learnt
        first = len(SPECIALS)
        enough = run.trained_here and words.plain - first >= ENOUGH
        if enough and not looks_english(words.words[first : words.plain], words.counts[first : words.plain].tolist()):
            return words
    return None


def without_grammar(fits: Fitting, run: Run) -> Fitting:
    """As `fits`, but where texts are not English their commonest short words fit none: most carry grammar."""
    words = words_of(run)
    if words is None:
        return fits
    first = len(SPECIALS)
    order = sorted(range(first, words.plain), key=lambda at: -words.counts[at])[:COMMONEST]
    grammar = {fold(words.words[at]) for at in order if len(words.words[at]) <= SHORT}
    result = copy(fits)
    result.kinds = fits.kinds.clone()
    result.kinds[torch.tensor([fold(word) in grammar for word in run.vocabulary.words], device=fits.kinds.device)] = 0
    return result


def by_rules_for_english(run: Run) -> str:
    """That rules for English words tell which words fit in texts that are not English, in words; empty where not."""
    words = words_of(run)
    if words is None or 2 * sum(len(word) > 1 for word in words.words) < len(words):  # single characters fit nothing
        return ""
    return (
        "by their commonest words the texts of this model are not English: which words fit is told by rules and "
        "vectors for English, and may be wrong here (`words='any'` does without)"
    )
