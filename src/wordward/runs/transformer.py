"""A fine-tuned Hugging Face model as a run."""

from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from wordward.config.settings import TrainConfig
from wordward.perturbation.adversary import Adversary
from wordward.perturbation.recipes import Method
from wordward.perturbation.tap import Tap
from wordward.runs import run_folder
from wordward.runs.hub import load_model, load_tokenizer
from wordward.runs.input_table import model_at_hand
from wordward.runs.piece_run import PieceRun
from wordward.runs.piece_vocabulary import PieceVocabulary
from wordward.runs.pieces import LogitsModel, separator_of
from wordward.support.files import put_back
from wordward.text.corpus import Batch, Corpus
from wordward.text.loading import split_examples
from wordward.text.vocabulary import Vocabulary
from wordward.text.word_pieces import check_size, unperturbed_ids


def open_run(path: Path, config: TrainConfig, device: torch.device) -> "TransformerRun":
    """The best model of a run folder."""
    folder, labels = path / run_folder.TRANSFORMER, run_folder.load_labels(path)
    put_back(folder)
    if not (folder / "config.json").exists():
        raise run_folder.RunError(
            f"{path} holds no {run_folder.TRANSFORMER} folder: was the run stopped before its first epoch ended?"
        )
    tagging = config.task == "tag"
    tokenizer = load_tokenizer(str(folder), tagging=tagging)
    inner = load_model(str(folder), tagging=tagging, labels=labels, whole=True)
    separator = None if config.data.pair_column is None else separator_of(tokenizer, inner)
    model = LogitsModel(inner, separator).to(device).eval()
    check_size(tokenizer, Tap(model).size)
    return TransformerRun(path, config, PieceVocabulary(tokenizer, Tap(model).size), labels, model, device)


@dataclass(frozen=True, repr=False)
class TransformerRun(PieceRun):
    """A Hugging Face model that `wordward train` fine-tuned."""

    tokens_at_once: ClassVar[int] = 1 << 14  # which fill a GPU: more would be padded to longer texts

    @property
    def tokens_read(self) -> int:
        """Few on a CPU, whose cache holds what is computed of them: half the time of many."""
        return 1 << 11 if self.device.type == "cpu" else super().tokens_read

    @cached_property
    def learnt(self) -> Vocabulary:  # type: ignore[override]
        return run_folder.load_vocabulary(self.folder)

    @property
    def weights(self) -> list[Path]:
        return sorted(self.place.glob("*.safetensors"))

    def split(self, name: str, *, limit: int | None = None, cut: bool = False, quiet: bool = False) -> Corpus:
        examples = split_examples(replace(self.config.data, limit=limit), name)
        return self.encode(examples, labelled=True, source=f"{self.config.data.corpus} {name}", cut=cut)

    def perturbed(self, batch: Batch) -> Tensor:
        """Mask of the pieces that stand for text, unlike [CLS] or [SEP], (batch, time)."""
        return batch.mask & ~torch.isin(batch.ids, self._unperturbed)

    @cached_property
    def _unperturbed(self) -> Tensor:
        return torch.tensor(unperturbed_ids(self.tokenizer), device=self.device)

    def table(self) -> Tensor:
        return Tap(self.model).table()

    def starting_table(self) -> tuple[Tensor | None, str]:
        try:
            source = model_at_hand(str(self.config.transformer))
            model = load_model(source, tagging=self.tagging, labels=self.labels)
            table = Tap(LogitsModel(model)).table()
        except (OSError, ValueError, RuntimeError) as error:
            return None, f"The vectors that this run started from cannot be read: {error}."
        if table.shape != self.table().shape:
            return None, f"The vectors of {source} are not those that this run started from."
        return table, ""

    def vector(self, word: str) -> Tensor:
        pieces = self.tokenizer(f" {word}", add_special_tokens=False)["input_ids"]
        return self.table()[pieces or [self.tokenizer.pad_token_id]].mean(0)

    def ordinary(self) -> Tensor:
        return torch.from_numpy(self.vocabulary.candidates()).to(self.device)

    def writable(self) -> np.ndarray:
        whole = np.zeros(len(self.vocabulary), dtype=bool)
        whole[self.vocabulary.candidates()] = True
        return whole

    def judged(self, judge: Any) -> Any:
        """The rule for the pieces, each as the word that it spells, followed by that for the words of `learnt`."""
        names = [name.lower() for name in self.vocabulary.words]
        learnt_ids = torch.tensor([self.learnt[name] for name in names], device=judge.evidence.device)
        tables = {field.name: getattr(judge, field.name) for field in fields(judge)}
        return replace(judge, **{name: torch.cat([table[learnt_ids], table]) for name, table in tables.items()})

    def _adversary(self, method: Method) -> Adversary:
        return Adversary(self.model, method, candidates=torch.from_numpy(self.vocabulary.candidates()))
