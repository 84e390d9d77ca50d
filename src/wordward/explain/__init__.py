"""Which word of a text is pulled toward which words: finding it, and showing it."""

from wordward.explain.explainer import Explanations, explain
from wordward.explain.explanation import Explanation, Place, Pull
from wordward.explain.swaps import Swap, apply, swaps

__all__ = ["Explanation", "Explanations", "Place", "Pull", "Swap", "apply", "explain", "swaps"]
