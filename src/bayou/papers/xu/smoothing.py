"""Small samples of three clusters: rows that were not seen, by mixtures whose covariances are smoothed or not.

The paper smooths each point by a normal of deviation h, whose prior q(h), of (5), is learnt with the mixture, and calls
it a good choice. Written as it is, the prior counts once beside N points, and h^2 is about a variance divided by N: it
helps, and the less the more rows there are. Counted once for each point it helps the smallest samples much, and harms
larger ones. So does the h under which each point is the most probable by all others (Parzen's windows). A prior of the
covariances, as strong as the clusters together tell, helps the smallest about as much, and does not harm larger ones.
(6), which cancels the bias of finite samples, helps a little: it widens a cluster as if it had half a row less.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from bayou.contracts import Matrix, Vector
from bayou.mixtures.evidence import first_prior, learnt_prior, log_evidence, log_shares
from bayou.mixtures.gaussians import Gaussians, collect, gaussians_of, log_joint, with_covariance
from bayou.mixtures.labels import yang
from bayou.mixtures.smoothing import inverse_traces, learn_at_width, learn_cancelled, learn_smoothed, smoothed_log_joint
from bayou.papers.claims import Claim, Effort, Experiment, Findings, Verdict, judge
from bayou.papers.ensembles import Estimate
from bayou.papers.figures import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, Picture, points
from bayou.papers.wang2007.world import share
from bayou.papers.xu.world import Clusters

PAPER, ITEM = "xu", "(C) smoothing"
Values: TypeAlias = dict[tuple[str, int, int], Vector]  # method, columns, rows: of each sample
K, APART, N_UNSEEN = 3, 5.0, 2000
SETTINGS = ((2, 20), (5, 30), (5, 60), (5, 200))  # columns, rows
SMALL, LARGE = SETTINGS[:2], SETTINGS[3]
WIDE = SETTINGS[1:]
NONE, ONCE, EACH, CANCELLED, PARZEN, LEARNT = (
    "no smoothing",
    "q(h), once",
    "q(h), each point",
    "(6), cancelled bias",
    "Parzen's h, one left out",
    "prior of learnt strength",
)
METHODS = NONE, ONCE, EACH, CANCELLED, PARZEN, LEARNT
STARTS, STEPS, FIRST = 3, 100, 30  # of learning under a prior, which is learnt from some step on
BETTER = Claim(
    PAPER, ITEM, "share of four kinds of samples for which unseen rows are more probable with q(h), once, than without",
    1.0, "stated", 0.0,
)  # fmt: skip
CANCELLING = Claim(
    PAPER, ITEM, "share of four kinds of samples for which unseen rows are more probable with (6) than without",
    1.0, "stated", 0.0,
)  # fmt: skip
ALONE = Claim(PAPER, ITEM, "h² × Σ p tr C⁻¹ / d of q(h), once: d = 5, N = 200", 1.0, "derived", 0.01)
SMALLEST = Claim(
    PAPER, ITEM, "beside: share of the two smallest kinds of samples for which q(h), each point, is better than once",
    1.0, "derived", 0.0,
)  # fmt: skip
OVERDONE = Claim(
    PAPER, ITEM, "beside: share of samples for which q(h), each point, is worse than none: d = 5, N = 200", 1.0,
    "derived", 0.05,
)  # fmt: skip
ABOVE = {
    ONCE: Claim(
        PAPER, ITEM, f"beside: share of four kinds of samples for which a {LEARNT} is better than q(h), once", 1.0,
        "derived", 0.0,
    ),
    EACH: Claim(
        PAPER, ITEM, f"beside: share of three kinds, d = 5, for which a {LEARNT} is better than q(h), each point", 1.0,
        "derived", 0.0,
    ),
    PARZEN: Claim(
        PAPER, ITEM, f"beside: share of two kinds, d = 5, N = 60, 200, for which a {LEARNT} is better than Parzen's h",
        1.0, "derived", 0.0,
    ),
}  # fmt: skip


def under_a_prior(rows: Matrix, rng: np.random.Generator) -> Gaussians:
    """By maximum likelihood with a prior of the covariances, whose strength is learnt; the most probable of some."""
    n, d = rows.shape
    broad = np.tile(np.cov(rows.T, bias=True), (K, 1, 1)) + 1e-6 * np.eye(d)
    found: list[tuple[float, Gaussians]] = []
    for _ in range(STARTS):
        clusters = with_covariance(np.full(K, 1.0 / K), rows[rng.choice(n, K, replace=False)], broad)
        prior = first_prior(K, d)
        for step in range(STEPS):
            labels = yang(log_joint(clusters, rows), 1.0)
            statistics = collect(rows, np.maximum(labels.probability, 1e-9))  # a cluster without rows is nowhere
            if step >= FIRST and step % 10 == 0:
                prior = learnt_prior(statistics, prior)
            clusters = gaussians_of(statistics, prior)
        value = float(log_evidence(statistics, prior).sum()) + log_shares(statistics.n)
        found.append((value + labels.log_likelihood - labels.harmony, clusters))
    return max(found, key=lambda pair: pair[0])[1]


def parzen_width(rows: Matrix) -> float:
    """The h under which rows are the most probable, each by normals about all others."""
    n, d = rows.shape
    squared = np.sum((rows[:, None] - rows) ** 2, axis=2)
    np.fill_diagonal(squared, np.inf)

    def loss(u: float) -> float:
        return float(n * d * u - np.sum(logsumexp(-0.5 * squared / math.exp(2.0 * u), axis=1)))

    grid = np.linspace(-5.0, 2.0, 36)
    best = int(np.clip(np.argmin([loss(u) for u in grid]), 1, 34))
    return math.exp(float(minimize_scalar(loss, bounds=(grid[best - 1], grid[best + 1]), method="bounded").x))


def learnt(rows: Matrix, rng: np.random.Generator) -> tuple[dict[str, Gaussians], float]:
    """The clusters by each method, all from those under a prior; and h² Σ p tr C⁻¹ / d of q(h), counted once."""
    start = under_a_prior(rows, rng)
    once = learn_smoothed(rows, start, 1.0, "once")
    p = yang(smoothed_log_joint(once.clusters, rows, once.h), 1.0).probability
    ratio = once.h**2 * float(p.sum(axis=0) @ inverse_traces(once.clusters)) / rows.shape[1]
    found = {
        NONE: learn_at_width(rows, start, 1.0, 0.0),
        ONCE: once.clusters,
        EACH: learn_smoothed(rows, start, 1.0, "each").clusters,
        CANCELLED: learn_cancelled(rows, start, 1.0),
        PARZEN: learn_at_width(rows, start, 1.0, parzen_width(rows)),
        LEARNT: start,
    }
    return found, ratio


def run(effort: Effort) -> Findings:
    """All methods on the same samples, with as many clusters as there are."""
    n_samples = effort.replicas(full=30, quick=3)
    done = None if effort.watch is None else effort.watch(n_samples * len(SETTINGS))
    values: Values = {(name, *setting): np.empty(n_samples) for setting in SETTINGS for name in METHODS}
    alone: list[float] = []
    for d, n in SETTINGS:
        for replica in range(n_samples):
            seed = 1000 * effort.seed + replica
            rows = Clusters(d, K, n + N_UNSEEN, APART).draw(seed).rows
            rows = (rows - rows[:n].mean(axis=0)) / rows[:n].std(axis=0)
            found, ratio = learnt(rows[:n], np.random.default_rng(seed))
            for name, clusters in found.items():
                values[name, d, n][replica] = np.mean(logsumexp(log_joint(clusters, rows[n:]), axis=1))
            if (d, n) == LARGE:
                alone.append(ratio)
            if done is not None:
                done()
    return Findings(_verdicts(values, np.array(alone)), (picture(values),))


def gain(values: Values, name: str, other: str, setting: tuple[int, int]) -> Estimate:
    """By how much rows are more probable by one method than by another, on average over samples."""
    return _mean(values[name, *setting] - values[other, *setting])


def _mean(found: Vector) -> Estimate:
    return Estimate(float(np.mean(found)), float(np.std(found)) / math.sqrt(max(len(found) - 1, 1)))


def _verdicts(values: Values, alone: Vector) -> tuple[Verdict, ...]:
    def judged(claim: Claim, name: str, other: str, settings: tuple[tuple[int, int], ...]) -> Verdict:
        gains = [gain(values, name, other, setting) for setting in settings]
        note = "gains per row: " + ", ".join(f"{one.mean:.3f} ± {one.standard_error:.2g}" for one in gains)
        return judge(claim, None, Estimate(float(np.mean([one.mean > 0.0 for one in gains])), 0.0), note=note)

    worse = [bool(one) for one in values[EACH, *LARGE] < values[NONE, *LARGE]]
    return (
        judged(BETTER, ONCE, NONE, SETTINGS),
        judged(CANCELLING, CANCELLED, NONE, SETTINGS),
        judge(ALONE, None, _mean(alone)),
        judged(SMALLEST, EACH, ONCE, SMALL),
        judge(OVERDONE, None, share(worse)),
        judged(ABOVE[ONCE], LEARNT, ONCE, SETTINGS),
        judged(ABOVE[EACH], LEARNT, EACH, WIDE),
        judged(ABOVE[PARZEN], LEARNT, PARZEN, SETTINGS[2:]),
    )


def picture(values: Values) -> Picture:
    """The log density of an unseen row, by method and kind of sample."""
    colours = dict(zip(METHODS, (GREY, ORANGE, PURPLE, GREEN, INK, BLUE), strict=True))
    series = []
    for place, name in enumerate(METHODS):
        told = [_mean(values[name, *setting]) for setting in SETTINGS]
        beside = [kind + 0.08 * (place - 2.5) for kind in range(1, len(SETTINGS) + 1)]
        means, errors = [one.mean for one in told], [one.standard_error for one in told]
        series.append(points(name, beside, means, errors, colours[name]))
    return Picture(
        "xu-smoothing",
        "Rows that were not seen, after small samples of three clusters",
        "1: d = 2, N = 20;  2, 3, 4: d = 5, N = 30, 60, 200",
        "log density per row",
        tuple(series),
    )


EXPERIMENT = Experiment(
    ITEM, "log density of unseen rows", (BETTER, CANCELLING, ALONE, SMALLEST, OVERDONE, *ABOVE.values()), run
)
