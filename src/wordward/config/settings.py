"""Every setting of `wordward train`, put together from its parts."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, Literal, TypeVar

import tyro

from wordward.config.attack import kinds_of
from wordward.config.fields import OPEN, File, Name, OpenFloat, OpenInt, Tracker, given, shown
from wordward.config.model import ModelSettings
from wordward.config.pretraining import READING, PretrainConfig
from wordward.config.texts import DataSettings, TextSettings
from wordward.perturbation.recipes import RECIPES, UNMOVED, parse_methods
from wordward.perturbation.settings import MethodSettings
from wordward.support import rules
from wordward.support.errors import SettingError
from wordward.support.given_settings import TracksGiven, given_names, mark_given

OURS = {"epochs": 30, "patience": 5, "learning_rate": 0.001, "clip": 5.0}  # where none is given
TRANSFORMER = {"clip": 1.0}  # its epochs and learning rate are chosen for the texts and its size


@dataclass(frozen=True)
class TrainingSettings(TracksGiven):
    """How the model is trained; the defaults are the paper's.

    Examples:
        >>> from wordward.config import TrainingSettings
        >>> TrainingSettings(epochs=3, device="cpu").batch_size
        32
    """

    epochs: Annotated[OpenInt, shown(OURS["epochs"])] = OPEN
    """Maximum number of passes over the training texts; by default as many as suit the number of texts for a Hugging
    Face model, and where wordward chooses the model."""
    patience: Annotated[OpenInt, shown(OURS["patience"])] = OPEN
    """Epochs without a better dev score before stopping; by default as many as `epochs` for a Hugging Face model, and
    where wordward chooses the model."""
    minutes: float | None = None
    """Stop after this many minutes of training, in the middle of an epoch if need be, and score dev once more; with
    more, a resumed run goes on."""
    batch_size: int = 32
    """Labelled texts per step."""
    unlabelled_batch_size: int = 32
    """Texts per step for the KL methods, drawn from training and unlabelled texts."""
    learning_rate: Annotated[OpenFloat, shown(OURS["learning_rate"])] = OPEN
    """Adam's, at the first step; for a Hugging Face model after a tenth of the steps, and by default 1e-4 (for tags
    and many labels 2e-4), a fifth of that for one as wide as BERT-base, more with `lora`, 2e-5 for one that keeps
    its labels."""
    decay: float = 0.9998
    """Factor applied to the learning rate at each step; a Hugging Face model's falls linearly to zero instead."""
    schedule: Literal["exponential", "linear"] = "exponential"
    """How the learning rate changes: by `decay` at each step; or rising over a twentieth of all steps, then falling
    linearly to zero: always so for a Hugging Face model, and where wordward chooses the model unless `decay` is
    given."""
    gradual: bool = False
    """Let a method's loss count for as much as the model has learnt: for nothing while it is at chance, in full when
    its label loss is zero; in between 1 - loss / entropy of the labels. So no method keeps a model from starting.
    On where wordward chooses a convolution or a Bi-LSTM; off by default for a Transformer."""
    self_training: bool = False
    """Let the KL methods (vat, ivat) of a classifier compare with what the model makes of a text without dropout,
    balanced so that labels are as frequent as in the training texts, and sharpened: from few labelled and many
    unlabelled texts it learns more, if both are drawn alike. A Hugging Face model learns from the labels alone for
    half of the steps, its learning rate falling to zero, and in the other half, the rate rising and falling again,
    from what it made of the texts at the end of the first, not sharpened; a tagger in such halves, too, compared with
    itself. On where wordward chooses the model and there are unlabelled texts, or tags for a Hugging Face model."""
    clip: Annotated[OpenFloat, shown(OURS["clip"])] = OPEN
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
    augment: Annotated[int | None, tyro.conf.arg(metavar="TEXTS")] = None
    """Let each epoch also learn from this many training texts of a classifier, drawn anew: those with which an attack
    fools the model so far as the attack left them, with their true label, the others, and all those of the first
    epoch, as they are."""
    augment_edits: Annotated[tuple[str, ...] | None, tyro.conf.arg(metavar="KIND ...")] = None
    """Kinds of edits of that attack, as `edits` of `wordward attack`: typo,homoglyph and so on, or all; by default
    swap,typo."""
    checkpoint_steps: int | None = None
    """Also write a checkpoint every this many steps; by default only after each epoch."""
    precision: Literal["auto", "fp32", "fp16", "bf16"] = "auto"
    """Precision to compute in; auto: fp16 (the LSTM is up to four times as fast) on a CUDA GPU, fp32 elsewhere."""
    report_to: Tracker = None
    """Also tell this tracker the settings and the metrics of each epoch; its package must be installed. TensorBoard's
    files are in the run folder."""
    device: str = "auto"
    """cpu, cuda or mps; auto takes the fastest available."""
    seed: int = 0
    """Random seed."""

    def __post_init__(self) -> None:
        """Refuse what cannot be used."""
        rules.check_choices(self)
        rules.check(self, rules.COUNT, *given(self, "epochs", "patience"))
        rules.check(self, rules.COUNT, "batch_size", "unlabelled_batch_size", "min_candidate_count")
        rules.check(self, rules.COUNT_OR_NONE, "augment", "checkpoint_steps")
        rules.check(self, rules.POSITIVE_OR_NONE, "minutes")
        rules.check(self, rules.POSITIVE, *given(self, "learning_rate", "clip"))
        rules.check(self, rules.FACTOR, "decay")
        rules.check(self, rules.DROPOUT, "averaging")
        rules.check(self, rules.SEED, "seed")
        if self.schedule == "linear" and self.decay != type(self).decay:
            raise SettingError(
                "decay",
                f"`decay` is the factor of the exponential schedule, but is {self.decay} with `schedule='linear'`: "
                "leave one of them out",
            )
        if self.augment_edits is not None:
            object.__setattr__(self, "augment_edits", kinds_of(self.augment_edits, "augment_edits"))
            if self.augment is None:
                raise SettingError(
                    "augment", "`augment_edits` says what is done to texts of `augment`: give how many there are"
                )


