"""Two models on the same rows: is one better, or may that be chance?"""

from __future__ import annotations

import math
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr, chdtrc, stdtr

from bayou.contracts import State, Vector
from bayou.errors import InvalidPrediction, InvalidTarget, ModelFileError
from bayou.evaluation.metrics.metric import Metric, check_pairs

FEW = 1000  # rows that one model alone has wrong: up to there the test is exact
MOST_BATCHES = 64


class McNemar(Metric):
    """Two classifiers on the same rows: by how much the first is wrong more often, and McNemar's test of it.

    Rows that both have wrong, or neither, tell nothing of which is better. Of those that one alone has wrong, each is
    as likely the one's as the other's if the models are equally good: ``p_value`` is how probable it then is to be as
    uneven as this. It is exact (binomial) up to 1,000 such rows; beyond, by chi square with Yates's correction.

    >>> import numpy as np
    >>> test = mcnemar(np.array([1, 1, 1, 1, 1, 1, 0, 0, 0, 1], bool), np.array([0, 0, 0, 0, 0, 0, 0, 0, 1, 1], bool))
    >>> test
    McNemar(0.5 ± 0.22)
    >>> test.only_first, test.only_second, test.p_value
    (6, 1, 0.125)
    """

    counted: ClassVar[tuple[str, ...]] = ("rows", "only_first", "only_second", "both")

    def __init__(self) -> None:
        self.rows = self.only_first = self.only_second = self.both = 0  # rows that are wrong

    def update(self, wrong_first: NDArray[np.bool_], wrong_second: NDArray[np.bool_]) -> None:
        """Count more rows: whether each model had them wrong."""
        first, second = np.asarray(wrong_first), np.asarray(wrong_second)
        check_pairs(first, second, ("wrong_first", "wrong_second"))
        for name, part in (("wrong_first", first), ("wrong_second", second)):
            if not np.isin(part, (0, 1)).all():
                raise InvalidTarget(f"`{name}` must be true or false; got {part[~np.isin(part, (0, 1))][0]}.")
        one, other = first.astype(np.bool_), second.astype(np.bool_)
        self.rows += len(one)
        self.only_first += int((one & ~other).sum())
        self.only_second += int((~one & other).sum())
        self.both += int((one & other).sum())

    @property
    def value(self) -> float:
        """The error rate of the first, less that of the second."""
        return (self.only_first - self.only_second) / self.rows if self.rows else math.nan

    @property
    def standard_error(self) -> float:
        if self.rows < 2:
            return math.nan
        mean = self.value
        return math.sqrt(((self.only_first + self.only_second) / self.rows - mean**2) / (self.rows - 1))

    @property
    def p_value(self) -> float:
        """Of two sides; 1 where no row tells the models apart."""
        alone, less = self.only_first + self.only_second, min(self.only_first, self.only_second)
        if not self.rows:
            return math.nan
        if alone <= FEW:
            return min(2.0 * float(bdtr(less, alone, 0.5)), 1.0) if alone else 1.0
        uneven = max(abs(self.only_first - self.only_second) - 1.0, 0.0)
        return float(chdtrc(1.0, uneven**2 / alone))


