"""Clusters of which all is known."""

from __future__ import annotations

import numpy as np


def clusters(d: int, k: int, n: int, separation: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and their labels: Gaussians of random shapes, no two of them closer than the Mahalanobis distance says."""
    rng = np.random.default_rng([seed, d, k, n])
    covariances = []
    for _ in range(k):
        turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
        covariances.append(turn @ np.diag(rng.uniform(0.5, 2.0, d)) @ turn.T)
    for scale in np.geomspace(1.0, 50.0, 200):
        means = scale * rng.normal(size=(k, d))
        offsets = [(means[i] - means[j], covariances[c]) for i in range(k) for j in range(k) for c in (i, j) if i != j]
        if all(offset @ np.linalg.solve(covariance, offset) > separation**2 for offset, covariance in offsets):
            break
    labels = rng.integers(k, size=n)
    rows = np.stack([rng.multivariate_normal(means[label], covariances[label]) for label in labels])
    return rows, labels
