"""Fig. 2: polynomials of three orders after 10, 80 and 150 examples of one sequence, and the batch fit of all.

What the text says of the figure is measured over many sequences: that an example acts where it is, that later ones
change little, that the end is near the batch fit, and that orders become alike. IRMA itself is held to (8).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Matrix, Vector
from bayou.papers.buschermoehle2013.sequences import (
    DOMAIN,
    N_EXAMPLES,
    ORDERS,
    SNAPSHOTS,
    Sequences,
    batch_fit,
    begin_again,
    draw_sequences,
    estimate,
    irma,
    predictions,
    snapshots,
    target,
    watched,
)
from bayou.papers.buschermoehle2013.written_out import incremental_risk
from bayou.papers.claims import Claim, Effort, Experiment, Findings, judge
from bayou.papers.ensembles import Estimate
from bayou.papers.figures import BLUE, GREY, INK, ORANGE, Picture, Sheet, line

PAPER, ITEM = "buschermoehle2013", "Fig. 2"
X: Vector = np.linspace(*DOMAIN, 301)
RANGE = math.exp(-0.5) * math.sqrt(0.5)  # of the target, from 0 to 0.43
NEAR, FAR = 0.03, 0.3  # how far an input is from the nearest example
EXACT = 1e-12  # what rounding may do to a prediction
FEW, SOME, ALL = range(len(SNAPSHOTS))
HIGH = ORDERS[-1]

EQUATION = {
    order: Claim(
        PAPER, ITEM, f"largest difference of a prediction from (8) written out, order {order}", 0.0, "derived", EXACT
    )
    for order in ORDERS
}
LOCAL_GAIN = {
    order: Claim(
        PAPER, ITEM, f"(12): share of examples whose error is less once learnt, order {order}", 1.0, "stated", 0.0
    )
    for order in ORDERS
}
ACTS_HERE = Claim(
    PAPER,
    ITEM,
    f"slope of the function on the target nearer than {NEAR} to one of {SNAPSHOTS[FEW]} examples, order {HIGH}",
    1.0,
    "read off the plot",
    0.05,
)
NOT_THERE = Claim(
    PAPER,
    ITEM,
    f"slope of the function on the target farther than {FAR} from {SNAPSHOTS[FEW]} examples, order {HIGH}",
    0.0,
    "read off the plot",
    0.1,
)
SETTLED = {
    order: Claim(
        PAPER,
        ITEM,
        f"change from {SNAPSHOTS[SOME]} to {SNAPSHOTS[ALL]} examples, in units of the range, order {order}",
        0.0,
        "read off the plot",
        0.05,
    )
    for order in ORDERS
}
BATCH = {
    order: Claim(
        PAPER,
        ITEM,
        f"distance from the batch fit after {N_EXAMPLES} examples, in units of the range, order {order}",
        0.0,
        "read off the plot",
        0.03,
    )
    for order in ORDERS
}
ALIKE = Claim(
    PAPER,
    ITEM,
    f"distance between the orders {ORDERS[1]} and {HIGH}: after {SNAPSHOTS[ALL]} / after {SNAPSHOTS[FEW]} examples",
    0.0,
    "read off the plot",
    0.15,
)


def distance(one: NDArray[np.float64], other: NDArray[np.float64]) -> Vector:
    """Root mean square over the domain, in units of the target's range."""
    return np.asarray(np.sqrt(np.mean((one - other) ** 2, axis=-1)) / RANGE)


def slope_on_target(functions: Matrix, sequences: Sequences, low: float, high: float) -> Estimate:
    """1 where the function is the target, 0 where it is still zero: over inputs so far from the nearest example."""
    seen = sequences.x[:, : SNAPSHOTS[FEW]]
    gap = np.array([np.abs(X[:, None] - x).min(axis=1) for x in seen])
    inside = (gap >= low) & (gap < high)
    wanted = np.where(inside, target(X), 0.0)
    products, squares = np.sum(functions * wanted, axis=1), np.sum(wanted**2, axis=1)
    slope = float(products.sum() / squares.sum())
    left = products - slope * squares
    return Estimate(slope, float(np.sqrt(np.sum(left**2)) / squares.sum()))


