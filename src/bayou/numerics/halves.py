"""Rows that cannot be read together, read in halves, down to those that cannot be read at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bayou.errors import StreamError
from bayou.numerics.files import told_plainly


def tried(table_of: Callable[[Sequence[int]], Any], those: Sequence[int]) -> Any:
    """The table of those rows; None where they are no such table."""
    try:
        with told_plainly("a block", "readable"):
            table = table_of(those)
    except StreamError:
        return None
    return table if len(table) == len(those) else None


def in_halves(table_of: Callable[[Sequence[int]], Any], those: Sequence[int], wrong: dict[int, str]) -> list[Any]:
    """Tables of all that can be read, in order; ``wrong`` gets the others, with what the reader says of each."""
    if not those:
        return []
    if len(those) > 1:
        table = tried(table_of, those)
        if table is not None:
            return [table]
        middle = len(those) // 2
        return [*in_halves(table_of, those[:middle], wrong), *in_halves(table_of, those[middle:], wrong)]
    try:
        with told_plainly("a row", "readable"):
            table = table_of(those)
    except StreamError as error:
        wrong[those[0]] = f"must be a row of these types; {str(error).partition('; ')[2]}"
        return []
    if len(table) != 1:
        wrong[those[0]] = f"must be one row; the reader takes it for {len(table)}"
        return []
    return [table]
