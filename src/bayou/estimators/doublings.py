"""When to look again at what was seen: each time its weight has doubled."""

from __future__ import annotations

import math

import numpy as np

from bayou.contracts import Vector


def next_doubling(weight: float) -> float:
    """The least power of two, from 1 on, above a weight."""
    return max(1.0, 2.0 ** math.frexp(weight)[1])


def stops(seen: float, weights: Vector, n: int) -> list[int]:
    """After which of n rows to stop: each that brings the weight seen to the next power of two, and the last.

    ``weights`` may be empty: each row then weighs one.
    """
    totals = np.cumsum(np.concatenate([[seen], weights if weights.size else np.ones(n)]))
    doublings = np.where(totals >= 1.0, np.frexp(totals)[1], 0)
    found: list[int] = (np.flatnonzero(np.diff(doublings) > 0) + 1).tolist()
    return found if not n or (found and found[-1] == n) else [*found, n]
