"""A mixture that is learnt from a stream: constant memory, clusters born, merged, split and dropped on the way.

The belief is the sums of `bayou.mixtures.evidence` for each cluster, to which each point adds its weights: a rate of
one over the points of a cluster follows of itself. A point that no cluster expects is held back; when enough of them
lie together, they are a cluster, if that makes them more probable than the clusters that there are. Now and then
clusters merge or split, if the evidence rises. Of merging the sums tell it. Of splitting the latest points do, which
are kept: they may lie in two places, or elsewhere than those before them, as in a stream that is sorted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv

from bayou.contracts import Matrix, Vector
from bayou.errors import ModelFileError
from bayou.mixtures.evidence import Prior, Statistics, learnt_prior, log_evidence, log_shares
from bayou.mixtures.gaussians import collect, gaussians_of, log_joint
from bayou.mixtures.harmony import Mixture, halved
from bayou.mixtures.labels import weigh
from bayou.mixtures.points import (
    HELD_BACK,
    N_HELD,
    N_RING,
    N_SEEN,
    StreamBelief,
    add,
    best_merge,
    flow_points,
    learn_points,
    look,
    newcomers,
    objective_of_points,
    owners_of,
    refresh,
)
from bayou.mixtures.sums import weighed_sums

UNEXPECTED = 0.999  # a point beyond this quantile of every cluster is held back
RING = 300  # latest points
LOOK, LATER_LOOK, SOON = 50, 100, 1000  # points after which to look at the structure: more often among the first
STEPS_OF_SPLIT, RATE_OF_SPLIT = 15, 0.7
GROWN = 1.5  # a cluster is looked at for a split when it has so many times the points that it had
LAGS = np.array([15, 25, 35, 50, 75, 100, 150, 200, 300])  # latest points of a cluster that may be another
BESIDE_SUMS = StreamBelief._fields[3:]
FEWEST = 0.5  # points below which a cluster is gone


class StreamOptions(NamedTuple):
    """What stays: the prior, how far between harmony and matching, the share that is forgotten with every point, how
    many clusters there may be, and, if above 0, of how many nearest clusters a point may be.
    """

    prior: Prior
    matching: float
    forgetting: float
    n_clusters: int
    nearest: int = 0


def begin_stream(mixture: Mixture, rows: Matrix) -> StreamBelief:
    """A stream that goes on where a batch of rows has ended."""
    d, latest = rows.shape[1], rows[-RING:]
    ring, tally = np.zeros((RING, d)), np.zeros(4)
    ring[: len(latest)] = latest
    tally[N_SEEN], tally[N_RING] = len(rows), len(latest)
    return _belief(mixture.statistics, mixture.prior, np.zeros((most_held(d) + 1, d)), ring, tally)


def most_held(d: int) -> int:
    """Of more points that are held back, the oldest is learnt after all."""
    return 4 * (d + 1) + 10


def _belief(statistics: Statistics, prior: Prior, held: Matrix, ring: Matrix, tally: Vector) -> StreamBelief:
    k, d = statistics.s1.shape
    n, s1, s2 = (np.array(part, order="C") for part in statistics)  # copies: a stream writes into its own
    mean, whitening, constant = np.empty((k, d)), np.zeros((k, d, d)), np.empty(k)
    belief = StreamBelief(n, s1, s2, mean, whitening, constant, np.zeros(k), held, ring, tally)
    refresh(belief, np.array(prior))
    return belief


def resumed(statistics: Statistics, kept: Mapping[str, NDArray[np.float64]]) -> StreamBelief:
    """A stream from the sums and what else was kept of it."""
    k, d = statistics.s1.shape
    clusters = {"mean": (k, d), "whitening": (k, d, d), "constant": (k,), "tested": (k,)}
    shapes = clusters | {"held": (most_held(d) + 1, d), "ring": (RING, d), "tally": (4,)}
    for name, shape in shapes.items():
        if kept[name].shape != shape or not np.isfinite(kept[name]).all():
            raise ModelFileError(f"`{name}` must be finite, of shape {shape}; got shape {kept[name].shape}.")
    if not (kept["tally"][N_HELD] <= most_held(d) and np.all(kept["tally"] >= 0.0)):
        raise ModelFileError(f"`tally` must count what there is; got {kept['tally'].tolist()}.")
    return StreamBelief(*(part.copy() for part in statistics), **{name: kept[name].copy() for name in shapes})


def statistics_of(belief: StreamBelief) -> Statistics:
    """The sums alone."""
    return Statistics(belief.n.copy(), belief.s1.copy(), belief.s2.copy())


class Units(NamedTuple):
    """Where rows are told from, and in which units."""

    location: Vector
    scale: Vector


def units_of(belief: StreamBelief) -> Units:
    """Mean and deviation of each column, over all points that count."""
    total = belief.n.sum()
    mean = belief.s1.sum(axis=0) / total
    variance = np.diagonal(belief.s2.sum(axis=0)) / total - mean**2
    return Units(mean, np.sqrt(np.maximum(variance, 0.0)))


def retold(belief: StreamBelief, prior: Prior, units: Units) -> tuple[StreamBelief, Prior]:
    """The same in other units, and the prior that all clusters tell by now: the first points may have been of one.

    Sums follow from sums, so nothing has to be seen again.
    """
    n, s1, s2 = statistics_of(belief)
    location, scale = units
    apart = np.einsum("ki,j->kij", s1, location)
    centred = s2 - apart - np.swapaxes(apart, 1, 2) + n[:, None, None] * np.outer(location, location)
    statistics = Statistics(n, (s1 - n[:, None] * location) / scale, centred / np.outer(scale, scale))
    prior = learnt_prior(statistics, prior)
    held, ring = belief.held.copy(), belief.ring.copy()
    for points, count in ((held, belief.tally[N_HELD]), (ring, min(belief.tally[N_RING], len(ring)))):
        points[: int(count)] = (points[: int(count)] - location) / scale
    made = _belief(statistics, prior, held, ring, belief.tally.copy())
    return made._replace(tested=belief.tested.copy()), prior


def learn_stream(belief: StreamBelief, rows: Matrix, options: StreamOptions) -> StreamBelief:
    """Learn the rows in order; what comes back may have other clusters."""
    farthest, row = 2.0 * float(gammaincinv(0.5 * rows.shape[1], UNEXPECTED)), 0  # of the chi-square distribution
    prior = np.array(options.prior)
    while row < len(rows):
        every = LOOK if belief.tally[N_SEEN] < SOON else LATER_LOOK
        numbers = options.matching, farthest, options.forgetting, prior, options.nearest, every
        row, event = learn_points(belief, rows, row, *numbers)
        if event == HELD_BACK:
            belief = _after_holding_back(belief, options)
        if int(belief.tally[N_SEEN]) % every == 0:
            belief = _restructured(belief, options)
    return belief


def _after_holding_back(belief: StreamBelief, options: StreamOptions) -> StreamBelief:
    """A new cluster, if points that are held back make one; else, if they are many, the oldest is learnt after all."""
    count, prior = int(belief.tally[N_HELD]), options.prior
    fewest = 2 * (belief.ring.shape[1] + 1)
    if count < fewest:
        return belief
    held, statistics = belief.held[:count].copy(), statistics_of(belief)
    if statistics.n.size < options.n_clusters:
        together = _tightest(held, fewest)
        born = collect(held[together], np.ones((fewest, 1)))
        otherwise = np.logaddexp.reduce(log_joint(gaussians_of(statistics, prior), held[together]), axis=1).sum()
        grown = statistics.beside(born)
        shares = log_shares(grown.n) - log_shares(statistics.n)
        if float(log_evidence(born, prior)[0]) + shares > float(otherwise):
            return _with_held(belief, grown, np.delete(held, together, axis=0), prior)
    if count > most_held(belief.ring.shape[1]) - 1:
        joint, weight = np.empty(statistics.n.size), np.empty(statistics.n.size)
        look(belief, held[0], joint)
        weigh(joint, options.matching, weight)
        add(belief, held[0], weight, 1.0)
        return _with_held(belief, statistics_of(belief), held[1:], prior)
    return belief


def _tightest(points: Matrix, n: int) -> NDArray[np.intp]:
    """So many points that lie the closest together: a point and its nearest, within the smallest radius."""
    distances = np.sum((points[:, None] - points[None]) ** 2, axis=2)
    order = np.argsort(distances, axis=1)
    radius = distances[np.arange(len(points)), order[:, n - 1]]
    return order[int(np.argmin(radius)), :n]


def _with_held(belief: StreamBelief, statistics: Statistics, held: Matrix, prior: Prior) -> StreamBelief:
    left, tally = np.zeros_like(belief.held), belief.tally.copy()
    left[: len(held)] = held
    tally[N_HELD] = len(held)
    return _belief(statistics, prior, left, belief.ring, tally)


def _restructured(belief: StreamBelief, options: StreamOptions) -> StreamBelief:
    """Drop, merge and split, as the evidence says."""
    numbers = np.array(options.prior)
    merges = belief.n.size > 1 and best_merge(belief.n, belief.s1, belief.s2, numbers)[2] > 0.0
    if merges or np.any(belief.n < FEWEST):
        statistics = statistics_of(belief)
        small = np.flatnonzero(statistics.n < FEWEST)
        if small.size and small.size < statistics.n.size:
            statistics = statistics.without(*small)
        statistics = _merged(statistics, _latest(belief), options)
        if statistics.n.size < belief.n.size:
            return _belief(statistics, options.prior, belief.held, belief.ring, belief.tally)
    if belief.n.size == options.n_clusters:
        return belief
    finer = None
    c, lag = newcomers(belief, LAGS, numbers)
    due = np.flatnonzero(belief.n >= GROWN * belief.tested)
    if c >= 0 or due.size:
        latest = _latest(belief)
        owners = np.empty(len(latest), dtype=np.int64)
        owners_of(belief, latest, owners)
        if c >= 0:
            finer = _old_and_new(statistics_of(belief), c, latest[owners == c][-lag:])
        else:
            belief.tested[due] = belief.n[due]
            finer = _halves(statistics_of(belief), due, latest, owners, options)
    return belief if finer is None else _belief(finer, options.prior, belief.held, belief.ring, belief.tally)


def _latest(belief: StreamBelief) -> Matrix:
    """The points that are kept, the oldest first."""
    seen = int(belief.tally[N_RING])
    return belief.ring[:seen].copy() if seen <= RING else np.roll(belief.ring, -(seen % RING), axis=0)


def _old_and_new(statistics: Statistics, c: int, latest: Matrix) -> Statistics:
    """All clusters, but one of them in two, those points of it that came of late and those before."""
    new = collect(latest, np.ones((len(latest), 1)))
    old = Statistics(*(part[c : c + 1] - taken for part, taken in zip(statistics, new, strict=True)))
    return statistics.without(c).beside(old).beside(new)


def _merged(statistics: Statistics, latest: Matrix, options: StreamOptions) -> Statistics:
    """The best pair as one, while that raises the evidence; with matching, also that of labels that are not known."""
    prior, matching = options.prior, options.matching
    while statistics.n.size > 1:
        n, s1, s2 = (np.ascontiguousarray(part) for part in statistics)
        i, j, gain = best_merge(n, s1, s2, np.array(prior))
        merged = statistics.without(i, j).beside(statistics.joined(i, j))
        if matching > 0.0 and gain > 0.0 and len(latest):
            lost = _entropy(statistics, latest, prior) - _entropy(merged, latest, prior)
            gain -= matching * lost * float(statistics.n.sum()) / len(latest)
        if gain <= 0.0:
            break
        statistics = merged
    return statistics


def _entropy(statistics: Statistics, latest: Matrix, prior: Prior) -> float:
    _, log_likelihood, harmony = weighed_sums(latest, gaussians_of(statistics, prior), 1.0)
    return log_likelihood - harmony


def _halves(
    statistics: Statistics, due: NDArray[np.intp], latest: Matrix, owners: NDArray[np.int64], options: StreamOptions
) -> Statistics | None:
    """All clusters, but one of those due in two, if its latest points lie in two places."""
    prior, numbers, d = options.prior, np.array(options.prior), latest.shape[1]
    nothing = np.zeros((0, d)), np.zeros((0, d)), np.zeros(4)
    for c in due.tolist():
        points = np.ascontiguousarray(latest[owners == c])
        if len(points) < 4 * min(d + 1, 8):
            continue
        whole = collect(points, np.ones((len(points), 1)))
        mean, covariance = points.mean(axis=0), np.atleast_2d(np.cov(points.T, bias=True))
        values, vectors = np.linalg.eigh(covariance)
        deviation = float(np.sqrt(max(values[-1], 0.0)))
        two = _belief(halved(float(len(points)), mean, covariance, deviation, vectors[:, -1]), prior, *nothing)
        flow_points(two, points, STEPS_OF_SPLIT, RATE_OF_SPLIT, options.matching, numbers)
        simple = objective_of_points(_belief(whole, prior, *nothing), points, options.matching, numbers)
        if objective_of_points(two, points, options.matching, numbers) > simple:
            share = float(statistics.n[c]) / len(points)
            return statistics.without(c).beside(Statistics(*(share * part for part in statistics_of(two))))
    return None
