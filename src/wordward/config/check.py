"""What a check is told: how texts are attacked, what is measured, and what a model must reach to pass."""

from dataclasses import dataclass, field
from typing import Annotated

import tyro

from wordward.config.attack import AttackSettings
from wordward.config.fields import Name, Share
from wordward.support.errors import SettingError


@dataclass(frozen=True)
class CheckLimits:
    """The limits of a check, shares from 0 to 1; each that is given decides.

    Examples:
        >>> from wordward.attack import CheckLimits
        >>> CheckLimits(min_accuracy=0.9, max_flip_rate=0.3).given()
        {'min_accuracy': 0.9, 'max_flip_rate': 0.3}
    """

    min_accuracy: Share = None
    """Smallest share of texts that must be predicted right."""
    min_accuracy_under_attack: Share = None
    """Smallest share of all texts that must be predicted right under the largest number of edits."""
    max_flip_rate: Share = None
    """Largest share of the attacked texts (those predicted right; with `target` only its texts) that edits may
    flip."""
    max_false_positives: Share = None
    """Largest share of the texts of other labels that may get the label of `target`."""
    min_recall: Share = None
    """Smallest share of the texts of `target` that must be found."""
    min_recall_under_attack: Share = None
    """The same under the largest number of edits."""

    def __post_init__(self) -> None:
        """Refuse what is no share."""
        for name, value in self.given().items():
            if not 0 <= value <= 1:
                raise SettingError(name, f"{name} must be a share from 0 to 1, such as 0.9, but is {value:g}")

    def given(self) -> dict[str, float]:
        """Those that are given, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class CheckSettings:
    """What a check measures, and what decides.

    Examples:
        >>> from wordward.attack import CheckLimits, CheckSettings
        >>> CheckSettings(limits=CheckLimits(min_recall=0.9), target="bad", threshold=0.8, budgets=(2, 1)).budgets
        (1, 2)
    """

    attack: AttackSettings = field(default_factory=lambda: AttackSettings(sense="kept"))
    """How an attack searches for edits. By default only edits that keep the sense are made, since others should
    change the prediction."""
    limits: CheckLimits = field(default_factory=CheckLimits)
    against: Annotated[str | None, tyro.conf.arg(metavar="EARLIER.json")] = None
    """The JSON file of an earlier check: the model falls short if it is worse than then on the same texts, beyond
    chance (McNemar's exact test, p below 0.05), on the texts as they are or under the largest number of edits."""
    target: Annotated[Name, tyro.conf.arg(metavar="LABEL")] = None
    """The label that a guard looks for: other texts that get it are false positives, and the flip rate counts its
    texts alone. For a tagger this is its positive tag."""
    threshold: Annotated[float | None, tyro.conf.arg(metavar="P")] = None
    """The probability of `target` from which a text is flagged. Only flagged texts of that label are attacked, and
    a text flips if its probability falls below."""
    false_positive_rate: Annotated[float | None, tyro.conf.arg(metavar="RATE")] = None
    """In place of `threshold`: the share of the other texts that may be flagged. The lowest threshold with at most
    that share is found on these texts and shown; give it as `threshold` for texts that it was not found on."""
    budgets: Annotated[tuple[int, ...], tyro.conf.arg(metavar="N ...")] = (1, 2, 4)
    """Numbers of edits to measure accuracy under; the largest is how many a text may get."""

    def __post_init__(self) -> None:
        """Refuse what no model could be checked with."""
        if not self.budgets or min(self.budgets) < 1:
            raise SettingError("budgets", f"expected numbers of edits, 1 or more; got {list(self.budgets)}")
        object.__setattr__(self, "budgets", tuple(sorted(set(self.budgets))))
        if self.attack.max_swaps != AttackSettings().max_swaps:
            raise SettingError(
                "max_swaps", "give `budgets`, whose largest number is how many edits a text may get, not `max_swaps`"
            )
        if self.flagged_by:
            self._check_flags()

    @property
    def flagged_by(self) -> str:
        """The setting that decides from where on texts are flagged; empty where the likeliest label decides."""
        given = [name for name in ("threshold", "false_positive_rate") if getattr(self, name) is not None]
        return given[0] if given else ""

    def _check_flags(self) -> None:
        """Refuse settings of a guard that do not fit each other."""
        rate = self.false_positive_rate
        if self.threshold is not None:
            check_threshold(self.threshold)
        if rate is not None and self.threshold is not None:
            raise SettingError(
                "false_positive_rate", "give `threshold` or `false_positive_rate`, which finds one, not both"
            )
        if rate is not None and not 0 <= rate < 1:
            raise SettingError(
                "false_positive_rate",
                f"false_positive_rate must be a share from 0 to below 1, such as 0.01, but is {rate:g}",
            )
        if self.target is None:
            raise SettingError("target", f"`{self.flagged_by}` needs `target`, the label that texts are flagged for")
        for name in ("min_accuracy", "min_accuracy_under_attack"):
            if name in self.limits.given():
                other = name.replace("accuracy", "recall")
                raise SettingError(
                    name, f"with a threshold `{name}` is not measured: give `{other}`, `max_false_positives`"
                )


def check_threshold(threshold: float) -> None:
    """Refuse what is no probability that a text could reach, or that any would."""
    if not 0 < threshold <= 1:
        raise SettingError("threshold", f"threshold must be a probability above 0 and up to 1, but is {threshold:g}")
