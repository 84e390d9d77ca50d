"""Tokens lead back to their text, vocabularies survive the disk, batches hold every index once."""

import re
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wordward.text.batches import length_batches, pad, small_batches
from wordward.text.tokenizers import TOKENIZERS, Token, split_words, tokenize
from wordward.text.vocabulary import EOS, PAD, SPECIALS, UNK, Vocabulary

SENTENCE = "It's a <b>bold</b> film,<br /><br />isn’t it? Don't walk... RUN."

# Texts made of the pieces that have broken tokenizers, next to any characters at all.
pieces = st.sampled_from(
    ["<br />", "<br>", "don't", "İ", "ΑΣ", "\x85", "\u2028", "ß", "'", "_", "é", "<", "\r\n", "\u0308"]
)
texts = st.lists(pieces | st.text(max_size=5), max_size=12).map("".join)
words = st.text(
    st.characters(codec="utf-8", exclude_characters="\t\n") | st.sampled_from("\x85\u2028\r\x1c\xa0 "),
    min_size=1,
)
names = st.sampled_from(sorted(TOKENIZERS))


def read_back(text: str, tokenizer: str) -> list[str]:
    return [token.text for token in tokenize(text, tokenizer)]


class TestTokenize:
    def test_words_keep_case_and_skip_line_breaks(self):
        assert " ".join(read_back(SENTENCE, "words")) == "It s a b bold b film isn t it Don t walk RUN"

    def test_authors_is_a_split_on_non_words(self):
        expected = [word for word in re.split(r"\W+", SENTENCE) if word]
        assert read_back(SENTENCE, "authors") == expected
        assert expected.count("br") == 2

    @given(texts)
    def test_authors_is_a_split_on_non_words_for_any_text(self, text: str):
        assert read_back(text, "authors") == [word for word in re.split(r"\W+", text) if word]

    def test_punctuation_keeps_apostrophes_and_marks(self):
        expected = "It's a < b > bold < / b > film , isn’t it ? Don't walk . . . RUN ."
        assert " ".join(read_back(SENTENCE, "punctuation")) == expected

    def test_an_apostrophe_at_the_edge_is_a_mark(self):
        assert read_back("'tis the dogs' rock'n'roll", "punctuation") == [
            "'",
            "tis",
            "the",
            "dogs",
            "'",
            "rock'n'roll",
        ]

    @pytest.mark.parametrize("tokenizer", ["words", "punctuation"])
    def test_marks_belong_to_the_letter_that_they_stand_on(self, tokenizer: str):
        """Hindi's vowel signs, Arabic's points and an umlaut of two characters are no letters of their own."""
        text = "हिन्दी में शब्द مُحَمَّد scho\u0308n"
        assert read_back(text, tokenizer) == text.split()

    def test_a_sign_keeps_its_mark(self):
        assert read_back("lovely ❤\ufe0f!", "punctuation") == ["lovely", "❤\ufe0f", "!"]

    def test_whitespace_leaves_tokenised_text_alone(self):
        assert read_back(" a good-ish  film\t( 1999 )\n", "whitespace") == [
            "a",
            "good-ish",
            "film",
            "(",
            "1999",
            ")",
        ]

    @pytest.mark.parametrize("line_break", ["<br />", "<br/>", "<br>"])
    @pytest.mark.parametrize("tokenizer", ["words", "punctuation"])
    def test_all_spellings_of_a_line_break_are_skipped(self, tokenizer: str, line_break: str):
        assert read_back(f"one{line_break}two", tokenizer) == ["one", "two"]

    @given(texts, names)
    def test_a_span_slices_back_to_its_token(self, text: str, tokenizer: str):
        tokens = tokenize(text, tokenizer)
        assert [text[token.start : token.end] for token in tokens] == [token.text for token in tokens]
        assert all(token.text for token in tokens)
        assert all(left.end <= right.start for left, right in pairwise(tokens))

    @given(texts, names)
    def test_lower_casing_changes_words_and_not_spans(self, text: str, tokenizer: str):
        plain, lowered = tokenize(text, tokenizer), tokenize(text, tokenizer, lowercase=True)
        assert [(token.text.lower(), token.start, token.end) for token in plain] == lowered

    def test_a_letter_that_grows_when_lower_cased_moves_nothing(self):
        assert tokenize("İyi FİLM", lowercase=True)[1] == Token("FİLM".lower(), 4, 8)

    def test_case_is_kept_unless_told(self):
        assert split_words("A Film") == [token.text for token in tokenize("A Film")] == ["A", "Film"]

    @given(texts, names, st.booleans())
    def test_split_words_are_the_words_of_tokenize(self, text: str, tokenizer: str, lowercase: bool):
        expected = [token.text for token in tokenize(text, tokenizer, lowercase)]
        assert split_words(text, tokenizer, lowercase) == expected

    @pytest.mark.parametrize("function", [tokenize, split_words])
    def test_an_unknown_name_lists_the_known(self, function):
        with pytest.raises(ValueError, match=r"words, authors, punctuation, whitespace, characters; got 'spacy'"):
            function("text", "spacy")


