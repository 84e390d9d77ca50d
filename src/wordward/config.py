"""Every setting of a run, as frozen dataclasses."""

from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, Literal

import tyro

from wordward.recipes import RECIPES, UNMOVED, MethodSettings, parse_methods
from wordward.rules import (
    COUNT,
    COUNT_OR_NONE,
    DROPOUT,
    FACTOR,
    NOT_NEGATIVE,
    NOT_NEGATIVE_OR_NONE,
    POSITIVE,
    POSITIVE_OR_NONE,
    SHARE,
    check,
)


class _DefaultInt(int):
    """A default, told apart from the same number given by the user (see `given`).

    A Transformer's own default, or a resumed run's setting, replaces it but never a number that was given.
    """


class _DefaultFloat(float):
    """As `_DefaultInt`."""


File = Annotated[str | None, tyro.conf.arg(metavar="FILE")]
TRANSFORMER = {"epochs": 3, "learning_rate": 2e-5, "clip": 1.0}  # where none is given


@dataclass(frozen=True)
class DataSettings:
    """Where texts come from: CSV, TSV, JSON Lines, CoNLL, plain text or folders, also .gz and .xz."""

    train: Annotated[str, tyro.conf.arg(metavar="FILE")] = ""
    """Labelled texts to learn from."""
    corpus: Annotated[str | None, tyro.conf.arg(metavar="NAME|FILE")] = None
    """Instead of files: a corpus of `wordward data list`, or a file that `wordward data pack` wrote."""
    dev: File = None
    """Labelled texts that choose the best epoch; by default a share of the training texts."""
    test: File = None
    """Labelled texts that `wordward reproduce` scores at the end; training never reads them."""
    unlabelled: File = None
    """Texts without labels, for the methods that `wordward methods` marks with unlab., such as vat and ivat; beside
    --corpus they come to those that the corpus has. Of a table the column --text-column is read, as of --train."""
    limit: int | None = None
    """Use only so many texts of each kind, with one of every label where as many fit, to try things out."""
    text_column: str = "text"
    """Name of the column that holds the text (or its number, from 0, in a file without header)."""
    label_column: str = "label"
    """Name of the column that holds the label (or its number, where the text's is one too)."""
    tag_column: int = -1
    """Column of the tag in a CoNLL file, from 0; -1 is the last."""
    format: Literal["auto", "csv", "tsv", "jsonl", "conll", "txt"] = "auto"
    """Kind of the files, by default told from the name."""
    dev_share: float = 0.1
    """Share of the training texts held out where no dev file is given."""
    split_seed: int | None = None
    """Start of the random choice of that share, where it is to be the same for every seed; by default the seed."""

    def __post_init__(self) -> None:
        """Refuse what cannot be used."""
        check(self, COUNT_OR_NONE, "limit")
        check(self, SHARE, "dev_share")
        check(self, NOT_NEGATIVE_OR_NONE, "split_seed")
        if beside := [name for name in ("train", "dev") if self.corpus and getattr(self, name)]:
            raise ValueError(
                f"a corpus comes with its labelled texts, but --{', --'.join(beside)} came beside --corpus: leave "
                "that out"
            )


@dataclass(frozen=True)
class TextSettings:
    """How texts become word ids."""

    tokenizer: Literal["words", "authors", "punctuation", "whitespace"] = "words"
    """words: runs of letters and digits; authors: the same with <br /> kept as "br"; punctuation: marks are
    tokens too; whitespace: for text that comes tokenised."""
    lowercase: bool = False
    """Fold case."""
    min_documents: int = 2
    """Texts a word must occur in to be known."""
    max_vocabulary: int | None = None
    """Most frequent words to keep; all by default."""
    max_length: int | None = None
    """Words of a text to read; all by default. Of a Hugging Face model: word pieces; by default all it can."""
    unknown: Literal["unk", "drop"] = "unk"
    """Unknown words become <unk>, or are left out as in the authors' code (never for tagging)."""

    def __post_init__(self) -> None:
        """Refuse what cannot be used."""
        check(self, COUNT, "min_documents")
        check(self, COUNT_OR_NONE, "max_vocabulary", "max_length")


