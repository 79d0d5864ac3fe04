"""What is exact: the gradient (9), harmony as likelihood less entropy, matching as EM, and the bound (13).

Between the log likelihood L and the harmony H of a Gaussian mixture, F = matching L + (1 - matching) H has the gradient
sum w grad log q(x, l) in all that the mixture is made of, with w = p (1 + (1 - matching) delta) and p = q(l | x). These
weights sum to one per row, and may be negative; of two clusters the least is -0.0998.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit, logsumexp
from scipy.stats import multivariate_normal

from bayou.contracts import Matrix, Vector
from bayou.mixtures.evidence import Prior
from bayou.mixtures.gaussians import Gaussians, collect, gaussians_of, log_joint, with_covariance
from bayou.mixtures.labels import yang
from bayou.papers.claims import Claim, Effort, Experiment, Findings, judge
from bayou.papers.ensembles import Estimate
from bayou.papers.xu.literal import raw_weights

PAPER, ITEM = "xu", "(9), (13)"
N, D, K = 60, 3, 4
STEP = 1e-4
NO_PRIOR = Prior(1e-12, 1e-12, 1.0)
GRADIENT = Claim(
    PAPER, ITEM, "largest error of the gradient of H by (9), relative to the largest part of it", 0.0, "derived", 1e-7
)
FAMILY = Claim(
    PAPER, ITEM, "the same of 0.4 L + 0.6 H, with the weights p (1 + 0.6 delta)", 0.0, "derived", 1e-7
)  # fmt: skip
ENTROPY = Claim(
    PAPER, ITEM, "largest difference of H from L less the entropy of the labels, relative", 0.0, "derived", 1e-12
)
ONE = Claim(PAPER, ITEM, "largest difference from one of the sum of a row's weights", 0.0, "derived", 1e-12)
LEAST = Claim(PAPER, ITEM, "beside: the least weight that a row may have, of two clusters", -0.0998, "derived", 5e-5)
MATCHING = Claim(
    PAPER, ITEM, "largest difference of a share, mean or covariance after a step of matching and one of EM", 0.0,
    "derived", 1e-9,
)  # fmt: skip
BOUND = Claim(PAPER, ITEM, "share of 1,000 random p for which F of (13) is below L", 1.0, "stated", 0.0)
TOUCHES = Claim(
    PAPER, ITEM, "largest gap between F of (13) and L if p is the posterior, relative", 0.0, "stated", 1e-12
)
CLAIMS = (GRADIENT, FAMILY, ENTROPY, ONE, LEAST, MATCHING, BOUND, TOUCHES)


class State(NamedTuple):
    """Some rows and some mixture, neither of which knows of the other."""

    rows: Matrix
    clusters: Gaussians


def some_state(seed: int) -> State:
    """Clusters that overlap, so that weights are of every size."""
    rng = np.random.default_rng([seed, N, D, K])
    roots = rng.normal(size=(K, D, D))
    covariance = 0.5 * np.einsum("kij,klj->kil", roots, roots) + 0.5 * np.eye(D)
    return State(
        rng.normal(size=(N, D)), with_covariance(rng.dirichlet(np.full(K, 3.0)), rng.normal(size=(K, D)), covariance)
    )


def told(clusters: Gaussians) -> Vector:
    """All that a mixture is made of, as free numbers: log shares, means, and the lower halves of the covariances."""
    rows, columns = np.tril_indices(clusters.mean.shape[1])
    return np.concatenate(
        [np.log(clusters.share), clusters.mean.ravel(), clusters.covariance[:, rows, columns].ravel()]
    )


def made_of(numbers: Vector) -> Gaussians:
    """The mixture of which these are told; shares are made to sum to one."""
    share = np.exp(numbers[:K] - logsumexp(numbers[:K]))
    rows, columns = np.tril_indices(D)
    covariance = np.empty((K, D, D))
    covariance[:, rows, columns] = numbers[K + K * D :].reshape(K, -1)
    covariance[:, columns, rows] = covariance[:, rows, columns]
    return with_covariance(share, numbers[K : K + K * D].reshape(K, D), covariance)


def objective(joint: Matrix, matching: float) -> float:
    """matching L + (1 - matching) H, from log q(x, l)."""
    evidence = logsumexp(joint, axis=1)
    p = np.exp(joint - evidence[:, None])
    return float(matching * np.sum(evidence) + (1.0 - matching) * np.sum(p * joint))


def gradient(state: State, matching: float) -> Vector:
    """By (9): weights times what log q(x, l) has for a gradient."""
    rows, clusters = state
    w = raw_weights(log_joint(clusters, rows), matching)
    i, j = np.tril_indices(D)
    twice = np.where(i == j, 1.0, 2.0)  # what is below the diagonal stands above it, too
    means, halves = np.empty((K, D)), np.empty((K, i.size))
    for k in range(K):
        precision = np.linalg.inv(clusters.covariance[k])
        scores = (rows - clusters.mean[k]) @ precision
        means[k] = w[:, k] @ scores
        full = 0.5 * ((scores * w[:, k : k + 1]).T @ scores - w[:, k].sum() * precision)
        halves[k] = twice * full[i, j]
    return np.concatenate([w.sum(axis=0) - len(rows) * clusters.share, means.ravel(), halves.ravel()])


def differences(state: State, matching: float) -> Vector:
    """By differences of the objective itself, of fourth order."""
    numbers = told(state.clusters)
    found = np.empty_like(numbers)
    for place in range(numbers.size):
        values = []
        for steps in (-2.0, -1.0, 1.0, 2.0):
            moved = numbers.copy()
            moved[place] += steps * STEP
            values.append(objective(log_joint(made_of(moved), state.rows), matching))
        found[place] = (values[0] - 8.0 * values[1] + 8.0 * values[2] - values[3]) / (12.0 * STEP)
    return found


def error_of_gradient(state: State, matching: float) -> float:
    """The largest, relative to the largest part."""
    by_differences = differences(state, matching)
    apart = np.abs(gradient(state, matching) - by_differences)
    return float(np.max(apart) / np.max(np.abs(by_differences)))


def step_of_em(state: State) -> tuple[Vector, Matrix, list[Matrix]]:
    """Expectation and maximisation, as in any textbook."""
    rows, clusters = state
    densities = np.stack(
        [
            share * multivariate_normal(mean, covariance).pdf(rows)
            for share, mean, covariance in zip(clusters.share, clusters.mean, clusters.covariance, strict=True)
        ],
        axis=1,
    )
    p = densities / densities.sum(axis=1, keepdims=True)
    mean = np.stack([np.average(rows, axis=0, weights=p[:, k]) for k in range(K)])
    return p.mean(axis=0), mean, [np.cov(rows.T, aweights=p[:, k], bias=True) for k in range(K)]


def apart_from_em(state: State) -> float:
    """How far a step of matching at full rate, without a prior, is from that."""
    weights = yang(log_joint(state.clusters, state.rows), 1.0).weight
    ours = gaussians_of(collect(state.rows, weights), NO_PRIOR)
    parts = zip((ours.share, ours.mean, ours.covariance), step_of_em(state), strict=True)
    return max(float(np.max(np.abs(one - np.asarray(other)))) for one, other in parts)


def free_energy(joint: Matrix, p: Matrix) -> float:
    """F of (13)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.sum(np.where(p > 0.0, p * (joint - np.log(p)), 0.0)))