DOCUMENTS = [["b", "a", "b", "c"], ["a", "b", "d"], ["d", "c", "e", "e", "e"]]


class TestVocabulary:
    def test_words_come_by_frequency_then_alphabet(self):
        vocabulary = Vocabulary.build(DOCUMENTS)
        assert vocabulary.words == ("<pad>", "<unk>", "<eos>", "b", "a", "c", "d")
        # e is frequent but in one document: its 3 occurrences are unknown; one eos a document.
        assert vocabulary.counts.tolist() == [0, 3, 3, 3, 2, 2, 2]
        assert vocabulary.counts.dtype == np.int64
        assert len(vocabulary) == 7

    def test_equally_frequent_words_come_in_alphabetical_order(self):
        vocabulary = Vocabulary.build([list("zyxwvutsrq"), list("qzrysxtwuv")])
        assert "".join(vocabulary.words[3:]) == "qrstuvwxyz"

    def test_min_documents_counts_documents_and_not_occurrences(self):
        assert Vocabulary.build(DOCUMENTS, min_documents=1).words[3:] == ("b", "e", "a", "c", "d")
        assert Vocabulary.build([["a"], ["a"], ["b", "b"]]).words[3:] == ("a",)

    def test_max_size_counts_words_beside_the_specials(self):
        vocabulary = Vocabulary.build(DOCUMENTS, max_size=2)
        assert vocabulary.words[3:] == ("b", "a")
        assert vocabulary.counts.tolist() == [0, 7, 3, 3, 2]

    @given(st.lists(st.lists(st.sampled_from(["a", "b", "<pad>", "<unk>", "<eos>", "c"]), min_size=1), min_size=1))
    def test_counts_are_those_of_the_encoded_documents(self, documents: list[list[str]]):
        documents.append(["a"])
        vocabulary = Vocabulary.build(documents, min_documents=1)
        ids = [number for document in documents for number in vocabulary.encode(document)]
        assert np.bincount(ids, minlength=len(vocabulary)).tolist() == vocabulary.counts.tolist()

    def test_a_literal_special_is_an_unknown_word(self):
        vocabulary = Vocabulary.build([["<pad>", "<eos>", "x"], ["<pad>", "<eos>", "x"]])
        assert vocabulary.words == (*SPECIALS, "x")
        assert vocabulary.encode(["<pad>", "x", "<eos>"]) == [UNK, 3, UNK, EOS]
        assert "<pad>" not in vocabulary
        assert vocabulary["<eos>"] == UNK

    def test_encode_and_back(self):
        vocabulary = Vocabulary.build(DOCUMENTS)
        assert vocabulary.encode(["c", "zebra", "b"]) == [5, UNK, 3, EOS]
        assert vocabulary.encode(["c", "zebra", "b"], unknown="drop") == [5, 3, EOS]
        assert vocabulary.encode(["c"], eos=False) == [5]
        assert [vocabulary.word(number) for number in (PAD, UNK, EOS, 5)] == [*SPECIALS, "c"]
        assert vocabulary["c"] == 5
        assert "c" in vocabulary
        assert "zebra" not in vocabulary

    def test_what_encode_and_word_refuse(self):
        vocabulary = Vocabulary.build(DOCUMENTS)
        with pytest.raises(ValueError, match="'unk' or 'drop'; got 'skip'"):
            vocabulary.encode(["a"], unknown="skip")  # pyright: ignore[reportArgumentType]
        for number in (-1, 7):
            with pytest.raises(IndexError, match=f"from 0 to 6; got {number}"):
                vocabulary.word(number)

    def test_candidates_are_words_that_are_frequent_enough(self):
        vocabulary = Vocabulary((*SPECIALS, "often", "seldom", "never"), np.array([9, 9, 9, 5, 1, 0]))
        assert vocabulary.candidates().tolist() == [3, 4]
        assert vocabulary.candidates(min_count=2).tolist() == [3]
        assert vocabulary.candidates(min_count=0).tolist() == [3, 4, 5]

    def test_the_specials_have_the_ids_that_checkpoints_rely_on(self):
        assert (PAD, UNK, EOS) == (0, 1, 2)

    def test_it_is_itself_and_can_be_a_key(self):
        one, two = Vocabulary.build(DOCUMENTS), Vocabulary.build(DOCUMENTS)
        assert len({one, two, one}) == 2

    def test_it_cannot_be_changed(self):
        counts = np.array([0, 0, 1, 2])
        vocabulary = Vocabulary((*SPECIALS, "a"), counts)
        counts[3] = 77
        assert vocabulary.counts[3] == 2
        with pytest.raises(ValueError, match="read-only"):
            vocabulary.counts[3] = 5
        with pytest.raises(AttributeError):
            vocabulary.words = ()  # pyright: ignore[reportAttributeAccessIssue]

    def test_the_fingerprint_tells_vocabularies_apart(self):
        def fingerprint(*extra: str) -> str:
            return Vocabulary((*SPECIALS, *extra), np.ones(3 + len(extra))).fingerprint

        assert fingerprint("a", "b") == fingerprint("a", "b")
        assert len({fingerprint("a", "b"), fingerprint("b", "a"), fingerprint("ab"), fingerprint("a")}) == 4
        assert re.fullmatch("[0-9a-f]{16}", fingerprint("a"))
        assert fingerprint("a") in repr(Vocabulary((*SPECIALS, "a"), np.ones(4)))

    def test_nothing_to_build_from_says_what_to_do(self):
        with pytest.raises(ValueError, match=r"none of 2 words in 2 documents does.*lower `min_documents`"):
            Vocabulary.build([["a"], ["b"]])
        with pytest.raises(TypeError, match="lists of words; got text 'a film'"):
            Vocabulary.build(["a film"])

    @pytest.mark.parametrize("word", ["", "a\tb", "a\nb", "\ud800"])
    def test_words_that_no_file_could_hold_are_refused(self, word: str):
        with pytest.raises(ValueError, match="expected words"):
            Vocabulary((*SPECIALS, word), np.ones(4))

    @pytest.mark.parametrize(
        ("entries", "counts", "message"),
        [
            (("a", "b"), 2, "begin with <pad> <unk> <eos>"),
            ((*SPECIALS, "a"), 3, "one count a word"),
            ((*SPECIALS, "a", "a"), 5, "some word occurs twice"),
        ],
    )
    def test_inconsistent_parts_are_refused(self, entries: tuple[str, ...], counts: int, message: str):
        with pytest.raises(ValueError, match=message):
            Vocabulary(entries, np.ones(counts))


