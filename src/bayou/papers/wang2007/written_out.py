"""Variational Bayes for two views with matrices, in any coordinates: what the recursion of pairs must come to.

Nothing here knows of canonical correlations, whitening or pairs; only the scatter of the rows enters. `shared_scale` is
the model of bayou, loadings in units of the noise with one relevance for both views. `own_scale` is Wang's: loadings in
the units of the columns, with relevances for each view. Both begin with z = A_x x + A_y y, and keep z ~ N(A x, S).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayou.contracts import Matrix, Vector

VAGUE = 1e-3
LOOK, SETTLED = 20, 1e-4  # rounds between two looks, and the most that a correlation may change between them


class Solution(NamedTuple):
    """Loadings and noise of both views."""

    loadings: tuple[Matrix, Matrix]
    noises: tuple[Matrix, Matrix]

    def correlations(self) -> Vector:
        """Canonical correlations of W_x z + e_x and W_y z + e_y, the largest first."""
        roots = [np.linalg.cholesky(W @ W.T + noise) for W, noise in zip(self.loadings, self.noises, strict=True)]
        white = [np.linalg.solve(root, W) for root, W in zip(roots, self.loadings, strict=True)]
        return np.asarray(np.linalg.svd(white[0] @ white[1].T, compute_uv=False))


def shared_scale(
    scatter: Matrix, n: float, n_x: int, start: tuple[Matrix, Matrix], prior: tuple[Matrix, Matrix], rounds: int
) -> Solution:
    """W_i | Phi_i, a ~ MN(0, Phi_i^-1, diag(a)^-1): normal and Wishart together, from z = start_x x + start_y y."""
    parts = slice(None, n_x), slice(n_x, None)
    size = len(start[0])
    A, S, relevance = np.hstack(start), 0.3 * np.eye(size), np.ones(size)
    found = Solution((start[0].T, start[1].T), prior)
    for _ in range(rounds):
        second = n * S + A @ scatter @ A.T  # of z, summed over the rows
        V = np.linalg.inv(second + np.diag(relevance))
        W = scatter @ A.T @ V
        inverse_scales = [
            prior[i] + scatter[part, part] - W[part] @ np.linalg.solve(V, W[part].T) for i, part in enumerate(parts)
        ]
        precisions = [(len(K) + 1.0 + n) * np.linalg.inv(K) for K in inverse_scales]
        informed = sum(W[part].T @ phi @ W[part] + len(phi) * V for part, phi in zip(parts, precisions, strict=True))
        d = len(scatter)
        relevance = (VAGUE + 0.5 * d) / (VAGUE + 0.5 * np.diag(informed))
        S = np.asarray(np.linalg.inv(np.eye(size) + informed), dtype=np.float64)
        A = S @ np.hstack([W[part].T @ phi for part, phi in zip(parts, precisions, strict=True)])
        noises = [np.asarray(np.linalg.inv(phi)) for phi in precisions]
        found = Solution((W[parts[0]], W[parts[1]]), (noises[0], noises[1]))
    return found


def own_scale(scatter: Matrix, n: float, n_x: int, start: tuple[Matrix, Matrix], rounds: int) -> Solution:
    """W_ij ~ N(0, 1 / a_j) in the units of the columns, with relevances for each view, apart from Phi_i: Wang's model.

    All loadings of a view are one Gaussian; it ends early once the correlations have settled.
    """
    parts, size = (slice(None, n_x), slice(n_x, None)), len(start[0])
    phi = [np.linalg.inv(scatter[part, part] / n) for part in parts]
    a = [np.ones(size), np.ones(size)]
    W = [np.zeros((len(one), size)) for one in phi]
    A, S, before = np.hstack(start), 0.3 * np.eye(size), np.zeros(1)
    for step in range(rounds):
        second, cross = n * S + A @ scatter @ A.T, scatter @ A.T
        informed = np.eye(size)
        for i, part in enumerate(parts):
            d = len(phi[i])
            V = np.linalg.inv(np.kron(phi[i], second) + np.kron(np.eye(d), np.diag(a[i])))
            W[i] = (V @ (phi[i] @ cross[part]).ravel()).reshape(d, size)
            spread = V.reshape(d, size, d, size)
            squares = np.sum(W[i] ** 2, axis=0) + np.einsum("kaka->a", spread)
            a[i] = (VAGUE + 0.5 * d) / (VAGUE + 0.5 * squares)
            errors = scatter[part, part] - W[i] @ cross[part].T - cross[part] @ W[i].T + W[i] @ second @ W[i].T
            K = errors + np.tensordot(spread, second, axes=((1, 3), (0, 1))) + VAGUE * np.eye(d)
            phi[i] = (d + 1.0 + n) * np.linalg.inv(0.5 * (K + K.T))
            informed = informed + W[i].T @ phi[i] @ W[i] + np.tensordot(spread, phi[i], axes=((0, 2), (0, 1)))
        S = np.asarray(np.linalg.inv(informed), dtype=np.float64)
        A = S @ np.hstack([W[0].T @ phi[0], W[1].T @ phi[1]])
        if step % LOOK == LOOK - 1:
            now = Solution((W[0], W[1]), (np.linalg.inv(phi[0]), np.linalg.inv(phi[1]))).correlations()
            if np.max(np.abs(now - before)) < SETTLED:
                break
            before = now
    return Solution((W[0], W[1]), (np.linalg.inv(phi[0]), np.linalg.inv(phi[1])))
