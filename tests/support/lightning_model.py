"""A tiny model as Lightning trains it, with the three lines of wordward in its step."""

import lightning
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import wordward


class Mine(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.out = nn.Embedding(12, 6, padding_idx=0), nn.Linear(6, 2)
        self.adv = wordward.iadvt(self, epsilon=1.0, k=3)

    def forward(self, ids: Tensor) -> Tensor:
        return self.out(self.embedding(ids).sum(1).tanh())

    def training_step(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        ids, labels = batch
        out = self.adv(lambda: self(ids), labels, mask=ids != 0)
        return F.cross_entropy(out.clean, labels) + out.loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.5)
