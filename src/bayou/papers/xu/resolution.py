"""How near two clusters may be before harmony takes them for one, however many points there are.

The points of two unit normals, ``apart`` from each other, in one dimension. H per point of two clusters, of any share,
mean and variance, is compared with that of one; the population is integrated over a grid, samples are drawn beside. If
the two are held at what generates the points, H of two is -log 2 - log(2 pi e) / 2, and equal to that of one at 2 √3.

What keeps harmony from cutting clusters that are one is what a cut costs: log 2 + log(1 - 2 / pi) / 2 per point.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import expit, logsumexp
from scipy.stats import norm

from bayou.contracts import Matrix, Vector
from bayou.estimators.harmony_mixture import HarmonyMixture
from bayou.papers.claims import Claim, Effort, Experiment, Findings, judge
from bayou.papers.ensembles import Estimate
from bayou.papers.figures import BLUE, GREEN, GREY, ORANGE, Picture, line, points
from bayou.papers.wang2007.world import share as share_of
from bayou.papers.xu.literal import raw_weights

PAPER, ITEM = "xu", "Resolution"
NEAREST, FARTHEST = 2.6, 4.4  # between which every limit lies
GRID = np.linspace(-12.0, 12.0, 2401)
EVEN, UNEVEN = 0.5, 0.2
VANISHED = 0.01  # a smaller share is on its way to nothing
LIMITS = {
    EVEN: Claim(
        PAPER, ITEM, "beside: deviations apart from which on harmony tells two from one", 3.36, "derived", 5e-3
    ),
    UNEVEN: Claim(PAPER, ITEM, "beside: the same if one has a fifth of the points", 3.03, "derived", 5e-3),
}
HELD = Claim(
    PAPER, ITEM, "beside: the same if clusters are held at what generates the points", 2.0 * math.sqrt(3.0), "derived",
    1e-6,
)  # fmt: skip
CUT = Claim(PAPER, ITEM, "beside: what it costs per point to cut a normal cluster in halves", 0.187, "derived", 5e-4)
COUNTED = {
    (3.0, 0.0, 1): Claim(
        PAPER, ITEM, "share of samples in which bayou counts one by harmony, 3.0 apart", 1.0, "derived", 0.05
    ),
    (4.0, 0.0, 2): Claim(
        PAPER, ITEM, "share of samples in which bayou counts two by harmony, 4.0 apart", 1.0, "derived", 0.05
    ),
    (3.0, 1.0, 2): Claim(
        PAPER, ITEM, "share of samples in which bayou counts two by matching, 3.0 apart", 1.0, "derived", 0.05
    ),
}  # fmt: skip
N_COUNTED = 1_500


class Points(NamedTuple):
    """Places, and how much each counts: a population on a grid, or a sample."""

    x: Vector
    weight: Vector


def population(apart: float, share: float) -> Points:
    """The density of the two, at the points of a grid."""
    density = share * norm.pdf(GRID, -0.5 * apart) + (1.0 - share) * norm.pdf(GRID, 0.5 * apart)
    return Points(GRID, density * (GRID[1] - GRID[0]))


class Draw(NamedTuple):
    """What a sample is made of, at whatever distance: which of the two a point is of, and where within it."""

    first: Vector
    noise: Vector

    def at(self, apart: float) -> Points:
        """The sample."""
        return Points(self.noise + apart * (0.5 - self.first), np.full(self.noise.size, 1.0 / self.noise.size))


def draw(n: int, share: float, seed: int) -> Draw:
    """Of so many points."""
    rng = np.random.default_rng([seed, n, int(100 * share)])
    return Draw((rng.random(n) < share).astype(np.float64), rng.normal(size=n))


def joint_of(numbers: Vector, x: Vector) -> Matrix:
    """log share + log density in two clusters, of a logit, two means and two log deviations."""
    logit, means, scales = numbers[0], numbers[1:3], numbers[3:]
    shares = np.array([-np.logaddexp(0.0, -logit), -np.logaddexp(0.0, logit)])
    z = (x[:, None] - means) * np.exp(-scales)
    joint: Matrix = shares - scales - 0.5 * z**2 - 0.5 * math.log(2.0 * math.pi)
    return joint


def harmony(numbers: Vector, points: Points) -> tuple[float, Vector]:
    """H per point, and its gradient by (9)."""
    x, weight = points
    joint = joint_of(numbers, x)
    p = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    value = float(weight @ np.sum(p * joint, axis=1))
    w = weight[:, None] * raw_weights(joint)
    inverse = np.exp(-numbers[3:])
    z = (x[:, None] - numbers[1:3]) * inverse
    logit = w[:, 0].sum() * expit(-numbers[0]) - w[:, 1].sum() * expit(numbers[0])
    return value, np.concatenate([[logit], np.sum(w * z, axis=0) * inverse, np.sum(w * (z**2 - 1.0), axis=0)])


def true_numbers(apart: float, share: float) -> Vector:
    """The two clusters that generate the points."""
    return np.array([math.log(share / (1.0 - share)), -0.5 * apart, 0.5 * apart, 0.0, 0.0])


def gain(points: Points, apart: float, share: float, held: bool = False) -> float:
    """H per point of two clusters, the best from the true ones on (or the true ones), less that of one.

    Minus infinity where there is no best: one of the two shrinks to nothing.
    """
    x, weight = points
    total = float(weight.sum())
    mean = float(weight @ x) / total
    one = -0.5 * math.log(2.0 * math.pi * math.e * float(weight @ (x - mean) ** 2) / total)
    start = true_numbers(apart, share)
    if held:
        return harmony(start, points)[0] - one
    best = minimize(lambda numbers: [-part for part in harmony(numbers, points)], start, jac=True, method="BFGS")
    vanished = min(expit(best.x[0]), expit(-best.x[0])) < VANISHED
    return -math.inf if vanished else -float(best.fun) - one


def limit(share: float, held: bool = False) -> float:
    """From how far apart on two have the larger harmony, in the population."""
    return _crossing(lambda apart: gain(population(apart, share), apart, share, held), 1e-10)


def _crossing(difference: Callable[[float], float], tolerance: float) -> float:
    """Where it changes its sign; it may be minus infinity below."""
    return float(brentq(lambda apart: max(difference(apart), -1.0), NEAREST, FARTHEST, xtol=tolerance))


def limit_of_samples(share: float, n: int, n_samples: int, seed: int) -> Estimate:
    """The same in samples, which are moved apart until two have the larger harmony."""
    found = []
    for replica in range(n_samples):
        sample = draw(n, share, 1000 * seed + replica)
        found.append(_crossing(partial(_gain_at, sample, share), 1e-3))
    return Estimate(float(np.mean(found)), float(np.std(found, ddof=1)) / math.sqrt(n_samples))


def _gain_at(sample: Draw, share: float, apart: float) -> float:
    return gain(sample.at(apart), apart, share)


def cost_of_cut(points: Points) -> float:
    """H per point of one cluster, less that of its points below and above the mean as two, each point of its own."""
    x, weight = points
    total = float(weight.sum())
    mean = float(weight @ x) / total
    value = -0.5 * math.log(2.0 * math.pi * math.e * float(weight @ (x - mean) ** 2) / total)
    for side in (x < mean, x >= mean):
        part = float(weight[side].sum()) / total
        centre = float(weight[side] @ x[side]) / (part * total)
        spread = float(weight[side] @ (x[side] - centre) ** 2) / (part * total)
        value -= part * (math.log(part) - 0.5 * math.log(2.0 * math.pi * math.e * spread))
    return value


def count(apart: float, matching: float, seed: int) -> int:
    """How many clusters bayou counts in such a sample."""
    rows = draw(N_COUNTED, EVEN, seed).at(apart).x[:, None]
    return HarmonyMixture(5, matching).fit(rows).n_clusters_


def run(effort: Effort) -> Findings:
    """Theory on the grid, samples beside."""
    n, n_samples = effort.replicas(full=10_000, quick=2_000), effort.replicas(full=20, quick=5)
    verdicts = [
        judge(claim, limit(share), limit_of_samples(share, n, n_samples, effort.seed))
        for share, claim in LIMITS.items()
    ]
    verdicts.append(judge(HELD, limit(EVEN, held=True)))
    costs = [cost_of_cut(draw(n, EVEN, 1000 * effort.seed + replica).at(0.0)) for replica in range(n_samples)]
    spread = float(np.std(costs, ddof=1)) / math.sqrt(n_samples)
    verdicts.append(
        judge(CUT, math.log(2.0) + 0.5 * math.log(1.0 - 2.0 / math.pi), Estimate(float(np.mean(costs)), spread))
    )
    for (apart, matching, k), claim in COUNTED.items():
        hits = [
            count(apart, matching, 1000 * effort.seed + replica) == k
            for replica in range(effort.replicas(full=20, quick=2))
        ]
        verdicts.append(judge(claim, None, share_of(hits)))
    return Findings(tuple(verdicts), (picture(n, n_samples, effort.seed),))


def picture(n: int, n_samples: int, seed: int) -> Picture:
    """H per point of two clusters less that of one, by how far apart they are."""
    apart, fewer = np.linspace(2.0, 5.0, 16), np.linspace(2.8, 5.0, 12)
    series = [
        line("two at their best", apart, [gain(population(d, EVEN), d, EVEN) for d in apart], "solid", BLUE),
        line("two as they are", apart, [gain(population(d, EVEN), d, EVEN, held=True) for d in apart], "dashed", BLUE),
        line("a fifth of the points", fewer, [gain(population(d, UNEVEN), d, UNEVEN) for d in fewer], "solid", ORANGE),
        line("log likelihood", apart, [likelihood_gain(d) for d in apart], "dotted", GREEN),
        line("no difference", [2.0, 5.0], [0.0, 0.0], "solid", GREY, listed=False),
    ]
    for share, colour, label, some in (
        (EVEN, BLUE, "samples", (2.5, 3.0, 3.5, 4.0, 4.5)),
        (UNEVEN, ORANGE, "samples, a fifth", (3.1, 3.5, 4.0, 4.5)),
    ):
        draws = [draw(n, share, 1000 * seed + replica) for replica in range(min(n_samples, 10))]
        values = np.array([[gain(one.at(d), d, share) for d in some] for one in draws])
        errors = values.std(axis=0, ddof=1) / math.sqrt(len(draws))
        series.append(points(label, some, values.mean(axis=0), errors, colour))
    return Picture(
        "xu-resolution",
        "Harmony of two clusters less that of one",
        "distance in deviations",
        "per point, in nat",
        tuple(series),
    )


def likelihood_gain(apart: float) -> float:
    """The log likelihood per point of the two clusters that generate them, less that of one."""
    x, weight = population(apart, EVEN)
    evidence = logsumexp(joint_of(true_numbers(apart, EVEN), x), axis=1)
    return float(weight @ evidence) + 0.5 * math.log(2.0 * math.pi * math.e * float(weight @ x**2))


EXPERIMENT = Experiment(ITEM, "how near two clusters may be", (*LIMITS.values(), HELD, CUT, *COUNTED.values()), run)
