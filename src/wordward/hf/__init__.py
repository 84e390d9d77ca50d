"""For users of transformers: a Trainer with any method of the paper, and explanations of a model and tokenizer."""

from wordward.hf.explainer import explain
from wordward.hf.settings import AdversarialSettings
from wordward.hf.trainer import AdversarialTrainer

__all__ = ["AdversarialSettings", "AdversarialTrainer", "explain"]
