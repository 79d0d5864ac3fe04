"""Mixture of experts: q(z | x) = sum_l gate_l(x) N(z; B_l' (1, x), diag noise_l),  gate(x) = softmax_l v_l' (1, x).

Jacobs, Jordan, Nowlan and Hinton 1991; Jordan and Xu 1995. Learnt, as mixtures are, between the log likelihood
L = sum log q(z | x) of the targets and the harmony H = sum p log q(z, l | x) = L - entropy of the labels:

    F = matching L + (1 - matching) H        has the slope sum w grad log q(z, l | x)
    w = p (1 + (1 - matching) delta),        delta = log q(z, l | x) - its mean under p,  p = q(l | x, z)

Slopes, noises and gates take turns. Each moves along its slope of F, in the metric that p gives: a whole step is least
squares with the weights p, the variances of what they leave, and Newton's step of the logistic regression on p, which
is EM if matching is 1. A step that lowers F is halved, so no weight needs to be clipped, and where it rests F is level.

The alternative mixture of experts (Xu, Jordan and Hinton 1995) is a mixture of (x, z), with gates share_l q(x | l):
where learning may start.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from bayou.contracts import Matrix, Vector
from bayou.mixtures.gaussians import Gaussians, log_joint, with_covariance
from bayou.mixtures.labels import yang

TOLERANCE = 1e-10  # of F per row, gained by a round
HALVINGS = 30
LEAST_FACTOR = 0.1  # by which a variance may shrink in one step
GATE_STEPS = 50  # of a start's regression
EQUAL = 1e-9  # covariances, relative to their mean


class Experts(NamedTuple):
    """Gates (expert, 1 + inputs), slopes (expert, 1 + inputs, targets), noise variances (expert, targets)."""

    gate: Matrix
    slope: NDArray[np.float64]
    noise: Matrix


class WeakPrior(NamedTuple):
    """For columns of unit variance: precisions of gates, and of slopes in units of the noise; noises as if of so many
    rows more, with this variance. It keeps gates finite that could be steps, and noises of experts with few rows.
    """

    gate: float = 1e-6
    slope: float = 1e-6
    strength: float = 1.0
    scale: float = 1e-3


class _Look(NamedTuple):
    """What steps need of the rows: probabilities, weights, the objective, residuals (row, expert, target), gates."""

    probability: Matrix
    weight: Matrix
    value: float
    residual: NDArray[np.float64]
    gate: Matrix


def gate_log_probabilities(experts: Experts, x: Matrix) -> Matrix:
    """Log of the share that each expert has at each row: (row, expert)."""
    return np.asarray(log_softmax(_affine(experts.gate.T, x), axis=1))


def expert_means(experts: Experts, x: Matrix) -> NDArray[np.float64]:
    """What each expert expects: (row, expert, target)."""
    k, _, dz = experts.slope.shape
    flat = experts.slope.transpose(1, 0, 2).reshape(-1, k * dz)
    return _affine(flat, x).reshape(len(x), k, dz)


def log_joint_of_experts(experts: Experts, x: Matrix, z: Matrix) -> Matrix:
    """log gate + log density of each row's targets by each expert: (row, expert)."""
    return gate_log_probabilities(experts, x) + _log_densities(experts, z[:, None, :] - expert_means(experts, x))


def expert_regression(experts: Experts, x: Matrix) -> tuple[Matrix, Matrix]:
    """Mean and variance of the targets, given the inputs: (row, target) each."""
    gate = np.exp(gate_log_probabilities(experts, x))
    each = expert_means(experts, x)
    mean = np.einsum("nk,nkz->nz", gate, each)
    between = np.einsum("nk,nkz->nz", gate, (each - mean[:, None, :]) ** 2)
    return mean, gate @ experts.noise + between


def experts_objective(experts: Experts, x: Matrix, z: Matrix, matching: float, prior: WeakPrior | None = None) -> float:
    """F, and the log density of the weak prior but for its constants."""
    return _look(experts, _with_one(x), z, matching, prior or WeakPrior()).value


def learn_experts(
    x: Matrix, z: Matrix, start: Experts, matching: float, steps: int = 500, prior: WeakPrior | None = None
) -> Experts:
    """As many experts as at the start, after so many rounds at most; F rises in each. Columns are standardised."""
    weak, full = prior or WeakPrior(), _with_one(x)
    experts, seen = start, _look(start, full, z, matching, weak)
    for _ in range(steps):
        before = seen.value
        for towards in (_slopes, _noises, _gates):
            experts, seen = _step(experts, seen, towards(experts, seen, full, z, weak), full, z, matching, weak)
        if seen.value - before <= TOLERANCE * len(x):
            break
    return experts


