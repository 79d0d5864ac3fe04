"""The kernels of the softmax keep their contract, and its predictions are those of the integrals they stand for."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special, stats

from bayou.contracts import Latent
from bayou.errors import InvalidSpec, InvalidTarget, ShapeMismatch
from bayou.likelihoods.softmax import Softmax
from bayou.numerics.jit import COMPILED
from bayou.numerics.pointers import VECTOR_EXPECTED_LOG_DENSITY, VECTOR_LOG_DENSITY, VECTOR_LOG_EVIDENCE

EXAMPLES = settings(max_examples=200 if COMPILED else 20)


def run(kernel, y, *beliefs):
    """What a kernel returns, and what it writes: slope, curvature and, for the evidence, kept."""
    beliefs = [np.array(belief, dtype=np.float64) for belief in beliefs]
    k = beliefs[0].size
    written = [np.full(k, np.nan) for _ in range(3 if kernel is Softmax.log_evidence else 2)]
    return kernel(float(y), *beliefs, Softmax(k).params, *written), *written


def latent(mean, variance):
    return Latent(mean=np.atleast_2d(np.array(mean, float)), variance=np.atleast_2d(np.array(variance, float)))


means = st.lists(st.floats(-20.0, 20.0), min_size=3, max_size=3)
variances = st.lists(st.one_of(st.just(0.0), st.floats(-5, 2).map(lambda power: 10.0**power)), min_size=3, max_size=3)
targets = st.integers(0, 2)


# --- kernels


def test_log_density_is_the_log_of_the_softmax():
    f = np.array([0.5, -1.0, 3.0, 2.0])
    for y in range(4):
        value, slope, curvature = run(Softmax.log_density, y, f)
        p = special.softmax(f)
        assert value == pytest.approx(special.log_softmax(f)[y], abs=1e-15)
        np.testing.assert_allclose(slope, np.eye(4)[y] - p, atol=1e-15)
        np.testing.assert_allclose(curvature, p * (1.0 - p), atol=1e-15)


@EXAMPLES
@given(means, targets)
def test_log_density_has_the_derivatives_it_says(f, y):
    _, slope, curvature = run(Softmax.log_density, y, f)
    for c in range(3):
        step = 1e-4 * np.eye(3)[c]
        up, down = run(Softmax.log_density, y, f + step), run(Softmax.log_density, y, f - step)
        assert (up[0] - down[0]) / 2e-4 == pytest.approx(slope[c], abs=1e-7)
        assert (down[1][c] - up[1][c]) / 2e-4 == pytest.approx(curvature[c], abs=1e-7)


def test_far_latents_lose_no_digits():
    value, slope, curvature = run(Softmax.log_density, 0, [800.0, 750.0, -1e4])
    assert slope[0] == pytest.approx(math.exp(-50.0), rel=1e-12)
    assert curvature[0] == pytest.approx(math.exp(-50.0), rel=1e-12)
    assert value == 0.0
    assert run(Softmax.log_density, 2, [800.0, 750.0, -1e4])[0] == pytest.approx(-10800.0)


@pytest.mark.parametrize("kernel", [Softmax.log_evidence, Softmax.expected_log_density])
def test_without_variance_expectations_are_values(kernel):
    f = [0.5, -1.0, 3.0]
    for y in range(3):
        expected = run(Softmax.log_density, y, f)
        found = run(kernel, y, f, np.zeros(3))
        assert found[0] == expected[0]
        np.testing.assert_array_equal(found[1:3], expected[1:])
        nearly = run(kernel, y, f, np.full(3, 1e-11))
        assert nearly[0] == pytest.approx(expected[0], abs=1e-10)
        np.testing.assert_allclose(nearly[1:3], expected[1:], rtol=0, atol=1e-9)
    np.testing.assert_array_equal(run(Softmax.log_evidence, 0, f, np.zeros(3))[3], 1.0)


@EXAMPLES
@given(means, variances, targets, st.floats(-50.0, 50.0))
def test_only_differences_of_latents_matter(mean, variance, y, shift):
    for kernel in (Softmax.log_evidence, Softmax.expected_log_density):
        here, there = run(kernel, y, mean, variance), run(kernel, y, np.add(mean, shift), variance)
        assert here[0] == pytest.approx(there[0], abs=1e-8)
        np.testing.assert_allclose(here[1:3], there[1:3], rtol=0, atol=1e-8)


@EXAMPLES
@given(means, variances, targets)
def test_evidence_and_expectation_are_ordered(mean, variance, y):
    """Jensen: E log p <= log E p; nothing is learnt that was not in doubt, and the slopes sum to zero."""
    log_mean, slope, curvature, kept = run(Softmax.log_evidence, y, mean, variance)
    mean_log, expected_slope, expected_curvature = run(Softmax.expected_log_density, y, mean, variance)
    assert mean_log <= log_mean + 1e-8 <= 1e-7
    assert np.all((kept > 0.0) & (kept <= 1.0))
    np.testing.assert_allclose(kept, 1.0 - np.array(variance) * curvature, rtol=0, atol=1e-12)
    for written in (slope, expected_slope):
        assert written.sum() == pytest.approx(0.0, abs=1e-12)
        assert written[y] >= 0.0
    assert np.all((curvature >= 0.0) & (expected_curvature >= 0.0))


@pytest.mark.parametrize("variance", [0.02, 0.5, 6.0, 80.0])
def test_expected_log_density_of_two_classes_is_an_integral_over_their_difference(variance):
    mean, deviation = 1.3, math.sqrt(variance)

    def expected(function):
        edges = mean + deviation * np.arange(-10, 11)
        return sum(
            integrate.quad(lambda d: function(d) * stats.norm.pdf(d, mean, deviation), low, high, epsabs=1e-13)[0]
            for low, high in itertools.pairwise(edges)
        )

    value, slope, curvature = run(Softmax.expected_log_density, 1, [0.0, mean], [0.25 * variance, 0.75 * variance])
    assert value == pytest.approx(expected(special.log_expit), abs=2e-9)
    assert slope[1] == pytest.approx(expected(lambda d: special.expit(-d)), abs=2e-9)
    np.testing.assert_allclose(curvature, expected(lambda d: special.expit(d) * special.expit(-d)), rtol=0, atol=2e-9)


@pytest.mark.parametrize("bad", [math.nan, -1.0, 3.0, math.inf])
def test_kernels_answer_bad_targets_with_nan(bad):
    for kernel, beliefs in (
        (Softmax.log_density, [np.zeros(3)]),
        (Softmax.log_evidence, [np.zeros(3), np.ones(3)]),
        (Softmax.expected_log_density, [np.zeros(3), np.ones(3)]),
    ):
        value, slope, curvature = run(kernel, bad, *beliefs)[:3]
        assert math.isnan(value)
        assert np.isnan(slope).all()
        assert np.isnan(curvature).all()


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0])
def test_kernels_answer_bad_variances_with_nan(bad):
    for kernel in (Softmax.log_evidence, Softmax.expected_log_density):
        assert math.isnan(run(kernel, 0, [0.0, 0.0, 0.0], [1.0, bad, 1.0])[0])


@pytest.mark.skipif(not COMPILED, reason="plain functions have no signature")
def test_kernels_have_the_signatures_of_the_contract():
    for pointer, kernel in (
        (VECTOR_LOG_DENSITY, Softmax.log_density),
        (VECTOR_LOG_EVIDENCE, Softmax.log_evidence),
        (VECTOR_EXPECTED_LOG_DENSITY, Softmax.expected_log_density),
    ):
        assert pointer.address(kernel) > 0


# --- predictions


def sampled_probabilities(belief, draws=100_000):
    random = np.random.default_rng(4)
    f = belief.mean[0] + np.sqrt(belief.variance[0]) * random.normal(size=(draws, belief.mean.shape[1]))
    return special.softmax(f, axis=1)


@pytest.mark.parametrize("scale", [0.1, 3.0, 60.0])
def test_probabilities_are_within_five_standard_errors_of_sampling(scale):
    belief = latent([0.0, 1.0, -0.5, 2.0], scale * np.array([1.0, 2.0, 0.0, 0.5]))
    found, sampled = Softmax(4).probabilities(belief)[0], sampled_probabilities(belief)
    assert np.all(np.abs(found - sampled.mean(axis=0)) < 5.0 * sampled.std(axis=0) / math.sqrt(len(sampled)))


@EXAMPLES
@given(means, variances)
def test_probabilities_sum_to_one_and_agree_with_the_evidence(mean, variance):
    likelihood, belief = Softmax(3), latent(mean, variance)
    probabilities = likelihood.probabilities(belief)
    assert probabilities.sum() == pytest.approx(1.0, abs=1e-12)
    for y in range(3):
        assert math.exp(likelihood.log_probability(np.array([y]), belief)[0]) == pytest.approx(
            probabilities[0, y], abs=2e-9
        )


def test_rows_are_predicted_apart():
    mean, variance = np.arange(12.0).reshape(4, 3) % 5.0, np.arange(12.0).reshape(4, 3) % 4.0
    likelihood, given_targets = Softmax(3), np.array([0.0, 2.0, 1.0, 1.0])
    together = likelihood.log_probability(given_targets, Latent(mean=mean, variance=variance))
    apart = [likelihood.log_probability(given_targets[i : i + 1], latent(mean[i], variance[i]))[0] for i in range(4)]
    np.testing.assert_array_equal(together, apart)
    columns = Latent(mean=np.asfortranarray(mean), variance=np.asfortranarray(variance))
    np.testing.assert_array_equal(likelihood.probabilities(columns), likelihood.probabilities(Latent(mean, variance)))


def test_moments_and_quantiles_are_those_of_the_number_of_the_class():
    likelihood, belief = Softmax(3), latent(np.log([0.2, 0.5, 0.3]), np.zeros(3))
    mean, variance = likelihood.moments(belief)
    assert mean == pytest.approx(0.5 + 0.6)
    assert variance == pytest.approx(0.5 + 4.0 * 0.3 - 1.1**2)
    wanted = np.array([0.0, 0.1, 0.25, 0.69, 0.71, 1.0])
    np.testing.assert_array_equal(likelihood.quantiles(belief, wanted), [[0.0, 0.0, 1.0, 1.0, 2.0, 2.0]])


def test_no_rows_are_no_trouble():
    likelihood, belief = Softmax(3), Latent(mean=np.zeros((0, 3)), variance=np.zeros((0, 3)))
    assert likelihood.probabilities(belief).shape == (0, 3)
    assert likelihood.quantiles(belief, np.array([0.5])).shape == (0, 1)
    assert likelihood.log_probability(np.zeros(0), belief).shape == (0,)


# --- the spec


@pytest.mark.parametrize("n_classes", [2, 3, np.int64(7)])
def test_a_spec_is_a_value(n_classes):
    likelihood = Softmax(n_classes)
    assert eval(repr(likelihood)) == likelihood == pickle.loads(pickle.dumps(likelihood))
    assert likelihood.n_latents == n_classes
    assert likelihood.target_range == (0.0, n_classes - 1.0)


@pytest.mark.parametrize("n_classes", [1, 0, -3, True])
def test_fewer_than_two_classes_are_refused(n_classes):
    with pytest.raises(InvalidSpec, match=rf"`n_classes` must be at least 2; got {n_classes}\."):
        Softmax(n_classes)


@pytest.mark.parametrize("n_classes", [2.5, "three", None, math.nan])
def test_classes_are_counted(n_classes):
    with pytest.raises(InvalidSpec, match="`n_classes` must be a whole number; got"):
        Softmax(n_classes)


def test_targets_are_class_numbers():
    likelihood = Softmax(3)
    accepted = likelihood.accepts(np.array([0.0, 1.0, 2.0, 3.0, -1.0, 0.5, np.nan, np.inf]))
    np.testing.assert_array_equal(accepted, [True] * 3 + [False] * 5)
    likelihood.check_targets(np.array([0.0, 2.0]))
    with pytest.raises(InvalidTarget, match=r"Softmax\(n_classes=3\) takes targets .* \[0, 2\]; got 3.0 in row 1"):
        likelihood.check_targets(np.array([0.0, 3.0]))


@pytest.mark.parametrize("shape", [(2, 4), (3,), (1, 2, 3)])
def test_latents_of_another_shape_are_refused(shape):
    with pytest.raises(ShapeMismatch, match=r"\(rows, 3\)"):
        Softmax(3).probabilities(Latent(mean=np.zeros(shape), variance=np.zeros(shape)))
