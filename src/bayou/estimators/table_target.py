"""What is to be predicted of a table: a column, or a comparison with one, as ``delay > 15``."""

from __future__ import annotations

import operator
import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Mask, Vector
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
MOST_LABELS = 1000  # of text
LARGEST = 1e140  # that can be squared
WHOLE = 2.0**53  # floats below have every whole number
TRUTH = {"true": True, "false": False, "1.0": True, "0.0": False}
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
        known: Mask = ~column.is_null().to_numpy()
        told = column.filter(column.is_not_null())
        if task in ("regression", "count"):
            return Known(_numbers(told, self.text, task), known)
        return Known(_labels(told, self.text), known)

    def bad_rows(self, table: Any, task: str) -> dict[int, str]:
        """Rows whose target is none that a task takes, and why."""
        column = self._column(table)
        if self.comparison is not None or column.dtype == polars().Boolean:
            return {}
        if task in ("regression", "count"):
            wanted = f"{_wanted(task)} below {LARGEST:g} in size"
            bad = ~_legal(_floats(column), task)
        elif column.dtype.is_numeric():
            wanted, bad = "a class, a whole number or text", ~_whole(_floats(column))
        else:
            return {}
        bad &= column.is_not_null().to_numpy()
        reason = f"the target {self.text!r} must hold {wanted}; got"
        return {row: f"{reason} {column[row]!r}" for row in np.flatnonzero(bad).tolist()}

    def task(self, table: Any) -> str:
        """What kind of prediction this is, by the first rows."""
        library, column = polars(), self._column(table)
        if self.comparison is not None:
            return "binary"
        told, kind = column.drop_nulls(), column.dtype
        if not len(told):
            raise InvalidTarget(f"the target {self.text!r} must have values in the first rows; all are missing.")
        distinct = int(told.n_unique())
        if not kind.is_numeric() and distinct > MOST_LABELS:
            raise InvalidTarget(
                f"the target {self.text!r} must have at most {MOST_LABELS:,} classes; got {distinct:,} different "
                f"values of {kind}, the first {told[0]!r}."
            )
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
        column = table[self.column]
        return column.fill_nan(None) if column.dtype.is_float() else column

    def _compared(self, column: Any) -> Any:
        library, value = polars(), self.value
        if column.dtype == library.Null:  # nothing is known of any row
            return column
        if column.dtype == library.Boolean and str(value).lower() in TRUTH:
            value = TRUTH[str(value).lower()]
        elif column.dtype in (library.String, library.Categorical, library.Enum) and isinstance(value, str):
            column = column.cast(library.String).str.strip_chars()
        elif not (column.dtype.is_numeric() and isinstance(value, float)):
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
        numbers = _floats(told)
        for wrong in numbers[~_whole(numbers)][:1]:
            raise InvalidTarget(f"the target {name!r} must be a class, a whole number or text; got {wrong}.")
        return np.asarray(numbers, dtype=np.int64)
    return np.array(told.cast(library.String).str.strip_chars().to_list(), dtype=object)


def _numbers(told: Any, name: str, task: str) -> NDArray[Any]:
    library = polars()
    if not (told.dtype.is_numeric() or told.dtype in (library.Boolean, library.String, library.Null)):
        raise InvalidTarget(f"the target {name!r} must hold numbers; got {told.dtype}.")
    numbers = _floats(told)
    legal = _legal(numbers, task)
    if not legal.all():
        wrong = told[int(np.argmin(legal))]
        raise InvalidTarget(f"the target {name!r} must hold {_wanted(task)} below {LARGEST:g} in size; got {wrong!r}.")
    return numbers


def _wanted(task: str) -> str:
    return "counts, 0, 1, 2, ...," if task == "count" else "finite numbers"


def _floats(column: Any) -> Vector:
    """NaN where there is no number."""
    library = polars()
    if column.dtype == library.String:
        column = column.str.strip_chars()
    cast = column.cast(library.Float64, strict=False)
    return np.asarray(cast.fill_null(np.nan).to_numpy(), dtype=np.float64)


def _legal(numbers: Vector, task: str) -> Mask:
    with np.errstate(invalid="ignore"):
        legal: Mask = np.abs(numbers) <= LARGEST
        if task == "count":
            legal &= (numbers >= 0.0) & (numbers == np.round(numbers))
    return legal


def _whole(numbers: Vector) -> Mask:
    with np.errstate(invalid="ignore"):
        whole: Mask = (numbers == np.round(numbers)) & (np.abs(numbers) <= WHOLE)
    return whole
