"""rate = 2 sqrt(2 pi) / alpha: the error falls as (4 / pi) / alpha (Barkai, Seung and Sompolinsky 1995, (6))."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bayou.contracts import Schedule, Vector
from bayou.numerics.schedules import by_clock


@dataclass(frozen=True)
class OptimalRate(Schedule):
    """The best rate by the clock for examples that a hyperplane divides, and for a teacher that never changes.

    >>> from bayou import OptimalRate
    >>> OptimalRate()
    OptimalRate()
    """

    @property
    def numbers(self) -> Vector:
        return by_clock(2.0 * math.sqrt(2.0 * math.pi), 1.0)
