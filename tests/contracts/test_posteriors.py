"""What every family of beliefs must do, against dense matrices, samples and scipy's distributions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.stats

from bayou import posteriors
from bayou.contracts import Posterior
from bayou.errors import ImproperBelief, InvalidSpec, ShapeMismatch
from bayou.learner import Learner
from bayou.likelihoods import Gaussian
from bayou.posteriors import (
    DiagonalGaussian,
    FullGaussian,
    LowRankGaussian,
    NormalInverseGamma,
    SparseDiagonalGaussian,
    SphericalGaussian,
)
from bayou.rules import MomentMatching

D = 4
EXAMPLES: list[Posterior[Any]] = [
    FullGaussian(prior_variance=(2.0, 0.5, 1.0, 3.0), prior_mean=(0.5, 0.0, -1.0, 0.0)),
    DiagonalGaussian(prior_variance=(2.0, 0.5, 1.0, 3.0), prior_mean=0.3),
    DiagonalGaussian(prior_variance=1.5, projection="precision"),
    SparseDiagonalGaussian(prior_variance=(2.0, 0.5, 1.0, 3.0), prior_mean=0.3, dtype="float64"),
    SphericalGaussian(prior_variance=1.5, prior_mean=(0.5, 0.0, -1.0, 0.0)),
    LowRankGaussian(rank=8, prior_variance=(2.0, 0.5, 1.0, 3.0), prior_mean=(0.5, 0.0, -1.0, 0.0)),
    LowRankGaussian(rank=2, prior_variance=1.5),
    NormalInverseGamma(prior_variance=(2.0, 0.5, 1.0, 3.0), prior_mean=0.2, noise_shape=3.0, noise_rate=2.0),
]
EXACT = [p for p in EXAMPLES if isinstance(p, (FullGaussian, NormalInverseGamma)) or getattr(p, "rank", 0) == 8]
everyone = pytest.mark.parametrize("posterior", EXAMPLES, ids=repr)


def stream(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, D)) @ rng.normal(size=(D, D))
    return features, features @ np.array([1.0, -2.0, 0.5, 0.0]) + rng.normal(size=n)


def learnt(posterior: Posterior[Any], n: int = 30, seed: int = 0) -> Learner:
    learner = Learner(Gaussian(0.7), posterior, MomentMatching(), D)
    learner.learn_many(*stream(n, seed))
    return learner


def test_every_family_has_an_example() -> None:
    """Gaussian families are tested here, points, binary weights and functions in files of their own."""
    examples = {type(posterior).__name__ for posterior in EXAMPLES}
    points = {name for name in posteriors.__all__ if getattr(posteriors, name).is_point}
    assert examples | points | {"BinaryWeights", "FunctionNorm"} == set(posteriors.__all__)


@everyone
def test_a_spec_is_a_value(posterior: Posterior[Any]) -> None:
    assert eval(repr(posterior), vars(posteriors)) == posterior
    assert len({posterior, replace(posterior)}) == 1


@everyone
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("prior_variance", 0.0),
        ("prior_variance", -1.0),
        ("prior_variance", np.inf),
        ("prior_mean", np.nan),
        ("dtype", "int8"),
    ],
)
def test_a_bad_prior_is_named(posterior: Posterior[Any], field: str, value: Any) -> None:
    with pytest.raises(InvalidSpec, match=f"`{field}`.*got"):
        replace(posterior, **{field: value})


def test_scales_for_other_features_are_named() -> None:
    with pytest.raises(ShapeMismatch, match="one value per feature, 3; got 2"):
        FullGaussian(prior_variance=(1.0, 2.0)).prior(3)


@everyone
def test_prior_has_its_moments(posterior: Posterior[Any]) -> None:
    belief = posterior.prior(D)
    noise = posterior.noise_rate / (posterior.noise_shape - 1.0) if posterior.learns_noise else 1.0
    np.testing.assert_allclose(belief.mean, np.broadcast_to(posterior.prior_mean, D))
    np.testing.assert_allclose(
        posterior.covariance(belief), np.diag(np.broadcast_to(posterior.prior_variance, D)) * noise
    )


@everyone
def test_marginal_is_that_of_the_written_out_covariance(posterior: Posterior[Any]) -> None:
    learner = learnt(posterior)
    features = stream(7, seed=1)[0]
    latent = learner.predict_many(features).latent
    spread = latent.noise * (1.0 if np.all(np.isinf(latent.degrees)) else latent.degrees / (latent.degrees - 2.0))
    covariance = posterior.covariance(learner.belief)
    np.testing.assert_allclose(latent.mean, features @ learner.belief.mean, rtol=1e-12)
    np.testing.assert_allclose(
        latent.variance * spread, np.einsum("ni,ij,nj->n", features, covariance, features), rtol=1e-10
    )
    np.testing.assert_allclose(posterior.variances(learner.belief), np.diag(covariance), rtol=1e-12)


@everyone
def test_samples_have_the_mean_and_covariance(posterior: Posterior[Any]) -> None:
    learner = learnt(posterior)
    n = 200_000
    draws = posterior.sample(learner.belief, n, seed=1)
    covariance = posterior.covariance(learner.belief)
    deviation = np.sqrt(np.diag(covariance))
    np.testing.assert_array_less(np.abs(draws.mean(0) - learner.belief.mean) / deviation, 5.0 / np.sqrt(n))
    # the standard error of a correlation is about 1 / sqrt(n), of a t's with 36 degrees of freedom little more
    scaled = (np.cov(draws.T) - covariance) / np.outer(deviation, deviation)
    np.testing.assert_array_less(np.abs(scaled), 8.0 / np.sqrt(n))


@everyone
def test_log_density_is_scipys(posterior: Posterior[Any]) -> None:
    learner = learnt(posterior)
    weights = np.array([0.8, -1.5, 0.3, 0.2])
    if posterior.learns_noise:
        shape = learner.belief.noise[0]
        scatter = posterior.covariance(learner.belief) * (shape - 1.0) / shape
        wanted = scipy.stats.multivariate_t(learner.belief.mean, scatter, df=2 * shape).logpdf(weights)
    else:
        wanted = scipy.stats.multivariate_normal(learner.belief.mean, posterior.covariance(learner.belief)).logpdf(
            weights
        )
    assert posterior.log_density(learner.belief, weights) == pytest.approx(wanted, rel=1e-9)


@everyone
def test_intervals_and_signs_are_those_of_samples(posterior: Posterior[Any]) -> None:
    learner = learnt(posterior, n=10)
    n = 100_000
    draws = posterior.sample(learner.belief, n, seed=2)
    low, high = posterior.intervals(learner.belief, 0.8).T
    covered = np.mean((draws > low) & (draws < high), axis=0)
    np.testing.assert_allclose(covered, 0.8, atol=5 * np.sqrt(0.8 * 0.2 / n))
    same_sign = np.mean(np.sign(draws) == np.sign(learner.belief.mean), axis=0)
    np.testing.assert_allclose(posterior.sign_probability(learner.belief), same_sign, atol=5 * 0.5 / np.sqrt(n))


@everyone
@pytest.mark.parametrize(("slope", "precision"), [(0.7, 0.4), (-30.0, 1e4), (0.2, 0.0), (0.3, -0.05)])
def test_absorb_is_the_projection_of_the_dense_update(
    posterior: Posterior[Any], slope: float, precision: float
) -> None:
    belief = learnt(posterior, n=10).belief
    x = np.array([0.3, -0.5, 0.8, 0.1])
    covariance, mean = posterior.covariance(belief), belief.mean.copy()
    if posterior.learns_noise:
        covariance *= (belief.noise[0] - 1.0) / belief.noise[1]
    gain = 1.0 / (1.0 + precision * x @ covariance @ x)
    direction = covariance @ x
    dense = covariance - gain * precision * np.outer(direction, direction)
    posterior.absorb(belief, x, slope, precision)
    np.testing.assert_allclose(belief.mean, mean + gain * slope * direction, rtol=1e-9, atol=1e-12)
    after = posterior.covariance(belief)
    if posterior.learns_noise:
        after *= (belief.noise[0] - 1.0) / belief.noise[1]
    if isinstance(posterior, DiagonalGaussian) and posterior.projection == "precision":
        np.testing.assert_allclose(1 / np.diag(after), np.diag(np.linalg.inv(dense)), rtol=1e-9)
    elif isinstance(posterior, (DiagonalGaussian, SparseDiagonalGaussian)):
        np.testing.assert_allclose(np.diag(after), np.diag(dense), rtol=1e-9)
    elif isinstance(posterior, SphericalGaussian):
        np.testing.assert_allclose(np.trace(after), np.trace(dense), rtol=1e-9)
    elif posterior in EXACT:
        np.testing.assert_allclose(after, dense, rtol=1e-7, atol=1e-12)
    else:  # low rank: what is dropped goes into the diagonal of the precision
        np.testing.assert_allclose(np.diag(np.linalg.inv(after)), np.diag(np.linalg.inv(dense)), rtol=1e-7)


@everyone
def test_forgetting_nothing_changes_nothing(posterior: Posterior[Any]) -> None:
    learner, same = learnt(posterior), learnt(posterior)
    posterior.forget(learner.belief)
    for array, wanted in zip(learner.belief, same.belief, strict=True):
        np.testing.assert_array_equal(array, wanted)


@everyone
def test_forgetting_everything_gives_the_prior(posterior: Posterior[Any]) -> None:
    learner = learnt(posterior)
    posterior.forget(learner.belief, discount=0.0)
    prior = posterior.prior(D)
    np.testing.assert_allclose(learner.belief.mean, prior.mean, atol=1e-12)
    np.testing.assert_allclose(
        posterior.covariance(learner.belief), posterior.covariance(prior), rtol=1e-10, atol=1e-12
    )


@everyone
def test_discount_keeps_that_fraction_of_the_natural_parameters(posterior: Posterior[Any]) -> None:
    learner = learnt(posterior)
    before, prior = learner.copy().belief, posterior.prior(D)
    posterior.forget(learner.belief, discount=0.7)

    def precision(belief: Any) -> np.ndarray:
        unit = (belief.noise[0] - 1.0) / belief.noise[1] if posterior.learns_noise else 1.0
        return np.linalg.inv(posterior.covariance(belief) * unit)

    wanted = 0.7 * precision(before) + 0.3 * precision(prior)
    np.testing.assert_allclose(precision(learner.belief), wanted, rtol=1e-8, atol=1e-10)
    shift = 0.7 * precision(before) @ before.mean + 0.3 * precision(prior) @ prior.mean
    np.testing.assert_allclose(precision(learner.belief) @ learner.belief.mean, shift, rtol=1e-8, atol=1e-8)


@everyone
def test_diffusion_adds_variance_up_to_the_prior(posterior: Posterior[Any]) -> None:
    learner = learnt(posterior, n=200)
    unit = learner.belief.noise[1] / (learner.belief.noise[0] - 1.0) if posterior.learns_noise else 1.0
    before, mean = posterior.covariance(learner.belief), learner.belief.mean.copy()
    bound = np.broadcast_to(posterior.prior_variance, D) * unit
    posterior.forget(learner.belief, diffusion=1e-3)
    added = posterior.covariance(learner.belief) - before
    room = np.clip(bound - np.diag(before), 0.0, 1e-3 * unit)
    np.testing.assert_allclose(added, np.diag(room), atol=1e-9)
    np.testing.assert_array_equal(learner.belief.mean, mean)
    for _ in range(50):
        posterior.forget(learner.belief, diffusion=10.0)
    assert np.all(posterior.variances(learner.belief) <= np.maximum(bound, np.diag(before)) * (1 + 1e-9))


@everyone
@pytest.mark.parametrize(("discount", "diffusion"), [(1.5, 0.0), (-0.1, 0.0), (1.0, -1.0), (1.0, np.nan)])
def test_impossible_forgetting_is_refused(posterior: Posterior[Any], discount: float, diffusion: float) -> None:
    belief = posterior.prior(D)
    with pytest.raises(InvalidSpec, match=r"`(discount|diffusion)` must"):
        posterior.forget(belief, discount, diffusion)


@everyone
def test_one_shard_merges_to_itself(posterior: Posterior[Any]) -> None:
    belief = learnt(posterior).belief
    merged = posterior.merge([belief])
    np.testing.assert_allclose(merged.mean, belief.mean, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(posterior.covariance(merged), posterior.covariance(belief), rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("posterior", EXACT, ids=repr)
def test_shards_merge_to_the_sequence(posterior: Posterior[Any]) -> None:
    features, targets = stream(90)
    whole = Learner(Gaussian(0.7), posterior, MomentMatching(), D)
    whole.learn_many(features, targets)
    shards = []
    for part in np.array_split(np.arange(90), 3):
        shard = Learner(Gaussian(0.7), posterior, MomentMatching(), D)
        shard.learn_many(features[part], targets[part])
        shards.append(shard.belief)
    merged = posterior.merge(shards)
    np.testing.assert_allclose(merged.mean, whole.belief.mean, rtol=1e-10)
    np.testing.assert_allclose(posterior.covariance(merged), posterior.covariance(whole.belief), rtol=1e-9, atol=1e-13)


# A belief that was compressed has dropped what would be taken out: see test_low_rank_gaussian.
@pytest.mark.parametrize("posterior", [p for p in EXAMPLES if getattr(p, "rank", D) >= D], ids=repr)
def test_subtract_undoes_merge(posterior: Posterior[Any]) -> None:
    one, other = learnt(posterior, seed=1).belief, learnt(posterior, seed=2).belief
    left = posterior.subtract(posterior.merge([one, other]), other)
    np.testing.assert_allclose(left.mean, one.mean, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(posterior.covariance(left), posterior.covariance(one), rtol=1e-7, atol=1e-10)


@everyone
def test_taking_out_what_was_never_learnt_is_refused(posterior: Posterior[Any]) -> None:
    little, much = learnt(posterior, n=3).belief, learnt(posterior, n=300).belief
    before = [array.copy() for array in little]
    with pytest.raises(ImproperBelief, match="never learnt"):
        posterior.subtract(little, much)
    for array, wanted in zip(little, before, strict=True):
        np.testing.assert_array_equal(array, wanted)


@everyone
def test_transformed_weights_have_transformed_moments(posterior: Posterior[Any]) -> None:
    belief = learnt(posterior).belief
    mean, covariance = belief.mean.copy(), posterior.covariance(belief)
    scale, shift = np.array([1.0, 3.0, 0.5, 2.0]), np.array([0.0, 0.3, -0.2, 0.1])
    linear = np.diag(scale)
    linear[0] += shift
    posterior.transform(belief, scale, shift)
    np.testing.assert_allclose(belief.mean, linear @ mean, rtol=1e-10)
    wanted, got = linear @ covariance @ linear.T, posterior.covariance(belief)
    if posterior in EXACT and not isinstance(posterior, LowRankGaussian):
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-13)
    elif isinstance(posterior, (DiagonalGaussian, SparseDiagonalGaussian)):
        np.testing.assert_allclose(np.diag(got), np.diag(wanted), rtol=1e-9)
    elif isinstance(posterior, LowRankGaussian):  # the correlations that the sum brings are dropped
        np.testing.assert_allclose(got[1:, 1:], wanted[1:, 1:], rtol=1e-8, atol=1e-12)
    else:
        assert np.linalg.slogdet(got)[1] == pytest.approx(np.linalg.slogdet(wanted)[1])


@pytest.mark.parametrize("posterior", [p for p in EXACT if not isinstance(p, LowRankGaussian)], ids=repr)
def test_a_belief_retold_is_that_of_data_told_otherwise(posterior: Posterior[Any]) -> None:
    # an intercept and three features, first in one frame, then in another
    rng = np.random.default_rng(0)
    raw, targets = rng.normal(size=(40, D - 1)) + 2.0, rng.normal(size=40)
    ratio, moved = np.array([3.0, 0.5, 2.0]), np.array([0.3, -0.2, 0.1])
    old = np.column_stack([np.ones(40), raw])
    new = np.column_stack([np.ones(40), (raw - moved) / ratio])
    one, other = (Learner(Gaussian(0.7), posterior, MomentMatching(), D) for _ in range(2))
    one.learn_many(old, targets)
    other.learn_many(new, targets)
    one.retell(np.concatenate([[1.0], ratio]), np.concatenate([[0.0], moved]))
    np.testing.assert_allclose(one.belief.mean, other.belief.mean, rtol=1e-8)
    np.testing.assert_allclose(
        posterior.covariance(one.belief), posterior.covariance(other.belief), rtol=1e-7, atol=1e-12
    )
