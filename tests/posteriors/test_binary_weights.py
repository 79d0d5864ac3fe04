"""Weights that are -1 or +1: against the exact posterior by enumeration, and against what a perceptron can know."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import special

from bayou.errors import ImproperBelief, InvalidSpec
from bayou.estimators import OnlineClassifier
from bayou.learner import Learner
from bayou.likelihoods import Gaussian, Probit, Step
from bayou.numerics.jit import COMPILED
from bayou.posteriors import BinaryWeights
from bayou.rules import Linearized, MomentMatching

EVERY = {d: np.array(list(itertools.product([-1.0, 1.0], repeat=d))) for d in (3, 12)}


def learner(likelihood: Any, d: int, **fields: Any) -> Learner:
    return Learner(likelihood, BinaryWeights(**fields), MomentMatching(), d)


def teacher_stream(n: int, d: int, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    weights, features = rng.choice([-1.0, 1.0], d), rng.normal(size=(n, d))
    return weights, features, np.sign(features @ weights + noise * rng.normal(size=n))


@pytest.mark.parametrize("prior_mean", [0.0, 0.3])
def test_one_example_is_near_the_posterior_of_all_4096_weights(prior_mean: float) -> None:
    """The central limit theorem for eleven weights is the only approximation: it errs by a hundredth of their range."""
    rng = np.random.default_rng(0)
    worst = 0.0
    for y in (-1.0, 1.0):
        x = rng.choice([-1.0, 1.0], 12) * rng.uniform(0.5, 1.5, 12)
        model = learner(Probit(2.0), 12, prior_mean=prior_mean)
        model.learn_one(x, y)
        mass = np.prod(0.5 * (1.0 + prior_mean * EVERY[12]), axis=1) * special.ndtr(y * EVERY[12] @ x / 2.0)
        worst = max(worst, np.abs(model.belief.mean - mass @ EVERY[12] / mass.sum()).max())
    assert worst < 0.01


def test_written_out() -> None:
    """The update of the exact form, and that of the cavity form, in numpy and scipy."""
    _, features, targets = teacher_stream(30, 7, 2.0, seed=1)
    field, cavity_field = np.zeros(7), np.zeros(7)
    for x, y in zip(features, targets, strict=True):
        for fields, first_order in ((field, False), (cavity_field, True)):
            mean = np.tanh(fields)
            others = mean @ x - mean * x
            scale = np.sqrt(2.0**2 + np.sum((1 - mean**2) * x**2) - (1 - mean**2) * x**2)
            if first_order:
                z = y * others / scale
                fields += y * x * np.exp(-0.5 * z**2 - special.log_ndtr(z)) / math.sqrt(2 * math.pi) / scale
            else:
                up, down = (special.log_ndtr(y * (others + sign * x) / scale) for sign in (1, -1))
                fields += 0.5 * (up - down)
    for form, wanted in (("exact", field), ("cavity", cavity_field)):
        model = learner(Probit(2.0), 7, form=form)
        model.learn_many(features, targets)
        np.testing.assert_allclose(model.belief.field, wanted, rtol=1e-9)
        np.testing.assert_allclose(model.belief.mean, np.tanh(wanted), rtol=1e-12)


@pytest.mark.skipif(not COMPILED, reason="hundreds of weights need compiled kernels")
def test_the_cavity_form_agrees_up_to_one_over_the_number_of_weights() -> None:
    apart = []
    for d in (50, 800):
        _, features, targets = teacher_stream(d, d, noise=0.5 * math.sqrt(d), seed=d)
        fields = []
        for form in ("exact", "cavity"):
            model = learner(Probit(0.5 * math.sqrt(d)), d, form=form)
            model.learn_many(features, targets)
            fields.append(model.belief.mean)
        apart.append(np.abs(fields[0] - fields[1]).mean())
    assert apart[1] < 0.003
    assert apart[1] < 0.15 * apart[0]


@pytest.mark.skipif(not COMPILED, reason="hundreds of weights need compiled kernels")
@pytest.mark.parametrize("form", ["exact", "cavity"])
def test_without_noise_all_weights_are_found(form: str) -> None:
    """The theory of many weights says after 4.37 examples per weight; of 300 some run may take longer."""
    wrong = []
    for seed in range(8):
        weights, features, targets = teacher_stream(2400, 300, 0.0, seed)
        model = learner(Step(), 300, form=form)
        model.learn_many(features, targets)
        wrong.append(np.mean(np.sign(model.belief.mean) != weights))
    assert np.sum(np.array(wrong) == 0.0) >= 7
    assert max(wrong) < 0.1


@pytest.mark.skipif(not COMPILED, reason="hundreds of weights need compiled kernels")
@pytest.mark.parametrize("form", ["exact", "cavity"])
def test_what_became_certain_too_early_is_unlearnt(form: str) -> None:
    """Three weights of 300 are certain and wrong. That all others turn round too would be the end of learning."""
    weights, features, targets = teacher_stream(3000, 300, 0.0, seed=9)
    model = learner(
        Step(), 300, form=form, prior_mean=tuple(math.tanh(15.0) * np.where(np.arange(300) < 3, -1, 1) * weights)
    )
    model.learn_many(features, targets)
    assert np.mean(np.sign(model.belief.mean) != weights) < 0.02


def test_a_gaussian_site_is_absorbed_as_the_likelihood_is_learnt() -> None:
    rng = np.random.default_rng(2)
    model = learner(Gaussian(0.7), 5, prior_mean=(0.1, -0.5, 0.0, 0.3, 0.9))
    for x, y in zip(rng.normal(size=(6, 5)), rng.normal(size=6), strict=True):
        site, other = model.posterior.prior(5), model.copy()
        for array, value in zip(site, model.belief, strict=True):
            array[...] = value
        model.posterior.absorb(site, x, (y - model.belief.mean @ x) / 0.7, 1.0 / 0.7)
        other.learn_one(x, y)
        np.testing.assert_allclose(site.field, other.belief.field, rtol=1e-9, atol=1e-12)
        model = other


def test_it_is_a_distribution() -> None:
    posterior = BinaryWeights(prior_mean=(0.3, -0.6, 0.0))
    belief = posterior.prior(3)
    logs = np.array([posterior.log_density(belief, weights) for weights in EVERY[3]])
    assert np.exp(logs).sum() == pytest.approx(1.0)
    np.testing.assert_allclose(np.exp(logs) @ EVERY[3], belief.mean, atol=1e-12)
    assert posterior.log_density(belief, np.array([1.0, 0.5, 1.0])) == -math.inf
    draws = posterior.sample(belief, 100_000, seed=3)
    assert set(np.unique(draws)) == {-1.0, 1.0}
    np.testing.assert_allclose(draws.mean(0), belief.mean, atol=5 / math.sqrt(100_000))
    np.testing.assert_allclose(posterior.covariance(belief), np.diag(1 - belief.mean**2), atol=1e-12)
    np.testing.assert_allclose(posterior.sign_probability(belief), [0.65, 0.8, 0.5])
    np.testing.assert_array_equal(posterior.intervals(belief, 0.5), [[-1.0, 1.0], [-1.0, -1.0], [-1.0, 1.0]])


def test_forgetting_and_merging_are_sums_of_fields() -> None:
    posterior = BinaryWeights(prior_mean=(0.2, -0.1, 0.0))
    one, other = (Learner(Probit(), posterior, MomentMatching(), 3) for _ in range(2))
    rng = np.random.default_rng(4)
    for model in (one, other):
        model.learn_many(rng.normal(size=(5, 3)), rng.choice([-1.0, 1.0], 5))
    prior = posterior.prior(3).field
    merged = posterior.merge([one.belief, other.belief])
    np.testing.assert_allclose(merged.field, one.belief.field + other.belief.field - prior)
    np.testing.assert_allclose(posterior.subtract(merged, other.belief).field, one.belief.field)
    half = one.copy()
    half.forget(discount=0.5)
    np.testing.assert_allclose(half.belief.field, 0.5 * (one.belief.field + prior))
    blurred = one.copy()
    blurred.forget(diffusion=0.05)
    room = np.clip(posterior.prior(3).variance - one.belief.variance, 0.0, 0.05)
    np.testing.assert_allclose(blurred.belief.variance, one.belief.variance + room, rtol=1e-9)
    np.testing.assert_array_equal(np.sign(blurred.belief.mean), np.sign(one.belief.mean))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("form", ["exact", "cavity"])
def test_certainty_and_contradiction_stay_numbers(form: str, dtype: str) -> None:
    """Noise-free labels, repeated, then turned round, with features of all sizes: also one weight alone."""
    rng = np.random.default_rng(5)
    for d in (1, 4):
        features = rng.normal(size=(60, d)) * rng.choice([1e-8, 1.0, 1e8], (60, 1))
        model = learner(Step(), d, form=form, dtype=dtype)
        for labels in (1.0, -1.0):
            model.learn_many(np.repeat(features, 3, axis=0), np.repeat(labels * np.sign(features[:, 0]), 3))
            assert all(np.all(np.isfinite(array)) for array in model.belief)
            assert np.all(model.belief.variance > 0.0)
            assert np.all(np.abs(model.belief.mean) <= 1.0)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"prior_mean": 1.0}, "`prior_mean` of weights -1 or \\+1 must lie between them; got 1.0"),
        ({"form": "guess"}, "`form` must be one of exact, cavity; got 'guess'"),
        ({"dtype": "int8"}, "`dtype` must be one of"),
    ],
)
def test_a_bad_spec_is_named(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        BinaryWeights(**fields)


def test_what_it_cannot_do_is_refused() -> None:
    with pytest.raises(InvalidSpec, match=r"asks the likelihood itself, as MomentMatching\(\) does; got Linearized"):
        Learner(Probit(), BinaryWeights(), Linearized(), 3)
    posterior = BinaryWeights()
    with pytest.raises(InvalidSpec, match="use `standardize=False`"):
        posterior.transform(posterior.prior(2), np.array([1.0, 2.0]), np.zeros(2))
    belief = posterior.prior(2)
    belief.mean[0] = 0.5
    with pytest.raises(ImproperBelief, match="`mean` must be that of the fields"):
        posterior.check(belief)


def test_as_an_estimator() -> None:
    weights, features, targets = teacher_stream(120, 8, 0.5, seed=6)
    model = OnlineClassifier(Probit(0.5), BinaryWeights(), fit_intercept=False, standardize=False)
    model.fit(features, targets)
    np.testing.assert_array_equal(np.sign(model.coef_[0]), weights)
