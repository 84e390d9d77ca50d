"""Words in place of others: what a perturbation would put where, and the text with it put in."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from wordward.explain.explanation import Place
from wordward.perturbation.outcome import Outcome
from wordward.perturbation.recipes import RECIPES
from wordward.support.errors import SettingError
from wordward.text.vocabulary import EOS, Vocabulary

WORD_METHODS = tuple(name for name, recipe in RECIPES.items() if recipe.space == "words")
Names = Vocabulary | Sequence[str] | Mapping[int, str] | Callable[[int], str]  # the word of each id


class Swap(NamedTuple):
    """One token and the word it is pulled toward most.

    Attributes:
        position: Its place in the text.
        word: The token.
        toward: The word; None where no candidate pulls: every strength is negative or zero.
        strength: Alpha of that word.
        relative: Strength over the sentence's largest, 0 to 1.

    Examples:
        >>> from wordward.explain import Swap
        >>> Swap(3, "warm", "dull", strength=0.5, relative=1.0).toward
        'dull'
    """

    position: int
    word: str
    toward: str | None
    strength: float
    relative: float


def swaps(outcome: Outcome, vocabulary: Names, *, row: int = 0) -> list[Swap]:
    """For each word of a text, the word with the largest strength (argmax of alpha).

    Args:
        outcome: What a method that points toward words gave.
        vocabulary: Ours (whose <eos> is not a word), or the words of your own ids: a list, a dict or a function.
        row: Which text of the batch.

    Returns:
        A `Swap` for each word.

    Examples:
        >>> import torch, wordward
        >>> model = torch.nn.Sequential(torch.nn.Embedding(9, 4), torch.nn.Flatten(), torch.nn.Linear(12, 2))
        >>> ids, adversary = torch.tensor([[1, 2, 3]]), wordward.iadvt(model, k=3)
        >>> out = adversary(lambda: model(ids), torch.tensor([0]))
        >>> [swap.word for swap in wordward.explain.swaps(out, "pad a warm film the dull script was cold".split())]
        ['a', 'warm', 'film']
    """
    if outcome.candidates is None:
        raise SettingError(
            "outcome", f"this outcome does not point toward words: use one of {', '.join(WORD_METHODS)}"
        )
    strengths, best = outcome.strengths[row].max(-1)  # (time,)
    real = outcome.mask[row]
    if isinstance(vocabulary, Vocabulary):
        real = real & (outcome.ids[row] != EOS)
    words = real.nonzero().flatten().tolist()
    largest = max((float(strengths[at]) for at in words), default=0.0)
    strongest = []
    for at in words:
        strength, pulled = float(strengths[at]), bool(strengths[at] > 0)
        toward = _name(vocabulary, int(outcome.candidates[row, at, best[at]])) if pulled else None
        relative = strength / largest if pulled else 0.0
        strongest.append(Swap(at, _name(vocabulary, int(outcome.ids[row, at])), toward, strength, relative))
    return strongest


def _name(vocabulary: Names, number: int) -> str:
    """The word of an id."""
    if isinstance(vocabulary, Vocabulary):
        return vocabulary.word(number)
    if callable(vocabulary):
        return vocabulary(number)
    try:
        return vocabulary[number]
    except LookupError:
        raise SettingError(
            "vocabulary",
            f"expected a word for each id; there is none for id {number} among {len(vocabulary)} words: "
            "give a list, a dict from id to word, or a function of the id",
        ) from None


def apply(text: str, changes: Sequence[tuple[Place, str]], *, lowercase: bool = False) -> str:
    """The text that was explained with the new words put in, and everything else unchanged.

    Args:
        text: The text.
        changes: Places of its explanation, each with the word to put there.
        lowercase: The words are a lower-casing run's, so each is capitalised like the one that it replaces.

    Returns:
        The new text.

    Examples:
        >>> (found,) = run.explain(["the film was warm and funny"])
        >>> wordward.explain.apply(found.text, [(found.places[3], "dull")])
        'the film was dull and funny'
    """
    changes = sorted(changes, key=lambda change: change[0].start, reverse=True)
    before = len(text)
    for place, word in changes:  # from the last to the first, so that earlier places stay where they are
        if text[place.start : place.end] != place.word or place.end > before:
            raise SettingError(
                "text",
                f"expected {place.word!r} at characters {place.start}-{place.end}; found "
                f"{text[place.start : place.end]!r}: give the text that was explained, and each place once",
            )
        new = written(text, place, word, lowercase=lowercase)
        text, before = text[: place.start] + new + text[place.end :], place.start
    return text


def written(text: str, place: Place, word: str, *, lowercase: bool) -> str:
    """A word as it is written at a place of a text."""
    begins = place.word[:1].isupper() and _begins(text, place.start)  # which matters for capitals alone
    return cased_like(word, place.word, begins=begins) if lowercase else word


def cased_like(word: str, like: str, *, begins: bool = True) -> str:
    """A lower-case word capitalised like another, if a lower-casing run still reads it as the same word.

    I, which is always a capital, says nothing of the word that replaces it, unless it `begins` a sentence.
    """
    cased = word
    if word == "i" or word.startswith(("i'", "i’")):
        cased = word[:1].upper() + word[1:]
    elif like[:1].isupper() and (begins or not re.match(r"I\b", like)):
        cased = word.upper() if like.isupper() and len(like) > 1 else word[:1].upper() + word[1:]
    return cased if cased.lower() == word else word


def _begins(text: str, at: int) -> bool:
    """Whether a sentence begins at a character of a text."""
    return re.search(r"(?:^|[.!?:\n\"“(>*-])\s*$", text[max(0, at - 20) : at]) is not None


def keeps_articles(text: str, place: Place, word: str) -> bool:
    """Whether "a" and "an" stand where they should after a word is put in: before it, or put in itself.

    Words that begin with u or h may follow either.
    """
    before = _ARTICLE.search(text[max(0, place.start - 4) : place.start])
    if before is not None and not _follows(before[1], word):
        return False
    return word.lower() not in ("a", "an") or _follows(word, text[place.end :].lstrip())


_ARTICLE = re.compile(r"(?:^|\W)(an?)\s$", re.IGNORECASE)


def _follows(article: str, word: str) -> bool:
    """Whether a word may follow "a" or "an", by its first letter."""
    first = word[:1].lower()
    return first in "uh" or not first.isalpha() or (first in "aeio") == (article.lower() == "an")
