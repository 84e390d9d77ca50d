"""iAdvT on a model of your own: three lines more than plain training."""

import torch
import torch.nn.functional as F
from torch import nn

import wordward

KNOWN = tuple("<pad> the film was warm funny bright dull cold bland story ending a".split())
GOOD, BAD = ["the film was warm", "a funny story"], ["the ending was dull", "a bland cold film"]


class BagOfWords(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(KNOWN), 16, padding_idx=0)
        self.out = nn.Linear(16, 2)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.out(self.embedding(ids).sum(1).tanh())


torch.manual_seed(0)
rows = [torch.tensor([KNOWN.index(word) for word in text.split()]) for text in GOOD + BAD]
ids, labels = nn.utils.rnn.pad_sequence(rows, batch_first=True), torch.tensor([1, 1, 0, 0])
model = BagOfWords()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

adv = wordward.iadvt(model, epsilon=1.0, k=5)  # 1, once: a word may be pushed toward its 5 nearest, all together by 1
for _ in range(60):
    out = adv(lambda: model(ids), labels, mask=ids != 0)  # 2: run the model, push its vectors uphill, run it again
    loss = F.cross_entropy(out.clean, labels) + out.loss  # 3: of the texts as they are, and as they are pushed
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

print(f"training error {(model(ids).argmax(-1) != labels).float().mean():.0%}")
for swap in wordward.explain.swaps(adv(lambda: model(ids), labels, mask=ids != 0), KNOWN):  # of the first text
    print(f"{swap.word:>6} is pulled toward {swap.toward or 'no word':7} {swap.strength:+.2f}")
