"""log Gamma without the cancellation: what remains of it beside Stirling's formula.

log Gamma(x) = (x - 1/2) log x - x + log(2 pi) / 2 + stirling_error(x)
"""

import math

import numpy as np

from bayou.numerics.jit import kernel
from bayou.numerics.normal import LOG_SQRT_TWO_PI

SERIES_FROM = 16.0

# Of the whole numbers below, because most counts are small.
_SMALL = np.array([0.0] + [math.lgamma(n) - (n - 0.5) * math.log(n) + n - LOG_SQRT_TWO_PI for n in range(1, 16)])


@kernel
def stirling_error(x: float) -> float:
    """What Stirling's formula lacks at x > 0."""
    if x < SERIES_FROM:
        if x == int(x):
            return float(_SMALL[int(x)])
        return math.lgamma(x) - (x - 0.5) * math.log(x) + x - LOG_SQRT_TWO_PI
    t = 1.0 / (x * x)
    return (1.0 / 12.0 - t * (1.0 / 360.0 - t * (1.0 / 1260.0 - t * (1.0 / 1680.0 - t / 1188.0)))) / x


@kernel
def log_gamma_half_step(x: float) -> float:
    """log Gamma(x + 1/2) - log Gamma(x)."""
    if x < SERIES_FROM:
        return math.lgamma(x + 0.5) - math.lgamma(x)
    return x * math.log1p(0.5 / x) + 0.5 * math.log(x) - 0.5 + stirling_error(x + 0.5) - stirling_error(x)


@kernel
def deviance(t: float) -> float:
    """exp(t) - 1 - t: how far a Poisson of mean exp(t) is from having observed its mean, per count."""
    if abs(t) < 0.01:
        return t * t * (0.5 + t * (1.0 / 6.0 + t * (1.0 / 24.0 + t * (1.0 / 120.0 + t * (1.0 / 720.0 + t / 5040.0)))))
    return math.expm1(min(t, 600.0)) - t
