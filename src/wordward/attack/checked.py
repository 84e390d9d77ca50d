"""The result of a check: accuracy as it is and under edits, and the words that break the model."""

import hashlib
from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import Any

from wordward.attack.attacked import Attacked, Change
from wordward.attack.conditions import Condition
from wordward.attack.guard import Guard
from wordward.attack.robustness import accuracies, holds
from wordward.attack.wording import telling
from wordward.config.attack import AttackSettings
from wordward.runs.metrics import Interval, intervals_to_json, share
from wordward.support.version import __version__
from wordward.text.tokenizers import split_words


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
        guard: From which probability a text is flagged; None where the likeliest label decides.
        groups: The group of each text, where texts have one.
        judged_by: A fingerprint of the texts given that decide which edits keep the sense.
        caveat: What limits these numbers, in words: that little or nothing tells which edits keep the sense.
        unmeasured: Why the numbers under edits are none: too few texts had an edit to try; "" where there are.

    Examples:
        >>> texts = [wordward.Example("the film was warm and funny", "good")]
        >>> limits = wordward.attack.CheckLimits(min_accuracy=0.5)
        >>> checked = wordward.attack.check(run, texts, wordward.attack.CheckSettings(limits=limits))
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
    guard: Guard | None = None
    groups: tuple[str, ...] = ()
    judged_by: str | None = None
    caveat: str = ""
    unmeasured: str = ""

    @property
    def holds(self) -> bool:
        """Whether every condition is fulfilled."""
        return all(condition.holds for condition in self.conditions)

    @property
    def falls_short(self) -> bool:
        """Whether a condition is missed; where none is and yet not all hold, some could not be measured."""
        return any(condition.measured and not condition.holds for condition in self.conditions)

    @property
    def given(self) -> bool:
        """Whether the true labels are given."""
        return all(each.given for each in self.results)

    @property
    def accuracy(self) -> dict[int, Interval]:
        """The share of all texts predicted right under 0, 1, 2, ... edits; empty without true labels.

        Empty for a guard, too, whose texts are not all attacked: it has `recalls`.
        """
        return accuracies(self.results, (0, *self.budgets)) if self.given and self.guard is None else {}

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
    def unedited(self) -> int:
        """How many attacked texts were left as they are, since no edit that may be made helps."""
        return sum(not each.changes for each in self.attacked)

    @property
    def untried(self) -> int:
        """How many of them had no edit that may be made."""
        return sum(not each.tried for each in self.attacked)

    @property
    def flip_rate(self) -> Interval | None:
        """Flipped of attacked; None where none was attacked."""
        return share(len(self.flipped), len(self.attacked)) if self.attacked else None

    @property
    def others(self) -> list[Attacked]:
        """The texts that are not the target's, of those with true labels; of a tagger sentences without its tag."""
        read = [each for each in self.results if each.given and each.outcome != "unreadable"]
        return [each for each in read if (each.errors == 0 if self.tagging else each.label != self.target)]

    @property
    def false_positives(self) -> Interval | None:
        """The share of other texts that get the target's label; of sentences without its tag in which it is found."""
        if self.target is None or not self.others:
            return None
        target = self.target
        wrong = [each for each in self.others if target in (each.before.split() if self.tagging else (each.before,))]
        return share(len(wrong), len(self.others))

    @property
    def recall(self) -> Interval | None:
        """The share of the target's texts that get its label, of a classifier."""
        return self.recalls.get(0)

    @property
    def recalls(self) -> dict[int, Interval]:
        """The share of the target's texts that a classifier finds under 0, 1, 2, ... edits; empty where none is."""
        own = [each for each in self.results if each.given and each.label == self.target]
        if self.tagging or not own:
            return {}
        return {n: share(sum(holds(each, n) for each in own), len(own)) for n in (0, *self.budgets)}

    @property
    def by_group(self) -> dict[str, "Check"]:
        """A check of each group's texts, which nothing decides; empty where texts have no groups."""
        return {
            name: replace(
                self,
                results=tuple(one for one, group in zip(self.results, self.groups, strict=True) if group == name),
                conditions=(),
                groups=(),
            )
            for name in sorted(set(self.groups))
        }

    @property
    def limited(self) -> dict[str, Interval | None]:
        """The numbers that may have a limit, by the names of their settings."""
        return {
            "min_accuracy": self.accuracy.get(0),
            "min_accuracy_under_attack": self.accuracy.get(self.budgets[-1]),
            "max_flip_rate": self.flip_rate,
            "max_false_positives": self.false_positives,
            "min_recall": self.recalls.get(0),
            "min_recall_under_attack": self.recalls.get(self.budgets[-1]),
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
            edits = [_as_counted(change) for change in each.changes]
            flips.update({word for word, _ in edits})
            for word, toward in edits:
                blame[word] += 1 / len(edits)  # type: ignore[assignment]
                swaps.setdefault(word, Counter())[toward] += 1
        held = Counter(word for each in self.attacked for word in set(split_words(each.text, "words", True)))
        order = sorted(flips, key=lambda word: (-blame[word], -flips[word], word))
        return [
            BreakingWord(
                word,
                flips[word],
                max(held[word.lower()], flips[word]) if word else len(self.attacked),
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
            "guard": self.guard and asdict(self.guard),
            "holds": self.holds,
            **self._numbers(),
            "groups": {name: {"texts": len(of.results), **of._numbers()} for name, of in self.by_group.items()},
            "conditions": [asdict(condition) for condition in self.conditions],
            "words": [asdict(word) for word in self.words()],
            "examples": [asdict(attacked) for attacked in self.examples()],
            "settings": asdict(self.settings),
            "judged_by": self.judged_by,
            "caveat": self.caveat,
            "unmeasured": self.unmeasured,
            "budgets": list(self.budgets),
            "each": [
                {"text": key(each), "right": holds(each, 0), "flips_at": len(each.changes) if each.flipped else None}
                for each in self.results
            ],
        }

    def _numbers(self) -> dict[str, Any]:
        return {
            "accuracy": intervals_to_json(self.accuracy),
            "attacked": len(self.attacked),
            "flipped": len(self.flipped),
            "unedited": self.unedited,
            "untried": self.untried,
            "flip_rate": self.flip_rate and self.flip_rate._asdict(),
            "false_positives": self.false_positives and self.false_positives._asdict(),
            "recall": self.recall and self.recall._asdict(),
            "recall_under_edits": intervals_to_json(
                {number: found for number, found in self.recalls.items() if number}
            ),
            "sense": self.senses,
        }


def _as_counted(change: Change) -> tuple[str, str]:
    """A word and what came in its place, both in lower case, unless case is all that was edited."""
    word, toward = change.word.lower(), change.toward.lower()
    return (word, toward) if word != toward else (change.word, change.toward)


def key(attacked: Attacked) -> str:
    """What identifies a text with its label in a file of results."""
    return hashlib.sha256(f"{attacked.label}\n{attacked.text}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
