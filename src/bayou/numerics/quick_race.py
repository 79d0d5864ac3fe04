"""The Gumbel race of `bayou.numerics.race` to five digits instead of ten, at a tenth of its cost: for members of banks.

    E p_c = integral du P r_c         P = prod_j H_j    r_c = h_c / H_c    q_c = h'_c / H_c    R = sum_c r_c

    d log E p_y / d m_c = -E(r_c)     - d^2 / d m_c^2 = E(r_c)^2 - E(q_c)               c other than y, E over P r_y
    d log E p_y / d m_y = E(R - r_y)  - d^2 / d m_y^2 = E(R - r_y)^2 + E(q_y (R - r_y) / r_y)

One grid serves all classes: those of y follow from the others, as shifting all means changes nothing. Nothing here
searches for a mode or allocates.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.polynomial.hermite_e import hermegauss

from bayou.contracts import Matrix, Vector
from bayou.numerics.jit import borrowing_kernel
from bayou.numerics.race import HALF_LOG_TAU, gauss_gumbel

LARGEST_GRID = 96
STEP = 0.65  # of the grid, where some class is narrow: aliasing of a Gumbel is then 1e-6
STEP_PER_DEVIATION = 0.45  # where all are wide
DEVIATIONS, BELOW, ABOVE = 4.5, 2.7, 5.5  # how far the grid reaches beyond the means
REACH = 5.5  # deviations of f that are summed over
NARROW = (0.3, 0.65)  # up to these deviations of f, Hermite rules
ORDERS = (4, 6)  # of these orders
WIDE = 2.3  # from this deviation on, a Gauss rule for the Gumbel
SMALLEST = 1e-300  # probability
NORMAL_PEAK = 1.0 / math.sqrt(2.0 * math.pi)
MOST = 30.0  # of x, beyond which e^-x is nothing

# Rows of scratch: e^-u, 1 - e^-x, H, h, h + h'. One array with fixed distances shows the compiler that they are apart.
MISSING, HIT, ONCE, TWICE, SCRATCH = (row * LARGEST_GRID for row in (1, 2, 3, 4, 5))


def _gauss_hermite() -> tuple[Matrix, Matrix]:
    nodes, weights = np.zeros((len(ORDERS), max(ORDERS))), np.zeros((len(ORDERS), max(ORDERS)))
    for row, order in enumerate(ORDERS):
        nodes[row, :order], weights[row, :order] = hermegauss(order)
    return nodes, weights / weights.sum(axis=1, keepdims=True)


HERMITE_NODES, HERMITE_WEIGHTS = _gauss_hermite()
GUMBEL_NODES, GUMBEL_WEIGHTS = gauss_gumbel(7)


class RaceRoom(NamedTuple):
    """Room for one race of k classes: the grid, factors r and q of each class on it (2k, LARGEST_GRID), P and R."""

    scratch: Vector
    factors: Matrix
    product: Vector
    rate: Vector


def race_room(n_classes: int) -> RaceRoom:
    """Room for so many classes."""
    return RaceRoom(np.zeros(SCRATCH), np.zeros((2 * n_classes, LARGEST_GRID)), *np.zeros((2, LARGEST_GRID)))


@borrowing_kernel
def missing(x: float) -> float:
    """1 - e^-x for 0 <= x <= 30, by Taylor at x / 128 and doubling: unlike calls of expm1, many at once."""
    x *= 0.0078125
    missing = x * (1.0 - x / 2.0 * (1.0 - x / 3.0 * (1.0 - x / 4.0 * (1.0 - x / 5.0))))
    for _ in range(7):
        missing *= 2.0 - missing
    return missing


@borrowing_kernel
def narrow(n: int, offset: float, deviation: float, scratch: Vector) -> None:
    """H, h and h + h' of a class whose deviation is small beside the Gumbel's: a Hermite rule in f."""
    row = 0 if deviation <= NARROW[0] else 1
    for node in range(ORDERS[row] if deviation > 0.0 else 1):
        weight = HERMITE_WEIGHTS[row, node] if deviation > 0.0 else 1.0
        scale = math.exp(min(offset + deviation * HERMITE_NODES[row, node], 500.0))
        for i in range(n):
            x = min(scale * scratch[i], MOST)
            term = weight * (1.0 - missing(x))
            scratch[HIT + i] += term
            term *= x
            scratch[ONCE + i] += term
            scratch[TWICE + i] += term * x


@borrowing_kernel
def middle(n: int, offset: float, deviation: float, scratch: Vector) -> None:
    """The same by the trapezoid rule in f, in steps of log 2, by which x doubles from node to node."""
    step = math.log(2.0)
    last = int(REACH * deviation / step) + 1
    scale = math.exp(min(offset - last * step, 500.0))
    for i in range(n):
        scratch[MISSING + i] = missing(min(scale * scratch[i], MOST))
    for node in range(-last, last + 1):
        away = node * step / deviation
        weight = step / deviation * math.exp(-0.5 * away * away - HALF_LOG_TAU)
        for i in range(n):
            x, gone = scale * scratch[i], scratch[MISSING + i]
            term = weight * (1.0 - gone) if x < MOST else 0.0
            scratch[HIT + i] += term
            term *= x
            scratch[ONCE + i] += term
            scratch[TWICE + i] += term * x
            scratch[MISSING + i] = gone * (2.0 - gone)
        scale *= 2.0


@borrowing_kernel
def wide(n: int, start: float, step: float, deviation: float, scratch: Vector) -> None:
    """The same of a class beside which the Gumbel is narrow; the grid begins so far from the mean.

    The tail of the normal is that of Abramowitz and Stegun, 7.1.26, to 1e-7: many at once, unlike calls of erfc.
    """
    for node in range(GUMBEL_NODES.size):
        weight, first = GUMBEL_WEIGHTS[node], start - GUMBEL_NODES[node]
        for i in range(n):
            z = (first + step * i) / deviation
            fallen = 1.0 - missing(min(0.5 * z * z, MOST))
            t = 1.0 / (1.0 + 0.3275911 * math.sqrt(0.5) * abs(z))
            tail = 0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))
            tail *= 0.5 * t * fallen
            density = weight * NORMAL_PEAK * fallen / deviation
            scratch[HIT + i] += weight * (tail if z < 0.0 else 1.0 - tail)
            scratch[ONCE + i] += density
            scratch[TWICE + i] += density * (1.0 - z / deviation)


@borrowing_kernel
def lay_grid(mean: Vector, variance: Vector, scratch: Vector) -> tuple[int, float, float]:
    """How many points, the first and the distance of the next; e^-u on them, over that of the first."""
    low, high, narrowest = -math.inf, -math.inf, math.inf
    for c in range(mean.size):
        deviation = math.sqrt(variance[c])
        low = max(low, mean[c] - DEVIATIONS * deviation)
        high = max(high, mean[c] + DEVIATIONS * deviation)
        narrowest = min(narrowest, deviation)
    low, high = low - BELOW, high + ABOVE
    step = max(STEP, STEP_PER_DEVIATION * narrowest, (high - low) / (LARGEST_GRID - 1))
    n = min(int((high - low) / step) + 2, LARGEST_GRID)
    ratio, fallen = math.exp(-step), 1.0
    for i in range(n):
        scratch[i] = fallen
        fallen *= ratio
    return n, low, step


@borrowing_kernel
def race(mean: Vector, variance: Vector, probability: Vector, room: RaceRoom) -> int:
    """E p_c of each class; leaves the factors on so many points, for `race_slopes`."""
    scratch, factors, product, rate = room.scratch, room.factors, room.product, room.rate
    n, low, step = lay_grid(mean, variance, scratch)
    for i in range(n):
        product[i], rate[i] = step, 0.0
    product[n - 1] /= 1.0 - math.exp(-step)  # beyond the grid every r falls as e^-u
    for c in range(mean.size):
        for i in range(n):
            scratch[HIT + i], scratch[ONCE + i], scratch[TWICE + i] = 0.0, 0.0, 0.0
        deviation = math.sqrt(variance[c])
        if deviation <= NARROW[1]:
            narrow(n, mean[c] - low, deviation, scratch)
        elif deviation < WIDE:
            middle(n, mean[c] - low, deviation, scratch)
        else:
            wide(n, low - mean[c], step, deviation, scratch)
        first, second = factors[2 * c], factors[2 * c + 1]
        for i in range(n):
            per_hit = 1.0 / max(scratch[HIT + i], SMALLEST)
            product[i] *= scratch[HIT + i]
            first[i] = scratch[ONCE + i] * per_hit
            rate[i] += first[i]
            second[i] = (scratch[TWICE + i] - scratch[ONCE + i]) * per_hit
    total = 0.0
    for c in range(mean.size):
        first, share = factors[2 * c], 0.0
        for i in range(n):
            share += product[i] * first[i]
        probability[c] = max(share, SMALLEST)
        total += probability[c]
    for c in range(mean.size):
        probability[c] /= total
    return n


@borrowing_kernel
def race_slopes(y: int, n: int, slope: Vector, curvature: Vector, room: RaceRoom) -> None:
    """Slope of log E p_y in each mean, and minus its curvature, from what `race` has left; uses up the product."""
    product, all_rates, of_target, bent = room.product, room.rate, room.factors[2 * y], room.factors[2 * y + 1]
    given, rate, bend = 0.0, 0.0, 0.0
    for i in range(n):
        others = all_rates[i] - of_target[i]
        bend += product[i] * bent[i] * others
        product[i] *= of_target[i]
        given += product[i]
        rate += product[i] * others
    per_given = 1.0 / given if given > SMALLEST else 0.0
    for c in range(slope.size):
        first, second, met, turned = room.factors[2 * c], room.factors[2 * c + 1], 0.0, 0.0
        for i in range(n):
            met += product[i] * first[i]
            turned += product[i] * second[i]
        slope[c] = -met * per_given
        curvature[c] = max(slope[c] * slope[c] - turned * per_given, 0.0)
    slope[y] = rate * per_given
    curvature[y] = max(slope[y] * slope[y] + bend * per_given, 0.0)
