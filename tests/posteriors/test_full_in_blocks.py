"""From 256 features on, `learn_many` absorbs 48 rows per look at the factor: the same answers, to rounding."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg

from bayou.errors import ImproperBelief
from bayou.learner import Learner
from bayou.likelihoods import Gaussian, Logistic, Poisson, Probit, StudentT
from bayou.numerics.block_sites import LARGEST_RATIO
from bayou.numerics.factor_blocks import BLOCKS_FROM, FEWEST, LARGEST
from bayou.numerics.jit import COMPILED
from bayou.posteriors import FullGaussian, NormalInverseGamma, full_gaussian, normal_inverse_gamma
from bayou.rules import Linearized, MomentMatching, Variational

compiled = pytest.mark.skipif(not COMPILED, reason="thousands of numbers per row need compiled kernels")
D = BLOCKS_FROM


def stream(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, d))
    return features, features[:, :3].sum(axis=1) + rng.normal(size=n)


@contextmanager
def no_blocks() -> Iterator[None]:
    """As in a process that was never told to prepare for them."""
    places = [
        place
        for module in (full_gaussian, normal_inverse_gamma)
        for place in module._block_pass.in_blocks.places.values()
    ]
    before = [place[0] for place in places]
    for place in places:
        place[0] = 0
    yield
    for place, address in zip(places, before, strict=True):
        place[0] = address


def both_ways(
    likelihood: Any, posterior: Any, rule: Any, features: np.ndarray, targets: np.ndarray, weights: Any = None
) -> tuple[Learner, Learner, Any, Any]:
    """A learner that may use blocks, one that does not, and what each has said of the latents beforehand."""
    in_blocks, otherwise = (Learner(likelihood, posterior, rule, features.shape[1]) for _ in range(2))
    said = in_blocks.learn_many(features, targets, weights).latent
    with no_blocks():
        said_otherwise = otherwise.learn_many(features, targets, weights).latent
    return in_blocks, otherwise, said, said_otherwise


def difference(one: Learner, other: Learner) -> float:
    """The largest of those of the means, relative to the largest mean, the correlations, and the evidence."""
    assert one.n_examples == other.n_examples
    mine, wanted = (learner.posterior.covariance(learner.belief) for learner in (one, other))
    deviation = np.sqrt(np.diag(wanted))
    return max(
        np.abs(one.belief.mean - other.belief.mean).max() / np.abs(other.belief.mean).max(),
        np.abs((mine - wanted) / np.outer(deviation, deviation)).max(),
        abs(one.log_evidence / other.log_evidence - 1.0),
    )


@pytest.mark.parametrize("posterior", [FullGaussian(2.0), NormalInverseGamma(2.0)], ids=repr)
@pytest.mark.parametrize(("n", "d"), [(FEWEST, D), (LARGEST, D + 1), (3 * LARGEST + 17, 300), (2 * D, D + 3)])
def test_the_batch_solution(posterior: Any, n: int, d: int) -> None:
    """Ridge regression, by solving its equations."""
    features, targets = stream(n, d)
    learner = Learner(Gaussian(noise_variance=0.5), posterior, MomentMatching(), d)
    learner.learn_many(features, targets)
    root = scipy.linalg.cho_factor(np.eye(d) / 2.0 + features.T @ features / 0.5)
    wanted = scipy.linalg.cho_solve(root, features.T @ targets / 0.5)
    np.testing.assert_allclose(learner.belief.mean, wanted, atol=1e-11)
    covariance = (learner.belief.factor.T * learner.belief.scale) @ learner.belief.factor
    np.testing.assert_allclose(covariance, scipy.linalg.cho_solve(root, np.eye(d)), atol=1e-11)
    if posterior.learns_noise:
        error = targets - features @ wanted
        squares = error @ error / 0.5 + wanted @ wanted / 2.0  # at the best weights, those of the prior among them
        np.testing.assert_allclose(learner.belief.noise, [0.5 + n / 2, 0.5 + squares / 2], rtol=1e-12)


@compiled
@pytest.mark.parametrize(
    ("likelihood", "posterior", "rule"),
    [
        (Gaussian(), FullGaussian(), MomentMatching()),
        (Gaussian(0.5), NormalInverseGamma(), MomentMatching()),
        (Probit(), FullGaussian(), MomentMatching()),
        (Logistic(), FullGaussian(prior_variance=3.0), Variational()),
        (Probit(), FullGaussian(), Linearized()),
        (Poisson(), FullGaussian(prior_variance=1e-3), MomentMatching()),
    ],
    ids=repr,
)
@pytest.mark.parametrize(("n", "d"), [(2 * LARGEST + FEWEST - 1, D), (301, 300)])
def test_blocks_give_what_the_other_passes_give(likelihood: Any, posterior: Any, rule: Any, n: int, d: int) -> None:
    features, targets = stream(n, d)
    if isinstance(likelihood, Poisson):
        targets = np.random.default_rng(1).poisson(np.exp(0.1 * features[:, 0])).astype(float)
    elif not isinstance(likelihood, Gaussian):
        targets = np.sign(targets)
    in_blocks, otherwise, said, said_otherwise = both_ways(likelihood, posterior, rule, features, targets)
    assert difference(in_blocks, otherwise) < 1e-12
    np.testing.assert_allclose(said.variance, said_otherwise.variance, rtol=1e-12)
    largest = np.abs(said_otherwise.mean).max()
    np.testing.assert_allclose(said.mean / largest, said_otherwise.mean / largest, rtol=0.0, atol=1e-12)
    assert not np.array_equal(in_blocks.belief.factor, otherwise.belief.factor), "there were no blocks"


@compiled
def test_many_is_one_by_one_in_chunks_of_any_size() -> None:
    features, targets = stream(205, 261)
    at_once, in_chunks, one_by_one = (
        Learner(Probit(), FullGaussian(), MomentMatching(), features.shape[1]) for _ in range(3)
    )
    at_once.learn_many(features, np.sign(targets))
    for rows in np.split(np.arange(205), [1, 3, 14, 63, 64, 160]):
        in_chunks.learn_many(features[rows], np.sign(targets[rows]))
    for x, y in zip(features, np.sign(targets), strict=True):
        one_by_one.learn_one(x, y)
    assert difference(at_once, one_by_one) < 1e-11
    assert difference(in_chunks, one_by_one) < 1e-11


@compiled
@pytest.mark.parametrize("posterior", [FullGaussian(), NormalInverseGamma()], ids=repr)
@pytest.mark.parametrize("heaviest", [1.0, 2.5])
def test_weights(posterior: Any, heaviest: float) -> None:
    features, targets = stream(100, D)
    weights = np.random.default_rng(3).uniform(0.0, heaviest, size=100)
    weights[5] = 0.0
    in_blocks, otherwise, *_ = both_ways(Gaussian(), posterior, MomentMatching(), features, targets, weights)
    assert difference(in_blocks, otherwise) < 1e-12
    one_by_one = Learner(Gaussian(), posterior, MomentMatching(), D)
    for x, y, weight in zip(features, targets, weights, strict=True):
        one_by_one.learn_one(x, y, weight)
    assert difference(in_blocks, one_by_one) < 1e-12


@compiled
def test_missing_features() -> None:
    features, targets = stream(60, D)
    missing = np.random.default_rng(1).random(features.shape) < 0.1
    learner, one_by_one = (Learner(Gaussian(), FullGaussian(), MomentMatching(), D) for _ in range(2))
    learner.learn_many(np.where(missing, 0.0, features), targets, missing=missing)
    for n in range(60):
        one_by_one.learn_many(
            np.where(missing, 0.0, features)[n : n + 1], targets[n : n + 1], missing=missing[n : n + 1]
        )
    assert difference(learner, one_by_one) < 1e-12


@compiled
def test_negative_precisions_and_outliers() -> None:
    """What a block cannot bear is learnt otherwise, within a stream that can be learnt in blocks."""
    features, targets = stream(600, D)
    targets[[100, 101, 250]] += 300.0
    in_blocks, otherwise, *_ = both_ways(StudentT(), FullGaussian(), MomentMatching(), features, targets)
    assert difference(in_blocks, otherwise) < 1e-11


@compiled
@pytest.mark.parametrize("posterior", [FullGaussian(), NormalInverseGamma()], ids=repr)
@pytest.mark.parametrize("bad", [0, 47, 48, 70, 99])
def test_a_row_that_is_refused_leaves_no_trace(posterior: Any, bad: int) -> None:
    features, targets = stream(100, D)
    learner = Learner(Gaussian(), posterior, MomentMatching(), D)
    learner.learn_many(*stream(20, D, seed=1))
    before = [array.copy() for array in learner.belief]
    features[bad] = 1e200  # finite, but its latent's variance is not
    with pytest.raises(ImproperBelief, match=f"row {bad} has a latent that is not finite"):
        learner.learn_many(features, targets)
    for array, old in zip(learner.belief, before, strict=True):
        np.testing.assert_array_equal(array, old)
    assert learner.n_examples == 20


def kinds_of_features(kind: str, n: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(n, D))
    if kind == "repeated":
        return np.repeat(features[: n // 4], 4, axis=0)
    if kind == "nearly collinear":
        return rng.normal(size=(n, 3)) @ rng.normal(size=(3, D)) + 1e-3 * features
    if kind == "of scales 1e-3 to 1e3":
        return features * np.logspace(-3, 3, D)
    return features


@compiled
@pytest.mark.parametrize("ratio", [1.0, 1e3, 1e12])
@pytest.mark.parametrize("kind", ["plain", "repeated", "nearly collinear", "of scales 1e-3 to 1e3"])
def test_no_ratio_of_prior_to_noise_costs_more_digits_in_blocks(kind: str, ratio: float) -> None:
    """In units of what is known: the deviations of the weights, and of the targets."""
    features = kinds_of_features(kind, 480)
    targets = features[:, :5].sum(axis=1) + np.random.default_rng(1).normal(size=480)
    posterior = FullGaussian(prior_variance=ratio)
    in_blocks, otherwise, said, wanted = both_ways(Gaussian(), posterior, MomentMatching(), features, targets)
    covariances = [posterior.covariance(learner.belief) for learner in (in_blocks, otherwise)]
    deviation = np.sqrt(np.diag(covariances[1]))
    assert np.abs((covariances[0] - covariances[1]) / np.outer(deviation, deviation)).max() < 1e-9
    np.testing.assert_allclose(said.variance, wanted.variance, rtol=1e-9)
    np.testing.assert_allclose(
        said.mean / np.sqrt(1.0 + wanted.variance), wanted.mean / np.sqrt(1.0 + wanted.variance), atol=1e-8
    )


@compiled
@pytest.mark.parametrize(("ratio", "dtype"), [(1e20, "float64"), (1e10, "float32"), (1.0, "float32")])
@pytest.mark.parametrize("posterior", [FullGaussian, NormalInverseGamma])
def test_covariances_stay_positive(posterior: Any, ratio: float, dtype: str) -> None:
    features, targets = stream(1500, D)
    features = np.repeat(features, 2, axis=0)  # every second tells nothing new
    features[:, 10] = features[:, 11]
    features[:, 12] = 1.0
    learner = Learner(Gaussian(), posterior(prior_variance=ratio, dtype=dtype), MomentMatching(), D)
    for _ in range(2):
        learner.learn_many(features, np.repeat(targets, 2))
    assert all(np.all(np.isfinite(array)) for array in learner.belief)
    assert np.all(learner.belief.scale > 0.0)
    assert np.all(np.triu(learner.belief.factor, 1) == 0.0)
    assert np.all(np.diag(learner.belief.factor) == 1.0)
    assert np.all(learner.predict_many(features[:50]).latent.variance > 0.0)


@compiled
@pytest.mark.parametrize("n", [100, 3000])
def test_single_precision(n: int) -> None:
    """Blocks round less often: with independent features they drift less than the other pass, over a long stream."""
    features, targets = stream(n, D)
    features = features.astype(np.float32)
    exact = Learner(Gaussian(), FullGaussian(), MomentMatching(), D)
    exact.learn_many(features, targets)
    in_blocks, otherwise, *_ = both_ways(Gaussian(), FullGaussian(dtype="float32"), MomentMatching(), features, targets)
    variance = exact.posterior.variances(exact.belief)
    errors = []
    for learner in (in_blocks, otherwise):
        of_mean = np.abs(learner.belief.mean - exact.belief.mean) / np.sqrt(variance)
        of_variance = np.abs(learner.posterior.variances(learner.belief) / variance - 1.0)
        errors.append((of_mean.max(), of_variance.max()))
    assert errors[0][0] < 1e-3
    assert errors[0][1] < 1e-5
    assert errors[0] < errors[1] or n == 100


LOAD = """
import pickle
from pathlib import Path

