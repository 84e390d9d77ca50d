"""From settings to a run: classifiers and taggers, language models, fine-tuning, sweeps."""

from wordward.train.pretraining import pretrain
from wordward.train.training import train

__all__ = ["pretrain", "train"]
