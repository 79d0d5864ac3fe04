"""Sums over the few most probable clusters of a point, in the place of all: what is lost by it.

The paper replaces each sum over clusters by one over those kappa of which a point is the most probable, to save time.
What that costs is told by harmony and likelihood per point, with all clusters in both, after as many steps from the
same start; and by how often the number of clusters is found.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from bayou.estimators.harmony_mixture import HarmonyMixture
from bayou.mixtures.evidence import first_prior
from bayou.mixtures.harmony import Mixture, broad_start, flow
from bayou.mixtures.sums import weighed_sums
from bayou.papers.claims import Claim, Effort, Experiment, Findings, judge
from bayou.papers.ensembles import Estimate
from bayou.papers.figures import BLUE, ORANGE, Picture, points
from bayou.papers.wang2007.world import share
from bayou.papers.xu.counting import MOST
from bayou.papers.xu.selection import SETS
from bayou.papers.xu.world import Clusters, standardised

PAPER, ITEM = "xu", "Few of many"
MANY, FEWER = Clusters(20, 60, 20_000, 5.0), Clusters(5, 20, 2_000, 5.0)
BEFORE, STEPS, RATE = 30, 15, 0.5
KAPPAS = (1, 2, 3, 4, 0)  # 0: all
COUNTED = ("A", "C")
COST = Claim(PAPER, ITEM, "harmony per point that kappa = 2 costs, in nats", 0.0, "derived", 0.05)
LIKELIHOOD = Claim(PAPER, ITEM, "log likelihood per point that kappa = 2 costs, in nats", 0.0, "derived", 0.05)
FOUND = {
    name: Claim(
        PAPER, ITEM, f"share of samples in which kappa = 2 counts clusters right less often than all, {name}", 0.0,
        "derived", 0.0, quick=name == "A",
    )
    for name in COUNTED
}  # fmt: skip


class After(NamedTuple):
    """Harmony and log likelihood per point, how many clusters are left, and the seconds of the processor."""

    harmony: float
    log_likelihood: float
    k: int
    seconds: float


def after_steps(world: Clusters, seed: int) -> dict[int, After]:
    """By each kappa, from one start: broad clusters that have come apart by maximum likelihood."""
    rows = np.ascontiguousarray(standardised(world.draw(seed).rows))
    rng = np.random.default_rng(seed)
    start = broad_start(rows, first_prior(world.k, world.d), world.k, rng)
    start = flow(rows, start, 1.0, RATE, BEFORE, settle=False)
    found = {}
    for kappa in KAPPAS:
        flow(rows[:200], start, 0.0, RATE, 1, settle=False, nearest=kappa)  # compiled before the clock runs
        begun = time.process_time()
        ended: Mixture = flow(rows, start, 0.0, RATE, STEPS, settle=False, nearest=kappa)
        seconds = time.process_time() - begun
        _, log_likelihood, harmony = weighed_sums(rows, ended.clusters, 1.0)
        found[kappa] = After(harmony / len(rows), log_likelihood / len(rows), ended.clusters.share.size, seconds)
    return found


def counted(name: str, seed: int, kappa: int | None) -> bool:
    """Whether the number of clusters is found, if each point is of so many at most."""
    world = SETS[name]
    return HarmonyMixture(MOST, seed=seed, n_nearest=kappa).fit(world.draw(seed).rows).n_clusters_ == world.k


def run(effort: Effort) -> Findings:
    """One large sample for the cost; many for the count."""
    n_samples = effort.replicas(full=20, quick=3)
    names = COUNTED[:1] if effort.quick else COUNTED
    done = None if effort.watch is None else effort.watch(1 + n_samples * len(names))
    found = after_steps(FEWER if effort.quick else MANY, effort.seed)
    if done is not None:
        done()
    less = {}
    for name in names:
        hits = []
        for replica in range(n_samples):
            seed = 1000 * effort.seed + replica
            hits.append((counted(name, seed, 2), counted(name, seed, None)))
            if done is not None:
                done()
        less[name] = share([few < every for few, every in hits])
    every, two = found[0], found[2]
    note = (
        f"{every.k} clusters by all, {two.k} by kappa = 2, in 1 / {every.seconds / max(two.seconds, 1e-3):.1f} of the "
        "time; kappa = 1 costs "
        f"{every.harmony - found[1].harmony:.4f}, 3 {every.harmony - found[3].harmony:.4f}, "
        f"4 {every.harmony - found[4].harmony:.4f}"
    )
    verdicts = [
        judge(COST, None, Estimate(every.harmony - two.harmony, 0.0), note=note),
        judge(LIKELIHOOD, None, Estimate(every.log_likelihood - two.log_likelihood, 0.0)),
        *(judge(FOUND[name], None, less[name]) for name in names),
    ]
    return Findings(tuple(verdicts), (picture(found),))


def picture(found: dict[int, After]) -> Picture:
    """What each kappa leaves, less what all do."""
    few = [kappa for kappa in KAPPAS if kappa]
    none = [0.0] * len(few)
    costs = [[found[0][part] - found[kappa][part] for kappa in few] for part in range(2)]
    return Picture(
        "xu-kappa",
        "What it costs to sum over the most probable clusters only",
        "kappa",
        "nats per point",
        (points("harmony", few, costs[0], none, BLUE), points("log likelihood", few, costs[1], none, ORANGE)),
    )


EXPERIMENT = Experiment(ITEM, "sums over few of many clusters", (COST, LIKELIHOOD, *FOUND.values()), run)
