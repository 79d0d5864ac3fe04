"""How many clusters are counted, of at most ten: by bayou, by its peers, and by harmony to the letter.

The paper lets the number of clusters follow from learning: start with many, and those that are too many vanish along
the gradient (9). To the letter that is seldom so. Taken for the weights of EM, those of (9) give a covariance that is
none with the first step; row by row, or with weights that are clipped at zero, clusters stay that should go, where
they are crisp cuts of a true one: those are maxima of the harmony, too. bayou climbs the same harmony, and merges,
drops and splits clusters by their evidence.

Set D is nearer than harmony tells apart, and U is not Gaussian: see `resolution`, and what matching makes of both.
"""

from __future__ import annotations

import numpy as np

from bayou.papers.claims import Claim, Effort, Experiment, Findings, judge
from bayou.papers.ensembles import Estimate
from bayou.papers.figures import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, Picture, Stroke, points
from bayou.papers.wang2007.world import share
from bayou.papers.xu.counting import (
    FLOW,
    MATCHING,
    METHODS,
    MOST,
    ONLINE,
    OURS,
    PEERS,
    SORTED,
    STREAM,
    counts,
)
from bayou.papers.xu.literal import broad, fixed_point
from bayou.papers.xu.world import Clusters, standardised

PAPER, ITEM = "xu", "Selection"
SETS = {
    "A": Clusters(2, 4, 400, 5.0),
    "B": Clusters(2, 4, 400, 4.0),
    "K7": Clusters(2, 7, 700, 4.5),
    "ONE": Clusters(3, 1, 200, 5.0),
    "C": Clusters(5, 4, 300, 5.0),
    "C10": Clusters(10, 4, 600, 5.0),
    "S5": Clusters(5, 3, 90, 5.0),
    "D": Clusters(2, 4, 600, 3.2),
    "U": Clusters(2, 4, 400, 5.0, uniform=True),
}
QUICK = ("A", "ONE", "C")
APART = tuple(name for name in SETS if name != "D")  # far enough for harmony
OFTEN = 0.06  # the largest standard error of a share that is near one: that of 22 of 24 samples
IN_ORDER = tuple(name for name in APART if name != "ONE")  # sorted by cluster, too


def _told(name: str) -> str:
    d, k, n, apart, uniform = SETS[name]
    blobs = "1 cluster" if k == 1 else f"{k} {'uniform ' if uniform else ''}clusters {apart:g} apart"
    return f"{name} ({blobs}, {d} columns, {n} rows)"


COUNTED = {
    name: Claim(
        PAPER, ITEM, f"share of samples in which bayou counts right, {_told(name)}", 1.0, "stated",
        0.05 if name != "U" else 0.1, OFTEN if name != "U" else None, quick=name in QUICK,
    )
    for name in APART
}  # fmt: skip
STREAMED = {
    name: Claim(
        PAPER, ITEM, f"the same in one pass, {_told(name)}", 1.0, "stated", 0.05 if name != "U" else 0.1,
        OFTEN if name != "U" else None, quick=name in QUICK,
    )
    for name in APART
}  # fmt: skip
IN_SORTED = {
    name: Claim(
        PAPER, ITEM, f"beside: the same in one pass, one cluster after the other, {_told(name)}",
        1.0 if name != "U" else 0.85, "derived", 0.1, quick=name in QUICK,
    )
    for name in IN_ORDER
}  # fmt: skip
NEAR = Claim(PAPER, ITEM, f"the same by matching, {_told('D')}", 1.0, "derived", 0.05, OFTEN, quick=False)
FEWER = Claim(
    PAPER, ITEM, f"beside: share in which harmony counts fewer, {_told('D')}", 0.35, "derived", 0.1, quick=False
)
ABOVE = Claim(
    PAPER, ITEM, f"share of the peers than which bayou is right more often, over all sets but D: {', '.join(PEERS)}",
    1.0, "derived", 0.0, quick=False,
)  # fmt: skip
POSITIVE = Claim(
    PAPER, ITEM, "share of samples whose covariances stay positive if (9) is taken for EM, A and ONE", 1.0, "derived",
    0.05,
    erratum="weights are negative where delta < -1, far from a cluster, and with the first step a covariance is not "
    "positive: (9) is a direction, and says nothing of how far",
)  # fmt: skip
VANISH = {
    way: Claim(
        PAPER, ITEM, f"share of samples in which {way} counts right, {_told('ONE')}", 1.0, "stated", 0.05,
        erratum="a cluster that is cut is a maximum of the harmony as well, so that clusters stay that should vanish",
    )
    for way in (ONLINE, FLOW)
}  # fmt: skip
CLAIMS = (
    *COUNTED.values(), *STREAMED.values(), *IN_SORTED.values(), NEAR, FEWER, ABOVE, POSITIVE, *VANISH.values(),
)  # fmt: skip
Table = dict[tuple[str, str], list[int]]


