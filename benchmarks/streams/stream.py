"""A stream: rows of numbers and categories in the order in which they came, and their labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayou.contracts import Matrix, Vector

MOST_VALUES = 100  # of a category that have a column; those that first appear later have none
ROWS_AT_ONCE = 1000


@dataclass(frozen=True)
class Category:
    """The values of a category in order of appearance, and which of them each row has; -1 for those beyond the most."""

    values: tuple[str, ...]
    codes: NDArray[np.int64]

    @classmethod
    def of(cls, column: ArrayLike) -> Category:
        """
        >>> Category.of(["b", "a", "b"])
        Category(values=('b', 'a'), codes=array([0, 1, 0]))
        """
        places: dict[str, int] = {}
        codes = np.array([places.setdefault(str(value), len(places)) for value in np.asarray(column).tolist()])
        return cls(tuple(places)[:MOST_VALUES], np.where(codes < MOST_VALUES, codes, -1))


@dataclass(frozen=True)
class Stream:
    """Numbers are columns of a matrix; labels are 0, 1, ...; ``truth`` has their probabilities where they are known.

    A label is told before the row that is ``delay`` rows after the next one is predicted.
    """

    name: str
    numbers: Matrix
    categories: Mapping[str, Category]
    labels: NDArray[np.int64]
    n_classes: int
    truth: Matrix | None = None
    delay: int = 0

    def __post_init__(self) -> None:
        if not np.isfinite(self.numbers).all():
            raise ValueError(f"{self.name} has numbers that are missing or not finite")
        if not (self.labels >= 0).all() or self.labels.max() >= self.n_classes:
            raise ValueError(f"{self.name} has labels beyond its {self.n_classes} classes")

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def n_columns(self) -> int:
        """With one for each value of a category."""
        return self.numbers.shape[1] + sum(len(category.values) for category in self.categories.values())

    def first(self, count: int | None) -> Stream:
        """The stream until so many rows have come. A value that has not appeared by then keeps its column."""
        if count is None or count >= len(self):
            return self
        kept = {name: replace(category, codes=category.codes[:count]) for name, category in self.categories.items()}
        truth = None if self.truth is None else self.truth[:count]
        return replace(self, numbers=self.numbers[:count], categories=kept, labels=self.labels[:count], truth=truth)

    # --- the rows, as contenders want them

    @cached_property
    def _places(self) -> NDArray[np.int64]:
        """Which column beyond the numbers each category of each row sets; -1 for none."""
        places, start = [], self.numbers.shape[1]
        for category in self.categories.values():
            places.append(np.where(category.codes < 0, -1, category.codes + start))
            start += len(category.values)
        return np.column_stack(places) if places else np.zeros((len(self), 0), dtype=np.int64)

    def chunks(self, size: int = ROWS_AT_ONCE) -> Iterator[tuple[Matrix, NDArray[np.int64]]]:
        """Dense rows with a column for each value of a category, and their labels."""
        for start in range(0, len(self), size):
            part = slice(start, min(start + size, len(self)))
            yield self._dense(part), self.labels[part]

    def _dense(self, part: slice) -> Matrix:
        rows = np.zeros((part.stop - part.start, self.n_columns))
        rows[:, : self.numbers.shape[1]] = self.numbers[part]
        row, which = np.nonzero(self._places[part] >= 0)
        rows[row, self._places[part][row, which]] = 1.0
        return rows

    def each(self) -> Iterator[tuple[Vector, list[int], int]]:
        """The numbers of a row, the columns that its categories set, and its label."""
        for numbers, places, label in zip(self.numbers, self._places.tolist(), self.labels.tolist(), strict=True):
            yield numbers, [place for place in places if place >= 0], label

    def dicts(self) -> Iterator[tuple[dict[str, Any], int]]:
        """Numbers as floats and categories as text, as they are."""
        columns, names = [f"x{column}" for column in range(self.numbers.shape[1])], list(self.categories)
        values = [[*category.values, "another"] for category in self.categories.values()]
        codes = [category.codes.tolist() for category in self.categories.values()]
        for t, (numbers, label) in enumerate(zip(self.numbers.tolist(), self.labels.tolist(), strict=True)):
            told = {name: values[c][codes[c][t]] for c, name in enumerate(names)}
            yield {**dict(zip(columns, numbers, strict=True)), **told}, label

    def dense_dicts(self) -> Iterator[tuple[dict[int, float], int]]:
        """The dense rows, by the numbers of their columns."""
        for rows, labels in self.chunks():
            for row, label in zip(rows.tolist(), labels.tolist(), strict=True):
                yield dict(enumerate(row)), label
