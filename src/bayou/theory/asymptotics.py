"""How fast errors can fall, and how fast they do fall: Fisher's information and what a family makes of it.

    J = E[i(w . x) x x'],   i(f) = E_y[(d log p(y | f) / df)^2]      bound: E[(w - w*)(w - w*)'] >= J^-1 / t
    A = E[-d^2 log p],  B = E[(d log p)(d log p)']                   what is reached: A^-1 B A^-1 / t

(Opper 1998, (8.4), (8.10)). In the model's own world A = B = J, and the full family reaches the bound. The entropic
error, what a prediction costs beyond the best there is, is N / 2t for the predictive distribution, also in a foreign
world, and tr(B A^-1) / 2t for the likelihood at the mean: (8.12), corrected, which prints the second for the first.

A smaller family learns with D in the place of J: tr(J) / N for the spherical, diag(J) for the diagonal one. Along an
eigenvector of D^-1 J with eigenvalue a it is gradient descent with the rate a / t, in units of the best one:

    variance = a^2 / (2a - 1) times the bound    where a > 1/2
    variance ~ t^-2a                             where a < 1/2: slower than any bound
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from bayou.contracts import Latent, Matrix, ScalarLikelihood, Vector
from bayou.errors import InvalidFeatures, InvalidSpec, ShapeMismatch

FAMILIES = ("full", "diagonal", "spherical")
STEP = 0.1
FARTHEST = 40.0  # in logs of the width: beyond, even a Cauchy tail is nothing
FAR = 40.0  # in widths of a count's distribution


def latent_information(likelihood: ScalarLikelihood, latents: ArrayLike) -> Vector:
    """i(f), the information of one target about its latent, at each latent.

    >>> from bayou import Gaussian, Logistic
    >>> latent_information(Gaussian(noise_variance=4.0), [0.0]), latent_information(Logistic(), [0.0])
    (array([0.25]), array([0.25]))
    """
    _check_smooth(likelihood)
    places = np.atleast_1d(np.asarray(latents, dtype=np.float64))
    if places.ndim != 1 or not np.all(np.isfinite(places)):
        raise InvalidSpec(f"`latents` must be finite numbers, in one row; got {latents!r}.")
    return np.array([_information(likelihood, f) for f in places.tolist()])


def _check_smooth(likelihood: ScalarLikelihood) -> None:
    if not isinstance(likelihood, ScalarLikelihood) or not likelihood.smooth:
        raise InvalidSpec(f"`likelihood` must be smooth and of one latent to have an information; got {likelihood!r}.")


def _information(likelihood: ScalarLikelihood, f: float) -> float:
    total = 0.0
    targets, weights = _all_targets(likelihood, f)
    for y, weight in zip(targets.tolist(), weights.tolist(), strict=True):
        log_density, slope, _ = likelihood.log_density(y, f, likelihood.params)
        total += weight * math.exp(log_density) * slope * slope
    return total


def _all_targets(likelihood: ScalarLikelihood, f: float) -> tuple[Vector, Vector]:
    """Targets and weights by which a density is summed, or integrated."""
    low, high = likelihood.target_range
    if math.isfinite(high):
        whole = np.arange(low, high + 1.0)
        whole = whole[likelihood.accepts(whole)]
        return whole, np.ones_like(whole)
    certain = Latent(np.array([f]), np.array([0.0]))
    if math.isfinite(low):  # counts, with tails that fall by exp(-1) within the ratio of variance to mean
        (mean,), (variance,) = likelihood.moments(certain)
        reach = FAR * (math.sqrt(variance) + variance / mean)
        whole = np.arange(max(low, math.floor(mean - reach)), math.ceil(mean + reach) + 1.0)
        return whole, np.ones_like(whole)
    ((lower, upper),) = likelihood.quantiles(certain, np.array([0.45, 0.55]))  # as narrow as the peak
    u = np.arange(-FARTHEST, FARTHEST + STEP, STEP)
    return 0.5 * (lower + upper) + (upper - lower) * np.sinh(u), (upper - lower) * STEP * np.cosh(u)


def fisher_information(
    likelihood: ScalarLikelihood,
    inputs: ArrayLike,
    weights: ArrayLike | None = None,
    shares: ArrayLike | None = None,
) -> Matrix:
    """J, the mean over the rows of i(w . x) x x', at the weights w, or at w = 0 if none are given.

    ``shares`` says how much each row counts: a quadrature over inputs has nodes for rows and its weights for shares.

    >>> from bayou import Gaussian
    >>> fisher_information(Gaussian(noise_variance=0.5), [[1.0, 0.0], [0.0, 2.0]])
    array([[1., 0.],
           [0., 4.]])
    """
    rows = _rows(inputs)
    w = np.zeros(rows.shape[1]) if weights is None else _vector("weights", weights, rows.shape[1])
    counts = np.ones(len(rows)) if shares is None else _vector("shares", shares, len(rows))
    if not (np.all(counts >= 0.0) and counts.sum() > 0.0):
        raise InvalidSpec(f"`shares` must not be negative, and some must be positive; got {shares!r}.")
    information: Matrix = (rows.T * (counts / counts.sum() * latent_information(likelihood, rows @ w))) @ rows
    return information


def observed_information(
    likelihood: ScalarLikelihood, inputs: ArrayLike, targets: ArrayLike, weights: ArrayLike
) -> tuple[Matrix, Matrix]:
    """A and B as the data have them: means of -l'' x x' and of l'^2 x x'. They differ where the model is not true."""
    _check_smooth(likelihood)
    rows = _rows(inputs)
    w = _vector("weights", weights, rows.shape[1])
    told = _vector("targets", targets, len(rows))
    likelihood.check_targets(told)
    pairs = zip(told.tolist(), (rows @ w).tolist(), strict=True)
    derivatives = np.array([likelihood.log_density(y, f, likelihood.params)[1:] for y, f in pairs])
    slopes, curvatures = derivatives.T / math.sqrt(len(rows)), derivatives[:, 1] / len(rows)
    return (rows.T * curvatures) @ rows, (rows.T * slopes[0] ** 2) @ rows


