"""Chains (k, m): what is believed of members that change places, where none sleeps.

Before each row, in chain k, the next member is drawn anew with probability ``switching[k]``. What each member gives to
a target multiplies what is believed of it, in all chains, so that chains are weighed too.
"""

from __future__ import annotations

import math

from bayou.contracts import Matrix, Vector
from bayou.numerics.jit import borrowing_kernel

FAINTEST = 1e-280  # what is left of a member that has been wrong for long


@borrowing_kernel
def share_out(chains: Matrix, switching: Vector, shares: Vector) -> None:
    """What is believed of each member before the next row; chains stay as they are."""
    shares[:] = 0.0
    for k in range(chains.shape[0]):
        total = 0.0
        for m in range(chains.shape[1]):
            total += chains[k, m]
        for m in range(chains.shape[1]):
            shares[m] += chains[k, m] + switching[k] * (total / chains.shape[1] - chains[k, m])


@borrowing_kernel
def weigh(chains: Matrix, switching: Vector, values: Vector, weight: float) -> None:
    """Let members change places, then multiply each by what it gave to the target; the values are used up."""
    best, sum_of_all = -math.inf, 0.0
    for m in range(values.size):
        best = max(best, values[m])
    for m in range(values.size):
        values[m] = math.exp(weight * (values[m] - best))
    for k in range(chains.shape[0]):
        total = 0.0
        for m in range(chains.shape[1]):
            total += chains[k, m]
        for m in range(chains.shape[1]):
            moved = chains[k, m] + switching[k] * (total / chains.shape[1] - chains[k, m])
            chains[k, m] = max(moved * values[m], FAINTEST)
            sum_of_all += chains[k, m]
    for k in range(chains.shape[0]):
        for m in range(chains.shape[1]):
            chains[k, m] = max(chains[k, m] / sum_of_all, FAINTEST)
