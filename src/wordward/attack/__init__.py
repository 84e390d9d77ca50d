"""Adversarial texts: words swapped until the prediction changes, each change verified."""

from wordward.attack.attacked import Attacked, Change
from wordward.attack.attacker import attack, attack_texts
from wordward.attack.checking import Check, check
from wordward.config.attack import AttackSettings
from wordward.config.check import CheckLimits
from wordward.runs.run import Run

Run.attack = attack_texts

__all__ = ["AttackSettings", "Attacked", "Change", "Check", "CheckLimits", "attack", "attack_texts", "check"]
