"""All examples at once: against closed forms, scikit-learn, enumeration by quadrature, and the online learner."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.special
import scipy.stats
from sklearn.linear_model import LogisticRegression

from bayou.errors import ImproperBelief, InvalidFeatures, InvalidSpec, InvalidTarget, ShapeMismatch
from bayou.learner import Learner
from bayou.likelihoods import Gaussian, Logistic, Poisson, Probit, Softmax, Step, StudentT
from bayou.numerics.predictive import log_densities
from bayou.posteriors import FullGaussian
from bayou.rules import Linearized, MomentMatching
from bayou.theory import exact_posterior, expectation_propagation, maximum_likelihood


def signs(n: int, d: int, noise: float = 1.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, d))
    return features, np.sign(features @ np.linspace(1.0, -1.0, d) + noise * rng.normal(size=n))


def test_the_exact_posterior_of_a_gaussian_is_in_closed_form() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=30), rng.normal(size=30)
    exact = exact_posterior(Gaussian(0.5), x, y, prior_mean=0.3, prior_variance=2.0)
    precision = 1.0 / 2.0 + x @ x / 0.5
    mean = (0.3 / 2.0 + x @ y / 0.5) / precision
    assert exact.mean == pytest.approx(mean, rel=1e-9)
    assert exact.variance == pytest.approx(1.0 / precision, rel=1e-9)
    cov = 0.5 * np.eye(30) + 2.0 * np.outer(x, x)
    assert exact.log_evidence == pytest.approx(scipy.stats.multivariate_normal(0.3 * x, cov).logpdf(y), rel=1e-9)


@pytest.mark.parametrize(
    ("noise_variance", "target"), [(1e-6, 0.7), (1e-8, 0.7), (1e-14, 0.7), (0.01, 30.0), (0.01, 100.0), (1e-4, -1e6)]
)
def test_the_exact_posterior_is_found_however_narrow_and_far_from_the_prior_it_is(
    noise_variance: float, target: float
) -> None:
    exact = exact_posterior(Gaussian(noise_variance), [1.0, 0.5], [target, 0.5 * target])
    precision = 1.0 + 1.25 / noise_variance
    assert exact.mean == pytest.approx(1.25 * target / noise_variance / precision, rel=1e-9)
    assert exact.variance == pytest.approx(1.0 / precision, rel=1e-6)


def test_the_exact_posterior_may_lie_where_the_prior_has_next_to_nothing() -> None:
    """A normal cut off 30 deviations from its mean; to what a grid makes of a jump."""
    exact = exact_posterior(Step(), [1.0], [-1.0], prior_mean=30.0)
    cut = scipy.stats.truncnorm(-np.inf, -30.0, loc=30.0)
    assert exact.mean == pytest.approx(cut.mean(), rel=0.02)
    assert exact.log_evidence == pytest.approx(scipy.special.log_ndtr(-30.0), abs=0.02)


@pytest.mark.parametrize("likelihood", [Probit(0.5), Logistic(), Step(), StudentT()], ids=repr)
def test_the_exact_posterior_is_scipys_integral(likelihood: Any) -> None:
    x, y = signs(12, 1, noise=0.0)
    exact = exact_posterior(likelihood, x, y)

    def density(w: float) -> float:
        return float(np.exp(log_densities(likelihood, y, w * x[:, 0])[0].sum()) * scipy.stats.norm.pdf(w))

    pieces = [(-8.0, 0.0), (0.0, 8.0)]
    total, first = (
        sum(scipy.integrate.quad(lambda w: density(w) * w**k, *ends, limit=200)[0] for ends in pieces) for k in (0, 1)
    )
    assert exact.log_evidence == pytest.approx(np.log(total), abs=5e-3 if isinstance(likelihood, Step) else 1e-7)
    assert exact.mean == pytest.approx(first / total, rel=1e-2 if isinstance(likelihood, Step) else 1e-7)


@pytest.mark.parametrize("rule", [MomentMatching(), Linearized()], ids=repr)
@pytest.mark.parametrize("likelihood", [Probit(), Logistic(), Gaussian(0.3)], ids=repr)
def test_one_sweep_from_nothing_is_the_online_algorithm(likelihood: Any, rule: Any) -> None:
    features, targets = signs(40, 6)
    batch = expectation_propagation(likelihood, features, targets, prior_variance=2.0, rule=rule, sweeps=1)
    online = Learner(likelihood, FullGaussian(prior_variance=2.0), rule, 6)
    online.learn_many(features, targets)
    np.testing.assert_allclose(batch.mean, online.belief.mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(batch.covariance, online.posterior.covariance(online.belief), rtol=1e-9, atol=1e-12)


def test_sites_agree_with_the_exact_posterior_of_one_weight() -> None:
    features, targets = signs(25, 1, noise=0.5)
    exact = exact_posterior(Probit(0.5), features, targets)
    batch = expectation_propagation(Probit(0.5), features, targets)
    assert batch.change < 1e-8
    assert batch.mean[0] == pytest.approx(exact.mean, rel=1e-3)
    assert batch.covariance[0, 0] == pytest.approx(exact.variance, rel=0.1)  # the posterior is skewed
    online = expectation_propagation(Probit(0.5), features, targets, sweeps=1)
    assert abs(batch.mean[0] - exact.mean) < abs(online.mean[0] - exact.mean)  # what the later sweeps are for


def test_sites_do_not_depend_on_the_order_once_they_agree() -> None:
    features, targets = signs(30, 4)
    one, other = (
        expectation_propagation(Probit(), features[order], targets[order])
        for order in (np.arange(30), np.arange(30)[::-1])
    )
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-6)
    np.testing.assert_allclose(one.covariance, other.covariance, rtol=1e-6, atol=1e-9)


def test_maximum_likelihood_is_scikit_learns_without_penalty() -> None:
    features, targets = signs(300, 4, noise=1.5)
    peer = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10, max_iter=1000).fit(features, targets)
    np.testing.assert_allclose(maximum_likelihood(Logistic(), features, targets), peer.coef_[0], rtol=1e-5)


def test_maximum_likelihood_of_counts_has_no_slope_left() -> None:
    rng = np.random.default_rng(2)
    features = rng.normal(size=(200, 3))
    targets = rng.poisson(np.exp(features @ [0.5, -0.3, 0.2])).astype(float)
    weights = maximum_likelihood(Poisson(), features, targets)
    np.testing.assert_allclose(features.T @ (targets - np.exp(features @ weights)), 0.0, atol=1e-5)


def test_bad_input_is_named() -> None:
    features, targets = signs(20, 2, noise=0.0)
    with pytest.raises(InvalidFeatures, match="can grow for ever"):
        maximum_likelihood(Logistic(), features, targets)
    with pytest.raises(InvalidSpec, match="has no slope to climb"):
        maximum_likelihood(Step(), features, targets)
    with pytest.raises(InvalidSpec, match="`sweeps` must be at least 1; got 0"):
        expectation_propagation(Probit(), features, targets, sweeps=0)
    with pytest.raises(ShapeMismatch, match="one value per row"):
        expectation_propagation(Probit(), features, targets[:5])
    with pytest.raises(InvalidTarget):
        exact_posterior(Probit(), features[:, 0], 0.5 * targets)
    for prior_mean in (0.0, 0.5):
        with pytest.raises(ImproperBelief, match="no weights could be found"):
            exact_posterior(Step(), [1.0, 1.0], [1.0, -1.0], prior_mean)
    for variance in (-1.0, 0.0, np.inf, np.nan):
        with pytest.raises(InvalidSpec, match="`prior_variance` must be positive and finite; got"):
            exact_posterior(Probit(), features[:, 0], targets, prior_variance=variance)
        with pytest.raises(InvalidSpec, match="`prior_variance` must be positive and finite; got"):
            expectation_propagation(Probit(), features, targets, prior_variance=variance)
    with pytest.raises(InvalidSpec, match=r"`likelihood` must be of one latent; got Softmax"):
        expectation_propagation(Softmax(3), features, targets)  # type: ignore[arg-type]
    with pytest.raises(ShapeMismatch, match=r"`features` must have rows and columns; got shape \(0, 2\)"):
        maximum_likelihood(Probit(), features[:0], targets[:0])
    with pytest.raises(InvalidFeatures, match="must be finite"):
        exact_posterior(Probit(), features[:, 0] * np.nan, targets)
