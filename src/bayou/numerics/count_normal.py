"""E p(y | f) for counts whose log mean is f ~ N(mean, variance), and its derivatives: fast where most examples are.

A count that scatters by a gamma factor of variance 1 / r around its mean has, relative to any place f,

    log p(f + t) - log p(f) = y t - (y + r) log((1 + D e^t) / (1 + D)),   D = e^f / r,

which becomes y t - e^f (e^t - 1), that of Poisson, as r grows. The trapezoidal rule converges faster than any power of
its step for such functions, so that steps from the mode outwards are taken until nothing is added any more. From one to
the next e^t is multiplied by a constant.
"""

from __future__ import annotations

import math

from bayou.numerics.jit import kernel
from bayou.numerics.normal import LOG_SQRT_TWO_PI, TINY

# Steps in deviations of the product at its mode, and in units of f, of which e^f allows no more: errors of 1e-12.
OF_WIDTH, OF_UNIT = 0.42, 0.28
NEGLIGIBLE = 1e-17
MOST_STEPS = 1000
NEWTON_STEPS = 60
WIDEST, NARROWEST, FARTHEST, MOST = 400.0, 1e-12, 50.0, 1e9


@kernel
def in_reach(y: float, mean: float, variance: float, r: float) -> bool:
    """Whether `count_normal` may be asked: elsewhere digits are lost, or steps are too many."""
    return NARROWEST < variance < WIDEST and abs(mean) < FARTHEST and y < MOST and (r < MOST or r == math.inf)


@kernel
def slope_and_curvature(y: float, r: float, rate: float) -> tuple[float, float]:
    """Of log p in f, the curvature with its sign turned, where the mean is this."""
    if r == math.inf:
        return y - rate, rate
    share = rate / (r + rate)
    return y - (y + r) * share, (y + r) * share * (r / (r + rate))


@kernel
def mode_of(y: float, r: float, mean: float, variance: float) -> float:
    """Offset from the mean at which p(y | f) N(f) is largest, to a hundredth of its width."""
    precision = 1.0 / variance
    slope, curvature = slope_and_curvature(y, r, math.exp(mean))
    if slope == 0.0:
        return 0.0
    # The slope becomes less on the way to where p is largest: the mode is nearer than this, and than that place.
    end = variance * slope
    if y > 0.0:
        nearest = math.log(y) - mean
    else:  # where e^f has become less than the pull of the mean
        nearest = min(math.log(mean * precision), 0.0) - mean if mean > 1.0 else -math.inf
    if abs(nearest) < abs(end):
        end = nearest
    low, high = min(0.0, end), max(0.0, end)
    x = min(max(slope / (precision + curvature), low), high)
    for _ in range(NEWTON_STEPS):
        slope, curvature = slope_and_curvature(y, r, math.exp(mean + x))
        gradient, stiffness = slope - precision * x, precision + curvature
        if abs(gradient) <= 0.01 * math.sqrt(stiffness):
            break
        if gradient > 0.0:
            low = x
        else:
            high = x
        x += gradient / stiffness
        if not low < x < high:
            x = 0.5 * (low + high)
    return x


@kernel
def count_normal(y: float, mean: float, variance: float, r: float) -> tuple[float, float, float, float, float]:
    """log of E p(y | f) / p(y | mode), slope and minus curvature of log E p in the mean, the share of the variance that
    is left, and the mode, of which p is known better elsewhere.
    """
    centre = mode_of(y, r, mean, variance)
    rate = math.exp(mean + centre)
    slope_there, curvature = slope_and_curvature(y, r, rate)
    precision = 1.0 / variance
    step = min(OF_WIDTH / math.sqrt(precision + curvature), OF_UNIT)
    total, first, second = 1.0, 0.0, 0.0
    slopes, squares, curvatures = 0.0, 0.0, curvature
    per_r = rate / (r + rate) if r < math.inf else 0.0
    for side in (-1.0, 1.0):
        grown, ratio = 1.0, math.exp(side * step)
        before = 1.0
        for i in range(1, MOST_STEPS):
            t = side * step * i
            grown *= ratio
            if r < math.inf:
                change = y * t - (y + r) * math.log1p(per_r * (grown - 1.0))
            else:
                change = y * t - rate * (grown - 1.0)
            weight = math.exp(change - 0.5 * precision * t * (2.0 * centre + t))
            slope, curved = slope_and_curvature(y, r, rate * grown)
            beyond = slope - slope_there
            total += weight
            first += weight * t
            second += weight * t * t
            slopes += weight * beyond
            squares += weight * beyond * beyond
            curvatures += weight * curved
            if weight < NEGLIGIBLE * total and weight < before:
                break
            before = weight
    offset = first / total
    log_mass = math.log(total * step) - LOG_SQRT_TWO_PI - 0.5 * math.log(variance) - 0.5 * precision * centre * centre
    kept = min(max((second / total - offset * offset) * precision, TINY), 1.0)
    if kept > 0.5:  # else slopes vary more than offsets, and the moments of these are better
        extra = slopes / total
        precise = max(curvatures / total - (squares / total - extra * extra), 0.0)
        return log_mass, slope_there + extra, precise, 1.0 - variance * precise, centre
    return log_mass, (centre + offset) * precision, (1.0 - kept) * precision, kept, centre
