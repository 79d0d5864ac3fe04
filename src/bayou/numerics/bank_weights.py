"""How members are weighed, and which of them sleep.

Each chain holds what it believes of the members: p(member), which changes from row to row at the chain's rate, and is
multiplied by what each member gave to the target. Chains of different rates are weighed by the same rule, so that how
often the best member changes is found as well. Who is drawn anew is most often one that was believed before (Bousquet
and Warmuth 2002, "Tracking a small set of experts by mixing past posteriors"): a stream that changes goes back to what
it was, more often than not. A member that sleeps is taken to say what the bank says, so that what is
believed of it stays (Freund, Schapire, Singer and Warmuth 1997, "Using and combining predictors that specialize").
"""

from __future__ import annotations

import math

from bayou.contracts import Matrix, Vector
from bayou.numerics.bank_belief import (
    BLOCKS,
    CHANGES,
    LEARNT,
    LOSS,
    RESTARTED,
    SPREAD,
    STEPS,
    USUAL,
    BankBelief,
    BankPlan,
)
from bayou.numerics.bank_jumps import let_jump, rest_together, stands_for_jumps
from bayou.numerics.chain_lanes import multiply_chains, switch_chains, weigh_members
from bayou.numerics.jit import borrowing_kernel

# What is left of a member that has been wrong for long: it may be right again, and a number must be left of it.
FAINTEST = 1e-280
ANYBODY = 0.1  # share of those who change places that may become anybody; others become who was believed of late
FIRST_USUAL, USUAL_ROWS = 64.0, 4096.0  # targets that this remembers: at first, and at most
BLOCK = 64  # targets between looks at who should sleep
FIRST = 256  # targets in which none sleeps
TARGETS_PER_WAVE = 4.0  # the same for who has many waves: it is slow at first, and what it sleeps through is lost
MEMORY = 1.0 / 512.0  # of a member's merit, per target
HOPELESS = -25.0  # merit below which a member sleeps: a twentieth of a nat per target, over the memory
UNPROVEN = -3.0  # the same at the end of a trial
KEPT = 6  # members that stay awake, if they may be afforded
TRIAL = 256.0  # targets for which one that slept is tried again
TRIED_AT_ONCE = 0.25  # share of what may be spent that is kept for those who are tried
NAP, LONGEST_NAP = 512.0, 4096.0  # targets that it sleeps at first, then twice as long each time
USUAL_MEMORY = 32.0  # blocks whose losses say what is usual
SURPRISE = 4.0  # deviations of the loss of a block that wake all
BETWEEN = 256.0  # rows between restarts
APART = 512.0  # rows between changes: a member that began sooner after the last tells better where that was


@borrowing_kernel
def drawn(belief: BankBelief, m: int) -> float:
    """How probable it is that one who changes places becomes this member."""
    return float(ANYBODY / belief.usual.size + (1.0 - ANYBODY) * belief.usual[m])


@borrowing_kernel
def usual_rate(pulse: Vector) -> float:
    """How much of what is believed of members now becomes part of what is believed of late."""
    return float(1.0 / min(pulse[LEARNT] + FIRST_USUAL, USUAL_ROWS))


@borrowing_kernel
def count_usual(belief: BankBelief) -> None:
    """Let what is believed of members now into what is believed of late."""
    rate = usual_rate(belief.pulse)
    for m in range(belief.usual.size):
        held = 0.0
        for k in range(belief.chains.shape[0]):
            held += belief.chains[k, m]
        belief.usual[m] += rate * (held - belief.usual[m])


@borrowing_kernel
def switch(belief: BankBelief, plan: BankPlan, shares: Vector) -> None:
    """Let members change places before a row, and sum up what all chains believe of each who is awake."""
    chains, awake = belief.chains, 0.0
    drawn_as = ANYBODY / shares.size, 1.0 - ANYBODY
    switch_chains(chains, plan.switching, belief.usual, shares, chains.shape[0], shares.size, *drawn_as)
    if plan.jumpers.size:
        shares[:] = 0.0
        for k in range(chains.shape[0]):
            let_jump(belief, plan, chains[k], 1.0)
            for m in range(shares.size):
                shares[m] += chains[k, m]
    for m in range(shares.size):
        if belief.rest[m] > 0.0:
            shares[m] = 0.0
        awake += shares[m]
    per_awake = 1.0 / awake
    for m in range(shares.size):
        shares[m] *= per_awake


