"""Whether a model holds out: how often it is right, as it is and under edits, against limits and an earlier check."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from wordward.attack.attacked import Attacked
from wordward.attack.conditions import Condition, limited, no_worse
from wordward.attack.earlier import Earlier
from wordward.attack.robustness import accuracies, attack_all, holds
from wordward.attack.summary import telling
from wordward.config.attack import AttackSettings
from wordward.config.check import CheckLimits
from wordward.datasets import DataError, Example
from wordward.runs.counted import count_words
from wordward.runs.metrics import Interval, share
from wordward.runs.run import Run
from wordward.support.console import say
from wordward.support.errors import SettingError
from wordward.support.version import __version__
from wordward.text.vocabulary import split_words

BUDGETS = (1, 2, 4)  # numbers of edits
FEW, OFTEN = 500, 5  # words to judge by, and labelled texts that must hold a word for it to tell


@dataclass(frozen=True)
class BreakingWord:
    """A word whose edits flip texts."""

    word: str  # "" for something that is put in
    flipped: int  # texts in whose flip it was edited
    texts: int  # attacked texts that hold it
    toward: tuple[str, ...]  # what came most often in its place


@dataclass(frozen=True)
class Check:
    """What a check found: the numbers, what decides, and every attacked text.

    Args:
        model: The name of the model.
        source: Where the texts are from.
        labels: What it can predict.
        tagging: Whether it gives each word a tag.
        target: The label that counts as found, as a guard's; a tagger's tag.
        settings: How the texts were attacked.
        budgets: The numbers of edits that accuracy was measured under.
        results: Each text with what the attack made of it.
        conditions: What decides, in the order of its settings.

    Examples:
        >>> texts = [wordward.Example("the film was warm and funny", "good")]
        >>> checked = wordward.attack.check(run, texts, limits=wordward.attack.CheckLimits(min_accuracy=0.5))
        >>> checked.holds, sorted(checked.accuracy)
        (True, [0, 1, 2, 4])
    """

    model: str
    source: str
    labels: tuple[str, ...]
    tagging: bool
    target: str | None
    settings: AttackSettings
    budgets: tuple[int, ...]
    results: tuple[Attacked, ...]
    conditions: tuple[Condition, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether every condition is fulfilled."""
        return all(condition.holds for condition in self.conditions)

    @property
    def given(self) -> bool:
        """Whether the true labels are given."""
        return all(each.given for each in self.results)

    @property
    def accuracy(self) -> dict[int, Interval]:
        """The share of all texts predicted right under 0, 1, 2, ... edits; empty without true labels."""
        return accuracies(self.results, (0, *self.budgets)) if self.given else {}

    @property
    def attacked(self) -> list[Attacked]:
        """The texts that were attacked: predicted right, and with `target` of that label."""
        tried = [each for each in self.results if each.outcome in ("flipped", "kept")]
        return [each for each in tried if self.tagging or self.target in (None, each.label)]

    @property
    def flipped(self) -> list[Attacked]:
        """Those that were flipped."""
        return [each for each in self.attacked if each.flipped]

    @property
    def flip_rate(self) -> Interval | None:
        """Flipped of attacked; None where none was attacked."""
        return share(len(self.flipped), len(self.attacked)) if self.attacked else None

    @property
    def false_positives(self) -> Interval | None:
        """The share of other texts that get the target's label; of sentences without its tag in which it is found."""
        read = [each for each in self.results if each.given and each.outcome != "unreadable"]
        if self.target is None or not read:
            return None
        if self.tagging:
            others = [each for each in read if each.errors == 0]
            wrong = [each for each in others if self.target in each.before.split()]
        else:
            others = [each for each in read if each.label != self.target]
            wrong = [each for each in others if each.before == self.target]
        return share(len(wrong), len(others)) if others else None

    @property
    def recall(self) -> Interval | None:
        """The share of the target's texts that get its label."""
        own = [each for each in self.results if each.given and each.label == self.target]
        return share(len([each for each in own if each.before == self.target]), len(own)) if own else None

    @property
    def limited(self) -> dict[str, Interval | None]:
        """The numbers that may have a limit, by the names of their settings."""
        return {
            "min_accuracy": self.accuracy.get(0),
            "min_accuracy_under_attack": self.accuracy.get(self.budgets[-1]),
            "max_flip_rate": self.flip_rate,
            "max_false_positives": self.false_positives,
        }

    @property
    def senses(self) -> dict[str, int]:
        """How many of the flipped texts have edits judged to keep the sense, to change it, or are not judged."""
        found = Counter(each.sense for each in self.flipped)
        return {name: found[name] for name in ("kept", "changed", "unknown") if found[name]}

    def words(self, count: int = 10) -> list[BreakingWord]:
        """The words whose edits flip most texts, those of a text sharing its flip, with what came in their place."""
        swaps: dict[str, Counter[str]] = {}
        flips: Counter[str] = Counter()
        blame: Counter[str] = Counter()
        for each in self.flipped:
            flips.update({change.word.lower() for change in each.changes})
            for change in each.changes:
                blame[change.word.lower()] += 1 / len(each.changes)  # type: ignore[assignment]
                swaps.setdefault(change.word.lower(), Counter())[change.toward] += 1
        held = Counter(word for each in self.attacked for word in set(split_words(each.text, "words", True)))
        order = sorted(flips, key=lambda word: (-blame[word], -flips[word], word))
        return [
            BreakingWord(
                word,
                flips[word],
                max(held[word], flips[word]) if word else len(self.attacked),
                tuple(toward for toward, _ in swaps[word].most_common(3)),
            )
            for word in order[:count]
        ]

    def examples(self, count: int = 5) -> list[Attacked]:
        """The flipped texts that tell most: first those whose sense is kept, of few edits, of large effect."""
        order = ("kept", "unknown", "changed")
        return sorted(telling(self.flipped), key=lambda each: order.index(each.sense))[:count]

    def to_json(self) -> dict[str, Any]:
        """Everything for `json.dumps`; `each` identifies a text without showing it, for a later check."""
        return {
            "wordward": __version__,
            "model": self.model,
            "texts": len(self.results),
            "source": self.source,
            "task": "tag" if self.tagging else "classify",
            "labels": list(self.labels),
            "target": self.target,
            "holds": self.holds,
            "accuracy": {str(number): interval._asdict() for number, interval in self.accuracy.items()},
            "attacked": len(self.attacked),
            "flipped": len(self.flipped),
            "flip_rate": self.flip_rate and self.flip_rate._asdict(),
            "false_positives": self.false_positives and self.false_positives._asdict(),
            "recall": self.recall and self.recall._asdict(),
            "sense": self.senses,
            "conditions": [asdict(condition) for condition in self.conditions],
            "words": [asdict(word) for word in self.words()],
            "examples": [asdict(attacked) for attacked in self.examples()],
            "settings": asdict(self.settings),
            "budgets": list(self.budgets),
            "each": [
                {"text": key(each), "right": holds(each, 0), "flips_at": len(each.changes) if each.flipped else None}
                for each in self.results
            ],
        }