class TestVocabularyFile:
    @given(st.lists(st.tuples(words, st.integers(0, 10**12)), unique_by=lambda pair: pair[0]))
    def test_any_words_come_back(self, tmp_path_factory, pairs: list[tuple[str, int]]):
        path = tmp_path_factory.mktemp("vocabulary") / "vocabulary.txt"
        pairs = [pair for pair in pairs if pair[0] not in SPECIALS]
        saved = Vocabulary((*SPECIALS, *(word for word, _ in pairs)), np.array([0, 0, 0, *(n for _, n in pairs)]))
        saved.save(path)
        loaded = Vocabulary.load(path)
        assert loaded.words == saved.words
        assert loaded.counts.tolist() == saved.counts.tolist()
        assert loaded.fingerprint == saved.fingerprint

    def test_the_file_is_plain_text(self, tmp_path):
        Vocabulary.build(DOCUMENTS, max_size=1).save(tmp_path / "v.txt")
        assert (tmp_path / "v.txt").read_bytes() == b"<pad>\t0\n<unk>\t9\n<eos>\t3\nb\t3\n"

    @pytest.mark.parametrize("end", ["\n", "\r\n", ""])
    def test_line_ends_of_an_editor_are_accepted(self, tmp_path, end: str):
        lines = ["<pad>\t0", "<unk>\t9", "<eos>\t3", "b\t3"]
        (tmp_path / "v.txt").write_bytes((end or "\n").join(lines).encode() + end.encode())
        vocabulary = Vocabulary.load(tmp_path / "v.txt")
        assert vocabulary.words == (*SPECIALS, "b")
        assert vocabulary.counts.tolist() == [0, 9, 3, 3]

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", "line 1: expected word<TAB>count, got ''"),
            (b"<pad>\t0\n<unk>\t0\n", "line 3: expected <eos>, the file ends"),
            (b"<pad>\t0\n<eos>\t0\n<unk>\t0\n", "line 2: expected <unk>, got '<eos>'"),
            (b"<pad>\t0\n<unk>\t0\nfilm\t0\n", "line 3: expected <eos>, got 'film'"),
            (b"<pad>\t0\n<unk>\t0\n<eos>\t0\nfilm\n", "line 4: expected word<TAB>count, got 'film'"),
            (b"<pad>\t0\n<unk>\t0\n<eos>\t0\n\t5\n", "line 4: expected word"),
            (b"<pad>\t0\n<unk>\t0\n<eos>\t0\nfilm\t-1\n", "line 4: expected word"),
            (b"<pad>\t0\n<unk>\t0\n<eos>\t0\na\tb\t1\n", "line 4: expected word"),
            (b"<pad>\t0\n<unk>\t0\n<eos>\t0\n\na\t1\n", "line 4: expected word"),
            (b"<pad>\t0\n<unk>\t0\n<eos>\t0\na\t1\na\t2\n", "line 5: the word 'a' came before"),
            (b"<pad>\t0\n<unk>\t0\n<eos>\t0\n\xff\t1\n", "line 4: .*can't decode byte 0xff"),
        ],
    )
    def test_a_malformed_file_names_its_line(self, tmp_path, content: bytes, message: str):
        (tmp_path / "v.txt").write_bytes(content)
        with pytest.raises(ValueError, match=f"v.txt, {message}"):
            Vocabulary.load(tmp_path / "v.txt")

    @given(st.binary(max_size=60))
    def test_any_bytes_load_or_raise_a_value_error(self, tmp_path_factory, content: bytes):
        path = tmp_path_factory.mktemp("vocabulary") / "vocabulary.txt"
        path.write_bytes(b"<pad>\t0\n<unk>\t0\n<eos>\t0\n" + content)
        try:
            vocabulary = Vocabulary.load(path)
        except ValueError:
            return
        assert len(vocabulary) >= 3


