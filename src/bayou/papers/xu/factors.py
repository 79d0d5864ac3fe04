"""How many clusters along subspaces, and of how many factors each: by bayou, and by harmony to the letter.

The paper selects both numbers. Harmony over factors that are continuous keeps those whose eigenvalue is beyond 4 times
the noise, whatever the number of points: where one is below, the harmony has no maximum, it grows without bound as the
factor's variance goes to 0. So factors of a variance below 3 times the noise are lost. bayou judges factors by their
evidence, which knows how many points there are.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from bayou.estimators.local_factor_analysis import LocalFactorAnalysis
from bayou.papers.claims import Claim, Effort, Experiment, Findings, judge
from bayou.papers.ensembles import Estimate
from bayou.papers.figures import BLUE, GREY, ORANGE, Picture, points
from bayou.papers.wang2007.world import share
from bayou.papers.xu.literal import literal_factors, literal_loading
from bayou.papers.xu.world import Sample, Subspaces

PAPER, ITEM = "xu", "Factors"
SETS = {
    "EQ": Subspaces(10, (2, 2, 2), 600),
    "UNEQ": Subspaces(10, (1, 2, 3), 600),
    "WEAK": Subspaces(10, (1, 2, 3), 600, 7.0, (1.5, 2.5)),
    "SMALL": Subspaces(10, (1, 2, 3), 150),
    "D20": Subspaces(20, (1, 3, 5), 400),
    "HI": Subspaces(40, (1, 2, 3), 200),
}
QUICK = ("SMALL", "WEAK")
MOST = 10  # clusters
CLUSTERS = {
    name: Claim(
        PAPER, ITEM, f"share of samples in which bayou finds the number of clusters, {name}", 1.0, "stated", 0.1,
        quick=name in QUICK,
    )
    for name in SETS
}  # fmt: skip
FACTORS = {
    name: Claim(
        PAPER, ITEM, f"share of samples in which bayou finds that and every number of factors, {name}",
        1.0, "stated", 0.1, quick=name in QUICK,
    )
    for name in SETS
}  # fmt: skip
LETTER = Claim(
    PAPER, ITEM, "the same by harmony to the letter in the clusters that bayou finds, SMALL", 1.0, "stated", 0.1
)
WEAK = Claim(
    PAPER, ITEM, "the same by harmony to the letter in the clusters that bayou finds, WEAK", 1.0, "stated", 0.1,
    erratum="a factor whose eigenvalue is below 4 times the noise has no stationary variance, whatever the number of "
    "points: here they are 2.5 to 3.5 times",
)  # fmt: skip
BELOW = Claim(
    PAPER, ITEM, "beside: variance of a factor by harmony, eigenvalue 3.9 times the noise", 0.0, "derived", 1e-3
)
ABOVE = Claim(
    PAPER, ITEM, "beside: variance of a factor by harmony, eigenvalue 4.1 times the noise", 1.37, "derived", 5e-3
)
LARGEST, SMALLEST = 10.0, 1e-4


class Hits(NamedTuple):
    """What was right in a sample: the number of clusters, and every number of factors, by bayou and to the letter."""

    clusters: bool
    factors: bool
    letter: bool


def majority(labels: NDArray[np.int64], found: NDArray[np.intp], k: int) -> list[int]:
    """Of each cluster that was found, the true one that most of its rows are of; -1 of one without rows."""
    return [int(np.bincount(labels[found == c]).argmax()) if np.any(found == c) else -1 for c in range(k)]


def hits(sample: Sample, true: tuple[int, ...], seed: int) -> Hits:
    """By both rules, in the same clusters."""
    rows, labels = sample
    model = LocalFactorAnalysis(MOST, seed=seed).fit(rows)
    found = model.predict(rows)
    owners = majority(labels, found, model.n_clusters_)
    if sorted(owners) != list(range(len(true))):
        return Hits(model.n_clusters_ == len(true), False, False)
    wanted = [true[owner] for owner in owners]
    by_letter = []
    for c in range(model.n_clusters_):
        covariance = np.cov(rows[found == c].T, bias=True)
        by_letter.append(literal_factors(np.linalg.eigvalsh(covariance), rows.shape[1] // 2)[0])
    return Hits(True, model.n_factors_.tolist() == wanted, by_letter == wanted)


def harmony_of_factor(loading: float, s: float, noise: float) -> float:
    """The part of the harmony per point that an eigenvalue s has, by the variance of its factor."""
    return -0.5 * (math.log(loading) + s / (loading + noise))


def climbed(s: float) -> float:
    """The variance to which the harmony climbs from a large one, with a noise of 1; 0 if it never ends."""
    grid = np.geomspace(LARGEST, SMALLEST, 20_001)
    values = [harmony_of_factor(loading, s, 1.0) for loading in grid]
    falls = np.flatnonzero(np.diff(values) < 0.0)
    if falls.size == 0:
        return 0.0
    place = int(falls[0])
    bounds = grid[place + 1], grid[max(place - 1, 0)]
    best = minimize_scalar(
        lambda loading: -harmony_of_factor(loading, s, 1.0), bounds=bounds, method="bounded", options={"xatol": 1e-10}
    )
    return float(best.x)


def run(effort: Effort) -> Findings:
    """Both rules on the same samples, and the threshold of the one."""
    n_samples = effort.replicas(full=20, quick=3)
    names = QUICK if effort.quick else tuple(SETS)
    done = None if effort.watch is None else effort.watch(n_samples * len(names))
    found: dict[str, list[Hits]] = {name: [] for name in names}
    for name in names:
        for replica in range(n_samples):
            seed = 1000 * effort.seed + replica
            found[name].append(hits(SETS[name].draw(seed), SETS[name].factors, seed))
            if done is not None:
                done()
    shares = {name: [share([bool(one[part]) for one in of]) for part in range(3)] for name, of in found.items()}
    verdicts = [judge(CLUSTERS[name], None, shares[name][0]) for name in names]
    verdicts += [judge(FACTORS[name], None, shares[name][1]) for name in names]
    verdicts += [judge(LETTER, None, shares["SMALL"][2]), judge(WEAK, None, shares["WEAK"][2])]
    verdicts += [
        judge(claim, literal_loading(s, 1.0), Estimate(climbed(s), 1e-6)) for claim, s in ((BELOW, 3.9), (ABOVE, 4.1))
    ]
    return Findings(tuple(verdicts), () if effort.quick else (picture(shares),))


def picture(shares: dict[str, list[Estimate]]) -> Picture:
    """How often all numbers are right, set by set."""
    labels = ("clusters by bayou", "and factors by bayou", "and factors to the letter")
    series = []
    for part, (label, colour) in enumerate(zip(labels, (GREY, BLUE, ORANGE), strict=True)):
        of = [shares[name][part] for name in SETS]
        x = np.arange(1, len(of) + 1) + 0.12 * (part - 1)
        series.append(points(label, x, [one.mean for one in of], [one.standard_error for one in of], colour))
    names = ", ".join(f"{place} {name}" for place, name in enumerate(SETS, 1))
    return Picture(
        "xu-factors", "Clusters along subspaces", names, "share of samples", tuple(series), ylim=(-0.05, 1.05)
    )


EXPERIMENT = Experiment(
    ITEM,
    "how many clusters, and how many factors each has",
    (*CLUSTERS.values(), *FACTORS.values(), LETTER, WEAK, BELOW, ABOVE),
    run,
)
