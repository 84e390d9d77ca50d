"""A classifier of ours as an ONNX file: word ids in, probabilities out, checked against the run itself."""

import json
import warnings
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from wordward.perturbation.modes import evaluating
from wordward.runs import run_folder
from wordward.runs.external_run import ExternalRun
from wordward.runs.run import Run
from wordward.runs.word_run import WordRun
from wordward.support.errors import MissingExtraError, RunError
from wordward.support.files import whole
from wordward.text.vocabulary import PAD, SPECIALS

INPUT, OUTPUT = "ids", "probabilities"
OPSET = 17  # the language of the file, which ONNX Runtime reads since 1.12
EQUAL = 1e-4  # by how much probabilities may differ
TRIED = ((1, 1), (3, 5), (2, 40))  # texts and words of what both read


class _Probabilities(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor) -> Tensor:
        return self.model(ids).softmax(-1)


def export_onnx(run: Run, path: str | Path) -> Path:
    """Write a classifier of ours as an ONNX file, and see that ONNX Runtime gives the same probabilities.

    Its input `ids` (texts, words) are those of `run.ids_of`, filled up with 0s; its output `probabilities`
    (texts, labels) are in the order of `run.labels`, which its metadata names, with how texts are read.

    Args:
        run: A classifier that `wordward train` made, an LSTM or a convolution.
        path: The file to write.

    Returns:
        The file.

    Raises:
        RunError: If the run is no such classifier, or the file would give other probabilities.

    Examples:
        >>> from wordward.runs.onnx_file import export_onnx
        >>> export_onnx(run, "mine.onnx").name
        'mine.onnx'
    """
    _check(run)
    model = _Probabilities(run.model).cpu()
    words = torch.full((1, 7), len(SPECIALS), dtype=torch.long)
    sizes = {INPUT: {0: "texts", 1: "words"}, OUTPUT: {0: "texts"}}
    named: Any = {"input_names": [INPUT], "output_names": [OUTPUT], "dynamic_axes": sizes}
    try:
        with evaluating(model), whole(Path(path)) as part, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the exporter, on what is checked below
            torch.onnx.export(model, (words,), str(part), opset_version=OPSET, dynamo=False, **named)
            _describe(part, run)
            _compare(part, model, len(run.vocabulary), str(path))
    finally:
        run.model.to(run.device)
    return Path(path)


def _check(run: Run) -> None:
    """Refuse what cannot be written."""
    if not isinstance(run, WordRun) or run.tagging:
        own = run.trained_here and not isinstance(run, WordRun)
        what = (
            "is a tagger" if run.tagging else "holds a Hugging Face model" if own else "was not trained by wordward"
        )
        place = run.folder / run_folder.TRANSFORMER if own else run.folder
        remedy = f" (for a Hugging Face model: optimum-cli export onnx, of {place})"
        from_transformers = own or isinstance(run, ExternalRun)
        raise RunError(
            f"expected a classifier of wordward's own; {run.folder} {what}{remedy if from_transformers else ''}"
        )
    for name in ("onnx", "onnxruntime"):
        if find_spec(name) is None:
            raise MissingExtraError(f"ONNX files need {name}, which is not installed: pip install 'wordward[onnx]'")


def _describe(file: Path, run: Run) -> None:
    """Put labels, and how texts are read, into the file."""
    import onnx

    model = onnx.load(file)
    told = {"labels": list(run.labels), "text": asdict(run.text), "words": run.vocabulary.fingerprint}
    onnx.helper.set_model_props(model, {name: json.dumps(value) for name, value in told.items()})
    onnx.checker.check_model(model)
    onnx.save(model, file)


def _compare(file: Path, model: nn.Module, size: int, shown: str) -> None:
    """Refuse a file that gives other probabilities than the model."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(0)
    for shape in TRIED:
        ids = rng.integers(len(SPECIALS), max(size, len(SPECIALS) + 1), shape)
        ids[0, 1:] = PAD  # a text of one word
        with torch.no_grad():
            wanted = model(torch.from_numpy(ids)).numpy()
        found = session.run([OUTPUT], {INPUT: ids})[0]
        if (apart := float(np.abs(np.asarray(found) - wanted).max())) > EQUAL:
            raise RunError(f"{shown} was not written: its probabilities would be up to {apart:.2g} off the run's")
