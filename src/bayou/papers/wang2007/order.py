"""How many correlations are found: by bayou, by Wang's model, and by other methods of selection.

The paper claims to determine the number, and to do so better than others. How often a number is right depends on the
world; in this one, maximum likelihood never is, and a penalty or a test is better at some sizes and worse at others.

Two things are found beside. Wang's model, whose loadings are small or large in the units of the columns, is about as
often right as bayou's relevance alone if the columns are white, and less often in columns of different units. And
relevance alone finds a correlation or two where there are none, if rows are few; the evidence does not.
"""

from __future__ import annotations

import math

import numpy as np

from bayou.contracts import Vector
from bayou.mixtures.canonical_correlation import canonical_model
from bayou.mixtures.two_views import Moments, moments_of
from bayou.papers.claims import Claim, Effort, Experiment, Findings, judge
from bayou.papers.ensembles import Estimate
from bayou.papers.figures import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, Picture, points
from bayou.papers.wang2007.world import COLUMNS, CORRELATIONS, SIZES, bartlett, draw_views, likeliest, share
from bayou.papers.wang2007.written_out import own_scale

PAPER, ITEM = "wang2007", "Order"
LEAST = 0.1
ROUNDS = 250
DECADES = 3.0  # between the smallest and the largest unit of a column
MOVED = 0.01
AT = 100  # rows, at which Wang's model is looked at in a quick run
METHODS = ("evidence", "relevance", "ML", "AIC", "BIC", "Bartlett")
WANG = ("Wang, white columns", "Wang, columns of different units")
OURS = {
    100: Claim(PAPER, ITEM, "share of samples in which bayou finds three of three, 100 rows", 1.0, "derived", 0.15),
    200: Claim(PAPER, ITEM, "share of samples in which bayou finds three of three, 200 rows", 1.0, "derived", 0.1),
    500: Claim(PAPER, ITEM, "share of samples in which bayou finds three of three, 500 rows", 1.0, "derived", 0.05),
}
RELEVANT = {
    100: Claim(PAPER, ITEM, "the same by relevance alone, 100 rows", 1.0, "derived", 0.15),
    200: Claim(PAPER, ITEM, "the same by relevance alone, 200 rows", 1.0, "derived", 0.1),
}
ABOVE_ML = Claim(
    PAPER, ITEM, "share of the sizes 50, 100, 200, 500 at which bayou is right more often than ML", 1.0, "stated", 0.0
)
ABOVE_OTHERS = Claim(
    PAPER, ITEM, "share of AIC, BIC, Bartlett's test than which bayou is right more often, over all sizes", 1.0,
    "stated", 0.0,
)  # fmt: skip
WHITE = Claim(
    PAPER,
    ITEM,
    f"share of samples in which Wang's model finds three of three in white columns, {AT} rows",
    1.0,
    "derived",
    0.2,
)
UNITS = Claim(
    PAPER,
    ITEM,
    f"beside: share of samples in which units matter by {MOVED} or more to a correlation by Wang's model, {AT} rows",
    1.0,
    "derived",
    0.1,
)
NONE = Claim(
    PAPER,
    ITEM,
    "beside: share of samples without correlations in which bayou finds none, 100 rows",
    1.0,
    "derived",
    0.1,
)
NONE_RELEVANT = Claim(PAPER, ITEM, "beside: the same by relevance alone, 100 rows", 0.15, "derived", 0.15)


def orders(moments: Moments) -> dict[str, int]:
    """What each method finds in a sample."""
    model = canonical_model(moments, COLUMNS[0], LEAST)
    r, n = model.pairs.sample_correlation, round(moments.weight)
    return {
        "evidence": model.n_retained,
        "relevance": int(np.sum(model.pairs.correlation > LEAST)),
        "ML": int(np.sum(r > LEAST)),
        "AIC": likeliest(r, n, 1.0),
        "BIC": likeliest(r, n, 0.5 * math.log(n)),
        "Bartlett": bartlett(r, n),
    }


def by_wang(moments: Moments) -> dict[str, Vector]:
    """The correlations by Wang's model, in white columns and in columns of different units, from the sample's."""
    n_x, n_y = COLUMNS
    model = canonical_model(moments, n_x, LEAST)
    r, n = model.pairs.sample_correlation, moments.weight
    cross = np.zeros(COLUMNS)
    cross[np.arange(len(r)), np.arange(len(r))] = r
    white = n * np.block([[np.eye(n_x), cross], [cross.T, np.eye(n_y)]])
    units = np.concatenate([np.logspace(-0.5 * DECADES, 0.5 * DECADES, d) for d in COLUMNS])
    start = (0.5 / np.sqrt(0.5 * (1.0 + r)))[:, None]
    starts = (
        (start * np.eye(len(r), n_x), start * np.eye(len(r), n_y)),
        (start * (model.x.weights.T / units[:n_x])[: len(r)], start * (model.y.weights.T / units[n_x:])[: len(r)]),
    )
    scatters = white, moments.scatter * units * units[:, None]
    return {
        name: own_scale(scatter, n, n_x, begin, ROUNDS).correlations()
        for name, scatter, begin in zip(WANG, scatters, starts, strict=True)
    }


