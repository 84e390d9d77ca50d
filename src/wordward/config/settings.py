"""Every setting of a run, as frozen dataclasses."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import tyro
from tyro.constructors import PrimitiveConstructorSpec

from wordward.perturbation.recipes import RECIPES, UNMOVED, MethodSettings, parse_methods
from wordward.support import rules
from wordward.support.errors import SettingError

OURS = {"epochs": 30, "patience": 5, "learning_rate": 0.001, "clip": 5.0}  # where none is given
TRANSFORMER = OURS | {"epochs": 3, "learning_rate": 2e-5, "clip": 1.0}
READING = {"epochs": 50}

OPEN: Any = None  # a number that is left open until `filled`: in a resumed run, or with a Transformer, it is another
if TYPE_CHECKING:  # what trains has the numbers
    OpenInt = int
    OpenFloat = float
else:
    OpenInt, OpenFloat = int | None, float | None


def _shown(default: float) -> Any:
    """How `--help` shows the default of a number that is left open."""
    return tyro.conf.arg(help_behavior_hint=lambda text: f"(default: {default if text == 'None' else text})")


# A column, tag or label: the word None is a name like any other, where it means nothing to a file or a number.
NAME = PrimitiveConstructorSpec[Any](
    nargs=1,
    metavar="STR",
    instance_from_str=lambda words: words[0],
    is_instance=lambda value: value is None or isinstance(value, str),
    str_from_instance=lambda value: [str(value)],
)
Name = Annotated[str | None, NAME]
File = Annotated[str | None, tyro.conf.arg(metavar="FILE")]
FileFormat = Literal["auto", "csv", "tsv", "jsonl", "conll", "txt", "parquet", "excel"]


@dataclass(frozen=True)
class DataSettings:
    """Where texts come from: CSV, TSV, JSON Lines, CoNLL, plain text, Parquet, Excel or folders, also .gz and .xz.

    Examples:
        >>> from wordward.config import DataSettings
        >>> DataSettings("train.csv", test="test.csv").dev_share
        0.1
    """

    train: Annotated[str, tyro.conf.arg(metavar="FILE")] = ""
    """Labelled texts to learn from; - is standard input, here and wherever a file of texts is read."""
    corpus: Annotated[str | None, tyro.conf.arg(metavar="NAME|FILE")] = None
    """Instead of files: a corpus of `wordward data list`, or a file that `wordward data pack` wrote."""
    dev: File = None
    """Labelled texts that choose the best epoch; by default a share of the training texts."""
    test: File = None
    """Labelled texts that `python -m experiments reproduce` scores at the end; training never reads them."""
    unlabelled: File = None
    """Texts without labels, for the methods that `wordward methods` marks with unlab., such as vat and ivat; a
    corpus's own are used as well. In a table the text column is read, as in the labelled texts."""
    limit: int | None = None
    """Use at most this many texts of each kind, to try things out; every label is kept where they suffice."""
    text_column: str = "text"
    """Name of the column that holds the text (or its number, from 0, in a file without a header); review.text is
    the field text inside the field review of JSON or Parquet."""
    label_column: str = "label"
    """Name of the column that holds the label (or its number, if the text column is given by number too)."""
    tag_column: int = -1
    """Column of the tag in a CoNLL file, from 0; -1 is the last."""
    format: FileFormat = "auto"
    """File format; by default recognised by the file name."""
    skip_empty: bool = False
    """Leave out texts that are empty, which are refused otherwise."""
    dev_share: float = 0.1
    """Share of the training texts held out where no dev file is given."""
    split_seed: int | None = None
    """Seed for drawing that share, to hold out the same texts whatever the training seed; by default that seed."""

    def __post_init__(self) -> None:
        """Refuse what cannot be used."""
        rules.check(self, rules.COUNT_OR_NONE, "limit")
        rules.check(self, rules.SHARE, "dev_share")
        rules.check(self, rules.NOT_NEGATIVE_OR_NONE, "split_seed")
        if len(incoming := [name for name in ("train", "dev", "unlabelled") if getattr(self, name) == "-"]) > 1:
            raise SettingError(
                incoming[1],
                f"standard input holds one file, but `{'` and `'.join(incoming)}` are both -: name a file",
            )
        if beside := [name for name in ("train", "dev") if self.corpus and getattr(self, name)]:
            raise SettingError(
                "corpus",
                f"a corpus has its own labelled texts, but `{'`, `'.join(beside)}` came with `corpus`: "
                "leave that out",
            )


