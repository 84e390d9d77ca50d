"""For users of transformers: a Trainer with any method of the paper, explanations of and attacks on a model
with its tokenizer."""

from typing import TYPE_CHECKING, Any

from wordward.hf.attacker import attack
from wordward.hf.explainer import explain
from wordward.hf.pushing import push
from wordward.hf.settings import AdversarialSettings

if TYPE_CHECKING:
    from wordward.hf.trainer import AdversarialTrainer

__all__ = ["AdversarialSettings", "AdversarialTrainer", "attack", "explain", "push"]


def __getattr__(name: str) -> Any:
    """Import the Trainer when it is first used: it takes seconds, which `wordward push` need not wait for."""
    if name == "AdversarialTrainer":
        from wordward.hf.trainer import AdversarialTrainer

        return AdversarialTrainer
    raise AttributeError(f"module 'wordward.hf' has no attribute {name!r}")
