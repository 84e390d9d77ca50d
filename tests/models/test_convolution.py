"""The convolution: alone as in a batch, evidence that is kept, perturbed and trusted, a linear model inside."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from wordward.config.settings import ModelSettings
from wordward.models import Convolution
from wordward.models.convolution import WIDTHS
from wordward.perturbation.recipes import parse_methods
from wordward.perturbation.settings import MethodSettings
from wordward.runs.word_run import adversary_of
from wordward.text.corpus import Corpus
from wordward.text.vocabulary import SPECIALS, Vocabulary
from wordward.train.yardstick import fit_linear, linear_probabilities

WORDS, CLASSES, DIM = 12, 3, 5
IDS = torch.tensor([[3, 4, 5, 4, 0, 0], [7, 8, 0, 0, 0, 0], [9, 0, 0, 0, 0, 0]])


def a_model(seed: int = 0) -> Convolution:
    torch.manual_seed(seed)
    model = Convolution(WORDS, CLASSES, ModelSettings(kind="convolution", dim=DIM, hidden=4)).double()
    model.set_evidence(
        torch.randn(WORDS, CLASSES).double(), torch.rand(WORDS).double() + 1, torch.randn(CLASSES), torch.ones(WORDS)
    )
    return model.eval()


def by_hand(model: Convolution, ids: list[int]) -> Tensor:
    """The logits of one text, word by word."""
    vectors = model.words.table.weight[ids]
    weights = model.phrases.weight.view(sum(WIDTHS), -1, DIM)
    first, strongest = 0, []
    for width, threshold in zip(WIDTHS, model.thresholds, strict=True):
        found = []
        for start in range(len(ids)):
            score = threshold
            for later in range(width):
                if start + later < len(ids):
                    score = score + weights[first + later] @ vectors[start + later, :DIM]
            found.append(F.relu(score))
        strongest.append(torch.stack(found).amax(0))
        first += width
    heard = {word: 1 + math.log(ids.count(word)) for word in ids}  # all its occurrences together
    told = sum(count * model.words.table.weight[word, DIM:] for word, count in heard.items())
    length = math.sqrt(sum((count * float(model.idf[word])) ** 2 for word, count in heard.items()))
    spoken = model.scale * told / max(length, 1.0) + model.prior
    return model.head(torch.cat(strongest)) + model.trust * spoken


def test_logits_are_those_computed_word_by_word_also_in_a_padded_batch() -> None:
    model = a_model()
    found = model(IDS)
    for row, logits in zip(IDS, found, strict=True):
        torch.testing.assert_close(logits, by_hand(model, row[row > 0].tolist()))


def test_the_evidence_is_the_linear_model_that_runs_are_measured_against() -> None:
    rng = np.random.default_rng(0)
    rows = [rng.integers(3, WORDS, 6) for _ in range(60)]
    corpus = Corpus(rows, labels=[int(row.min()) % CLASSES for row in rows])
    linear = fit_linear(corpus, WORDS, CLASSES)
    model = Convolution(WORDS, CLASSES, ModelSettings(kind="convolution", dim=DIM, hidden=4)).eval()
    model.quieten_phrases()
    values = (linear.evidence, linear.idf, linear.bias, corpus.word_counts(WORDS))
    model.set_evidence(*(torch.tensor(value) for value in values))
    found = model(torch.tensor(np.array(rows))).softmax(-1)
    np.testing.assert_allclose(found.detach(), linear_probabilities(linear, corpus), atol=1e-5)
    assert any(len(set(row)) < len(row) for row in rows), "no text has a word twice"


def test_training_leaves_the_evidence_as_it_is_but_moves_the_rest() -> None:
    model = a_model().train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        F.cross_entropy(model(IDS), torch.tensor([0, 1, 2])).backward()
        optimizer.step()
    after = model.state_dict()
    assert torch.equal(after["words.table.weight"][:, DIM:], before["words.table.weight"][:, DIM:])
    assert not torch.equal(after["words.table.weight"][:, :DIM], before["words.table.weight"][:, :DIM])
    assert not torch.equal(after["trust"], before["trust"])


@pytest.mark.parametrize("method", ["advt", "iadvt", "vat", "ivat"])
def test_a_perturbation_reaches_the_evidence(method: str) -> None:
    model = a_model()
    words = Vocabulary((*SPECIALS, *map(str, range(WORDS - len(SPECIALS)))), np.ones(WORDS))
    adversary = adversary_of(parse_methods(method, MethodSettings(k=3))[0], model, words, 1)
    out = adversary(lambda: model(IDS), torch.tensor([0, 1, 2]))
    assert out.perturbation[:, :, DIM:].abs().max() > 0
    assert not out.perturbation[~out.mask].any()


def test_in_training_the_evidence_of_some_texts_is_hidden() -> None:
    model = a_model().train()
    model.words.dropout.p = model.dropout.p = 0.0
    hidden = model(IDS[:1].expand(40, -1))
    assert len(hidden.detach().unique(dim=0)) == 2
    model.hiding = False
    assert len(model(IDS[:1].expand(40, -1)).detach().unique(dim=0)) == 1


def test_phrases_of_few_texts_say_half_of_what_they_have_learnt_to_other_texts() -> None:
    model = a_model()
    model.words.dropout.p = model.dropout.p = 0.0
    model.hiding = False
    model.quieten_phrases()
    spoken = model(IDS)
    torch.nn.init.normal_(model.head.weight)
    torch.testing.assert_close(2 * (model(IDS) - spoken), model.train()(IDS) - spoken)
    assert (model(IDS) - spoken).abs().max() > 0.1
