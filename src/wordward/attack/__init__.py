"""Adversarial texts: words swapped until the prediction changes, each change verified."""

from wordward.attack.attacked import Attacked, Change
from wordward.attack.attacker import attack
from wordward.config.attack import AttackSettings

__all__ = ["AttackSettings", "Attacked", "Change", "attack"]
