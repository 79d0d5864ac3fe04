"""What perceptrons of unit length share: the step on the sphere, the account of their answers, and how points unite.

Of its answers a perceptron keeps the mistakes and the answers of late, and the log probability that its targets were
given. The n-th of N answers counts n / N, and in the long run only some `MOST_ANSWERS` count at all, so that the
account follows a student that gets better, or a teacher that changes. The share of mistakes, by Laplace's rule, is how
often the next answer is expected to be wrong.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from bayou.contracts import Array, Vector
from bayou.numerics.jit import kernel, vectorized_kernel
from bayou.numerics.points import PointEstimate

MOST_ANSWERS = 1000.0
# An answer is never called less probable than its opposite: it would have been the other.
MOST_ERRORS = 0.499
# Squares of lengths outside of this are not safe from overflow or rounding.
SHORTEST, LONGEST = 1e-280, 1e280

P = TypeVar("P", bound=Any)  # a NamedTuple with mean, tally, schedule, memory and account


@vectorized_kernel
def unit_step(weights: Array, step: float, x: Array, part: float, other: Array) -> None:
    """weights <- norm[weights + step (x - part other)], in double precision; where that is nothing, they stay."""
    square = 0.0
    for j in range(weights.size):
        moved = weights[j] + step * (x[j] - part * np.float64(other[j]))
        square += moved * moved
    unit = 1.0
    if not SHORTEST < square < LONGEST:
        largest = 0.0
        for j in range(weights.size):
            largest = max(largest, abs(weights[j] + step * (x[j] - part * np.float64(other[j]))))
        if not 0.0 < largest < np.inf:
            return
        unit, square = 1.0 / largest, 0.0
        for j in range(weights.size):
            moved = unit * (weights[j] + step * (x[j] - part * np.float64(other[j])))
            square += moved * moved
    unit /= math.sqrt(square)
    for j in range(weights.size):
        weights[j] = unit * (weights[j] + step * (x[j] - part * np.float64(other[j])))


@vectorized_kernel
def take_direction(weights: Array, source: Vector) -> None:
    """weights <- norm[source]; where that is nothing, they stay."""
    largest = 0.0
    for j in range(source.size):
        largest = max(largest, abs(source[j]))
    if not 0.0 < largest < np.inf:
        return
    square = 0.0
    for j in range(source.size):
        part = source[j] / largest
        square += part * part
    unit = 1.0 / math.sqrt(square)
    for j in range(source.size):
        weights[j] = source[j] / largest * unit


@kernel
def error_rate(account: Vector) -> float:
    """How often the next answer is expected to be wrong."""
    return float(min((account[0] + 1.0) / (account[1] + 2.0), MOST_ERRORS))


@kernel
def count_answer(account: Vector, margin: float, weight: float) -> None:
    """One more answer, of some weight: right if the margin is positive; a margin of zero is a guess."""
    mistaken = 0.5 if margin == 0.0 else 0.0 if margin > 0.0 else 1.0
    errors = error_rate(account)
    account[2] += weight * math.log(mistaken * errors + (1.0 - mistaken) * (1.0 - errors))
    forgotten = min(max(weight / max(2.0 * account[1], 1e-300), weight / MOST_ANSWERS), 1.0)
    account[0] += weight * mistaken - forgotten * account[0]
    account[1] += weight - forgotten * account[1]


@kernel
def errors_before(account: Vector, margins: Vector) -> Vector:
    """The error rate that was expected before each of these answers; the account is told of them all."""
    errors = np.empty(margins.size)
    for n in range(margins.size):
        errors[n] = error_rate(account)
        count_answer(account, margins[n], 1.0)
    return errors


class PerceptronEstimate(PointEstimate[P]):
    """A family of points of which only the direction counts, unless a spec says otherwise."""

    def _keeps_unit_length(self) -> bool:
        return True

    def forget(self, belief: P, discount: float = 1.0, diffusion: float = 0.0) -> None:
        """Let the examples and answers so far count for less."""
        super().forget(belief, discount, diffusion)
        belief.account[:2] *= discount

    def _average(self, parts: Sequence[tuple[float, P]]) -> P:
        """By examples; the average of directions is a direction, and so is what is left of one."""
        merged = super()._average(parts)
        total = float(merged.tally[0])
        for share, part in parts:
            merged.account[...] += share * part.account
        merged.account[:2] = np.maximum(merged.account[:2], 0.0)
        if total > 0.0:
            counted = [(share * float(part.tally[0]), part) for share, part in parts]
            merged.memory[...] = np.maximum(sum(count * part.memory for count, part in counted) / total, [1.0, 0.0])
            if self._keeps_unit_length():
                merged.mean[...] = _direction(counted, total)
        return merged


def _direction(counted: Sequence[tuple[float, Any]], total: float) -> Vector:
    """The direction of a sum of unit vectors, each times its count; a first count that includes others', less them.

    What is taken out is a part of a sum that was made a unit: its length K comes from total^2 = |K mean - taken|^2.
    """
    taken = sum(count * _unit(part.mean) for count, part in counted if count < 0.0)
    mean = sum(count * _unit(part.mean) for count, part in counted if count > 0.0)
    if np.any(taken):
        mean = _unit(np.asarray(mean))
        along = -float(mean @ taken)
        mean = mean * (along + math.sqrt(max(along * along - float(np.sum(np.square(taken))) + total * total, 0.0)))
    return _unit(np.asarray(mean + taken))


def _unit(weights: Array) -> Vector:
    length = float(np.linalg.norm(np.asarray(weights, dtype=np.float64)))
    return np.asarray(weights, dtype=np.float64) / (length if length > 0.0 else 1.0)
