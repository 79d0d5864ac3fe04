"""Table I: the mean square error against the target without noise, over many sequences, IRMA and batch.

What is printed is a mean over 1,000 sequences, and has a standard error itself, which the other column tells: it is
called the standard deviation, but holds the variance. The paper does not say over which domain it integrates. Over that
of the data, 0 to 3, errors come out up to 1.5 times as large as printed; over -0.2 to 3.2 all nine agree, which is an
inference from the table, not a statement of the paper.

A batch fit of 10 examples has no mean worth the name: it grows with every sequence that is drawn. The polynomial of
order 10, with 11 coefficients, is not even determined.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from bayou.contracts import Matrix, Vector
from bayou.papers.buschermoehle2013.sequences import (
    DOMAIN,
    GRID,
    ORDERS,
    SNAPSHOTS,
    Sequences,
    batch_fit,
    deviation,
    draw_sequences,
    estimate,
    irma,
    median,
    snapshots,
    target,
    watched,
)
from bayou.papers.claims import STANDARD_ERRORS, Claim, Effort, Experiment, Findings, Verdict, judge
from bayou.papers.ensembles import Estimate

PAPER, ITEM = "buschermoehle2013", "Table I"
N_PRINTED = 1_000
N_SEQUENCES = 5_000  # of IRMA, whose means are then known better than the print knows them
WIDER = (-0.2, 3.2)
Cell: TypeAlias = tuple[int, int]  # examples, order
Errors: TypeAlias = dict[Cell, Vector]  # per sequence

MEANS: dict[Cell, float] = dict(
    zip(
        [(n, order) for n in SNAPSHOTS for order in ORDERS],
        [3.1e-3, 5.5e-3, 1.2e-2, 3.0e-4, 2.2e-4, 3.1e-4, 2.0e-4, 9.4e-5, 1.2e-4],
        strict=True,
    )
)
VARIANCES: dict[Cell, float] = dict(
    zip(MEANS, [2.9e-5, 6.0e-5, 1.2e-4, 1.2e-8, 1.5e-8, 2.3e-8, 2.1e-9, 3.0e-9, 3.1e-9], strict=True)
)
BATCH_CELLS = [(n, order) for n in SNAPSHOTS[1:] for order in ORDERS]
BATCH_MEANS: dict[Cell, float] = dict(zip(BATCH_CELLS, [2.0e-4, 1.0e-4, 4.0e-4, 1.6e-4, 5.0e-5, 8.4e-5], strict=True))
BATCH_VARIANCES: dict[Cell, float] = dict(
    zip(BATCH_CELLS, [5.3e-9, 1.2e-8, 5.3e-6, 6.4e-10, 6.7e-10, 8.7e-9], strict=True)
)


def margin(mean: float, variance: float) -> float:
    """Half a unit of the last of the two digits, and three standard errors of what is printed."""
    last = 10.0 ** (math.floor(math.log10(mean)) - 1)
    return 0.5 * last + STANDARD_ERRORS * math.sqrt(variance / N_PRINTED)


def _cell(cell: Cell) -> str:
    return f"{cell[0]} examples, order {cell[1]}"


INCREMENTAL = {
    cell: Claim(
        PAPER,
        ITEM,
        f"MSE of IRMA, {_cell(cell)}, domain [-0.2, 3.2] (an inference: the paper names none)",
        mean,
        "stated",
        margin(mean, VARIANCES[cell]),
    )
    for cell, mean in MEANS.items()
}
FARTHEST = Claim(
    PAPER, ITEM, "MSE of IRMA / printed, the farthest from 1 of nine, domain [-0.2, 3.2]", 1.0, "derived", 0.07
)
AS_STATED = Claim(
    PAPER,
    ITEM,
    "MSE of IRMA / printed, the farthest from 1 of nine, domain [0, 3], that of the data",
    1.0,
    "derived",
    0.5,
)
BATCH = {
    cell: Claim(
        PAPER, ITEM, f"MSE of the batch fit, {_cell(cell)}", mean, "stated", margin(mean, BATCH_VARIANCES[cell])
    )
    for cell, mean in BATCH_MEANS.items()
}
LATE: Cell = (SNAPSHOTS[-1], ORDERS[1])
DEVIATION = Claim(
    PAPER,
    ITEM,
    f"standard deviation of the MSE of IRMA, {_cell(LATE)}",
    VARIANCES[LATE],
    "stated",
    0.05e-9,
    erratum="the column holds the variance",
)
VARIANCE = Claim(
    PAPER,
    ITEM,
    "variance of the MSE of IRMA / printed deviation, geometric mean of nine, domain [-0.2, 3.2]",
    1.0,
    "derived",
    0.3,
)
STABLE = {
    order: Claim(
        PAPER,
        ITEM,
        f"share of sequences in which IRMA errs less than f = 0 does, {SNAPSHOTS[0]} examples, order {order}",
        1.0,
        "derived",
        0.02,
    )
    for order in ORDERS
}


def errors_of(order: int, domain: tuple[float, float], sequences: Sequences, done: Callable[[], None] | None) -> Errors:
    """Mean square errors on the grid, per sequence, of IRMA."""
    found: Matrix = np.empty((len(sequences.x), len(SNAPSHOTS)))
    for row, functions in enumerate(snapshots(irma(order, domain), sequences, GRID)):
        found[row] = np.mean((functions - target(GRID)) ** 2, axis=1)
        if done is not None:
            done()
    return {(n, order): found[:, place] for place, n in enumerate(SNAPSHOTS)}


def batch_errors_of(order: int, sequences: Sequences) -> Errors:
    """The same of batch fits."""
    return {
        (n, order): np.array(
            [
                np.mean((batch_fit(order, x[:n], y[:n], GRID) - target(GRID)) ** 2)
                for x, y in zip(*sequences, strict=True)
            ]
        )
        for n in SNAPSHOTS
    }


def run(effort: Effort) -> Findings:
    """IRMA over both domains; batch fits of as many of the sequences as the paper has."""
    sequences = draw_sequences(effort.replicas(full=N_SEQUENCES, quick=100), effort.seed)
    first = Sequences(*(values[:N_PRINTED] for values in sequences))
    done = watched(effort, len(sequences.x) * len(ORDERS) * 2)
    stated: Errors = {}
    wider: Errors = {}
    batch: Errors = {}
    for order in ORDERS:
        stated |= errors_of(order, DOMAIN, sequences, done)
        wider |= errors_of(order, WIDER, sequences, done)
        batch |= batch_errors_of(order, first)
    verdicts = [judge(claim, None, estimate(wider[cell])) for cell, claim in INCREMENTAL.items()]
    verdicts += [judge(FARTHEST, None, farthest(wider)), judge(AS_STATED, None, farthest(stated))]
    verdicts += [judge(claim, None, estimate(batch[cell])) for cell, claim in BATCH.items()]
    verdicts += [judge(DEVIATION, None, deviation(wider[LATE])), judge(VARIANCE, None, variance_ratio(wider))]
    verdicts += [judge_stable(claim, order, stated, batch) for order, claim in STABLE.items()]
    return Findings(tuple(verdicts))


def farthest(errors: Errors) -> Estimate:
    """Of the ratios to what is printed, the one that is farthest from 1, either way."""
    ratios = [estimate(errors[cell]) * (1.0 / mean) for cell, mean in MEANS.items()]
    return max(ratios, key=lambda ratio: abs(math.log(ratio.mean)))


def variance_ratio(errors: Errors) -> Estimate:
    """To what is printed, as the geometric mean of all cells; its standard error as if these were independent."""
    logarithms, squares = [], []
    for cell, printed in VARIANCES.items():
        found = deviation(errors[cell])
        logarithms.append(math.log(found.mean**2 / printed))
        squares.append((2.0 * found.standard_error / found.mean) ** 2)
    ratio = math.exp(float(np.mean(logarithms)))
    return Estimate(ratio, ratio * math.sqrt(sum(squares)) / len(squares))


def judge_stable(claim: Claim, order: int, errors: Errors, batch: Errors) -> Verdict:
    """Whether few examples are better than none; the note tells it of batch fits."""
    cell, idle = (SNAPSHOTS[0], order), float(np.mean(target(GRID) ** 2))
    share = float(np.mean(batch[cell] < idle))
    note = f"batch: in {share:.2f} of them, with a median of {median(batch[cell]).mean:.2g}"
    return judge(claim, None, estimate((errors[cell] < idle).astype(np.float64)), note=note)


EXPERIMENT = Experiment(
    ITEM,
    "errors of IRMA and of batch fits",
    (*INCREMENTAL.values(), FARTHEST, AS_STATED, *BATCH.values(), DEVIATION, VARIANCE, *STABLE.values()),
    run,
)
