"""Adversarial texts: words swapped, or edited otherwise, until the prediction changes, each text verified."""

from wordward.attack.attacked import Attacked, Change
from wordward.attack.attacker import attack, attack_texts
from wordward.attack.augment import Augmented, augmented
from wordward.attack.checked import Check
from wordward.attack.checking import check
from wordward.attack.guard import Guard
from wordward.attack.protocol import Yardstick, yardsticks
from wordward.config.attack import EDITS, AttackSettings
from wordward.config.check import CheckLimits, CheckSettings
from wordward.config.yardsticks import YardstickSettings
from wordward.runs.run import Run

Run.attack = attack_texts

__all__ = [
    "EDITS",
    "AttackSettings",
    "Attacked",
    "Augmented",
    "Change",
    "Check",
    "CheckLimits",
    "CheckSettings",
    "Guard",
    "Yardstick",
    "YardstickSettings",
    "attack",
    "attack_texts",
    "augmented",
    "check",
    "yardsticks",
]
