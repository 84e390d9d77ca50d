"""A Hugging Face model that wordward did not train, as a run."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from wordward.datasets import Example
from wordward.perturbation.adversary import Adversary
from wordward.perturbation.objective import yes_or_no
from wordward.perturbation.recipes import Method
from wordward.perturbation.tap import Tap
from wordward.runs.evidence import Evidence
from wordward.runs.external_words import ExternalSource
from wordward.runs.multi_label import SeveralLabels
from wordward.runs.pieces import LogitsModel
from wordward.runs.probed_evidence import remembered
from wordward.runs.transformer import TransformerRun
from wordward.support.errors import SettingError
from wordward.text.corpus import Corpus
from wordward.text.vocabulary import Vocabulary


class CheckedLogits(LogitsModel):
    """A model whose logits are of the labels that it names, for a text, or for each piece where texts are words.

    `which`: the one of several labels at once whose no and yes are given instead.
    """

    def __init__(self, model: nn.Module, labels: int, *, tagging: bool, which: int | None = None) -> None:
        super().__init__(model)
        self.labels, self.tagging, self.which = labels, tagging, which

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Logits: (batch, classes), or of a tagger (batch, time, classes); a model that gives others is refused."""
        logits = super().forward(ids, mask)
        if logits.shape[-1] != self.labels:
            raise SettingError(
                "model",
                f"the model must give a logit for each of its {self.labels} labels, but gave {logits.shape[-1]}: "
                "take one for sequence or token classification",
            )
        if (logits.dim() > 2) != self.tagging:
            raise SettingError("texts", "texts must be lists of words for a tagger, and strings for a classifier")
        return self.decided(logits)

    def decided(self, logits: Tensor) -> Tensor:
        """The logits of all labels, (batch, classes); if one is asked about, of its no and yes, (batch, 2)."""
        return logits if self.which is None else yes_or_no(logits[:, self.which])

    def asking(self, which: int | None) -> "CheckedLogits":
        """The same model asked about one of its labels, or about all."""
        other = CheckedLogits(self.model, self.labels, tagging=self.tagging, which=which)
        other.separator = self.separator
        return other


@dataclass(frozen=True, repr=False)
class ExternalRun(ExternalSource, TransformerRun):  # type: ignore[override]
    """A Transformer that no run folder holds; its texts of training, and so their words, are not known."""

    model: CheckedLogits
    embedding: str | None = None  # name of the module that reads the ids; found where not given
    site: str | None = None  # name of the module after which r is added

    @property
    def evidence_alone(self) -> Evidence | None:
        return remembered(self, self.model.model) if self.counted is None else None

    @property
    def _counted_words(self) -> Vocabulary | None:
        return None if self.counted is None else self.counted.vocabulary

    def encode(self, examples: Sequence[Example], *, labelled: bool, source: str = "", cut: bool = False) -> Corpus:
        return super().encode([*map(self.example, examples)], labelled=labelled, source=source, cut=cut)

    def starting_table(self) -> tuple[Tensor | None, str]:
        return None, "The vectors that this model started from are not known."

    def _adversary(self, method: Method) -> Adversary:
        if getattr(getattr(self.model.model, "config", None), "model_type", None) == "reformer":
            raise SettingError(
                "model",
                "a Reformer gives gradients in training only, where all texts must have one fixed length, so it "
                "cannot be explained, nor its words swapped: predict, evaluate, attacks with other `edits` take it",
            )
        found = Tap(self.model.model, embedding=self.embedding, site=self.site)
        return Adversary(
            self.model,
            method,
            embedding=found.embedding,
            site=found.site,
            candidates=torch.from_numpy(self.vocabulary.candidates()),
        )


@dataclass(frozen=True, repr=False)
class SeveralOfModel(SeveralLabels, ExternalRun):
    """A Transformer that gives a text several labels at once."""

    def _yes_or_no(self, which: int) -> tuple[type[ExternalRun], CheckedLogits]:
        return ExternalRun, self.model.asking(which)
