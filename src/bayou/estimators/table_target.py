"""What is to be predicted of a table: a column, or a comparison with one, as ``delay > 15``."""

from __future__ import annotations

import operator
import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Mask
from bayou.errors import InvalidSpec, InvalidTarget, StreamError
from bayou.numerics.files import polars
from bayou.numerics.table_kinds import listed

COMPARISONS = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
    "=": operator.eq,
}
TASKS = ("binary", "multiclass", "regression", "count")
AUTO = "auto"
MOST_CLASSES = 10  # of whole numbers; more of them are numbers
PATTERN = re.compile(r"^\s*(.+?)\s*(>=|<=|==|!=|>|<|=)\s*(.+?)\s*$")


class Known(NamedTuple):
    """Targets of rows, and of which rows there is one."""

    values: NDArray[Any]
    known: Mask


class Target(NamedTuple):
    """A column, and what it is compared with, if it is."""

    text: str
    column: str
    comparison: str | None = None
    value: Any = None

    def of(self, table: Any, task: str) -> Known:
        """The targets of a table, as a task takes them; those that are missing are not known."""
        column = self._column(table)
        if self.comparison is not None:
            column = self._compared(column)
        known = ~column.is_null().to_numpy()
        told = column.filter(column.is_not_null())
        if task in ("regression", "count"):
            return Known(_numbers(told, self.text, task), known)
        return Known(_labels(told, self.text), known)

    def task(self, table: Any) -> str:
        """What kind of prediction this is, by the first rows."""
        library, column = polars(), self._column(table)
        if self.comparison is not None:
            return "binary"
        told, kind = column.drop_nulls(), column.dtype
        if not len(told):
            raise InvalidTarget(f"the target {self.text!r} must have values in the first rows; all are missing.")
        distinct = int(told.n_unique())
        if kind.is_float() and not bool((told == told.round()).all()):
            return "regression"
        if kind.is_numeric() and distinct > MOST_CLASSES:
            return "regression"
        if not (kind.is_numeric() or kind in (library.String, library.Boolean, library.Categorical, library.Enum)):
            raise InvalidTarget(f"the target {self.text!r} must be numbers or classes; got {kind}.")
        return "binary" if distinct <= 2 else "multiclass"

    def _column(self, table: Any) -> Any:
        if self.column not in table.columns:
            raise StreamError(
                f"the target must be a column; got {self.column!r} of {listed(table.columns, self.column)}."
            )
        return table[self.column]

    def _compared(self, column: Any) -> Any:
        value = self.value
        if column.dtype.is_numeric() != isinstance(value, float):
            is_number = "numbers" if column.dtype.is_numeric() else str(column.dtype)
            raise InvalidTarget(f"{self.text!r} must compare like with like; {self.column!r} holds {is_number}.")
        return COMPARISONS[self.comparison or "=="](column, value)


def parsed(text: str, columns: list[str] | None = None) -> Target:
    """A target as it is written; a name that has a sign of comparison in it is a column if there is such a one."""
    if not isinstance(text, str) or not text.strip():
        raise InvalidSpec(f"`target` must name a column, or compare one, as 'delay > 15'; got {text!r}.")
    if columns is not None and text in columns:
        return Target(text, text)
    found = PATTERN.match(text)
    if not found:
        return Target(text, text.strip() if columns is None or text.strip() in columns else text)
    column, comparison, value = found.groups()
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    if quoted:
        return Target(text, column, comparison, value[1:-1])
    try:
        return Target(text, column, comparison, float(value))
    except ValueError:
        return Target(text, column, comparison, value)


def _labels(told: Any, name: str) -> NDArray[Any]:
    library = polars()
    if told.dtype == library.Boolean:
        return np.asarray(told.to_numpy(), dtype=np.bool_)
    if told.dtype.is_numeric():
        numbers = told.cast(library.Float64).to_numpy()
        if not np.isfinite(numbers).all() or (numbers != np.round(numbers)).any():
            wrong = numbers[~np.isfinite(numbers) | (numbers != np.round(numbers))][0]
            raise InvalidTarget(f"the target {name!r} must be a class, a whole number or text; got {wrong}.")
        return np.asarray(numbers, dtype=np.int64)
    return np.array(told.cast(library.String).to_list(), dtype=object)


def _numbers(told: Any, name: str, task: str) -> NDArray[Any]:
    library = polars()
    if told.dtype == library.Boolean:
        told = told.cast(library.Float64)
    if not told.dtype.is_numeric():
        if told.dtype != library.String:
            raise InvalidTarget(f"the target {name!r} must hold numbers; got {told.dtype}.")
        cast = told.cast(library.Float64, strict=False)
        if cast.null_count():
            raise InvalidTarget(f"the target {name!r} must hold numbers; got {told.filter(cast.is_null())[0]!r}.")
        told = cast
    numbers = np.asarray(told.cast(library.Float64).to_numpy(), dtype=np.float64)
    legal = np.isfinite(numbers) & ((numbers >= 0.0) & (numbers == np.round(numbers)) if task == "count" else True)
    if not legal.all():
        wanted = "counts, 0, 1, 2, ..." if task == "count" else "finite numbers"
        raise InvalidTarget(f"the target {name!r} must hold {wanted}; got {numbers[~legal][0]}.")
    return numbers
