"""The sites of a block of q examples, found in the space of their latents: O(q^2) each, whatever the features.

Before any of them the latents have means m and covariances G. A site of slope and precision at latent t tells of the
others what it tells of weights (see `bayou.contracts`), with G in place of C and the row of G in place of C x:

    gain = 1 / (1 + precision G_tt)      m += gain * slope * G_t      G -= gain * precision * G_t G_t'
"""

from __future__ import annotations

from typing import NamedTuple

from bayou.contracts import Vector
from bayou.numerics.jit import kernel

# Differences lose as many digits as these ratios have, of prior to noise and of variances before and within a block: in
# G here, and in what `bayou.numerics.factor_blocks` does with the precisions. So much is lost at most, else no block.
LARGEST_RATIO = 1e4
SMALLEST_PART = 1e-4
LARGEST_PRECISION = 1e20  # of which products fit into single precision


class Sites(NamedTuple):
    """Row by row G, of which the upper triangle is used: row t as it was when site t was found. Means likewise.

    ``variances`` are those before the block; ``slopes`` are times the gain; ``steps`` times C x, with C as before the
    block, move the mean.
    """

    covariances: Vector
    means: Vector
    variances: Vector
    slopes: Vector
    precisions: Vector
    steps: Vector


@kernel
def size_of_sites(q: int) -> int:
    """How many numbers `sites_of` divides."""
    return q * (q + 5)


@kernel
def sites_of(numbers: Vector, q: int) -> Sites:
    """The parts of a vector of numbers that make the sites of a block."""
    n = q * q
    return Sites(
        numbers[:n],
        numbers[n : n + q],
        numbers[n + q : n + 2 * q],
        numbers[n + 2 * q : n + 3 * q],
        numbers[n + 3 * q : n + 4 * q],
        numbers[n + 4 * q : n + 5 * q],
    )


@kernel
def bearable(t: int, precision: float, q: int, sites: Sites) -> bool:
    """Whether a site may be absorbed in a block: without losing more than a few digits."""
    before = sites.variances[t]
    moderate = 0.0 <= precision <= LARGEST_PRECISION and precision * before <= LARGEST_RATIO
    return bool(moderate and sites.covariances[t * q + t] >= SMALLEST_PART * before)


@kernel
def condition(t: int, slope: float, precision: float, q: int, sites: Sites) -> float:
    """What the site of one example tells of the latents of those after it; returns the gain."""
    here, means = sites.covariances[t * q + t : t * q + q], sites.means[t:q]
    gain = 1.0 / (1.0 + precision * here[0])
    sites.slopes[t], sites.precisions[t] = gain * slope, precision
    for s in range(1, here.size):
        share = gain * precision * here[s]
        means[s] += gain * slope * here[s]
        other, same = sites.covariances[(t + s) * q + t + s : (t + s) * q + q], here[s:]
        for u in range(same.size):
            other[u] -= share * same[u]
    return float(gain)


@kernel
def find_steps(q: int, sites: Sites) -> None:
    """The mean moves by the sum of slope times C x, each as it was at its time; here in terms of those at the start."""
    for t in range(q - 1, -1, -1):
        here, steps = sites.covariances[t * q + t : t * q + q], sites.steps[t:q]
        share = sites.precisions[t] / (1.0 + sites.precisions[t] * here[0])
        total = 0.0
        for s in range(1, here.size):
            total += here[s] * steps[s]
        steps[0] = sites.slopes[t] - share * total
