"""Language models that judge swaps."""

from dataclasses import replace
from math import exp, inf, log
from pathlib import Path

import numpy as np
import pytest
import torch
from hf_tiny import saved
from reviews import reviews, write_csv
from untrained import a_run

from wordward.attack import fluency
from wordward.attack.attacker import attack
from wordward.attack.fluency import MaskedModel, OurModel, fluency_of
from wordward.attack.ngrams import DISCOUNT, NGrams, split
from wordward.config.attack import AttackSettings
from wordward.config.settings import DataSettings, ModelSettings, PretrainConfig, TrainConfig, TrainingSettings
from wordward.datasets import Example
from wordward.runs.opening import load_run
from wordward.support.errors import RunError, SettingError
from wordward.train.pretraining import pretrain
from wordward.train.training import train

TEXTS = [
    split(text) for text in ("the film was good .", "the film was dull .", "a film was good", "the cast is good .")
]
CPU = torch.device("cpu")


def by_hand(texts: list[list[str]], words: list[str]) -> float:
    """log p of a text by the definition, one count at a time."""
    padded = [["", "", *text, ""] for text in texts]
    sequences = [
        [tuple(text[at - n + 1 : at + 1]) for text in padded for at in range(2, len(text))] for n in (1, 2, 3)
    ]
    size = len({word for text in padded for word in text})
    total, text = 0.0, ["", "", *words, ""]
    for at in range(2, len(text)):
        p = 1 / (len(sequences[0]) + size)
        for n in (1, 2, 3):
            sequence = tuple(text[at - n + 1 : at + 1])
            alike = [each for each in sequences[n - 1] if each[:-1] == sequence[:-1]]
            if alike:
                seen = max(alike.count(sequence) - DISCOUNT, 0)
                p = (seen + DISCOUNT * len(set(alike)) * p) / len(alike)
        total += log(p)
    return total


@pytest.mark.parametrize("text", ["the film was good .", "a cast was dull", "zyx the film", "the", ""])
def test_counts_give_the_probability_of_the_definition(text: str) -> None:
    model, words = NGrams(TEXTS), split(text)
    assert model.scores([model.numbers(words)])[0] == pytest.approx(by_hand(TEXTS, words))
    assert model.perplexity([words]) == pytest.approx(exp(-by_hand(TEXTS, words) / (len(words) + 1)))


def test_probabilities_of_what_may_follow_sum_to_one() -> None:
    model = NGrams(TEXTS)
    rows = [[model.ids["film"], model.ids["was"], number] for number in range(model.size)]
    unseen = 1 - sum(np.exp(model.scores(rows)))
    assert 0 <= unseen < 0.1  # left for words that were not counted


def test_a_ratio_is_that_of_the_whole_texts() -> None:
    model = NGrams(TEXTS)
    before, after = "the film was good .", "the film was dull ."
    (ratio,) = model([(before, after)])
    assert ratio == pytest.approx(by_hand(TEXTS, split(after)) - by_hand(TEXTS, split(before)))


def test_a_new_word_must_have_been_seen_beside_its_neighbours() -> None:
    model = NGrams(TEXTS)
    assert model([("the film was good .", "the film was zyx ."), ("the film was good .", "the was was good .")]) == [
        -inf,
        -inf,
    ]
    assert model([]) == []


def test_our_language_model_reads_whole_texts(tmp_path: Path) -> None:
    write_csv(tmp_path / "reviews.csv", reviews(200))
    config = PretrainConfig(
        (str(tmp_path / "reviews.csv"),),
        epochs=6,
        streams=8,
        window=10,
        learning_rate=0.02,
        model=ModelSettings(dim=16, hidden=16, word_dropout=0.0),
        device="cpu",
    )
    pretrain(config, tmp_path / "lm", quiet=True)
    model = OurModel(str(tmp_path / "lm"), CPU)
    better, worse, unknown = model(
        [
            ("the film was warm and funny", "this film was warm and funny"),
            ("the film was warm and funny", "was film was warm and funny"),
            ("the film was warm and funny", "the zyx was warm and funny"),
        ]
    )
    assert better > worse > unknown == -inf
    ids = model._ids("the film was warm")
    whole = model._scores([ids, model._ids("this")])[0]
    assert whole == pytest.approx(model._scores([ids])[0], rel=1e-5)  # alone as in a batch
    run = replace(a_run(), config=replace(a_run().config, pretrained=str(tmp_path / "lm")))
    assert isinstance(fluency_of(run), OurModel)


