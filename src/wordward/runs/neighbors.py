"""The nearest words of a trained table, to look at."""

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from wordward.config.settings import PretrainConfig, TrainConfig
from wordward.perturbation.nearest import Metric, nearest
from wordward.runs import checkpoint, run_folder
from wordward.support.console import say
from wordward.support.errors import RunError, SettingError
from wordward.text.spelling import FORM

TABLE = "words.table.weight"


def nearest_words(
    run: str | Path, words: Sequence[str], *, k: int = 10, metric: Metric = "cosine", min_count: int = 5
) -> Iterator[tuple[str, list[tuple[str, float]]]]:
    """Each known word, as the run reads it, with its k nearest and their cosine (or distance), nearest first."""
    if not words:
        raise SettingError("words", "expected words to look up; got none: give one or more")
    vocabulary, table, lowercase = _words(run)
    words = [word.lower() for word in words] if lowercase else words
    known = [word for word in words if word in vocabulary]
    unknown = [_with_near(word, vocabulary.words) for word in words if word not in vocabulary]
    complaint = f"{run} does not know {', '.join(unknown)}{'' if lowercase else ': is the case right?'}"
    if not known:
        raise SettingError("words", complaint)
    allowed = torch.from_numpy(vocabulary.candidates(min_count))
    if k < 1:
        raise SettingError("k", f"k must be 1 or more, but is {k}")
    if k >= len(allowed):
        raise SettingError(
            "k",
            f"expected more than k = {k} words that occur {min_count} times or more; {run} has {len(allowed)}: "
            "choose a lower `min_count` or `k`",
        )
    if unknown:
        say(complaint)
    ids = torch.tensor([vocabulary[word] for word in known])
    for word, number, others in zip(known, ids, nearest(ids, table, k, allowed=allowed, metric=metric), strict=True):
        if metric == "cosine":
            near = F.cosine_similarity(table[number].unsqueeze(0), table[others])
        else:
            near = (table[others] - table[number]).norm(dim=-1)
        yield word, [(vocabulary.word(int(o)), float(n)) for o, n in zip(others, near, strict=True)]


def _with_near(word: str, words: Sequence[str]) -> str:
    """A word that is not known, and the known one that is spelt nearest, in whatever case."""
    whole = (other for other in reversed(words) if not other.startswith(FORM))
    in_lower_case = {other.lower(): other for other in whole}  # the first of those that differ by case
    close = difflib.get_close_matches(word.lower(), in_lower_case, 1)
    return f"{word!r} (did you mean {in_lower_case[close[0]]!r}?)" if close else repr(word)


def _words(run: str | Path) -> tuple[Any, Tensor, bool]:
    """The words of a run (pieces of a Hugging Face model), their vectors, and whether it reads lower case only."""
    if (Path(run) / run_folder.TRANSFORMER).is_dir() or (Path(run) / "config.json").exists():
        from wordward.runs.opening import open_model

        opened = open_model(run, device="cpu")
        return opened.vocabulary, opened.table(), opened.text.lowercase
    vocabulary = run_folder.load_vocabulary(run)
    table = checkpoint.load_tensors(run, vocabulary).get(TABLE)
    if table is None or table.dim() != 2 or len(table) != len(vocabulary) or not table.is_floating_point():
        raise RunError(f"{Path(run) / run_folder.WEIGHTS} is damaged: expected a vector for each word as {TABLE}")
    return vocabulary, table, _lowercases(run)


def _lowercases(run: str | Path) -> bool:
    """Whether a run of `train` or `pretrain` reads its texts in lower case; False where that is not known."""
    for kind in (TrainConfig, PretrainConfig):
        try:
            return run_folder.load_config(run, kind).text.lowercase
        except RunError:
            continue
    return False
