"""One look at a matrix before it is learnt."""

from bayou.contracts import Array
from bayou.numerics.jit import vectorized_kernel


@vectorized_kernel
def count_beyond(rows: Array, bound: float) -> float:
    """How many values are not within the bound; NaN never is. (A maximum would not use the machine's width.)"""
    count = 0.0
    for n in range(rows.shape[0]):
        row = rows[n]
        for j in range(row.size):
            count += 0.0 if abs(row[j]) <= bound else 1.0
    return count
