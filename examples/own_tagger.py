"""iAdvT and iVAT together on a tagger of your own, with padding and gradient accumulation."""

import torch
import torch.nn.functional as F
from torch import nn

import wordward

WORDS = {word: number for number, word in enumerate("<pad> the film films is are good long we saw".split())}
RIGHT = ["the film is good", "the films are long", "we saw the film"]
WRONG = ["the film are good", "the films is long"]


class Tagger(nn.Module):
    def __init__(self, size: int, dim: int = 12) -> None:
        super().__init__()
        self.embedding = nn.Embedding(size, dim, padding_idx=0)
        self.mix = nn.Conv1d(dim, 24, 3, padding=1)
        self.out = nn.Linear(24, 2)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.out(self.mix(self.embedding(ids).transpose(1, 2)).relu().transpose(1, 2))


torch.manual_seed(0)
sentences = [sentence.split() for sentence in RIGHT + WRONG]
ids = nn.utils.rnn.pad_sequence(
    [torch.tensor([WORDS[word] for word in words]) for words in sentences], batch_first=True
)
wrong = [[int(" ".join(words) in WRONG and word in ("is", "are")) for word in words] for words in sentences]
tags = nn.utils.rnn.pad_sequence([torch.tensor(row) for row in wrong], batch_first=True, padding_value=-100)
model = Tagger(len(WORDS))
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)

adv = wordward.iadvt(model, epsilon=0.5, k=3)
vat = wordward.ivat(model, epsilon=0.5, k=3)  # needs no labels
for _ in range(120):
    optimizer.zero_grad()
    for rows in (slice(0, 3), slice(3, None)):  # two small batches, one update
        some, gold, mask = ids[rows], tags[rows], ids[rows] != 0
        out = adv(lambda some=some: model(some), gold, mask=mask)
        smooth = vat(lambda some=some: model(some), mask=mask)
        loss = F.cross_entropy(out.clean.transpose(1, 2), gold, ignore_index=-100)
        (loss + 0.1 * out.loss + 0.1 * smooth.loss).backward()
    optimizer.step()

found = model(ids).argmax(-1)
print(f"right tags {(found == tags)[tags >= 0].float().mean():.0%}")
