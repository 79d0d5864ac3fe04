"""Many weights behind a threshold: sgn f(s; W), learnt by W += eta y grad f at mistakes. Barkai et al. 1995, (20).

Only what lies at the teacher's boundary f = 0 counts: with delta the density there, and d = W - W0 small,

    B = E[delta(f) g g']    g = grad f      the mean step is -eta B d
    error = E[delta(f) |d . g|]

A constant eta ends at an error in proportion to it. Under eta = eta0 / n the error falls as 1 / n if eta0 times the
smallest eigenvalue of B is above 1, else more slowly in some direction. If so, X = n d / eta0 has the covariance S in

    (eta0 B - 1) S + S (eta0 B - 1) = eta0 E[delta(f) |g . X| g g']

which is exact, but speaks of E|g . X|: for many weights X is normal, it is sqrt(2 g' S g / pi), and all is closed.
For one weight the closure has n error = kappa^2 / (pi (kappa - 1)), 14 % above `decaying_error` at kappa = 2.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from bayou.contracts import Matrix, Vector
from bayou.errors import InvalidSpec

ROUNDS = 200  # each halves what is left, in logs, of the error of S
SETTLED = 1e-12


@dataclass(frozen=True, eq=False)
class Boundary:
    """Points of the boundary: E[delta(f) h] is the sum of ``weights`` h, one row of ``gradients`` for each.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(200_000, 2))  # a perceptron with the teacher (0, 1): f = x . w
    >>> boundary = boundary_by_kernel(x[:, 1], x)
    >>> float(boundary.error([0.1, 0.0])), 0.1 / math.pi  # the angle, over pi
    (0.032..., 0.0318...)
    """

    weights: Vector
    gradients: Matrix

    @property
    def curvature(self) -> Matrix:
        """B."""
        return np.asarray((self.weights[:, None] * self.gradients).T @ self.gradients)

    @property
    def standard_error(self) -> Matrix:
        """Of each entry of B, as sampling makes it; that of smoothing is apart."""
        squares = self.gradients**2
        spread = (self.weights[:, None] ** 2 * squares).T @ squares
        return np.asarray(np.sqrt(spread))

    @property
    def least_eta0(self) -> float:
        """1 / smallest eigenvalue of B, which eta0 must be above; infinite where f does not fix its scale."""
        lowest = float(np.linalg.eigvalsh(self.curvature)[0])
        return 1.0 / lowest if lowest > 0.0 else math.inf

    def error(self, deviation: ArrayLike) -> Vector:
        """E[delta(f) |d . g|] of a deviation, or of each row of several."""
        return np.asarray(np.abs(np.asarray(deviation, dtype=np.float64) @ self.gradients.T) @ self.weights)


def boundary_by_kernel(values: ArrayLike, gradients: ArrayLike, bandwidth: float | None = None) -> Boundary:
    """The boundary from samples: f and grad f of each at the teacher, where it is near enough to 0.

    The delta is Epanechnikov's kernel, so that B has no negative eigenvalue. Its bias is h^2 / 10 of the second
    derivative in f, its relative variance 0.6 / (n h density). Unless given, the bandwidth h is 2.34 n^(-1/5)
    deviations of f (by its quartiles if they say less), which leaves a few per cent of each at 100,000 samples, falling
    as n^(-2/5). `boundary_by_lines` has no bias.
    """
    heights, slopes = _checked(values, gradients)
    h = 2.34 * _spread(heights) * len(heights) ** -0.2 if bandwidth is None else float(bandwidth)
    if not 0.0 < h < math.inf:
        raise InvalidSpec(f"`bandwidth` must be positive and finite, and so the spread of `values`; got {h!r}.")
    near = np.flatnonzero(np.abs(heights) < h)
    if not near.size:
        raise InvalidSpec(f"`values` must have some within {h:g} of 0; got none of {len(heights)}.")
    weights = 0.75 * (1.0 - (heights[near] / h) ** 2) / (h * len(heights))
    return Boundary(weights, slopes[near])


def _spread(heights: Vector) -> float:
    """The deviation of a normal law as wide as these are in their middle, if that is less than their own."""
    low, high = np.percentile(heights, (25.0, 75.0))
    deviation, middle = float(heights.std()), float(high - low) / 1.349
    return min(deviation, middle) if middle > 0.0 else deviation


def boundary_by_lines(densities: ArrayLike, slopes: ArrayLike, gradients: ArrayLike, n_lines: int) -> Boundary:
    """The boundary from where ``n_lines`` random lines cross it: exact along each line, so that nothing is smoothed.

    A line is s(t), the place t on it drawn with some density given the line. Each crossing f(s(t)) = 0 has the density
    at its t, the slope df/dt, and grad f; lines that do not cross count as well.
    """
    density, gradient = _checked(densities, gradients)
    slope = np.abs(np.asarray(slopes, dtype=np.float64))
    if slope.shape != density.shape or not np.all(slope > 0.0) or not np.all(density >= 0.0):
        raise InvalidSpec("`slopes` must be as many as `densities`, none 0, and no density negative.")
    if n_lines < 1:
        raise InvalidSpec(f"`n_lines` must be at least 1; got {n_lines!r}.")
    return Boundary(density / (slope * n_lines), gradient)


def _checked(values: ArrayLike, gradients: ArrayLike) -> tuple[Vector, Matrix]:
    heights, slopes = np.asarray(values, dtype=np.float64), np.asarray(gradients, dtype=np.float64)
    if heights.ndim != 1 or slopes.ndim != 2 or len(slopes) != heights.size or not heights.size:
        raise InvalidSpec(f"there must be one row of `gradients` for each value; got {slopes.shape}, {heights.shape}.")
    if not (np.isfinite(heights).all() and np.isfinite(slopes).all()):
        raise InvalidSpec("values and `gradients` must be finite.")
    return heights, slopes


def asymptotic_covariance(boundary: Boundary, eta0: float) -> Matrix:
    """S, the covariance of n (W - W0) / eta0 in the end, for eta = eta0 / n: by the closure for many weights."""
    B = boundary.curvature
    drift = eta0 * B - np.eye(len(B))
    if not eta0 * np.linalg.eigvalsh(B)[0] > 1.0:
        raise InvalidSpec(f"`eta0` must be above {boundary.least_eta0:g} for the error to fall as 1 / n; got {eta0!r}.")
    g, weights = boundary.gradients, boundary.weights
    S = np.eye(len(B))
    for _ in range(ROUNDS):
        sizes = np.sqrt(np.maximum(((g @ S) * g).sum(axis=1), 0.0) * 2.0 / math.pi)
        after = linalg.solve_continuous_lyapunov(drift, eta0 * ((weights * sizes)[:, None] * g).T @ g)
        settled = np.abs(after - S).max() <= SETTLED * np.abs(after).max()
        S = 0.5 * (after + after.T)
        if settled:
            break
    return np.asarray(S)


def asymptotic_error(boundary: Boundary, eta0: float) -> float:
    """n times the error in the end, for eta = eta0 / n, by the closure for many weights: eta0 E[delta(f) |g . X|]."""
    g = boundary.gradients
    variances = ((g @ asymptotic_covariance(boundary, eta0)) * g).sum(axis=1)
    return float(eta0 * boundary.weights @ np.sqrt(2.0 / math.pi * variances))
