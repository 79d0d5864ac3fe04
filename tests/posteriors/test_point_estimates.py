"""Points that move by a rule: against loops in numpy, scikit-learn, and the Gaussian beliefs that they equal."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special
from sklearn.linear_model import Perceptron

from bayou.errors import InvalidSpec, ShapeMismatch
from bayou.learner import Learner
from bayou.likelihoods import Gaussian, Logistic, Poisson, Probit, Step
from bayou.numerics.jit import COMPILED
from bayou.posteriors import (
    FullGaussian,
    NaturalGradient,
    OnlineGradient,
    Rosenblatt,
    SphericalGaussian,
    VariationalPerceptron,
)
from bayou.rules import Linearized, MomentMatching


def signs(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    teacher, features = rng.normal(size=d), rng.normal(size=(n, d))
    return teacher, features, np.sign(features @ teacher)


def overlap(one: np.ndarray, other: np.ndarray) -> float:
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def test_online_gradient_written_out() -> None:
    _, features, targets = signs(50, 4)
    weights = np.full(4, 0.1)
    for t, (x, y) in enumerate(zip(features, targets, strict=True)):
        weights = weights + 0.8 / (t + 3.0) ** 0.7 * y * special.expit(-y * weights @ x) * x
    posterior = OnlineGradient(rate=0.8, offset=3.0, power=0.7, prior_mean=0.1)
    learner = Learner(Logistic(), posterior, Linearized(), 4)
    learner.learn_many(features, targets)
    np.testing.assert_allclose(learner.belief.mean, weights, rtol=1e-12)


@pytest.mark.skipif(not COMPILED, reason="millions of examples need compiled kernels")
@pytest.mark.parametrize("a", [0.8, 1.0, 2.0])
def test_online_gradient_is_as_efficient_as_its_rate_allows(a: float) -> None:
    """t J MSE -> a^2 / (2a - 1) with a = rate * J (Opper 1998, after (4.2)); here J = 1, the mean of unit normals."""
    rng = np.random.default_rng(1)
    n, runs = 2000, 2000
    learner = Learner(Gaussian(), OnlineGradient(rate=a, offset=5.0), Linearized(), 1)
    squares = []
    for _ in range(runs):
        learner.belief.mean[:], learner.belief.tally[:] = 0.0, 0.0
        learner.learn_many(np.ones((n, 1)), rng.normal(size=n))
        squares.append(n * float(learner.belief.mean[0]) ** 2)
    error = np.std(squares) / math.sqrt(runs)  # about 3 %
    assert np.mean(squares) == pytest.approx(a**2 / (2 * a - 1), abs=3.5 * error)


def test_natural_gradient_with_a_given_metric_written_out() -> None:
    _, features, targets = signs(40, 2)
    fisher = np.array([[0.6, 0.1], [0.1, 0.3]])
    weights = np.zeros(2)
    for t, (x, y) in enumerate(zip(features, targets, strict=True)):
        z = y * weights @ x
        ratio = math.exp(-0.5 * z * z - special.log_ndtr(z)) / math.sqrt(2.0 * math.pi)
        weights = weights + np.linalg.solve(fisher, y * ratio * x) / (t + 2.0)
    learner = Learner(Probit(), NaturalGradient(fisher=((0.6, 0.1), (0.1, 0.3))), Linearized(), 2)
    learner.learn_many(features, targets)
    np.testing.assert_allclose(learner.belief.mean, weights, rtol=1e-11)


def test_natural_gradient_with_a_running_metric_is_a_linearised_gaussian() -> None:
    _, features, targets = signs(60, 5)
    point = Learner(Logistic(), NaturalGradient(offset=3.0), Linearized(), 5)
    belief = Learner(Logistic(), FullGaussian(prior_variance=1.0 / 3.0), Linearized(), 5)
    for learner in (point, belief):
        learner.learn_many(features, targets)
    np.testing.assert_allclose(point.belief.mean, belief.belief.mean, rtol=1e-11)


def test_reach_bounds_every_weight() -> None:
    _, features, targets = signs(60, 3)
    learner = Learner(
        Probit(0.01),
        NaturalGradient(fisher=((1e-4, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)), reach=2.0),
        Linearized(),
        3,
    )
    for x, y in zip(features, targets, strict=True):
        learner.learn_one(x, y)
        assert np.all(np.abs(learner.belief.mean) <= 2.0)


def test_rosenblatt_is_scikit_learns_perceptron() -> None:
    _, features, targets = signs(200, 6)
    peer = Perceptron(fit_intercept=False, shuffle=False, max_iter=1, tol=None)
    peer.fit(features, targets)
    learner = Learner(Step(), Rosenblatt(), MomentMatching(), 6)
    learner.learn_many(features, targets)
    np.testing.assert_allclose(learner.belief.mean, peer.coef_[0], rtol=1e-12)


def test_scalar_bona_is_the_spherical_belief_of_a_step() -> None:
    """De Oliveira and Alamino's (10)-(12), with the length of the example in place of its average."""
    d = 30
    _, features, targets = signs(200, d, seed=2)
    weights, zeta = np.zeros(d), 1.0
    learner = Learner(Step(), SphericalGaussian(), MomentMatching(), d)
    for x, y in zip(features / math.sqrt(d), targets, strict=True):
        s = math.sqrt(zeta * (x @ x))
        z = y * weights @ x / s
        ratio = math.sqrt(2.0 / math.pi) / special.erfcx(-z / math.sqrt(2.0))
        weights = weights + y * x * zeta * ratio / s
        zeta = zeta * (1.0 - ratio * (ratio + z) / d)
        learner.learn_one(x, y)
    np.testing.assert_allclose(learner.belief.mean, weights, rtol=1e-12, atol=1e-12)
    assert learner.belief.variance[0] == pytest.approx(zeta, rel=1e-12)


