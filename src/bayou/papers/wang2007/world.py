"""Two views, of 10 and 8 columns, with three correlations or none; and the orders that other methods find."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.stats import chi2

from bayou.contracts import Matrix, Vector
from bayou.papers.ensembles import Estimate

COLUMNS = 10, 8
CORRELATIONS = 0.9, 0.8, 0.6
SIZES = 50, 100, 200, 500
LEVEL = 0.05


class Views(NamedTuple):
    """Joint rows: to learn, and to be expected."""

    rows: Matrix
    unseen: Matrix


def draw_views(n: int, seed: int, correlations: tuple[float, ...] = CORRELATIONS, n_unseen: int = 0) -> Views:
    """Canonical variables with these correlations, each view seen through a random matrix of its own."""
    rng = np.random.default_rng([seed, n, len(correlations)])
    n_x, n_y = COLUMNS
    z = rng.normal(size=(n + n_unseen, n_x + n_y))
    for j, correlation in enumerate(correlations):
        z[:, n_x + j] = correlation * z[:, j] + math.sqrt(1.0 - correlation**2) * z[:, n_x + j]
    rows = np.hstack([z[:, :n_x] @ rng.normal(size=(n_x, n_x)), z[:, n_x:] @ rng.normal(size=(n_y, n_y))])
    return Views(rows[:n], rows[n:])


def share(hits: list[bool]) -> Estimate:
    """With the standard error of a share, that of one miss if there is none."""
    n = len(hits)
    mean = float(np.mean(hits))
    inner = min(max(mean, 1.0 / n), 1.0 - 1.0 / n)
    return Estimate(mean, math.sqrt(inner * (1.0 - inner) / n))


def likeliest(r: Vector, n: int, per_parameter: float) -> int:
    """The order of the largest likelihood less so much for each parameter: 1 is AIC's, log(n) / 2 is BIC's."""
    gained = np.concatenate([[0.0], np.cumsum(-0.5 * n * np.log1p(-(r**2)))])
    k = np.arange(len(gained))
    return int(np.argmax(gained - per_parameter * k * (sum(COLUMNS) - k)))


def bartlett(r: Vector, n: int) -> int:
    """The least order of which Bartlett's test does not reject that no others are left."""
    n_x, n_y = COLUMNS
    for k in range(len(r)):
        statistic = -(n - 1.0 - 0.5 * (n_x + n_y + 1.0)) * float(np.sum(np.log1p(-(r[k:] ** 2))))
        if chi2.sf(statistic, (n_x - k) * (n_y - k)) > LEVEL:
            return k
    return len(r)
