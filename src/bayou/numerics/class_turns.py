"""Who sleeps in a bank of classes: `bayou.numerics.bank_weights`, where members are dear and are tried in turn."""

from __future__ import annotations

from bayou.numerics.bank_belief import LEARNT, LOSS, RESTARTED, STEPS, BankBelief, BankPlan
from bayou.numerics.bank_weights import (
    BETWEEN,
    BLOCK,
    FIRST,
    HOPELESS,
    TRIAL,
    UNPROVEN,
    is_surprised,
    note_change,
    restart,
    sleep,
)
from bayou.numerics.jit import borrowing_kernel


@borrowing_kernel
def look(belief: BankBelief, plan: BankPlan, evidence: float) -> None:
    """Count a target; at the end of a block wake, put to sleep and restart those whose time has come."""
    pulse = belief.pulse
    pulse[LEARNT] += 1.0
    pulse[LOSS] -= evidence
    if pulse[LEARNT] % BLOCK != 0.0:
        return
    note_change(belief, plan)
    surprised = is_surprised(pulse)
    if plan.limits[1] > 0.0:
        take_turns(belief, plan, surprised)
        if pulse[LEARNT] >= FIRST:
            make_room(belief, plan)
    if pulse[STEPS] - pulse[RESTARTED] >= BETWEEN or (surprised and pulse[STEPS] - pulse[RESTARTED] >= BLOCK):
        restart(belief, plan)


@borrowing_kernel
def take_turns(belief: BankBelief, plan: BankPlan, all_of_them: bool) -> None:
    """Wake for a trial those who have slept long enough: as many as can be afforded, or one, the longest asleep first.

    Where members are dear, many who are tried at once would take the place of those who have proven themselves.
    """
    spent, tried = 0.0, 0
    for m in range(belief.rest.size):
        if belief.rest[m] > 0.0:
            belief.rest[m] = max(belief.rest[m] - BLOCK, 1.0)
        elif belief.rest[m] < 0.0:
            belief.rest[m] += BLOCK
        if belief.rest[m] <= 0.0:
            spent += plan.cost[m]
            tried += 1 if belief.rest[m] < 0.0 else 0
    while True:
        longest = -1
        for m in range(belief.rest.size):
            waits = belief.rest[m] == 1.0 or (all_of_them and belief.rest[m] > 0.0)
            if waits and (longest < 0 or belief.idle[m] > belief.idle[longest]):
                longest = m
        if longest < 0 or not (all_of_them or tried == 0 or spent + plan.cost[longest] <= plan.limits[0]):
            return
        belief.rest[longest], belief.merit[longest] = -TRIAL, 0.0
        if all_of_them:
            belief.naps[longest] = 0.0
        spent += plan.cost[longest]
        tried += 1


@borrowing_kernel
def make_room(belief: BankBelief, plan: BankPlan) -> None:
    """Put to sleep who is hopeless, and the least of the others until the rest may be afforded.

    Never who is believed most; and who is tried, only if hopeless.
    """
    best, spent, most = -1, 0.0, 0.0
    for m in range(belief.rest.size):
        held = 0.0
        for k in range(belief.chains.shape[0]):
            held += belief.chains[k, m]
        if belief.rest[m] <= 0.0 and (best < 0 or held > most):
            best, most = m, held
    for m in range(belief.rest.size):
        if belief.rest[m] > 0.0:
            continue
        proven = belief.rest[m] == 0.0
        failed = proven and belief.naps[m] > 0.0 and belief.merit[m] < UNPROVEN
        if proven and belief.merit[m] >= 0.0:
            belief.naps[m] = 0.0
        if m != best and (belief.merit[m] < HOPELESS or failed):
            sleep(belief, m)
        elif proven:
            spent += plan.cost[m]
    while spent > plan.limits[0]:
        least = -1
        for m in range(belief.rest.size):
            dear = belief.rest[m] == 0.0 and m != best
            if dear and (least < 0 or belief.merit[m] < belief.merit[least]):
                least = m
        if least < 0:
            return
        spent -= plan.cost[least]
        sleep(belief, least)
