"""Candidates of a masked model, and sentence similarity by an encoder: tiny BERTs, beside what transformers gives."""

from pathlib import Path

import numpy as np
import pytest
import torch
from any_model import fine_tuned, word_vectors

transformers = pytest.importorskip("transformers")

import wordward  # noqa: E402
from wordward.attack import YardstickSettings, standard, yardsticks  # noqa: E402
from wordward.attack.fluency import MaskedModel  # noqa: E402
from wordward.attack.greedy import Words  # noqa: E402
from wordward.attack.similarity import Similarity  # noqa: E402
from wordward.datasets import Example  # noqa: E402
from wordward.support.errors import SettingError  # noqa: E402

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] the film was good dull warm ##ly".split()
CPU = torch.device("cpu")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A BERT with a head for masked words."""
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS), encoding="utf-8")
    tokenizer = transformers.BertTokenizerFast(str(tmp_path / "vocab.txt"))
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    torch.manual_seed(0)
    network = transformers.BertForMaskedLM(transformers.BertConfig(vocab_size=len(WORDS), **sizes)).eval()
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    network.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    return tmp_path


def test_a_masked_model_ranks_whole_words(folder: Path):
    model = MaskedModel(str(folder), CPU)
    words = Words.of("the film was Warmish, good")
    found = list(standard.masked(model)(words, [3, 4], 3))
    whole = [WORDS.index(word) for word in "the film was good dull warm".split()]
    for at, ranked in zip((3, 4), found, strict=True):
        inputs = model.tokenizer(words.put(at, "[MASK]").text, return_tensors="pt")
        place = int((inputs["input_ids"][0] == WORDS.index("[MASK]")).nonzero())
        with torch.no_grad():
            logits = model.model(**inputs).logits[0, place]
        assert ranked == [WORDS[at] for at in sorted(whole, key=lambda at: -float(logits[at]))[:3]]
    with pytest.raises(SettingError, match="there is no nowhere"):
        standard.language_model("nowhere", [])


def test_similarity_is_the_angle_between_mean_vectors(folder: Path):
    similarity = Similarity(str(folder))
    pairs = [("the film was good", "the film was dull"), ("warm", "warm"), ("warm", "the film was good")]
    found = similarity(pairs)
    for (one, other), alike in zip(pairs, found, strict=True):
        means = []
        for text in (one, other):
            with torch.no_grad():
                means.append(
                    similarity.model(**similarity.tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(0)
                )
        cosine = float(torch.nn.functional.cosine_similarity(*means, dim=0))
        assert alike == pytest.approx(1 - np.arccos(min(cosine, 1.0)) / np.pi, abs=1e-3)
    assert found[1] > 0.999 > found[0]
    with pytest.raises(SettingError, match="no sentence encoder"):
        Similarity("nowhere")


def test_a_hugging_face_folder_is_measured(tmp_path: Path):
    """Windows that are not alike enough stay as they are: with the highest demand nothing is changed."""
    folder = fine_tuned(tmp_path / "model")  # the encoder, too
    run = wordward.open_model(folder)
    vectors = str(word_vectors(tmp_path / "vectors.txt"))
    texts = [Example("the film was warm and funny", "good"), Example("the cast was dull and bland", "bad")]
    shown = {}
    for least in (0.01, 1.0):
        settings = YardstickSettings(
            ("textfooler",), vectors=vectors, similarity_model=str(folder), similarity=least, max_share=0.5
        )
        (shown[least],) = yardsticks([run], texts, settings)
    assert shown[0.01].clean.value == shown[1.0].clean.value == 1.0
    assert all(outcome.changed for outcome in shown[0.01].outcomes)
    assert shown[1.0].under_attack.value == 1.0
    assert not any(outcome.changed for outcome in shown[1.0].outcomes)