from bayou.posteriors import {module}

learner = pickle.loads(Path({path!r}).read_bytes())
print([dtype for dtype, place in {module}._block_pass.in_blocks.places.items() if place[0]])
"""


@compiled
@pytest.mark.slow
@pytest.mark.parametrize("posterior", [FullGaussian(), NormalInverseGamma(dtype="float32")], ids=repr)
def test_a_learner_from_a_pickle_goes_on_in_blocks(
    posterior: Any, tmp_path: Path, run_python: Callable[..., str]
) -> None:
    """To the last bit here, and in blocks in a process that has never seen a learner made."""
    features, targets = stream(200, D)
    learner = Learner(Gaussian(), posterior, MomentMatching(), D)
    learner.learn_many(features[:100], targets[:100])
    path = tmp_path / "learner"
    path.write_bytes(pickle.dumps(learner))
    copy = pickle.loads(path.read_bytes())
    for one in (learner, copy):
        one.learn_many(features[100:], targets[100:])
    for array, other in zip(learner.belief, copy.belief, strict=True):
        np.testing.assert_array_equal(array, other)
    module = type(posterior).__module__.rsplit(".", 1)[1]
    assert run_python(LOAD.format(path=str(path), module=module)).strip() == f"['{posterior.dtype}']"


@compiled
def test_the_bounds_are_those_that_were_measured() -> None:
    """At the largest ratio that a block takes, blocks and pairs still agree in 12 digits."""
    features, targets = stream(300, D)
    ratio = 0.9 * LARGEST_RATIO / np.sum(features**2, axis=1).max()
    in_blocks, otherwise, *_ = both_ways(Gaussian(), FullGaussian(ratio), MomentMatching(), features, targets)
    assert difference(in_blocks, otherwise) < 1e-12
    assert not np.array_equal(in_blocks.belief.factor, otherwise.belief.factor), "there were no blocks"


LEARN_AND_COUNT = """
import gc

