"""Hugging Face models: settings, inputs and word pieces of the Trainer, and runs of the command line."""
