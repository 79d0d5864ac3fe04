"""Information and bounds: closed forms, adaptive quadrature, and learners that reach them or do not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, special, stats

from bayou import (
    DiagonalGaussian,
    FullGaussian,
    Gaussian,
    Learner,
    Logistic,
    MomentMatching,
    NegativeBinomial,
    Ordinal,
    Poisson,
    Probit,
    Softmax,
    SphericalGaussian,
    Step,
    StudentT,
)
from bayou.contracts import Posterior, ScalarLikelihood
from bayou.errors import InvalidFeatures, InvalidSpec, ShapeMismatch
from bayou.numerics.jit import COMPILED
from bayou.theory import (
    cramer_rao,
    efficiency,
    efficiency_exponents,
    entropic_error,
    fisher_information,
    latent_information,
    observed_information,
    plug_in_entropic_error,
    sandwich,
)

compiled = pytest.mark.skipif(not COMPILED, reason="thousands of rows need compiled kernels")


def test_the_threshold_of_fig_1_of_opper() -> None:
    """P(S) = Phi(S (x - theta) / sigma0), theta = 0.1, sigma0 = 0.5, x uniform on [-1, 1]: a second weight, -theta."""
    x, shares = np.polynomial.legendre.leggauss(40)
    J = fisher_information(Probit(0.5), np.column_stack([x, np.ones(40)]), [1.0, -0.1], shares)[1, 1]
    assert pytest.approx(1.67293005563, abs=5e-12) == J
    assert cramer_rao([[J]], 1.0)[0, 0] == pytest.approx(0.597753621936, abs=5e-12)


@pytest.mark.parametrize("f", [-3.0, 0.0, 1.3, 6.0])
@pytest.mark.parametrize(
    ("likelihood", "closed"),
    [
        (Gaussian(0.3), lambda f: 1.0 / 0.3),
        (StudentT(3.0, 0.5), lambda f: 4.0 / 6.0 / 0.25),  # (n + 1) / (n + 3)
        (StudentT(0.5, 1.0), lambda f: 1.5 / 3.5),
        (Logistic(), lambda f: special.expit(f) * special.expit(-f)),
        (
            Probit(2.0),
            lambda f: 0.25 * math.exp(2.0 * stats.norm.logpdf(0.5 * f)) / math.prod(special.ndtr([f / 2, -f / 2])),
        ),
        (Poisson(2.0), lambda f: 2.0 * math.exp(f)),
        (NegativeBinomial(3.0), lambda f: math.exp(f) / (1.0 + 3.0 * math.exp(f))),
    ],
    ids=lambda value: "" if callable(value) else repr(value),
)
def test_information_of_one_target(likelihood: ScalarLikelihood, closed: object, f: float) -> None:
    assert latent_information(likelihood, [f])[0] == pytest.approx(closed(f), rel=1e-9)  # type: ignore[operator]


def test_information_of_grades_is_the_curvature_of_the_divergence() -> None:
    grades, f, step = Ordinal((-1.0, 0.5), 0.8), 0.3, 1e-4

    def chances(at: float) -> np.ndarray:
        return np.diff([0.0, *special.ndtr((np.array([-1.0, 0.5]) - at) / 0.8), 1.0])

    overlap = np.sum(np.sqrt(chances(f + step) * chances(f - step)))  # 1 - i (2 step)^2 / 8
    assert latent_information(grades, [f])[0] == pytest.approx(8.0 * (1.0 - overlap) / (2.0 * step) ** 2, rel=1e-6)


def test_information_of_many_inputs_is_isotropic_but_for_one_direction() -> None:
    """x ~ N(0, I), Probit: J = a (I - e e') + b e e', by quadrature over the latent."""
    rng = np.random.default_rng(0)
    w = np.array([0.6, 0.0, 0.8])
    rows = rng.standard_normal((20_000, 3))

    def average(power: int) -> float:
        def density(v: float) -> float:
            ratios = math.exp(2.0 * stats.norm.logpdf(v / 0.5) - special.log_ndtr(v / 0.5) - special.log_ndtr(-v / 0.5))
            return stats.norm.pdf(v) * v**power * ratios / 0.25

        return integrate.quad(density, -8.0, 8.0)[0]

    expected = average(0) * (np.eye(3) - np.outer(w, w)) + average(2) * np.outer(w, w)
    assert fisher_information(Probit(0.5), rows, w) == pytest.approx(expected, abs=0.05)  # 4 standard errors


def test_the_model_of_the_data_has_one_information() -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((20_000, 2))
    w = np.array([1.0, -0.5])
    y = np.where(rng.random(len(x)) < special.expit(x @ w), 1.0, -1.0)
    A, B = observed_information(Logistic(), x, y, w)
    J = fisher_information(Logistic(), x, w)
    assert pytest.approx(J, abs=1e-12) == A  # the curvature of a logistic does not depend on the target
    assert pytest.approx(J, abs=0.01) == B
    assert sandwich(A, B) == pytest.approx(np.linalg.inv(J), abs=0.5)


def test_a_foreign_world_is_paid_for_by_the_plug_in_alone() -> None:
    """y ~ N(theta, s^2), model N(theta, 1), flat prior: the exact excess of each prediction (Opper 1998, (8.12))."""
    s2, t = 4.0, 500
    A, B = [[1.0]], [[s2]]
    assert sandwich(A, B) == pytest.approx(np.array([[s2]]))  # the variance of a mean, times t
    width = 1.0 + 1.0 / t
    predictive = 0.5 * math.log(width) + 0.5 * s2 * (1.0 + 1.0 / t) / width - 0.5 * s2
    plug_in = 0.5 * s2 / t
    assert entropic_error(t, 1) == pytest.approx(predictive, rel=2.0 / t)
    assert plug_in_entropic_error(t, A, B) == pytest.approx(plug_in)


@compiled
def test_a_full_belief_reaches_the_bound() -> None:
    """Probit, N = 3, t = 2000, 100 runs: t e' J e / N is 1 within four standard errors and O(N / t)."""
    rng = np.random.default_rng(2)
    w, t, runs = np.array([0.6, 0.0, 0.8]), 2000, 100
    J = fisher_information(Probit(), rng.standard_normal((4000, 3)), w)
    values = []
    for _ in range(runs):
        x = rng.standard_normal((t, 3))
        learner = Learner(Probit(), FullGaussian(), MomentMatching(), 3)
        learner.learn_many(x, np.sign(x @ w + rng.standard_normal(t)))
        error = learner.belief.mean - w
        values.append(t * error @ J @ error / 3.0)
    assert np.mean(values) == pytest.approx(1.0, abs=4.0 * np.std(values) / math.sqrt(runs) + 0.03)


@compiled
@pytest.mark.parametrize(
    ("family", "posterior", "covariance"),
    [
        ("spherical", SphericalGaussian(), np.diag([1.0, 0.1])),
        ("diagonal", DiagonalGaussian(), np.array([[1.0, 0.9], [0.9, 1.0]])),
        ("diagonal", DiagonalGaussian(), np.array([[1.0, 0.3], [0.3, 1.0]])),
        ("spherical", SphericalGaussian(), np.diag([1.2, 0.8])),
        ("full", FullGaussian(), np.array([[1.0, 0.9], [0.9, 1.0]])),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_smaller_families_lose_what_is_predicted(
    family: str, posterior: Posterior[object], covariance: np.ndarray
) -> None:
    """Regression, N = 2, 200 runs; squared errors along eigenvectors at t = 1000 and 8000, four standard errors."""
    rng = np.random.default_rng(3)
    runs, times = 200, [1000, 8000]
    predicted = efficiency(covariance, family)
    values, directions = np.linalg.eigh(covariance)
    values, directions = values[::-1], directions[:, ::-1]
    root = directions * np.sqrt(values)
    squares = np.empty((2, runs, 2))
    for run in range(runs):
        w = rng.standard_normal(2)
        learner = Learner(Gaussian(1.0), posterior, MomentMatching(), 2)
        for i, t in enumerate(times):
            x = rng.standard_normal((t - learner.n_examples, 2)) @ root.T
            learner.learn_many(x, x @ w + rng.standard_normal(len(x)))
            squares[i, run] = ((learner.belief.mean - w) @ directions) ** 2
    mean = squares.mean(axis=1)
    noise = squares.std(axis=1) / mean / math.sqrt(runs)  # relative
    slopes = np.log(mean[1] / mean[0]) / math.log(8.0)
    assert np.all(np.abs(slopes - predicted.exponents) < 4.0 * np.hypot(*noise) / math.log(8.0) + 0.03)
    bound = np.diag(directions.T @ cramer_rao(covariance, times[1]) @ directions)
    efficient = predicted.rates > 0.7  # nearer to 1/2 the end comes later than t = 8000
    losses = mean[1] / bound
    assert np.all((np.abs(losses / predicted.losses - 1.0) < 4.0 * noise[1] + 0.03)[efficient])


def test_exponents() -> None:
    """Spherical: 2 J N / tr J; diagonal: twice the eigenvalues of D^-1 J."""
    assert efficiency_exponents(np.diag([1.0, 0.1]), "spherical") == pytest.approx([-1.0, -0.4 / 1.1])
    assert efficiency_exponents([[4.0, 1.8], [1.8, 1.0]], "diagonal") == pytest.approx([-1.0, -0.2])
    assert efficiency_exponents(np.diag([1.0, 0.1]), "diagonal") == pytest.approx([-1.0, -1.0])
    full = efficiency(np.diag([1.0, 1e-6]), "full")
    assert full.exponents.tolist() == [-1.0, -1.0]
    assert full.entropic_loss == 1.0
    assert efficiency(np.diag([1.0, 0.1]), "spherical").entropic_loss == math.inf
    assert efficiency(np.diag([1.2, 0.8]), "spherical").losses == pytest.approx([1.44 / 1.4, 0.64 / 0.6])


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: latent_information(Step(), [0.0]), InvalidSpec, r"must be smooth .*; got Step\(\)"),
        (lambda: latent_information(Softmax(3), [0.0]), InvalidSpec, r"of one latent .*; got Softmax"),
        (lambda: fisher_information(Probit(), [1.0]), ShapeMismatch, r"`inputs` must have rows.*; got shape \(1,\)"),
        (lambda: fisher_information(Probit(), [[1.0]], [1.0, 2.0]), ShapeMismatch, r"`weights` must have 1 values"),
        (lambda: fisher_information(Probit(), [[1.0]], [1.0], [-1.0]), InvalidSpec, r"`shares` must not be negative"),
        (lambda: cramer_rao([[1.0, 1.0], [1.0, 1.0]], 1.0), InvalidSpec, r"`fisher` must be positive definite"),
        (lambda: cramer_rao([[1.0]], 0.0), InvalidSpec, r"`t` must be positive and finite; got 0.0"),
        (lambda: cramer_rao([1.0], 1.0), ShapeMismatch, r"`fisher` must be a square matrix; got shape \(1,\)"),
        (
            lambda: sandwich([[1.0]], np.eye(2)),
            ShapeMismatch,
            r"`B` must have the shape of `A`, \(1, 1\); got",
        ),
        (
            lambda: plug_in_entropic_error(1.0, [[1.0]], np.eye(2)),
            ShapeMismatch,
            r"`B` must have the shape of `A`, \(1, 1\); got",
        ),
        (lambda: cramer_rao([[2.0, 0.5], [0.0, 2.0]], 1.0), InvalidSpec, r"`fisher` must be symmetric; got"),
        (lambda: efficiency([[2.0, 0.5], [0.0, 2.0]], "diagonal"), InvalidSpec, r"`fisher` must be symmetric; got"),
        (lambda: sandwich(np.eye(2), [[1.0, 5.0], [0.0, 1.0]]), InvalidSpec, r"`B` must be symmetric; got"),
        (lambda: fisher_information(Probit(), [[math.nan]]), InvalidFeatures, r"`inputs` must be finite; got NaN"),
        (lambda: latent_information(Probit(), [[0.0, 1.0]]), InvalidSpec, r"`latents` must be finite .* in one row"),
        (lambda: latent_information(Probit(), [math.inf]), InvalidSpec, r"`latents` must be finite .*; got \[inf\]"),
        (lambda: observed_information(Step(), [[1.0]], [1.0], [1.0]), InvalidSpec, r"must be smooth .*; got Step"),
        (lambda: efficiency([[1.0]], "low_rank"), InvalidSpec, r"`family` must be one of .*; got 'low_rank'"),
    ],
)
def test_what_has_no_bound_says_why(make: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()  # type: ignore[operator]
