"""The model as it was halfway through self-training: what it made of unlabelled texts then is what is learnt from."""

from copy import deepcopy
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_model, save_model
from torch import Tensor, nn

from wordward.perturbation.tap import logits_of
from wordward.runs.run_folder import RunError
from wordward.support.files import whole

TEACHER = "teacher.safetensors"


class Teacher:
    """A copy of a model that is trained on labels alone for half of the steps, and no longer changes.

    A Transformer knows few labels by heart after a few epochs, and what it then believes of other texts is held by
    nothing: compared with itself from step to step, it drifts away. Kept in `folder`, for runs that are resumed; of
    several processes only the `first` writes.
    """

    def __init__(self, folder: Path, *, first: bool) -> None:
        self._file, self._first = folder / TEACHER, first
        self._model: nn.Module | None = None

    def ready(self, model: nn.Module, step: int, steps: int) -> bool:
        """Whether there is a teacher at this step of so many; at half of them `model` becomes one."""
        half = steps // 2
        if self._model is None and step >= half:
            self._model = deepcopy(model).eval().requires_grad_(False)
            if step > half:
                self._load()
            elif self._first:
                with whole(self._file) as part:
                    save_model(self._model, str(part))
        return self._model is not None

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
