"""x_i = W_i z + e_i, z ~ N(0, I): what two views share, by variational Bayes; how many z there are is learnt.

W_i | Phi_i, a ~ MN(0, Phi_i^-1, diag(a)^-1), Phi_i ~ Wishart the precision of e_i, a_j ~ Gamma the relevance of z_j in
both views (Wang 2007, with loadings in units of the noise). In the coordinates of the sample's canonical correlations
r_j all matrices are diagonal, and each pair of canonical variables has a recursion of six numbers for itself. It does
not depend on the units, nor on any invertible map, of a view.

A pair whose relevance goes to infinity is off. With few rows per column relevance alone keeps pairs that are due to
chance, so a pair must also raise the evidence: the variational bound with it, less that without it, in the dimensions
that the pairs before it have left.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, get_args

import numpy as np
from scipy.special import gammaln, ndtri

from bayou.contracts import Matrix, Vector
from bayou.errors import InvalidSpec
from bayou.mixtures.canonical_pairs import VAGUE, Pairs, Selection, solve_pairs
from bayou.mixtures.two_views import Moments, View, whitened

SMALLEST_CENTRE = 0.05  # of an interval, as artanh
EXTRA_DEGREES = 2.0  # of freedom, of the predictive distribution, beside the number of rows


class CanonicalModel(NamedTuple):
    """Two views in canonical coordinates, the pairs, how many of them are retained, and the number of rows."""

    x: View
    y: View
    pairs: Pairs
    n_retained: int
    weight: float


def canonical_model(
    moments: Moments, n_x: int, least: float = 0.1, selection: Selection = "evidence"
) -> CanonicalModel:
    """The model of these rows; a pair is retained if its correlation is above ``least``, and by the ``selection``."""
    if selection not in get_args(Selection):
        raise InvalidSpec(f"`selection` must be one of {', '.join(get_args(Selection))}; got {selection!r}.")
    if not moments.weight > 1.0:
        raise InvalidSpec(f"the moments must be those of more than one row; got a weight of {moments.weight:g}.")
    x, y, cross = whitened(moments, n_x)
    if min(cross.shape):
        left, r, right = np.linalg.svd(cross)
        signs = _signs(left.T[: r.size] @ x.patterns[: len(left)])
        left[:, : r.size] *= signs
        right[: r.size] *= signs[:, None]
        x, y = x.turned(left), y.turned(right.T)
    else:
        r = np.zeros(0)
    pairs = solve_pairs(np.clip(r, 0.0, 1.0), moments.weight, x.n_signals, y.n_signals, least, selection)
    return CanonicalModel(x, y, pairs, int(pairs.retained.sum()), moments.weight)


def _signs(patterns: Matrix) -> Vector:
    """Such that the largest part of each pattern, in units of its column, becomes positive."""
    scale = np.sqrt(np.sum(patterns**2, axis=0))
    told = patterns / np.where(scale > 0.0, scale, 1.0)
    largest = told[np.arange(len(told)), np.argmax(np.abs(told), axis=1)]
    return np.where(largest < 0.0, -1.0, 1.0)


class Predictive(NamedTuple):
    """A new row in canonical coordinates: the variance of each variable, and the covariance of each relevant pair."""

    x_variance: Vector
    y_variance: Vector
    covariance: Vector
    degrees: float


def predictive(model: CanonicalModel) -> Predictive:
    """Student's, with the moments that a new row has under the posterior: loadings, noise and mean are uncertain.

    Given z, a view is Student's with n + 2 degrees of freedom, and E[Phi^-1] = K / n. Each pair counts by the
    probability that it is one: what is expected is an average over all numbers of pairs.
    """
    pairs, n, m = model.pairs, model.weight, int(np.sum(model.pairs.probability > 0.0))
    chance = pairs.probability[:m]
    wider = 1.0 + float(chance @ pairs.spread[:m])
    unsure = 1.0 + 1.0 / n

    def variances(view: View, noise: Vector, loading: Vector) -> Vector:
        variance = np.full(view.weights.shape[1], (1.0 + VAGUE / n) * wider)
        variance[:m] += chance * (noise[:m] / n * wider + loading[:m] ** 2 - variance[:m])
        return unsure * variance

    return Predictive(
        variances(model.x, pairs.x_noise, pairs.x_loading),
        variances(model.y, pairs.y_noise, pairs.y_loading),
        unsure * chance * pairs.x_loading[:m] * pairs.y_loading[:m],
        n + EXTRA_DEGREES,
    )


def log_density(model: CanonicalModel, x: Matrix, y: Matrix) -> Vector:
    """Of joint rows, before they are seen. What never varied has no density, and is left out."""
    told = predictive(model)
    m = told.covariance.size
    u, v = model.x.white(x), model.y.white(y)
    left = told.y_variance.copy()
    left[:m] -= told.covariance**2 / told.x_variance[:m]
    error = v.copy()
    error[:, :m] -= u[:, :m] * (told.covariance / told.x_variance[:m])
    distance = np.sum(u**2 / told.x_variance, axis=1) + np.sum(error**2 / left, axis=1)
    d, nu = u.shape[1] + v.shape[1], told.degrees
    volume = model.x.log_volume + model.y.log_volume
    volume -= 0.5 * float(np.sum(np.log(told.x_variance)) + np.sum(np.log(left)))
    constant = float(gammaln(0.5 * (nu + d)) - gammaln(0.5 * nu)) - 0.5 * d * math.log((nu - 2.0) * math.pi)
    density: Vector = volume + constant - 0.5 * (nu + d) * np.log1p(distance / (nu - 2.0))
    return density


class Conditional(NamedTuple):
    """One view given the other: per row its mean, and a factor of the covariance; Student's, with so many degrees."""

    mean: Matrix
    factor: Vector
    covariance: Matrix
    degrees: float


