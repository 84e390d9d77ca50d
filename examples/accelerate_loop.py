"""iAdvT in a loop of Hugging Face accelerate, with gradient accumulation; mixed precision needs no more."""

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import wordward

TEXTS = {"the film was warm": 1, "a funny story": 1, "the ending was dull": 0, "a bland cold film": 0}
KNOWN = ["<pad>", *sorted({word for text in TEXTS for word in text.split()})]


class BagOfWords(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.out = nn.Embedding(len(KNOWN), 16, padding_idx=0), nn.Linear(16, 2)

    def forward(self, ids: Tensor) -> Tensor:
        return self.out(self.embedding(ids).sum(1).tanh())


set_seed(0)
rows = [torch.tensor([KNOWN.index(word) for word in text.split()]) for text in TEXTS]
ids, labels = nn.utils.rnn.pad_sequence(rows, batch_first=True), torch.tensor([*TEXTS.values()])
accelerator, mine = Accelerator(cpu=True, gradient_accumulation_steps=2), BagOfWords()
data = DataLoader(TensorDataset(ids, labels), batch_size=1, shuffle=True)
model, optimizer, loader = accelerator.prepare(mine, torch.optim.Adam(mine.parameters(), lr=0.02), data)
adv = wordward.iadvt(model, epsilon=1.0, k=5)  # 1: after prepare, which may wrap the model
for some, gold in (batch for _ in range(40) for batch in loader):
    with accelerator.accumulate(model):
        out = adv(lambda some=some: model(some), gold, mask=some != 0)  # 2
        accelerator.backward(F.cross_entropy(out.clean, gold) + out.loss)  # 3
        optimizer.step()
        optimizer.zero_grad()
print(f"training error {(mine(ids).argmax(-1) != labels).float().mean():.0%}")
