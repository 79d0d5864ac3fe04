"""Mixtures of experts: slopes by differences, least squares, known parameters, densities of the joint mixture."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import scipy.stats
from scipy.optimize import minimize
from scipy.special import logsumexp

from bayou.mixtures import experts as module
from bayou.mixtures.evidence import Prior
from bayou.mixtures.experts import (
    Experts,
    WeakPrior,
    expert_means,
    expert_regression,
    experts_from_gaussians,
    experts_objective,
    gate_log_probabilities,
    learn_experts,
    log_joint_of_experts,
)
from bayou.mixtures.gaussians import collect, gaussians_of, log_joint, with_covariance

TRUE = Experts(
    np.array([[0.25, 0.75], [-0.25, -0.75]]),
    np.array([[[1.0], [1.0]], [[-1.0], [0.5]]]),
    np.array([[0.25], [0.09]]),
)
NONE = WeakPrior(1e-9, 1e-9, 1e-9, 1e-9)


def drawn(experts: Experts, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs of unit variance, and targets that the experts generate."""
    rng = np.random.default_rng(seed)
    k, d, dz = experts.slope.shape
    x = rng.normal(size=(n, d - 1))
    labels = np.array([rng.choice(k, p=np.exp(row)) for row in gate_log_probabilities(experts, x)])
    z = expert_means(experts, x)[np.arange(n), labels] + rng.normal(size=(n, dz)) * np.sqrt(experts.noise[labels])
    return x, z


def some_experts(k: int, d: int, dz: int, seed: int) -> Experts:
    rng = np.random.default_rng(seed)
    return Experts(rng.normal(size=(k, d + 1)), rng.normal(size=(k, d + 1, dz)), rng.uniform(0.2, 1.0, size=(k, dz)))


