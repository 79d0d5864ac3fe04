"""E 1 / (1 + exp(-f)) for f ~ N(mean, variance), and its derivatives: fast where most examples are.

The trapezoidal rule converges faster than any power of its step h: its error is exp(-2 pi^2 variance / h^2) for the
normal density and exp(-2 pi^2 / h) for the logistic function. So a lattice of fixed points serves all latents of
moderate width. The logistic function on it is a table; the normal density on it is a product of ratios that are
themselves in a geometric progression; no exponential is taken per point.

Of wide latents the logistic function is taken apart: E Phi(f / s) is known, and what is left of it is as narrow as its
derivatives, so that the points near zero are enough however wide the latent is.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import ndtr

from bayou.contracts import Vector
from bayou.numerics.instructions import Writer, written
from bayou.numerics.jit import kernel

STEP = 0.125
REACH = 160.0
# For errors of 1e-12: steps of at most so many deviations, and of what the logistic function allows; and how many
# deviations of the density count.
COARSEST, COARSEST_OF_LOGISTIC, WIDTH = 0.845, 0.72, 7.5
STRIDES = int(COARSEST_OF_LOGISTIC / STEP)  # lattices of every, every second, ... point
_SIDES = [int(REACH / (STEP * stride)) for stride in range(1, STRIDES + 1)]


def _table(points: Vector, function: Vector) -> Vector:
    """A function of the points, then p' of them, then p''."""
    right, wrong = np.exp(-np.logaddexp(0.0, -points)), np.exp(-np.logaddexp(0.0, points))
    return np.concatenate([function, right * wrong, right * wrong * (wrong - right)])


def _lattice(stride: int, side: int) -> Vector:
    points = STEP * stride * np.arange(-side, side + 1.0)
    return _table(points, np.exp(-np.logaddexp(0.0, -points)))


# One lattice after another: how many points each has, and where its point at zero is.
TABLE = np.concatenate([_lattice(stride, side) for stride, side in enumerate(_SIDES, start=1)])
POINTS = 2 * np.array(_SIDES) + 1
MIDDLES = 3 * (np.cumsum(POINTS) - POINTS) + np.array(_SIDES)

# The rule of Gauss and Hermite with n points errs by less than 2 n! variance^n / pi^(2n + 1), its second derivative by
# 30 times as much. With nine there is a point at the mean, and four on either side of it: a vector of squares of their
# places, and of their weights.
NARROW = 0.04
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
SQUARES, WEIGHTS, MIDDLE_WEIGHT = _NODES[5:] ** 2, _WEIGHTS[5:], float(_WEIGHTS[4])
# exp(d) + exp(-d) - 2 = d^2 (1 + d^2 / 12 (1 + d^2 / 30 (1 + ...))), for squares of d below 1: below a rounding.
SERIES = (12.0, 30.0, 56.0, 90.0, 132.0, 182.0, 240.0)
LOG_TWO_PI = math.log(2.0 * math.pi)


# Points of wide latents, near zero alone; their function is p less Phi.
WIDE, MOST_ON_LATTICE = 12.0, 100.0
FARTHEST = 900.0  # squared deviations: beyond, the mass would underflow
NORMAL_SCALE = 1.7  # of the normal that is nearest to the logistic function
WIDE_STEP = 0.5
TWICE_NEGLIGIBLE = 80.0  # nats: of points that fall by half of that, even all together are less than a rounding
WIDE_MIDDLE = int(42.0 / WIDE_STEP)
WIDE_POINTS = 2 * WIDE_MIDDLE + 1
_NEAR_ZERO = WIDE_STEP * np.arange(-WIDE_MIDDLE, WIDE_MIDDLE + 1.0)
_LEFT_OVER = np.where(
    _NEAR_ZERO < 0.0,
    np.exp(-np.logaddexp(0.0, -_NEAR_ZERO)) - ndtr(_NEAR_ZERO / NORMAL_SCALE),
    ndtr(-_NEAR_ZERO / NORMAL_SCALE) - np.exp(-np.logaddexp(0.0, _NEAR_ZERO)),  # as on the other side, for its digits
)
WIDE_TABLE = _table(_NEAR_ZERO, _LEFT_OVER)