@borrowing_kernel
def foresee(belief: BankBelief, plan: BankPlan, ahead: float, shares: Vector) -> None:
    """What will be believed of each who is awake when so many more rows have come, none of which was learnt."""
    chains = belief.chains
    members = chains.shape[1]
    shares[:] = 0.0
    awake = 0.0
    for k in range(chains.shape[0]):
        total = 0.0
        for m in range(members):
            total += chains[k, m]
        moved = 1.0 - (1.0 - plan.switching[k]) ** (1.0 + ahead)
        for m in range(members):
            if belief.rest[m] <= 0.0:
                share = chains[k, m] + moved * (total * drawn(belief, m) - chains[k, m])
                shares[m] += share
                awake += share
    let_jump(belief, plan, shares, 1.0 + ahead)
    for m in range(members):
        shares[m] /= awake


@borrowing_kernel
def foresee_chains(belief: BankBelief, plan: BankPlan, ahead: float, shares: Matrix) -> None:
    """The same, chain by chain (k, m), of all together."""
    chains = belief.chains
    members = chains.shape[1]
    awake = 0.0
    for k in range(chains.shape[0]):
        total = 0.0
        for m in range(members):
            total += chains[k, m]
        moved = 1.0 - (1.0 - plan.switching[k]) ** (1.0 + ahead)
        for m in range(members):
            share = chains[k, m] + moved * (total * drawn(belief, m) - chains[k, m])
            shares[k, m] = share if belief.rest[m] <= 0.0 else 0.0
            awake += shares[k, m]
        let_jump(belief, plan, shares[k], 1.0 + ahead)
    scale(shares, 1.0 / awake, 0.0)


@borrowing_kernel
def weigh_late(belief: BankBelief, values: Vector, of_chains: Matrix, shares: Vector, lag: float) -> float:
    """`weigh` by a target that comes late, so many rows after ``of_chains`` (k, m) were what chains foresaw of it.

    Within a chain members are multiplied as usual. But a chain is weighed by what it foresaw, which is less than what
    it would have said of a row whose target comes at once, if its members change places often.
    """
    if lag <= 0.0:
        return weigh(belief, values, shares, 1.0)
    chains, members, given, total = belief.chains, values.size, mixed(values, shares), 0.0
    for m in range(members):
        beyond = values[m] - given if shares[m] > 0.0 else 0.0
        belief.merit[m] += beyond - MEMORY * belief.merit[m]
    for k in range(chains.shape[0]):
        before, after, weight, foreseen = 0.0, 0.0, 0.0, 0.0
        for m in range(members):
            factor = math.exp(values[m] - given) if shares[m] > 0.0 else 1.0
            before += chains[k, m]
            chains[k, m] = max(chains[k, m] * factor, FAINTEST)
            after += chains[k, m]
            weight += of_chains[k, m]
            foreseen += of_chains[k, m] * factor
        kept = before * (foreseen / weight if weight > 0.0 else 1.0) / after
        for m in range(members):
            chains[k, m] = max(chains[k, m] * kept, FAINTEST)
            total += chains[k, m]
    scale(chains, 1.0 / total, FAINTEST)
    count_usual(belief)
    return given


@borrowing_kernel
def mixed(values: Vector, shares: Vector) -> float:
    """Log of what all who have a share gave together."""
    best, given = -math.inf, 0.0
    for m in range(values.size):
        if shares[m] > 0.0:
            best = max(best, values[m])
    for m in range(values.size):
        if shares[m] > 0.0:
            given += shares[m] * math.exp(values[m] - best)
    return best + math.log(given)


@borrowing_kernel
def weigh(belief: BankBelief, values: Vector, shares: Vector, weight: float) -> float:
    """Multiply each member by what it gave to a target; returns the log of what all of them gave.

    Members without a share gave nothing of their own: they count as if they had said what the bank said. The values
    are used up.
    """
    chains, best = belief.chains, -math.inf
    for m in range(values.size):
        if shares[m] > 0.0:
            best = max(best, values[m])  # in units of which none is above one, so that none overflows
    all_gave = weigh_members(values, shares, belief.merit, values.size, best, 1.0 - MEMORY)
    beyond_best = math.log(all_gave)
    for m in range(values.size):
        if shares[m] > 0.0:
            belief.merit[m] -= beyond_best
        else:
            values[m] = all_gave
        if weight != 1.0:
            values[m] = values[m] ** weight
    multiply_chains(chains, values, belief.usual, chains.shape[0], values.size, usual_rate(belief.pulse), FAINTEST)
    return best + beyond_best


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
    if plan.limits[1] > 0.0 and pulse[LEARNT] >= FIRST:
        rouse(belief, plan, surprised)
        lay_to_rest(belief, plan)
    if pulse[STEPS] - pulse[RESTARTED] >= BETWEEN or (surprised and pulse[STEPS] - pulse[RESTARTED] >= BLOCK):
        restart(belief, plan)


