"""Starting a model: normalisation leaves the function as it was, vectors land in the right rows."""

import gzip
import lzma
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from wordward.config.settings import ModelSettings
from wordward.datasets import DataError
from wordward.models import Classifier, LanguageModel, Tagger
from wordward.runs.initialization import from_language_model, from_vectors, normalize
from wordward.text.vocabulary import Vocabulary

SIZES = ModelSettings(dim=5, hidden=7, head=4)
COUNTS = np.array([0, 3, 9, 40, 20, 10, 5, 4, 2, 1])


def ids() -> torch.Tensor:
    return torch.tensor([[3, 4, 5, 9, 2], [6, 8, 2, 0, 0]])


@pytest.mark.parametrize("rescaled", [False, True])
@pytest.mark.parametrize("kind", [Classifier, Tagger])
def test_normalisation_leaves_the_logits(kind: type[Classifier] | type[Tagger], rescaled: bool) -> None:
    torch.manual_seed(0)
    model = kind(10, 3, replace(SIZES, rescaled=rescaled)).eval()
    with torch.no_grad():
        model.words.table.weight.mul_(torch.linspace(0.3, 4, 5)).add_(torch.linspace(-2, 3, 5))
    before = model(ids())
    lstms = [module for module in model.modules() if isinstance(module, nn.LSTM)]
    assert len(lstms) == (2 if kind is Tagger else 1)
    normalize(model.words, lstms, COUNTS)
    torch.testing.assert_close(model(ids()), before, atol=1e-5, rtol=0)
    share = torch.tensor(COUNTS / COUNTS.sum())[:, None]
    table = model.words.table.weight.detach().double()
    mean = (share * table).sum(0)
    torch.testing.assert_close(mean, torch.zeros(5).double(), atol=1e-6, rtol=0)
    deviation = (share * (table - mean) ** 2).sum(0).sqrt()
    torch.testing.assert_close(deviation, torch.ones(5).double(), atol=1e-5, rtol=0)


def test_dimension_that_never_varies_is_not_blown_up() -> None:
    model = Classifier(10, 3, SIZES).eval()
    with torch.no_grad():
        model.words.table.weight[:, 2] = 1.7
    before = model(ids())
    normalize(model.words, [model.lstm], COUNTS)
    assert model.words.table.weight.abs().max() < 100
    torch.testing.assert_close(model(ids()), before, atol=1e-5, rtol=0)


@pytest.mark.parametrize("rescaled", [False, True])
def test_language_model_gives_words_and_lstm(rescaled: bool) -> None:
    torch.manual_seed(0)
    language_model = LanguageModel(10, SIZES).eval()
    model = Classifier(10, 2, replace(SIZES, rescaled=rescaled)).eval()
    from_language_model(model, language_model, COUNTS)
    theirs, _ = language_model.lstm(language_model.words(ids()))
    ours, _ = model.lstm(model.words(ids()))
    torch.testing.assert_close(ours[0], theirs[0], atol=1e-5, rtol=0)
    mine, other = (dict(each.lstm.named_parameters())["weight_ih_l0"] for each in (model, language_model))
    assert torch.equal(mine, other) == rescaled
    assert language_model.words.table.weight.abs().max() <= 0.1  # the language model itself is left alone


def test_language_model_of_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match="same `dim` and `hidden`"):
        from_language_model(Classifier(10, 2, SIZES), LanguageModel(10, ModelSettings(dim=5, hidden=9)), COUNTS)


def vocabulary() -> Vocabulary:
    words = ("<pad>", "<unk>", "<eos>", "river", "Stone", "stone", "moss", "Fern")
    return Vocabulary(words, np.array([0, 0, 4, 9, 3, 5, 2, 1]))


VECTORS = {"river": (1, 2), "stone": (3, 5), "Stone": (-4, 0), "fern": (6, -2), "cloud": (9, 9)}


def written(path: Path, *, header: bool) -> Path:
    text = f"{len(VECTORS)} 2\n" * header + "".join(f"{w} {x} {y}\n" for w, (x, y) in VECTORS.items())
    opened = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix, open)
    with opened(path, "wt", encoding="utf-8") as file:
        file.write(text)
    return path


@pytest.mark.parametrize(
    ("name", "header"), [("v.txt", False), ("v.vec", True), ("v.txt.gz", False), ("v.vec.xz", True)]
)
def test_vectors_fill_their_rows_at_unit_deviation(name: str, header: bool, tmp_path: Path) -> None:
    torch.manual_seed(0)
    table = nn.Embedding(8, 2, padding_idx=0)
    before = table.weight.detach().clone()
    found = from_vectors(table, written(tmp_path / name, header=header), vocabulary())
    assert found.tolist() == [3, 4, 5, 7]
    raw = np.array([VECTORS["river"], VECTORS["Stone"], VECTORS["stone"], VECTORS["fern"]], dtype=float)
    share = np.array([9, 3, 5, 1])[:, None] / 18
    mean = (share * raw).sum(0)
    deviation = np.sqrt((share * (raw - mean) ** 2).sum(0))
    np.testing.assert_allclose(table.weight.detach()[[3, 4, 5, 7]], (raw - mean) / deviation, rtol=1e-5)
    torch.testing.assert_close(table.weight.detach()[[1, 2, 6]], before[[1, 2, 6]])  # unknown words stay fresh
    assert not table.weight.detach()[0].any()


def test_bad_vectors_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    table = nn.Embedding(8, 2)
    path.write_text("river 1 2 3\nstone 1 2 3\n")
    with pytest.raises(DataError, match=r"line 1: expected 2 numbers .* got 3: set `dim`"):
        from_vectors(table, path, vocabulary())
    path.write_text("river 1 2\nstone 1\n")
    with pytest.raises(DataError, match="line 2: expected a word and 2 numbers"):
        from_vectors(table, path, vocabulary())
    path.write_text("river 1 two\n")
    with pytest.raises(DataError, match=r"line 1: expected 2 numbers after the word; got: .*'two'"):
        from_vectors(table, path, vocabulary())
    path.write_text("cloud 1 2\n")
    with pytest.raises(DataError, match="found none"):
        from_vectors(table, path, vocabulary())