def conditional(model: CanonicalModel, rows: Matrix, given: Literal["x", "y"] = "x") -> Conditional:
    """The other view of rows of this one. Far from all that was seen, less is known."""
    told = predictive(model)
    m = told.covariance.size
    here, there = (model.x, model.y) if given == "x" else (model.y, model.x)
    variance, other = (told.x_variance, told.y_variance) if given == "x" else (told.y_variance, told.x_variance)
    white = here.white(rows)
    slope = told.covariance / variance[:m]
    mean = there.mean + (white[:, :m] * slope) @ there.patterns[:m]
    left = other.copy()
    left[:m] -= slope * told.covariance
    factor = (told.degrees - 2.0 + np.sum(white**2 / variance, axis=1)) / (told.degrees - 2.0 + variance.size)
    return Conditional(mean, factor, (there.patterns.T * left) @ there.patterns, told.degrees + variance.size)


def shared(model: CanonicalModel, x: Matrix | None, y: Matrix | None) -> tuple[Matrix, Vector]:
    """Mean per row, and variance, of the retained z, given one view or both."""
    pairs, m, n = model.pairs, model.n_retained, model.weight
    precision = np.ones(m)
    total: Matrix | float = 0.0
    for rows, view, loading, noise in (
        (x, model.x, pairs.x_loading, pairs.x_noise),
        (y, model.y, pairs.y_loading, pairs.y_noise),
    ):
        if rows is not None:
            phi = (view.n_signals + 1.0 + n) / noise[:m]
            precision = precision + loading[:m] ** 2 * phi + view.n_signals * pairs.spread[:m]
            total = total + view.white(rows)[:, :m] * (phi * loading[:m])
    return np.asarray(total / precision, dtype=np.float64), 1.0 / precision


def loadings(model: CanonicalModel, of: Literal["x", "y"]) -> tuple[Matrix, Matrix]:
    """Mean and variance of W in raw units: a row per column of the view, a column per retained z."""
    pairs, m = model.pairs, model.n_retained
    view, loading, noise = (
        (model.x, pairs.x_loading, pairs.x_noise) if of == "x" else (model.y, pairs.y_loading, pairs.y_noise)
    )
    scales = np.full(view.weights.shape[1], model.weight + VAGUE)
    scales[: len(noise)] = noise
    variance = np.sum(view.patterns.T**2 * (scales / model.weight), axis=1)
    return view.patterns[:m].T * loading[:m], variance[:, None] * pairs.spread[:m]


def noise_covariance(model: CanonicalModel, of: Literal["x", "y"]) -> Matrix:
    """E[Phi^-1] in raw units: how a view varies where z does not."""
    view, noise = (model.x, model.pairs.x_noise) if of == "x" else (model.y, model.pairs.y_noise)
    scales, m = np.full(view.weights.shape[1], model.weight + VAGUE), model.n_retained
    scales[:m] = noise[:m]
    covariance: Matrix = (view.patterns.T * (scales / model.weight)) @ view.patterns
    return covariance


def correlation_intervals(model: CanonicalModel, coverage: float) -> Matrix:
    """Central intervals of the retained correlations: rows (low, high).

    Variational posteriors are too narrow for that. So these come from the sample's correlations, which are too large by
    about 1 / n, and of which artanh r has a variance of about 1 / n (Lawley 1959; Glynn and Muirhead 1978).
    """
    m, n, d = model.n_retained, model.weight - 1.0, model.x.n_signals + model.y.n_signals
    z = np.arctanh(np.minimum(model.pairs.sample_correlation[:m], 1.0 - 1e-15))
    centre = z
    for _ in range(2):
        square = np.tanh(centre) ** 2
        apart = square[:, None] - square
        near = np.abs(apart) < 1.0 / (n + 1.0)  # closer than rows can tell: as if they were one
        pull = np.sum(np.where(near, 0.0, square / np.where(near, 1.0, apart)), axis=1)
        bias = (d - 2.0 + square + 2.0 * (1.0 - square) * pull) / (2.0 * n * np.sqrt(square))
        centre = np.maximum(z - bias, SMALLEST_CENTRE)
    reach = float(ndtri(0.5 + 0.5 * coverage)) / math.sqrt(max(n - d, 1.0))
    return np.tanh(np.maximum(np.column_stack([centre - reach, centre + reach]), 0.0))
