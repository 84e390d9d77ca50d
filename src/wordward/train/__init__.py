"""From settings to a run: classifiers and taggers, language models, fine-tuning, sweeps."""