@dataclass(frozen=True)
class TextSettings:
    """How texts become word ids.

    Examples:
        >>> from wordward.config import TextSettings
        >>> TextSettings(lowercase=True).tokenizer
        'words'
    """

    tokenizer: Literal["words", "authors", "punctuation", "whitespace", "characters"] = "words"
    """words: runs of letters and digits; authors: the same with <br /> kept as "br"; punctuation: marks are
    tokens too; whitespace: for text that is already tokenised; characters: words, but each character of Chinese,
    Japanese, Thai and other scripts without spaces, which words becomes where training texts are written so."""
    lowercase: bool = False
    """Convert texts to lower case."""
    min_documents: int = 2
    """Number of texts a word must occur in to enter the vocabulary."""
    max_vocabulary: int | None = None
    """Keep only this many words, the most frequent; all by default."""
    max_length: int | None = None
    """Read only this many words of a text, or word pieces for a Hugging Face model; by default all it can read."""
    unknown: Literal["unk", "drop"] = "unk"
    """Unknown words become <unk>, or are left out as in the authors' code (never for tagging)."""

    def __post_init__(self) -> None:
        """Refuse what cannot be used."""
        rules.check(self, rules.COUNT, "min_documents")
        rules.check(self, rules.COUNT_OR_NONE, "max_vocabulary", "max_length")


@dataclass(frozen=True)
class ModelSettings:
    """Which model, and its sizes; the sizes are by default the paper's for sentiment (SEC).

    Examples:
        >>> from wordward.config import ModelSettings
        >>> ModelSettings(dim=64, hidden=128).head
        30
    """

    kind: Literal["auto", "lstm", "convolution"] = "auto"
    """lstm: the paper's model. convolution: phrases of up to three words beside what each word speaks for, the best
    of our own on few texts; labels only. auto: lstm if any size, `pretrained` or a corpus is given; else what suits
    texts and machine: a small Transformer that is installed, or convolution (for tags: lstm), each with settings that
    suit, where they are not given; the choice is shown."""
    dim: int = 256
    """Length of a word vector."""
    hidden: int = 1024
    """LSTM state size, in each direction; filters of each width of a convolution."""
    head: int = 30
    """Hidden units of the LSTM's feed-forward net."""
    word_dropout: float = 0.5
    """Dropout on word vectors."""
    head_dropout: float = 0.5
    """Dropout inside the feed-forward net."""
    rescaled: bool = False
    """Restore the scale of a language model's vectors, kept at unit deviation, after dropout instead of folding it
    into the LSTM's weights: training is slower, but more stable from a large language model."""

    def __post_init__(self) -> None:
        """Refuse what cannot be used."""
        rules.check(self, rules.COUNT, "dim", "hidden", "head")
        rules.check(self, rules.DROPOUT, "word_dropout", "head_dropout")