@borrowing_kernel
def note_change(belief: BankBelief, plan: BankPlan) -> None:
    """Write down that all has changed, once a member that began anew is believed more than all others together."""
    changes, pulse = belief.changes, belief.pulse
    for m in range(plan.size.size):
        held = 0.0
        if plan.restarts[m] and belief.born[m] > 0.0:
            for k in range(belief.chains.shape[0]):
                held += belief.chains[k, m]
        if held > 0.5:
            latest = int(pulse[CHANGES] - 1.0) % changes.shape[0]
            if pulse[CHANGES] == 0.0 or belief.born[m] - changes[latest, 0] >= APART:
                latest = int(pulse[CHANGES]) % changes.shape[0]
                changes[latest, 0] = -1.0
                pulse[CHANGES] += 1.0
            known = changes[latest, 1] if changes[latest, 0] == belief.born[m] else 0.0
            changes[latest, 0], changes[latest, 1] = belief.born[m], max(known, held)


@borrowing_kernel
def is_surprised(pulse: Vector) -> bool:
    """Whether the loss of the block is far above what was usual, of which it becomes part."""
    loss, blocks = pulse[LOSS] / BLOCK, pulse[BLOCKS]
    pulse[LOSS] = 0.0
    far = loss - pulse[USUAL] > SURPRISE * math.sqrt(pulse[SPREAD])
    surprised = bool(blocks >= 8.0 and far)
    rate = 1.0 / min(blocks + 1.0, USUAL_MEMORY)
    distance = loss - pulse[USUAL]
    pulse[USUAL] += rate * distance
    pulse[SPREAD] = (1.0 - rate) * (pulse[SPREAD] + rate * distance * distance)
    pulse[BLOCKS] = blocks + 1.0
    return surprised


@borrowing_kernel
def rouse(belief: BankBelief, plan: BankPlan, all_of_them: bool) -> None:
    """Wake those who have slept long enough, or all; as many at once as the share of the costs kept for it allows.

    They go on with what the best of their kin has learnt, as if they had been awake, and have to prove themselves.
    """
    spent = 0.0
    for m in range(belief.rest.size):
        if belief.rest[m] < 0.0:
            belief.rest[m] += BLOCK
            spent += plan.cost[m]
    for m in range(belief.rest.size):
        if belief.rest[m] > 0.0:
            if all_of_them:
                belief.rest[m], belief.naps[m] = BLOCK, 0.0
            affordable = spent == 0.0 or spent + plan.cost[m] <= TRIED_AT_ONCE * plan.limits[0]
            if belief.rest[m] <= BLOCK and affordable:
                spent += plan.cost[m]
                belief.merit[m] = 0.0
                learn_from_kin(belief, plan, m)
                belief.rest[m] = -TRIAL
            else:
                belief.rest[m] = max(belief.rest[m] - BLOCK, BLOCK)


@borrowing_kernel
def learn_from_kin(belief: BankBelief, plan: BankPlan, m: int) -> None:
    """Take over what the best of the kin who are awake knows, and its merit; without any, go on as before."""
    best = -1
    for other in range(plan.kin.size):
        proven = plan.kin[other] == plan.kin[m] and belief.rest[other] == 0.0
        if proven and (best < 0 or belief.merit[other] > belief.merit[best]):
            best = other
    if best < 0:
        return
    at, square, apart = plan.at[m], plan.square[m], plan.beside[m]
    its, its_square, its_apart = plan.at[best], plan.square[best], plan.beside[best]
    for j in range(plan.latents[m] * plan.size[m]):
        belief.mean[at + j * apart] = belief.mean[its + j * its_apart]
    for j in range(plan.latents[m] * plan.size[m] ** 2):
        belief.covariance[square + j * apart] = belief.covariance[its_square + j * its_apart]
    belief.noise[m, 0], belief.noise[m, 1] = belief.noise[best, 0], belief.noise[best, 1]
    belief.merit[m], belief.idle[m] = belief.merit[best], belief.idle[best]


