"""What words near each other have in common: foretold for a word by a regression on the vectors of all others."""

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


def kin_evidence(run: Run, evidence: Evidence, space: WordSpace | None) -> Tensor:
    """What words near each word speak for: its evidence as all others foretell it, (rows of the evidence, classes).

    "terrible" is foretold to speak against a product, "warranty" is not, though texts that complain hold it as often.
    A word that no training text holds is foretold, too, if it has a vector; one without is foretold nothing: 0.
    """
    table, ids = vectors_of(run, space), run.ordinary()
    ids = ids if space is None else ids[space.known[ids]]
    foretold = torch.zeros_like(evidence.evidence)
    if int(torch.isfinite(evidence.variance[ids]).all(-1).sum()) > 1:
        foretold[ids] = foretell(table[ids], evidence.evidence[ids], evidence.variance[ids].mean(-1))
    if (after := len(run.vocabulary)) < len(foretold):  # pieces, each as the word that it spells; then the words
        pieces = {run.vocabulary.word(at).lower(): at for at in ids.tolist()}
        words = run.learnt.words if len(foretold) > after + 1 else [""]  # none were counted: one row for all others
        rows = torch.tensor([pieces.get(word, -1) for word in words], device=foretold.device)
        foretold[after:] = torch.where(rows.unsqueeze(-1) >= 0, foretold[rows], 0.0)
    return foretold


def foretell(vectors: Tensor, values: Tensor, variance: Tensor) -> Tensor:
    """Each row's values (n, classes) by a ridge regression on the vectors (n, dim) of all other rows.

    `variance` (n,) is that of the values; infinite: not known. Each is left out in turn without fitting again.
    """
    vectors, seen = vectors.cpu(), variance.cpu().isfinite()  # MPS has no double precision
    middle = vectors[seen].double().mean(0)

    def wide(rows: Tensor) -> Tensor:
        units = torch.nn.functional.normalize(rows.double() - middle, dim=-1)
        return torch.cat([units, units.new_ones(len(units), 1)], -1)

    known, y = wide(vectors[seen]), values.cpu()[seen].double()
    weights = 1 / (variance.cpu()[seen].double().unsqueeze(-1) + NOISE)
    inverse = torch.linalg.inv(known.T @ (weights * known) + RIDGE * torch.eye(known.shape[1], dtype=known.dtype))
    solved = inverse @ (known.T @ (weights * y))
    fitted = torch.cat([wide(rows) @ solved for rows in vectors.split(AT_ONCE)])  # a table may be large
    own = (known @ inverse * known).sum(-1, keepdim=True) * weights  # how much each value says of itself
    fitted[seen] = (fitted[seen] - own * y) / (1 - own)
    return fitted.to(values)
