"""Which word of a text is pulled toward which words: finding it, and showing it."""

from wordward.explain.explainer import Explanations, explain
from wordward.explain.explanation import Explanation, Place, Pull, from_json, to_json
from wordward.explain.faithfulness import Faithfulness, faithfulness
from wordward.explain.figure import figure
from wordward.explain.html import STYLE, html_fragment, page
from wordward.explain.swaps import Swap, apply, swaps
from wordward.explain.terminal import terminal
from wordward.runs.run import Run

Run.explain = explain

__all__ = [
    "STYLE",
    "Explanation",
    "Explanations",
    "Faithfulness",
    "Place",
    "Pull",
    "Swap",
    "apply",
    "explain",
    "faithfulness",
    "figure",
    "from_json",
    "html_fragment",
    "page",
    "swaps",
    "terminal",
    "to_json",
]
