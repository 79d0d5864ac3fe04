"""exp and log of all lanes of a vector at once, within two roundings, for a `Writer`.

    exp(x) = 2^k exp(r),   x = k log 2 + r,  |r| <= log 2 / 2           a polynomial of r
    log(x) = k log 2 + 2 artanh(s),   x = 2^k m,  s = (m - 1) / (m + 1),  m from sqrt(1/2) to sqrt(2)

A library is asked for one number at a time, which takes as long for each as these take for four.
"""

from __future__ import annotations

import math
from typing import Any

from bayou.numerics.instructions import Writer

PER_LOG_TWO = 1.0 / math.log(2.0)
# log 2 in two parts, of which the first has so few digits that its products with whole numbers are exact
LOG_TWO, LOG_TWO_LEFT = 6.93147180369123816490e-01, 1.90821492927058770002e-10
WHOLE = 1.5 * 2.0**52  # added, it leaves of a number what is whole, in the last bits
LEAST = -700.0  # below, exp is taken for what it is there: next to nothing, and still a normal number
FACTORIALS = [1.0 / math.factorial(n) for n in range(13, 1, -1)]
ODD = [2.0 / n for n in range(21, 1, -2)]
FRACTION, ONE, ROOT_HALF = 52, 1023 << 52, 0x3FE6A09E667F3BCD  # bits of a number; and 1 and sqrt(1/2) as bits


def exp(to: Writer, x: Any) -> Any:
    """exp of each lane, none of which may be above 700."""
    x = to.greater(x, to.same(LEAST))
    shifted = to.sum(to.product(x, to.same(PER_LOG_TWO)), to.same(WHOLE))
    times = to.sum(shifted, to.same(-WHOLE))
    rest = to.multiply_add(times, to.same(-LOG_TWO), x)
    rest = to.multiply_add(times, to.same(-LOG_TWO_LEFT), rest)
    series = to.same(FACTORIALS[0])
    for factor in FACTORIALS[1:]:
        series = to.multiply_add(series, rest, to.same(factor))
    value = to.sum(to.multiply_add(to.product(rest, rest), series, rest), to.ones)
    return to.product(value, to.of_bits(to.plus(to.higher(to.bits(shifted), FRACTION), to.whole(ONE))))


def log(to: Writer, x: Any) -> Any:
    """log of each lane, all of which must be positive, finite, and no smaller than a normal number."""
    bits = to.bits(x)
    power = to.lower(to.less(bits, to.whole(ROOT_HALF)), FRACTION)
    mantissa = to.of_bits(to.less(bits, to.higher(power, FRACTION)))
    apart = to.ratio(to.sum(mantissa, to.same(-1.0)), to.sum(mantissa, to.ones))
    squared = to.product(apart, apart)
    series = to.same(ODD[0])
    for factor in ODD[1:]:
        series = to.multiply_add(series, squared, to.same(factor))
    times = to.of_whole(power)
    rest = to.multiply_add(times, to.same(LOG_TWO_LEFT), to.product(to.product(apart, squared), series))
    return to.multiply_add(times, to.same(LOG_TWO), to.sum(rest, to.sum(apart, apart)))
