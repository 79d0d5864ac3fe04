"""Rows that are jumps: targets far from where some members have them, after which these are right again.

Members that differ in nothing but their noise share one who stands for jumps. Together they give to a target

    (1 - h) p(y | no jump) + h p(y | jump)

where h is one number after a row that was no jump, and another after one that was: jumps may come alone or in runs.
What it gained by a jump goes back to the others as soon as a row is none. How probable a row is to be a jump, given the
target, says how much of it is learnt: both h, and the noise of jumps, which is that of no other row. Without it a jump
is a target that these members think all but impossible, and whoever comes closest, for no reason, is believed.
"""

from __future__ import annotations

import math

from bayou.contracts import Vector
from bayou.numerics.bank_belief import DEGREES, MEAN, NOISE, VARIANCE, BankBelief, BankPlan
from bayou.numerics.jit import borrowing_kernel
from bayou.numerics.student_t import log_student

LARGEST_LOG = 700.0
FAR = 4.0  # deviations of others that jumps have at least, up to one unit of targets
# Rows that were jumps and that were none, after one that was none; the same after a jump; and whether the latest was.
FIRST_JUMPS = (0.5, 50.0, 0.5, 2.0, 0.0)
LATEST_JUMP = 4


@borrowing_kernel
def stands_for_jumps(plan: BankPlan, m: int) -> bool:
    """Whether rows that are jumps are this member's."""
    return bool(plan.jump[m] == m)


@borrowing_kernel
def shares_jumps(belief: BankBelief, plan: BankPlan, m: int, jumper: int) -> bool:
    """Whether this member is awake, and another stands for its jumps."""
    return bool(plan.jump[m] == jumper and m != jumper and belief.rest[m] <= 0.0)


@borrowing_kernel
def chances(jumps: Vector, steps: float) -> tuple[float, float]:
    """How probable a jump is so many rows after a row that was none, and after one that was."""
    after_none, after_jump = jumps[0] / (jumps[0] + jumps[1]), jumps[2] / (jumps[2] + jumps[3])
    kept, usual = after_jump - after_none, after_none / (1.0 + after_none - after_jump)
    if steps > 1.0:
        kept = max(kept, 0.0) ** steps
    return usual - usual * kept, usual + (1.0 - usual) * kept


@borrowing_kernel
def let_jump(belief: BankBelief, plan: BankPlan, chain: Vector, steps: float) -> None:
    """Share out anew what is believed of members that share jumps, so many rows after the latest.

    What goes back goes to who was believed of late: a jump tells nothing of them.
    """
    for jumper in plan.jumpers:
        if belief.rest[jumper] > 0.0:
            continue
        held, usual = 0.0, 0.0
        for m in range(chain.size):
            if shares_jumps(belief, plan, m, jumper):
                held += chain[m]
                usual += belief.usual[m]
        if usual <= 0.0:
            continue
        after_none, after_jump = chances(belief.jumps[jumper], steps)
        back = (1.0 - after_jump) * chain[jumper] / usual
        for m in range(chain.size):
            if shares_jumps(belief, plan, m, jumper):
                chain[m] = (1.0 - after_none) * chain[m] + back * belief.usual[m]
        chain[jumper] = after_none * held + after_jump * chain[jumper]


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
    jumps = belief.jumps[jumper]
    after_none, after_jump = chances(jumps, 1.0)
    chance = after_none + jumps[LATEST_JUMP] * (after_jump - after_none)
    return float(1.0 / (1.0 + chance / (1.0 - chance) * math.exp(min(by_jump - by_other, LARGEST_LOG))))


@borrowing_kernel
def learn_jump(belief: BankBelief, plan: BankPlan, jumper: int, y: float, record: Vector, weight: float) -> None:
    """Learn from a target as far as it was a jump, once it has weighed the members; of a row that counts so much.

    What is near is no jump: one who has learnt small jumps by chance would else become one more of the others.
    """
    own, held, near = 0.0, 0.0, 0.0
    for k in range(belief.chains.shape[0]):
        own += belief.chains[k, jumper]
        for m in range(belief.chains.shape[1]):
            if shares_jumps(belief, plan, m, jumper):
                held += belief.chains[k, m]
                near += belief.chains[k, m] * belief.noise[m, 1] / belief.noise[m, 0]
    share, error = own / (own + held), y - record[MEAN]
    belief.noise[jumper, 0] += 0.5 * weight * share
    belief.noise[jumper, 1] += 0.5 * weight * share * error * error / (1.0 + record[VARIANCE])
    if held > 0.0:
        least = min(FAR * FAR * near / held, 1.0)
        belief.noise[jumper, 1] = max(belief.noise[jumper, 1], least * belief.noise[jumper, 0])
    count_jump(belief.jumps[jumper], share, weight)


@borrowing_kernel
def count_jump(jumps: Vector, share: float, weight: float) -> None:
    """Count a row that was a jump with this probability, by what the one before is now believed to have been."""
    after_none, after_jump = chances(jumps, 1.0)
    before = jumps[LATEST_JUMP]
    to_jump, to_none = before * after_jump, before * (1.0 - after_jump)
    if_jump = to_jump / (to_jump + (1.0 - before) * after_none)
    if_none = to_none / (to_none + (1.0 - before) * (1.0 - after_none))
    jumps[0] += weight * share * (1.0 - if_jump)
    jumps[1] += weight * (1.0 - share) * (1.0 - if_none)
    jumps[2] += weight * share * if_jump
    jumps[3] += weight * (1.0 - share) * if_none
    jumps[LATEST_JUMP] = share


@borrowing_kernel
def rest_together(belief: BankBelief, plan: BankPlan, sleep: float) -> None:
    """Who stands for the jumps of others is awake as long as one of these is."""
    for jumper in plan.jumpers:
        shared, awake = False, False
        for m in range(plan.jump.size):
            shared = shared or (plan.jump[m] == jumper and m != jumper)
            awake = awake or shares_jumps(belief, plan, m, jumper)
        belief.rest[jumper] = sleep if shared and not awake else 0.0