def cramer_rao(fisher: ArrayLike, t: float) -> Matrix:
    """J^-1 / t: no unbiased estimate from t examples has a smaller covariance.

    >>> cramer_rao([[4.0]], t=100)
    array([[0.0025]])
    """
    return _inverse("fisher", _square("fisher", fisher)) / _positive("t", t)


def sandwich(A: ArrayLike, B: ArrayLike) -> Matrix:
    """A^-1 B A^-1: t times the covariance that is reached, whether the model is true or not."""
    inverse, outer = _inverse_and_outer(A, B)
    product: Matrix = inverse @ outer @ inverse
    return product


def entropic_error(t: float, n_weights: int) -> float:
    """N / 2t: what the predictive distribution costs beyond the best weights, in nats per example, true model or not.

    >>> entropic_error(t=1000, n_weights=5)
    0.0025
    """
    return _positive("n_weights", n_weights) / (2.0 * _positive("t", t))


def plug_in_entropic_error(t: float, A: ArrayLike, B: ArrayLike) -> float:
    """tr(B A^-1) / 2t: the same for a prediction that takes the mean of the weights for the truth."""
    inverse, outer = _inverse_and_outer(A, B)
    return float(np.trace(outer @ inverse)) / (2.0 * _positive("t", t))


@dataclass(frozen=True, eq=False)
class Efficiency:
    """What a family makes of the information, along each of its directions, the best known first.

    ``rates``       a, the eigenvalues of D^-1 J: 1 is efficient
    ``exponents``   the squared error falls as t to this power: -1, or -2a where that is slower
    ``losses``      by what factor the squared error exceeds the bound in the end: a^2 / (2a - 1); inf where a <= 1/2
    """

    family: str
    rates: Vector
    exponents: Vector
    losses: Vector

    @property
    def entropic_loss(self) -> float:
        """By what factor the entropic error N / 2t grows: the mean of the losses."""
        return float(self.losses.mean())


def efficiency(fisher: ArrayLike, family: str) -> Efficiency:
    """What is lost by a family: "full", "diagonal" or "spherical".

    >>> efficiency([[1.0, 0.9], [0.9, 1.0]], "diagonal").exponents
    array([-1. , -0.2])
    """
    J = _square("fisher", fisher)
    if family not in FAMILIES:
        raise InvalidSpec(f"`family` must be one of {', '.join(map(repr, FAMILIES))}; got {family!r}.")
    _inverse("fisher", J)
    if family == "full":
        rates = np.ones(len(J))
    else:
        learnt = np.diag(J) if family == "diagonal" else np.full(len(J), np.trace(J) / len(J))
        rates = linalg.eigvalsh(J / np.sqrt(np.outer(learnt, learnt)))[::-1]
    with np.errstate(divide="ignore"):
        losses = np.where(rates > 0.5, rates**2 / np.maximum(2.0 * rates - 1.0, 0.0), np.inf)
    return Efficiency(family, rates, -np.minimum(2.0 * rates, 1.0), losses)


def efficiency_exponents(fisher: ArrayLike, family: str) -> Vector:
    """The powers of t by which the squared errors of a family fall: see `efficiency`."""
    return efficiency(fisher, family).exponents


def _rows(inputs: ArrayLike) -> Matrix:
    rows = np.array(inputs, dtype=np.float64)
    if rows.ndim != 2 or not rows.size:
        raise ShapeMismatch(f"`inputs` must have rows and columns; got shape {rows.shape}.")
    if not np.all(np.isfinite(rows)):
        raise InvalidFeatures("`inputs` must be finite; got NaN or infinity.")
    return rows


def _vector(name: str, values: ArrayLike, size: int) -> Vector:
    vector = np.array(values, dtype=np.float64)
    if vector.shape != (size,):
        raise ShapeMismatch(f"`{name}` must have {size} values; got shape {vector.shape}.")
    return vector


def _square(name: str, values: ArrayLike) -> Matrix:
    matrix = np.array(values, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ShapeMismatch(f"`{name}` must be a square matrix; got shape {matrix.shape}.")
    if not np.allclose(matrix, matrix.T, rtol=1e-9, atol=1e-9 * np.abs(matrix).max(), equal_nan=True):
        raise InvalidSpec(f"`{name}` must be symmetric; got {matrix!r}.")
    return matrix


def _inverse_and_outer(A: ArrayLike, B: ArrayLike) -> tuple[Matrix, Matrix]:
    inverse, outer = _inverse("A", _square("A", A)), _square("B", B)
    if outer.shape != inverse.shape:
        raise ShapeMismatch(f"`B` must have the shape of `A`, {inverse.shape}; got {outer.shape}.")
    return inverse, outer


def _inverse(name: str, matrix: Matrix) -> Matrix:
    """Of a matrix that must be positive definite to mean what it should."""
    try:
        factor = linalg.cho_factor(matrix)
    except (linalg.LinAlgError, ValueError):
        raise InvalidSpec(f"`{name}` must be positive definite, every direction seen; got {matrix!r}.") from None
    inverse: Matrix = linalg.cho_solve(factor, np.eye(len(matrix)))
    return inverse


def _positive(name: str, value: float) -> float:
    if not 0.0 < value < math.inf:
        raise InvalidSpec(f"`{name}` must be positive and finite; got {value!r}.")
    return float(value)
