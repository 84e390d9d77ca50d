"""A method of your own: as iAdvT, but only the two words of a text move that raise the loss most."""

import torch
import torch.nn.functional as F

import wordward


def two_words(values, possible, words):  # values (batch, time, k): how much each direction raises the loss
    steepest = values.masked_fill(~words(), 0).norm(dim=-1, keepdim=True)  # (batch, time, 1)
    return values * (steepest >= steepest.topk(2, dim=1).values[:, -1:])


torch.manual_seed(0)
ids = torch.randint(0, 50, (128, 6))  # texts of six words, whose first word decides
labels = (ids[:, 0] < 25).long()
model = torch.nn.Sequential(torch.nn.Embedding(50, 16), torch.nn.Flatten(), torch.nn.Linear(6 * 16, 2))
method = wordward.Recipe("label_loss", "words", two_words, summary="iAdvT at two words")
adv = wordward.adversary(model, method, k=5)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(60):
    out = adv(lambda: model(ids), labels)
    optimizer.zero_grad()
    (F.cross_entropy(out.clean, labels) + out.loss).backward()
    optimizer.step()
moved = (adv(lambda: model(ids), labels).perturbation.norm(dim=-1) > 0).sum(1)
print(f"{moved.max()} words of a text move; training error {(model(ids).argmax(1) != labels).float().mean():.0%}")