def run(effort: Effort) -> Findings:
    """All methods on the same samples; Wang's model, which takes long, on the first of them."""
    n_samples, n_wang = effort.replicas(full=300, quick=30), effort.replicas(full=16, quick=4)
    sizes_of_wang = (AT,) if effort.quick else SIZES
    done = None if effort.watch is None else effort.watch(n_samples * len(SIZES))
    matters: list[bool] = []
    hits: dict[tuple[str, int], list[bool]] = {}
    for n in SIZES:
        for replica in range(n_samples):
            seed = 1000 * effort.seed + replica
            moments = moments_of(draw_views(n, seed).rows)
            found = orders(moments)
            if replica < n_wang and n in sizes_of_wang:
                correlations = by_wang(moments)
                found |= {name: int(np.sum(one > LEAST)) for name, one in correlations.items()}
                white, other = correlations.values()
                if n == AT:
                    matters.append(bool(np.max(np.abs(white - other)) >= MOVED))
            for name, order in found.items():
                hits.setdefault((name, n), []).append(order == len(CORRELATIONS))
            if done is not None:
                done()
    shares = {key: share(values) for key, values in hits.items()}
    verdicts = [judge(claim, None, shares["evidence", n]) for n, claim in OURS.items()]
    verdicts += [judge(claim, None, shares["relevance", n]) for n, claim in RELEVANT.items()]
    verdicts += [judge(ABOVE_ML, None, _share_of([shares["evidence", n].mean > shares["ML", n].mean for n in SIZES]))]
    verdicts += [judge(ABOVE_OTHERS, None, above_others(shares))]
    verdicts += [judge(WHITE, None, shares[WANG[0], AT]), judge(UNITS, None, share(matters))]
    verdicts += [judge(claim, None, found) for claim, found in zip((NONE, NONE_RELEVANT), none(effort), strict=True)]
    return Findings(tuple(verdicts), (picture(shares),))


def above_others(shares: dict[tuple[str, int], Estimate]) -> Estimate:
    """Of the other methods, those that are right less often, all sizes taken together."""
    total = {name: sum(shares[name, n].mean for n in SIZES) for name in METHODS}
    return _share_of([total["evidence"] > total[name] for name in ("AIC", "BIC", "Bartlett")])


def none(effort: Effort) -> tuple[Estimate, Estimate]:
    """Of samples without correlations, those in which none is found: by the evidence, by relevance alone."""
    found = [
        orders(moments_of(draw_views(AT, 1000 * effort.seed + replica, ()).rows))
        for replica in range(effort.replicas(full=300, quick=30))
    ]
    return share([order["evidence"] == 0 for order in found]), share([order["relevance"] == 0 for order in found])


def _share_of(held: list[bool]) -> Estimate:
    return Estimate(float(np.mean(held)), 0.0)


def picture(shares: dict[tuple[str, int], Estimate]) -> Picture:
    """How often each method is right, by size."""
    colours = dict(zip((*METHODS, *WANG), (BLUE, PURPLE, GREY, GREEN, ORANGE, INK, ORANGE, PURPLE), strict=True))
    labels = {"evidence": "bayou", "relevance": "relevance alone"}
    series = []
    for place, name in enumerate((*METHODS, *WANG)):
        sizes = [n for n in SIZES if (name, n) in shares]
        told = [shares[name, n] for n in sizes]
        beside = [n * 1.02 ** (place - 3.5) for n in sizes]  # so that bars do not hide each other
        means, errors = [one.mean for one in told], [one.standard_error for one in told]
        series.append(
            points(labels.get(name, name), beside, means, errors, colours[name], "squares" if name in WANG else "discs")
        )
    return Picture(
        "wang2007-order",
        "Three correlations of three found",
        "rows: 50, 100, 200, 500, moved a little to be told apart",
        "share of samples",
        tuple(series),
        ylim=(-0.05, 1.05),
        legend="center right",
    )


EXPERIMENT = Experiment(
    ITEM,
    "how many correlations are found",
    (*OURS.values(), *RELEVANT.values(), ABOVE_ML, ABOVE_OTHERS, WHITE, UNITS, NONE, NONE_RELEVANT),
    run,
)
