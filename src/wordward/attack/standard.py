"""What published attacks put in a word's place: TextFooler-, TextBugger- and BERT-Attack-style candidates.

They are those attacks in how they choose; their resources are ours where theirs are not at hand, hence "-style".
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path

import torch

from wordward.attack.counter_fitting import counter_fitted
from wordward.attack.edit_words import ALIKE
from wordward.attack.fluency import MaskedModel, counts_of
from wordward.attack.greedy import Words
from wordward.attack.near_words import WordTable, unit, vectors_at
from wordward.attack.ngrams import NGrams, split
from wordward.attack.stopwords import STOP_WORDS
from wordward.attack.wordnet import Relations, relations
from wordward.config.yardsticks import YardstickSettings
from wordward.explain.english import fold
from wordward.explain.swaps import cased_like
from wordward.explain.word_kinds import kind
from wordward.runs.run import Run
from wordward.support.errors import SettingError
from wordward.text.batches import chunks
from wordward.text.word_pieces import all_texts, candidate_ids

NEAREST = 5  # words that TextBugger tries
FAR = 0.3  # cosine below which a word is no neighbour
AROUND = 200  # nearest words of which those that fit are taken
BATCH = 64  # texts that a masked model reads at a time

Candidates = Callable[[Sequence[str]], Iterator[list[list[str]]]]  # texts -> of each, for each word what may come


class CounterFitted(WordTable):
    """The nearest words of the same kind and inflection in counter-fitted vectors."""

    def __init__(self, space: str, relations: Relations | None) -> None:
        """`relations`: what to counter-fit the vectors with; None: they are so already."""
        _, words, table = vectors_at(space, "vectors")
        super().__init__(words, unit(table) if relations is None else counter_fitted(words, table, relations))
        self.of = lru_cache(maxsize=1 << 16)(self._of)

    def _of(self, word: str, count: int) -> list[str]:
        if word not in self.numbers:
            return []
        near, cosines = self.nearest(word, self.table[self.numbers[word]], AROUND)
        fit = near[(cosines >= FAR) & (self.kinds[near] & kind(word, self.known) != 0)]
        return [self.words[at] for at in fit[:count]]


@lru_cache(maxsize=1)
def near_words(choice: str) -> CounterFitted:
    """Vectors of a file, which are counter-fitted already; or "auto": those at hand, counter-fitted with WordNet."""
    return CounterFitted(choice, relations() if choice == "auto" else None)


def textfooler(near: CounterFitted, count: int) -> Candidates:
    """The nearest words."""
    return _word_by_word(lambda word: near.of(fold(word), count))


def textbugger(near: CounterFitted, count: int) -> Candidates:
    """A blank in the word, two letters exchanged, one left out, one that looks the same; and the nearest words."""
    return _word_by_word(lambda word: [*bugs(word), *near.of(fold(word), min(NEAREST, count))][:count])


def bugs(word: str) -> list[str]:
    """Four edits of a word's letters, in its middle; the first and the last letter stay."""
    middle, alike = len(word) // 2, next((at for at, letter in enumerate(word) if letter in ALIKE), None)
    made = [] if alike is None else [word[:alike] + ALIKE[word[alike]] + word[alike + 1 :]]
    if len(word) > 3:
        exchanged = word[: middle - 1] + word[middle] + word[middle - 1] + word[middle + 1 :]
        made = [f"{word[:middle]} {word[middle:]}", exchanged, word[:middle] + word[middle + 1 :], *made]
    return [bug for bug in dict.fromkeys(made) if bug != word]


def _word_by_word(of: Callable[[str], list[str]]) -> Candidates:
    def found(texts: Sequence[str]) -> Iterator[list[list[str]]]:
        for text in texts:
            yield [
                [] if fold(word) in STOP_WORDS else [cased_like(each, word) for each in of(word)]
                for word in Words.of(text).words
            ]

    return found


def bert_attack(model: NGrams | MaskedModel, relations: Relations, count: int) -> Candidates:
    """The words that a language model finds likeliest in the place of each, but for its antonyms."""
    likeliest = counted(model) if isinstance(model, NGrams) else masked(model)

    def found(texts: Sequence[str]) -> Iterator[list[list[str]]]:
        for text in texts:
            words = Words.of(text)
            places = [at for at, word in enumerate(words.words) if fold(word) not in STOP_WORDS]
            candidates: list[list[str]] = [[] for _ in words.words]
            for at, ranked in zip(places, likeliest(words, places, 2 * count), strict=True):
                old = fold(words.words[at])
                fit = (word for word in ranked if _other(word, old) and not relations.opposite(word, old))
                candidates[at] = [cased_like(word, words.words[at]) for word in islice(fit, count)]
            yield candidates

    return found


def _other(word: str, old: str) -> bool:
    return word.isalpha() and len(word) > 1 and word != old and word not in STOP_WORDS


Likeliest = Callable[[Words, Sequence[int], int], Iterator[list[str]]]


def counted(model: NGrams) -> Likeliest:
    """The likeliest words by counts of three words in a row, of those seen beside one of the two neighbours."""

    def ranked(words: Words, places: Sequence[int], count: int) -> Iterator[list[str]]:
        for at in places:
            mark = words.put(at, "\N{OBJECT REPLACEMENT CHARACTER}").text
            before, _, after = mark.partition("\N{OBJECT REPLACEMENT CHARACTER}")
            yield model.likeliest(split(before), split(after), count)

    return ranked


def masked(model: MaskedModel) -> Likeliest:
    """The likeliest words by a masked model, in the place of each word as one mask."""
    ids = candidate_ids(model.tokenizer)
    texts = all_texts(model.tokenizer)
    names = [texts[at].lower() for at in ids]
    whole = torch.tensor(ids, device=model.device)

    @torch.no_grad()
    def ranked(words: Words, places: Sequence[int], count: int) -> Iterator[list[str]]:
        texts = [words.put(at, model.tokenizer.mask_token).text for at in places]
        for part in chunks(texts, BATCH):
            inputs = model.tokenizer(part, truncation=True, padding=True, return_tensors="pt")
            hidden = inputs["input_ids"] == model.tokenizer.mask_token_id
            hidden &= hidden.cumsum(1) == 1  # the first, should the text hold another
            best = model.logits(inputs, hidden)[:, whole].topk(min(count, len(ids))).indices.tolist()
            found = iter(best)
            for row in hidden.any(1).tolist():
                yield list(dict.fromkeys(names[at] for at in next(found))) if row else []

    return ranked


def candidates_of(name: str, settings: YardstickSettings, runs: Sequence[Run]) -> Candidates:
    """What the attack of that name puts in each word's place, the same for all models."""
    if name == "bert-attack":
        return bert_attack(language_model(settings.language_model, runs), relations(), settings.candidates)
    attack = textfooler if name == "textfooler" else textbugger
    return attack(near_words(settings.vectors), settings.candidates)


def language_model(choice: str, runs: Sequence[Run]) -> NGrams | MaskedModel:
    """The masked model of a folder; or "auto": counts of the training texts of the first run that has any."""
    if choice == "auto":
        for run in runs:
            if (counts := counts_of(run)) is not None:
                return counts
        raise SettingError(
            "language_model",
            "bert-attack needs a language model, and no training texts of the models can be read to count words in: "
            "give the folder of a masked model such as BERT as `language_model`, or leave bert-attack out of "
            "`attacks`",
        )
    if not Path(choice).is_dir():
        raise SettingError("language_model", f"expected the folder of a masked language model; there is no {choice}")
    return MaskedModel(choice, runs[0].device)
