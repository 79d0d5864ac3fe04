"""Clusters that are balls: one variance for all columns, about which d columns of a point tell d times."""

from __future__ import annotations

import math

from bayou.contracts import Matrix, Vector
from bayou.numerics.jit import kernel


@kernel
def spherical_evidence(n: float, s1: Vector, s2: Matrix, prior: Vector, start: int, stop: int) -> float:
    """log m(S) of some columns of one cluster: normal and inverse gamma."""
    d = stop - start
    certainty, base, dof = prior[0], prior[1] * d * prior[2], 2.0 + prior[1] * d
    scatter = base
    for i in range(start, stop):
        scatter += s2[i, i] - s1[i] * s1[i] / (certainty + n)
    total = -0.5 * n * d * math.log(math.pi) + 0.5 * dof * math.log(base)
    total -= 0.5 * (dof + n * d) * math.log(max(scatter, 1e-12 * base))
    total += math.lgamma(0.5 * (dof + n * d)) - math.lgamma(0.5 * dof)
    return float(total + 0.5 * d * math.log(certainty / (certainty + n)))


@kernel
def make_spherical(covariance: Matrix, d: int) -> None:
    """The mean variance for all of the first columns, and no covariance of them."""
    mean = 0.0
    for i in range(d):
        mean += covariance[i, i] / d
    for i in range(d):
        for j in range(d):
            covariance[i, j] = mean if i == j else 0.0
