"""Harmony learning of a mixture: how many clusters there are is learnt with them.

Ying is the mixture, q(x, l) = share_l q(x | l). Yang tells for each point its cluster, p = q(l | x). Between the log
likelihood L = sum log q(x) and the harmony H = sum p log q(x, l) = L - entropy of the labels, with ``matching`` from 0
(harmony) to 1 (maximum likelihood),

    F = matching L + (1 - matching) H       has the gradient of the complete data with the weights
    w = p (1 + (1 - matching) delta),       delta = log q(x, l) - its mean under p

which are clipped at zero here, so that covariances stay positive (Xu 2007; the weights of which EM has p). A step moves
the sums over points towards those with the weights as they are now. Then the structure: merge, drop or split, whatever
raises the evidence of the clusters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from bayou.contracts import Matrix, Vector
from bayou.mixtures.all_rows import AllRows, Choice, Cut, HeldRows, all_rows
from bayou.mixtures.evidence import Prior, Statistics, first_prior, learnt_prior, log_evidence, log_shares
from bayou.mixtures.gaussians import Gaussians, gaussians_of, with_covariance
from bayou.mixtures.shapes import FULL
from bayou.mixtures.sums import weighed_sums

RATE, RATE_OF_MOVES, SETTLING_RATE = 0.3, 0.7, 0.5
MOST_STEPS, FEWEST_STEPS, HARMONY_STEPS, SETTLING_STEPS = 150, 20, 30, 30
STEPS_OF_MERGE, STEPS_OF_SPLIT = 12, 24
TOLERANCE = 1e-5
SMALLEST_SHARE = 0.01
CANDIDATES = 3  # merges, and splits, that are tried at a time
AXES = 2  # along which a cluster may be cut
MOST_ROUNDS = 3
MOST_MOVES = 200
FIRST_ROWS = 5000  # of more rows than these, so many drawn at random go first


class Mixture(NamedTuple):
    """What was learnt: the sums that tell it, the clusters, and the prior of their covariances."""

    statistics: Statistics
    clusters: Gaussians
    prior: Prior


Rows: TypeAlias = Matrix | AllRows
Way: TypeAlias = Callable[[AllRows, Mixture, float], list[Mixture]]


def least_share(n: int, d: int) -> float:
    """A cluster of a smaller share is none."""
    return max(min(d + 1, 8) / n, SMALLEST_SHARE)


def flow(
    rows: Rows, mixture: Mixture, matching: float, rate: float, steps: int, settle: bool = True, nearest: int = 0
) -> Mixture:
    """Let the clusters move, by so many steps at most; those that vanish are gone."""
    statistics, clusters, prior = mixture
    points, choice = all_rows(rows), Choice(nearest)
    smallest, before = least_share(*points.shape), -np.inf
    for step in range(steps):
        fresh, _, harmony = points.sums(clusters, matching, nearest, choice.now(clusters))
        statistics = Statistics(*((1.0 - rate) * old + rate * new for old, new in zip(statistics, fresh, strict=True)))
        gone = np.flatnonzero(statistics.n < smallest * points.shape[0])
        if gone.size and gone.size < statistics.n.size:
            statistics, before = statistics.without(*gone), -np.inf
        clusters = gaussians_of(statistics, prior)
        if settle and step >= FEWEST_STEPS and abs(harmony - before) < TOLERANCE * rate * abs(harmony):
            break
        before = harmony
    return Mixture(statistics, clusters, prior)


def objective(rows: Rows, mixture: Mixture, matching: float, nearest: int = 0) -> float:
    """The evidence of the clusters; with matching, of labels that are not known, too."""
    statistics, log_likelihood, harmony = all_rows(rows).sums(mixture.clusters, 1.0, nearest)
    value = float(log_evidence(statistics, mixture.prior).sum()) + log_shares(statistics.n)
    return value + matching * (log_likelihood - harmony)


def moved(rows: Rows, mixture: Mixture, matching: float, n_clusters: int, nearest: int = 0) -> Mixture:
    """Merge, drop and split into at most so many, one after the other, as long as the objective rises."""
    points = all_rows(rows)
    value = objective(points, mixture, matching, nearest)
    for _ in range(MOST_MOVES):
        ways = (_simpler, STEPS_OF_MERGE), (_finer, STEPS_OF_SPLIT)
        found = _better(points, mixture, matching, value, nearest, ways[: 1 + (mixture.statistics.n.size < n_clusters)])
        if found is None:
            return mixture
        mixture, value = found
    return mixture


def _better(
    rows: AllRows, mixture: Mixture, matching: float, value: float, nearest: int, ways: tuple[tuple[Way, int], ...]
) -> tuple[Mixture, float] | None:
    """The best of the mixtures that one way leads to, else of those by the next, if it is better."""
    for others, steps in ways:
        candidates = others(rows, mixture, matching)
        tried = [flow(rows, candidate, matching, RATE_OF_MOVES, steps, False, nearest) for candidate in candidates]
        valued = [(objective(rows, candidate, matching, nearest), candidate) for candidate in tried]
        if valued:
            best, candidate = max(valued, key=lambda pair: pair[0])
            if best > value:
                return candidate, best
    return None


def _simpler(_rows: AllRows, mixture: Mixture, _matching: float) -> list[Mixture]:
    """With a pair of clusters as one, or without the smallest."""
    statistics, _, prior = mixture
    k = statistics.n.size
    if k == 1:
        return []
    alone = log_evidence(statistics, prior)
    first, second = np.triu_indices(k, 1)
    together = log_evidence(Statistics(*(part[first] + part[second] for part in statistics)), prior)
    order = np.argsort(-(together - alone[first] - alone[second]), kind="stable")
    found = []
    for i, j in zip(first[order[:CANDIDATES]].tolist(), second[order[:CANDIDATES]].tolist(), strict=True):
        found.append(statistics.without(i, j).beside(statistics.joined(i, j)))
    found.append(statistics.without(int(np.argmin(statistics.n))))
    return [Mixture(candidate, gaussians_of(candidate, prior), prior) for candidate in found]


def _finer(rows: AllRows, mixture: Mixture, matching: float) -> list[Mixture]:
    """With a cluster cut through its mean, along one of its leading axes: those whose points gain the most by it."""
    statistics, clusters, _ = mixture
    d = rows.shape[1]
    owners: list[int] = []
    candidates: list[Mixture] = []
    for k in np.flatnonzero(statistics.n >= 4 * min(d + 1, 8)).tolist():
        values, vectors = np.linalg.eigh(clusters.covariance[k])
        for axis in range(1, min(AXES, d) + 1):
            owners.append(k)
            candidates.append(cut(mixture, k, float(np.sqrt(values[-axis])), vectors[:, -axis]))
    cuts = [Cut(k, candidate.clusters) for k, candidate in zip(owners, candidates, strict=True)]
    gains, owned = rows.gains(clusters, cuts, matching)
    found = [(float(gains[place]), place) for place, k in enumerate(owners) if owned[k]]
    return [candidates[place] for _, place in sorted(found, reverse=True)[:CANDIDATES]]


def cut(mixture: Mixture, k: int, deviation: float, axis: Vector) -> Mixture:
    """With one cluster in two halves."""
    statistics, clusters, prior = mixture
    halves = halved(float(statistics.n[k]), clusters.mean[k], clusters.covariance[k], deviation, axis)
    finer = statistics.without(k).beside(halves)
    return Mixture(finer, gaussians_of(finer, prior), prior)


def halved(n: float, mean: Vector, covariance: Matrix, deviation: float, axis: Vector) -> Statistics:
    """The halves of a normal cluster that is cut through its mean: where they lie, and how wide they are."""
    shift = np.sqrt(2.0 / np.pi) * deviation * axis
    means = np.stack([mean - shift, mean + shift])
    inner = covariance - np.outer(shift, shift)
    s2 = 0.5 * n * (inner + np.einsum("ki,kj->kij", means, means))
    return Statistics(np.full(2, 0.5 * n), 0.5 * n * means, s2)


def broad_start(rows: Matrix, prior: Prior, n_clusters: int, rng: np.random.Generator) -> Mixture:
    """As many clusters as there may be, each as wide as all of the data, about points drawn from them."""
    n, d = rows.shape
    k = min(n_clusters, n)
    mean = rows[rng.choice(n, k, replace=False)]
    covariance = np.atleast_2d(np.cov(rows.T, bias=True)) + 1e-9 * np.eye(d)
    s2 = n / k * (covariance + np.einsum("ki,kj->kij", mean, mean))
    statistics = Statistics(np.full(k, n / k), n / k * mean, s2)
    clusters = with_covariance(np.full(k, 1.0 / k), mean, np.tile(covariance, (k, 1, 1)))
    return Mixture(statistics, clusters, prior)


def learn_mixture(
    rows: Rows,
    n_clusters: int,
    matching: float,
    rng: np.random.Generator,
    shape: int = FULL,
    n_inputs: int = 0,
    nearest: int = 0,
) -> Mixture:
    """The mixture of at most so many clusters that standardised rows tell.

    First by matching, in which no cluster is lost; then, if harmony is asked for, by that. Of very many rows, some tell
    how many clusters there are; whether more or fewer are better is then seen on all.
    """
    points = all_rows(rows)
    n_rows, d = points.shape
    if n_rows > FIRST_ROWS:
        some = points.drawn(rng.choice(n_rows, FIRST_ROWS, replace=False))
        first = learn_mixture(some, n_clusters, matching, rng, shape, n_inputs, nearest)
        statistics = points.sums(first.clusters, matching, nearest).statistics
        mixture = Mixture(statistics, gaussians_of(statistics, first.prior), first.prior)
        mixture = flow(points, mixture, matching, RATE_OF_MOVES, MOST_STEPS, nearest=nearest)
    else:
        points = HeldRows(points.drawn(None))  # so few are best held
        mixture = broad_start(points.drawn(None), first_prior(n_clusters, d, shape, n_inputs), n_clusters, rng)
        mixture = flow(points, mixture, 1.0, RATE, MOST_STEPS)
        mixture = moved(points, mixture, 1.0, n_clusters, nearest)
        mixture = moved(points, with_learnt_prior(mixture), 1.0, n_clusters, nearest)
        if matching < 1.0:
            mixture = flow(points, mixture, matching, RATE, HARMONY_STEPS, nearest=nearest)
            mixture = moved(points, mixture, matching, n_clusters, nearest)
    for _ in range(MOST_ROUNDS):
        k = mixture.statistics.n.size
        mixture = moved(points, with_learnt_prior(mixture), matching, n_clusters, nearest)
        if mixture.statistics.n.size == k:
            break
    return mixture


def with_learnt_prior(mixture: Mixture) -> Mixture:
    """The same clusters under the prior that they tell."""
    prior = learnt_prior(mixture.statistics, mixture.prior)
    return Mixture(mixture.statistics, gaussians_of(mixture.statistics, prior), prior)


def settled(rows: Matrix, mixture: Mixture, read: Callable[[Statistics], Gaussians], matching: float) -> Mixture:
    """Let clusters whose number is found move on, as what is read off their sums: subspaces, regressions."""
    statistics, prior = mixture.statistics, mixture.prior
    clusters = read(statistics)
    for _ in range(SETTLING_STEPS):
        fresh = weighed_sums(rows, clusters, matching).statistics
        if np.any(fresh.n < least_share(*rows.shape) * len(rows)):
            break
        statistics = Statistics(
            *((1.0 - SETTLING_RATE) * old + SETTLING_RATE * new for old, new in zip(statistics, fresh, strict=True))
        )
        clusters = read(statistics)
    return Mixture(statistics, clusters, prior)
