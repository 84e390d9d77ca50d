"""The parts of training: what a run starts with, one step, epochs of them, and runs of several settings."""