def methods_for(name: str) -> tuple[str, ...]:
    """Which methods look at a set: nothing is sorted where there is one cluster."""
    return tuple(method for method in METHODS if method != SORTED or SETS[name].k > 1)


def count_all(effort: Effort) -> Table:
    """What each method counts in each sample of each set."""
    names = QUICK if effort.quick else tuple(SETS)
    n_samples = effort.replicas(full=24, quick=3)
    done = None if effort.watch is None else effort.watch(n_samples * len(names))
    found: Table = {}
    for name in names:
        for replica in range(n_samples):
            seed = 1000 * effort.seed + replica
            for method, k in counts(SETS[name].draw(seed), seed, methods_for(name)).items():
                found.setdefault((method, name), []).append(k)
            if done is not None:
                done()
    return found


def right(found: Table) -> dict[tuple[str, str], Estimate]:
    """How often, with standard errors."""
    return {(method, name): share([k == SETS[name].k for k in ks]) for (method, name), ks in found.items()}


def stays_positive(name: str, seed: int) -> bool:
    """Whether (9), taken for EM, has covariances as long as it runs."""
    rows = standardised(SETS[name].draw(seed).rows)
    return fixed_point(rows, broad(rows, MOST, np.random.default_rng(seed))).broke_at is None


def run(effort: Effort) -> Findings:
    """All methods on the same samples."""
    found = count_all(effort)
    shares = right(found)
    verdicts = [
        judge(claim, None, shares[method, name], quick=effort.quick)
        for method, claims in ((OURS, COUNTED), (STREAM, STREAMED), (SORTED, IN_SORTED))
        for name, claim in claims.items()
        if (method, name) in shares
    ]
    if not effort.quick:
        verdicts += [judge(NEAR, None, shares[MATCHING, "D"])]
        verdicts += [judge(FEWER, None, share([k < SETS["D"].k for k in found[OURS, "D"]]))]
        verdicts += [judge(ABOVE, None, above_peers(shares))]
    seeds = [1000 * effort.seed + replica for replica in range(effort.replicas(full=24, quick=6))]
    verdicts += [judge(POSITIVE, None, share([stays_positive(name, seed) for name in ("A", "ONE") for seed in seeds]))]
    verdicts += [judge(claim, None, shares[way, "ONE"]) for way, claim in VANISH.items()]
    return Findings(tuple(verdicts), (picture(shares),))


def above_peers(shares: dict[tuple[str, str], Estimate]) -> Estimate:
    """Of the peers, those that are right less often, all sets but D taken together."""
    total = {method: sum(shares[method, name].mean for name in APART) for method in (OURS, *PEERS)}
    return Estimate(float(np.mean([total[OURS] > total[peer] for peer in PEERS])), 0.0)


def picture(shares: dict[tuple[str, str], Estimate]) -> Picture:
    """How often each method is right, set by set."""
    names = [name for name in SETS if (OURS, name) in shares]
    looks: tuple[tuple[str, Stroke], ...] = (
        *((colour, "discs") for colour in (BLUE, GREEN, PURPLE, GREY)),
        *((colour, "squares") for colour in (ORANGE, INK, GREEN, PURPLE)),
        (ORANGE, "discs"), (INK, "discs"), (GREY, "squares"),
    )  # fmt: skip
    series = []
    for place, (method, (colour, stroke)) in enumerate(zip(METHODS, looks, strict=True)):
        at = [x for x, name in enumerate(names, 1) if (method, name) in shares]
        told = [shares[method, names[x - 1]] for x in at]
        beside = np.array(at) + 0.07 * (place - 5)  # so that bars do not hide each other
        means, errors = [one.mean for one in told], [one.standard_error for one in told]
        series.append(points(method, beside, means, errors, colour, stroke))
    return Picture(
        "xu-selection",
        "The right number of clusters",
        ", ".join(f"{x} {name}" for x, name in enumerate(names, 1)),
        "share of samples",
        tuple(series),
        xlim=(0.4, 1.6 * len(names) + 0.6),  # room for the legend
        ylim=(-0.05, 1.05),
        legend="center right",
    )


EXPERIMENT = Experiment(ITEM, "how many clusters are counted", CLAIMS, run)
