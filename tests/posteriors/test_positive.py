"""Covariances stay positive definite where plain downdates lose it: wide priors, long streams, awkward features."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bayou.contracts import Posterior
from bayou.learner import Learner
from bayou.likelihoods import Gaussian, Probit, Step, StudentT
from bayou.numerics.jit import COMPILED
from bayou.posteriors import DiagonalGaussian, FullGaussian, LowRankGaussian, NormalInverseGamma, SphericalGaussian
from bayou.rules import MomentMatching

pytestmark = pytest.mark.skipif(not COMPILED, reason="millions of rows need compiled kernels")
N = 20_000


def families(prior_variance: float, dtype: str) -> list[Posterior[Any]]:
    return [
        FullGaussian(prior_variance=prior_variance, dtype=dtype),
        DiagonalGaussian(prior_variance=prior_variance, dtype=dtype),
        SphericalGaussian(prior_variance=prior_variance, dtype=dtype),
        LowRankGaussian(rank=2, prior_variance=prior_variance, dtype=dtype),
        NormalInverseGamma(prior_variance=prior_variance, dtype=dtype),
    ]


def assert_proper(learner: Learner) -> None:
    belief = learner.belief
    assert all(np.all(np.isfinite(array)) for array in belief)
    assert np.all(learner.posterior.variances(belief) > 0.0)
    for name in ("scale", "variance"):  # where the factors are kept, positive scales are a positive definite covariance
        if hasattr(belief, name):
            assert np.all(getattr(belief, name) > 0.0)
    latent = learner.predict_many(np.random.default_rng(5).normal(size=(50, learner.n_features))).latent
    assert np.all(latent.variance > 0.0)


RATIOS = [(1e20, "float64"), (1e10, "float32")]
FEATURES = {
    "plain": lambda rng: rng.normal(size=(N, 4)),
    "collinear": lambda rng: rng.normal(size=(N, 2)) @ np.array([[1.0, 1.0, 2.0, 0.0], [0.0, 1.0, 1.0, 3.0]]),
    "nearly collinear": lambda rng: rng.normal(size=(N, 1)) + 1e-7 * rng.normal(size=(N, 4)),
    "constant": lambda rng: np.ones((N, 4)) * [1.0, 2.0, 0.0, -1.0],
    "of scales 1e-8 and 1e8": lambda rng: rng.normal(size=(N, 4)) * [1e-8, 1e8, 1.0, 1e-3],
}


@pytest.mark.parametrize(("ratio", "dtype"), RATIOS)
@pytest.mark.parametrize("kind", FEATURES)
def test_wide_priors(ratio: float, dtype: str, kind: str) -> None:
    features = FEATURES[kind](np.random.default_rng(0))
    targets = np.clip(features @ [1.0, -1.0, 0.5, 2.0], -1e6, 1e6)
    for posterior in families(ratio, dtype):
        learner = Learner(Gaussian(noise_variance=1.0), posterior, MomentMatching(), 4)
        learner.learn_many(features, targets)
        assert_proper(learner)


@pytest.mark.parametrize("kind", ["plain", "of scales 1e-8 and 1e8"])
def test_a_wide_prior_still_gives_the_least_squares_answer(kind: str) -> None:
    features = FEATURES[kind](np.random.default_rng(0))[:500]
    weights = np.array([1.0, -1.0, 0.5, 2.0]) / features.std(axis=0)
    targets = features @ weights + np.random.default_rng(1).normal(size=500)
    learner = Learner(Gaussian(), FullGaussian(prior_variance=1e20), MomentMatching(), 4)
    learner.learn_many(features, targets)
    scale = features.std(axis=0)
    wanted = np.linalg.lstsq(features / scale, targets, rcond=None)[0]
    np.testing.assert_allclose(learner.belief.mean * scale, wanted, rtol=1e-6)


LONG = [p for ratio, dtype in ((1.0, "float64"), (1.0, "float32"), *RATIOS) for p in families(ratio, dtype)]
DEAR = [p for p in LONG if isinstance(p, LowRankGaussian)]


@pytest.mark.parametrize(
    ("posterior", "passes"),
    [
        *((p, 100) for p in LONG if p not in DEAR),
        *((p, 15) for p in DEAR),
        *(pytest.param(p, 100, marks=pytest.mark.soak) for p in DEAR),
    ],
    ids=repr,
)
def test_ten_million_examples(posterior: Posterior[Any], passes: int) -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(100_000, 3))
    targets = features @ [1.0, -1.0, 0.5] + rng.normal(size=100_000)
    learner = Learner(Gaussian(), posterior, MomentMatching(), 3)
    for _ in range(passes):
        learner.learn_many(features, targets)
    assert learner.n_examples == passes * 100_000
    assert_proper(learner)
    batch = np.linalg.lstsq(features, targets, rcond=None)[0]
    if posterior.prior_variance > 1.0:
        assert np.abs(features @ (learner.belief.mean - batch)).max() < 0.2
    elif posterior.dtype == "float32":  # each step rounds; what is left of it, in units of the noise
        assert np.abs(features @ (learner.belief.mean - batch)).max() < 0.1
    elif isinstance(posterior, (FullGaussian, NormalInverseGamma)):
        np.testing.assert_allclose(learner.belief.mean, batch, rtol=1e-5)
        precision = np.eye(3) + passes * features.T @ features
        noise = learner.belief.noise[1] / (learner.belief.noise[0] - 1) if posterior.learns_noise else 1.0
        np.testing.assert_allclose(posterior.covariance(learner.belief), noise * np.linalg.inv(precision), rtol=1e-9)


@pytest.mark.parametrize("posterior", families(1e6, "float64")[:4] + families(1e6, "float32")[:4], ids=repr)
@pytest.mark.parametrize(
    "likelihood", [Probit(), Probit(noise_scale=1e-6), Step(), StudentT(noise_scale=1e-3)], ids=repr
)
def test_contradicting_targets(likelihood: Any, posterior: Posterior[Any]) -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(5000, 3))
    targets = np.sign(features[:, 0]) * np.where(np.arange(5000) % 7 == 0, -1.0, 1.0)
    learner = Learner(likelihood, posterior, MomentMatching(), 3)
    learner.learn_many(features, targets)
    assert_proper(learner)
