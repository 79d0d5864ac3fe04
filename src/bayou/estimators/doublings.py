"""When to look again at what was seen: each time its weight has doubled, and later at even distances."""

from __future__ import annotations

import math

import numpy as np

from bayou.contracts import Vector

EVERY = 1024.0  # from where on looks are as far apart


def is_doubling(weight: float, before: float) -> bool:
    """Whether a weight has passed a power of two since it was ``before``."""
    return next_doubling(before) <= weight


def next_doubling(weight: float) -> float:
    """The least power of two, from 1 on, above a weight."""
    return max(1.0, 2.0 ** math.frexp(weight)[1])


def next_look(weight: float, every: float = EVERY) -> float:
    """The least weight above this one at which to look again."""
    return next_doubling(weight) if weight < every else every * (math.floor(weight / every) + 1.0)


def stops(seen: float, weights: Vector, n: int, every: float = EVERY) -> list[int]:
    """After which of n rows to stop: each that brings the weight seen to the next look, and the last.

    ``weights`` may be empty: each row then weighs one. With an infinite ``every`` all looks are at doublings.
    """
    if weights.size:
        totals = np.cumsum(np.concatenate([[seen], weights]))
        doublings = np.where(totals >= 1.0, np.frexp(np.minimum(totals, every))[1], 0)
        looks = doublings + np.floor(np.maximum(totals - every, 0.0) / every)
        found: list[int] = (np.flatnonzero(np.diff(looks) > 0) + 1).tolist()
    else:
        found, total = [], next_look(seen, every)
        while total <= seen + n:
            found.append(math.ceil(total - seen))
            total = next_look(total, every)
    return found if not n or (found and found[-1] == n) else [*found, n]
