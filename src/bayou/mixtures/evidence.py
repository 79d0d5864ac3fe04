"""How probable the points of a cluster are, all together, when its mean and covariance are not known.

    log m(S),  S = (n, s1, s2) = sums of (1, x, x x')

is what merging, splitting and dropping are judged by. The prior is normal and inverse Wishart: mean 0, known as well
as from ``certainty`` points; covariance ``scale * I``, known as well as from ``strength`` points. Data are
standardised, so both are small numbers; how strong the prior is, and how large its scale, is learnt from all clusters
together. It also says which shape clusters have (`bayou.mixtures.shapes`): any covariance, or one of fewer numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from bayou.contracts import Matrix, Vector
from bayou.mixtures.shapes import FULL, evidence_of
from bayou.numerics.jit import kernel

STRENGTHS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
CONCENTRATION = 1.0  # of the Dirichlet prior of the shares, per cluster


class Prior(NamedTuple):
    """What is believed of every cluster before any point: see above.

    ``n_inputs`` is for shapes that have inputs, which are the first columns, and targets, the others.
    """

    certainty: float
    strength: float
    scale: float
    shape: int = FULL
    n_inputs: int = 0


class Statistics(NamedTuple):
    """Per cluster: how many points, their sum, and the sums of their products."""

    n: Vector
    s1: Matrix
    s2: NDArray[np.float64]

    def joined(self, i: int, j: int) -> Statistics:
        """Two clusters as one, alone."""
        return Statistics(*(part[i : i + 1] + part[j : j + 1] for part in self))

    def without(self, *places: int) -> Statistics:
        """All clusters but some."""
        return Statistics(*(np.delete(part, places, axis=0) for part in self))

    def beside(self, other: Statistics) -> Statistics:
        """These clusters and others."""
        return Statistics(*(np.concatenate(pair) for pair in zip(self, other, strict=True)))


def first_prior(n_clusters: int, d: int, shape: int = FULL, n_inputs: int = 0) -> Prior:
    """Before anything is learnt: as if each of so many clusters had its share of the volume."""
    certainty = n_clusters ** (-2.0 / d)
    return Prior(certainty, 1.0, certainty, shape, n_inputs)


@kernel
def _evidences(n: Vector, s1: Matrix, s2: NDArray[np.float64], prior: Vector, values: Vector) -> None:
    for c in range(n.size):
        values[c] = evidence_of(n[c], s1[c], s2[c], prior)


def log_evidence(statistics: Statistics, prior: Prior) -> Vector:
    """log m(S) of each cluster."""
    values = np.empty(statistics.n.size)
    n, s1, s2 = (np.ascontiguousarray(part) for part in statistics)
    _evidences(n, s1, s2, np.array(prior), values)
    return values


def log_shares(n: Vector) -> float:
    """log probability of so many points in each cluster, whose shares are not known."""
    k, total = n.size, float(n.sum())
    return float(
        gammaln(k * CONCENTRATION)
        - gammaln(k * CONCENTRATION + total)
        + np.sum(gammaln(CONCENTRATION + n) - gammaln(CONCENTRATION))
    )


def learnt_prior(statistics: Statistics, prior: Prior) -> Prior:
    """The prior under which all clusters together are the most probable: its scale is theirs, pooled."""
    n, s1, s2 = statistics
    d = s1.shape[1]
    within = np.trace(s2, axis1=1, axis2=2) - np.sum(s1**2, axis=1) / np.maximum(n, 1e-300)
    scale = max(float(within.sum() / (n.sum() * d)), 1e-12)
    candidates = [prior._replace(strength=strength, scale=scale) for strength in STRENGTHS]
    return max(candidates, key=lambda candidate: float(log_evidence(statistics, candidate).sum()))
