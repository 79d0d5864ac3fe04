"""What theory expects of a learning curve, to be laid over the one that was measured.

    loss          L + N / 2n                 nats per row beyond the best weights: Opper 1998, (8.12), corrected
    RMSE          s sqrt(1 + N / n)          of least squares, from the same covariance of the weights
    error rate    `predicted_curve`          two classes told apart by a plane

N is the number of weights, n the number of rows learnt. What is reached in the end (L, s, the rate of wrong labels) no
theory knows: it is taken from the windows of the last half of the rows. The rest of the curve is predicted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bayou.bank_found import Settings
from bayou.contracts import Vector
from bayou.estimators.table_model import TableModel
from bayou.evaluation.table_run import TableRun

LAST_PART = 0.5  # of the rows, from which the end of a curve is taken
BORROWED_ROWS = 20.0  # for how many rows of its own the scatter of a typical window counts in each
LEAST_WINDOWS = 3
LEAST_ROWS_PER_WEIGHT = 4.0  # with fewer at the end, nothing that is true of many rows can be seen
POINTS = 80
COUNTED = ("rmse", "count")  # whose noise is not of one size


class Windows(NamedTuple):
    """A score along a run: its value in each window, the row that speaks for the window, and the standard error.

    That row is the logarithmic mean of the first and the last, so that a curve a + b / n has there its mean over the
    window. The error is that of the window's own rows; since few rows know little of how far they scatter (five right
    answers do not at all), the scatter of a typical window counts for some rows more.
    """

    row: Vector
    rows: Vector
    value: Vector
    error: Vector

    @classmethod
    def of(cls, run: TableRun, name: str) -> Windows:
        """Of one score, or of "error", which is 1 - accuracy; windows in which it has no value are left out."""
        place = 1 + list(run.scores.metrics).index("accuracy" if name == "error" else name)
        stops = np.array([point[0] for point in run.curve])
        values = np.array([point[place] for point in run.curve])
        values = 1.0 - values if name == "error" else values
        starts = np.concatenate([[0.0], stops[:-1]])
        errors = np.array([point[place - 1] for point in run.curve_errors])
        known = np.isfinite(values) & (stops > starts)
        starts, stops, values, errors = starts[known], stops[known], values[known], errors[known]
        first = np.maximum(starts, 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            middle = np.where(stops > first, (stops - first) / np.log(stops / first), stops)
        return cls(middle, stops - starts, values, _errors(stops - starts, errors))

    def last(self) -> Windows:
        """The windows of the last part of the rows."""
        late = np.cumsum(self.rows) > LAST_PART * self.rows.sum()
        return Windows(self.row[late], self.rows[late], self.value[late], self.error[late])

    def mean(self, values: Vector) -> float:
        """A mean over rows, of a value per window."""
        return float(np.average(values, weights=self.rows))


def _errors(rows: Vector, own: Vector) -> Vector:
    """Of windows of so many rows; not a number where no window knows its own."""
    scatter = own**2 * rows
    known = np.isfinite(scatter)
    if not known.any():
        return np.full(len(rows), math.nan)
    typical = np.median(scatter[known])
    mixed = (rows * np.where(known, scatter, typical) + BORROWED_ROWS * typical) / (rows + BORROWED_ROWS)
    return np.asarray(np.sqrt(mixed / rows))


class Expected(NamedTuple):
    """A curve that theory expects, where it ends, and what it says in words."""

    row: Vector
    value: Vector
    end: float
    words: str


def weights_of(model: TableModel) -> int | None:
    """How many weights there are to be learnt, with the intercepts; None of hashed rows, which use some of theirs."""
    if model.layout is None or model.layout.hashed:
        return None
    names = len(model.summary().names)
    if model.task == "multiclass":  # what all classes have in common says nothing
        inputs = names // max(len(model.classes), 1)
        return (len(model.classes) - 1) * (inputs + 1)
    return names + 1


def expected(run: TableRun, name: str) -> Expected | str:
    """What theory expects of a score, or of "error", the share of wrong classes; or why it expects nothing."""
    n_weights = weights_of(run.model)
    if name not in KINDS or (name == "error" and run.model.task != "binary") or (name, run.model.task) == COUNTED:
        return ""
    if n_weights is None:
        return "Of hashed rows theory expects nothing here: how many of the weights are used is not known."
    windows = Windows.of(run, name)
    if len(windows.row) < LEAST_WINDOWS or run.rows < LEAST_ROWS_PER_WEIGHT * n_weights:
        return f"The run is too short for a theory of many rows per weight: {run.rows:,} rows, {n_weights:,} weights."
    before = max(run.model.n_rows - run.scores.rows, 0)  # learnt in earlier runs
    rows = np.geomspace(max(float(n_weights), windows.row[0]), run.rows, POINTS)
    n_learnt = n_weights + ((name, run.model.task) == ("nlpd", "regression"))  # and the noise
    found = KINDS[name](windows.last(), rows, n_learnt, before)
    return "Theory expects nothing here: the error is below what it allows." if found is None else found


def _loss(last: Windows, rows: Vector, n_weights: int, before: int) -> Expected:
    from bayou.theory import entropic_error  # noqa: PLC0415  # for those who ask

    def excess(at: Vector) -> Vector:
        return np.array([entropic_error(row + before, n_weights) for row in at.tolist()])

    end = last.mean(last.value - excess(last.row))
    words = (
        f"Theory: {end:.4g} + N / 2n nats, with N = {n_weights} weights and n rows learnt. It assumes that every "
        "weight is learnt from the data, that nothing drifts, and many rows per weight; whether the model is true does "
        "not matter."
    )
    return Expected(rows, end + excess(rows), end, words)


def _rmse(last: Windows, rows: Vector, n_weights: int, before: int) -> Expected:
    growth = last.mean(1.0 + n_weights / (last.row + before))
    end = math.sqrt(last.mean(last.value**2) / growth)
    words = (
        f"Theory: {end:.4g} · √(1 + N / n), with N = {n_weights} weights and n rows learnt. It assumes that the target "
        "is a sum over the inputs plus noise of one size, that nothing drifts, and many rows per weight."
    )
    return Expected(rows, end * np.sqrt(1.0 + n_weights / (rows + before)), end, words)


def _error_rate(last: Windows, rows: Vector, n_weights: int, before: int) -> Expected | None:
    from scipy import optimize  # noqa: PLC0415  # for those who ask

    from bayou.theory import noise_of_flips, predicted_curve  # noqa: PLC0415

    measured = last.mean(last.value)

    def label_error(wrong: float, at: Vector) -> Vector:
        return predicted_curve(n_weights, at + before, noise_of_flips(wrong)).label_error

    def surplus(wrong: float) -> float:
        return last.mean(label_error(wrong, last.row)) - measured

    if not surplus(0.0) < 0.0 < surplus(0.499):
        return None
    end = float(optimize.brentq(surplus, 0.0, 0.499, xtol=1e-6))
    words = (
        f"Theory: the exact posterior of a perceptron with N = {n_weights} weights, where {end:.1%} of the labels are "
        "on the wrong side of the best plane. It assumes independent inputs of one scale, weights that matter alike, "
        "classes that are equally frequent, and many of each."
    )
    return Expected(rows, label_error(end, rows), end, words)


KINDS: dict[str, Callable[[Windows, Vector, int, int], Expected | None]] = {
    "log_loss": _loss,
    "nlpd": _loss,
    "rmse": _rmse,
    "error": _error_rate,
}


def doubts(model: TableModel) -> str:
    """What the run itself says against the assumptions; nothing if nothing does."""
    bank = model.estimator._learner_ if model.begun else None
    if not isinstance(bank, Settings):
        return ""
    found = []
    if bank.drift_probability > 0.5:
        found.append(f"the stream drifts with probability {bank.drift_probability:.2f}")
    bends = sum(p for member, p in zip(bank.members, bank.weights.tolist(), strict=True) if member.waves is not None)
    if bends > 0.5:
        found.append(f"curves bend with probability {bends:.2f}, which takes more weights than were counted")
    return f"But {' and '.join(found)}." if found else ""