@dataclass(frozen=True)
class ModelSettings:
    """Sizes; the defaults are the paper's for sentiment (SEC)."""

    dim: int = 256
    """Length of a word vector."""
    hidden: int = 1024
    """LSTM state size, in each direction."""
    head: int = 30
    """Hidden units of the feed-forward net."""
    word_dropout: float = 0.5
    """Dropout on word vectors."""
    head_dropout: float = 0.5
    """Dropout inside the feed-forward net."""
    rescaled: bool = False
    """Give vectors of a language model, kept at unit deviation, their scale back after dropout, instead of putting it
    into the LSTM's weights: learns more slowly, and more steadily from a large language model."""

    def __post_init__(self) -> None:
        """Refuse what cannot be used."""
        check(self, COUNT, "dim", "hidden", "head")
        check(self, DROPOUT, "word_dropout", "head_dropout")


@dataclass(frozen=True)
class TrainingSettings:
    """How weights are found; the defaults are the paper's."""

    epochs: int = _DefaultInt(30)
    """Most times to read the training texts; with --model 3 by default."""
    patience: int = _DefaultInt(5)
    """Epochs without a better dev score before stopping."""
    batch_size: int = 32
    """Labelled texts a step."""
    unlabelled_batch_size: int = 32
    """Texts a step for the KL methods, drawn from training and unlabelled texts."""
    learning_rate: float = _DefaultFloat(0.001)
    """Of Adam, at the first step; with --model 2e-5 by default, reached after a tenth of the steps."""
    decay: float = 0.9998
    """Factor on the learning rate at each step; with --model it falls to zero in a straight line instead."""
    clip: float = _DefaultFloat(5.0)
    """Longest gradient; with --model 1 by default."""
    averaging: float = 0.0
    """Score and keep a moving average of the weights, to which each step leaves this share (Miyato et al.: 0.999);
    0: the weights of the epoch's last step."""
    criterion: Literal["auto", "error", "macro_f1", "f0.5"] = "auto"
    """What chooses the best epoch; auto: error rate; for tagging F0.5 of the positive tag, or macro_f1 where
    there are more than two tags and none is named."""
    positive: Annotated[str | None, tyro.conf.arg(metavar="TAG")] = None
    """The tag whose F0.5 counts in tagging; by default the rarer of two tags."""
    min_candidate_count: int = 1
    """Occurrences in the training texts for a word to be pointed at."""
    checkpoint_steps: int | None = None
    """Also keep a checkpoint every so many steps; by default each epoch."""
    precision: Literal["auto", "fp32", "fp16", "bf16"] = "auto"
    """Numbers to compute with; auto: fp16 (the LSTM up to four times as fast) on a CUDA GPU, fp32 elsewhere."""
    device: str = "auto"
    """cpu, cuda or mps; auto takes the fastest there is."""
    seed: int = 0
    """Start of all random choices."""

    def __post_init__(self) -> None:
        """Refuse what cannot be used."""
        counts = "epochs", "patience", "batch_size", "unlabelled_batch_size", "min_candidate_count"
        check(self, COUNT, *counts)
        check(self, COUNT_OR_NONE, "checkpoint_steps")
        check(self, POSITIVE, "learning_rate", "clip")
        check(self, FACTOR, "decay")
        check(self, DROPOUT, "averaging")
        check(self, NOT_NEGATIVE, "seed")


@dataclass(frozen=True)
class TrainConfig:
    """Everything that decides what `wordward train` computes."""

    method: Annotated[str, tyro.conf.arg(metavar="METHOD")] = "iadvt"
    """A method of `wordward methods`, or a sum such as iadvt+ivat."""
    task: Literal["auto", "classify", "tag"] = "auto"
    """A label per text or a tag per token; auto: tag where the data is CoNLL."""
    transformer: Annotated[str | None, tyro.conf.arg(name="model", metavar="FOLDER|NAME")] = None
    """A Hugging Face model to fine-tune instead of training one of ours: its folder, or its name on the hub."""
    pretrained: Annotated[str | None, tyro.conf.arg(metavar="RUN")] = None
    """Run folder of `wordward pretrain` to start from."""
    vectors: File = None
    """Word vectors to start from, in word2vec or GloVe text format, also .gz and .xz."""
    data: DataSettings = field(default_factory=DataSettings)
    text: TextSettings = field(default_factory=TextSettings)
    model: ModelSettings = field(default_factory=ModelSettings)
    perturbation: MethodSettings = field(default_factory=MethodSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)

    def __post_init__(self) -> None:
        """Refuse what cannot be trained before anything is read."""
        methods = parse_methods(self.method, self.perturbation)
        if self.data.unlabelled and not any(method.recipe.objective == "kl" for method in methods):
            takers = ", ".join(
                name for name, recipe in (RECIPES | UNMOVED).items() if recipe.objective == "kl"
            )
            raise ValueError(f"unlabelled texts are for {takers}, but the method is {self.method}")
        if self.pretrained and self.vectors:
            raise ValueError("give either `pretrained` or `vectors` to start from, not both")
        if self.transformer is not None:
            self._fit_transformer(self.transformer)

    def _fit_transformer(self, source: str) -> None:
        """A Transformer's defaults where none is given; what only models of ours have is refused."""
        if not source.strip():
            raise ValueError("--model must be a folder or a name on the hub, but is empty")
        text, training = TextSettings(max_length=self.text.max_length), TrainingSettings()
        ours = [name for name in ("pretrained", "vectors") if getattr(self, name) is not None]
        ours += _changed(self.text, text) + _changed(self.model, ModelSettings())
        ours += [
            n for n in ("decay", "averaging", "min_candidate_count") if n in _changed(self.training, training)
        ]
        if ours:
            flags = ", ".join(f"--{name.replace('_', '-')}" for name in ours)
            raise ValueError(
                f"a Hugging Face model comes with its own words and sizes, but {flags} came beside --model: "
                f"leave that out{' (a --preset sets sizes, too)' if 'dim' in ours else ''}"
            )
        left = {n: v for n, v in TRANSFORMER.items() if not given(getattr(self.training, n))}
        object.__setattr__(self, "training", replace(self.training, **left))