@borrowing_kernel
def lay_to_rest(belief: BankBelief, plan: BankPlan) -> None:
    """Put to sleep who is hopeless, and the least of the others until the rest may be afforded; never the best.

    The best few stay awake even if hopeless beside the very best, which may not be so for long. Those who are tried are
    not among them: a share of the costs is kept for them. Who has many waves is not taken for hopeless, and sleeps only
    where it cannot be afforded, once its time has come.
    """
    best, spent, tried = -1, 0.0, 0.0
    for m in range(belief.rest.size):
        if belief.rest[m] <= 0.0 and (best < 0 or belief.merit[m] > belief.merit[best]):
            best = m
    for m in range(belief.rest.size):
        if belief.rest[m] < 0.0:
            tried += plan.cost[m]
        elif stands_for_jumps(plan, m):
            spent += plan.cost[m] if belief.rest[m] == 0.0 else 0.0
        elif is_judged(belief, plan, m):
            failed = belief.naps[m] > 0.0 and belief.merit[m] < UNPROVEN
            if belief.merit[m] >= 0.0:
                belief.naps[m] = 0.0
            hopeless = plan.patience[m] <= FIRST and (belief.merit[m] < HOPELESS or failed)
            if m != best and hopeless and better_than(belief, m) >= KEPT:
                sleep(belief, m)
            else:
                spent += plan.cost[m]
    while spent > plan.limits[0] - min(tried, TRIED_AT_ONCE * plan.limits[0]):
        least = -1
        for m in range(belief.rest.size):
            awake = is_judged(belief, plan, m) and m != best
            if awake and (least < 0 or belief.merit[m] < belief.merit[least]):
                least = m
        if least < 0:
            break
        spent -= plan.cost[least]
        sleep(belief, least)
    rest_together(belief, plan, 2.0 * BLOCK)


@borrowing_kernel
def better_than(belief: BankBelief, m: int) -> int:
    """How many of those awake have more merit."""
    count = 0
    for other in range(belief.rest.size):
        if belief.rest[other] == 0.0 and belief.merit[other] > belief.merit[m]:
            count += 1
    return count


@borrowing_kernel
def is_judged(belief: BankBelief, plan: BankPlan, m: int) -> bool:
    """Whether a member is awake, is not being tried, and has learnt long enough to be put to sleep."""
    patient = belief.pulse[LEARNT] >= plan.patience[m]
    return bool(belief.rest[m] == 0.0 and patient and not stands_for_jumps(plan, m))


@borrowing_kernel
def sleep(belief: BankBelief, m: int) -> None:
    """Twice as long as the last time."""
    belief.naps[m] = min(max(2.0 * belief.naps[m], NAP), LONGEST_NAP)
    belief.rest[m] = belief.naps[m]


@borrowing_kernel
def restart(belief: BankBelief, plan: BankPlan) -> None:
    """Of the members that restart, let the one of which least is believed begin anew, and be believed as any other."""
    least, weight = -1, 0.0
    for m in range(plan.size.size):
        if plan.restarts[m]:
            held = 0.0
            for k in range(belief.chains.shape[0]):
                held += belief.chains[k, m]
            if least < 0 or held < weight:
                least, weight = m, held
    if least < 0:
        return
    begin(belief, plan, least)
    belief.pulse[RESTARTED] = belief.pulse[STEPS]
    total = 0.0
    for k in range(belief.chains.shape[0]):
        of_chain = 0.0
        for m in range(plan.size.size):
            of_chain += belief.chains[k, m]
        belief.chains[k, least] = max(of_chain / plan.size.size * plan.switching[k], FAINTEST)
        for m in range(plan.size.size):
            total += belief.chains[k, m]
    scale(belief.chains, 1.0 / total, FAINTEST)


@borrowing_kernel
def begin(belief: BankBelief, plan: BankPlan, m: int) -> None:
    """Let a member know nothing yet."""
    size, apart = plan.size[m], plan.beside[m]
    for c in range(plan.latents[m]):
        at, square = plan.at[m] + c * size, plan.square[m] + c * size * size
        for i in range(size):
            belief.mean[at + i * apart] = plan.origin[at + i * apart]
            for j in range(size):
                belief.covariance[square + (i * size + j) * apart] = plan.ceiling[at + i * apart] if i == j else 0.0
    belief.noise[m, 0], belief.noise[m, 1] = FIRST_NOISE if plan.jitter[m] < 0.0 else FIRST_JITTER
    belief.merit[m], belief.rest[m], belief.naps[m], belief.idle[m] = 0.0, -TRIAL, 0.0, 0.0
    belief.born[m] = belief.pulse[STEPS]


FIRST_NOISE = (0.5, 0.5)  # shape and rate: about one target that was one unit off
FIRST_JITTER = (0.5, 0.02)  # the same of the log of what is expected of counts
LEAST_NOISE = 1e-6  # squared units, of a member whose noise has heavy tails


@borrowing_kernel
def scale(chains: Matrix, by: float, least: float) -> None:
    """Multiply all, and let none become less."""
    for k in range(chains.shape[0]):
        for m in range(chains.shape[1]):
            chains[k, m] = max(chains[k, m] * by, least)