@dataclass(frozen=True)
class TrainingSettings:
    """How the model is trained; the defaults are the paper's.

    Examples:
        >>> from wordward.config import TrainingSettings
        >>> TrainingSettings(epochs=3, device="cpu").batch_size
        32
    """

    epochs: Annotated[OpenInt, _shown(OURS["epochs"])] = OPEN
    """Maximum number of passes over the training texts; 3 by default for a Hugging Face model."""
    patience: Annotated[OpenInt, _shown(OURS["patience"])] = OPEN
    """Epochs without a better dev score before stopping."""
    minutes: float | None = None
    """Stop after this many minutes of training, in the middle of an epoch if need be, and score dev once more."""
    batch_size: int = 32
    """Labelled texts per step."""
    unlabelled_batch_size: int = 32
    """Texts per step for the KL methods, drawn from training and unlabelled texts."""
    learning_rate: Annotated[OpenFloat, _shown(OURS["learning_rate"])] = OPEN
    """Adam's, at the first step; for a Hugging Face model 2e-5 by default, reached after a tenth of the steps."""
    decay: float = 0.9998
    """Factor applied to the learning rate at each step; a Hugging Face model's falls linearly to zero instead."""
    schedule: Literal["exponential", "linear"] = "exponential"
    """How the learning rate changes: by `decay` at each step; or rising over a twentieth of all steps, then falling
    linearly to zero."""
    gradual: bool = False
    """Let a method's loss count for as much as the model has learnt: for nothing while it is at chance, in full when
    its label loss is zero; in between 1 - loss / entropy of the labels. So no method keeps a model from starting.
    On where wordward chooses the model."""
    self_training: bool = False
    """Let the KL methods (vat, ivat) of a classifier compare with what the model makes of a text without dropout,
    balanced so that labels are as frequent as in the training texts, and sharpened: from few labelled and many
    unlabelled texts it learns more, if both are drawn alike. On where wordward chooses the model and there are
    unlabelled texts."""
    clip: Annotated[OpenFloat, _shown(OURS["clip"])] = OPEN
    """Clip gradients to this norm; 1 by default for a Hugging Face model."""
    averaging: float = 0.0
    """Score and keep a moving average of the weights with this decay (Miyato et al.: 0.999); 0: no averaging."""
    criterion: Literal["auto", "error", "macro_f1", "f0.5", "entity_f1"] = "auto"
    """What chooses the best epoch; auto: error rate; for tagging F0.5 of the positive tag; where none is named
    entity_f1 (exact spans) if tags are B-PER, I-PER, O and the like, or macro_f1 if there are more than two."""
    positive: Annotated[Name, tyro.conf.arg(metavar="TAG")] = None
    """The tag whose F0.5 counts in tagging; by default the rarer of two tags."""
    min_candidate_count: int = 1
    """How often a word must occur in the training texts for perturbations to point at it."""
    checkpoint_steps: int | None = None
    """Also write a checkpoint every this many steps; by default only after each epoch."""
    precision: Literal["auto", "fp32", "fp16", "bf16"] = "auto"
    """Precision to compute in; auto: fp16 (the LSTM is up to four times as fast) on a CUDA GPU, fp32 elsewhere."""
    device: str = "auto"
    """cpu, cuda or mps; auto takes the fastest available."""
    seed: int = 0
    """Random seed."""

    def __post_init__(self) -> None:
        """Refuse what cannot be used."""
        rules.check(self, rules.COUNT, *_given(self, "epochs", "patience"))
        rules.check(self, rules.COUNT, "batch_size", "unlabelled_batch_size", "min_candidate_count")
        rules.check(self, rules.COUNT_OR_NONE, "checkpoint_steps")
        rules.check(self, rules.POSITIVE_OR_NONE, "minutes")
        rules.check(self, rules.POSITIVE, *_given(self, "learning_rate", "clip"))
        rules.check(self, rules.FACTOR, "decay")
        rules.check(self, rules.DROPOUT, "averaging")
        rules.check(self, rules.SEED, "seed")


@dataclass(frozen=True)
class FineTuningSettings:
    """How a Hugging Face model is fine-tuned, beside what is set for any model.

    Examples:
        >>> from wordward.config import FineTuningSettings, TrainConfig
        >>> TrainConfig(transformer="all-MiniLM-L6-v2", finetuning=FineTuningSettings(lora=8)).finetuning.lora
        8
    """

    new_labels: bool = False
    """Train for the labels of the texts, with a new head where they are not as many as the model's own. Otherwise a
    model that is a classifier (or tagger) keeps its labels, and texts with others are refused."""
    lora: Annotated[int | None, tyro.conf.arg(metavar="RANK")] = None
    """Train only matrices of this rank beside the model's layers, and its head (LoRA; needs peft). They are added to
    the weights in the end, so that the model is loaded like any other."""
    gradient_checkpointing: bool = False
    """Compute the insides of layers again for each backward pass: less memory, a third more time."""

    def __post_init__(self) -> None:
        """Refuse what cannot be used."""
        rules.check(self, rules.COUNT_OR_NONE, "lora")


