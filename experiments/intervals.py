"""95 % intervals: over seeds or folds by Student's t, over texts where there is but one run."""

import math
from collections.abc import Sequence

import numpy as np

NORMAL = 1.959964  # the 97.5 % point of the normal distribution
T_975 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}


def half(values: Sequence[float]) -> float:
    """Half of Student's interval around the mean of two values or more."""
    count, mean = len(values), sum(values) / len(values)
    spread = math.sqrt(sum((value - mean) ** 2 for value in values) / (count - 1))
    return student(count - 1) * spread / math.sqrt(count)


def half_of_pairs(first: np.ndarray, second: np.ndarray) -> float:
    """Half of the interval around the difference of two error rates on the same texts, (texts,) bool each."""
    differences = first.astype(float) - second.astype(float)
    return NORMAL * float(differences.std()) / math.sqrt(len(differences))


def student(freedom: int) -> float:
    """The 97.5 % point of Student's t; above nine degrees of freedom by its expansion around the normal one."""
    first = (NORMAL**3 + NORMAL) / 4
    second = (5 * NORMAL**5 + 16 * NORMAL**3 + 3 * NORMAL) / 96
    return T_975.get(freedom, NORMAL + first / freedom + second / freedom**2)
