"""The model that learnt from labels alone: what it makes of unlabelled texts is what self-training learns from."""

from copy import deepcopy
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_model, save_model
from torch import Tensor, nn

from wordward.perturbation.tap import logits_of
from wordward.support.errors import RunError
from wordward.support.files import whole

TEACHER = "teacher.safetensors"


class Teacher:
    """A copy of a model that no longer changes.

    A Transformer knows few labels by heart after a few epochs, and what it then believes of other texts is held by
    nothing: compared with itself from step to step, it drifts away. Kept in `folder`, for runs that are resumed; of
    several processes only the `first` writes.
    """

    def __init__(self, folder: Path, *, first: bool) -> None:
        self._file, self._first = folder / TEACHER, first
        self._model: nn.Module | None = None

    def take(self, model: nn.Module, *, resumed: bool) -> None:
        """If there is none yet, `model` becomes the teacher; in a run that is resumed, the one that is kept."""
        if self._model is not None:
            return
        self._model = deepcopy(model).eval().requires_grad_(False)
        if resumed:
            self._load()
        elif self._first:
            with whole(self._file) as part:
                save_model(self._model, str(part))

    def _load(self) -> None:
        assert self._model is not None
        try:
            load_model(self._model, self._file)
        except (OSError, RuntimeError, SafetensorError) as error:
            why = str(error).partition("\n")[0]
            place = self._file.parent
            raise RunError(
                f"{self._file} is damaged ({why}): delete {place} to start this run from the beginning"
            ) from None

    def __call__(self, inputs: dict[str, Tensor]) -> Tensor:
        """Its logits (texts, classes)."""
        assert self._model is not None
        with torch.no_grad():
            return logits_of(self._model(**inputs))