import numpy as np
from numba.core.dispatcher import Dispatcher

import bayou
from bayou.posteriors.full_gaussian import _block_pass

features, targets = np.random.default_rng(0).normal(size=(50, 256)), np.ones(50)
learner = bayou.Learner(bayou.Gaussian(), bayou.FullGaussian(), bayou.MomentMatching(), 256)
learner.learn_many(features, targets)
kernels = [o for o in gc.get_objects() if isinstance(o, Dispatcher) and o.py_func.__module__.startswith("bayou.")]
print(learner.belief.factor.tobytes().hex(), int(_block_pass.in_blocks.places["float64"][0] != 0))
print(*sorted(f"{kernel.py_func.__module__}.{kernel.__name__}" for kernel in kernels if kernel.stats.cache_misses))
"""


@compiled
@pytest.mark.parametrize("fresh", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_a_second_process_compiles_nothing(tmp_path: Path, run_python: Callable[..., str], fresh: bool) -> None:
    """In the cache of all tests, which has these kernels already, and in one of its own."""
    options = {"NUMBA_CACHE_DIR": str(tmp_path)} if fresh else {}
    first, second = (run_python(LEARN_AND_COUNT, **options).split() for _ in range(2))
    assert ("bayou.numerics.factor_blocks.advance" in first[2:]) or not fresh
    assert second[2:] == []
    assert second[:2] == first[:2]  # to the last bit
    assert second[1] == "1"
