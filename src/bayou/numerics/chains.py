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
    for m in range(shares.size):
        shares[m] = 0.0
    for k in range(chains.shape[0]):
        chain, total = chains[k], 0.0
        for m in range(chain.size):
            total += chain[m]
        kept, anew = 1.0 - switching[k], switching[k] * total / chain.size
        for m in range(chain.size):
            shares[m] += kept * chain[m] + anew


@borrowing_kernel
def weigh(chains: Matrix, switching: Vector, values: Vector, weight: float) -> None:
    """Let members change places, then multiply each by what it gave to the target; the values are used up."""
    best = -math.inf
    for m in range(values.size):
        best = max(best, values[m])
    for m in range(values.size):
        values[m] = math.exp(weight * (values[m] - best))
    multiply(chains, switching, values)


@borrowing_kernel
def weigh_by(chains: Matrix, switching: Vector, given: Vector, weight: float) -> None:
    """The same by what members gave itself, of which some is above zero, and not by its log."""
    best = 0.0
    for m in range(given.size):
        best = max(best, given[m])
    per_best = 1.0 / best
    for m in range(given.size):
        share = given[m] * per_best
        given[m] = share if weight == 1.0 else share**weight
    multiply(chains, switching, given)


@borrowing_kernel
def given_beside(values: Vector, shares: Vector, best: float, weight: float) -> float:
    """What all gave to a target, by what the best gave; left in the values, what each member is multiplied by."""
    total = 0.0
    for m in range(values.size):
        given = math.exp(values[m] - best)
        total += shares[m] * given
        values[m] = given if weight == 1.0 else math.exp(weight * (values[m] - best))
    return total


@borrowing_kernel
def multiply(chains: Matrix, switching: Vector, given: Vector) -> None:
    """Let members change places, then multiply each by what it gave to the target, a number of up to 1."""
    sum_of_all = 0.0
    for k in range(chains.shape[0]):
        chain, total = chains[k], 0.0
        for m in range(chain.size):
            total += chain[m]
        anew = switching[k] * total / chain.size
        kept = 1.0 - switching[k]
        for m in range(chain.size):
            chain[m] = max((kept * chain[m] + anew) * given[m], FAINTEST)
            sum_of_all += chain[m]
    per_all = 1.0 / sum_of_all
    for k in range(chains.shape[0]):
        chain = chains[k]
        for m in range(chain.size):
            chain[m] = max(chain[m] * per_all, FAINTEST)
