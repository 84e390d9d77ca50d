"""What may be set on the methods of a Hugging Face Trainer."""

from dataclasses import dataclass, field
from typing import Literal

from wordward.perturbation.settings import MethodSettings
from wordward.support.rules import COUNT, check


@dataclass(frozen=True, kw_only=True)
class AdversarialSettings(MethodSettings):
    """The settings of an AdversarialTrainer; `HfArgumentParser` reads them beside `TrainingArguments`.

    Args:
        method: A method, a sum such as "iadvt+ivat", or "baseline".
        average: Of KL over tags; "tokens" is what the label loss does.
        whole_words: Point only to word pieces that are words by themselves.
        unlabelled_batch_size: Unlabelled texts per step; by default as many as labelled ones.
        embedding: Name of the module that reads the ids; found where not given.
        site: Name of the module after which r is added; the embedding by default.
        epsilon: As the other settings, see `wordward.MethodSettings`.

    Raises:
        SettingError: If a value cannot be used.

    Examples:
        >>> from wordward.hf import AdversarialSettings
        >>> AdversarialSettings(method="iadvt+ivat", epsilon=0.5).k
        10
    """

    method: str = field(default="iadvt", metadata={"help": "a method, a sum (iadvt+ivat), or baseline"})
    # HfArgumentParser takes one type an argument: a number of steps may come as text.
    refresh: str = field(default="auto", metadata={"help": "auto, batch, epoch or a number of steps"})  # type: ignore[assignment]
    average: Literal["sentences", "tokens"] = field(
        default="tokens", metadata={"help": "of KL over tags; tokens is what the label loss does"}
    )
    whole_words: bool = field(default=True, metadata={"help": "point to pieces that are words by themselves"})
    unlabelled_batch_size: int | None = field(default=None, metadata={"help": "as the labelled by default"})
    embedding: str | None = field(default=None, metadata={"help": "name of the module that reads the ids"})
    site: str | None = field(default=None, metadata={"help": "name of the module after which r is added"})

    def __post_init__(self) -> None:
        """Refuse what no method can use."""
        if isinstance(self.refresh, str) and self.refresh.isdigit():
            object.__setattr__(self, "refresh", int(self.refresh))
        super().__post_init__()
        if self.unlabelled_batch_size is not None:
            check(self, COUNT, "unlabelled_batch_size")
