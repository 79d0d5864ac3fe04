"""Moments of counts whose log rates are known as Gaussians, within sight of the counts so far.

The mean of exp(f) is that of its tail where f is not known well: a deviation of four makes it e^8 times the median, and
that says more of the Gaussian than of the counts. So a rate counts as no more than the largest count so far, or than
twice the rate that is a deviation below the expected log, if that is more; and never as more than ten times the
largest.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from bayou.contracts import Latent, Vector

BEYOND = 10.0  # times the largest count so far, and so many at least, that is expected
SURE = 2.0  # times the rate of which one is sure
OUT_OF_REACH = 8.0  # deviations at which a bound is none
Moments = tuple[Vector, Vector]


def farthest(latent: Latent, largest: Vector) -> Vector:
    """The largest rate that counts."""
    known = np.maximum(largest, 1.0)
    with np.errstate(over="ignore"):
        sure = SURE * np.exp(np.asarray(latent.mean) - np.sqrt(latent.variance))
    bound: Vector = np.clip(sure, known, BEYOND * known)
    return bound


def bounded_rates(latent: Latent, bound: Vector) -> Moments:
    """Mean of min(exp(f), bound) and of its square, for f of these means and variances."""
    mean, variance = np.asarray(latent.mean, np.float64), np.asarray(latent.variance, np.float64)
    deviation = np.sqrt(np.maximum(variance, np.finfo(np.float64).tiny))
    log_bound = np.log(bound)
    score = (log_bound - mean) / deviation
    moments = []
    for power in (1.0, 2.0):
        # exp(p f) below the bound is another Gaussian's share below it; by logs, as each factor alone may overflow.
        inside = power * mean + 0.5 * power**2 * variance + special.log_ndtr(score - power * deviation)
        beyond = power * log_bound + special.log_ndtr(-score)
        moments.append(np.exp(np.minimum(inside, power * log_bound)) + np.exp(beyond))
    return moments[0], moments[1]


def counts_within_sight(latent: Latent, dispersion: float, largest: Vector, unbounded: Moments) -> Moments:
    """Mean and variance of counts whose variance at a rate r is r + dispersion r^2; known are those without a bound."""
    bound = farthest(latent, largest)
    rate, square = bounded_rates(latent, bound)
    variance = rate + np.maximum((1.0 + dispersion) * square - rate**2, 0.0)
    deviation = np.sqrt(latent.variance)
    free = np.log(bound) - latent.mean - 2.0 * np.asarray(latent.variance) > OUT_OF_REACH * deviation
    return np.where(free, unbounded[0], rate), np.where(free, unbounded[1], variance)
