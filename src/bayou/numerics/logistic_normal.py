"""E 1 / (1 + exp(-f)) for f ~ N(mean, variance), and its derivatives: fast where most examples are.

The trapezoidal rule converges faster than any power of its step h: its error is exp(-2 pi^2 variance / h^2) for the
normal density and exp(-2 pi^2 / h) for the logistic function. So a lattice of fixed points serves all latents of
moderate width. The logistic function on it is a table; the normal density on it is a product of ratios that are
themselves in a geometric progression; no exponential is taken per point.
"""

from __future__ import annotations

import math

import numpy as np

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

HERMITE_NODES, HERMITE_WEIGHTS = np.polynomial.hermite_e.hermegauss(12)
HERMITE_WEIGHTS = HERMITE_WEIGHTS / HERMITE_WEIGHTS.sum()
NARROW = 0.04
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
    small = math.exp(-abs(mean))
    at_mean = small / (1.0 + small) if mean < 0.0 else 1.0 / (1.0 + small)
    total, first, second = 0.0, 0.0, 0.0
    for i in range(HERMITE_NODES.size):
        f = mean + deviation * HERMITE_NODES[i]
        tail = math.exp(-abs(f))
        right = tail / (1.0 + tail) if f < 0.0 else 1.0 / (1.0 + tail)
        wrong = tail / (1.0 + tail) if f > 0.0 else 1.0 / (1.0 + tail)
        weight = HERMITE_WEIGHTS[i] * (right / at_mean)
        total += weight
        first += weight * wrong
        second += weight * wrong * (wrong - right)
    log_mass = min(mean, 0.0) - math.log1p(small) + math.log(total)
    return min(log_mass, 0.0), first / total, second / total