def written_out(experts: Experts, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """log gate + log density, a row and an expert at a time."""
    values = np.empty((len(x), len(experts.gate)))
    for t, (row, targets) in enumerate(zip(x, z, strict=True)):
        given = np.append(1.0, row)
        scores = [float(v @ given) for v in experts.gate]
        for k, (slope, noise) in enumerate(zip(experts.slope, experts.noise, strict=True)):
            density = scipy.stats.multivariate_normal(slope.T @ given, np.diag(noise)).logpdf(targets)
            values[t, k] = scores[k] - logsumexp(scores) + density
    return values


def packed(experts: Experts) -> np.ndarray:
    return np.concatenate([experts.gate.ravel(), experts.slope.ravel(), np.log(experts.noise).ravel()])


def unpacked(numbers: np.ndarray, like: Experts) -> Experts:
    gate, slope, noise = np.split(numbers, [like.gate.size, like.gate.size + like.slope.size])
    return Experts(
        gate.reshape(like.gate.shape), slope.reshape(like.slope.shape), np.exp(noise).reshape(like.noise.shape)
    )


def slopes(objective: Callable[[np.ndarray], float], numbers: np.ndarray, step: float = 1e-3) -> np.ndarray:
    """Central differences, of fourth order."""
    found = np.empty(numbers.size)
    for j in range(numbers.size):
        values = []
        for shift in (-2.0, -1.0, 1.0, 2.0):
            moved = numbers.copy()
            moved[j] += shift * step
            values.append(objective(moved))
        found[j] = (values[0] - 8.0 * values[1] + 8.0 * values[2] - values[3]) / (12.0 * step)
    return found


@pytest.mark.parametrize(("d", "dz"), [(1, 1), (3, 2), (0, 1)])
def test_densities_are_scipys(d: int, dz: int) -> None:
    experts = some_experts(3, d, dz, 0)
    rng = np.random.default_rng(1)
    x, z = rng.normal(size=(12, d)), rng.normal(size=(12, dz))
    np.testing.assert_allclose(log_joint_of_experts(experts, x, z), written_out(experts, x, z), rtol=1e-10)
    np.testing.assert_allclose(np.exp(gate_log_probabilities(experts, x)).sum(axis=1), 1.0)


def test_the_objective_is_likelihood_less_entropy_and_prior() -> None:
    experts, prior = some_experts(3, 2, 2, 0), WeakPrior(0.3, 0.2, 1.5, 0.7)
    rng = np.random.default_rng(1)
    x, z = rng.normal(size=(12, 2)), rng.normal(size=(12, 2))
    joint = written_out(experts, x, z)
    p = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    wanted = float(np.sum(logsumexp(joint, axis=1))) + 0.6 * float(np.sum(p * np.log(p)))
    wanted += float(
        np.sum(scipy.stats.norm.logpdf(experts.gate, scale=0.3**-0.5) - 0.5 * math.log(0.3 / (2.0 * np.pi)))
    )
    for noise, slope in zip(experts.noise.ravel(), experts.slope.transpose(0, 2, 1).reshape(-1, 3), strict=True):
        wanted -= 0.5 * 0.2 * float(slope @ slope) / noise + 0.75 * (0.7 / noise + math.log(noise))
    assert experts_objective(experts, x, z, 0.4, prior) == pytest.approx(wanted, rel=1e-10)


def test_regression_is_that_of_samples() -> None:
    """400,000 targets at each of four inputs: standard errors below 0.005."""
    experts, rng = some_experts(3, 2, 2, 3), np.random.default_rng(0)
    x = rng.normal(size=(4, 2))
    mean, variance = expert_regression(experts, x)
    for t in range(4):
        labels = rng.choice(3, size=400_000, p=np.exp(gate_log_probabilities(experts, x[t : t + 1])[0]))
        centres = expert_means(experts, x[t : t + 1])[0]
        z = centres[labels] + rng.normal(size=(400_000, 2)) * np.sqrt(experts.noise[labels])
        np.testing.assert_allclose(mean[t], z.mean(axis=0), atol=0.02)
        np.testing.assert_allclose(variance[t], z.var(axis=0), rtol=0.02)


def test_one_expert_is_least_squares() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 3))
    z = x @ rng.normal(size=(3, 2)) + 0.3 + 0.2 * rng.normal(size=(50, 2))
    found = learn_experts(x, z, Experts(np.zeros((1, 4)), np.zeros((1, 4, 2)), np.ones((1, 2))), 1.0)
    wanted, residues, *_ = np.linalg.lstsq(np.column_stack([np.ones(50), x]), z, rcond=None)
    np.testing.assert_allclose(found.slope[0], wanted, atol=1e-6)
    np.testing.assert_allclose(found.noise[0], (residues + 1e-3) / 51.0, rtol=1e-4)
    np.testing.assert_array_equal(found.gate, 0.0)