def least_weight() -> float:
    """Of two clusters: p (1 + (1 - p) a), where a is how far their log q(x, l) differ."""
    found = minimize_scalar(
        lambda a: expit(a) * (1.0 + expit(-a) * a), bounds=(-20.0, 0.0), method="bounded", options={"xatol": 1e-9}
    )
    return float(found.fun)


def run(effort: Effort) -> Findings:
    """On a few states, the largest of all differences."""
    found: dict[Claim, list[float]] = {claim: [] for claim in CLAIMS if claim not in (LEAST, BOUND)}
    below: list[bool] = []
    n_states = effort.replicas(full=20, quick=2)
    for replica in range(n_states):
        state = some_state(1000 * effort.seed + replica)
        joint = log_joint(state.clusters, state.rows)
        labels, likelihood = yang(joint, 0.0), float(np.sum(logsumexp(joint, axis=1)))
        p, w = labels.probability, raw_weights(joint)
        found[GRADIENT].append(error_of_gradient(state, 0.0))
        found[FAMILY].append(error_of_gradient(state, 0.4))
        found[ENTROPY].append(abs(1.0 - (likelihood + float(np.sum(p * np.log(p)))) / labels.harmony))
        found[ONE].append(float(np.max(np.abs(w.sum(axis=1) - 1.0))))
        found[MATCHING].append(apart_from_em(state))
        found[TOUCHES].append(abs(free_energy(joint, p) / likelihood - 1.0))
        rng = np.random.default_rng([effort.seed, replica])
        for _ in range(math.ceil(1000 / n_states)):
            below.append(free_energy(joint, rng.dirichlet(np.ones(K), N)) < likelihood)
    verdicts = {claim: judge(claim, None, Estimate(max(values), 0.0)) for claim, values in found.items()}
    verdicts[LEAST] = judge(LEAST, least_weight())
    verdicts[BOUND] = judge(BOUND, None, Estimate(float(np.mean(below)), 0.0))
    return Findings(tuple(verdicts[claim] for claim in CLAIMS))


EXPERIMENT = Experiment(ITEM, "the gradient of harmony, EM, and the free energy", CLAIMS, run)