def _write_sums(
    to: Writer, table: Any, middle: Any, width: Any, blocks: Any, to_right: Any, to_left: Any, shrink: Any
) -> list[Any]:
    powers = [to.one, shrink]  # of the shrink
    while len(powers) <= 16:
        powers.append(to.product(powers[len(powers) // 2], powers[(len(powers) + 1) // 2]))

    def densities(ratio: Any) -> list[Any]:
        """Of the middle, and of the four points beside it on one side."""
        beside = [to.one]
        for i in range(4):
            beside.append(to.product(beside[i], to.product(ratio, powers[i])))
        return beside

    on_right, on_left = densities(to_right), densities(to_left)
    right, left = to.packed(on_right[:4]), to.packed(on_left[:0:-1])
    further_right = to.packed([to.product(on_right[4], powers[4 * i]) for i in range(4)])
    further_left = to.packed([to.product(on_left[4], powers[16 - 4 * i]) for i in range(4)])
    shrinks = to.everywhere(powers[16])

    def body(i: Any, values: list[Any]) -> list[Any]:
        *sums, right, left, further_right, further_left = values
        away = to.times(i, to.lanes)
        here, there = to.plus(middle, away), to.less(to.plus(middle, -to.lanes), away)
        for f in range(3):
            on_left = to.multiply_add(left, to.load(table, to.plus(there, to.times(width, f))), sums[f])
            sums[f] = to.multiply_add(right, to.load(table, to.plus(here, to.times(width, f))), on_left)
        moved = to.product(right, further_right), to.product(left, further_left)
        return [*sums, *moved, to.product(further_right, shrinks), to.product(further_left, shrinks)]

    begin = [to.zeros, to.zeros, to.zeros, right, left, further_right, further_left]
    return [to.total(sums) for sums in to.loop(blocks, begin, body)[:3]]


def _plain_sums(
    table: Vector, middle: int, width: int, blocks: int, to_right: float, to_left: float, shrink: float
) -> tuple[float, float, float]:
    steps = np.arange(4 * blocks + 1.0)
    squares = steps * (steps - 1.0) / 2.0
    right, left = to_right**steps * shrink**squares, to_left**steps * shrink**squares
    first, second, third = (
        table[begin : begin + 4 * blocks] @ right[:-1] + table[begin - 4 * blocks : begin] @ left[:0:-1]
        for begin in (middle, middle + width, middle + 2 * width)
    )
    return float(first), float(second), float(third)


# Sums over blocks of four points, on either side, of a function times densities, relative to that in the middle: on
# either side each is the one before times a ratio, and the ratio shrinks. So it is of points four apart.
lattice_sums = written(_write_sums, _plain_sums, returns=3)


def _write_pairs(to: Writer, squares: Any, weights: Any, variance: Any, both: Any, wrong: Any) -> list[Any]:
    both, wrong = to.everywhere(both), to.everywhere(wrong)
    squared = to.product(to.everywhere(variance), to.load(squares, to.first))
    series = to.ones
    for divisor in reversed(SERIES):
        series = to.multiply_add(to.product(squared, to.same(1.0 / divisor)), series, to.ones)
    above = to.product(squared, series)
    per_spread = to.ratio(to.ones, to.multiply_add(both, above, to.ones))
    once = to.product(to.load(weights, to.first), per_spread)
    twice = to.product(once, per_spread)
    thrice = to.product(twice, per_spread)
    mass = to.product(once, to.multiply_add(wrong, above, to.same(2.0)))
    apart = to.multiply_add(to.product(both, to.same(-2.0)), above, above)  # (1 - 2 both) above
    slope = to.product(twice, to.sum(apart, to.same(2.0)))
    bend = to.multiply_add(to.product(both, to.sum(above, to.same(6.0))), above, to.minus(to.sum(above, to.same(2.0))))
    return [to.total(sums) for sums in (mass, slope, to.product(thrice, bend))]


def _plain_pairs(
    squares: Vector, weights: Vector, variance: float, both: float, wrong: float
) -> tuple[float, float, float]:
    above = 2.0 * np.cosh(np.sqrt(variance * squares)) - 2.0
    spread = 1.0 + both * above
    mass = weights / spread * (2.0 + wrong * above)
    slope = weights / spread**2 * (2.0 + (1.0 - 2.0 * both) * above)
    bend = weights / spread**3 * (both * (6.0 + above) * above - 2.0 - above)
    return float(mass.sum()), float(slope.sum()), float(bend.sum())


# Sums over pairs of points at the same distance from the mean, on either side of it, of E p, of p' and of p'' over the
# tilt, relative to p at the mean. Two of a pair are summed in closed form, by p and 1 - p at the mean, and what
# exp(distance) + exp(-distance) is above 2.
pair_sums = written(_write_pairs, _plain_pairs, returns=3)


@kernel
def in_reach(mean: float, variance: float) -> bool:
    """Whether `logistic_normal` may be asked: the window around its mode must lie on the lattice, or near zero."""
    return _is_wide(mean, variance) or (
        variance < MOST_ON_LATTICE and abs(mean) + 9.0 * math.sqrt(variance) < REACH - 8.0
    )


@kernel
def _is_wide(mean: float, variance: float) -> bool:
    """Whether what is left of the logistic function decays by more than half a nat per unit, density included."""
    return variance > WIDE and abs(mean) < 0.45 * variance and mean * mean < FARTHEST * variance


@kernel
def logistic_normal(mean: float, variance: float) -> tuple[float, float, float]:
    """log E p, and the first and second derivative of E p in the mean over E p, for p(f) = 1 / (1 + exp(-f))."""
    if variance < NARROW:
        return _narrow(mean, variance)
    if _is_wide(mean, variance):
        return _wide(mean, variance)
    deviation, per_variance = math.sqrt(variance), 1.0 / variance
    stride = int(min(COARSEST * deviation, COARSEST_OF_LOGISTIC) * (1.0 / STEP))
    step = STEP * stride
    per_step = 1.0 / step
    # the mode of p N is near mean + variance while that is on the rising side, and never beyond zero by much
    centre = round((mean + min(max(-mean, 0.0), variance)) * per_step)
    away = centre * step - mean
    fall, tilt = -0.5 * step * step * per_variance, step * away * per_variance
    to_right, to_left = math.exp(fall - tilt), math.exp(fall + tilt)
    # by no more than e per unit do p and its derivatives change, so that no mode is farther away than the variance
    count = int((WIDTH * deviation + min(variance, 2.0)) * per_step) + 1
    where = MIDDLES[stride - 1] + centre, POINTS[stride - 1], (count >> 2) + 1
    total, first, second = lattice_sums(TABLE, *where, to_right, to_left, to_right * to_left)
    per_total = 1.0 / total
    log_mass = math.log(total * step * deviation * per_variance) - 0.5 * (away * away * per_variance + LOG_TWO_PI)
    return min(log_mass, 0.0), first * per_total, second * per_total


@kernel
def _narrow(mean: float, variance: float) -> tuple[float, float, float]:
    """The same by Gauss and Hermite's rule, relative to p at the mean so that unlikely targets keep their digits."""
    tail = math.exp(-mean)
    right = 1.0 / (1.0 + tail)
    wrong = tail * right
    both, tilt = right * wrong, right - wrong
    total, first, second = pair_sums(SQUARES, WEIGHTS, variance, both, wrong)
    per_total = 1.0 / (MIDDLE_WEIGHT + total)
    first, second = MIDDLE_WEIGHT + first, tilt * (second - MIDDLE_WEIGHT)
    mass = math.log((MIDDLE_WEIGHT + total) * right)
    return min(mass, 0.0), wrong * first * per_total, wrong * second * per_total


@kernel
def _wide(mean: float, variance: float) -> tuple[float, float, float]:
    """The same for wide latents. Densities are relative to that at zero."""
    half, tilt = -0.5 * WIDE_STEP * WIDE_STEP / variance, WIDE_STEP * mean / variance
    to_right, to_left = math.exp(half + tilt), math.exp(half - tilt)
    fall = 1.0 - abs(mean) / variance  # of a point's share, at first, in nats per unit; then it falls faster
    reach = TWICE_NEGLIGIBLE / (fall + math.sqrt(fall * fall + TWICE_NEGLIGIBLE / variance))
    blocks = min((int(reach * (1.0 / WIDE_STEP)) >> 2) + 1, WIDE_MIDDLE >> 2)
    where = WIDE_MIDDLE, WIDE_POINTS, blocks
    total, first, second = lattice_sums(WIDE_TABLE, *where, to_right, to_left, to_right * to_left)
    deviation = math.sqrt(variance)
    at_zero = WIDE_STEP * math.exp(-0.5 * (mean * mean / variance + LOG_TWO_PI)) / deviation
    of_normal = 0.5 * math.erfc(-mean / math.sqrt(2.0 * (variance + NORMAL_SCALE * NORMAL_SCALE)))
    mass = min(of_normal + at_zero * total, 1.0)
    return math.log(mass), at_zero * first / mass, at_zero * second / mass