def key(attacked: Attacked) -> str:
    """What identifies a text with its label in a file of results."""
    return hashlib.sha256(f"{attacked.label}\n{attacked.text}".encode("utf-8", "surrogatepass")).hexdigest()[:16]


def check(
    run: Run,
    texts: Sequence[Example],
    settings: AttackSettings | None = None,
    *,
    limits: CheckLimits | None = None,
    budgets: Sequence[int] = BUDGETS,
    target: str | None = None,
    against: str | Path | None = None,
    sense_from: Sequence[Example] = (),
    source: str = "",
    jobs: int = 1,
    quiet: bool = True,
) -> Check:
    """Score and attack a model, and decide whether it holds.

    Args:
        run: A model, as `wordward.load_run` or `wordward.open_model` opens it.
        texts: `Example`s with their true labels; without them whatever is predicted is attacked.
        settings: How words to edit are looked for; by default with `sense="kept"`: an edit that changes what is said
            ought to change the prediction.
        limits: What the model must reach.
        budgets: Numbers of edits to measure accuracy under; the largest is how many a text may get.
        target: The label that counts as found, as a guard's: for false positives and recall, and its texts alone
            count for the flip rate. A tagger's is its positive tag.
        against: The JSON file of an earlier check: being worse on the same texts than that, beyond chance, falls
            short.
        sense_from: Labelled texts, such as those a model was trained on that wordward did not train, whose words are
            counted by label to judge which edits change the sense; by default `texts`.
        source: Where the texts are from, for outputs.
        jobs: Processes to use.
        quiet: Show no progress.

    Returns:
        A `Check`: `holds`, `accuracy`, `flip_rate`, `words()`, `examples()` and more; `to_json()`.

    Examples:
        >>> texts = [wordward.Example("the film was warm and funny", "good")]
        >>> wordward.attack.check(run, texts, wordward.attack.AttackSettings(sense="any")).flip_rate.value
        1.0
    """
    settings, limits = settings or AttackSettings(sense="kept"), limits or CheckLimits()
    texts, sense_from = run.examples(texts), run.examples(sense_from)
    if not texts:
        raise DataError("expected texts to check the model with; there are none", source or None)
    if not budgets or min(budgets) < 1:
        raise SettingError("budgets", f"expected numbers of edits, 1 or more; got {list(budgets)}")
    target = run.labels[run.positive] if run.tagging and run.positive is not None else target
    if target is not None and target not in run.labels:
        raise SettingError("target", f"expected a label of the model, {', '.join(run.labels)}; got {target!r}")
    most = max(budgets)
    run = _judging(run, sense_from or texts)
    settings = replace(_judgeable(run, settings, quiet=quiet), max_swaps=most)
    earlier = None if against is None else Earlier.read(against, settings)  # refused before time is spent
    _check_measurable(run, texts, limits, target, against)
    results = attack_all(run, texts, settings, "check", quiet=quiet, jobs=jobs)
    found = Check(
        run.name, source, run.labels, run.tagging, target, settings, tuple(sorted(set(budgets))), tuple(results)
    )
    conditions = [limited(name, found.limited[name], limit) for name, limit in limits.given().items()]
    if earlier is not None:
        each = {key(one): one for one in results}
        conditions += [no_worse(earlier, each, number) for number in (0, most)]
    return replace(found, conditions=tuple(conditions))


