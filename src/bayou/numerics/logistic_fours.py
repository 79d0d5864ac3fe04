"""E 1 / (1 + exp(-f)) and its derivatives for four f ~ N(mean, variance) at once, one in each lane of a vector.

The trapezoidal rule, with pairs of points around each mean at whole multiples of one step in deviations, for all four.
Then weights of points are the same numbers, exp(-k^2 step^2 / 2), and the two of a pair are summed in closed form by

    above_k = exp(k d) + exp(-k d) - 2,  d = step * deviation,

of which each is told by the two before without a difference of near numbers. Nothing is looked up, and no function is
asked per point.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bayou.contracts import Vector
from bayou.numerics.fours import FOUR, KEPT, MOVES, SPREADS, VALUES
from bayou.numerics.instructions import Writer, written
from bayou.numerics.jit import kernel
from bayou.numerics.logistic_normal import LOG_TWO_PI, SERIES, WIDE, WIDTH
from bayou.numerics.normal import TINY

FARTHEST = 150.0  # means beyond are rare, and left to who asks for one at a time
# The rule errs by exp(-2 pi^2 / step^2) for the normal density, and by exp(-2 pi^2 / h + pi^2 / (2 variance)) for the
# poles of the logistic function, h = step * deviation: these are the largest for errors of 1e-13, derivatives included.
COARSEST, PER_STEP = 0.758, 34.3
PER_WHOLE, PER_POLE = 2.0 * math.pi**2, 0.5 * math.pi**2
ROOM = KEPT + FOUR


def _write_pairs(
    to: Writer, squares: Any, both: Any, wrong: Any, weight: Any, shrink: Any, pairs: Any, sums: Any
) -> None:
    squared, both, wrong = (to.load(numbers, to.first) for numbers in (squares, both, wrong))
    series = to.ones
    for divisor in reversed(SERIES):
        series = to.multiply_add(to.product(squared, to.same(1.0 / divisor)), series, to.ones)
    above = to.product(squared, series)
    twice, leaning = to.sum(above, above), to.multiply_add(both, to.same(-2.0), to.ones)
    two, six = to.same(2.0), to.same(6.0)

    def pair(_: Any, values: list[Any]) -> list[Any]:
        mass, slope, bend, weight, ratio, here, rise = values
        per_spread = to.ratio(to.ones, to.multiply_add(both, here, to.ones))
        once = to.product(to.everywhere(weight), per_spread)
        again = to.product(once, per_spread)
        bent = to.multiply_add(to.product(both, to.sum(here, six)), here, to.minus(to.sum(here, two)))
        beyond = to.sum(here, rise)
        return [
            to.multiply_add(once, to.multiply_add(wrong, here, two), mass),
            to.multiply_add(again, to.multiply_add(leaning, here, two), slope),
            to.multiply_add(to.product(again, per_spread), bent, bend),
            to.product(weight, ratio),
            to.product(ratio, shrink),
            beyond,
            to.sum(rise, to.multiply_add(above, beyond, twice)),
        ]

    rise = to.sum(above, to.multiply_add(above, above, twice))
    begin = [to.zeros, to.zeros, to.zeros, weight, to.product(weight, shrink), above, rise]
    for place, total in enumerate(to.loop(pairs, begin, pair)[:3]):
        to.store(total, sums, to.plus(to.first, place * to.lanes))


def _plain_pairs(
    squares: Vector, both: Vector, wrong: Vector, weight: float, shrink: float, pairs: int, sums: Vector
) -> None:
    k = np.arange(1.0, pairs + 1.0)[:, None]
    above = 4.0 * np.sinh(0.5 * k * np.sqrt(squares[:FOUR])) ** 2
    weights, both, wrong = weight ** (k * k), both[:FOUR], wrong[:FOUR]
    spread = 1.0 + both * above
    sums[:FOUR] = np.sum(weights / spread * (2.0 + wrong * above), axis=0)
    sums[FOUR : 2 * FOUR] = np.sum(weights / spread**2 * (2.0 + (1.0 - 2.0 * both) * above), axis=0)
    bent = both * (6.0 + above) * above - 2.0 - above
    sums[2 * FOUR : 3 * FOUR] = np.sum(weights / spread**3 * bent, axis=0)


# Sums over pairs of points as in `bayou.numerics.logistic_normal`, of four latents: of E p, of p' and of p'' over the
# tilt, relative to p at the mean. The weight of the kth pair is ``weight`` to the power of k^2.
pairs_of_four = written(_write_pairs, _plain_pairs)


@kernel
def logistic_four(y: float, per_scale: float, means: Vector, variances: Vector, said: Vector) -> bool:
    """log E p(y) of four, and what it does to each latent: step, spread and what is kept. False where one is wide."""
    widest = 0.0
    for i in range(FOUR):
        variance = variances[i] * per_scale * per_scale
        if not (variance < WIDE and abs(means[i]) * per_scale < FARTHEST):
            return False
        widest = max(widest, variance)
    deviation, step = math.sqrt(widest), COARSEST
    if PER_STEP * widest > PER_POLE:  # else the poles are so far, in deviations, that the density alone counts
        step = PER_WHOLE * deviation / (PER_STEP * widest + PER_POLE)
    pairs = int((WIDTH + deviation) / step) + 1
    weight = math.exp(-0.5 * step * step)
    squares, both, wrong, sums = said[:FOUR], said[MOVES:], said[SPREADS:], said[ROOM:]
    for i in range(FOUR):
        squares[i] = variances[i] * (per_scale * per_scale * step * step)
        tail = math.exp(-y * means[i] * per_scale)
        right = 1.0 / (1.0 + tail)
        said[KEPT + i] = right
        wrong[i] = tail * right
        both[i] = right * wrong[i]
    pairs_of_four(squares, both, wrong, weight, weight * weight, pairs, sums)
    share = step * math.exp(-0.5 * LOG_TWO_PI)
    for i in range(FOUR):
        right, wrong_here = said[KEPT + i], wrong[i]
        per_total = 1.0 / (1.0 + sums[i])
        first = wrong_here * (1.0 + sums[FOUR + i]) * per_total
        second = wrong_here * (right - wrong_here) * (sums[2 * FOUR + i] - 1.0) * per_total
        curvature = max(first * first - second, 0.0) * per_scale * per_scale
        said[VALUES + i] = min(math.log(share * (1.0 + sums[i]) * right), 0.0)
        said[MOVES + i], said[SPREADS + i] = y * first * per_scale, curvature
        said[KEPT + i] = max(1.0 - variances[i] * curvature, TINY)
    return True
