"""What the fields of a spec, and the weights of rows, must be."""

import math

import numpy as np
from numpy.typing import ArrayLike

from bayou.contracts import Spec, Vector
from bayou.errors import InvalidSpec, ShapeMismatch


def require_positive(spec: Spec, *names: str) -> None:
    """Make these fields plain floats, and raise unless they are positive and finite."""
    for name in names:
        given = getattr(spec, name)
        value = float(given)
        if not 0.0 < value < math.inf:
            raise InvalidSpec(f"`{name}` must be positive; got {given!r}.")
        object.__setattr__(spec, name, value)


def checked_weights(weights: ArrayLike, n: int) -> Vector:
    """One weight per row; raises unless they are finite and not negative."""
    counts = np.require(weights, dtype=np.float64, requirements=["C", "W"])
    if counts.shape != (n,):
        raise ShapeMismatch(f"`weights` must have one value per row, {n}; got shape {counts.shape}.")
    if not (np.all(np.isfinite(counts)) and np.all(counts >= 0.0)):
        raise InvalidSpec(
            f"`weights` must be finite and not negative; got {counts[~(counts >= 0.0) | ~np.isfinite(counts)][0]}."
        )
    return counts
