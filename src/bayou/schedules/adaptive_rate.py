"""rate = (pi sqrt(2 pi) / 2) eps: the fastest fall at every moment, eps told by the gaps between mistakes.

Why this is as good as the best clock, (4 / pi) / alpha, and how eps is told: `bayou.numerics.schedules`.
"""

from __future__ import annotations

from dataclasses import dataclass

from bayou.contracts import Schedule, Vector
from bayou.numerics.schedules import by_mistakes


@dataclass(frozen=True)
class AdaptiveRate(Schedule):
    """A rate that goes by the student's own mistakes: no horizon, no clock, nothing to tune.

    When the teacher changes, mistakes return, and the rate with them. But where labels are noisy, mistakes never end:
    the rate stays up, and the error stalls above that of the noise. For noise use a power law or, better, a Bayesian
    learner.

    >>> from bayou import AdaptiveRate
    >>> AdaptiveRate()
    AdaptiveRate()
    """

    @property
    def numbers(self) -> Vector:
        return by_mistakes()
