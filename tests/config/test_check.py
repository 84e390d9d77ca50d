"""What no model could be checked with is refused as settings, before a model is opened."""

from typing import Any

import pytest

from wordward.attack import AttackSettings, CheckLimits, CheckSettings
from wordward.cli.main import main
from wordward.support.errors import SettingError

GUARD: dict[str, Any] = {"target": "bad", "threshold": 0.5}


@pytest.mark.parametrize(
    ("how", "name", "said"),
    [
        ({"budgets": ()}, "budgets", r"numbers of edits, 1 or more; got \[\]"),
        ({"budgets": (0, 2)}, "budgets", r"numbers of edits, 1 or more; got \[0, 2\]"),
        ({"attack": AttackSettings(max_swaps=3)}, "max_swaps", "give `budgets`, whose largest number"),
        ({"threshold": 0.5}, "target", "`threshold` needs `target`"),
        ({"false_positive_rate": 0.1}, "target", "`false_positive_rate` needs `target`"),
        (GUARD | {"threshold": 0.0}, "threshold", "a probability above 0 and up to 1, but is 0$"),
        (GUARD | {"threshold": 1.5}, "threshold", "a probability above 0 and up to 1, but is 1.5$"),
        (GUARD | {"false_positive_rate": 0.1}, "false_positive_rate", "or `false_positive_rate`.* not both"),
        ({"target": "bad", "false_positive_rate": 1.0}, "false_positive_rate", "from 0 to below 1, .* but is 1$"),
        (
            GUARD | {"limits": CheckLimits(min_accuracy=0.5)},
            "min_accuracy",
            "give `min_recall`, `max_false_positives`",
        ),
    ],
)
def test_what_does_not_fit_is_refused(how: dict[str, Any], name: str, said: str) -> None:
    with pytest.raises(SettingError, match=said) as refused:
        CheckSettings(**how)
    assert refused.value.name == name


def test_the_command_refuses_it_before_it_opens_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    for flags, said in (
        ("--budgets 0", "expected numbers of edits, 1 or more; got [0]"),
        ("--max-swaps 3", "give --budgets, whose largest number is how many edits a text may get, not --max-swaps"),
        ("--threshold 0.5", "--threshold needs --target, the label that texts are flagged for"),
        ("--target bad --threshold 2", "--threshold must be a probability above 0 and up to 1, but is 2"),
    ):
        assert main(["check", "no such model", "none.csv", *flags.split()]) == 2
        assert capsys.readouterr().err == f"wordward: {said}\n"


def test_budgets_are_numbers_in_their_order() -> None:
    assert CheckSettings(budgets=(4, 2, 4)).budgets == (2, 4)
    assert CheckSettings().budgets == (1, 2, 4)
    assert CheckSettings().attack.sense == "kept"