def experts_from_gaussians(clusters: Gaussians, d: int, x: Matrix | None = None) -> Experts:
    """The experts of a mixture of (x, z), of which the first d columns are x: a regression in each cluster.

    Gates are exact if all clusters have the same covariance of x. Else they are the logistic regression on whose each
    x is, over given rows or, without, over points that have the means and covariances of the clusters.
    """
    mean, covariance = clusters.mean, clusters.covariance
    inputs = covariance[:, :d, :d]
    by_input = np.linalg.solve(inputs, covariance[:, :d, d:])
    intercept = mean[:, d:] - np.einsum("kiz,ki->kz", by_input, mean[:, :d])
    left = covariance[:, d:, d:] - np.einsum("kiz,kij->kzj", by_input, covariance[:, :d, d:])
    noise = np.diagonal(left, axis1=1, axis2=2)
    noise = np.maximum(noise, 1e-12 * np.diagonal(covariance, axis1=1, axis2=2)[:, d:])  # rounding
    slope = np.concatenate([intercept[:, None, :], by_input], axis=1)
    pooled = np.einsum("k,kij->ij", clusters.share, inputs)
    by_mean = np.linalg.solve(pooled, mean[:, :d].T).T
    with np.errstate(divide="ignore"):
        bias = np.maximum(np.log(clusters.share), -700.0) - 0.5 * np.sum(by_mean * mean[:, :d], axis=1)
    gate = np.column_stack([bias, by_mean])
    if float(np.max(np.abs(inputs - pooled))) > EQUAL * float(np.max(np.abs(pooled))):
        gate = _fitted_gate(gate, with_covariance(clusters.share, mean[:, :d], inputs), x)
    return Experts(gate, slope, noise)


def _fitted_gate(gate: Matrix, clusters: Gaussians, x: Matrix | None) -> Matrix:
    """Newton's steps of the logistic regression on the labels of x, from a gate; never to one that fits less."""
    if x is None:
        x, mass = _cubature(clusters)
    else:
        mass = np.ones(len(x))
    full, told, precision = _with_one(x), yang(log_joint(clusters, x), 1.0).probability, WeakPrior().gate

    def fit(candidate: Matrix) -> float:
        penalty = 0.5 * precision * float(np.sum(candidate**2))
        return float(np.sum(mass @ (told * log_softmax(full @ candidate.T, axis=1)))) - penalty

    gate = gate - gate.mean(axis=0)
    if fit(gate) < fit(np.zeros_like(gate)):  # a pooled covariance may lead far astray
        gate = np.zeros_like(gate)
    value = fit(gate)
    for _ in range(GATE_STEPS):
        shares = np.exp(log_softmax(full @ gate.T, axis=1))
        direction = _newton_gate(gate, full, told - shares, shares, precision, mass)
        rate, before = 1.0, value
        for _ in range(HALVINGS):
            reached = fit(gate + rate * direction)
            if reached >= value:
                gate, value = gate + rate * direction, reached
                break
            rate *= 0.5
        if value - before <= TOLERANCE * len(x):
            break
    return gate


def _cubature(clusters: Gaussians) -> tuple[Matrix, Vector]:
    """Points and their weights, with the clusters' means and covariances: each mean, and pairs about it on its axes."""
    k, d = clusters.mean.shape
    lower = np.linalg.cholesky(clusters.covariance).transpose(0, 2, 1)
    reach = math.sqrt(d + 1.0) * lower
    steps = np.concatenate([np.zeros((k, 1, d)), reach, -reach], axis=1)
    each = np.append(1.0, np.full(2 * d, 0.5)) / (d + 1.0)
    return (clusters.mean[:, None, :] + steps).reshape(-1, d), steps.shape[0] * steps.shape[1] * np.outer(
        clusters.share, each
    ).ravel()


def _with_one(x: Matrix) -> Matrix:
    return np.column_stack([np.ones(len(x)), x])


def _affine(weights: Matrix, x: Matrix) -> Matrix:
    return np.asarray(x @ weights[1:] + weights[0])


