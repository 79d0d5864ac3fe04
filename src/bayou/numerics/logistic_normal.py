"""E 1 / (1 + exp(-f)) for f ~ N(mean, variance), and its derivatives: fast where most examples are.

The trapezoidal rule converges faster than any power of its step h: its error is exp(-2 pi^2 variance / h^2) for the
normal density and exp(-2 pi^2 / h) for the logistic function. So a lattice of fixed points serves all latents of
moderate width. The logistic function on it is a table; the normal density on it is a product of ratios that are
themselves in a geometric progression; no exponential is taken per point.
"""

from __future__ import annotations

import math

import numpy as np

from bayou.contracts import Matrix
from bayou.numerics.jit import kernel

STEP = 0.125
REACH = 48.0
_POINTS = np.arange(-REACH, REACH + STEP / 2, STEP)
_LOGISTIC = np.exp(-np.logaddexp(0.0, -_POINTS))
_WRONG = np.exp(-np.logaddexp(0.0, _POINTS))
# per point: p, p', p''
TABLE = np.ascontiguousarray(
    np.stack([_LOGISTIC, _LOGISTIC * _WRONG, _LOGISTIC * _WRONG * (_WRONG - _LOGISTIC)], axis=1)
)
MIDDLE = _POINTS.size // 2

# The rule of Gauss and Hermite with n points errs by less than 2 n! variance^n / pi^(2n + 1), its second derivative by
# 30 times as much. Odd rules: a point at the mean, and pairs of points around it, of which one row each is kept.
LEAN, NARROW = 0.004, 0.04


def _hermite(n: int) -> tuple[float, Matrix]:
    """Weight of the point at the mean, then place and weight of the others on one side of it."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(n)
    weights = weights / weights.sum()
    return float(weights[n // 2]), np.stack([nodes[n // 2 + 1 :], weights[n // 2 + 1 :]], axis=1)


MIDDLE_OF_FIVE, FIVE = _hermite(5)
MIDDLE_OF_NINE, NINE = _hermite(9)
LOG_TWO_PI = math.log(2.0 * math.pi)


@kernel
def in_reach(mean: float, variance: float) -> bool:
    """Whether `logistic_normal` may be asked: the window around its mode must lie on the lattice."""
    return abs(mean) + 9.0 * math.sqrt(variance) < REACH - 8.0 and variance < 9.0


@kernel
def logistic_normal(mean: float, variance: float) -> tuple[float, float, float]:
    """log E p, and the first and second derivative of E p in the mean over E p, for p(f) = 1 / (1 + exp(-f))."""
    if variance < NARROW:
        return _narrow(mean, variance)
    deviation = math.sqrt(variance)
    stride = 4 if deviation >= 1.0 else 2 if deviation >= 0.5 else 1
    step = STEP * stride
    # the mode of p N is near mean + variance while that is on the rising side, and never beyond zero by much
    centre = round((mean + min(max(-mean, 0.0), variance)) / step)
    away = centre * step - mean
    shrink = math.exp(-step * step / variance)
    reach = int((8.5 * deviation + 2.0) / step) + 1
    total, first, second = 0.0, 0.0, 0.0
    for side in range(2):
        direction = 1 - 2 * side
        density = 1.0
        ratio = math.exp(-step * (2.0 * direction * away + step) / (2.0 * variance))
        at = MIDDLE + centre * stride
        if side == 1:  # the centre itself was counted going right
            at -= stride
            density = ratio
            ratio *= shrink
        for _ in range(reach):
            total += density * TABLE[at, 0]
            first += density * TABLE[at, 1]
            second += density * TABLE[at, 2]
            density *= ratio
            ratio *= shrink
            at += direction * stride
    log_mass = math.log(total * step) - 0.5 * (away * away / variance + LOG_TWO_PI) - math.log(deviation)
    return min(log_mass, 0.0), first / total, second / total


@kernel
def _narrow(mean: float, variance: float) -> tuple[float, float, float]:
    """The same by Gauss and Hermite's rule, relative to p at the mean so that unlikely targets keep their digits."""
    deviation = math.sqrt(variance)
    pairs, middle = (FIVE, MIDDLE_OF_FIVE) if variance < LEAN else (NINE, MIDDLE_OF_NINE)
    tail = math.exp(-mean)
    per_right = 1.0 + tail
    right = 1.0 / per_right
    wrong = tail * right
    total, first, second = middle, middle * wrong, middle * wrong * (wrong - right)
    for i in range(pairs.shape[0]):
        factor = math.exp(deviation * pairs[i, 0])
        for below in (tail * factor, tail / factor):  # exp(-f) on either side of the mean
            right = 1.0 / (1.0 + below)
            wrong = below * right
            weight = pairs[i, 1] * (right * per_right)
            total += weight
            first += weight * wrong
            second += weight * wrong * (wrong - right)
    return min(math.log(total) - math.log1p(tail), 0.0), first / total, second / total
