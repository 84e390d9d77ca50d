"""How probable a text is after a swap, against the text before it, by a language model that is at hand."""

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from wordward.attack.ngrams import NGrams, alike_ends, split
from wordward.config.pretraining import PretrainConfig
from wordward.config.settings import TrainConfig
from wordward.datasets import Example
from wordward.datasets.streams import STANDARD_INPUT
from wordward.models import LanguageModel
from wordward.runs import checkpoint, run_folder
from wordward.runs.hub import load_tokenizer, pretrained
from wordward.runs.run import Run
from wordward.support.errors import RunError, SettingError
from wordward.text.batches import chunks, pad
from wordward.text.cache_files import Stamp, stamps
from wordward.text.loading import at_hand, labelled_examples, split_examples
from wordward.text.tokens import words_of
from wordward.text.vocabulary import EOS, UNK

LEAST = -1.5  # log p(after a swap) - log p(before), below which a swap does not read well
ENOUGH = 20_000  # words of training texts, below which their counts say too little
TEXTS = 20_000  # training texts that are counted, at most
BATCH = 64  # texts that a neural model reads at a time
PIECES = 4096  # that a masked model reads at a time

Pair = tuple[str, str]  # a text before and after a swap


class Fluency(Protocol):
    """A language model, asked how a swap changes the probability of a text."""

    def __call__(self, pairs: Sequence[Pair]) -> list[float]:
        """log p(after) - log p(before) of each pair; -inf where the model does not know the new word."""
        ...


def fluency_of(run: Run, choice: str = "auto") -> Fluency | None:
    """The language model of that choice; None: there is none, or a tagger's errors are not to be judged by one.

    `choice`: "none"; the folder of a language model of ours or of a masked one; or "auto": the language model that
    the run started from, else counts of its training texts, where these can still be read and are many enough.
    """
    if choice == "none" or run.tagging:
        return None
    if choice != "auto":
        if not Path(choice).is_dir():
            raise SettingError("language_model", f"expected the folder of a language model; there is no {choice}")
        ours = (Path(choice) / run_folder.CONFIG).exists()
        return OurModel(choice, run.device) if ours else MaskedModel(choice, run.device)
    start = run.config.pretrained
    if start and (Path(start) / run_folder.WEIGHTS).exists():
        return OurModel(start, run.device)
    return counts_of(run)


def counts_of(run: Run) -> NGrams | None:
    """Counts of a run's training texts; None where there are none, or they cannot be read or are too few."""
    data = run.config.data
    if not (data.train or data.corpus):
        return None
    return _counted(run.config, tuple(stamps([Path(at_hand(data.train))]) if data.train else ()))


@lru_cache(maxsize=2)
def _counted(config: TrainConfig, now: tuple[Stamp, ...]) -> NGrams | None:
    """Counts of the texts that a run was trained on, as their files are now; None if unreadable or too few."""
    if STANDARD_INPUT in (config.data.train, config.data.dev):  # what comes in now are other texts
        return None
    try:
        examples = split_examples(config.data, "train") if config.data.corpus else labelled_examples(config)[0]
    except (OSError, ValueError):
        return None
    texts = [split(example.text) for example in examples[:TEXTS]]
    return NGrams(texts) if sum(map(len, texts)) >= ENOUGH else None