def test_no_language_model_where_none_is_at_hand(tmp_path: Path) -> None:
    assert fluency_of(a_run()) is None
    assert fluency_of(a_run(), "none") is None
    assert fluency_of(a_run(task="tag"), "auto") is None
    with pytest.raises(SettingError, match="there is no"):
        fluency_of(a_run(), str(tmp_path / "nowhere"))


@pytest.mark.parametrize("data", [DataSettings(train="-"), DataSettings(train="a.csv", dev="-")])
def test_standard_input_is_not_read_again(data: DataSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fluency, "labelled_examples", lambda _: pytest.fail("it is read"))
    run = replace(a_run(), config=replace(a_run().config, data=data))
    assert fluency_of(run) is None
    assert fluency.counts_of(run) is None


def test_a_masked_model_puts_words_in_the_place_of_the_swapped_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    transformers = pytest.importorskip("transformers")
    words = "[PAD] [UNK] [CLS] [SEP] [MASK] the film was good dull warm".split()
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    transformers.BertTokenizerFast(str(tmp_path / "vocab.txt")).save_pretrained(tmp_path)
    config = transformers.BertConfig(
        vocab_size=len(words), hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
    )
    torch.manual_seed(0)
    network = transformers.BertForMaskedLM(config).eval()
    network.save_pretrained(tmp_path)
    model = MaskedModel(str(tmp_path), CPU)
    (ratio,) = model([("the film was good", "the film was dull")])
    row = torch.tensor([[words.index(word) for word in "[CLS] the film was [MASK] [SEP]".split()]])
    found = network(row).logits[0, 4].log_softmax(-1).detach()
    assert ratio == pytest.approx(float(found[words.index("dull")] - found[words.index("good")]), abs=1e-5)
    pairs = [("the film was good", "the film was dull"), ("the film was warm", "the film was good film")]
    together = model(pairs)
    monkeypatch.setattr(fluency, "PIECES", 8)  # a text at a time
    assert model(pairs) == pytest.approx(together, abs=1e-5)
    transformers.BertModel(config).save_pretrained(tmp_path / "plain")
    model.tokenizer.save_pretrained(tmp_path / "plain")
    with pytest.raises(RunError, match="no masked language model"):
        MaskedModel(str(tmp_path / "plain"), CPU)


def test_an_attack_makes_only_swaps_that_the_language_model_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_csv(tmp_path / "reviews.csv", reviews(240))
    small = ModelSettings(dim=12, hidden=12, head=6, word_dropout=0.1, head_dropout=0.0)
    training = TrainingSettings(epochs=6, learning_rate=0.02, device="cpu")
    config = TrainConfig(method="baseline", model=small, training=training)
    train(
        replace(config, data=replace(config.data, train=str(tmp_path / "reviews.csv"))), tmp_path / "run", quiet=True
    )
    run, texts = load_run(tmp_path / "run", device="cpu"), reviews(20, seed=5)
    assert fluency_of(run) is None  # too few words to count
    monkeypatch.setattr(fluency, "ENOUGH", 100)
    fluency._counted.cache_clear()
    counted = fluency_of(run)
    assert isinstance(counted, NGrams)
    free = list(attack(run, texts, AttackSettings(language_model="none")))
    held = list(attack(run, texts, AttackSettings()))
    write_csv(tmp_path / "reviews.csv", [*(Example(f"grim {at}", "bad") for at in range(20)), *reviews(300)])
    again = fluency_of(run)  # of the texts as they are now
    assert isinstance(again, NGrams)
    assert "grim" in again.words
    assert "grim" not in counted.words
    (tmp_path / "reviews.csv").unlink()
    assert fluency_of(run) is None
    fluency._counted.cache_clear()
    changed = [each for each in held if each.changes]
    assert changed
    for each in changed:
        if len(each.changes) == 1:
            assert counted([(each.text, each.adversarial)])[0] >= fluency.LEAST
    assert sum(each.flipped for each in held) <= sum(each.flipped for each in free)


def test_a_masked_model_with_pickled_or_damaged_weights_is_refused(tmp_path: Path) -> None:
    saved(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"no tensors")
    with pytest.raises(RunError, match=r"the language model in .* cannot be loaded"):
        MaskedModel(str(tmp_path), CPU)
    (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    with pytest.raises(RunError, match="has no weights in safetensors"):
        MaskedModel(str(tmp_path), CPU)
