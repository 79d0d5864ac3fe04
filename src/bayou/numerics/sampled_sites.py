"""What one example tells of the weights, with expectations over them taken by Monte Carlo.

Draws w_s of the weights see latents f_s with gradients J_s, slopes g_s and precisions P_s of log p(y | f_s) (second
derivatives of f itself are left out, as Gauss and Newton do). By Price's theorem, with C the covariance of the weights,

    variational        J' h,  h_s = g_s / S       and   J' diag(P_s / S) J       are E grad l and -E hess l
    moment matching    J' d,  d_s = q_s g_s       and   J' A J,  A = diag(q_s (P_s - g_s g_s')) + d d'

the gradient and minus the Hessian of log Z in the mean, q_s the weight of a draw, proportional to p(y | f_s). Moment
matching then has the mean m + C J' d and the covariance C - C J' A J C. Both are told as sites: directions in the
weights, each with a slope at the mean and a precision.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayou.contracts import Matrix, Vector

# Of its variance a direction keeps at least so much: with few draws the difference in A may ask for more than there is.
LEAST_KEPT = 0.05
NEGLIGIBLE = 1e-10


class Sites(NamedTuple):
    """Directions in the weights (site, weight), the slope along each at the mean, and the precision gained."""

    directions: Matrix
    slopes: Vector
    precisions: Vector


def variational_sites(gradients: Matrix, slopes: Matrix, precisions: Matrix) -> Sites:
    """From (draw, latent, weight), (draw, latent) and (draw, latent, latent)."""
    n = len(slopes)
    values, vectors = np.linalg.eigh(precisions / n)
    turned = np.swapaxes(vectors, 1, 2)
    directions = turned @ gradients
    along = (turned @ (slopes / n)[:, :, None])[:, :, 0]
    return Sites(directions.reshape(-1, gradients.shape[2]), along.ravel(), values.ravel())


def matching_sites(
    gradients: Matrix, slopes: Matrix, precisions: Matrix, log_densities: Vector, covariance: Matrix
) -> Sites:
    """The same, from the log density that each draw gives the target, and the covariance of all latents J C J'."""
    n, k = slopes.shape
    share = np.exp(log_densities - log_densities.max())
    share /= share.sum()
    tilt = (share[:, None] * slopes).ravel()
    curvature = np.outer(tilt, tilt)
    for s in range(n):
        part = slice(s * k, (s + 1) * k)
        curvature[part, part] += share[s] * (precisions[s] - np.outer(slopes[s], slopes[s]))
    # in coordinates in which the latents are independent and of unit variance, what is kept can be read off
    values, vectors = np.linalg.eigh(covariance)
    real = values > NEGLIGIBLE * max(values[-1], 0.0)
    if not real.any():
        return Sites(np.zeros((0, gradients.shape[2])), np.zeros(0), np.zeros(0))
    root = vectors[:, real] * np.sqrt(values[real])
    lost, turn = np.linalg.eigh(root.T @ curvature @ root)
    kept = np.maximum(1.0 - lost, LEAST_KEPT)
    back = turn.T @ (vectors[:, real] / np.sqrt(values[real])).T
    directions = back @ gradients.reshape(n * k, -1)
    return Sites(directions, turn.T @ (root.T @ tilt) / kept, 1.0 / kept - 1.0)
