"""Which columns of a table hold numbers, and these as floats, NaN where they are missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bayou.contracts import Vector
from bayou.numerics.table_columns import column_names


def number_names(table: Any) -> list[str]:
    """The columns of whole numbers and floats, in order; truth values are categories."""
    return [name for name in column_names(table) if _holds_numbers(table, name)]


def _holds_numbers(table: Any, name: str) -> bool:
    column = table[name]
    kind: Any = getattr(column, "dtype", getattr(column, "type", None))
    if hasattr(kind, "is_numeric"):  # polars
        return bool(kind.is_numeric())
    if hasattr(column, "type"):  # pyarrow
        return str(kind).startswith(("int", "uint", "float", "double", "halffloat", "decimal"))
    if hasattr(kind, "kind"):  # numpy and pandas, whose nullable kinds say the same
        return kind.kind in "iuf"
    return any(isinstance(value, (int, float)) for value in column) and all(
        value is None or (isinstance(value, (int, float, np.number)) and not isinstance(value, bool))
        for value in column
    )


def numbers_of(table: Any, name: str) -> Vector:
    """A column of numbers."""
    return np.require(_numbers(table, name), np.float64, ["C", "W"])


def _numbers(table: Any, name: str) -> Vector:
    column = table[name]
    if isinstance(table, Mapping) and not hasattr(column, "dtype"):
        return np.array([np.nan if value is None else float(value) for value in column])
    if hasattr(column, "iloc"):  # pandas
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if type(column).__module__.startswith("pyarrow"):
        return np.asarray(column.cast("float64").to_numpy(zero_copy_only=False), dtype=np.float64)
    if hasattr(column, "to_numpy"):  # polars, which makes NaN of what is missing
        return np.asarray(column.to_numpy(), dtype=np.float64)
    return np.asarray(column, dtype=np.float64)
