"""log N(y; mean, noise + variance) of four f ~ N(mean, variance) at once, one in each lane of a vector."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayou.contracts import Vector
from bayou.numerics.fours import FOUR, KEPT, MOVES, SPREADS, VALUES
from bayou.numerics.instructions import Writer, written
from bayou.numerics.jit import kernel
from bayou.numerics.lane_functions import log
from bayou.numerics.normal import LOG_SQRT_TWO_PI, TINY

NARROWEST, WIDEST = 1e-300, 1e300  # variances of targets whose logs are told by lanes


def _write_four(to: Writer, y: Any, noise: Any, means: Any, variances: Any, blurs: Any, said: Any) -> None:
    noise = to.everywhere(noise)
    total = to.sum(to.sum(noise, to.load(blurs, to.first)), to.load(variances, to.first))
    precision = to.ratio(to.ones, total)
    error = to.sum(to.everywhere(y), to.minus(to.load(means, to.first)))
    slope = to.ratio(error, total)
    twice = to.multiply_add(error, slope, log(to, total))
    value = to.sum(to.product(twice, to.same(-0.5)), to.same(-LOG_SQRT_TWO_PI))
    kept = to.greater(to.product(noise, precision), to.same(TINY))
    for place, each in zip((VALUES, MOVES, SPREADS, KEPT), (value, slope, precision, kept), strict=True):
        to.store(each, said, to.plus(to.first, place))


def _plain_four(y: float, noise: float, means: Vector, variances: Vector, blurs: Vector, said: Vector) -> None:
    total, error = noise + blurs[:FOUR] + variances[:FOUR], y - means[:FOUR]
    said[VALUES : VALUES + FOUR] = -0.5 * (error * (error / total) + np.log(total)) - LOG_SQRT_TWO_PI
    said[MOVES : MOVES + FOUR], said[SPREADS : SPREADS + FOUR] = error / total, 1.0 / total
    said[KEPT : KEPT + FOUR] = np.maximum(noise / total, TINY)


_tell_four = written(_write_four, _plain_four)


@kernel
def gaussian_four(y: float, noise: float, means: Vector, variances: Vector, blurs: Vector, said: Vector) -> bool:
    """log p(y) of four, and what it does to each latent: step, spread and what is kept. False out of all measure."""
    for i in range(FOUR):
        if not NARROWEST < noise + blurs[i] + variances[i] < WIDEST:
            return False
    _tell_four(y, noise, means, variances, blurs, said)
    return True