@dataclass(frozen=True)
class TrainConfig:
    """Everything that decides what `wordward train` computes.

    Examples:
        >>> from wordward.config import DataSettings, TrainConfig
        >>> TrainConfig("ivat", data=DataSettings("train.csv", unlabelled="more.txt")).perturbation.k
        10
    """

    method: Annotated[str, tyro.conf.arg(metavar="METHOD")] = "iadvt"
    """A method of `wordward methods`, or a sum such as iadvt+ivat."""
    task: Literal["auto", "classify", "tag"] = "auto"
    """A label per text or a tag per token; auto: tag where the data is CoNLL."""
    transformer: Annotated[str | None, tyro.conf.arg(name="model", metavar="FOLDER|NAME")] = None
    """A Hugging Face model to fine-tune instead of training our own: its folder, or its name on the hub."""
    pretrained: Annotated[str | None, tyro.conf.arg(metavar="RUN")] = None
    """Run folder of `wordward pretrain` to start from."""
    vectors: File = None
    """Word vectors to start from: a file in word2vec or GloVe text format, also .gz and .xz, or the folder of a BERT,
    whose input table is taken."""
    data: DataSettings = field(default_factory=DataSettings)
    text: TextSettings = field(default_factory=TextSettings)
    model: ModelSettings = field(default_factory=ModelSettings)
    perturbation: MethodSettings = field(default_factory=MethodSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)
    finetuning: FineTuningSettings = field(default_factory=FineTuningSettings)

    def __post_init__(self) -> None:
        """Refuse, before anything is read, what cannot be trained."""
        methods = parse_methods(self.method, self.perturbation)
        if self.data.unlabelled and all(method.recipe.needs_labels for method in methods):
            takers = ", ".join(name for name, recipe in (RECIPES | UNMOVED).items() if not recipe.needs_labels)
            raise SettingError(
                "unlabelled", f"unlabelled texts are used only by {takers}, but the method is {self.method}"
            )
        if self.pretrained and self.vectors:
            raise SettingError("pretrained", "give either `pretrained` or `vectors` to start from, not both")
        if self.pretrained and self.model.kind == "convolution":
            raise SettingError(
                "pretrained", "a language model starts an LSTM, but kind is convolution: set `kind='lstm'`"
            )
        if self.transformer is not None:
            self._fit_transformer(self.transformer)
        elif changed := _changed(self.finetuning, FineTuningSettings()):
            raise SettingError(
                changed[0], f"`{changed[0]}` is for a Hugging Face model: give its folder or name as `transformer`"
            )

    def _fit_transformer(self, source: str) -> None:
        """A Transformer's defaults where no value is given; settings that only our own models have are refused."""
        if not source.strip():
            raise SettingError("transformer", "transformer must be a folder or a name on the hub, but is empty")
        text, training = TextSettings(max_length=self.text.max_length), TrainingSettings()
        ours = [name for name in ("pretrained", "vectors") if getattr(self, name) is not None]
        ours += _changed(self.text, text) + _changed(self.model, ModelSettings())
        ours += [n for n in ("decay", "averaging", "min_candidate_count") if n in _changed(self.training, training)]
        if ours:
            names = "`, `".join(ours)
            raise SettingError(
                "transformer",
                f"a Hugging Face model has its own vocabulary and sizes, but `{names}` came with "
                f"`transformer`: leave that out{' (a `preset` sets sizes, too)' if 'dim' in ours else ''}",
            )
        object.__setattr__(self, "training", filled(self.training, TRANSFORMER))


Settings = TypeVar("Settings", bound="TrainingSettings | PretrainConfig")


def filled(settings: Settings, defaults: Mapping[str, float] | None = None) -> Settings:
    """The settings with their defaults, or these, where no number is given."""
    defaults = defaults or (READING if isinstance(settings, PretrainConfig) else OURS)
    return replace(settings, **{name: defaults[name] for name in defaults if name not in _given(settings, *defaults)})


