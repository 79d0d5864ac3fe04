"""stiffness = start + rate * (sum of the precisions of the sites): what inputs that fill the domain evenly tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from bayou.contracts import Stiffness, Vector
from bayou.numerics.stiffness import by_evidence
from bayou.numerics.validation import require_positive


@final
@dataclass(frozen=True)
class LinearStiffness(Stiffness):
    """In proportion to the evidence: one more per example, of a Gaussian likelihood with unit noise and ``rate=1``.

    Of orthonormal functions and inputs spread evenly over the domain, psi psi' is the identity on average, and that is
    what an example adds to the precision of the weights. Exact in the long run, but early on one example tells of one
    direction, not of all: it stiffens too soon, and `LearntStiffness` does not.

    >>> from bayou import LinearStiffness
    >>> LinearStiffness(start=0.5)
    LinearStiffness(start=0.5, rate=1.0)
    """

    start: float = 1.0
    rate: float = 1.0

    def __post_init__(self) -> None:
        require_positive(self, "start", "rate")

    def numbers(self, n_functions: int) -> Vector:
        return by_evidence(self.start, self.rate)
