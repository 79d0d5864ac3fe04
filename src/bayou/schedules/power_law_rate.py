"""rate = min(largest, scale (alpha + offset)^-power), alpha examples per weight.

With scale = eta0 sqrt(2 pi) and examples that a hyperplane divides (Barkai, Seung and Sompolinsky 1995, (6)), the error
falls as alpha^-power for a power below 1; for the power 1 as eta0^2 / (pi (eta0 - 1) alpha) if eta0 > 1, as
ln(alpha) / (pi alpha) if eta0 = 1, and as alpha^-eta0 below; for a power above 1 it comes to rest at some error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from bayou.contracts import Schedule, Vector
from bayou.errors import InvalidSpec
from bayou.numerics.schedules import UNBOUNDED, by_clock
from bayou.numerics.validation import require_positive


@dataclass(frozen=True)
class PowerLawRate(Schedule):
    """A rate that falls as a power of the examples per weight.

    >>> from bayou import PowerLawRate
    >>> PowerLawRate(scale=5.0, power=0.5, largest=1.0)
    PowerLawRate(scale=5.0, power=0.5, offset=0.0, largest=1.0)
    """

    scale: float = 1.0
    power: float = 1.0
    offset: float = 0.0
    largest: float = UNBOUNDED

    def __post_init__(self) -> None:
        require_positive(self, "scale", "power", "largest")
        if not 0.0 <= self.offset < math.inf:
            raise InvalidSpec(f"`offset` must be finite and not negative; got {self.offset!r}.")

    @property
    def numbers(self) -> Vector:
        return by_clock(self.scale, self.power, self.offset, self.largest)
