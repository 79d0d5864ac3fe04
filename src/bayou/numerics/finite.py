"""One look at a matrix before it is learnt."""

import numpy as np

from bayou.contracts import Array
from bayou.numerics.jit import vectorized_kernel


@vectorized_kernel
def largest(rows: Array) -> float:
    """The largest size of a value; infinity if any is not finite."""
    size = 0.0
    spoilt = 0.0
    for n in range(rows.shape[0]):
        row = rows[n]
        for j in range(row.size):
            size = max(size, abs(row[j]))
            spoilt += row[j] * 0.0  # zero, but for what is not finite
    return size if spoilt == 0.0 else np.inf
