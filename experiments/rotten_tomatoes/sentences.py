"""Print the sentences of IMDB's reviews without labels, one a line: unlabelled texts for Rotten Tomatoes.

python experiments/rotten_tomatoes/sentences.py > data/rotten_tomatoes/unlabelled.txt
"""

import re
import sys

from wordward.datasets import registry

END = re.compile(r"(?<=[.!?])\s+|<br />")
SHORTEST = 4  # words


def sentences(text: str) -> list[str]:
    """A review cut into its sentences, without the shortest."""
    return [each for part in END.split(text) if len((each := part.strip()).split()) >= SHORTEST]


if __name__ == "__main__":
    found = [each for review in registry.load("imdb").unlabelled for each in sentences(review.text)]
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    print("\n".join(found))
