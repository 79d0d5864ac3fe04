"""The size of a perceptron's step, by a clock or by its mistakes; what a schedule keeps is a few numbers.

By a clock, with alpha examples per weight:

    rate = min(largest, scale (alpha + offset)^-power)

By mistakes. At a small angle theta to its teacher a perceptron of unit length follows (Barkai, Seung and Sompolinsky
1995, (4))

    dtheta / dalpha = -rate theta / sqrt(2 pi) + rate^2 / (2 pi)

which falls fastest at rate = sqrt(2 pi) theta / 2 = (pi sqrt(2 pi) / 2) eps, as the error is eps = theta / pi. Then
dtheta / dalpha = -theta^2 / 4, so eps = (4 / pi) / alpha: the best that any schedule by the clock reaches, without one.

The error is told by the student's own mistakes: with G the mean number of examples from one to the next, eps = 1 / G,
and at each mistake of a perceptron of d weights G += (KAPPA / d)(gap - G). G lags behind, because eps falls: per
mistake alpha grows by the factor 1 + pi / (4 d), so that the gaps grow likewise, and G settles at gap / (1 + pi / (4
KAPPA)): a known factor, which is divided out. A larger KAPPA lags less and scatters more. The rate's relative variance
KAPPA / (2 d) raises the error by as much; and while the error does not fall, the factor is not due, which slows the
fall by its square, (1 - 1 / LAG)^2. KAPPA = 2 asks 1 / d for the one and 8 % for the other.
"""

from __future__ import annotations

import math

import numpy as np

from bayou.contracts import Vector
from bayou.numerics.jit import kernel

KAPPA = 2.0
LAG = 1.0 + math.pi / (4.0 * KAPPA)
# The chance that a run of so many mean gaps ends without a mistake is exp(-7), one in a thousand: the gap was longer.
LONG_RUN = 7.0
# Before the first mistake: every second answer of a student that knows nothing is wrong.
GUESSING = 2.0
UNBOUNDED = 1e100


def by_clock(scale: float, power: float, offset: float = 0.0, largest: float = UNBOUNDED) -> Vector:
    """The numbers of a schedule by the clock."""
    return np.array([scale, power, offset, largest, 0.0])


def by_mistakes() -> Vector:
    """The numbers of the schedule by mistakes."""
    return np.array([0.5 * math.pi * math.sqrt(2.0 * math.pi) / LAG, 0.0, 0.0, UNBOUNDED, 1.0])


def no_memory() -> Vector:
    """What is remembered before the first example: the mean gap between mistakes, and the examples since the last."""
    return np.array([GUESSING, 0.0])


@kernel
def remember(memory: Vector, mistaken: bool, share: float, n_weights: int) -> None:
    """One more answer, right or wrong, that counts as a share of an example."""
    memory[1] += share
    if mistaken:
        memory[0] += min(KAPPA / n_weights, 1.0) * (memory[1] - memory[0])
        memory[0] = max(memory[0], memory[1] / LONG_RUN, 1.0)
        memory[1] = 0.0


@kernel
def rate(numbers: Vector, memory: Vector, alpha: float) -> float:
    """The rate for the example that makes it alpha examples per weight."""
    if numbers[4] > 0.0:
        return float(numbers[0] / memory[0])
    return float(min(numbers[3], numbers[0] * (alpha + numbers[2]) ** -numbers[1]))
