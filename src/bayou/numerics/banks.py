"""The pass over rows and members of a bank, written once: features, drift, marginal, site, absorb, weigh.

Each member believes N(mean, covariance) of its weights, which walk: before each row the variance of a weight grows by a
share of what it was before anything was known, and not beyond that. The covariance is kept as it is, not by factors:
growing its diagonal is then a sum over the features. Members that learn the noise believe N(mean, s covariance) and an
inverse gamma of s; a share of what they know of it is lost with each row.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bayou.contracts import Array, Mask, Matrix, Vector
from bayou.numerics.bank_belief import (
    DEGREES,
    LATEST,
    MEAN,
    NOISE,
    STEPS,
    VALUE,
    VARIANCE,
    BankBelief,
    BankPlan,
    BankRoom,
)
from bayou.numerics.bank_jumps import learn_jump, no_jump, stands_for_jumps
from bayou.numerics.bank_past import is_blind, leave_out_blind, remember
from bayou.numerics.bank_weights import (
    FIRST_NOISE,
    LEAST_NOISE,
    foresee,
    foresee_chains,
    look,
    mixed,
    switch,
    weigh,
    weigh_late,
)
from bayou.numerics.fours import FOUR, KEPT, MOVES, SPREADS, VALUES, ask_four, move_four, take_moves
from bayou.numerics.jit import borrowing_kernel
from bayou.numerics.pointers import call_log_evidence, call_move_four
from bayou.numerics.sites import is_settled, observe_move, pieces, settled
from bayou.numerics.squares import absorb, direct, expected
from bayou.numerics.student_t import log_student

SMALLEST = -1e6  # log probability that a member gives to a target
LEAST_TOGETHER = 2.0  # of four who are asked: one of them alone is told sooner
NOT_TOLD, TOLD, SETTLED = range(3)  # of four at once


@borrowing_kernel
def gained(variance: float, ceiling: float, share: float) -> float:
    """What the variance of a weight gains by walking: never so much that less is known than before anything was."""
    return max(min(share * ceiling, ceiling - variance), 0.0)


@borrowing_kernel
def walk(covariance: Vector, square: int, ceilings: Vector, at: int, size: int, share: float) -> None:
    """Let all weights of a member walk."""
    if share > 0.0:
        for j in range(size):
            place = square + j * (size + 1)
            covariance[place] += gained(covariance[place], ceilings[at + j], share)


@borrowing_kernel
def fade(noise: Vector, kept: float) -> None:
    """Let go of some of what is known of the noise: its size stays, how sure it is does not."""
    shape = FIRST_NOISE[0] + kept * (noise[0] - FIRST_NOISE[0])
    noise[1] *= shape / noise[0]
    noise[0] = shape


@borrowing_kernel
def scatter(belief: BankBelief, plan: BankPlan, at: int, square: int, m: int, missing: Mask, ratio: float) -> float:
    """Sum of E w_j^2 over the missing inputs; in units of the noise, ``ratio`` is how many there are to one."""
    total, size, apart = 0.0, plan.size[m], plan.beside[m]
    for j in range(missing.size):
        if missing[j]:
            mean = belief.mean[at + j * apart]
            total += ratio * mean * mean + belief.covariance[square + j * (size + 1) * apart]
    return total


# Features


@borrowing_kernel
def prepare_waves(belief: BankBelief, plan: BankPlan, inputs: Vector, missing: Mask, n: int, room: Any) -> None:
    """The waves of all groups of which a member is awake; of a missing input, what is expected of them."""
    for g in range(room.needed.size):
        room.needed[g] = 0
    for m in range(plan.group.size):
        if plan.group[m] >= 0 and belief.rest[m] <= 0.0:
            room.needed[plan.group[m]] = 1
    for g in range(room.needed.size):
        if room.needed[g]:
            for w in range(belief.phase.shape[1]):
                angle, blur = belief.phase[g, w], 0.0
                for j in range(inputs.size):
                    angle += belief.frequency[g, w, j] * inputs[j]
                if n < missing.shape[0]:
                    for j in range(inputs.size):
                        if missing[n, j]:
                            blur += belief.frequency[g, w, j] ** 2
                if plan.steps[g]:
                    wave = math.erf(angle / math.sqrt(2.0 + 2.0 * blur))
                else:
                    wave = math.cos(angle) * math.exp(-0.5 * blur)
                room.waves[g, w] = plan.amplitude[g] * wave


@borrowing_kernel
def lay_out(plan: BankPlan, m: int, before: int, inputs: Vector, past: Vector, room: BankRoom) -> int:
    """The features of one member; returns who it is.

    Unless they are laid out: they are the same as those of the member ``before``, if that is not -1.
    """
    if before >= 0 and plan.seen[m] == plan.seen[before]:
        return m
    x, at, reach = room.x, inputs.size, plan.reach[m]
    for j in range(inputs.size):
        x[j] = inputs[j]
    for j in range(plan.past[m]):
        x[at + j] = max(past[j], 0.0) if plan.log_past[0] else min(max(past[j], -reach), reach)
    at += plan.past[m]
    if plan.group[m] >= 0:
        waves = room.waves[plan.group[m]]
        for j in range(waves.size):
            x[at + j] = waves[j]
    return m


# Members


@borrowing_kernel
def call(plan: BankPlan, m: int, steps: float, room: BankRoom) -> None:
    """Have a member asked, so many steps after the latest row.

    What is there already is not written again: four that were written one by one would be waited for, to be read at
    once.
    """
    seat, walks = plan.seat[m], steps * plan.drift[m]
    if room.asked[seat] != 1.0:
        room.asked[seat] = 1.0
    if room.walks[seat] != walks:
        room.walks[seat] = walks


@borrowing_kernel
def pass_time(belief: BankBelief, plan: BankPlan, m: int, room: BankRoom) -> None:
    """Let the time of a row pass, and of all in which a member slept: how far its weights walk is left in the room."""
    steps = 1.0 + belief.idle[m]
    belief.idle[m] = 0.0
    call(plan, m, steps, room)
    kept = max(plan.keeps[m], plan.jitter[m])
    if 0.0 <= kept < 1.0:
        fade(belief.noise[m], kept if steps == 1.0 else kept**steps)


@borrowing_kernel
def leave_out(plan: BankPlan, m: int, room: BankRoom) -> None:
    """Who is not asked does not move."""
    seat = plan.seat[m]
    room.asked[seat], room.walks[seat], room.step[seat], room.spread[seat] = 0.0, 0.0, 0.0, 0.0


@borrowing_kernel
def ask(belief: BankBelief, plan: BankPlan, inputs: Vector, past: Vector, stays: float, room: BankRoom) -> None:
    """What all who are asked know of the latent of a row, when their weights have walked, which ``stays`` so or not."""
    laid = -1
    for f in range(plan.fours.shape[0]):
        asked = room.asked[FOUR * f : FOUR * f + FOUR]
        if asked[0] + asked[1] + asked[2] + asked[3] > 0.0:
            m = plan.fours[f, 0]
            laid = lay_out(plan, m, laid, inputs, past, room)
            ask_four(
                belief.covariance,
                plan.square[m],
                belief.mean,
                plan.ceiling,
                room.direction,
                plan.at[m],
                room.x,
                plan.size[m],
                room.walks,
                room.asked,
                stays,
                room.variance,
                room.latent,
                FOUR * f,
            )
    for seat in range(FOUR * plan.fours.shape[0], room.asked.size):
        if room.asked[seat] > 0.0:
            m = plan.alone[seat - FOUR * plan.fours.shape[0]]
            laid = lay_out(plan, m, laid, inputs, past, room)
            ask_alone(belief, plan, m, stays, room)


@borrowing_kernel
def ask_alone(belief: BankBelief, plan: BankPlan, m: int, stays: float, room: BankRoom) -> None:
    """The same of one member."""
    seat, size, at, square = plan.seat[m], plan.size[m], plan.at[m], plan.square[m]
    x, direction = room.x[:size], room.direction[at : at + size]
    covariance = belief.covariance[square : square + size * size]
    variance = direct(covariance, x, direction)
    if room.walks[seat] > 0.0:
        for j in range(size):
            more = gained(covariance[j * (size + 1)], plan.ceiling[at + j], room.walks[seat])
            covariance[j * (size + 1)] += stays * more
            variance += more * x[j] * x[j]
            direction[j] += more * x[j]
    room.variance[seat], room.latent[seat] = variance, expected(belief.mean[at : at + size], x)


@borrowing_kernel
def tell(
    belief: BankBelief, plan: BankPlan, m: int, missing: Mask, n: int, steps: float, record: Vector, room: BankRoom
) -> bool:
    """Record what a member says: mean and variance of the latent, noise and degrees of freedom, so many steps later.

    The blur in it is left in the room. Returns whether all is finite.
    """
    seat, blur = plan.seat[m], 0.0
    noise, degrees, ratio = 1.0, math.inf, 1.0
    if plan.keeps[m] >= 0.0:
        noise, degrees = belief.noise[m, 1] / belief.noise[m, 0], 2.0 * belief.noise[m, 0]
        if steps > 0.0 and plan.keeps[m] < 1.0:  # as `fade` has it
            degrees = 2.0 * FIRST_NOISE[0] + plan.keeps[m] ** steps * (degrees - 2.0 * FIRST_NOISE[0])
        degrees = 1.0 / (1.0 / degrees + 1.0 / plan.tails[m])  # tails are at least as heavy as either makes them
        ratio = 1.0 / noise
    if n < missing.shape[0]:
        blur = scatter(belief, plan, plan.at[m], plan.square[m], m, missing[n], ratio)
    if plan.jitter[m] >= 0.0:
        blur += belief.noise[m, 1] / belief.noise[m, 0]
    latent, variance = room.latent[seat], room.variance[seat] + blur
    if room.blur[seat] != blur:  # as in `call`
        room.blur[seat] = blur
    record[MEAN], record[VARIANCE], record[NOISE], record[DEGREES] = latent, variance, noise, degrees
    return bool(abs(latent + variance) < np.inf)


@borrowing_kernel
def observe_noise(
    noise: Vector, y: float, mean: float, degrees: float, variance: float, blur: float, weight: float, tails: float
) -> tuple[float, float, float, float]:
    """Log density of a target by a member that learns the noise, which is learnt; step, spread and what is kept of the
    variance, as `bayou.numerics.sites.observe_move` has them.

    With heavy tails a target far away counts for less: by the precision that its noise is expected to have, given how
    far that is (as in the EM algorithm for Student's t, one step per target).
    """
    error = y - mean
    spread = noise[1] / noise[0] * (1.0 + variance + blur)
    value = log_student(error, spread, 0.5 * degrees)
    precision = weight / (1.0 + blur)
    if tails < math.inf:
        precision *= (tails + 1.0) / (tails + error * error / spread)
    kept = 1.0 / (1.0 + precision * variance)
    noise[0] += 0.5 * weight
    noise[1] += 0.5 * error * error * precision * kept
    if tails < math.inf:  # else targets that repeat themselves would leave nothing of it for the next that does not
        noise[1] = max(noise[1], LEAST_NOISE * noise[0])
    return value, error * precision * kept, precision * kept, kept


@borrowing_kernel
def observe_jitter(noise: Vector, step: float, spread: float, weight: float) -> None:
    """Learn how large noise of the latent is: by the slope of log E p in its size, in units of the information of it.

    A target counts for as much as it tells of the noise: one that shows it counts in full, as of numbers.
    """
    size = noise[1] / noise[0]
    told = size * spread
    noise[0] += 0.5 * weight * told * told
    noise[1] += 0.5 * weight * size * (told * told - told + size * step * step)


@borrowing_kernel
def observe_member(
    belief: BankBelief,
    plan: BankPlan,
    m: int,
    kernels: Any,
    params: Vector,
    y: float,
    record: Vector,
    weight: float,
    room: BankRoom,
) -> float:
    """What a target does to what a member knows of the latent, left in the room; returns its log E p.

    Who stands for jumps learns when it is known how probably it was one.
    """
    if stands_for_jumps(plan, m):
        return given_to(plan, m, kernels, params, y, record)
    seat = plan.seat[m]
    variance, blur = room.variance[seat], room.blur[seat]
    if plan.keeps[m] >= 0.0:
        weight *= no_jump(belief, plan, m, y, record)
        said = record[MEAN], record[DEGREES], variance, blur
        value, step, spread, _ = observe_noise(belief.noise[m], y, *said, weight, plan.tails[m])
        if plan.jump[m] >= 0:  # as of those with tails
            belief.noise[m, 1] = max(belief.noise[m, 1], LEAST_NOISE * belief.noise[m, 0])
    else:
        value, step, spread, _ = observe_move(kernels, params, y, record[MEAN], variance, blur, weight)
        if plan.jitter[m] >= 0.0:
            observe_jitter(belief.noise[m], step, spread, weight)
    room.step[seat], room.spread[seat] = step, spread
    return value


@borrowing_kernel
def observe_all(
    belief: BankBelief,
    plan: BankPlan,
    kernels: Any,
    params: Matrix,
    y: float,
    said: Matrix,
    weight: float,
    room: BankRoom,
) -> None:
    """What a target does to what all who are asked know of the latent, left in the room; records their log E p."""
    for f in range(plan.fours.shape[0]):
        told = NOT_TOLD
        if plan.together[f]:
            told = observe_four(plan, f, kernels, params, y, weight, room)
        for i in range(FOUR):
            m, seat = plan.fours[f, i], FOUR * f + i
            if room.asked[seat] == 0.0:
                continue
            if told == NOT_TOLD:
                value = observe_member(belief, plan, m, kernels[m], params[m], y, said[m], weight, room)
            else:
                value = room.of_four[VALUES + i]
                if told != SETTLED:
                    found = room.of_four[MOVES + i], room.of_four[SPREADS + i], room.of_four[KEPT + i]
                    room.step[seat], room.spread[seat], _ = settled(
                        *found, room.variance[seat], room.blur[seat], weight
                    )
            said[m, VALUE] = bounded_below(value)
    for m in plan.alone:
        if room.asked[plan.seat[m]] > 0.0:
            value = observe_member(belief, plan, m, kernels[m], params[m], y, said[m], weight, room)
            said[m, VALUE] = bounded_below(value)


@borrowing_kernel
def observe_four(plan: BankPlan, f: int, kernels: Any, params: Matrix, y: float, weight: float, room: BankRoom) -> int:
    """What a target does to four latents, told at once; where that is how all four move, it is left so in the room.

    As whole vectors: numbers that are written one by one would be waited for, to be read at once.
    """
    m, own, asked, simple = plan.fours[f, 0], slice(FOUR * f, FOUR * f + FOUR), 0.0, weight == 1.0
    for i in range(FOUR):
        asked += room.asked[FOUR * f + i]
        simple = simple and room.blur[FOUR * f + i] == 0.0
    if asked < LEAST_TOGETHER:
        return NOT_TOLD
    known = room.latent[own], room.variance[own], room.blur[own]
    if call_move_four(kernels[m], y, params[m], *known, room.of_four) == 0.0:
        return NOT_TOLD
    if not simple or asked < FOUR:
        return TOLD
    for i in range(FOUR):
        step, spread, kept = room.of_four[MOVES + i], room.of_four[SPREADS + i], room.of_four[KEPT + i]
        simple = simple and is_settled(step, spread, kept)
    if not simple:
        return TOLD
    take_moves(room.of_four, room.step, room.spread, FOUR * f)
    return SETTLED


@borrowing_kernel
def move(belief: BankBelief, plan: BankPlan, room: BankRoom) -> None:
    """Move what all who were asked believe as `observe_member` has found, along the direction that `ask` has left."""
    for f in range(plan.fours.shape[0]):
        asked = room.asked[FOUR * f : FOUR * f + FOUR]
        if asked[0] + asked[1] + asked[2] + asked[3] > 0.0:
            m, by_seat = plan.fours[f, 0], (room.step, room.spread, FOUR * f)
            of_weights = belief.mean, room.direction, plan.at[m]
            move_four(belief.covariance, plan.square[m], *of_weights, plan.size[m], *by_seat)
    for seat in range(FOUR * plan.fours.shape[0], room.asked.size):
        if room.step[seat] != 0.0 or room.spread[seat] != 0.0:
            m = plan.alone[seat - FOUR * plan.fours.shape[0]]
            size, at, square = plan.size[m], plan.at[m], plan.square[m]
            known = belief.mean[at : at + size], belief.covariance[square : square + size * size]
            absorb(*known, room.direction[at : at + size], room.step[seat], room.spread[seat])


@borrowing_kernel
def bounded_below(value: float) -> float:
    """A log probability, however small; of a member that cannot tell, the smallest."""
    return value if value > SMALLEST else SMALLEST


# Rows


@borrowing_kernel
def call_awake(belief: BankBelief, plan: BankPlan, some_blind: bool, record: Matrix, room: BankRoom) -> None:
    """Let the time of a row pass, which passes by those who sleep, or do not see it."""
    for m in range(plan.drift.size):
        if belief.rest[m] > 0.0 or (some_blind and is_blind(plan, m, belief.past)):
            belief.idle[m] += 1.0
            leave_out(plan, m, room)
            silent(record[m])
        else:
            pass_time(belief, plan, m, room)


@borrowing_kernel
def tell_all(belief: BankBelief, plan: BankPlan, missing: Mask, n: int, record: Matrix, room: BankRoom) -> bool:
    """Record what all say who were asked now; returns whether it is finite."""
    finite = True
    for m in range(plan.drift.size):
        if room.asked[plan.seat[m]] > 0.0:
            finite = tell(belief, plan, m, missing, n, 0.0, record[m], room) and finite
    return finite


@borrowing_kernel
def predict_bank(
    belief: BankBelief,
    plan: BankPlan,
    kernels: Any,
    params: Matrix,
    features: Matrix,
    missing: Mask,
    ahead: float,
    record: Array,
    room: BankRoom,
) -> None:
    """Record what each member that is awake says of each row, so many steps after the next; and log E p of a 1."""
    for n in range(features.shape[0]):
        predict_row(belief, plan, features, missing, n, ahead, record[n], room)
        ask_for_one(belief, plan, kernels, params, record[n])


@borrowing_kernel
def ask_for_one(belief: BankBelief, plan: BankPlan, kernels: Any, params: Matrix, record: Matrix) -> None:
    """Record the log probability that each member gives to a target of 1: of two classes it says all."""
    for m in range(plan.drift.size):
        if belief.rest[m] <= 0.0:
            record[m, VALUE] = given_to(plan, m, kernels[m], params[m], 1.0, record[m])


@borrowing_kernel
def predict_row(
    belief: BankBelief,
    plan: BankPlan,
    features: Matrix,
    missing: Mask,
    n: int,
    ahead: float,
    record: Matrix,
    room: BankRoom,
) -> None:
    """The same for one of the rows."""
    prepare_waves(belief, plan, features[n], missing, n, room)
    for m in range(plan.drift.size):
        if belief.rest[m] <= 0.0:
            call(plan, m, 1.0 + ahead + belief.idle[m], room)
        else:
            leave_out(plan, m, room)
    ask(belief, plan, features[n], belief.past, 0.0, room)
    for m in range(plan.drift.size):
        if belief.rest[m] <= 0.0:
            tell(belief, plan, m, missing, n, 1.0 + ahead + belief.idle[m], record[m], room)
        else:
            silent(record[m])


@borrowing_kernel
def given_to(plan: BankPlan, m: int, kernels: Any, params: Vector, y: float, record: Vector) -> float:
    """Log E p of a target by what a member has said."""
    if plan.keeps[m] >= 0.0:
        spread = record[NOISE] * (1.0 + record[VARIANCE])
        value: float = log_student(y - record[MEAN], spread, 0.5 * record[DEGREES])
        return value
    value = call_log_evidence(kernels, kernels, y, record[MEAN], record[VARIANCE], params)[0]
    return value


@borrowing_kernel
def silent(record: Vector) -> None:
    """What is recorded of a member that sleeps: something that may be asked, and counts for nothing."""
    record[MEAN], record[VARIANCE], record[NOISE], record[DEGREES], record[VALUE] = 0.0, 1.0, 1.0, math.inf, 0.0


@borrowing_kernel
def learn_bank(
    belief: BankBelief,
    plan: BankPlan,
    kernels: Any,
    params: Matrix,
    features: Matrix,
    missing: Mask,
    targets: Vector,
    weights: Vector,
    record: Array,
    shares: Matrix,
    evidence: Vector,
    room: BankRoom,
) -> int:
    """Absorb the rows in order; stops at one that makes a latent not finite, and returns how many were absorbed.

    Records what each member said before the target was used, the share of each in what the bank said, and log E p of
    the bank. A row that counts k times is absorbed k times at one time, and members are weighed k times by what they
    said of it before: who forgets fast would else be praised for what it had just been told. One that counts for
    nothing is only predicted.
    """
    members = plan.drift.size
    for n in range(targets.size):
        weight = float(weights[n]) if n < weights.size else 1.0
        if weight == 0.0:
            predict_row(belief, plan, features, missing, n, 0.0, record[n], room)
            foresee(belief, plan, 0.0, shares[n])
            for m in range(members):
                room.values[m] = bounded_below(given_to(plan, m, kernels[m], params[m], targets[n], record[n, m]))
                record[n, m, VALUE] = room.values[m]
            evidence[n] = mixed(room.values, shares[n])
            continue
        count = pieces(weight)
        switch(belief, plan, shares[n])
        some_blind = leave_out_blind(plan, belief.past, shares[n])
        call_awake(belief, plan, some_blind, record[n], room)
        prepare_waves(belief, plan, features[n], missing, n, room)
        for piece in range(count):
            said = record[n] if piece == 0 else room.record
            # of all members one thing after another: what they do does not wait for each other
            ask(belief, plan, features[n], belief.past, 1.0, room)
            if not tell_all(belief, plan, missing, n, said, room):
                return n
            observe_all(belief, plan, kernels, params, targets[n], said, weight / count, room)
            move(belief, plan, room)
            if count > 1:  # time has passed, for all pieces of a row
                room.walks[:] = 0.0
        for m in range(members):
            if room.asked[plan.seat[m]] > 0.0:
                room.values[m] = record[n, m, VALUE]
        evidence[n] = weigh(belief, room.values, shares[n], weight)
        for jumper in plan.jumpers:
            if belief.rest[jumper] <= 0.0:
                learn_jump(belief, plan, jumper, targets[n], record[n, jumper], weight)
        belief.pulse[STEPS] += 1.0
        belief.pulse[LATEST] = belief.pulse[STEPS]
        look(belief, plan, evidence[n])
        remember(belief.past, targets[n], plan.log_past[0])
    return targets.size


# Targets that come late


@borrowing_kernel
def forecast_bank(
    belief: BankBelief,
    plan: BankPlan,
    kernels: Any,
    params: Matrix,
    features: Matrix,
    missing: Mask,
    record: Array,
    of_chains: Array,
    room: BankRoom,
) -> None:
    """Let the time of rows pass, and record what each member says of each and what chains (n, k, m) foresee of them.

    Chains are left as they are: these move when targets come, and how long they have not is foreseen.
    """
    for n in range(features.shape[0]):
        foresee_chains(belief, plan, belief.pulse[STEPS] - belief.pulse[LATEST], of_chains[n])
        call_awake(belief, plan, False, record[n], room)
        prepare_waves(belief, plan, features[n], missing, n, room)
        ask(belief, plan, features[n], belief.past, 1.0, room)
        tell_all(belief, plan, missing, n, record[n], room)
        ask_for_one(belief, plan, kernels, params, record[n])
        belief.pulse[STEPS] += 1.0


@borrowing_kernel
def learn_late(
    belief: BankBelief,
    plan: BankPlan,
    kernels: Any,
    params: Matrix,
    features: Matrix,
    missing: Mask,
    past: Vector,
    y: float,
    then: float,
    record: Array,
    of_chains: Matrix,
    lag: float,
    room: BankRoom,
) -> float:
    """Absorb a target so many steps after it was forecast; returns log E p of the bank, or NaN, with nothing learnt.

    Members are weighed by what they said then, of the target in the units of ``then``; who slept said nothing. The
    target tells of the weights as they were. The share of the variance along x that is older than that is taken for the
    share in all directions: this is exact for one weight if nothing was learnt in between, and leaves the covariance
    positive in any case.
    """
    now = room.record
    prepare_waves(belief, plan, features[0], missing, 0, room)
    for m in range(plan.drift.size):
        if belief.rest[m] <= 0.0:
            call(plan, m, 0.0, room)
        else:
            leave_out(plan, m, room)
    ask(belief, plan, features[0], past, 1.0, room)
    if not tell_all(belief, plan, missing, 0, now, room):
        return math.nan
    switch(belief, plan, room.shares)
    for m in range(plan.drift.size):
        room.shares[m] = 0.0
        for k in range(of_chains.shape[0]):
            room.shares[m] += of_chains[k, m]
    some_blind, laid = leave_out_blind(plan, past, room.shares), -1
    for m in range(plan.drift.size):
        if room.shares[m] > 0.0:
            room.values[m] = bounded_below(given_to(plan, m, kernels[m], params[m], then, record[0, m]))
        if belief.rest[m] > 0.0 or (some_blind and is_blind(plan, m, past)):
            leave_out(plan, m, room)
            continue
        laid = lay_out(plan, m, laid, features[0], past, room)
        keep_older(plan, m, lag, room)
        observe_member(belief, plan, m, kernels[m], params[m], y, now[m], 1.0, room)
    move(belief, plan, room)
    given = weigh_late(belief, room.values, of_chains, room.shares, lag)
    for jumper in plan.jumpers:
        if belief.rest[jumper] <= 0.0:
            learn_jump(belief, plan, jumper, y, now[jumper], 1.0)
    belief.pulse[LATEST] = max(belief.pulse[LATEST], belief.pulse[STEPS] - lag)
    look(belief, plan, given)
    remember(belief.past, y, plan.log_past[0])
    return given


@borrowing_kernel
def keep_older(plan: BankPlan, m: int, lag: float, room: BankRoom) -> None:
    """Of what is known of a latent, by a member whose features are laid out, keep what is older than so many steps."""
    at, apart, walked, variance = plan.at[m], plan.beside[m], 0.0, room.variance[plan.seat[m]]
    for j in range(plan.size[m]):
        walked += plan.ceiling[at + j * apart] * room.x[j] * room.x[j]
    walked *= min(lag * plan.drift[m], 1.0)
    share = max(1.0 - walked / variance, 0.0) if variance > 0.0 else 0.0
    room.variance[plan.seat[m]] *= share
    for j in range(plan.size[m]):
        room.direction[at + j * apart] *= share
