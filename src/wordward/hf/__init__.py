"""For users of transformers: a Trainer with any method of the paper, explanations of and attacks on a model
with its tokenizer."""

from wordward.hf.attacker import attack
from wordward.hf.explainer import explain
from wordward.hf.pushing import push
from wordward.hf.settings import AdversarialSettings
from wordward.hf.trainer import AdversarialTrainer

__all__ = ["AdversarialSettings", "AdversarialTrainer", "attack", "explain", "push"]
