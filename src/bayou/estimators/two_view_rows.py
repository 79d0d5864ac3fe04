"""What is said of one row by name, and of how much an interval is to cover."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from bayou.contracts import Vector
from bayou.encoders.standardizer import check_magnitude
from bayou.errors import InvalidFeatures, InvalidSpec


def values_of(given: Any, names: list[Hashable], view: str) -> Vector:
    """The values of these names, or the one number if there are none."""
    if isinstance(given, Mapping) != bool(names):
        wanted = f"a dict of {', '.join(map(repr, names))}" if names else "a number"
        raise InvalidFeatures(f"`{view}` must be {wanted}; got {given!r}.")
    items = dict(given) if names else {view: given}
    if names and items.keys() != set(names):
        raise InvalidFeatures(f"`{view}` must have the names {', '.join(map(repr, names))}; got {list(items)}.")
    row = np.empty(max(len(names), 1))
    for place, name in enumerate(names or [view]):
        try:
            row[place] = float(items[name])
        except (TypeError, ValueError):
            raise InvalidFeatures(f"{name!r} must be a number; got {items[name]!r}.") from None
    if not np.all(np.isfinite(row)):
        raise InvalidFeatures(f"`{view}` must have finite values; got {given!r}.")
    check_magnitude(row[None, :])
    return row


def checked_coverage(coverage: float) -> float:
    """Raise unless it is a share."""
    if not 0.0 < coverage < 1.0:
        raise InvalidSpec(f"`coverage` must lie between 0 and 1; got {coverage!r}.")
    return coverage
