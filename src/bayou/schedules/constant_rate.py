"""rate: the error stops at about rate / sqrt(2 pi^3), where steps forth and back balance (Barkai et al. 1995, (5))."""

from __future__ import annotations

from dataclasses import dataclass

from bayou.contracts import Schedule, Vector
from bayou.numerics.schedules import by_clock
from bayou.numerics.validation import require_positive


@dataclass(frozen=True)
class ConstantRate(Schedule):
    """The same rate at every example: it follows a teacher that moves.

    >>> from bayou import ConstantRate
    >>> ConstantRate(0.1)
    ConstantRate(rate=0.1)
    """

    rate: float = 1.0

    def __post_init__(self) -> None:
        require_positive(self, "rate")

    @property
    def numbers(self) -> Vector:
        return by_clock(self.rate, 0.0)