def _judging(run: Run, texts: Sequence[Example]) -> Run:
    """A model that wordward did not train with words counted by label, where these texts have one."""
    if run.trained_here or run.tagging or any(each.label is None for each in texts):
        return run
    return replace(run, counted=count_words(texts, run.labels))  # type: ignore[call-arg]


def _judgeable(run: Run, settings: AttackSettings, *, quiet: bool) -> AttackSettings:
    """The settings without a rule of sense where there is nothing to judge by; what little there is is said."""
    if settings.sense == "any":
        return settings
    if run.tagging or (counts := run.class_counts()) is None:
        say("no labelled texts tell which edits keep the sense, so any may be made", quiet=quiet)
        return replace(settings, sense="any")
    words = int((counts.sum(1) >= OFTEN).sum())
    if words < FEW:
        say(
            f"only {words:,} words are in {OFTEN} labelled texts or more, so the sense of few edits can be judged; "
            "others are not made: give more texts as `sense_from`, best the model's training texts, or `sense='any'`",
            quiet=quiet,
        )
    return settings


def _check_measurable(
    run: Run, texts: Sequence[Example], limits: CheckLimits, target: str | None, against: Any
) -> None:
    """Refuse limits on what these texts cannot tell, before time is spent."""
    labelled = all((each.tags if run.tagging else each.label) is not None for each in texts)
    needing = [name for name in limits.given() if name != "max_flip_rate"] + (["against"] if against else [])
    if not labelled and needing:
        raise SettingError(needing[0], f"`{needing[0]}` needs texts with their true labels; some have none")
    if limits.max_false_positives is not None and target is None:
        raise SettingError("target", f"`max_false_positives` needs `target`, one of {', '.join(run.labels)}")
