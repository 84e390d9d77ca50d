"""A run whose texts are read as word pieces: words for those who ask, pieces for the model."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from wordward.config.texts import TextSettings
from wordward.datasets import Example
from wordward.datasets.pairs import parted
from wordward.runs.hub import longest, multiple_of
from wordward.runs.piece_vocabulary import PieceVocabulary
from wordward.runs.piece_words import arranged, find_words, last_end
from wordward.runs.pieces import CHUNK, LogitsModel, PieceCorpus, PieceReader
from wordward.runs.reading import Reading, Row, place_tokens
from wordward.runs.run import Run
from wordward.support.memo import Memo
from wordward.text.batches import chunks
from wordward.text.corpus import Corpus
from wordward.text.tokenizers import Token, tokenize
from wordward.text.vocabulary import Vocabulary
from wordward.text.word_pieces import Word, encodings_of, words_of

REMEMBERED = 1 << 17  # stretches of text whose ids are kept


@dataclass(frozen=True, repr=False)
class PieceRun(Run):
    """A run that reads texts by a Hugging Face tokenizer."""

    vocabulary: PieceVocabulary
    model: LogitsModel

    @property
    def tokenizer(self) -> Any:
        """The tokenizer that the model was trained with."""
        return self.vocabulary.tokenizer

    @cached_property
    def reader(self) -> PieceReader:
        """Reads texts as pieces: a classifier's up to `max_length`, a tagger's as far as the model can."""
        can = longest(self.model.model, self.tokenizer)
        asked = None if self.tagging else self.config.text.max_length
        multiple = multiple_of(self.model.model)
        return PieceReader(self.tokenizer, self.tagging, min(can, asked or can), multiple, self.paired)

    @cached_property
    def text(self) -> TextSettings:  # type: ignore[override]
        upper, lower = (self.tokenizer(text, add_special_tokens=False)["input_ids"] for text in ("The", "the"))
        alike = upper == lower and self._unknown not in upper
        return TextSettings(lowercase=alike, max_length=None if self.tagging else self.reader.most)

    def encode(self, examples: Sequence[Example], *, labelled: bool, source: str = "", cut: bool = False) -> Corpus:
        most = (self.config.text.max_length or self.reader.most) if cut or not self.tagging else None
        return self.reader.encode(examples, self.labels if labelled else None, most=most, source=source)

    def encode_to_score(self, examples: Sequence[Example], *, source: str = "", quiet: bool = True) -> Corpus:
        corpus = super().encode_to_score(examples, source=source, quiet=quiet)
        if isinstance(corpus, PieceCorpus):
            corpus.say_cut(quiet=quiet)
        return corpus

    def corpus(self, rows: Sequence[np.ndarray], labels: Any = None) -> Corpus:
        """A corpus of rows of pieces; a tagger's labels are given for each piece, not for each word."""
        return PieceCorpus(rows, labels, pad_id=self.tokenizer.pad_token_id, multiple=self.reader.multiple)

    def read(self, example: Example) -> Reading:
        return self.read_all([example])[0]

    def read_all(self, examples: Sequence[Example]) -> list[Reading]:
        if self.tagging or self.paired:
            return self._read_whole(examples)
        readings: list[Reading] = []
        for part in chunks(examples, CHUNK):
            texts = [example.text for example in part]
            encoding = self.reader.encoding(texts)
            readings += map(self._classified, texts, encoding["input_ids"], encodings_of(encoding))
        return readings

    def _classified(self, text: str, ids: list[int], encoding: Any) -> Reading:
        """A classifier's text; its words are found later."""
        pieces, end = np.array(ids if text else [], dtype=np.int32), last_end(text, encoding)
        return Reading(
            text,
            pieces,
            partial(find_words, text, pieces, encoding, self._counted_words, len(self.vocabulary), self._unknown),
            lowercase=self.text.lowercase,
            filled=end is not None,
            known=None if self._unknown in ids else True,
            unread=None if end is not None and encoding.overflowing else 0,
        )

    @cached_property
    def _unknown(self) -> int | None:
        return self.tokenizer.unk_token_id

    def _read_whole(self, examples: Sequence[Example]) -> list[Reading]:
        """Sentences of a tagger, or pairs of texts."""
        lowercase, texts, tokens_of = self.text.lowercase, [], []
        for example in examples:
            text, tokens = example.text, tokenize(example.text, "whitespace", lowercase) if self.tagging else []
            if self.tagging and example.tokens is not None:
                text, tokens = place_tokens(text, example.tokens, lowercase=lowercase)
            texts.append(text)
            tokens_of.append(tokens)
        given: list[Any] = texts
        if self.tagging:
            given = [[text[t.start : t.end] for t in of] for text, of in zip(texts, tokens_of, strict=True)]
        found = zip(texts, tokens_of, self._pieces(given), strict=True)
        return [self._with_words(text, tokens, *pieces) for text, tokens, pieces in found]

    def _with_words(self, text: str, tokens: Sequence[Token], ids: list[int], words: list[Word]) -> Reading:
        """One of them, with its words; `tokens`: a tagger's."""
        if self.tagging:
            spans, unread = [(start, end) for _, start, end in tokens[: len(words)]], len(tokens) - len(words)
        else:
            spans, unread = [(word.start, word.end) for word in words], self._unread(text, words)
        counted, pieces = self._counted_words, [word.pieces for word in words]
        numbers = None if counted is None else [counted[word.text.lower()] for word in words]
        row = np.array(ids, dtype=np.int32)
        found = arranged(row, spans, pieces, numbers, len(self.vocabulary), self._unknown, unread)
        return Reading.of(text, found, lowercase=self.text.lowercase)

    def _pieces(self, texts: Sequence[Any]) -> list[tuple[list[int], list[Word]]]:
        """Of each classifier's text, or tagger's list of words, the ids, and which of these make up each word."""
        second = [parted(text).start if self.paired else None for text in texts]
        found: list[tuple[list[int], list[Word]]] = [([], []) for _ in texts]
        filled = [at for at, text in enumerate(texts) if text and (not self.paired or parted(text).whole)]
        for part in chunks(filled, CHUNK):
            encoding = self.reader.encoding([texts[at] for at in part])
            for row, at in enumerate(part):
                words = words_of(encoding, texts[at], row=row, second=second[at])
                found[at] = encoding["input_ids"][row], words
        return found

    def swapped_rows(self, swaps: Sequence[tuple[Row, int, int, str]]) -> list[Row | None]:
        found: list[Row | None] = []
        for part in chunks(swaps, CHUNK):
            texts: list[Any] = [text.split() if self.tagging else text for *_, text in part]
            read = self.reader.encoding(texts)["input_ids"]
            rows = [row.swapped(position, word) for row, position, word, _ in part]
            found += [row if row.ids.tolist() == ids else None for row, ids in zip(rows, read, strict=True)]
        return found

    def ids_alone(self, stretches: Sequence[str]) -> list[list[int]] | None:
        if self.tagging or self.paired or not self._parts_at_blanks:
            return None
        return self._alone(stretches)

    @cached_property
    def _alone(self) -> Memo[str, list[int]]:
        """The ids of stretches of text that were read alone, which come again and again."""
        read = partial(self.tokenizer, add_special_tokens=False, return_attention_mask=False)
        return Memo(lambda stretches: read(stretches)["input_ids"], REMEMBERED)

    @cached_property
    def _parts_at_blanks(self) -> bool:
        """Whether the tokenizer reads what stands between blanks alone, as BERT's does; others read blanks, too."""
        inner = getattr(self.tokenizer, "backend_tokenizer", None)
        return type(getattr(inner, "pre_tokenizer", None)).__name__ == "BertPreTokenizer"

    def _unread(self, text: str, words: Sequence[Word]) -> int:
        """How many words of the two texts of a pair are beyond the longest length."""
        if not words:
            return 0
        first, second, start = parted(text)
        ends = [max((word.end for word in words if word.end <= len(first)), default=0), words[-1].end - start]
        return sum(len(part[max(0, end) :].split()) for part, end in zip((first, second), ends, strict=True))

    @property
    def _counted_words(self) -> Vocabulary | None:
        """The words that the rule of sense knows; None without such a rule."""
        return None if self.tagging else self.learnt

    def ids_of(self, text: str) -> np.ndarray:
        ((ids, _),) = self._pieces([text.split() if self.tagging else text])
        return np.array(ids, dtype=np.int32)

    def rows_of(self, texts: Sequence[str], *, known: bool = False) -> list[np.ndarray | None]:
        if self.tagging or self.paired:
            return super().rows_of(texts, known=known)
        rows: list[np.ndarray | None] = []
        for part in chunks(texts, CHUNK):
            encoding = self.reader.encoding(part)
            held = zip(part, encoding["input_ids"], encodings_of(encoding), strict=True)
            rows += [
                np.array(ids, dtype=np.int32) if last_end(text, of) is not None else None for text, ids, of in held
            ]
        return rows

    def problem(self, reading: Reading) -> str | None:
        if self.tagging and reading.unread:
            return self.reader.too_long(reading.words)
        return super().problem(reading)
