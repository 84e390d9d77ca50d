"""What a model must reach for `wordward check` to pass."""

from dataclasses import dataclass

from wordward.support.errors import SettingError


@dataclass(frozen=True)
class CheckLimits:
    """The limits of a check, shares from 0 to 1; each that is given decides.

    Examples:
        >>> from wordward.attack import CheckLimits
        >>> CheckLimits(min_accuracy=0.9, max_flip_rate=0.3).given()
        {'min_accuracy': 0.9, 'max_flip_rate': 0.3}
    """

    min_accuracy: float | None = None
    """Least share of texts predicted right."""
    min_accuracy_under_attack: float | None = None
    """Least share of all texts predicted right whatever the largest number of edits, as far as an attack finds."""
    max_flip_rate: float | None = None
    """Greatest share of the attacked texts, those predicted right, that edits flip; with `target` only its texts."""
    max_false_positives: float | None = None
    """Greatest share of the texts of other labels that get the label of `target`."""
    min_recall: float | None = None
    """Least share of the texts of `target` that are found."""
    min_recall_under_attack: float | None = None
    """The same whatever the largest number of edits, as far as an attack finds."""

    def __post_init__(self) -> None:
        """Refuse what is no share."""
        for name, value in self.given().items():
            if not 0 <= value <= 1:
                raise SettingError(name, f"{name} must be a share from 0 to 1, such as 0.9, but is {value:g}")

    def given(self) -> dict[str, float]:
        """Those that are given, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}
