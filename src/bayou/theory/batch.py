"""All examples at once: what one pass is compared with.

exact_posterior            by quadrature, for one weight
expectation_propagation    sites revisited until they agree; its first sweep is the online algorithm
maximum_likelihood         the weights that make the targets most probable
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.integrate
import scipy.optimize
from numpy.typing import ArrayLike

from bayou.contracts import Matrix, Rule, ScalarLikelihood, Vector
from bayou.errors import ImproperBelief, InvalidFeatures, InvalidSpec, ShapeMismatch
from bayou.numerics.pointers import scalar_kernels
from bayou.numerics.predictive import log_densities
from bayou.rules import MomentMatching

GRID = 2001
REACH = 12.0  # standard deviations on either side that a grid covers
LEAST_STEPS = 20.0  # of a grid within one standard deviation, for it to be trusted
MOST_GRIDS = 60  # doubled or narrowed so often, a grid comes from any prior to any posterior


@dataclass(frozen=True)
class ExactPosterior:
    """What is known of one weight: its moments, the log evidence of the targets, and its density on a grid."""

    mean: float
    variance: float
    log_evidence: float
    weights: Vector
    density: Vector


@dataclass(frozen=True)
class SiteApproximation:
    """A Gaussian posterior, and the site of each example: exp(shift f - precision f^2 / 2).

    ``change`` is the largest change of a mean in the last of the sweeps, in posterior deviations.
    """

    mean: Vector
    covariance: Matrix
    precision: Vector
    shift: Vector
    sweeps: int
    change: float


def exact_posterior(
    likelihood: ScalarLikelihood,
    features: ArrayLike,
    targets: ArrayLike,
    prior_mean: float = 0.0,
    prior_variance: float = 1.0,
) -> ExactPosterior:
    """The posterior of one weight w with latents w * x, by quadrature on a grid that is fitted to it.

    >>> from bayou import Gaussian
    >>> exact = exact_posterior(Gaussian(noise_variance=2.0), [1.0, 1.0], [3.0, 1.0])
    >>> round(exact.mean, 6), round(exact.variance, 6)
    (1.0, 0.5)
    """
    rows, signs = _checked(likelihood, np.asarray(features, dtype=np.float64).reshape(-1, 1), targets)
    _check_prior(prior_variance)
    centre, deviation = prior_mean, float(np.sqrt(prior_variance))
    for _ in range(MOST_GRIDS):  # each is laid around what the last one has found
        weights = centre + deviation * np.linspace(-REACH, REACH, GRID)
        logs = -0.5 * ((weights - prior_mean) ** 2 / prior_variance + np.log(2.0 * np.pi * prior_variance))
        logs = logs + [log_densities(likelihood, signs, w * rows[:, 0])[0].sum() for w in weights]
        peak, spacing = int(np.argmax(logs)), weights[1] - weights[0]
        if peak in (0, GRID - 1):  # the posterior lies farther out
            centre, deviation = weights[peak] if np.isfinite(logs[peak]) else centre, 2.0 * deviation
            continue
        density = np.exp(logs - logs[peak])
        total = scipy.integrate.simpson(density, x=weights)
        mean = float(scipy.integrate.simpson(density * weights, x=weights) / total)
        variance = float(scipy.integrate.simpson(density * (weights - mean) ** 2, x=weights) / total)
        if not variance > (LEAST_STEPS * spacing) ** 2:  # too few steps within it for sums to be integrals
            centre, deviation = weights[peak], LEAST_STEPS * spacing
            continue
        settled = abs(mean - centre) < 0.1 * deviation and abs(np.sqrt(variance) / deviation - 1.0) < 0.1
        centre, deviation = mean, float(np.sqrt(variance))
        if settled:
            return ExactPosterior(mean, variance, float(logs[peak] + np.log(total)), weights, density / total)
    raise ImproperBelief(
        "no weights could be found, of finite mean and variance, that make all of the targets possible."
    )


def expectation_propagation(
    likelihood: ScalarLikelihood,
    features: ArrayLike,
    targets: ArrayLike,
    prior_variance: float = 1.0,
    rule: Rule | None = None,
    sweeps: int = 100,
    tolerance: float = 1e-8,
) -> SiteApproximation:
    """Visit each example again with its own site taken out, until nothing changes or the sweeps are used up.

    From sites that say nothing, the first sweep is online learning with a full covariance.
    """
    rows, signs = _checked(likelihood, features, targets)
    _check_prior(prior_variance)
    if sweeps < 1:
        raise InvalidSpec(f"`sweeps` must be at least 1; got {sweeps!r}.")
    chosen = MomentMatching() if rule is None else rule
    kernels, params = scalar_kernels(likelihood, chosen), likelihood.params
    n, d = rows.shape
    mean, covariance = np.zeros(d), prior_variance * np.eye(d)
    precision, shift = np.zeros(n), np.zeros(n)
    change = np.inf
    done = 0
    while done < sweeps and change > tolerance:
        before = mean.copy()
        for i in range(n):
            direction = covariance @ rows[i]
            m, v = float(rows[i] @ mean), float(rows[i] @ direction)
            left = 1.0 - precision[i] * v
            if not left > 0.0:
                continue  # without its own site the latent would know less than nothing: wait for the others
            cavity_variance = v / left
            cavity_mean = (m - shift[i] * v) / left
            _, slope, new_precision = chosen.site(kernels, signs[i], cavity_mean, cavity_variance, params)
            new_shift = slope + new_precision * cavity_mean
            more = new_precision - precision[i]
            gain = 1.0 / (1.0 + more * v)
            mean = mean + direction * ((new_shift - shift[i] - more * m) * gain)
            covariance = covariance - np.outer(direction, direction) * (more * gain)
            precision[i], shift[i] = new_precision, new_shift
        done += 1
        change = float(np.max(np.abs(mean - before) / np.sqrt(np.diag(covariance))))
    return SiteApproximation(mean, covariance, precision, shift, done, change)


def maximum_likelihood(likelihood: ScalarLikelihood, features: ArrayLike, targets: ArrayLike) -> Vector:
    """The weights that make all targets most probable, by Newton's method from zero.

    >>> from bayou import Gaussian
    >>> maximum_likelihood(Gaussian(), [[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]], [1.0, 4.0, 3.0]).round(6)
    array([1., 2.])
    """
    rows, signs = _checked(likelihood, features, targets)
    if not rows.size:
        raise ShapeMismatch(f"`features` must have rows and columns; got shape {rows.shape}.")
    if not likelihood.smooth:
        raise InvalidSpec(f"{likelihood!r} has no slope to climb; all weights that divide the targets are as good.")

    def cost(weights: Vector) -> tuple[float, Vector]:
        value, slope, _ = log_densities(likelihood, signs, rows @ weights)
        return -float(value.sum()), -(slope @ rows)

    def curvature(weights: Vector) -> Matrix:
        bend = log_densities(likelihood, signs, rows @ weights)[2]
        matrix: Matrix = (rows * bend[:, None]).T @ rows
        return matrix

    found = scipy.optimize.minimize(
        cost,
        np.zeros(rows.shape[1]),
        jac=True,
        hess=curvature,
        method="trust-exact",
        options={"gtol": 1e-9 * len(rows)},
    )
    weights: Vector = found.x
    fitted = log_densities(likelihood, signs, rows @ weights)[0]
    if not found.success or (likelihood.target_range == (-1.0, 1.0) and fitted.sum() > -1e-6 * len(rows)):
        raise InvalidFeatures(
            "the weights must have a finite best value; here they can grow for ever, as when a hyperplane divides the "
            "targets."
        )
    return weights


def _checked(likelihood: ScalarLikelihood, features: ArrayLike, targets: ArrayLike) -> tuple[Matrix, Vector]:
    if not isinstance(likelihood, ScalarLikelihood):
        raise InvalidSpec(f"`likelihood` must be of one latent; got {likelihood!r}.")
    rows = np.ascontiguousarray(features, dtype=np.float64)
    signs = np.ascontiguousarray(targets, dtype=np.float64)
    if rows.ndim != 2 or signs.shape != (len(rows),):
        raise ShapeMismatch(
            f"`features` must be rows and `targets` one value per row; got shapes {rows.shape} and {signs.shape}."
        )
    if not np.all(np.isfinite(rows)):
        raise InvalidFeatures("`features` must be finite; got NaN or infinity.")
    likelihood.check_targets(signs)
    return rows, signs


def _check_prior(variance: float) -> None:
    if not 0.0 < variance < np.inf:
        raise InvalidSpec(f"`prior_variance` must be positive and finite; got {variance!r}.")