class PairedDifference(Metric):
    """Two models on the same rows: by how much the mean loss of the first is larger, with an error that allows for
    rows that are like their neighbours.

    Rows are added up in batches, 32 to 64 of them; whenever there are 64, each two become one of twice the size. The
    means of long batches hardly depend on each other, whatever their rows do, and how they scatter gives the standard
    error; ``p_value`` is that of Student's t. Up to 63 rows each is a batch, and that is the paired t-test. It holds
    where rows are alike over no more than a batch, a 64th of the stream.

    ``merge`` takes the rows of the other to come later: the mean is exact, the batches are those of both.

    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> better, worse = random.exponential(1.0, size=4000), random.exponential(1.2, size=4000)
    >>> test = paired_difference(better, worse)
    >>> test.n_batches, test.value < 0.0, test.p_value < 0.001
    (63, True, True)
    """

    counted: ClassVar[tuple[str, ...]] = ("batch_rows", "sums", "sizes", "open_sum", "open_rows")

    def __init__(self) -> None:
        self.batch_rows = 1
        self.sums, self.sizes = np.zeros(0), np.zeros(0)  # of the batches that are full
        self.open_sum, self.open_rows = 0.0, 0

    def update(self, losses_first: ArrayLike, losses_second: ArrayLike) -> None:
        """Count more rows: the loss of each model."""
        first, second = (np.asarray(part, dtype=np.float64) for part in (losses_first, losses_second))
        check_pairs(first, second, ("losses_first", "losses_second"))
        with np.errstate(invalid="ignore"):
            differences = first - second
        if not np.isfinite(differences).all():
            row = int(np.argmin(np.isfinite(differences)))
            raise InvalidPrediction(f"losses must be finite; got {first[row]} and {second[row]} in row {row}.")
        start = 0
        while start < len(differences):
            start = self._fill(differences, start)

    def _fill(self, differences: Vector, start: int) -> int:
        """Count rows from there on, as far as there is room; how far that is."""
        size, left = self.batch_rows, len(differences) - start
        if self.open_rows or left < size:
            stop = start + min(size - self.open_rows, left)
            self.open_sum += float(differences[start:stop].sum())
            self.open_rows += stop - start
            if self.open_rows == size:
                self._close(np.array([self.open_sum]), np.array([float(size)]))
                self.open_sum, self.open_rows = 0.0, 0
            return stop
        batches = min(left // size, MOST_BATCHES - self.sums.size)
        stop = start + batches * size
        self._close(differences[start:stop].reshape(batches, size).sum(axis=1), np.full(batches, float(size)))
        return stop

    def _close(self, sums: Vector, sizes: Vector) -> None:
        self.sums, self.sizes = np.concatenate([self.sums, sums]), np.concatenate([self.sizes, sizes])
        while self.sums.size >= MOST_BATCHES:
            pairs = np.arange(0, self.sums.size, 2)
            self.sums, self.sizes = np.add.reduceat(self.sums, pairs), np.add.reduceat(self.sizes, pairs)
            self.batch_rows *= 2

    def _batches(self) -> tuple[Vector, Vector]:
        """Sums and sizes, that of the open one included."""
        if not self.open_rows:
            return self.sums, self.sizes
        return np.append(self.sums, self.open_sum), np.append(self.sizes, float(self.open_rows))

    def merge(self, other: Metric) -> None:
        self.check_alike(other)
        if not isinstance(other, PairedDifference) or not other.rows:
            return
        later = PairedDifference.from_state(other.to_state())
        if not self.rows:
            self.__dict__.update(later.__dict__)
            return
        finer, wanted = (self, later.batch_rows) if self.batch_rows < later.batch_rows else (later, self.batch_rows)
        while finer.batch_rows < wanted:
            finer._halve()
        self.sums, self.sizes = self._batches()
        self.open_sum, self.open_rows = later.open_sum, later.open_rows
        self._close(later.sums, later.sizes)

    def _halve(self) -> None:
        """Make batches twice as long."""
        sums, sizes = self.sums, self.sizes
        if sums.size % 2:  # the last of them goes on
            self.open_sum, self.open_rows = self.open_sum + float(sums[-1]), self.open_rows + int(sizes[-1])
            sums, sizes = sums[:-1], sizes[:-1]
        pairs = np.arange(0, sums.size, 2)
        if sums.size:
            sums, sizes = np.add.reduceat(sums, pairs), np.add.reduceat(sizes, pairs)
        self.sums, self.sizes, self.batch_rows = sums, sizes, 2 * self.batch_rows

    def has_room(self, name: str, shape: tuple[int, ...]) -> bool:
        return len(shape) == 1 and shape[0] < MOST_BATCHES

    @classmethod
    def made_of(cls, state: State) -> Self:
        test = super().made_of(state)
        if test.sums.shape != test.sizes.shape or not np.all(test.sizes > 0.0) or test.batch_rows < 1:
            raise ModelFileError(f"batches must have a sum and a size each; got {test.sums.size}, {test.sizes.size}.")
        return test

    @property
    def rows(self) -> int:
        """How many were counted."""
        return int(self.sizes.sum()) + self.open_rows

    @property
    def n_batches(self) -> int:
        """How many means the standard error is of."""
        return int(self._batches()[0].size)

    @property
    def value(self) -> float:
        """The mean loss of the first, less that of the second."""
        return (float(self.sums.sum()) + self.open_sum) / self.rows if self.rows else math.nan

    @property
    def standard_error(self) -> float:
        sums, sizes = self._batches()
        if sums.size < 2:
            return math.nan
        scatter = float(np.sum(sizes * (sums / sizes - self.value) ** 2))
        return math.sqrt(scatter / (sums.size - 1) / self.rows)

    @property
    def p_value(self) -> float:
        """How probable a difference as large as this is, to either side, if there is none in the long run."""
        error = self.standard_error
        if math.isnan(error):
            return math.nan
        if not error:
            return 1.0 if self.value == 0.0 else 0.0
        return min(2.0 * float(stdtr(self.n_batches - 1, -abs(self.value) / error)), 1.0)


def mcnemar(wrong_first: NDArray[np.bool_], wrong_second: NDArray[np.bool_]) -> McNemar:
    """McNemar's test of two classifiers, by whether each had each row wrong."""
    test = McNemar()
    test.update(wrong_first, wrong_second)
    return test


def paired_difference(losses_first: ArrayLike, losses_second: ArrayLike) -> PairedDifference:
    """The mean difference of the losses of two models on the same rows, and whether it may be chance."""
    test = PairedDifference()
    test.update(losses_first, losses_second)
    return test