class OurModel:
    """A language model of `wordward pretrain`."""

    def __init__(self, folder: str, device: torch.device) -> None:
        self.config, self.device = run_folder.load_config(folder, PretrainConfig), device
        self.vocabulary = run_folder.load_vocabulary(folder)
        make = partial(LanguageModel, len(self.vocabulary), self.config.model)
        checkpoint.check_fits(Path(folder) / run_folder.WEIGHTS, make)
        self.model = make()
        checkpoint.load_weights(folder, self.model, self.vocabulary)
        self.model.to(device).eval()

    def __call__(self, pairs: Sequence[Pair]) -> list[float]:
        """As `Fluency` says: both texts are read whole."""
        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        rows = {text: self._ids(text) for text in texts}
        scores: dict[str, float] = {}
        order = sorted(texts, key=lambda text: len(rows[text]))
        for part in chunks(order, BATCH):
            scores |= zip(part, self._scores([rows[text] for text in part]), strict=True)
        unknown = {text: int((rows[text] == UNK).sum()) for text in texts}
        return [
            -np.inf if unknown[after] > unknown[before] else scores[after] - scores[before] for before, after in pairs
        ]

    def _ids(self, text: str) -> np.ndarray:
        return np.array(self.vocabulary.encode(words_of(Example(text), self.config.text)), dtype=np.int64)

    @torch.no_grad()
    def _scores(self, rows: Sequence[np.ndarray]) -> list[float]:
        """log p of each text, its end included; what comes before it is the end of another."""
        targets = torch.from_numpy(pad([row.tolist() for row in rows], EOS)).to(self.device)
        ids = torch.cat([torch.full_like(targets[:, :1], EOS), targets[:, :-1]], 1)
        lengths = torch.tensor([len(row) for row in rows], device=self.device)
        mask = torch.arange(targets.shape[1], device=self.device) < lengths.unsqueeze(-1)
        losses, _ = self.model(ids, targets)
        return (-(losses * mask).sum(1)).tolist()


class MaskedModel:
    """A masked language model in a folder, such as BERT's: what it puts in the place of the swapped word."""

    def __init__(self, folder: str, device: torch.device) -> None:
        self.tokenizer, self.device = load_tokenizer(folder, tagging=False), device
        if self.tokenizer.mask_token_id is None:
            raise RunError(f"expected a masked language model as `language_model`; {folder} has no mask token")
        model, told = pretrained(folder, "AutoModelForMaskedLM", "language model")
        if any("decoder" not in name for name in told["missing_keys"]):
            raise RunError(
                f"{folder} is no masked language model: it has no weights for the words to put in. Give another "
                "folder as `language_model`, or none"
            )
        self.model = model.to(device).eval()

    def __call__(self, pairs: Sequence[Pair]) -> list[float]:
        """As `Fluency` says, with the rest of the text given."""
        texts = [(text, *_differing(text, other)) for pair in pairs for text, other in (pair, pair[::-1])]
        scores: list[float] = []
        for part in chunks(texts, BATCH):
            scores += self._scores(part)
        return [after - before for before, after in zip(scores[::2], scores[1::2], strict=True)]

    @torch.no_grad()
    def _scores(self, texts: Sequence[tuple[str, int, int]]) -> list[float]:
        """log p of the pieces of a stretch of each text, all of them masked."""
        encoding: Any = self.tokenizer(
            [text for text, _, _ in texts],
            truncation=True,
            padding=True,
            return_offsets_mapping=True,
            return_tensors="pt",
        )
        spans = encoding.pop("offset_mapping")
        edges = torch.tensor([[start, end] for _, start, end in texts])
        hidden = (spans[..., 0] < edges[:, 1:]) & (spans[..., 1] > edges[:, :1])
        ids = encoding["input_ids"].clone()
        encoding["input_ids"][hidden] = self.tokenizer.mask_token_id
        pieces = ids[hidden].unsqueeze(-1)
        of_pieces = self.logits(encoding, hidden).float().log_softmax(-1).cpu().gather(-1, pieces).squeeze(-1)
        return torch.zeros(len(texts)).index_add(0, hidden.nonzero()[:, 0], of_pieces).tolist()

    @torch.no_grad()
    def logits(self, encoding: Mapping[str, Tensor], hidden: Tensor) -> Tensor:
        """The logits, (hidden, vocabulary), of the pieces that are `hidden`, (batch, time), in their order.

        Of a few texts at a time: the model makes as many logits of each piece as there are pieces in all.
        """
        count, found = max(1, PIECES // hidden.shape[1]), []
        for start in range(0, len(hidden), count):
            part = {name: values[start : start + count].to(self.device) for name, values in encoding.items()}
            found.append(self.model(**part).logits[hidden[start : start + count].to(self.device)])
        return torch.cat(found)


def _differing(text: str, other: str) -> tuple[int, int]:
    """The characters of a text, whole words, in which it differs from another."""
    start, tail = alike_ends(text, other)
    end = len(text) - tail
    while start and text[start - 1].isalnum():
        start -= 1
    while end < len(text) and text[end].isalnum():
        end += 1
    return start, end
