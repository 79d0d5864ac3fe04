"""Rows that are jumps: targets far from where some members have them, after which these are right again.

Members that differ in nothing but their noise share one who stands for jumps. Before each row this one holds a share h
of what is believed of all of them, so that together they give to a target

    (1 - h) p(y | no jump) + h p(y | jump)

and what it gained by a jump goes back to the others before the next. How probable a row is to be a jump, given the
target, says how much of it is learnt: h, and the noise of jumps, which is that of no other row. Without it a jump is a
target that these members think all but impossible, and whoever comes closest, for no reason, is believed.
"""

from __future__ import annotations

import math

from bayou.contracts import Vector
from bayou.numerics.bank_belief import DEGREES, MEAN, NOISE, VARIANCE, BankBelief, BankPlan
from bayou.numerics.jit import borrowing_kernel
from bayou.numerics.student_t import log_student

LARGEST_LOG = 700.0
FIRST_JUMPS = (0.5, 50.0)  # rows that were jumps, and that were none, before there were any


@borrowing_kernel
def stands_for_jumps(plan: BankPlan, m: int) -> bool:
    """Whether rows that are jumps are this member's."""
    return bool(plan.jump[m] == m)


@borrowing_kernel
def shares_jumps(belief: BankBelief, plan: BankPlan, m: int, jumper: int) -> bool:
    """Whether this member is awake, and another stands for its jumps."""
    return bool(plan.jump[m] == jumper and m != jumper and belief.rest[m] <= 0.0)


@borrowing_kernel
def let_jump(belief: BankBelief, plan: BankPlan, chain: Vector) -> None:
    """Share out anew what is believed of members that share jumps: before each row, whatever the one before was.

    What goes back goes to who was believed of late: a jump tells nothing of them.
    """
    for jumper in range(chain.size):
        if not stands_for_jumps(plan, jumper) or belief.rest[jumper] > 0.0:
            continue
        held, usual = chain[jumper], 0.0
        for m in range(chain.size):
            if shares_jumps(belief, plan, m, jumper):
                held += chain[m]
                usual += belief.usual[m]
        if usual <= 0.0:
            continue
        rate = belief.jumps[jumper, 0] / (belief.jumps[jumper, 0] + belief.jumps[jumper, 1])
        back = chain[jumper] / usual
        for m in range(chain.size):
            if shares_jumps(belief, plan, m, jumper):
                chain[m] = (1.0 - rate) * (chain[m] + back * belief.usual[m])
        chain[jumper] = rate * held


@borrowing_kernel
def no_jump(belief: BankBelief, plan: BankPlan, m: int, y: float, record: Vector) -> float:
    """How probable it is, to a member, that a target was no jump, as far as that is to be told.

    Who has heavy tails lets what is far off count for less in any case, and learns from it if it comes again.
    """
    jumper = plan.jump[m]
    if jumper < 0 or jumper == m or belief.rest[jumper] > 0.0 or plan.tails[m] < math.inf:
        return 1.0
    error, widened = y - record[MEAN], 1.0 + record[VARIANCE]
    shape, rate = belief.noise[jumper]
    by_jump = log_student(error, rate / shape * widened, shape)
    by_other = log_student(error, record[NOISE] * widened, 0.5 * record[DEGREES])
    odds = belief.jumps[jumper, 0] / belief.jumps[jumper, 1]
    return float(1.0 / (1.0 + odds * math.exp(min(by_jump - by_other, LARGEST_LOG))))


@borrowing_kernel
def learn_jump(belief: BankBelief, plan: BankPlan, jumper: int, y: float, record: Vector, weight: float) -> None:
    """Learn from a target as far as it was a jump, once it has weighed the members; of a row that counts so much."""
    own, held = 0.0, 0.0
    for k in range(belief.chains.shape[0]):
        own += belief.chains[k, jumper]
        for m in range(belief.chains.shape[1]):
            if shares_jumps(belief, plan, m, jumper):
                held += belief.chains[k, m]
    share, error = own / (own + held), y - record[MEAN]
    belief.noise[jumper, 0] += 0.5 * weight * share
    belief.noise[jumper, 1] += 0.5 * weight * share * error * error / (1.0 + record[VARIANCE])
    belief.jumps[jumper, 0] += weight * share
    belief.jumps[jumper, 1] += weight * (1.0 - share)


@borrowing_kernel
def rest_together(belief: BankBelief, plan: BankPlan, sleep: float) -> None:
    """Who stands for the jumps of others is awake as long as one of these is."""
    for jumper in range(plan.jump.size):
        if stands_for_jumps(plan, jumper):
            shared, awake = False, False
            for m in range(plan.jump.size):
                shared = shared or (plan.jump[m] == jumper and m != jumper)
                awake = awake or shares_jumps(belief, plan, m, jumper)
            belief.rest[jumper] = sleep if shared and not awake else 0.0
