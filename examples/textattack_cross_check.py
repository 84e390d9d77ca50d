"""Accuracy of wordward runs under an attack that is not ours: TextAttack's DeepWordBug, nothing downloaded."""

import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import tyro

from wordward.attack import textattack as textattack_model
from wordward.datasets import Example, read
from wordward.runs.metrics import share
from wordward.runs.opening import load_run
from wordward.runs.run import Run

COLUMNS = (
    *("run", "accuracy", "under attack", "success rate", "not fooled, by label"),
    *("words changed", "of them unknown", "queries a text", "seconds"),
)
NONSENSE = "xqzt"  # in no vocabulary


@dataclass(frozen=True)
class CrossCheck:
    """Attack the same texts on several runs, and print a row of a Markdown table for each."""

    data: tyro.conf.Positional[str]
    """Labelled texts."""
    runs: tyro.conf.Positional[tuple[str, ...]]
    """Run folders that label texts."""
    limit: int = 200
    """Texts to attack: a random but fixed selection."""
    seed: int = 0
    """Of the letters that the attack draws."""
    unknown: bool = False
    """Control: put a word that no run knows in the place of a word, instead of misspelling it."""
    threads: int = 1
    """That torch may use."""

    def __call__(self) -> None:
        torch.set_num_threads(self.threads)
        examples = read(self.data)
        chosen = np.sort(np.random.default_rng(0).permutation(len(examples))[: self.limit])
        print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
        with tempfile.TemporaryDirectory() as folder:
            textattack_model.offline(folder)
            for path in self.runs:
                run = load_run(path, device="cpu")
                print(f"| {path} | {' | '.join(self.row(run, [examples[at] for at in chosen]))} |", flush=True)

    def row(self, run: Run, examples: list[Example]) -> list[str]:
        results, seconds = self.attacked(run, examples)
        fooled, stood = of_kind(results, "Successful"), of_kind(results, "Failed")
        verify(run, fooled)
        changed = [pair for each in fooled for pair in changes(each)]
        right, words = len(fooled) + len(stood), sum(len(before(each).words) for each in fooled)
        return [
            with_interval(right, len(results)),
            with_interval(len(stood), len(results)),
            with_interval(len(fooled), right),
            by_label(run, stood, [*fooled, *stood]),
            percent(len(changed), words),
            percent(sum(word.lower() not in run.vocabulary for _, word in changed), len(changed)),
            f"{np.mean([each.num_queries for each in results]):.0f}",
            f"{seconds:.0f}",
        ]

    def attacked(self, run: Run, examples: list[Example]) -> tuple[list[Any], float]:
        """What TextAttack makes of each text, and the seconds that it takes."""
        attack = textattack_model.deep_word_bug(textattack_model.Wrapped(run))
        import textattack  # type: ignore[import-not-found]

        if self.unknown:
            attack = to_unknown_words(attack)
        settings = textattack.AttackArgs(
            num_examples=len(examples), random_seed=self.seed, disable_stdout=True, silent=True
        )
        attacker = textattack.Attacker(attack, textattack_model.dataset(run, examples), settings)
        started = time.monotonic()
        return attacker.attack_dataset(), time.monotonic() - started


def to_unknown_words(attack: Any) -> Any:
    """The same search for the same words, each of them made unknown; letters are not counted."""
    import textattack  # type: ignore[import-not-found]

    class Unknown(textattack.transformations.WordSwap):
        def _get_replacement_words(self, word: str) -> list[str]:
            return [NONSENSE]

    kept = attack.pre_transformation_constraints
    return textattack.Attack(attack.goal_function, kept, Unknown(), attack.search_method)


def of_kind(results: list[Any], kind: str) -> list[Any]:
    return [each for each in results if type(each).__name__ == f"{kind}AttackResult"]


def before(result: Any) -> Any:
    return result.original_result.attacked_text


def after(result: Any) -> Any:
    return result.perturbed_result.attacked_text


def changes(result: Any) -> list[tuple[str, str]]:
    """The words that the attack changed, with what came of them."""
    pairs = zip(before(result).words, after(result).words, strict=True)
    return [(one, other) for one, other in pairs if one != other]


def verify(run: Run, fooled: list[Any]) -> None:
    """Every text that counts as a success is read again as text, and is not given its true label."""
    for record, result in zip(run.predict([after(each).text for each in fooled]), fooled, strict=True):
        if record.label == run.labels[result.original_result.ground_truth_output]:
            sys.exit(f"not adversarial when read again: {record.text!r}")


def by_label(run: Run, some: list[Any], of: list[Any]) -> str:
    """How many of the texts of each label."""
    gold = [[each.original_result.ground_truth_output for each in which] for which in (some, of)]
    return ", ".join(f"{name} {gold[0].count(at)} of {gold[1].count(at)}" for at, name in enumerate(run.labels))


def percent(part: int, n: int) -> str:
    return f"{100 * part / n:.1f} %" if n else "-"


def with_interval(part: int, n: int) -> str:
    """A share with its 95 % interval."""
    return f"{percent(part, n)} [{100 * share(part, n).low:.1f}, {100 * share(part, n).high:.1f}]" if n else "-"


if __name__ == "__main__":
    tyro.cli(CrossCheck)()
