"""stiffness = start growth^t: Buschermoehle, Schoenke, Rosemann and Brockmann 2013."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from bayou.contracts import Stiffness, Vector
from bayou.errors import InvalidSpec
from bayou.numerics.stiffness import by_factor
from bayou.numerics.validation import require_positive


@final
@dataclass(frozen=True)
class GeometricStiffness(Stiffness):
    """A factor with every example, whatever it tells: in the end, nothing is learnt any more.

    Growth by 5 % and a start of 0.1 are the paper's, for a norm that is the integral over the domain: for the mean over
    it, as here, multiply the start by the domain's length.

    >>> from bayou import GeometricStiffness
    >>> GeometricStiffness(start=0.3)
    GeometricStiffness(start=0.3, growth=1.05)
    """

    start: float = 0.1
    growth: float = 1.05

    def __post_init__(self) -> None:
        require_positive(self, "start")
        if not 1.0 <= self.growth < math.inf:
            raise InvalidSpec(f"`growth` must be finite and at least 1; got {self.growth!r}.")

    def numbers(self, n_functions: int) -> Vector:
        return by_factor(self.start, self.growth)
