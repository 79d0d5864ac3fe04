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
from scipy.special import expit

from bayou.contracts import Vector
from bayou.numerics.fours import FOUR, KEPT, MOVES, SPREADS, VALUES
from bayou.numerics.instructions import Writer, written
from bayou.numerics.jit import kernel
from bayou.numerics.lane_functions import exp, log
from bayou.numerics.logistic_normal import SERIES, WIDE, WIDTH
from bayou.numerics.normal import TINY

FARTHEST = 150.0  # means beyond are rare, and left to who asks for one at a time
# The rule errs by exp(-2 pi^2 / step^2) for the normal density, and by exp(-2 pi^2 / h + pi^2 / (2 variance)) for the
# poles of the logistic function, h = step * deviation: these are the largest for errors of 1e-13, derivatives included.
COARSEST, PER_STEP = 0.758, 34.3
PER_WHOLE, PER_POLE = 2.0 * math.pi**2, 0.5 * math.pi**2
SHARE = 1.0 / math.sqrt(2.0 * math.pi)  # of a point, per step


def _write_four(
    to: Writer,
    means: Any,
    variances: Any,
    blurs: Any,
    sign: Any,
    per_variance: Any,
    step: Any,
    weight: Any,
    shrink: Any,
    pairs: Any,
    said: Any,
) -> None:
    one, two, six, sign = to.ones, to.same(2.0), to.same(6.0), to.everywhere(sign)
    variance = to.sum(to.load(variances, to.first), to.load(blurs, to.first))
    tail = exp(to, to.minus(to.product(sign, to.load(means, to.first))))
    right = to.ratio(one, to.sum(one, tail))
    wrong = to.product(tail, right)
    both = to.product(right, wrong)

    squared = to.product(variance, to.everywhere(to.product(per_variance, to.product(step, step))))
    series = one
    for divisor in reversed(SERIES):
        series = to.multiply_add(to.product(squared, to.same(1.0 / divisor)), series, one)
    above = to.product(squared, series)
    twice, leaning = to.sum(above, above), to.multiply_add(both, to.same(-2.0), one)

    def pair(_: Any, values: list[Any]) -> list[Any]:
        mass, slope, bend, weight, ratio, here, rise = values
        per_spread = to.ratio(one, to.multiply_add(both, here, one))
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
    begin = [one, one, to.minus(one), weight, to.product(weight, shrink), above, rise]  # the point at the mean
    mass, slope, bend = to.loop(pairs, begin, pair)[:3]

    per_mass = to.ratio(wrong, mass)
    first = to.product(slope, per_mass)
    second = to.product(to.product(to.sum(right, to.minus(wrong)), bend), per_mass)
    curvature = to.greater(to.multiply_add(first, first, to.minus(second)), to.zeros)
    curvature = to.product(curvature, to.everywhere(per_variance))
    value = log(to, to.product(to.product(mass, right), to.everywhere(to.product(step, to.one_of(SHARE)))))
    kept = to.greater(to.multiply_add(variance, to.minus(curvature), one), to.same(TINY))
    told = to.lesser(value, to.zeros), to.product(first, sign), curvature, kept
    for place, each in zip((VALUES, MOVES, SPREADS, KEPT), told, strict=True):
        to.store(each, said, to.plus(to.first, place))


def _plain_four(
    means: Vector,
    variances: Vector,
    blurs: Vector,
    sign: float,
    per_variance: float,
    step: float,
    weight: float,
    shrink: float,
    pairs: int,
    said: Vector,
) -> None:
    total = variances[:FOUR] + blurs[:FOUR]
    right, wrong = expit(sign * means[:FOUR]), expit(-sign * means[:FOUR])
    both, k = right * wrong, np.arange(1.0, pairs + 1.0)[:, None]
    above = 4.0 * np.sinh(0.5 * k * step * np.sqrt(total * per_variance)) ** 2
    once = weight ** (k * k) / (1.0 + both * above)
    again = once / (1.0 + both * above)
    bent = both * (6.0 + above) * above - 2.0 - above
    mass = 1.0 + np.sum(once * (2.0 + wrong * above), axis=0)
    slope = 1.0 + np.sum(again * (2.0 + (1.0 - 2.0 * both) * above), axis=0)
    bend = -1.0 + np.sum(again / (1.0 + both * above) * bent, axis=0)
    first, second = wrong * slope / mass, wrong * (right - wrong) * bend / mass
    curvature = np.maximum(first**2 - second, 0.0) * per_variance
    said[VALUES : VALUES + FOUR] = np.minimum(np.log(SHARE * step * mass * right), 0.0)
    said[MOVES : MOVES + FOUR], said[SPREADS : SPREADS + FOUR] = sign * first, curvature
    said[KEPT : KEPT + FOUR] = np.maximum(1.0 - total * curvature, TINY)


# What `logistic_four` tells. Sums over pairs of points as in `bayou.numerics.logistic_normal`: of E p, of p' and of p''
# over the tilt, relative to p at the mean. The weight of the kth pair is ``weight`` to the power of k^2.
_tell_four = written(_write_four, _plain_four)


@kernel
def logistic_four(y: float, per_scale: float, means: Vector, variances: Vector, blurs: Vector, said: Vector) -> bool:
    """log E p(y) of four, and what it does to each latent: step, spread and what is kept. False where one is wide."""
    widest, per_variance = 0.0, per_scale * per_scale
    for i in range(FOUR):
        variance = (variances[i] + blurs[i]) * per_variance
        if not (variance < WIDE and abs(means[i]) * per_scale < FARTHEST):
            return False
        widest = max(widest, variance)
    deviation, step = math.sqrt(widest), COARSEST
    if PER_STEP * widest > PER_POLE:  # else the poles are so far, in deviations, that the density alone counts
        step = PER_WHOLE * deviation / (PER_STEP * widest + PER_POLE)
    pairs = int((WIDTH + deviation) / step) + 1
    weight = math.exp(-0.5 * step * step)
    _tell_four(means, variances, blurs, y * per_scale, per_variance, step, weight, weight * weight, pairs, said)
    return True
