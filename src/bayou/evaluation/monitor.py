"""Promises that are watched along a stream: what was promised, what came, and whether chance can explain the rest.

    CoverageMonitor       intervals, or sets: as many targets inside as promised
    CalibrationMonitor    probabilities of classes: things happen as often as they were said to

Both look at a window of the latest rows, after every row, in constant memory. A promise counts as broken when it is
missed by more than ``deviations`` standard errors, 4 by default, and as kept again when it is missed by less than half
as many. At 4, one or two streams in a hundred whose promises are true give a false alarm within 20 windows of rows.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, ndtri

from bayou.contracts import Matrix, Vector
from bayou.errors import InvalidPrediction, InvalidSpec, InvalidTarget, ShapeMismatch
from bayou.evaluation.metrics import CalibrationError
from bayou.evaluation.promises import DEVIATIONS, WINDOW, Monitor, Whole

ONE = 2**40  # numbers are kept as multiples of its inverse: sums are then exact, however rows are portioned
SUM_TOLERANCE = 1e-6


class CoverageMonitor(Monitor):
    """Coverage of intervals in the latest rows, watched: as many targets inside as promised, no fewer and no more.

    The test is that of the binomial distribution, exact for rows that do not depend on each other, from the first row
    on. With ``at_least``, more targets inside than promised is no breach: that is what sets of classes promise.

    >>> import numpy as np, warnings
    >>> monitor, targets = CoverageMonitor(0.9), np.random.default_rng(0).normal(size=3000)
    >>> monitor.update(np.tile([-1.645, 1.645], (3000, 1)), targets)
    >>> monitor, monitor.broken
    (CoverageMonitor(0.9 ± 0.0095), False)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     monitor.update(np.tile([-1.0, 1.0], (3000, 1)), targets)
    >>> print(caught[0].message)
    at row 3160 intervals are too narrow: they promised to cover 0.9, and 0.859 ± 0.011 of the last 1000 targets ...
    """

    def __init__(
        self, level: float = 0.9, window: int = WINDOW, deviations: float = DEVIATIONS, at_least: bool = False
    ) -> None:
        if not 0.0 < level < 1.0:
            raise InvalidSpec(f"`level` must lie between 0 and 1; got {level!r}.")
        self.level, self.at_least = float(level), bool(at_least)
        super().__init__(window, deviations, columns=1)

    def update(self, intervals: ArrayLike, targets: ArrayLike) -> None:
        """Watch more rows: (low, high) of each and its target, or those of one row."""
        given, values = np.asarray(intervals, dtype=np.float64), np.asarray(targets, dtype=np.float64)
        if given.shape != (*values.shape, 2) or values.ndim > 1:
            raise ShapeMismatch(f"`intervals` must have shape {(*values.shape, 2)}, as targets do; got {given.shape}.")
        ends = given.reshape(-1, 2)
        for low, high in ends[~(ends[:, 0] <= ends[:, 1])][:1]:
            raise InvalidPrediction(f"`intervals` must have a low end and a high end; got {low} and {high}.")
        for value in values[~np.isfinite(values)].flat:
            raise InvalidTarget(f"`targets` must be finite numbers; got {value}.")
        column = values.reshape(-1, 1)
        self._watch(((column < ends[:, :1]) | (column > ends[:, 1:])).astype(np.int64))

    def count(self, inside: ArrayLike) -> None:
        """Watch more rows, given whether each target was inside: inside an interval, a set, a region."""
        covered = np.atleast_1d(np.asarray(inside))
        if covered.ndim != 1 or covered.dtype != np.bool_:
            raise ShapeMismatch(f"`inside` must be True or False for each row; got {inside!r}.")
        self._watch((~covered[:, None]).astype(np.int64))

    def _terms(self, kept: Whole) -> Whole:
        return kept

    def _surprises(self, sums: Whole, rows: Whole) -> Matrix:
        missed = sums[:, 0]
        as_many = np.where(missed > 0, betainc(np.maximum(missed, 1), rows - missed + 1, 1.0 - self.level), 1.0)
        as_few = np.where(missed < rows, betainc(np.maximum(rows - missed, 1), missed + 1, self.level), 1.0)
        tail = as_many if self.at_least else np.minimum(as_many, as_few)
        sides = np.where(as_many < as_few, 1.0, -1.0)
        surprises: Matrix = (sides * np.maximum(-ndtri(tail), 0.0))[:, None]  # what is as rare for a normal variable
        return surprises

    def _told(self, sums: Whole, rows: int, surprises: Vector) -> str:
        share = 1.0 - sums[0] / rows
        what = "narrow" if surprises[0] > 0.0 else "wide"
        came = f"{share:.3g} ± {_binomial_error(share, rows):.2g} of the last {rows} targets were inside"
        return f"intervals are too {what}: they promised to cover {self.level:g}, and {came}."

    @property
    def value(self) -> float:
        """Share of the targets in the window that were inside."""
        return 1.0 - float(self._sums[0]) / self.rows_in_window if self.rows else math.nan

    @property
    def standard_error(self) -> float:
        return _binomial_error(self.value, self.rows_in_window) if self.rows else math.nan


def _binomial_error(share: float, rows: int) -> float:
    return math.sqrt(share * (1.0 - share) / rows)


class CalibrationMonitor(Monitor):
    """Calibration of probabilities in the latest rows, watched: things happen as often as they were said to.

    ``value`` is the calibration error of the window; ``noise`` is what true probabilities would show. Two sums are
    tested. What happened, less what was promised: are probabilities too high or too low? And the Brier score less what
    the probabilities themselves make of it (Spiegelhalter 1986): are they too bold or too timid? Standard errors are
    widened as in Bernstein's inequality, for a rare event makes a large step. Errors that cancel in both sums go
    unnoticed, but show in ``value``. The probability is that of the second class if there are two, else that of the
    most probable one.

    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> said = random.uniform(size=5000)
    >>> monitor = CalibrationMonitor()
    >>> monitor.update(np.column_stack([1.0 - said, said]), (random.uniform(size=5000) < said).astype(int))
    >>> monitor.broken, bool(monitor.value < 1.5 * monitor.noise)
    (False, True)
    """

    def __init__(self, window: int = WINDOW, deviations: float = DEVIATIONS) -> None:
        super().__init__(window, deviations, columns=2)

    def update(self, probabilities: ArrayLike, codes: ArrayLike) -> None:
        """Watch more rows: the probability of each class, a column per class, and the true columns; or those of one."""
        given, columns = np.asarray(probabilities, dtype=np.float64), np.asarray(codes)
        if columns.ndim > 1 or given.ndim != columns.ndim + 1 or given.shape[:-1] != columns.shape:
            wanted = f"{columns.shape} and a column per class, as codes do"
            raise ShapeMismatch(f"`probabilities` must have shape {wanted}; got {given.shape}.")
        rows, truth = given.reshape(-1, given.shape[-1]), columns.reshape(-1)
        _check_probabilities(rows)
        if truth.dtype.kind not in "iu" or not np.all((truth >= 0) & (truth < rows.shape[1])):
            raise InvalidTarget(f"`codes` must be whole numbers from 0 to {rows.shape[1] - 1}; got {codes!r}.")
        if rows.shape[1] == 2:
            said, happened = rows[:, 1], truth == 1
        else:
            said, happened = rows.max(axis=1), np.argmax(rows, axis=1) == truth
        self._watch(np.column_stack([np.rint(np.minimum(said, 1.0) * ONE).astype(np.int64), happened * ONE]))

    def _terms(self, kept: Whole) -> Whole:
        """What was said and what happened; of both sums that are tested their variance, of the second its value."""
        said, happened = kept[:, 0] / ONE, kept[:, 1] / ONE
        variance, contrast = said * (1.0 - said), 1.0 - 2.0 * said
        parts = np.column_stack([variance, contrast**2 * variance, contrast * (happened - said)])
        return np.column_stack([kept, np.rint(parts * ONE).astype(np.int64)])

    def _surprises(self, sums: Whole, rows: Whole) -> Matrix:
        excess = np.column_stack([sums[:, 1] - sums[:, 0], sums[:, 4]]) / ONE
        variance = sums[:, 2:4] / ONE + np.abs(excess) / 3.0  # Bernstein's, for steps of size 1
        surprises: Matrix = excess / np.sqrt(np.maximum(variance, 1.0 / ONE))
        return surprises

    def _told(self, sums: Whole, rows: int, surprises: Vector) -> str:
        said, happened, variance, spread, excess = (sums / (ONE * rows)).tolist()
        if abs(surprises[0]) >= abs(surprises[1]):
            what, error = "low" if happened > said else "high", math.sqrt(variance / rows)
            came = f"they promised {said:.3g}, and {happened:.3g} ± {error:.2g} happened in the last {rows} rows"
        else:
            what, error = "bold" if excess > 0.0 else "timid", math.sqrt(spread / rows)
            brier = f"{variance + excess:.3g} ± {error:.2g}"
            came = f"they promised a Brier score of {variance:.3g}, and it was {brier} in the last {rows} rows"
        return f"probabilities are too {what}: {came}."

    def _errors(self) -> CalibrationError:
        latest, errors = self._kept[: self.rows_in_window] / ONE, CalibrationError()
        errors.update(np.column_stack([1.0 - latest[:, 0], latest[:, 0]]), latest[:, 1].astype(np.intp))
        return errors

    @property
    def value(self) -> float:
        """Calibration error of the window, as `CalibrationError` has it."""
        return self._errors().value

    @property
    def standard_error(self) -> float:
        return self._errors().standard_error

    @property
    def noise(self) -> float:
        """The calibration error to expect by chance in the window if every probability were true."""
        return self._errors().noise


def _check_probabilities(rows: Matrix) -> None:
    for value in rows[~((rows >= 0.0) & (rows <= 1.0 + SUM_TOLERANCE))][:1]:
        raise InvalidPrediction(f"`probabilities` must lie between 0 and 1; got {value}.")
    for total in rows.sum(axis=1)[np.abs(rows.sum(axis=1) - 1.0) > SUM_TOLERANCE][:1]:
        raise InvalidPrediction(f"`probabilities` of a row must sum to 1; got {total}.")
