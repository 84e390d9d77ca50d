"""iAdvT on a model of your own: three lines more than plain training."""

import torch
import torch.nn.functional as F
from torch import nn

import wordward

KNOWN = "<pad> the film was warm funny bright dull cold bland story ending a".split()
WORDS = {word: number for number, word in enumerate(KNOWN)}
TEXTS = [
    ("the film was warm", 1),
    ("a funny story", 1),
    ("the ending was dull", 0),
    ("a bland cold film", 0),
] * 8


class BagOfWords(nn.Module):
    def __init__(self, size: int, dim: int = 16) -> None:
        super().__init__()
        self.embedding = nn.Embedding(size, dim, padding_idx=0)
        self.out = nn.Linear(dim, 2)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.out(self.embedding(ids).sum(1).tanh())


torch.manual_seed(0)
ids = nn.utils.rnn.pad_sequence(
    [torch.tensor([WORDS[word] for word in text.split()]) for text, _ in TEXTS], batch_first=True
)
labels = torch.tensor([label for _, label in TEXTS])
model = BagOfWords(len(WORDS))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

adv = wordward.iadvt(model, epsilon=1.0, k=5)  # 1
for _ in range(60):
    out = adv(lambda: model(ids), labels, mask=ids != 0)  # 2
    loss = F.cross_entropy(out.clean, labels) + out.loss  # 3
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

out = adv(lambda: model(ids), labels, mask=ids != 0)
print(f"training error {(model(ids).argmax(-1) != labels).float().mean():.0%}")
assert out.candidates is not None
for word, strengths, near in zip(ids[0], out.strengths[0], out.candidates[0], strict=True):
    print(f"{KNOWN[int(word)]:>6} is pulled toward {KNOWN[int(near[strengths.argmax()])]}")
