"""The stiffness that keeps the trace of the covariance: after each example, the nearest belief of the family.

The exact update of a belief N(mean, C) takes gain * precision * |C psi|^2 from the trace of C, along one direction. The
family knows no direction: its stiffness grows until its trace is that. By a factor 1 + 1 / n per example while the
function is unknown, which is the geometric growth of the paper, chosen by n; by one per example in the end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from bayou.contracts import Stiffness, Vector
from bayou.errors import InvalidSpec
from bayou.numerics.stiffness import by_projection
from bayou.numerics.validation import require_positive


@final
@dataclass(frozen=True)
class LearntStiffness(Stiffness):
    """Nothing to choose: the stiffness follows from what each example has told, as every belief of bayou does.

    ``start``, per function and in units of the noise, is how little is known at first; it hardly matters. With a basis
    that knows how rough its functions are, rough ones are stiffer at first by 1 + ``smoothness`` * roughness; what
    examples tell soon outweighs it.

    >>> from bayou import LearntStiffness
    >>> LearntStiffness()
    LearntStiffness(start=0.03, smoothness=0.1)
    """

    start: float = 0.03
    smoothness: float = 0.1

    def __post_init__(self) -> None:
        require_positive(self, "start")
        if not 0.0 <= self.smoothness < math.inf:
            raise InvalidSpec(f"`smoothness` must be finite and not negative; got {self.smoothness!r}.")

    def numbers(self, n_functions: int) -> Vector:
        return by_projection(self.start * n_functions, self.smoothness)
