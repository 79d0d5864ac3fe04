"""One look at a matrix before it is learnt."""

from bayou.contracts import Array
from bayou.numerics.jit import vectorized_kernel


@vectorized_kernel
def first_not_finite(rows: Array) -> int:
    """The first row that holds a NaN or an infinity; -1 if there is none."""
    for n in range(rows.shape[0]):
        row = rows[n]
        total = 0.0
        for j in range(row.size):
            total += row[j] * 0.0  # zero, but for what is not finite
        if total != 0.0:
            return n
    return -1
