"""Between word pieces and words: which pieces may be pointed to, and which word each piece is part of."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar
from unicodedata import category
from weakref import WeakKeyDictionary

from wordward.support.errors import SettingError

Tokenizer = Any  # a transformers.PreTrainedTokenizerBase: named so that this file needs no transformers
ROUNDED = 128  # rows to whose multiple a table may be rounded up; others are 8, 16, 32 and 64
BEFORE = "a"  # a word that stands before the one whose pieces are looked at
T = TypeVar("T")
_KEPT: WeakKeyDictionary[Tokenizer, dict[Any, Any]] = WeakKeyDictionary()  # what was found of tokenizers in use


class Word(NamedTuple):
    """A word of a text and the pieces that a model reads it as."""

    text: str
    start: int  # its characters in the text
    end: int
    pieces: tuple[int, ...]  # their places in the row of ids
    number: int  # among the words of the text


def special_ids(tokenizer: Tokenizer) -> list[int]:
    """Ids of tokens that stand for no text ([CLS], </s>, padding, markers): never candidates."""
    added = getattr(tokenizer, "added_tokens_decoder", {})
    return sorted({*tokenizer.all_special_ids, *(at for at, token in added.items() if token.special)})


def unperturbed_ids(tokenizer: Tokenizer) -> list[int]:
    """The special ids but for the unknown token, which stands for a word of the text."""
    unknown = tokenizer.unk_token_id
    roles = [value for name, value in tokenizer.special_tokens_map.items() if name != "unk_token"]
    only = unknown is not None and tokenizer.unk_token not in map(str, roles)  # GPT-2's ends texts too
    return [at for at in special_ids(tokenizer) if not (only and at == unknown)]


def check_size(tokenizer: Tokenizer, size: int) -> None:
    """Refuse a tokenizer whose ids are not those of a table of `size` rows."""
    pieces = len(tokenizer)
    # Tables are often a little longer than the vocabulary: by some rows, or rounded up for speed.
    rounded = -(-pieces // ROUNDED) * ROUNDED
    if pieces > size or (0.9 * size > pieces and size > rounded):
        raise SettingError(
            "tokenizer",
            f"the tokenizer has {pieces} pieces, but the model's table has {size} rows: pass the tokenizer that the "
            "model was trained with, or (for a new one) call model.resize_token_embeddings(len(tokenizer))",
        )


def candidate_ids(tokenizer: Tokenizer, *, whole_words: bool = True) -> list[int]:
    """Ids of the pieces that may be pointed to; `whole_words`: of those only that are a word by themselves.

    A piece is a word by itself where its text, written after another word, is read as that piece again. This
    leaves out what continues a word (BERT's ##ing), what only stands at the beginning of a text, and unused rows.
    """
    special = set(special_ids(tokenizer))
    ids = [at for at in range(len(tokenizer)) if at not in special]
    return list(_kept(tokenizer, "words", lambda: _whole_words(tokenizer, ids))) if whole_words else ids


def _whole_words(tokenizer: Tokenizer, ids: Sequence[int]) -> list[int]:
    """Those of the pieces that are a word by themselves."""
    every = all_texts(tokenizer)
    texts = [every[at] for at in ids]
    before = tokenizer(BEFORE, add_special_tokens=False)["input_ids"]
    written = [f"{BEFORE} {text}" for text in texts]
    read = tokenizer(written, add_special_tokens=False, return_attention_mask=False)["input_ids"]
    again = zip(ids, texts, read, strict=True)
    words = [at for at, text, pieces in again if text and list(pieces) == [*before, at]]
    if not words:
        raise SettingError(
            "candidates",
            "no piece of the tokenizer is a word by itself (does it split words into letters?): "
            "pass whole_words=False to point to any piece, or ids as `candidates=`",
        )
    return words


def _kept(tokenizer: Tokenizer, name: str, make: Callable[[], list[T]]) -> list[T]:
    """What `make` finds of a tokenizer, or found when it had the same pieces: of 250,000 it takes half a minute."""
    key = name, len(tokenizer), tuple(special_ids(tokenizer))
    found = _KEPT.setdefault(tokenizer, {})
    if key not in found:
        found[key] = make()
    return found[key]


def all_texts(tokenizer: Tokenizer) -> list[str]:
    """What each piece of a tokenizer looks like in a text."""
    return _kept(tokenizer, "texts", lambda: piece_texts(tokenizer, range(len(tokenizer))))


def piece_texts(tokenizer: Tokenizer, ids: Iterable[int]) -> list[str]:
    """What each piece looks like in a text, without the blanks around it."""
    pieces = [[int(at)] for at in ids]
    return [text.strip() for text in tokenizer.batch_decode(pieces, clean_up_tokenization_spaces=False)]


def words_of(encoding: Any, text: str | Sequence[str], *, row: int = 0, second: int | None = None) -> list[Word]:
    """The words that a row of an encoding holds, each with its characters in `text` and its pieces.

    Punctuation is a word of its own. Where the text came as a list of tokens (`is_split_into_words=True`), they are
    the words, and their characters are those in the tokens joined by blanks. Of a pair of texts, the first; or both,
    where `text` holds both and `second` is where the second begins in it.
    """
    encoded = encodings_of(encoding)[row]
    if not isinstance(text, str):
        of_text = [at for at, number in enumerate(encoded.sequence_ids) if number == 0]  # special tokens have none
        return _given_words(text, of_text, encoded.word_ids)
    found = pieces_in(encoded, text)
    found += [] if second is None else pieces_in(encoded, text, 1, second)
    return [Word(text[start:end], start, end, pieces, at) for at, (start, end, pieces) in enumerate(found)]


def encodings_of(encoding: Any) -> Sequence[Any]:
    """What the package tokenizers found in each text, by characters; a tokenizer that is not fast gives none."""
    if not encoding.is_fast:
        raise SettingError(
            "tokenizer", "words are found by character spans, which only fast tokenizers give: load a fast one"
        )
    return encoding.encodings


def _given_words(tokens: Sequence[str], of_text: Iterable[int], numbers: Sequence[int]) -> list[Word]:
    """One word for each token that has pieces."""
    pieces: dict[int, list[int]] = {}
    for at in of_text:
        pieces.setdefault(numbers[at], []).append(at)
    words, start = [], 0
    for number, token in enumerate(tokens):
        if number in pieces:
            words.append(Word(token, start, start + len(token), tuple(pieces[number]), number))
        start += len(token) + 1
    return words


def pieces_in(encoding: Any, text: str, which: int = 0, shift: int = 0) -> list[tuple[int, int, tuple[int, ...]]]:
    """Where each word of a text begins and ends, and its pieces: those of one number side by side.

    They are cut at blanks (Llama's and Gemma's tokenizers have one number for a whole text), and where letters meet
    punctuation. Of a pair of texts, `which` of them, `shift` characters later.
    """
    words: list[tuple[int, int, tuple[int, ...]]] = []
    last = None
    read = zip(encoding.sequence_ids, encoding.word_ids, encoding.offsets, strict=True)
    for at, (sequence, number, (start, end)) in enumerate(read):
        if sequence != which:  # special tokens have none
            continue
        start, end = start + shift, end + shift
        piece, apart = text[start:end], False
        if (bare := piece.strip()) != piece:
            apart = piece[:1].isspace()
            start += len(piece) - len(piece.lstrip())
            end = start + len(bare)
        if number != last or apart or not words or _parted(text, words[-1][0], words[-1][1], start, end):
            words.append((start, end, (at,)))
        else:  # the bytes of one character share a span
            begins, ends, pieces = words[-1]
            words[-1] = begins, max(end, ends), (*pieces, at)
        last = number
    return [word for word in words if word[1] > word[0]]


def _parted(text: str, begins: int, ends: int, start: int, end: int) -> bool:
    """Whether a piece is behind a blank, punctuation after the letters of a word or letters after punctuation."""
    if text[ends:start].isspace():
        return True
    if start == end or begins == ends:  # a piece may be blank (a SentencePiece ▁)
        return False
    return _is_letter(text[start]) != _is_letter(text[ends - 1])


def _is_letter(character: str) -> bool:
    """Letters, marks upon them, and digits."""
    return category(character)[0] in "LMN"