def _given(settings: Any, *names: str) -> dict[str, Any]:
    """Those of the named settings that are not left open."""
    return {name: value for name in names if (value := getattr(settings, name)) is not OPEN}


def given_of(settings: Any, *names: str) -> dict[str, Any]:
    """Those of the named settings that were given, to change in a resumed run; device auto counts as not given."""
    return {name: value for name, value in _given(settings, *names).items() if value != "auto"}


def _changed(settings: Any, default: Any) -> list[str]:
    return [item.name for item in fields(settings) if getattr(settings, item.name) != getattr(default, item.name)]


@dataclass(frozen=True)
class PretrainConfig:
    """Everything that decides what `wordward pretrain` computes.

    Examples:
        >>> from wordward.config import PretrainConfig
        >>> PretrainConfig(("reviews.txt",), minutes=10).streams
        32
    """

    texts: Annotated[tuple[str, ...], tyro.conf.arg(metavar="[FILE ...]", help_behavior_hint="")] = ()
    """Files of text, labelled or not; labels are not read."""
    corpus: Annotated[str | None, tyro.conf.arg(metavar="NAME|FILE")] = None
    """Instead of files, or in addition: training and unlabelled texts of a corpus, as in `wordward train`."""
    limit: int | None = None
    """Use at most this many texts of each kind, to try things out."""
    vectors: File = None
    """Word vectors to start from, in word2vec or GloVe text format, also .gz and .xz."""
    text_column: str = "text"
    """Name of the column that holds the text."""
    format: FileFormat = "auto"
    """File format; by default recognised by the file name."""
    skip_empty: bool = False
    """Leave out texts that are empty, which are refused otherwise."""
    epochs: Annotated[OpenInt, _shown(READING["epochs"])] = OPEN
    """Maximum number of passes over the texts."""
    minutes: float | None = None
    """Stop after this many minutes, in the middle of an epoch if need be."""
    shuffle: bool = True
    """Read the texts in a new random order each epoch; otherwise always as they are given, so that texts that belong
    together, such as reviews of one film, follow each other."""
    schedule: Literal["constant", "linear"] = "constant"
    """Learning rate: constant, or falling linearly to zero over all epochs (better in short runs)."""
    streams: int = 32
    """Streams of text read in parallel: the batch size."""
    window: int = 100
    """Words between two updates (truncated back-propagation through time)."""
    learning_rate: float = 0.001
    """Adam's, at the first step."""
    clip: float = 5.0
    """Clip gradients to this norm."""
    held_out_share: float = 0.02
    """Share of the texts held out to choose the best epoch."""
    precision: Literal["auto", "fp32", "fp16", "bf16"] = "auto"
    """Precision to compute in; auto: fp16 (the LSTM is up to four times as fast) on a CUDA GPU, fp32 elsewhere."""
    device: str = "auto"
    """cpu, cuda or mps; auto takes the fastest available."""
    seed: int = 0
    """Random seed."""
    text: TextSettings = field(default_factory=TextSettings)
    model: ModelSettings = field(default_factory=ModelSettings)

    def __post_init__(self) -> None:
        """Refuse what cannot be used."""
        rules.check(self, rules.COUNT, *_given(self, "epochs"), "streams", "window")
        rules.check(self, rules.COUNT_OR_NONE, "limit")
        rules.check(self, rules.POSITIVE, "learning_rate", "clip")
        rules.check(self, rules.POSITIVE_OR_NONE, "minutes")
        rules.check(self, rules.SHARE, "held_out_share")
        rules.check(self, rules.SEED, "seed")


PRESETS: dict[str, dict[str, Any]] = {
    "sec": {"kind": "lstm", "dim": 256, "hidden": 1024, "head": 30},
    "cac": {"kind": "lstm", "dim": 256, "hidden": 1024, "head": 128},
    "ged": {"kind": "lstm", "dim": 300, "hidden": 200, "head": 50},
    "small": {"kind": "lstm", "dim": 64, "hidden": 128, "head": 30},
}
