"""python -m benchmarks.reading_well RUN FILE --labelled OTHER [--texts BIG.txt]: what reads well, by rule.

A text's strongest pull counts as sensible if other labelled texts, which the run was not trained on, speak for it:
the word that pulls speaks less for the label than the word that is pulled, by two standard errors. A swap that keeps
the sense counts as fluent if a language model finds the text with it about as probable as before (log p falls by less
than FALL), and grammar is kept: same case, no piece of a contraction, "a" and "an" as they should be. A text counts
if all its swaps do.

The language model counts sequences of three words in the texts of --texts, a file with a text on each line, which
should be many and not the run's own; without it no text is attacked, and pulls alone are judged. --show prints what
was judged, to read and judge oneself.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from wordward.attack.attacked import Attacked
from wordward.attack.attacker import attack
from wordward.attack.ngrams import NGrams, split
from wordward.config.attack import AttackSettings
from wordward.datasets import Example
from wordward.explain.english import PIECES, fold
from wordward.explain.explainer import explain
from wordward.explain.explanation import Explanation, Place
from wordward.explain.swaps import keeps_articles
from wordward.explain.word_kinds import case
from wordward.runs.evidence import Evidence, evidence_in
from wordward.runs.metrics import share
from wordward.runs.opening import load_run
from wordward.runs.run import Run
from wordward.text.corpus import encode
from wordward.text.loading import read_as

FALL = 3.0  # of log p with a swap, at most
SURE = 1.96  # standard errors


def sensible(run: Run, evidence: Evidence, found: Explanation) -> bool | None:
    """Whether a text's strongest pull is one that the evidence speaks for; None without a pull."""
    place = found.strongest
    if place is None or place.pull is None or found.predicted is None:
        return None
    words = run.learnt
    ids = [words[_written(run, word)] for word in (place.word, place.pull.toward)]
    label = run.labels.index(found.label or found.predicted)
    lost, error = evidence.lost(*(torch.tensor(number) for number in (label, *ids)))
    return bool(lost >= SURE * error)


def _written(run: Run, word: str) -> str:
    return word.lower() if run.text.lowercase else word


def fluent(model: NGrams, attacked: Attacked) -> bool:
    """Whether every swap of a text leaves it as probable, nearly, and as grammatical as before."""
    text, moved = attacked.text, 0
    for change in attacked.changes:
        start, end = change.start + moved, change.end + moved
        new = text[:start] + change.toward + text[end:]
        moved += len(change.toward) - len(change.word)
        (ratio,) = model([(text, new)])
        if ratio < -FALL or not grammatical(text, new, change.word, change.toward, start):
            return False
        text = new
    return True


def grammatical(before: str, after: str, word: str, toward: str, start: int) -> bool:
    """Whether a swap keeps to simple rules of English: case, contractions, "a" before a vowel."""
    same_case = case(word) == case(toward) or 3 in (case(word), case(toward))
    joined = after[start + len(toward) : start + len(toward) + 1] in ("'", "’") or after[:start][-1:] in ("'", "’")
    articles = keeps_articles(before, Place(0, word, start, start + len(word), True, ()), toward)
    return same_case and not joined and fold(toward) not in PIECES and articles


def evidence_for(run: Run, labelled: Sequence[Example]) -> Evidence:
    """What labelled texts say of the words that the run was trained with."""
    corpus = encode(labelled, run.learnt, run.text, run.labels)
    return evidence_in(torch.from_numpy(corpus.class_counts(len(run.learnt), len(run.labels))))


def measure(
    run: Run,
    examples: Sequence[Example],
    evidence: Evidence,
    model: NGrams | None,
    settings: AttackSettings,
    words: str,
) -> dict[str, Any]:
    """Both shares with their 95 % intervals, and what was judged; without a model no swaps are."""
    found = explain(run, [example.text for example in examples], words=words, word_space=settings.word_space)
    pulls = [(each, judged) for each in found if (judged := sensible(run, evidence, each)) is not None]
    swaps = []
    if model is not None:
        flipped = [each for each in attack(run, examples, settings) if each.flipped and each.sense_kept]
        swaps = [(each, fluent(model, each)) for each in flipped]
    return {
        "texts": len(examples),
        "sensible": share(sum(judged for _, judged in pulls), len(pulls))._asdict() if pulls else None,
        "fluent": share(sum(judged for _, judged in swaps), len(swaps))._asdict() if swaps else None,
        "flipped": len(swaps),
        "pulls": pulls,
        "swaps": swaps,
    }


def show(measured: dict[str, Any]) -> None:
    """What was judged, a line each, with what the rule says of it."""
    for found, judged in measured["pulls"]:
        place = found.strongest
        print("+" if judged else "-", found.label, f"{place.word} -> {place.pull.toward}", sep="\t")
    for attacked, judged in measured["swaps"]:
        at, parts = 0, []
        for change in attacked.changes:
            parts += [attacked.text[max(at, change.start - 60) : change.start], f"[{change.word} -> {change.toward}]"]
            at = change.end
        print("+" if judged else "-", "".join([*parts, attacked.text[at : at + 60]]).replace("\n", " "), sep="\t")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print both shares as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("file")
    parser.add_argument("--labelled", required=True, help="labelled texts that the run was not trained on")
    parser.add_argument("--texts", help="many texts for the language model, a line each; without it only pulls")
    parser.add_argument("--count", type=int, default=200_000, help="of them, at most")
    parser.add_argument("--limit", type=int, default=200, help="texts of FILE to explain and attack")
    parser.add_argument("--skip", type=int, default=0, help="texts of FILE to leave out first")
    parser.add_argument("--words", choices=("fitting", "any"), default="fitting")
    parser.add_argument("--word-space", default="auto")
    parser.add_argument("--language-model", default="auto", help="that the attack itself uses")
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args(arguments)
    run = load_run(given.run, device="cpu")
    data = replace(run.config.data, limit=None)
    examples = read_as(data, given.file)[given.skip :][: given.limit]
    evidence = evidence_for(run, read_as(data, given.labelled))
    model = None
    if given.texts:
        with Path(given.texts).open(encoding="utf-8", errors="replace") as lines:
            model = NGrams(split(line) for line in islice(lines, given.count))
    settings = AttackSettings(
        sense="kept", words=given.words, word_space=given.word_space, language_model=given.language_model
    )
    measured = measure(run, examples, evidence, model, settings, given.words)
    if given.show:
        show(measured)
    print(json.dumps({name: measured[name] for name in ("texts", "sensible", "fluent", "flipped")}))


if __name__ == "__main__":
    main()
