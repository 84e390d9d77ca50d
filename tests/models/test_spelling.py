"""What spelling adds to the Bi-LSTM: its equation derived a second time, and what is hidden in training."""

import pytest
import torch

from wordward.config.model import ModelSettings
from wordward.models import Tagger
from wordward.models.spelling import NEAR, PACE, WIDTH, Spelling
from wordward.text.spelling import numbered, spelling_of
from wordward.text.vocabulary import PAD, SPECIALS, Vocabulary

SETTINGS = ModelSettings(dim=3, hidden=4, head=5)
TEXTS = [["Anna", "met", "Johanna"], ["Maria", "met", "Julia"], *[["met"]] * 97]
CLASSES = 2


@pytest.fixture
def known() -> Vocabulary:
    return Vocabulary.build(TEXTS, min_documents=1).with_forms()


@pytest.fixture
def tagger(known: Vocabulary) -> Tagger:
    torch.manual_seed(0)
    beside = Spelling(known, CLASSES)
    model = Tagger(len(known), CLASSES, SETTINGS, beside).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
        beside.table[0] = 5.0  # what nothing tells is never looked up
    return model


def test_each_word_speaks_for_its_own_tag_and_for_those_of_its_neighbours(tagger: Tagger, known: Vocabulary) -> None:
    beside = tagger.beside
    assert beside is not None
    numbers = numbered([spelling_of(word) for word in known.words[len(SPECIALS) :]])
    text = ["Anna", "met", "Johanna", "Lydia", "met"]
    vectors, logits = beside(torch.tensor([known.encode(text, eos=False)]))
    spelt = [spelling_of(known.word(known[word])) for word in text]
    for at, told in enumerate(spelt):
        wanted = torch.stack([beside.table[numbers[one], :WIDTH] for one in told]).sum(0)
        assert torch.allclose(vectors[0, at], wanted)
        spoken = torch.zeros(CLASSES, dtype=torch.float64)
        for number, place in enumerate(NEAR):
            if 0 <= at + place < len(text):
                column = WIDTH + number * CLASSES
                for one in spelt[at + place]:
                    spoken += PACE * beside.table[numbers[one], column : column + CLASSES]
        assert torch.allclose(logits[0, at], spoken)


def test_the_tagger_is_the_bi_lstm_on_both_vectors_and_what_is_spoken(tagger: Tagger, known: Vocabulary) -> None:
    ids = torch.tensor([known.encode(["Anna", "met", "Maria"], eos=False)])
    alone = Tagger(len(known), CLASSES, ModelSettings(dim=3 + WIDTH, hidden=4, head=5)).double().eval()
    weights = {name: each for name, each in tagger.state_dict().items() if not name.startswith("beside")}
    assert tagger.beside is not None
    spelt, spoken = tagger.beside(ids)
    table = torch.cat([tagger.words.table.weight, torch.zeros(len(known), WIDTH, dtype=torch.float64)], 1).detach()
    table[ids[0], 3:] = spelt[0].detach()
    alone.load_state_dict(weights | {"words.table.weight": table})
    assert torch.allclose(tagger(ids), alone(ids) + spoken)


def test_alone_as_in_a_padded_batch(tagger: Tagger, known: Vocabulary) -> None:
    short, long = known.encode(["Anna", "met"], eos=False), known.encode(["Lydia", "met", "Anna", "met"], eos=False)
    batch = tagger(torch.tensor([[*short, PAD, PAD], long]))
    assert torch.allclose(batch[0, :2], tagger(torch.tensor([short]))[0])
    assert torch.allclose(batch[1], tagger(torch.tensor([long]))[0])
    assert tagger(torch.tensor([short[:1]])).shape == (1, 1, CLASSES)  # shorter than the neighbourhood


def test_rare_words_are_hidden_behind_their_form_in_training_only(known: Vocabulary) -> None:
    torch.manual_seed(0)
    beside = Spelling(known, CLASSES)
    anna, met = known["Anna"], known["met"]
    ids = torch.tensor([[anna, met]] * 4000)
    hidden = beside.hidden(ids)
    assert set(hidden[:, 0].tolist()) == {anna, known.form("Anna")}
    assert known.word(known.form("Anna")) == "<unk> Aa nna"
    assert (hidden[:, 0] != anna).float().mean().item() == pytest.approx(1 / 2, abs=0.05)  # seen once
    assert (hidden[:, 1] != met).float().mean().item() == pytest.approx(1 / 100, abs=0.01)  # seen 99 times
    assert torch.equal(beside.eval().hidden(ids), ids)
    forms = torch.arange(known.plain, len(known))
    assert torch.equal(beside.form[forms], forms)


def test_it_follows_from_the_vocabulary_and_is_not_saved(known: Vocabulary) -> None:
    assert list(Spelling(known, CLASSES).state_dict()) == ["table"]
    assert not any("beside" in name for name in Tagger(9, 2, SETTINGS).state_dict())
