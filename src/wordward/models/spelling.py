"""What is told by the spelling of words: vectors for a Bi-LSTM, and beside it a linear tagger."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wordward.text.batches import pad
from wordward.text.spelling import numbered, spelling_of
from wordward.text.vocabulary import SPECIALS, Vocabulary

NEAR = (-2, -1, 0, 1, 2)  # places of the words whose spelling speaks for a word's tag
WIDTH = 32  # numbers of a vector of spelling
START = 0.3  # their standard deviation at first, for each thing that is told
PACE = 5.0  # what speaks for a tag is learnt so much faster than the other weights
DROPOUT = 0.3  # of the vectors


class Spelling(nn.Module):
    """What a word's letters tell, to stand beside a Bi-LSTM: a vector, and how much they speak for each tag.

    The latter is a linear tagger on the spelling of a word and its neighbours. What is told of a word is looked up by
    its id, so that who changes a word changes that, too. In training words are hidden behind their form, as which
    unknown words will be read: the rarer, the more often.
    """

    told: Tensor
    form: Tensor
    rarity: Tensor

    def __init__(self, vocabulary: Vocabulary, classes: int) -> None:
        super().__init__()
        told = [[] for _ in SPECIALS] + [spelling_of(word) for word in vocabulary.words[len(SPECIALS) :]]
        numbers = numbered(told)
        rows = pad([[numbers[one] for one in each] for each in told])  # (words, most that is told); 0: nothing
        forms = [*range(len(SPECIALS)), *map(vocabulary.form, vocabulary.words[len(SPECIALS) : vocabulary.plain])]
        forms += range(vocabulary.plain, len(vocabulary))  # a form is its own
        # They follow from the vocabulary, so they are not saved with the weights.
        self.register_buffer("told", torch.tensor(rows), persistent=False)
        self.register_buffer("form", torch.tensor(forms), persistent=False)
        rarity = torch.tensor(1 / (1 + vocabulary.counts), dtype=torch.float32)
        self.register_buffer("rarity", rarity, persistent=False)
        self.table = nn.Parameter(torch.zeros(1 + len(numbers), WIDTH + len(NEAR) * classes))
        nn.init.normal_(self.table[1:, :WIDTH], std=START)

    def hidden(self, ids: Tensor) -> Tensor:
        """In training the ids with some of them replaced by their form's, (batch, time)."""
        if not self.training:
            return ids
        return torch.where(torch.rand(ids.shape, device=ids.device) < self.rarity[ids], self.form[ids], ids)

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """(batch, time) -> vectors (batch, time, WIDTH) and logits (batch, time, classes)."""
        found = F.embedding_bag(self.told[ids].flatten(0, 1), self.table, mode="sum", padding_idx=0)
        vectors, spoken = found.view(*ids.shape, -1).split([WIDTH, found.shape[-1] - WIDTH], -1)
        moved = [_moved(each, place) for place, each in zip(NEAR, spoken.chunk(len(NEAR), -1), strict=True)]
        return F.dropout(vectors, DROPOUT, self.training), PACE * torch.stack(moved).sum(0)


def _moved(values: Tensor, places: int) -> Tensor:
    """values[:, t + places], zeros beyond either end, (batch, time, dim)."""
    time = values.shape[1]
    missing = min(abs(places), time)
    if places < 0:
        return F.pad(values[:, : time - missing], (0, 0, missing, 0))
    return F.pad(values[:, missing:], (0, 0, 0, missing))
