"""Clusters with a covariance of their own: how probable their points are, when mean and covariance are not known.

The prior is normal and inverse Wishart: see `bayou.mixtures.evidence`.
"""

from __future__ import annotations

import math

import numpy as np

from bayou.contracts import Matrix, Vector
from bayou.numerics.jit import kernel


@kernel
def full_evidence(n: float, s1: Vector, s2: Matrix, prior: Vector, start: int, stop: int) -> float:
    """log m(S) of some columns of one cluster, of whose products those below the diagonal are read; 0 of no point."""
    d = stop - start
    certainty, base, dof = prior[0], prior[1] * prior[2], d + 1.0 + prior[1]
    lower = np.empty((d, d))
    log_determinant = 0.0
    for i in range(d):
        for j in range(i + 1):
            value = s2[start + i, start + j] - s1[start + i] * s1[start + j] / (certainty + n)
            if i == j:
                value += base
            for q in range(j):
                value -= lower[i, q] * lower[j, q]
            if i == j:
                lower[i, i] = math.sqrt(max(value, 1e-12 * base))
                log_determinant += 2.0 * math.log(lower[i, i])
            else:
                lower[i, j] = value / lower[j, j]
    total = -0.5 * n * d * math.log(math.pi) + 0.5 * dof * d * math.log(base) - 0.5 * (dof + n) * log_determinant
    for i in range(d):
        total += math.lgamma(0.5 * (dof + n - i)) - math.lgamma(0.5 * (dof - i))
    return float(total + 0.5 * d * math.log(certainty / (certainty + n)))