def _log_densities(experts: Experts, residual: NDArray[np.float64]) -> Matrix:
    squares = np.einsum("nkz,kz->nk", residual**2, 1.0 / experts.noise)
    return np.asarray(-0.5 * (squares + np.log(2.0 * math.pi * experts.noise).sum(axis=1)))


def _look(experts: Experts, full: Matrix, z: Matrix, matching: float, prior: WeakPrior) -> _Look:
    x = full[:, 1:]
    residual = z[:, None, :] - expert_means(experts, x)
    gate = gate_log_probabilities(experts, x)
    joint = gate + _log_densities(experts, residual)
    labels = yang(joint, 1.0)
    p = labels.probability
    weight = p
    if matching != 1.0:
        weight = p * (1.0 + (1.0 - matching) * (joint - np.sum(p * joint, axis=1, keepdims=True)))
    value = matching * labels.log_likelihood + (1.0 - matching) * labels.harmony
    spread = prior.slope * np.sum(experts.slope**2, axis=1) + prior.strength * prior.scale
    value -= 0.5 * prior.gate * float(np.sum(experts.gate**2))
    value -= 0.5 * float(np.sum(spread / experts.noise + prior.strength * np.log(experts.noise)))
    return _Look(p, weight, value, residual, np.exp(gate))


def _step(
    experts: Experts, seen: _Look, target: Experts, full: Matrix, z: Matrix, matching: float, prior: WeakPrior
) -> tuple[Experts, _Look]:
    """To the target, or the half, the quarter, ... of the way, or not at all: where F is not lower."""
    rate = 1.0
    for _ in range(HALVINGS):
        tried = Experts(*(old + rate * (new - old) for old, new in zip(experts, target, strict=True)))
        there = _look(tried, full, z, matching, prior)
        if there.value >= seen.value:
            return tried, there
        rate *= 0.5
    return experts, seen


def _slopes(experts: Experts, seen: _Look, full: Matrix, z: Matrix, prior: WeakPrior) -> Experts:
    """Least squares of each expert, with the weights of p; of which those of w take their part of the residuals."""
    slope = experts.slope.copy()
    ridge = prior.slope * np.eye(full.shape[1])
    for k in range(len(slope)):
        gram = (full * seen.probability[:, k : k + 1]).T @ full + ridge
        pull = full.T @ (seen.weight[:, k : k + 1] * seen.residual[:, k]) - prior.slope * slope[k]
        slope[k] += np.linalg.solve(gram, pull)
    return experts._replace(slope=slope)


def _noises(experts: Experts, seen: _Look, full: Matrix, z: Matrix, prior: WeakPrior) -> Experts:
    """The variance that each expert leaves."""
    noise = experts.noise
    excess = np.einsum("nk,nkz->kz", seen.weight, seen.residual**2) - seen.weight.sum(axis=0)[:, None] * noise
    spread = prior.slope * np.sum(experts.slope**2, axis=1) + prior.strength * prior.scale
    rows = seen.probability.sum(axis=0)[:, None] + prior.strength
    moved = noise + (excess + spread - prior.strength * noise) / rows
    return experts._replace(noise=np.maximum(moved, LEAST_FACTOR * noise))


def _gates(experts: Experts, seen: _Look, full: Matrix, z: Matrix, prior: WeakPrior) -> Experts:
    """Newton's step of the logistic regression on the labels."""
    direction = _newton_gate(experts.gate, full, seen.weight - seen.gate, seen.gate, prior.gate, np.ones(len(full)))
    return experts._replace(gate=experts.gate + direction)


def _newton_gate(gate: Matrix, full: Matrix, error: Matrix, shares: Matrix, precision: float, mass: Vector) -> Matrix:
    """Curvature^-1 slope, the curvature being sum mass (diag(shares) - shares shares') x full full' + precision I."""
    k, d = gate.shape
    curvature = np.empty((k, d, k, d))
    for i in range(k):
        for j in range(i + 1):
            each = mass * shares[:, i] * (float(i == j) - shares[:, j])
            curvature[i, :, j, :] = curvature[j, :, i, :] = (full * each[:, None]).T @ full
    flat = curvature.reshape(k * d, k * d)
    flat[np.diag_indices(k * d)] += precision
    slope = (error * mass[:, None]).T @ full - precision * gate
    return np.asarray(np.linalg.solve(flat, slope.ravel()).reshape(k, d), dtype=np.float64)
