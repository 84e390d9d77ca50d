"""Adversarial texts: words swapped until the prediction changes, each change verified."""

from wordward.attack.attacked import Attacked, Change
from wordward.attack.attacker import attack, attack_texts
from wordward.config.attack import AttackSettings
from wordward.runs.run import Run

Run.attack = attack_texts

__all__ = ["AttackSettings", "Attacked", "Change", "attack", "attack_texts"]
