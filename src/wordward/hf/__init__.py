"""For users of transformers: a Trainer with any method of the paper, and explanations of a model and tokenizer."""