def share_of_gains(order: int, x: Vector, y: Vector) -> float:
    """How often an example, once it is learnt, is predicted better than before."""
    approach = irma(order)
    learner = approach.learner()
    begin_again(learner)
    better = []
    for row, wanted in zip(approach.encode(x), y, strict=True):
        before = learner.learn_one(row, wanted).mean
        better.append(abs(wanted - learner.predict_one(row).mean) < abs(wanted - before))
    return float(np.mean(better))


def run(effort: Effort) -> Findings:
    """All orders on the same sequences; the first of these is drawn."""
    sequences = draw_sequences(effort.replicas(full=400, quick=60), effort.seed)
    done = watched(effort, len(sequences.x) * len(ORDERS))
    learnt = {order: np.array(_told(snapshots(irma(order), sequences, X), done)) for order in ORDERS}
    fitted = {order: np.array([batch_fit(order, x, y, X) for x, y in zip(*sequences, strict=True)]) for order in ORDERS}
    few = Sequences(sequences.x[:20], sequences.y[:20])
    verdicts = []
    for order in ORDERS:
        gap = np.abs(predictions([irma(order)], few)[0] - incremental_risk(few, order)[0]).max()
        verdicts.append(judge(EQUATION[order], None, Estimate(float(gap), 0.0)))
        share = share_of_gains(order, sequences.x[0], sequences.y[0])
        verdicts.append(judge(LOCAL_GAIN[order], None, Estimate(share, 0.0)))
        moved = distance(learnt[order][:, ALL], learnt[order][:, SOME])
        verdicts.append(judge(SETTLED[order], None, estimate(moved)))
        verdicts.append(judge(BATCH[order], None, estimate(distance(learnt[order][:, ALL], fitted[order]))))
    early = learnt[HIGH][:, FEW]
    verdicts.append(judge(ACTS_HERE, None, slope_on_target(early, sequences, 0.0, NEAR)))
    verdicts.append(judge(NOT_THERE, None, slope_on_target(early, sequences, FAR, math.inf)))
    apart = distance(learnt[ORDERS[1]], learnt[HIGH])
    verdicts.append(judge(ALIKE, None, estimate(apart[:, ALL] / apart[:, FEW].mean())))
    return Findings(tuple(verdicts), (sheet(sequences, learnt, fitted),))


def _told(functions: Iterator[Matrix], done: Callable[[], None] | None) -> list[Matrix]:
    kept = []
    for each in functions:
        kept.append(each)
        if done is not None:
            done()
    return kept


def sheet(sequences: Sequences, learnt: dict[int, NDArray[np.float64]], fitted: dict[int, Matrix]) -> Sheet:
    """As in the paper: a row per number of examples, the last for the batch fit; a column per order."""
    x, y = sequences.x[0], sequences.y[0]
    rows = [(n, f"{n} examples", "IRMA", BLUE) for n in SNAPSHOTS]
    rows.append((N_EXAMPLES, f"batch of {N_EXAMPLES}", "batch fit", ORANGE))
    pictures = []
    for place, (n, title, name, colour) in enumerate(rows):
        seen = np.argsort(x[:n])
        for order in ORDERS:
            function = learnt[order][0, place] if place < len(SNAPSHOTS) else fitted[order][0]
            series = (
                line("target", X, target(X), "solid", GREY),
                line("examples", x[:n][seen], y[:n][seen], "dots", INK),
                line(name, X, function, "solid", colour),
            )
            title_here = f"order {order}, {title}"
            pictures.append(Picture(title_here, title_here, "x", "y", series, xlim=DOMAIN, ylim=(-0.25, 0.65)))
    return Sheet("buschermoehle2013-figure-2", "Polynomials as they are learnt", tuple(pictures), len(ORDERS))


EXPERIMENT = Experiment(
    ITEM,
    "polynomials as they are learnt",
    (
        *EQUATION.values(),
        *LOCAL_GAIN.values(),
        ACTS_HERE,
        NOT_THERE,
        *SETTLED.values(),
        *BATCH.values(),
        ALIKE,
    ),
    run,
)
