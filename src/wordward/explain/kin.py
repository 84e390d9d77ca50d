"""Evidence smoothed over similar words: a ridge regression on vectors foretells each word's from all others'."""

import torch
from torch import Tensor

from wordward.runs.evidence import Evidence
from wordward.runs.run import Run
from wordward.runs.word_space import WordSpace

RIDGE, NOISE = 3.0, 0.25  # of the regression: its weight, and the variance that words have beside that of counts
AT_ONCE = 8_192  # words foretold at a time


def vectors_of(run: Run, space: WordSpace | None) -> Tensor:
    """The vectors that say which words are near each other, (ids, dim): of a space, or the run's own."""
    if space is not None:
        return space.table
    table = run.table().float()
    if run.config.transformer is None and run.config.model.kind == "convolution":
        table = table[:, : run.config.model.dim]  # its evidence follows
    return table


class Kin:
    """What words near each word speak for: its evidence as all others foretell it.

    "terrible" is foretold to speak against a product, "warranty" is not, though texts that complain hold it as often.
    A word that no training text holds is foretold, too, if it has a vector; one without is foretold nothing: 0.
    """

    def __init__(self, run: Run, evidence: Evidence, space: WordSpace | None) -> None:
        """`space`: whose vectors say which words are near each other; None: the run's own."""
        table, ids = vectors_of(run, space), run.ordinary()
        ids = ids if space is None else ids[space.known[ids]]
        self.evidence = torch.zeros_like(evidence.evidence)  # (rows of the evidence, classes)
        self._ridge: Ridge | None = None
        if int(torch.isfinite(evidence.variance[ids]).all(-1).sum()) > 1:
            self._ridge = Ridge(table[ids], evidence.evidence[ids], evidence.variance[ids].mean(-1))
            self.evidence[ids] = self._ridge.fitted
        if (after := len(run.vocabulary)) < len(self.evidence):  # pieces, each as the word it spells; then the words
            pieces = {run.vocabulary.word(at).lower(): at for at in ids.tolist()}
            words = run.learnt.words if len(self.evidence) > after + 1 else [""]  # none were counted: one row for all
            rows = torch.tensor([pieces.get(word, -1) for word in words], device=self.evidence.device)
            self.evidence[after:] = torch.where(rows.unsqueeze(-1) >= 0, self.evidence[rows], 0.0)
        self.evidence = self.evidence.cpu()

    def of(self, vectors: Tensor) -> Tensor:
        """What words of other vectors, (words, dim), are foretold: (words, classes)."""
        if self._ridge is None:
            return self.evidence.new_zeros(len(vectors), self.evidence.shape[1])
        return self._ridge(vectors)


class Ridge:
    """A ridge regression of values (n, classes) on the directions of vectors (n, dim).

    `variance` (n,) is that of the values; infinite: not known.
    """

    def __init__(self, vectors: Tensor, values: Tensor, variance: Tensor) -> None:
        vectors, seen = vectors.cpu(), variance.cpu().isfinite()  # MPS has no double precision
        self._middle = vectors[seen].double().mean(0)
        known, y = self._wide(vectors[seen]), values.cpu()[seen].double()
        weights = 1 / (variance.cpu()[seen].double().unsqueeze(-1) + NOISE)
        inverse = torch.linalg.inv(known.T @ (weights * known) + RIDGE * torch.eye(known.shape[1], dtype=known.dtype))
        self._solved = inverse @ (known.T @ (weights * y))
        own = (known @ inverse * known).sum(-1, keepdim=True) * weights  # how much each value says of itself
        fitted = self(vectors)
        fitted[seen] = (fitted[seen] - own * y) / (1 - own)
        self.fitted = fitted.to(values)  # (n, classes) each by all others, left out in turn without fitting again

    def __call__(self, vectors: Tensor) -> Tensor:
        """The values of other vectors, (n, dim), in double precision and on the CPU."""
        return torch.cat([self._wide(rows) @ self._solved for rows in vectors.cpu().split(AT_ONCE)])

    def _wide(self, rows: Tensor) -> Tensor:
        units = torch.nn.functional.normalize(rows.double() - self._middle, dim=-1)
        return torch.cat([units, units.new_ones(len(units), 1)], -1)
