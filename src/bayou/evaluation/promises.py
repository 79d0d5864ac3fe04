"""What monitors share: the latest rows in constant memory, a look after every row, and a warning for every break."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Matrix, Vector
from bayou.errors import CalibrationWarning, InvalidSpec
from bayou.evaluation.metrics import Metric

WINDOW = 1000
LARGEST_WINDOW = 2**20
DEVIATIONS = 4.0

Whole = NDArray[np.int64]


class Monitor(Metric):
    """What the monitors share: the latest rows, and what is done when a promise breaks.

    ``broken`` says whether it is broken now, ``breaks`` how often it broke, ``broken_since`` at which row it last did.
    Each break is told once, by a `CalibrationWarning`.
    """

    def __init__(self, window: int, deviations: float, columns: int) -> None:
        if isinstance(window, bool) or not isinstance(window, (int, np.integer)) or not 1 <= window <= LARGEST_WINDOW:
            raise InvalidSpec(f"`window` must be a whole number from 1 to {LARGEST_WINDOW}; got {window!r}.")
        if not 0.0 < deviations < math.inf:
            raise InvalidSpec(f"`deviations` must be positive and finite; got {deviations!r}.")
        self.window, self.deviations = int(window), float(deviations)
        self.rows, self.breaks, self.broken = 0, 0, False
        self.broken_since: int | None = None
        self._kept = np.zeros((self.window, columns), dtype=np.int64)  # a ring; rows that never came are zeros
        self._sums = self._terms(self._kept).sum(axis=0)

    @abstractmethod
    def _terms(self, kept: Whole) -> Whole:
        """What is summed over the window, of each row; of zeros it is zero."""

    @abstractmethod
    def _surprises(self, sums: Whole, rows: Whole) -> Matrix:
        """How far each promise is missed, in standard errors, given the sums over so many rows."""

    @abstractmethod
    def _told(self, sums: Whole, rows: int, surprises: Vector) -> str:
        """What was promised and what came."""

    @property
    def rows_in_window(self) -> int:
        """How many rows are looked at now."""
        return min(self.rows, self.window)

    def _watch(self, fresh: Whole) -> None:
        """Count rows, and only then warn: where warnings are errors, nothing is left half done."""
        told: list[str] = []
        for start in range(0, len(fresh), self.window):
            told += self._watch_part(fresh[start : start + self.window])
        for message in told:
            warnings.warn(message, CalibrationWarning, stacklevel=3)

    def _watch_part(self, fresh: Whole) -> list[str]:
        places = (self.rows + np.arange(len(fresh))) % self.window
        sums = self._sums + np.cumsum(self._terms(fresh) - self._terms(self._kept[places]), axis=0)
        rows = np.minimum(self.rows + 1 + np.arange(len(fresh)), self.window)
        surprises, told = self._surprises(sums, rows), []
        for row in self._changes(np.abs(surprises).max(axis=1)):
            self.broken = not self.broken
            if self.broken:
                self.breaks, self.broken_since = self.breaks + 1, self.rows + row + 1
                said = self._told(sums[row], int(rows[row]), surprises[row])
                told.append(f"at row {self.broken_since} {said}")
        self._kept[places], self._sums = fresh, sums[-1]
        self.rows += len(fresh)
        return told

    def _changes(self, surprise: Vector) -> Iterator[int]:
        """The rows at which the promise breaks, is kept again, breaks again."""
        row, broken = 0, self.broken
        while True:
            changes = surprise[row:] < 0.5 * self.deviations if broken else surprise[row:] > self.deviations
            if not changes.any():
                return
            row, broken = row + int(np.argmax(changes)), not broken
            yield row
