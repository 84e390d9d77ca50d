"""Word ids as unequally frequent as those of a language."""

import numpy as np


def draw(words: int, shape: int | tuple[int, ...], *, seed: int = 0) -> np.ndarray:
    """Ranks from 0 to words - 1, each about as often as Zipf and Mandelbrot say."""
    weights = 1 / (np.arange(words) + 2.7)
    return np.random.default_rng(seed).choice(words, shape, p=weights / weights.sum())
