"""A function that changes as little as it can: against dense matrices, scipy and sixty decimal digits."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.stats

from bayou import posteriors, stiffness
from bayou.contracts import Likelihood, Posterior
from bayou.encoders import CubicSplines, Polynomials
from bayou.errors import ImproperBelief, InvalidSpec, ShapeMismatch
from bayou.learner import Learner
from bayou.likelihoods import Gaussian, Logistic, Poisson, Softmax, StudentT
from bayou.numerics.bands import band_factor, from_band, inverse_diagonal, solve
from bayou.numerics.jit import COMPILED
from bayou.posteriors import FullGaussian, FunctionNorm
from bayou.rules import Iterated, Linearized, MomentMatching
from bayou.stiffness import GeometricStiffness, LearntStiffness, LinearStiffness

D = 7
LEGENDRE, SPLINES = Polynomials(D - 1, (0.0, 3.0)), CubicSplines(D - 3, (0.0, 3.0))
EXAMPLES = [
    FunctionNorm(),
    FunctionNorm(GeometricStiffness(0.3), prior_mean=0.2),
    FunctionNorm(LinearStiffness(0.5, 0.7)),
    FunctionNorm(LearntStiffness(0.01, smoothness=0.3), LEGENDRE),
    FunctionNorm(LearntStiffness(0.01, smoothness=0.3), LEGENDRE, learn_noise=True, noise_shape=3.0),
    FunctionNorm(LearntStiffness(), SPLINES, features="functions", learn_noise=True, noise_shape=3.0),
    FunctionNorm(GeometricStiffness(), SPLINES, features="functions", prior_mean=(0.1, 0.0, 0.0, 0.3, 0.0, 0.0, 0.0)),
    FunctionNorm(LinearStiffness(), Polynomials(D - 1, (-1.0, 1.0)), features="functions"),
]
everyone = pytest.mark.parametrize("posterior", EXAMPLES, ids=repr)
NAMES = vars(posteriors) | vars(stiffness) | {"Polynomials": Polynomials, "CubicSplines": CubicSplines}


def target(x: np.ndarray) -> np.ndarray:
    return x * np.exp(-(x**2))


def stream(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.0, 3.0, n)
    return x[:, None], target(x) + rng.uniform(-0.05, 0.05, n)


def features(posterior: FunctionNorm, x: np.ndarray) -> np.ndarray:
    if posterior.basis is None:
        return LEGENDRE.encode(x)
    inside = x if posterior.basis.box[0][1] == 3.0 else x / 1.5 - 1.0
    return posterior.basis.functions(inside) if posterior.features == "functions" else posterior.basis.encode(inside)


def learnt(posterior: FunctionNorm, n: int = 30, seed: int = 0) -> Learner:
    learner = Learner(Gaussian(0.7), posterior, MomentMatching(), D)
    x, y = stream(n, seed)
    learner.learn_many(features(posterior, x), y)
    return learner


def unit(posterior: FunctionNorm, belief: Any) -> float:
    return belief.noise[1] / (belief.noise[0] - 1.0) if posterior.learn_noise else 1.0


def metric(posterior: FunctionNorm) -> np.ndarray:
    """The Gram matrix of the features."""
    return posterior.basis.gram() if posterior.features == "functions" and posterior.basis else np.eye(D)


@everyone
def test_a_spec_is_a_value(posterior: FunctionNorm) -> None:
    assert eval(repr(posterior), NAMES) == posterior
    assert len({posterior, replace(posterior)}) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"stiffness": 0.1}, "`stiffness` must be a Stiffness; got 0.1"),
        ({"basis": "splines"}, "`basis` must be a Basis or None; got 'splines'"),
        ({"features": "raw"}, "`features` must be one of orthonormal, functions; got 'raw'"),
        ({"features": "functions"}, "`basis` must say whose functions"),
        ({"prior_mean": np.nan}, "`prior_mean` must be finite"),
        ({"noise_rate": 0.0}, "`noise_rate` must be positive"),
        ({"dtype": "int8"}, "`dtype` must be one of"),
    ],
)
def test_a_bad_spec_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        FunctionNorm(**change)


@pytest.mark.parametrize("bad", [{"start": 0.0}, {"growth": 0.9}, {"growth": np.inf}])
def test_a_bad_growth_is_named(bad: dict[str, float]) -> None:
    with pytest.raises(InvalidSpec, match=f"`{next(iter(bad))}` must"):
        GeometricStiffness(**bad)


def test_bad_stiffness_is_named() -> None:
    with pytest.raises(InvalidSpec, match="`rate` must be positive"):
        LinearStiffness(rate=-1.0)
    with pytest.raises(InvalidSpec, match="`smoothness` must be finite and not negative"):
        LearntStiffness(smoothness=-1.0)


@pytest.mark.parametrize("features", ["orthonormal", "functions"])
def test_features_of_another_basis_are_named(features: str) -> None:
    with pytest.raises(ShapeMismatch, match="`basis` has 7 functions; got 3 features"):
        FunctionNorm(basis=LEGENDRE, features=features).prior(3)


def test_functions_that_are_one_another_are_refused() -> None:
    with pytest.raises(InvalidSpec, match="combinations of each other"):
        FunctionNorm(basis=Polynomials(20, (0.0, 3.0)), features="functions").prior(21)


# --- the step


@everyone
@pytest.mark.parametrize(("slope", "precision"), [(0.7, 0.4), (-30.0, 1e4), (0.2, 0.0), (0.3, -0.05)])
def test_the_mean_moves_as_under_the_dense_update(posterior: FunctionNorm, slope: float, precision: float) -> None:
    belief = learnt(posterior, 10).belief
    x = features(posterior, np.array([[0.8]]))[0]
    covariance, mean = posterior.covariance(belief) / unit(posterior, belief), belief.mean.copy()
    gain = 1.0 / (1.0 + precision * x @ covariance @ x)
    posterior.absorb(belief, x, slope, precision)
    np.testing.assert_allclose(belief.mean, mean + gain * slope * covariance @ x, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("posterior", [p for p in EXAMPLES if isinstance(p.stiffness, LearntStiffness)], ids=repr)
def test_learnt_stiffness_keeps_the_trace_to_first_order(posterior: FunctionNorm) -> None:
    belief = learnt(posterior, 300).belief
    x = features(posterior, np.array([[0.8]]))[0]
    gram = metric(posterior)
    covariance = posterior.covariance(belief) / unit(posterior, belief)
    direction = covariance @ x
    dense = covariance - 0.4 / (1.0 + 0.4 * x @ direction) * np.outer(direction, direction)
    posterior.absorb(belief, x, 0.1, 0.4)
    after = posterior.covariance(belief) / unit(posterior, belief)
    before, wanted, got = (np.trace(gram @ matrix) for matrix in (covariance, dense, after))
    assert wanted < before
    assert got - before == pytest.approx(
        wanted - before, rel=0.01
    )  # it takes 1 / 300 of the trace: the rest is order 2


def test_it_minimises_the_incremental_risk() -> None:
    """(4) of the paper, by a minimiser that knows nothing of the solution."""
    x, y = stream(12)
    posterior = FunctionNorm(GeometricStiffness(0.3))
    learner = Learner(Gaussian(), posterior, Linearized(), D)
    learner.learn_many(LEGENDRE.encode(x[:-1]), y[:-1])
    points, weights = np.polynomial.legendre.leggauss(20)
    grid, last = LEGENDRE.encode(1.5 * (points[:, None] + 1.0)), LEGENDRE.encode(x[-1:])[0]
    before = learner.belief.mean.copy()
    held = 0.3 * 1.05**11 * 0.5

    def risk(theta: np.ndarray) -> float:
        return float(held * weights @ (grid @ (theta - before)) ** 2 + (y[-1] - theta @ last) ** 2)

    learner.learn_many(last[None], y[-1:])
    found = scipy.optimize.minimize(risk, before, tol=1e-14)
    np.testing.assert_allclose(learner.belief.mean, found.x, atol=1e-6)


@pytest.mark.parametrize(
    ("likelihood", "y"),
    [(Logistic(), 1.0), (Poisson(), 4.0), (StudentT(4.0, 0.3), 2.5)],
    ids=["logistic", "count", "t"],
)
def test_other_losses_too(likelihood: Likelihood, y: float) -> None:
    """With `Iterated` the step is the exact minimiser of stiffness * norm of the change / 2 - log p(y | f)."""
    learner = Learner(likelihood, FunctionNorm(GeometricStiffness(0.8), LEGENDRE), Iterated(), D)
    psi = LEGENDRE.encode(np.array([[0.8]]))
    learner.learn_many(psi, [y])

    def risk(theta: np.ndarray) -> float:
        return float(0.4 * theta @ theta - likelihood.log_density(y, float(psi[0] @ theta), likelihood.params)[0])

    found = scipy.optimize.minimize(risk, np.zeros(D), tol=1e-12)
    np.testing.assert_allclose(learner.belief.mean, found.x, atol=2e-5)


def test_the_stiffness_of_each_schedule() -> None:
    x = np.zeros(D)
    x[0] = 1.0
    for given, wanted in (
        (GeometricStiffness(0.3), 0.3 * 1.05**10),
        (LinearStiffness(0.3, 2.0), 0.3 + 2.0 * 10 / 0.7),
    ):
        learner = Learner(Gaussian(0.7), FunctionNorm(given), MomentMatching(), D)
        learner.learn_many(np.tile(x, (10, 1)), np.zeros(10))
        assert learner.belief.stiffness[0] + learner.belief.stiffness[2] == pytest.approx(wanted, rel=1e-12)


def test_a_stiffness_without_end_freezes_and_stays_a_number() -> None:
    learner = Learner(Gaussian(), FunctionNorm(GeometricStiffness(0.3, 10.0)), MomentMatching(), D)
    x, y = stream(2000)
    learner.learn_many(LEGENDRE.encode(x), y)
    assert np.isfinite(learner.belief.mean).all()
    assert learner.belief.stiffness[2] <= 1e200
    assert 0.0 < learner.predict_many(LEGENDRE.encode(x[:1])).latent.variance[0] < 1e-190


# --- digits


def risk_minimiser_in_digits(x: np.ndarray, y: np.ndarray, order: int, digits: int) -> list[Decimal]:
    """(8) of the paper in monomials: (A + phi phi' / sigma) theta' = A theta + phi y / sigma, solved at every step."""
    with localcontext() as context:
        context.prec = digits
        n = order + 1
        length = Decimal(3)
        gram = [[length ** (i + j + 1) / (i + j + 1) for j in range(n)] for i in range(n)]
        theta, sigma = [Decimal(0)] * n, Decimal("0.1")
        for xt, yt in zip(x.tolist(), y.tolist(), strict=True):
            phi = [Decimal(xt) ** i if i else Decimal(1) for i in range(n)]
            system = [[gram[i][j] + phi[i] * phi[j] / sigma for j in range(n)] for i in range(n)]
            right = [
                sum(g * t for g, t in zip(gram[i], theta, strict=True)) + phi[i] * Decimal(yt) / sigma for i in range(n)
            ]
            for i in range(n):  # elimination, of a positive definite matrix
                for k in range(i + 1, n):
                    ratio = system[k][i] / system[i][i]
                    right[k] -= ratio * right[i]
                    for j in range(i, n):
                        system[k][j] -= ratio * system[i][j]
            for i in reversed(range(n)):
                right[i] = (right[i] - sum(system[i][j] * right[j] for j in range(i + 1, n))) / system[i][i]
            theta, sigma = right, sigma * Decimal("1.05")
        return theta


@pytest.mark.parametrize("digits", [60])
def test_order_ten_against_sixty_digits(digits: int) -> None:
    x, y = stream(150)
    basis = Polynomials(10, (0.0, 3.0))
    learner = Learner(Gaussian(), FunctionNorm(GeometricStiffness(0.1 * 3.0)), Linearized(), 11)
    learner.learn_many(basis.encode(x), y)
    exact = risk_minimiser_in_digits(x[:, 0], y, 10, digits)
    grid = np.linspace(0.0, 3.0, 31)
    with localcontext() as context:
        context.prec = digits
        wanted = [float(sum(c * Decimal(g) ** k if k else c for k, c in enumerate(exact))) for g in grid.tolist()]
    np.testing.assert_allclose(basis.encode(grid[:, None]) @ learner.belief.mean, wanted, rtol=0.0, atol=1e-13)


@pytest.mark.slow
@pytest.mark.skipif(not COMPILED, reason="a million examples need compiled kernels")
def test_order_twenty_over_a_million_examples_loses_no_digits() -> None:
    """Against the same recursion in extended precision; and what is left is the noise of a mean of a million."""
    rng = np.random.default_rng(0)
    n, basis = 1_000_000, Polynomials(20, (0.0, 3.0))
    x = rng.uniform(0.0, 3.0, n)
    y = target(x) + rng.uniform(-0.05, 0.05, n)
    psi = basis.encode(x[:, None])
    learner = Learner(Gaussian(), FunctionNorm(LinearStiffness(0.3)), Linearized(), 21)
    learner.learn_many(psi, y)
    wide, wide_y = psi.astype(np.longdouble), y.astype(np.longdouble)
    theta, held = np.zeros(21, dtype=np.longdouble), np.longdouble(0.3)
    for row, answer in zip(wide, wide_y, strict=True):
        theta = theta + row * ((answer - row @ theta) / (held + row @ row))
        held += 1
    assert np.abs(learner.belief.mean - theta.astype(np.float64)).max() < 1e-13
    grid = np.linspace(0.0, 3.0, 301)
    error = basis.encode(grid[:, None]) @ learner.belief.mean - target(grid)
    assert np.sqrt(np.mean(error**2)) < 3.0 * 0.05 / np.sqrt(3.0) * np.sqrt(21 / n)


# --- bands


@pytest.mark.parametrize("width", [1, 2, 4, 9])
def test_bands_are_the_matrices_that_they_stand_for(width: int) -> None:
    rng = np.random.default_rng(0)
    n = 9
    lower = np.tril(rng.normal(size=(n, n)))
    for i in range(n):
        lower[i, : max(i - width + 1, 0)] = 0.0
        lower[i, i] = 1.0 + abs(lower[i, i])
    dense = lower @ lower.T
    band = np.zeros((n, width))
    for i in range(n):
        band[i, : min(width, n - i)] = dense[i, i : i + width]
    factor = band_factor(band, n)
    np.testing.assert_allclose(from_band(factor), lower, rtol=1e-10, atol=1e-12)
    x, solution = rng.normal(size=n), np.empty(n)
    solve(factor, x, solution)
    np.testing.assert_allclose(solution, np.linalg.solve(dense, x), rtol=1e-9)
    np.testing.assert_allclose(inverse_diagonal(factor), np.diag(np.linalg.inv(dense)), rtol=1e-9)


def test_functions_as_they_are_learn_the_same_function_as_orthonormal_ones() -> None:
    x, y = stream(60)
    raw = FunctionNorm(GeometricStiffness(0.3), SPLINES, features="functions", learn_noise=True)
    turned = replace(raw, features="orthonormal")
    one, other = Learner(Gaussian(), raw, Linearized(), D), Learner(Gaussian(), turned, Linearized(), D)
    said = one.learn_many(SPLINES.functions(x), y), other.learn_many(SPLINES.encode(x), y)
    np.testing.assert_allclose(said[0].mean, said[1].mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(said[0].variance, said[1].variance, rtol=1e-8)
    assert one.log_evidence == pytest.approx(other.log_evidence, rel=1e-9)


# --- a belief as any other


@everyone
def test_marginal_is_that_of_the_written_out_covariance(posterior: FunctionNorm) -> None:
    learner = learnt(posterior)
    x = features(posterior, stream(7, seed=1)[0])
    latent = learner.predict_many(x).latent
    spread = latent.noise * (latent.degrees / (latent.degrees - 2.0) if posterior.learn_noise else 1.0)
    covariance = posterior.covariance(learner.belief)
    np.testing.assert_allclose(latent.mean, x @ learner.belief.mean, rtol=1e-12)
    np.testing.assert_allclose(latent.variance * spread, np.einsum("ni,ij,nj->n", x, covariance, x), rtol=1e-9)
    np.testing.assert_allclose(posterior.variances(learner.belief), np.diag(covariance), rtol=1e-8)


@everyone
def test_samples_have_the_mean_and_covariance(posterior: FunctionNorm) -> None:
    belief, n = learnt(posterior).belief, 200_000
    draws, covariance = posterior.sample(belief, n, seed=1), posterior.covariance(belief)
    deviation = np.sqrt(np.diag(covariance))
    np.testing.assert_array_less(np.abs(draws.mean(0) - belief.mean) / deviation, 5.0 / np.sqrt(n))
    scaled = (np.cov(draws.T) - covariance) / np.outer(deviation, deviation)
    np.testing.assert_array_less(np.abs(scaled), 8.0 / np.sqrt(n))
    low, high = posterior.intervals(belief, 0.8).T
    np.testing.assert_allclose(np.mean((draws > low) & (draws < high), axis=0), 0.8, atol=5 * 0.4 / np.sqrt(n))
    same_sign = np.mean(np.sign(draws) == np.sign(belief.mean), axis=0)
    np.testing.assert_allclose(posterior.sign_probability(belief), same_sign, atol=5 * 0.5 / np.sqrt(n))


@everyone
def test_log_density_is_scipys(posterior: FunctionNorm) -> None:
    belief = learnt(posterior).belief
    weights = np.linspace(-0.1, 0.1, D)
    covariance = posterior.covariance(belief)
    if posterior.learn_noise:
        shape = belief.noise[0]
        family: Any = scipy.stats.multivariate_t(belief.mean, covariance * (shape - 1.0) / shape, df=2 * shape)
    else:
        family = scipy.stats.multivariate_normal(belief.mean, covariance)
    assert posterior.log_density(belief, weights) == pytest.approx(family.logpdf(weights), rel=1e-7)


@everyone
def test_forgetting(posterior: FunctionNorm) -> None:
    learner, same = learnt(posterior), learnt(posterior)
    posterior.forget(learner.belief)
    for array, wanted in zip(learner.belief, same.belief, strict=True):
        np.testing.assert_array_equal(array, wanted)
    prior = posterior.prior(D)

    def precision(belief: Any) -> np.ndarray:
        return np.linalg.inv(posterior.covariance(belief) / unit(posterior, belief))

    posterior.forget(learner.belief, discount=0.7)
    kept = 0.7 * precision(same.belief) + 0.3 * precision(prior)
    np.testing.assert_allclose(precision(learner.belief), kept, rtol=1e-6, atol=1e-9 * np.abs(kept).max())
    shift = 0.7 * precision(same.belief) @ same.belief.mean + 0.3 * precision(prior) @ prior.mean
    np.testing.assert_allclose(learner.belief.mean, np.linalg.solve(kept, shift), rtol=1e-6, atol=1e-8)
    posterior.forget(learner.belief, discount=0.0)
    np.testing.assert_allclose(learner.belief.mean, prior.mean, atol=1e-10)
    np.testing.assert_allclose(posterior.covariance(learner.belief), posterior.covariance(prior), rtol=1e-8)


@everyone
def test_diffusion_adds_to_the_smoothest_up_to_the_prior(posterior: FunctionNorm) -> None:
    belief = learnt(posterior, 300).belief
    before = 1.0 / (belief.stiffness[0] + belief.stiffness[2])
    posterior.forget(belief, diffusion=1e-4)
    assert 1.0 / (belief.stiffness[0] + belief.stiffness[2]) == pytest.approx(before + 1e-4, rel=1e-9)
    posterior.forget(belief, diffusion=1e9)
    assert belief.stiffness[2] == 0.0


@everyone
def test_merging_adds_and_subtracting_undoes_it(posterior: FunctionNorm) -> None:
    one, other = learnt(posterior, seed=1).belief, learnt(posterior, seed=2).belief
    alone, both = posterior.merge([one]), posterior.merge([one, other])
    np.testing.assert_allclose(alone.mean, one.mean, rtol=1e-9, atol=1e-12)
    assert both.stiffness[2] == pytest.approx(one.stiffness[2] + other.stiffness[2])
    left = posterior.subtract(both, other)
    np.testing.assert_allclose(left.mean, one.mean, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(left.noise, one.noise, rtol=1e-7)
    with pytest.raises(ImproperBelief, match="never learnt"):
        posterior.subtract(learnt(posterior, 3).belief, learnt(posterior, 300).belief)


def test_shards_of_few_weights_merge_as_their_gaussians() -> None:
    """The product of two Gaussians over their prior, written out."""
    posterior = FunctionNorm(LinearStiffness(0.5))
    one, other, prior = learnt(posterior, seed=1).belief, learnt(posterior, seed=2).belief, posterior.prior(D)
    precision = [np.linalg.inv(posterior.covariance(belief)) for belief in (one, other, prior)]
    total = precision[0] + precision[1] - precision[2]
    merged = posterior.merge([one, other])
    np.testing.assert_allclose(np.linalg.inv(posterior.covariance(merged)), total, rtol=1e-9, atol=1e-9)
    wanted = np.linalg.solve(total, precision[0] @ one.mean + precision[1] @ other.mean)
    np.testing.assert_allclose(merged.mean, wanted, rtol=1e-9)


@pytest.mark.parametrize("field", ["roughness", "spread", "stiffness", "noise"])
def test_a_belief_of_another_norm_is_refused(field: str) -> None:
    posterior = FunctionNorm(basis=LEGENDRE, learn_noise=True)
    belief = learnt(posterior).belief
    posterior.check(belief)
    getattr(belief, field)[...] = -1.0
    with pytest.raises(ImproperBelief, match="must be"):
        posterior.check(belief)


def test_many_classes() -> None:
    """A latent per class; thirds of the interval are told apart."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0.0, 3.0, (600, 1))
    learner = Learner(Softmax(3), FunctionNorm(basis=LEGENDRE), MomentMatching(), D)
    learner.learn_many(LEGENDRE.encode(x), np.floor(x[:, 0]))
    points = np.array([[0.4], [1.5], [2.6]])
    chances = learner.likelihood.probabilities(learner.predict_many(LEGENDRE.encode(points)).latent)
    assert np.argmax(chances, axis=1).tolist() == [0, 1, 2]


# --- what it is for


def cumulative_losses(posterior: Posterior[Any], n_runs: int, n: int = 150) -> np.ndarray:
    found = np.empty(n_runs)
    for run in range(n_runs):
        x, y = stream(n, seed=run)
        said = Learner(Gaussian(), posterior, Linearized(), D).learn_many(LEGENDRE.encode(x), y)
        found[run] = np.sum((said.mean - y) ** 2)
    return found


@pytest.mark.skipif(not COMPILED, reason="hundreds of runs need compiled kernels")
def test_learnt_stiffness_loses_less_than_the_papers_schedule() -> None:
    """Cumulative loss over 150 examples; the standard error of the paired difference is 0.002."""
    learnt_loss = cumulative_losses(FunctionNorm(basis=LEGENDRE), 200)
    paper = cumulative_losses(FunctionNorm(GeometricStiffness(0.1 * 3.0)), 200)
    bayes = cumulative_losses(FullGaussian(prior_variance=1.0 / (0.1 * 3.0)), 200)
    assert paper.mean() == pytest.approx(0.476, abs=0.01)  # standard error 0.003
    assert learnt_loss.mean() < paper.mean() - 0.05
    assert learnt_loss.mean() < 1.1 * bayes.mean()


@pytest.mark.skipif(not COMPILED, reason="many streams need compiled kernels")
@pytest.mark.parametrize("noise", [0.01, 0.1, 1.0])
def test_intervals_cover(noise: float) -> None:
    """90 % intervals over rows 20 to 500 of 40 streams: to 1 % if all were independent, and the noise is learnt."""
    covered = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x = rng.uniform(0.0, 3.0, (500, 1))
        y = target(x[:, 0]) + noise * rng.normal(size=500)
        said = Learner(Gaussian(), FunctionNorm(basis=LEGENDRE, learn_noise=True), MomentMatching(), D).learn_many(
            LEGENDRE.encode(x), y
        )
        low, high = said.interval(0.9)[20:].T
        covered.append(np.mean((y[20:] > low) & (y[20:] < high)))
    assert 0.87 < np.mean(covered) < 0.94