def given(value: Any) -> bool:
    """Whether a setting was given, rather than left as it is by default."""
    return not isinstance(value, _DefaultInt | _DefaultFloat)


def _changed(settings: Any, default: Any) -> list[str]:
    return [
        item.name for item in fields(settings) if getattr(settings, item.name) != getattr(default, item.name)
    ]


@dataclass(frozen=True)
class PretrainConfig:
    """Everything that decides what `wordward pretrain` computes."""

    texts: Annotated[tuple[str, ...], tyro.conf.arg(metavar="[FILE ...]", help_behavior_hint="")] = ()
    """Files of text, labelled or not; labels are not read."""
    corpus: Annotated[str | None, tyro.conf.arg(metavar="NAME|FILE")] = None
    """Instead of files, or beside them: training and unlabelled texts of a corpus, as in `wordward train`."""
    limit: int | None = None
    """Use only so many texts of each kind, to try things out."""
    vectors: File = None
    """Word vectors to start from, in word2vec or GloVe text format, also .gz and .xz."""
    text_column: str = "text"
    """Name of the column that holds the text."""
    format: Literal["auto", "csv", "tsv", "jsonl", "conll", "txt"] = "auto"
    """Kind of the files, by default told from the name."""
    epochs: int = _DefaultInt(50)
    """Most times to read the texts."""
    minutes: float | None = None
    """Stop after so many minutes, in the middle of an epoch if need be."""
    schedule: Literal["constant", "linear"] = "constant"
    """Learning rate: the same throughout, or falling to zero over all epochs (better in short runs)."""
    streams: int = 32
    """Texts read side by side."""
    window: int = 100
    """Words between two updates (truncated back-propagation through time)."""
    learning_rate: float = 0.001
    """Of Adam, at the first step."""
    clip: float = 5.0
    """Longest gradient."""
    held_out_share: float = 0.02
    """Share of the texts that chooses the best epoch."""
    precision: Literal["auto", "fp32", "fp16", "bf16"] = "auto"
    """Numbers to compute with; auto: fp16 (the LSTM up to four times as fast) on a CUDA GPU, fp32 elsewhere."""
    device: str = "auto"
    """cpu, cuda or mps; auto takes the fastest there is."""
    seed: int = 0
    """Start of all random choices."""
    text: TextSettings = field(default_factory=TextSettings)
    model: ModelSettings = field(default_factory=ModelSettings)

    def __post_init__(self) -> None:
        """Refuse what cannot be used."""
        check(self, COUNT, "epochs", "streams", "window")
        check(self, COUNT_OR_NONE, "limit")
        check(self, POSITIVE, "learning_rate", "clip")
        check(self, POSITIVE_OR_NONE, "minutes")
        check(self, SHARE, "held_out_share")
        check(self, NOT_NEGATIVE, "seed")


PRESETS: dict[str, dict[str, Any]] = {
    "sec": {"dim": 256, "hidden": 1024, "head": 30},
    "cac": {"dim": 256, "hidden": 1024, "head": 128},
    "ged": {"dim": 300, "hidden": 200, "head": 50},
    "small": {"dim": 64, "hidden": 128, "head": 30},
}
