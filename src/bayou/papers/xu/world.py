"""Data of which all is known: clusters of random shapes, and clusters along subspaces.

How far apart clusters are is told by the least Mahalanobis distance between two of them, in the covariance of either:
the nearest two are just so far apart, the others farther.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bayou.contracts import Matrix

SCALES = np.geomspace(1.0, 50.0, 200)  # of the means, tried in turn until no two clusters are too close


class Sample(NamedTuple):
    """Rows, and which cluster each is of."""

    rows: Matrix
    labels: NDArray[np.int64]


class Clusters(NamedTuple):
    """How a data set is made: so many columns, clusters and rows, this far apart, of normal or of uniform blobs."""

    d: int
    k: int
    n: int
    apart: float
    uniform: bool = False

    def draw(self, seed: int) -> Sample:
        """One such set."""
        rng = np.random.default_rng([seed, self.d, self.k, self.n, int(10 * self.apart), int(self.uniform)])
        roots = np.empty((self.k, self.d, self.d))
        for root in roots:
            turn = np.linalg.qr(rng.normal(size=(self.d, self.d)))[0]
            root[:] = turn * np.sqrt(rng.uniform(0.5, 2.0, self.d))
        means = self._means(rng, roots)
        labels = rng.integers(self.k, size=self.n)
        if self.uniform:
            standard = rng.uniform(-math.sqrt(3.0), math.sqrt(3.0), size=(self.n, self.d))
        else:
            standard = rng.normal(size=(self.n, self.d))
        return Sample(means[labels] + np.einsum("nij,nj->ni", roots[labels], standard), labels)

    def _means(self, rng: Generator, roots: NDArray[np.float64]) -> Matrix:
        for scale in SCALES:
            means: Matrix = scale * rng.normal(size=(self.k, self.d))
            least = nearest(means, roots)
            if least > self.apart:
                return means if self.k == 1 else means * self.apart / least
        raise ArithmeticError(f"no means of {self} are far enough apart.")


def nearest(means: Matrix, roots: NDArray[np.float64]) -> float:
    """The least Mahalanobis distance between two means, by the covariance of either; infinite of one."""
    least = math.inf
    for mean, root in zip(means, roots, strict=True):
        whitened = np.linalg.solve(root, (means - mean).T)
        squares = np.sum(whitened**2, axis=0)
        least = min(least, *(float(square) for square in squares if square > 0.0), math.inf)
    return math.sqrt(least)


class Subspaces(NamedTuple):
    """Clusters that vary along so many factors each, and by a noise of 1 everywhere; equal shares.

    ``loadings`` are the least and the largest variance along a factor, beyond the noise; means are this far apart.
    """

    d: int
    factors: tuple[int, ...]
    n: int
    apart: float = 9.0
    loadings: tuple[float, float] = (6.0, 12.0)

    def draw(self, seed: int) -> Sample:
        """One such set."""
        k = len(self.factors)
        rng = np.random.default_rng([seed, self.d, self.n, *self.factors, int(10 * self.loadings[0])])
        for scale in SCALES:
            means = scale * rng.normal(size=(k, self.d))
            if nearest(means, np.tile(np.eye(self.d), (k, 1, 1))) > self.apart:
                break
        labels = rng.permutation(np.arange(self.n) % k)
        rows = means[labels] + rng.normal(size=(self.n, self.d))
        for cluster, m in enumerate(self.factors):
            directions = np.linalg.qr(rng.normal(size=(self.d, m)))[0]
            own = labels == cluster
            rows[own] += (rng.normal(size=(own.sum(), m)) * np.sqrt(rng.uniform(*self.loadings, m))) @ directions.T
        return Sample(rows, labels)


def standardised(rows: Matrix) -> Matrix:
    """Columns of mean 0 and variance 1."""
    told: Matrix = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    return told
