"""Learning curves: published constants, independent quadrature, simulation, and the ends of the range."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, special, stats

from bayou import DiagonalGaussian, FullGaussian, Learner, MomentMatching, Probit, SphericalGaussian
from bayou.contracts import Posterior
from bayou.errors import InvalidSpec
from bayou.numerics.jit import COMPILED
from bayou.theory import label_error, perceptron_curve
from bayou.theory.overlaps import fisher_average, gain, ising_log_overlap

KINDS = ["batch_bayes", "gibbs", "spherical", "variational", "rosenblatt", "ising", "ising_batch"]
FIG_2 = 6.24**2 / 50  # Opper 1998, Fig. 2


def log_density(z: float) -> float:
    return -0.5 * z * z - 0.5 * math.log(2.0 * math.pi)


@pytest.mark.parametrize(
    ("kind", "power", "constant"),
    [
        ("rosenblatt", 1 / 3, 0.278069),
        ("variational", 1.0, 0.883400),
        ("spherical", 1.0, 0.883400),
        ("batch_bayes", 1.0, 0.441700),
        ("gibbs", 1.0, 0.624658),
    ],
)
def test_table_1_of_de_oliveira_and_alamino(kind: str, power: float, constant: float) -> None:
    curve = perceptron_curve(kind, [1e8])
    assert curve.error[0] * 1e8**power == pytest.approx(constant, abs=1.5e-6)


def test_scalar_bona_at_a_million() -> None:
    curve = perceptron_curve("spherical", [1e6])
    assert curve.error[0] * 1e6 == pytest.approx(0.8834, abs=5e-5)
    assert curve.variance[0] * 1e12 == pytest.approx(7.702, abs=5e-4)


def test_the_constants_are_those_of_one_integral() -> None:
    """With I = integral of phi^2 / Phi: sqrt(2/pi) / I online, half of that in batch, 2 pi / I^2 for the variance."""
    value = integrate.quad(lambda z: math.exp(2.0 * stats.norm.logpdf(z) - special.log_ndtr(z)), -30.0, 30.0)[0]
    online, batch = perceptron_curve("spherical", [1e12]), perceptron_curve("batch_bayes", [1e12])
    assert online.error[0] * 1e12 == pytest.approx(math.sqrt(2.0 / math.pi) / value, rel=1e-9)
    assert online.variance[0] * 1e24 == pytest.approx(2.0 * math.pi / value**2, rel=1e-9)
    assert batch.error[0] * 1e12 == pytest.approx(math.sqrt(0.5 / math.pi) / value, rel=1e-9)


def test_checked_points() -> None:
    online, batch = (perceptron_curve(kind, [10.0]) for kind in ("spherical", "batch_bayes"))
    assert online.error[0] == pytest.approx(0.071165595, abs=5e-10)
    assert online.variance[0] == pytest.approx(0.049157721, abs=5e-10)
    assert batch.error[0] == pytest.approx(0.043573204, abs=5e-10)
    online, batch = (perceptron_curve(kind, [5.0], noise=FIG_2) for kind in ("spherical", "batch_bayes"))
    assert online.error[0] == pytest.approx(0.190136, abs=5e-7)
    assert batch.error[0] == pytest.approx(0.181509, abs=5e-7)


@pytest.mark.parametrize("squared", [0.0, 1e-6, 0.3, 1.0, 30.0, 1e6, 1e24])
def test_the_average_information_by_adaptive_quadrature(squared: float) -> None:
    a = math.sqrt(squared)

    def density(u: float) -> float:
        v = u / math.sqrt(1.0 + squared)
        z = a * v
        return math.exp(stats.norm.logpdf(v) + 2.0 * stats.norm.logpdf(z) - special.log_ndtr(z)) / math.hypot(1.0, a)

    got = integrate.quad(density, -14.0, 14.0, epsabs=0.0, epsrel=1e-13, limit=500)[0]
    assert fisher_average(squared) == pytest.approx(got, rel=1e-12)


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_the_online_curve_by_another_integrator(noise: float) -> None:
    """alpha = integral of dy / g(y) instead of y(alpha)."""
    alpha = np.array([1e-3, 0.5, 20.0, 3e3])
    curve = perceptron_curve("spherical", alpha, noise)
    y = curve.norm / curve.variance
    for size, end in zip(alpha, y, strict=True):
        value = integrate.quad(
            lambda x: math.exp(x) / gain(math.exp(x), noise), -40.0, math.log(end), epsrel=1e-12, limit=200
        )[0]
        assert value == pytest.approx(size, rel=1e-10)


@pytest.mark.parametrize("field", [1e-6, 0.1, 0.999, 1.001, 7.0, 60.0, 900.0])
def test_the_ising_overlap_by_adaptive_quadrature(field: float) -> None:
    """q = E tanh(field + sqrt(field) v), of which 1 - q is E 2 / (1 + exp(2 (...)))."""

    def unknown(v: float) -> float:
        return 2.0 * math.exp(stats.norm.logpdf(v) + special.log_expit(-2.0 * (field + math.sqrt(field) * v)))

    peak = -math.sqrt(field)  # late, what is unknown is the few weights that are told wrongly
    missed = sum(
        integrate.quad(unknown, *ends, epsabs=0.0, epsrel=1e-11, limit=500)[0]
        for ends in ((peak - 12.0, peak - 1.0), (peak - 1.0, peak), (peak, peak + 1.0), (peak + 1.0, peak + 12.0))
    )
    assert 1.0 / (1.0 + math.exp(ising_log_overlap(field))) == pytest.approx(missed, rel=1e-9)


def test_ising_without_noise_is_perfect_at_a_finite_alpha() -> None:
    curve = perceptron_curve("ising", [4.3681, 4.3683, 1e6])
    assert curve.error[0] > 1e-6
    assert curve.error[1:].tolist() == [0.0, 0.0]
    assert curve.overlap[1:].tolist() == [1.0, 1.0]


def test_ising_batch_without_noise_jumps() -> None:
    """At 1.49 examples per weight even who starts from nothing finds the teacher (Seung et al. 1992)."""
    before, after = perceptron_curve("ising_batch", [1.48, 1.50]).error
    assert before > 0.1
    assert after == 0.0


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_a_batch_is_worth_more_than_one_pass_and_a_draw_less_than_the_mean(noise: float) -> None:
    alpha = np.geomspace(1e-3, 1e4, 15)
    error = {kind: perceptron_curve(kind, alpha, noise).error for kind in KINDS}
    assert np.all(error["batch_bayes"] < error["spherical"])
    assert np.all(error["batch_bayes"] < error["gibbs"])
    assert np.all(error["spherical"] < error["rosenblatt"])
    assert np.all(error["ising_batch"] <= error["ising"])
    assert np.all(error["ising"] < error["spherical"])


@pytest.mark.parametrize("noise", [0.0, 1e-12, 0.5, 1e3])
@pytest.mark.parametrize("kind", KINDS)
def test_every_curve_falls_from_a_half_and_has_its_digits(kind: str, noise: float) -> None:
    alpha = np.array([0.0, 1e-300, 1e-20, 1e-8, 1e-3, 1.0, 1e3, 1e6, 1e12])
    curve = perceptron_curve(kind, alpha, noise)
    assert curve.error[0] == 0.5
    assert np.all(np.diff(curve.error) <= 0.0)
    assert np.all(np.isfinite([curve.error, curve.overlap, curve.norm]))
    early = curve.overlap[1:4] / curve.overlap[3]  # grows as a power of alpha, to the last digit
    power = 1.0 if kind == "gibbs" else 0.5
    assert early == pytest.approx((alpha[1:4] / alpha[3]) ** power, rel=1e-4)
    assert curve.overlap == pytest.approx(np.cos(np.pi * curve.error), abs=1e-15)


@pytest.mark.parametrize("noise", [1e-3, 1.0, 20.0])
def test_rosenblatts_rule_ends_where_labels_are_wrong_as_often(noise: float) -> None:
    assert perceptron_curve("rosenblatt", [1e12], noise).error[0] == pytest.approx(
        math.atan(math.sqrt(noise)) / math.pi
    )


def test_with_noise_one_pass_becomes_as_good_as_batch() -> None:
    """Both errors end as 1 / (pi sqrt(g(1) alpha)): 0.41730 / sqrt(alpha) for Fig. 2."""
    for kind in ("spherical", "batch_bayes"):
        assert perceptron_curve(kind, [1e10], FIG_2).error[0] * 1e5 == pytest.approx(0.41730, abs=5e-6)


def test_alphas_come_back_as_they_came() -> None:
    alpha = [3.0, 0.0, 3.0, 1e-3]
    for kind in KINDS:
        curve = perceptron_curve(kind, alpha)
        assert curve.alpha.tolist() == alpha
        for i, size in enumerate(alpha):
            assert curve.error[i] == pytest.approx(perceptron_curve(kind, [size]).error[0], rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_no_alphas_no_errors(kind: str) -> None:
    assert perceptron_curve(kind, []).error.size == 0
    assert perceptron_curve(kind, 0.0).error.tolist() == [0.5]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("bayes", [1.0]), "`kind` must be one of 'batch_bayes', .*'ising_batch'; got 'bayes'"),
        (("gibbs", [-1.0]), "`alphas` must be numbers from 0 to 1e\\+30, in one row; got \\[-1.0\\]"),
        (("gibbs", [math.nan]), "`alphas` must be .*; got \\[nan\\]"),
        (("gibbs", [math.inf]), "`alphas` must be .*; got \\[inf\\]"),
        (("gibbs", [[1.0]]), "`alphas` must be .* in one row"),
        (("gibbs", [1.0], -0.1), "`noise` must be finite and not negative; got -0.1"),
        (("gibbs", [1.0], math.inf), "`noise` must be .*; got inf"),
        (("gibbs", [1.0], math.nan), "`noise` must be .*; got nan"),
    ],
)
def test_what_has_no_curve_says_why(given: tuple[object, ...], message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        perceptron_curve(*given)  # type: ignore[arg-type]


def test_label_error_is_that_of_noisy_labels() -> None:
    rng = np.random.default_rng(0)
    error, noise, n = 0.12, 0.4, 200_000
    teacher, other = rng.standard_normal((2, n))
    student = math.cos(math.pi * error) * teacher + math.sin(math.pi * error) * other
    label = np.sign(teacher + math.sqrt(noise) * rng.standard_normal(n))
    seen = np.mean(np.sign(student) != label)
    assert label_error(error, noise) == pytest.approx(seen, abs=4.0 * math.sqrt(0.25 / n))


@pytest.mark.parametrize(
    ("error", "noise", "message"),
    [
        (0.1, -1.0, "`noise` must be finite and not negative; got -1.0"),
        (0.1, math.nan, "`noise` must be finite and not negative; got nan"),
        ([0.1, 1.7], 0.1, "`error` must be numbers from 0 to 1; got \\[0.1, 1.7\\]"),
        (-0.2, 0.1, "`error` must be numbers from 0 to 1; got -0.2"),
        (math.nan, 0.1, "`error` must be numbers from 0 to 1; got nan"),
    ],
)
def test_what_is_no_error_says_why(error: object, noise: float, message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        label_error(error, noise)  # type: ignore[arg-type]


def simulated_errors(posterior: Posterior[object], n: int, alphas: list[float], noise: float, runs: int) -> np.ndarray:
    """The angle between the means of production learners and their teachers: a row per run."""
    rng = np.random.default_rng(1)
    errors = np.empty((runs, len(alphas)))
    for run in range(runs):
        w = rng.standard_normal(n)
        learner = Learner(Probit(math.sqrt(noise * n)), posterior, MomentMatching(), n)
        for i, alpha in enumerate(alphas):
            x = rng.standard_normal((round(alpha * n) - learner.n_examples, n))
            learner.learn_many(x, np.sign(x @ w + math.sqrt(noise * n) * rng.standard_normal(len(x))))
            a, b = (vector / np.linalg.norm(vector) for vector in (learner.belief.mean, w))
            errors[run, i] = 2.0 * math.atan2(np.linalg.norm(a - b), np.linalg.norm(a + b)) / math.pi
    return errors


@pytest.mark.skipif(not COMPILED, reason="thousands of rows need compiled kernels")
@pytest.mark.parametrize(
    ("posterior", "kind", "runs"),
    [
        (FullGaussian(), "batch_bayes", 60),
        (SphericalGaussian(), "spherical", 120),
        (DiagonalGaussian(), "spherical", 120),
    ],
)
def test_production_learners_follow_fig_2_of_opper(posterior: Posterior[object], kind: str, runs: int) -> None:
    """N = 50, as there; four standard errors."""
    alphas = [1.0, 5.0, 20.0]
    errors = simulated_errors(posterior, 50, alphas, FIG_2, runs)
    standard_error = errors.std(axis=0) / math.sqrt(runs)
    assert np.all(standard_error < 0.006)
    predicted = perceptron_curve(kind, alphas, FIG_2).error
    assert np.all(np.abs(errors.mean(axis=0) - predicted) < 4.0 * standard_error)


@pytest.mark.parametrize("noise", [0.0, 0.25])
def test_rosenblatts_rule_in_simulation(noise: float) -> None:
    """N = 400 and four standard errors, with 1 % for so few weights."""
    rng = np.random.default_rng(2)
    n, runs, alphas = 400, 12, [1.0, 5.0]
    errors = np.empty((runs, 2))
    for run in range(runs):
        teacher, w = rng.standard_normal(n), np.zeros(n)
        teacher *= math.sqrt(n) / np.linalg.norm(teacher)
        for i, steps in enumerate([n, 4 * n]):
            for x in rng.standard_normal((steps, n)) / math.sqrt(n):
                label = math.copysign(1.0, teacher @ x + math.sqrt(noise) * rng.standard_normal())
                latent = w @ x
                if label * latent < 0.0 or (latent == 0.0 and rng.random() < 0.5):
                    w += label * x
            errors[run, i] = math.acos(w @ teacher / math.sqrt((w @ w) * n)) / math.pi
    predicted = perceptron_curve("rosenblatt", alphas, noise).error
    allowed = 4.0 * errors.std(axis=0) / math.sqrt(runs) + 0.01 * predicted
    assert np.all(np.abs(errors.mean(axis=0) - predicted) < allowed)


def test_ising_weights_in_simulation() -> None:
    """m' = m + (1 - m^2) S x lambda / s, synchronous, N = 1000; four standard errors, with 2 % for so few weights."""
    rng = np.random.default_rng(3)
    n, runs, noise, alphas = 1000, 6, 0.2, [1.0, 3.0]
    errors = np.empty((runs, 2))
    for run in range(runs):
        teacher, m = rng.choice([-1.0, 1.0], n), np.zeros(n)
        for i, steps in enumerate([n, 2 * n]):
            for x in rng.standard_normal((steps, n)):
                label = math.copysign(1.0, teacher @ x + math.sqrt(noise * n) * rng.standard_normal())
                s = math.sqrt(noise * n + (1.0 - m**2) @ x**2)
                z = label * (m @ x) / s
                ratio = math.exp(log_density(z) - special.log_ndtr(z))
                m = np.clip(m + (1.0 - m**2) * label * x * ratio / s, -1.0 + 1e-12, 1.0 - 1e-12)
            errors[run, i] = math.acos(m @ teacher / math.sqrt((m @ m) * n)) / math.pi
    predicted = perceptron_curve("ising", alphas, noise).error
    allowed = 4.0 * errors.std(axis=0) / math.sqrt(runs) + 0.02 * predicted
    assert np.all(np.abs(errors.mean(axis=0) - predicted) < allowed)