class TestBatches:
    sizes = st.lists(st.integers(0, 40), max_size=120)

    @given(sizes, st.integers(1, 9), st.integers(1, 4), st.none() | st.integers(0, 99))
    def test_every_index_comes_once(self, lengths: list[int], batch_size: int, pool: int, seed: int | None):
        rng = None if seed is None else np.random.default_rng(seed)
        batches = length_batches(lengths, batch_size, rng=rng, pool=pool)
        assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
        # One batch may be short, none is empty.
        assert sorted(len(batch) for batch in batches)[1:] == [batch_size] * (len(batches) - 1)
        assert all(len(batch) for batch in batches)

    def test_without_rng_everything_is_sorted_in_a_stable_order(self):
        batches = length_batches([3, 1, 2, 1, 3], 2, rng=None, pool=1)
        assert [batch.tolist() for batch in batches] == [[1, 3], [2, 0], [4]]
        long_and_short = np.concatenate(length_batches([9, 5] * 100, 7, rng=None))
        assert long_and_short.tolist() == [*range(1, 200, 2), *range(0, 200, 2)]

    def test_with_rng_a_batch_holds_similar_lengths(self):
        lengths = np.random.default_rng(0).integers(1, 500, size=2000)
        batches = length_batches(lengths, 20, rng=np.random.default_rng(1), pool=50)
        padding = sum(len(batch) * lengths[batch].max() - lengths[batch].sum() for batch in batches)
        assert padding < 0.05 * lengths.sum()

    def test_with_rng_batches_come_in_no_order_of_length(self):
        lengths = np.arange(1000)
        batches = length_batches(lengths, 10, rng=np.random.default_rng(0), pool=100)
        firsts = [int(batch[0]) for batch in batches]
        assert firsts != sorted(firsts)
        assert sorted(firsts) == list(range(0, 1000, 10))

    def test_pools_mix_texts_anew_every_epoch(self):
        rng = np.random.default_rng(0)
        one, two = (
            {tuple(sorted(batch.tolist())) for batch in length_batches([5] * 100, 10, rng=rng)} for _ in range(2)
        )
        assert not one & two

    def test_a_pool_bounds_the_sorting(self):
        # With pools of one batch, batches are cut before sorting: lengths stay mixed.
        batches = length_batches(np.arange(1000), 10, rng=np.random.default_rng(0), pool=1)
        assert np.mean([np.ptp(batch) for batch in batches]) > 500

    def test_the_same_seed_gives_the_same_batches(self):
        one, two = (length_batches(range(90), 7, rng=np.random.default_rng(3)) for _ in range(2))
        assert all((a == b).all() for a, b in zip(one, two, strict=True))

    @pytest.mark.parametrize(("batch_size", "pool"), [(0, 5), (5, 0)])
    def test_no_batch_can_be_empty(self, batch_size: int, pool: int):
        with pytest.raises(ValueError, match=f"1 or more; got {batch_size} and {pool}"):
            length_batches([1, 2], batch_size, rng=None, pool=pool)

    @given(st.lists(st.integers(0, 40), max_size=60), st.integers(1, 9), st.integers(1, 50))
    def test_small_batches_hold_each_text_once_and_few_tokens(self, lengths: list[int], texts: int, tokens: int):
        sizes = np.array(lengths, dtype=np.int64)
        batches = list(small_batches(sizes, texts, tokens))
        assert sorted(at for batch in batches for at in batch.tolist()) == list(range(len(lengths)))
        for batch in batches:
            assert 1 <= len(batch) <= texts
            assert len(batch) == 1 or len(batch) * sizes[batch].max() <= tokens


class TestPad:
    def test_rows_are_filled_up_on_the_right(self):
        matrix = pad([[1, 2, 3], [], [4]])
        assert matrix.tolist() == [[1, 2, 3], [PAD] * 3, [4, PAD, PAD]]
        assert matrix.dtype == np.int64
        assert pad([[1], [2, 3]], value=-100).tolist() == [[1, -100], [2, 3]]

    @pytest.mark.parametrize(("rows", "shape"), [([], (0, 0)), ([[], []], (2, 0))])
    def test_nothing_has_a_shape_too(self, rows: list[list[int]], shape: tuple[int, int]):
        assert pad(rows).shape == shape


def test_text_data_and_metrics_do_not_wait_for_torch():
    code = "import sys, wordward.text, wordward.runs.metrics, wordward.datasets; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_texts_of_signs_alone_are_told_of_another_tokenizer() -> None:
    texts = ["☀ ☀", "☂"]
    with pytest.raises(ValueError, match="this tokenizer finds none in 2 documents: choose another"):
        Vocabulary.build([split_words(text, "words", False) for text in texts])
    for other in ("punctuation", "whitespace"):
        assert "☂" in Vocabulary.build([split_words(text, other, False) for text in texts], min_documents=1)