@pytest.mark.parametrize("matching", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("dz", [1, 2])
def test_learning_ends_where_the_objective_is_level(matching: float, dz: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By differences in all numbers; at the start it is not level."""
    monkeypatch.setattr(module, "TOLERANCE", 1e-15)
    true = Experts(
        np.array([[0.0, 2.0], [0.0, -2.0]]),
        np.array([[[2.0] * dz, [1.0] * dz], [[-2.0] * dz, [0.5] * dz]]),
        np.full((2, dz), 0.3),
    )
    x, z = drawn(true, 60, 0)
    prior = WeakPrior(gate=0.05, slope=0.1, strength=1.0, scale=0.1)
    start = Experts(0.5 * true.gate, true.slope + 0.3, np.ones((2, dz)))
    found = learn_experts(x, z, start, matching, 3000, prior)

    def objective(numbers: np.ndarray) -> float:
        return experts_objective(unpacked(numbers, start), x, z, matching, prior)

    assert np.max(np.abs(slopes(objective, packed(found)))) < 1e-4
    assert np.max(np.abs(slopes(objective, packed(start)))) > 1.0


@pytest.mark.parametrize("matching", [0.0, 0.3, 1.0])
def test_the_objective_rises_in_every_round(matching: float) -> None:
    x, z = drawn(some_experts(4, 2, 2, 5), 200, 0)
    found = some_experts(4, 2, 2, 6)
    values = [experts_objective(found, x, z, matching)]
    for _ in range(40):
        found = learn_experts(x, z, found, matching, 1)
        values.append(experts_objective(found, x, z, matching))
    assert np.all(np.diff(values) >= 0.0)
    assert values[-1] > values[0] + 50.0


def test_a_round_of_matching_is_a_step_of_em() -> None:
    """Slopes by weighted least squares, scaled rows; then variances of what they leave, with the labels after that."""
    x, z = drawn(TRUE, 300, 1)
    start = Experts(0.5 * TRUE.gate, TRUE.slope + 0.2, np.ones((2, 1)))
    found = learn_experts(x, z, start, 1.0, 1, NONE)
    full = np.column_stack([np.ones(300), x])

    def labels(experts: Experts) -> np.ndarray:
        joint = written_out(experts, x, z)
        return np.exp(joint - logsumexp(joint, axis=1, keepdims=True))

    p = labels(start)
    for k in range(2):
        root = np.sqrt(p[:, k : k + 1])
        np.testing.assert_allclose(found.slope[k], np.linalg.lstsq(root * full, root * z, rcond=None)[0], atol=1e-8)
    p = labels(start._replace(slope=found.slope))
    residual = z[:, :, None] - np.einsum("ni,kiz->nzk", full, found.slope)
    np.testing.assert_allclose(found.noise[:, 0], np.sum(p * residual[:, 0] ** 2, axis=0) / p.sum(axis=0), rtol=1e-7)


def test_known_experts_are_found_within_their_standard_errors() -> None:
    """4,000 rows; errors by the curvature of the log likelihood, from differences."""
    x, z = drawn(TRUE, 4000, 2)
    found = learn_experts(x, z, Experts(0.2 * TRUE.gate, 0.5 * TRUE.slope, np.ones((2, 1))), 1.0, 2000, NONE)

    def free(experts: Experts) -> np.ndarray:
        numbers = packed(experts)
        return np.concatenate([experts.gate[0] - experts.gate[1], numbers[4:]])

    def log_likelihood(numbers: np.ndarray) -> float:
        both = np.concatenate([0.5 * numbers[:2], -0.5 * numbers[:2], numbers[2:]])
        return float(np.sum(logsumexp(log_joint_of_experts(unpacked(both, TRUE), x, z), axis=1)))

    estimate = free(found)
    information = -np.stack(
        [
            (slopes(log_likelihood, estimate + shift) - slopes(log_likelihood, estimate - shift)) / 2e-3
            for shift in 1e-3 * np.eye(estimate.size)
        ]
    )
    errors = np.sqrt(np.diag(np.linalg.inv(0.5 * (information + information.T))))
    assert np.all(errors < 0.1)
    assert np.all(np.abs(estimate - free(TRUE)) < 4.0 * errors)
    np.testing.assert_allclose(slopes(log_likelihood, estimate), 0.0, atol=0.05)


def test_pieces_of_a_line() -> None:
    """Four pieces with jumps: closer to the function than one line, by far, and no noise too small."""
    rng = np.random.default_rng(0)

    def function(x: np.ndarray) -> np.ndarray:
        piece = np.clip(np.floor(x).astype(int) + 2, 0, 3)
        return np.array([1.0, -1.0, 2.0, 0.0])[piece] + np.array([0.5, 1.0, -1.0, 2.0])[piece] * (x - piece + 1.5)

    x = rng.uniform(-2.0, 2.0, size=800)
    z = function(x) + 0.1 * rng.normal(size=800)
    labels = np.floor(x).astype(int) + 2
    rows = np.column_stack([x, z])
    joint = gaussians_of(collect(rows, np.eye(4)[labels]), Prior(0.1, 1.0, 0.1))
    found = learn_experts(x[:, None], z[:, None], experts_from_gaussians(joint, 1, x[:, None]), 1.0)
    new = rng.uniform(-2.0, 2.0, size=2000)
    error = np.sqrt(np.mean((expert_regression(found, new[:, None])[0][:, 0] - function(new)) ** 2))
    line = np.sqrt(np.mean((np.polyval(np.polyfit(x, z, 1), new) - function(new)) ** 2))
    assert error < 0.15
    assert line > 0.8
    np.testing.assert_allclose(np.sqrt(found.noise), 0.1, rtol=0.15)


@pytest.mark.parametrize("matching", [0.0, 1.0])
def test_gates_of_separable_rows_stay_finite(matching: float) -> None:
    x = np.concatenate([np.linspace(-2.0, -1.0, 40), np.linspace(1.0, 2.0, 40)])[:, None]
    z = np.where(x < 0.0, -1.0, 1.0) + 0.1 * np.sin(50.0 * x)
    start = Experts(np.array([[0.0, -0.1], [0.0, 0.1]]), np.array([[[-0.5], [0.0]], [[0.5], [0.0]]]), np.ones((2, 1)))
    found = learn_experts(x, z, start, matching, 2000)
    assert np.max(np.abs(found.gate)) < 100.0
    assert np.max(np.abs(gate_log_probabilities(found, x).max(axis=1))) < 1e-3
    assert all(np.all(np.isfinite(part)) for part in found)


@pytest.mark.parametrize("matching", [0.0, 1.0])
def test_units_and_constant_columns_do_not_matter(matching: float) -> None:
    """Once standardised, a column of 1e6 or of 1e-6 is as any other; one that is always zero tells nothing."""
    x, z = drawn(some_experts(2, 2, 2, 1), 150, 1)
    start = some_experts(2, 2, 2, 2)
    wide = Experts(np.insert(start.gate, 3, 0.0, axis=1), np.insert(start.slope, 3, 0.0, axis=1), start.noise)

    def standardised(rows: np.ndarray) -> np.ndarray:
        spread = rows.std(axis=0)
        return (rows - rows.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)

    plain = learn_experts(standardised(x), standardised(z), start, matching, 100)
    units = np.column_stack([x * np.array([1e6, 1e-6]) + np.array([1e7, 1e-5]), np.full(150, 3.0)])
    other = learn_experts(standardised(units), standardised(z * 1e6), wide, matching, 100)
    for ours, theirs in zip(
        expert_regression(plain, standardised(x)), expert_regression(other, standardised(units)), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(other.slope[:, 3], 0.0, atol=1e-12)


@pytest.mark.parametrize("matching", [0.0, 1.0])
def test_fewer_rows_than_columns_and_experts_without_rows(matching: float) -> None:
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(4, 8)), rng.normal(size=(4, 1))
    start = some_experts(6, 8, 1, 0)
    start.gate[5] = [-800.0, *[0.0] * 8]
    found = learn_experts(x, z, start, matching, 200)
    assert all(np.all(np.isfinite(part)) for part in found)
    assert np.all(found.noise > 0.0)
    mean, variance = expert_regression(found, x)
    assert np.all(np.isfinite(mean))
    assert np.all(variance > 0.0)


def test_targets_far_away_leave_numbers() -> None:
    x, z = np.array([[0.0], [1e6], [-1e6]]), np.array([[1e6], [-1e6], [0.0]])
    found = learn_experts(x, z, some_experts(3, 1, 1, 0), 0.5, 50)
    assert all(np.all(np.isfinite(part)) for part in found)
    assert np.all(np.isfinite(expert_regression(found, 1e9 * x)))


def joint_mixture(equal: bool, dz: int = 1) -> tuple[np.ndarray, ...]:
    """Shares, means, covariances of (x, z), with two columns x; noises of z are independent, given x."""
    rng = np.random.default_rng(3)
    inputs = np.array([[1.0, 0.4], [0.4, 0.8]])
    covariances = []
    for k in range(3):
        of_x = inputs if equal else inputs * (0.5 + k) + 0.2 * k * np.eye(2)
        slope = rng.normal(size=(2, dz))
        across = of_x @ slope
        noise = np.diag(rng.uniform(0.1, 0.5, dz))
        covariances.append(np.block([[of_x, across], [across.T, slope.T @ of_x @ slope + noise]]))
    return np.array([0.2, 0.5, 0.3]), 1.5 * rng.normal(size=(3, 2 + dz)), np.stack(covariances)


@pytest.mark.parametrize("dz", [1, 2])
def test_experts_of_a_joint_mixture_are_its_conditional_density(dz: int) -> None:
    """Exactly, where covariances of x are equal: log q(x, z) - log q(x)."""
    share, mean, covariance = joint_mixture(equal=True, dz=dz)
    rows = 2.0 * np.random.default_rng(0).normal(size=(40, 2 + dz))
    found = experts_from_gaussians(with_covariance(share, mean, covariance), 2)
    alone = with_covariance(share, mean[:, :2], covariance[:, :2, :2])
    wanted = log_joint(with_covariance(share, mean, covariance), rows)
    wanted -= logsumexp(log_joint(alone, rows[:, :2]), axis=1, keepdims=True)
    np.testing.assert_allclose(log_joint_of_experts(found, rows[:, :2], rows[:, 2:]), wanted, rtol=1e-9)


def test_gates_of_unequal_covariances_are_the_best_linear_ones() -> None:
    """By scipy's optimum over the same rows; and close to it with no rows told: 2,000 rows of the mixture."""
    share, mean, covariance = joint_mixture(equal=False)
    rng = np.random.default_rng(0)
    labels = rng.choice(3, size=2000, p=share)
    rows = np.stack([rng.multivariate_normal(mean[k], covariance[k]) for k in labels])[:, :2]
    told = log_joint(with_covariance(share, mean[:, :2], covariance[:, :2, :2]), rows)
    told = np.exp(told - logsumexp(told, axis=1, keepdims=True))

    def loss(numbers: np.ndarray) -> float:
        scores = np.column_stack([np.ones(2000), rows]) @ numbers.reshape(3, 3).T
        cross = np.sum(told * (scores - logsumexp(scores, axis=1, keepdims=True)))
        return float(-cross + 0.5 * WeakPrior().gate * numbers @ numbers)

    joint = with_covariance(share, mean, covariance)
    best = minimize(loss, np.zeros(9), method="BFGS", options={"gtol": 1e-4})
    ours = loss(experts_from_gaussians(joint, 2, rows).gate.ravel())
    assert ours <= best.fun + 1e-6
    assert np.linalg.norm(slopes(loss, experts_from_gaussians(joint, 2, rows).gate.ravel())) < 1e-2
    without = experts_from_gaussians(joint, 2)
    entropy = -float(np.sum(told * np.log(np.maximum(told, 1e-300))))
    assert loss(without.gate.ravel()) - entropy < 2.0 * (ours - entropy)
    np.testing.assert_allclose(without.slope, experts_from_gaussians(joint, 2, rows).slope)


def test_harmony_sharpens_labels() -> None:
    """The labels' entropy is what harmony leaves out of the likelihood."""
    x, z = drawn(TRUE, 500, 4)
    start = Experts(0.5 * TRUE.gate, TRUE.slope, np.ones((2, 1)))
    entropies, likelihoods = [], []
    for matching in (1.0, 0.0):
        joint = log_joint_of_experts(learn_experts(x, z, start, matching), x, z)
        p = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
        entropies.append(-float(np.sum(p * np.log(np.maximum(p, 1e-300)))))
        likelihoods.append(float(np.sum(logsumexp(joint, axis=1))))
    assert entropies[1] < entropies[0]
    assert likelihoods[1] < likelihoods[0]
