"""How far intervals and sets must reach to cover as many targets as they promise, whatever the stream does.

    reach += step (missed - (1 - coverage)),  lowest <= reach <= highest

This is adaptive conformal inference (Gibbs and Candès 2021) on a logarithmic scale: one step is then right for errors
of any size, where a step in probability needs tuning, or a mixture of steps (Gibbs and Candès 2024). Summed up, the
share of targets that were missed is at most

    1 - coverage + (highest + step - first reach) / (step rows)

and with the reach that there is in the place of the highest, which is what counts in practice.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bayou.contracts import Mask, Vector
from bayou.errors import InvalidSpec, ModelFileError

FORGETS_IN = 50.0  # rows, where the model is right
MISSES = 5.0  # rows that are missed in that time, at least


def forgets_in(coverage: float) -> float:
    """After so many rows an error of the reach, if it is small, is a third of what it was."""
    return max(FORGETS_IN, MISSES / (1.0 - coverage))


def check_coverage(coverage: Any) -> float:
    """The coverage that was asked for, if it can be promised."""
    if not isinstance(coverage, (float, int, np.number)) or not 0.0 < coverage < 1.0:
        raise InvalidSpec(f"`coverage` must lie between 0 and 1; got {coverage!r}.")
    return float(coverage)


class Reach:
    """The reach now, and how many of the rows that were judged it covered.

    ``density`` is that of the scores at the first reach, if the model is right: it says how long a step is felt.
    """

    def __init__(self, coverage: float, first: float, density: float, limits: tuple[float, float]) -> None:
        self.coverage, self.now = coverage, first
        self.step = 1.0 / (forgets_in(coverage) * density)
        self.lowest, self.highest = limits
        self.rows = self.covered = 0

    def judge(self, scores: Vector, judged: Mask) -> Vector:
        """The reach before each row, which covers scores up to its own size; it follows those that are judged."""
        before, now = np.empty(len(scores)), self.now
        up, down = self.step * self.coverage, self.step * (1.0 - self.coverage)
        for row, (score, counts) in enumerate(zip(scores.tolist(), judged.tolist(), strict=True)):
            before[row] = now
            if counts:
                inside = score <= now
                self.rows += 1
                self.covered += inside
                now = max(now - down, self.lowest) if inside else min(now + up, self.highest)
        self.now = now
        return before

    @property
    def share(self) -> float:
        """Share of the rows judged so far that were covered; NaN before the first."""
        return self.covered / self.rows if self.rows else math.nan

    @property
    def error(self) -> float:
        """Its standard error, if rows do not depend on each other; misses that make up for each other vary less."""
        return math.sqrt(self.share * (1.0 - self.share) / self.rows) if self.rows else math.nan

    def to_config(self) -> dict[str, Any]:
        """What was learnt, as data."""
        return {"now": self.now, "rows": self.rows, "covered": self.covered}

    def load(self, config: dict[str, Any]) -> None:
        """Take up what was learnt."""
        now, rows, covered = float(config["now"]), int(config["rows"]), int(config["covered"])
        if not (self.lowest <= now <= self.highest and 0 <= covered <= rows):
            wanted = f"between {self.lowest:g} and {self.highest:g}, and no more rows covered than judged"
            raise ModelFileError(f"`reach` must be {wanted}; got {config}.")
        self.now, self.rows, self.covered = now, rows, covered
