"""Past targets as features of the members of a bank: how they are told, and who must wait for them."""

from __future__ import annotations

import math

from bayou.contracts import Vector
from bayou.numerics.bank_belief import BankPlan
from bayou.numerics.jit import borrowing_kernel

FARTHEST = 1e6  # units, of past targets that are remembered
REACH = 10.0  # deviations by which a past target may move what a member says, as its prior has it


@borrowing_kernel
def remember(past: Vector, y: float, by_log: bool) -> None:
    """The latest target becomes the first of the past; none is let in farther out than so many units.

    Counts are told as log(1 + y): a weight of one is then no change, where the latent is the log of the rate.
    """
    for j in range(past.size - 1, 0, -1):
        past[j] = past[j - 1]
    if past.size:
        past[0] = math.log1p(y) if by_log else min(max(y, -FARTHEST), FARTHEST)


@borrowing_kernel
def is_blind(plan: BankPlan, m: int, past: Vector) -> bool:
    """Whether a member would see past counts of which some have not come yet."""
    return bool(plan.log_past[0] and plan.past[m] > 0 and past[plan.past[m] - 1] < 0.0)


@borrowing_kernel
def leave_out_blind(plan: BankPlan, past: Vector, shares: Vector) -> bool:
    """Let who is blind have no share in what is said, and hence not learn; unless all are. Returns if some are.

    A first count of thousands would else be learnt by the weights of what is no part of it.
    """
    if not plan.log_past[0]:
        return False
    seen, total = 0.0, 0.0
    for m in range(shares.size):
        total += shares[m]
        if not is_blind(plan, m, past):
            seen += shares[m]
    if seen <= 0.0 or seen == total:
        return False
    for m in range(shares.size):
        shares[m] = 0.0 if is_blind(plan, m, past) else shares[m] * (total / seen)
    return True
