"""A scikit-learn text classifier: fit, predict, predict_proba, without a training loop."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
import torch

from wordward.config.settings import TrainConfig
from wordward.config.texts import DataSettings
from wordward.datasets import Example, examples_of
from wordward.explain.explainer import explain
from wordward.explain.explanation import Explanation
from wordward.runs import claiming, run_folder
from wordward.runs.opening import load_run
from wordward.runs.run import Run
from wordward.support.console import say
from wordward.support.device import pick_device
from wordward.support.errors import DivergedError, MissingExtraError, SettingError
from wordward.support.files import write
from wordward.train.training import train, with_model

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils import check_consistent_length
    from sklearn.utils.validation import check_is_fitted

    from wordward.sklearn.inputs import labels_of, names_of, plain, texts_of
    from wordward.sklearn.parameters import config_of
except ModuleNotFoundError as error:
    raise MissingExtraError(f"{error}: pip install 'wordward[sklearn]'", name=error.name) from None

__all__ = ["TextClassifier"]
NAME = "TextClassifier"
SOURCE = f"{NAME}.fit"  # what a saved run names as its texts, in the place of a file


@dataclass(eq=False, repr=False)  # scikit-learn has its own
class TextClassifier(ClassifierMixin, BaseEstimator):
    """A text classifier trained with any method; the model is chosen for texts and machine, as by `wordward train`.

    Where a size (`dim`, `hidden`, `head`), a dropout, `kind="lstm"` or `pretrained` is given, it is the LSTM of the
    paper, with 64 numbers a word and 128 units where these are not given. After `fit`, `chosen_` says in a line which
    model was chosen (None where the parameters gave it), `run_` is the trained model as `wordward.load_run` opens it;
    `run_.config.training` has the epochs and the learning rate.

    Args:
        method: A method of `wordward methods`, or a sum such as "iadvt+ivat".
        kind: "convolution", "lstm", or "auto": a small Transformer that is installed, or a convolution.
        epochs: Passes over the texts; None: as many as suit, 30 for an LSTM. So for all others that are None: what
            suits where the model is chosen, else the default of `wordward train`.
        dev_share: Share of the texts that is held out to choose the best epoch.
        verbose: Say what was chosen and show progress, as `wordward train` does; by default nothing is said.
        random_state: A number is the seed, and gives the same model each time.
        epsilon: As all others, the setting of this name of `wordward train`.

    Examples:
        >>> from wordward.sklearn import TextClassifier
        >>> said = {"good": ["warm", "funny", "bright"], "bad": ["dull", "cold", "bland"]}
        >>> texts = [f"a {a} and {b} film" for words in said.values() for a in words for b in words]
        >>> labels = [label for label in said for _ in range(9)]
        >>> small = TextClassifier(dim=8, hidden=8, k=3, epochs=2, device="cpu").fit(texts, labels)
        >>> small.predict_proba(["a warm film"]).shape
        (1, 2)
    """

    method: str = "iadvt"
    _: KW_ONLY
    epsilon: float | None = None
    epsilon_factor: float = 1.0
    k: int | None = 10
    regularizer_weight: float = 1.0
    xi: float = 1.0
    first_step: Literal["alike", "random"] = "alike"
    power_iterations: int = 1
    same_dropout: bool = False
    direction_dropout: float = 0.0
    ascent_steps: int | None = None
    step_size: float | None = None
    metric: Literal["cosine", "euclidean"] = "cosine"
    refresh: int | Literal["auto", "batch", "epoch"] = "auto"
    normalization: Literal["paper", "authors"] = "paper"
    min_candidate_count: int | None = None
    kind: Literal["auto", "lstm", "convolution"] = "auto"
    dim: int | None = None
    hidden: int | None = None
    head: int | None = None
    word_dropout: float | None = None
    head_dropout: float | None = None
    rescaled: bool | None = None
    pairs: bool | None = None
    pretrained: str | None = None
    vectors: str | None = None
    tokenizer: Literal["words", "authors", "punctuation", "whitespace", "characters"] | None = None
    lowercase: bool | None = None
    min_documents: int | None = None
    max_vocabulary: int | None = None
    max_length: int | None = None
    unknown: Literal["unk", "drop"] | None = None
    epochs: int | None = None
    patience: int | None = None
    minutes: float | None = None
    batch_size: int = 32
    unlabelled_batch_size: int = 32
    learning_rate: float | None = None
    decay: float | None = None
    schedule: Literal["exponential", "linear"] | None = None
    gradual: bool | None = None
    self_training: bool | None = None
    clip: float | None = None
    averaging: float | None = None
    augment: int | None = None
    augment_edits: tuple[str, ...] | None = None
    criterion: Literal["auto", "error", "macro_f1"] = "auto"
    dev_share: float = 0.1
    split_seed: int | None = None
    precision: Literal["auto", "fp32", "fp16", "bf16"] = "auto"
    device: str = "auto"
    random_state: int | np.random.RandomState | None = 0
    verbose: bool = False

    def fit(self, X: Any, y: Any, *, unlabelled: Any = None) -> "TextClassifier":  # noqa: N803
        """Learn from texts and their labels; `unlabelled`: more texts, for vat, ivat and the other KL methods."""
        texts = texts_of(X, filled=True)
        labels = labels_of(y)
        check_consistent_length(texts, labels)
        classes, numbers = np.unique(labels, return_inverse=True)
        names = names_of(classes)
        given = {"train": examples_of(zip(texts, (names[n] for n in numbers), strict=True), "X")}
        if unlabelled is not None:
            more = texts_of(unlabelled, "unlabelled", filled=True)
            given["unlabelled"] = examples_of(more, "unlabelled", labelled=False)
        sources = dict.fromkeys(given, SOURCE)
        shares = {"dev_share": plain(self.dev_share), "split_seed": plain(self.split_seed)}
        with TemporaryDirectory(prefix="wordward-") as created, _fork_rng(self.device):
            folder = Path(created)
            config = config_of(self.get_params(deep=False), DataSettings(**sources, **shares))
            config, self.chosen_ = with_model(config, given, quiet=True)
            if self.chosen_ and self.verbose:
                say(self.chosen_)
            self._train(config, folder / "run", given)
            self._files = _files(folder / "run", folder / NAME)
            self.run_ = _opened(folder / NAME, self.device)
        self.classes_ = classes
        return self

    def predict_proba(self, X: Any) -> np.ndarray:  # noqa: N803
        """Probabilities (texts, classes) in the order of `classes_`."""
        check_is_fitted(self)
        corpus = self.run_.encode(self.run_.examples(texts_of(X)), labelled=False)
        found = np.stack(self.run_.probabilities(corpus)).astype(np.float64)
        columns = [self.run_.labels.index(name) for name in names_of(self.classes_)]
        return found[:, columns] / found.sum(1, keepdims=True)  # single precision sums to 1 but for 1e-7

    def predict(self, X: Any) -> np.ndarray:  # noqa: N803
        """The likeliest class of each text."""
        likeliest = self.predict_proba(X).argmax(1)  # first: it refuses a model that is not fitted
        return self.classes_[likeliest]

    def explain(self, texts: Any, labels: Any = None, *, method: str = "iadvt", top: int = 3) -> list[Explanation]:
        """The words that pull each word of each text, where the loss of its label (else of the prediction) rises."""
        check_is_fitted(self)
        given = texts_of(texts, "texts")
        names = dict(zip(self.classes_.tolist(), names_of(self.classes_), strict=True))
        true = [None] * len(given) if labels is None else labels_of(labels).tolist()
        check_consistent_length(given, true)
        if strange := [label for label in dict.fromkeys(true) if label not in {None, *names}]:
            raise SettingError("labels", f"expected labels among {self.classes_.tolist()}; got {strange}")
        examples = [Example(text, names.get(label)) for text, label in zip(given, true, strict=True)]
        with TemporaryDirectory(prefix="wordward-") as place:  # for what is read of the training texts' words
            self._write(Path(place), weights=False)
            return explain(replace(self.run_, folder=Path(place)), examples, method=method, top=top)

    def save(self, out: str | Path, *, force: bool = False) -> Path:
        """Write a run folder, for `wordward explain`, `attack`, `report`, `serve` and `wordward.load_run`."""
        check_is_fitted(self, "_files")
        claiming.check_free(place := Path(out), force=force, resumable=False)
        with claiming.held(place):
            claiming.create(place, force=force)
            self._write(place)
        return place

    def _write(self, place: Path, *, weights: bool = True) -> None:
        """Write the files of the run, with or without the model itself."""
        for name, content in self._files.items():
            if weights or not (name == run_folder.WEIGHTS or name.startswith(run_folder.TRANSFORMER)):
                (place / name).parent.mkdir(exist_ok=True)
                write(place / name, content)

    def _train(self, config: TrainConfig, folder: Path, given: dict[str, list[Example]]) -> None:
        """As `wordward train`, on texts in memory."""
        try:
            result = train(config, folder, quiet=not self.verbose, **given)  # type: ignore[arg-type]
        except DivergedError:
            raise DivergedError(
                "the loss is not finite: lower `learning_rate` or `epsilon`, or use `precision='fp32'`"
            ) from None
        if result["stopped"]:
            raise KeyboardInterrupt

    def __sklearn_tags__(self) -> Any:
        """Texts, not rows of numbers."""
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.one_d_array = tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """Parameters and the files of a run folder: it opens on another device, too."""
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name != "run_"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Open the run again."""
        super().__setstate__(state)
        if "_files" in state:
            device = "cpu" if self.device == "cpu" else "auto"
            with TemporaryDirectory(prefix="wordward-") as place, _fork_rng(device):
                self.run_ = _opened(self.save(Path(place) / NAME), device)


@contextmanager
def _fork_rng(name: str) -> Iterator[None]:
    """Leave the caller's random states as if nothing had been drawn here."""
    device = pick_device(name)
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        yield


def _files(folder: Path, place: Path) -> dict[str, bytes]:
    """The files of a finished run, without those needed only to resume it."""
    place.mkdir()
    run_folder.copy_run(folder, place)
    files = sorted(path for path in place.rglob("*") if path.is_file())
    return {file.relative_to(place).as_posix(): file.read_bytes() for file in files}


def _opened(folder: Path, device: str) -> Run:
    """The run, with all that it reads from its folder when asked, which is about to go."""
    run = load_run(folder, device=device)
    assert run.learnt is not None
    return run
