"""Clusters whose columns vary independently: the evidence is that of each column, one after the other."""

from __future__ import annotations

from bayou.contracts import Matrix, Vector
from bayou.mixtures.full import full_evidence
from bayou.numerics.jit import kernel


@kernel
def diagonal_evidence(n: float, s1: Vector, s2: Matrix, prior: Vector, start: int, stop: int) -> float:
    """log m(S) of some columns of one cluster."""
    total = 0.0
    for i in range(start, stop):
        total += full_evidence(n, s1, s2, prior, i, i + 1)
    return total


@kernel
def make_diagonal(covariance: Matrix) -> None:
    """Leave the variances alone."""
    for i in range(covariance.shape[0]):
        for j in range(i):
            covariance[i, j] = 0.0
            covariance[j, i] = 0.0