@dataclass(frozen=True)
class FineTuningSettings(TracksGiven):
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
class TrainConfig(TracksGiven):
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
        rules.check_choices(self)
        methods = parse_methods(self.method, self.perturbation)
        if (self.data.unlabelled or self.training.self_training) and all(m.recipe.needs_labels for m in methods):
            name, what = "self_training", "`self_training` is"
            if self.data.unlabelled:
                name, what = "unlabelled", "unlabelled texts are"
            takers = ", ".join(name for name, recipe in (RECIPES | UNMOVED).items() if not recipe.needs_labels)
            raise SettingError(name, f"{what} used only by {takers}, but the method is {self.method}")
        if self.pretrained and self.vectors:
            raise SettingError("pretrained", "give either `pretrained` or `vectors` to start from, not both")
        if self.pretrained and self.model.kind in ("convolution", "spelling"):
            raise SettingError(
                "pretrained", f"a language model starts an LSTM, but kind is {self.model.kind}: set `kind='lstm'`"
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
        training = replace(filled(self.training, TRANSFORMER), schedule="linear")  # as it is fine-tuned
        object.__setattr__(self, "training", mark_given(training, given_names(self.training)))


def without_unused(values: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a run folder, by name, but for those that it did not use: older versions let them stand."""
    methods = parse_methods(values.get("method", TrainConfig.method))
    unused = {"decay"} if values.get("schedule") == "linear" else set()
    unused |= {"self_training"} if all(method.recipe.needs_labels for method in methods) else set()
    return {name: value for name, value in values.items() if name not in unused}


Settings = TypeVar("Settings", bound="TrainingSettings | PretrainConfig")


def filled(settings: Settings, defaults: Mapping[str, float] | None = None) -> Settings:
    """The settings with a number where it was left open: of these defaults, else of our own models'."""
    defaults = defaults or (READING if isinstance(settings, PretrainConfig) else OURS)
    return replace(settings, **{name: defaults[name] for name in defaults if name not in given(settings, *defaults)})


def given_of(settings: Any, *names: str) -> dict[str, Any]:
    """Those of the named settings that were given, to change in a resumed run; device auto counts as not given."""
    return {name: value for name, value in given(settings, *names).items() if value != "auto"}


def _changed(settings: Any, default: Any) -> list[str]:
    return [item.name for item in fields(settings) if getattr(settings, item.name) != getattr(default, item.name)]
