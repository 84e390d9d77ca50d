"""Two views of one model: Captum says which words a prediction rests on, wordward which words would change it."""

import torch
from captum.attr import LayerIntegratedGradients
from torch import Tensor, nn

import wordward

PRAISE, BLAME = ["warm", "funny", "bright", "lovely"], ["dull", "cold", "bland", "tired"]
THINGS = ["film", "story", "ending", "cast"]
KNOWN = ["<pad>", "the", "was", *THINGS, *PRAISE, *BLAME]


class Reader(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.out = nn.Embedding(len(KNOWN), 16, padding_idx=0), nn.Linear(16, 2)
        self.rnn = nn.GRU(16, 16, batch_first=True)

    def forward(self, ids: Tensor) -> Tensor:
        return self.out(self.rnn(self.embedding(ids))[0][:, -1])


torch.manual_seed(0)
texts = [f"the {thing} was {word}" for thing in THINGS for word in PRAISE + BLAME]
ids = torch.tensor([[KNOWN.index(word) for word in text.split()] for text in texts])
labels, model = torch.tensor([int(text.split()[-1] in PRAISE) for text in texts]), Reader()
adv = wordward.iadvt(model, epsilon=2.0, k=None, candidates=[KNOWN.index(word) for word in PRAISE + BLAME])
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
for _ in range(60):
    out = adv(lambda: model(ids), labels)
    optimizer.zero_grad()
    (nn.functional.cross_entropy(out.clean, labels) + out.loss).backward()
    optimizer.step()
print(f"training error {(model(ids).argmax(-1) != labels).float().mean():.0%}")
rests = LayerIntegratedGradients(model, model.embedding).attribute(ids, 0 * ids, target=labels, n_steps=20)
for swap in wordward.explain.swaps(adv(lambda: model(ids), labels), KNOWN):  # of the first text
    rest = float(torch.as_tensor(rests)[0, swap.position].sum())
    print(f"{swap.word:>6} counts {rest:+.2f}; pulled toward {swap.toward}: {swap.relative:.2f}")
