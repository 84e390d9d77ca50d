"""iAdvT in PyTorch Lightning: the three lines stand in the module."""

import lightning
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import wordward

TEXTS = {"the film was warm": 1, "a funny story": 1, "the ending was dull": 0, "a bland cold film": 0}
KNOWN = ["<pad>", *sorted({word for text in TEXTS for word in text.split()})]


class BagOfWords(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.out = nn.Embedding(len(KNOWN), 16, padding_idx=0), nn.Linear(16, 2)
        self.adv = wordward.iadvt(self, epsilon=1.0, k=5)  # 1

    def forward(self, ids: Tensor) -> Tensor:
        return self.out(self.embedding(ids).sum(1).tanh())

    def training_step(self, batch: list[Tensor]) -> Tensor:
        ids, labels = batch
        out = self.adv(lambda: self(ids), labels, mask=ids != 0)  # 2
        return F.cross_entropy(out.clean, labels) + out.loss  # 3

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=0.02)


lightning.seed_everything(0)
rows = [torch.tensor([KNOWN.index(word) for word in text.split()]) for text in TEXTS]
ids, labels = nn.utils.rnn.pad_sequence(rows, batch_first=True), torch.tensor([*TEXTS.values()])
loader, model = DataLoader(TensorDataset(ids, labels), batch_size=2, shuffle=True), BagOfWords()
trainer = lightning.Trainer(max_epochs=40, accelerator="cpu", logger=False, enable_checkpointing=False)
trainer.fit(model, loader)
print(f"training error {(model(ids).argmax(-1) != labels).float().mean():.0%}")
