"""The pieces of a tokenizer as the vocabulary of a run."""

import hashlib
from functools import cached_property
from typing import Any

import numpy as np

from wordward.text.word_pieces import all_texts, candidate_ids


class PieceVocabulary:
    """The pieces of a tokenizer, as the vocabulary of a run; the words among them are its candidates."""

    def __init__(self, tokenizer: Any, size: int, *, whole_words: bool = True) -> None:
        self.tokenizer, self.size = tokenizer, size  # size: rows of the model's table
        self._whole_words = whole_words  # whether only pieces that are words by themselves are candidates

    def __len__(self) -> int:
        return self.size

    def __contains__(self, word: object) -> bool:
        """Whether a word can be read, as one piece or several."""
        pieces = self.tokenizer(str(word), add_special_tokens=False)["input_ids"]
        return bool(pieces) and self.tokenizer.unk_token_id not in pieces

    def __getitem__(self, word: str) -> int:
        """The id of the piece that is the whole word, or else of the word's first piece."""
        if word in self._numbers:
            return self._numbers[word]
        pieces = self.tokenizer(word, add_special_tokens=False)["input_ids"]
        return int(pieces[0]) if pieces else int(self.tokenizer.pad_token_id)

    def word(self, number: int) -> str:
        """The text of a piece."""
        return self.words[number]

    @cached_property
    def words(self) -> list[str]:
        """The text of each piece; empty for rows of the embedding table that belong to no piece."""
        known = min(self.size, len(self.tokenizer))
        return [*all_texts(self.tokenizer)[:known], *[""] * (self.size - known)]

    def candidates(self, min_count: int = 1) -> np.ndarray:
        """Ids of the pieces that are words by themselves; `min_count` is ignored, since pieces are not counted."""
        return self._candidates

    @cached_property
    def _candidates(self) -> np.ndarray:
        return np.array(candidate_ids(self.tokenizer, whole_words=self._whole_words))

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {self.words[at]: int(at) for at in self._candidates}

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits that identify the tokenizer's pieces and their order."""
        known = sorted(self.tokenizer.get_vocab().items(), key=lambda item: item[1])
        return hashlib.sha256("\n".join(piece for piece, _ in known).encode()).hexdigest()[:16]