@pytest.mark.skipif(not COMPILED, reason="thousands of long examples need compiled kernels")
def test_the_oracle_forgets_its_ignorance_exponentially() -> None:
    """1 - rho^2 = exp(-alpha) (1 - rho_0^2), alpha examples per weight: not 0.88 / alpha, which is that of (3)."""
    d, alpha = 2000, 3.0
    teacher, features, targets = signs(int(alpha * d) + 1, d, seed=3)
    learner = Learner(Step(), VariationalPerceptron(teacher=tuple(teacher)), MomentMatching(), d)
    learner.learn_one(features[0], targets[0])
    start = 1.0 - overlap(learner.belief.mean, teacher) ** 2
    learner.learn_many(features[1:], targets[1:])
    left = 1.0 - overlap(learner.belief.mean, teacher) ** 2
    assert left == pytest.approx(math.exp(-alpha) * start, rel=0.1)  # one run of 2,000 weights


@pytest.mark.skipif(not COMPILED, reason="thousands of long examples need compiled kernels")
def test_the_variational_rule_knows_its_overlap_and_equals_scalar_bona() -> None:
    d, alpha = 1000, 8
    teacher, features, targets = signs(alpha * d, d, seed=4)
    rule = Learner(Step(), VariationalPerceptron(), MomentMatching(), d)
    bona = Learner(Step(), SphericalGaussian(), MomentMatching(), d)
    for learner in (rule, bona):
        learner.learn_many(features, targets)
    rho = overlap(rule.belief.mean, teacher)
    assert rule.belief.tally[1] == pytest.approx(rho**2 / (1.0 - rho**2), rel=0.25)  # one run of 1,000 weights
    assert math.acos(rho) == pytest.approx(math.acos(overlap(bona.belief.mean, teacher)), rel=0.05)


def test_what_cannot_be_followed_is_refused() -> None:
    with pytest.raises(InvalidSpec, match=r"Step\(\) has no slope for OnlineGradient"):
        Learner(Step(), OnlineGradient(), MomentMatching(), 2)
    with pytest.raises(InvalidSpec, match=r"learns targets -1 and \+1; Poisson"):
        Learner(Poisson(), Rosenblatt(), MomentMatching(), 2)
    with pytest.raises(InvalidSpec, match=r"as MomentMatching\(\) does; got Linearized"):
        Learner(Probit(), VariationalPerceptron(), Linearized(), 2)
    with pytest.raises(ShapeMismatch, match="`fisher` must be 3 rows of 3 numbers"):
        Learner(Probit(), NaturalGradient(fisher=((1.0, 0.0), (0.0, 1.0))), Linearized(), 3)
    with pytest.raises(ShapeMismatch, match="`teacher` must have one value per feature, 3; got 2"):
        Learner(Probit(), VariationalPerceptron(teacher=(1.0, 0.0)), MomentMatching(), 3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: OnlineGradient(rate=0.0), "`rate` must be positive; got 0.0"),
        (lambda: NaturalGradient(offset=-1.0), "`offset` must be positive; got -1.0"),
        (lambda: NaturalGradient(fisher=((1.0, 2.0), (2.0, 1.0))), "`fisher` must be positive definite"),
        (lambda: NaturalGradient(fisher=((1.0, 2.0), (0.0, 1.0))), "`fisher` must be a symmetric matrix"),
        (lambda: VariationalPerceptron(teacher=(0.0, 0.0)), "`teacher` must be finite numbers, not all of them 0"),
        (lambda: VariationalPerceptron(prior_mean=1.0), "`prior_mean` must be 0"),
    ],
)
def test_a_bad_spec_is_named(make: object, message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        make()  # type: ignore[operator]
