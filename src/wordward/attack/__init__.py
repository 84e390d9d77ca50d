"""Adversarial texts: words swapped until the prediction changes, each change verified."""
