"""iAdvT and iVAT together on a tagger of your own, with gradient accumulation."""

import torch
import torch.nn.functional as F
from torch import nn

import wordward

KNOWN = tuple("<pad> the film films is are good long we saw".split())
RIGHT, WRONG = ["the film is good", "we saw the film"], ["the film are good", "the films is long"]


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(KNOWN), 12, padding_idx=0)
        self.mix, self.out = nn.Conv1d(12, 24, 3, padding=1), nn.Linear(24, 2)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.out(self.mix(self.embedding(ids).transpose(1, 2)).relu().transpose(1, 2))


torch.manual_seed(0)
ids = torch.tensor([[KNOWN.index(word) for word in text.split()] for text in RIGHT + WRONG])
tags = torch.tensor([[0, 0, 0, 0]] * 2 + [[0, 0, 1, 0]] * 2)  # 1: the verb of the wrong ones
model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)

adv, vat = wordward.iadvt(model, epsilon=0.5, k=3), wordward.ivat(model, epsilon=0.5, k=3)
for _ in range(60):
    optimizer.zero_grad()
    for rows in (slice(0, 4, 2), slice(1, 4, 2)):  # two small batches, one update
        some, gold = ids[rows], tags[rows]
        out, smooth = adv(lambda some=some: model(some), gold), vat(lambda some=some: model(some))
        loss = F.cross_entropy(out.clean.transpose(1, 2), gold)
        (loss + 0.1 * out.loss + 0.1 * smooth.loss).backward()
    optimizer.step()

print(f"right tags {(model(ids).argmax(-1) == tags).float().mean():.0%}")
