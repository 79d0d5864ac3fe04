"""The perceptron of (2) at any number of weights, exactly and fast: only its mistakes are drawn, and only two angles.

With a teacher (1, 0, ...) and a student at the angle theta to it, in the plane of the first two coordinates, a mistake
comes after a geometric number of examples, of chance theta / pi; its input has the angle psi, uniform in
(-pi/2, theta - pi/2), in that plane, a Rayleigh length r there and chi^2 of N - 2 degrees of freedom beside it. The law
of theta is then the law of the algorithm, without a vector of N weights.
"""

from __future__ import annotations

import math

import numpy as np

from bayou.contracts import Matrix, Vector
from bayou.papers.ensembles import Ensemble, times_of


def chain_errors(eta0: float, n_weights: int, alphas: tuple[float, ...], n_runs: int, seed: int) -> Ensemble:
    """theta / pi at these alphas, for eta = eta0 sqrt(2 pi) / alpha, from a random student."""
    rng = np.random.default_rng([seed, n_weights])
    times = times_of(alphas, n_weights)
    theta = _random_angles(rng, n_weights, n_runs)
    seen = np.zeros(n_runs)
    errors = np.empty((n_runs, len(times)))
    for place, time in enumerate(times):
        waiting = np.arange(n_runs)
        while waiting.size:
            # A gap that leads beyond this time is drawn anew at the next: what is geometric forgets.
            at = seen[waiting] + rng.geometric(theta[waiting] / math.pi)
            mistaken = at <= time
            seen[waiting] = np.where(mistaken, at, time)
            waiting = waiting[mistaken]
            step = eta0 * math.sqrt(2.0 * math.pi) / seen[waiting]  # (eta / N) with alpha = n / N
            theta[waiting] = _turned(rng, theta[waiting], step, n_weights)
        errors[:, place] = theta / math.pi
    return Ensemble(times, errors[:, None, :, None])


def _random_angles(rng: np.random.Generator, n_weights: int, n_runs: int) -> Vector:
    along, across = rng.standard_normal(n_runs), rng.chisquare(n_weights - 1, n_runs)
    return np.asarray(np.arctan2(np.sqrt(across), along))


def _turned(rng: np.random.Generator, theta: Vector, step: Vector, n_weights: int) -> Vector:
    """The angle after a mistake, the student having the length 1."""
    psi = rng.uniform(-0.5 * math.pi, theta - 0.5 * math.pi)
    length = np.sqrt(rng.chisquare(2.0, theta.size))
    along = np.cos(theta) + step * length * np.cos(psi)
    across = np.sin(theta) + step * length * np.sin(psi)
    beside: Matrix = step**2 * rng.chisquare(n_weights - 2, theta.size)
    return np.asarray(np.arctan2(np.sqrt(across**2 + beside), along))
