"""The pass over rows and members of a bank whose targets are classes: `bayou.numerics.banks` with a latent per class.

The latents of a member are independent and see the same features, but for past targets: each sees whether these were
its own class. Of each row a member says how probable each class is (`bayou.numerics.quick_race`), which is all that is
recorded of it. ``kernels`` and ``params`` stand where those of other banks do, and are not asked.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bayou.contracts import Array, Mask, Matrix, Vector
from bayou.numerics.bank_belief import LATEST, STEPS, BankBelief, BankPlan, ClassRoom
from bayou.numerics.bank_weights import foresee, foresee_chains, look, mixed, switch, weigh, weigh_late
from bayou.numerics.banks import gained, prepare_waves, scatter, walk
from bayou.numerics.jit import borrowing_kernel
from bayou.numerics.quick_race import race, race_slopes
from bayou.numerics.sites import bounded, moved, pieces
from bayou.numerics.squares import absorb, direct, expected

LEAST_KEPT = 1e-6  # of a latent's variance


# Members


@borrowing_kernel
def see_past(plan: BankPlan, m: int, c: int, n_inputs: int, past: Vector, room: ClassRoom) -> None:
    """The features of one latent that the others do not have: whether past targets were its class."""
    for j in range(plan.past[m]):
        room.x[n_inputs + j] = 1.0 if past[j] == c else 0.0


@borrowing_kernel
def lay_out(plan: BankPlan, m: int, inputs: Vector, room: ClassRoom) -> None:
    """The features of one member that all of its latents have."""
    x, at = room.x, inputs.size + plan.past[m]
    for j in range(inputs.size):
        x[j] = inputs[j]
    if plan.group[m] >= 0:
        waves = room.waves[plan.group[m]]
        for j in range(waves.size):
            x[at + j] = waves[j]


@borrowing_kernel
def pass_time(belief: BankBelief, plan: BankPlan, m: int) -> None:
    """Let the weights of a member walk, for all rows in which it slept as well."""
    size, share = plan.size[m], (1.0 + belief.idle[m]) * plan.drift[m]
    belief.idle[m] = 0.0
    for c in range(plan.latents[m] if share > 0.0 else 0):
        at, square = plan.at[m] + c * size, plan.square[m] + c * size * size
        walk(belief.covariance, square, plan.ceiling, at, size, share)


@borrowing_kernel
def marginals(
    belief: BankBelief,
    plan: BankPlan,
    m: int,
    inputs: Vector,
    past: Vector,
    missing: Mask,
    n: int,
    steps: float,
    room: ClassRoom,
) -> bool:
    """What a member knows of each latent of a row, after so many steps more; whether it is finite."""
    lay_out(plan, m, inputs, room)
    size, share, sum_of_all = plan.size[m], steps * plan.drift[m], 0.0
    x = room.x[:size]
    for c in range(plan.latents[m]):
        at, square, direction = plan.at[m] + c * size, plan.square[m] + c * size * size, room.direction[c]
        mean, covariance = belief.mean[at : at + size], belief.covariance[square : square + size * size]
        see_past(plan, m, c, inputs.size, past, room)
        variance = direct(covariance, x, direction)
        if share > 0.0:
            for j in range(size):
                walked = gained(covariance[j * size + j], plan.ceiling[at + j], share) * x[j]
                variance += walked * x[j]
                direction[j] += walked
        blur = scatter(belief, plan, at, square, m, missing[n], 1.0) if n < missing.shape[0] else 0.0
        room.mean[c], room.variance[c], room.blur[c] = expected(mean, x), variance, blur
        room.total[c] = variance + blur
        sum_of_all += abs(room.mean[c]) + room.total[c]
    return bool(sum_of_all < np.inf)


@borrowing_kernel
def absorb_class(
    belief: BankBelief, plan: BankPlan, m: int, y: float, points: int, weight: float, room: ClassRoom
) -> None:
    """Move each latent of a member along the direction that `marginals` has left, after a race on so many points."""
    size = plan.size[m]
    race_slopes(int(y), points, room.slope, room.curvature, room.race)
    for c in range(plan.latents[m]):
        per_kept = 1.0 / max(1.0 - room.total[c] * room.curvature[c], LEAST_KEPT)
        slope, precision = bounded(room.slope[c] * per_kept, room.curvature[c] * per_kept, room.total[c])
        share = weight / (1.0 + precision * room.blur[c])
        slope, precision = bounded(slope * share, precision * share, room.variance[c])
        step, spread, _ = moved(slope, precision, room.variance[c])
        at, square = plan.at[m] + c * size, plan.square[m] + c * size * size
        covariance = belief.covariance[square : square + size * size]
        absorb(belief.mean[at : at + size], covariance, room.direction[c], step, spread)


@borrowing_kernel
def silent(record: Vector) -> None:
    """What is recorded of a member that sleeps: something that may be asked, and counts for nothing."""
    for c in range(record.size):
        record[c] = 1.0 / record.size


@borrowing_kernel
def remember(past: Vector, y: float) -> None:
    """The latest target becomes the first of the past."""
    for j in range(past.size - 1, 0, -1):
        past[j] = past[j - 1]
    if past.size:
        past[0] = y


# Rows


@borrowing_kernel
def predict_classes(
    belief: BankBelief,
    plan: BankPlan,
    kernels: Any,
    params: Matrix,
    features: Matrix,
    missing: Mask,
    ahead: float,
    record: Array,
    room: ClassRoom,
) -> None:
    """Record what each member that is awake says of each row, so many steps after the next."""
    for n in range(features.shape[0]):
        predict_row(belief, plan, features, missing, n, ahead, record[n], room)


@borrowing_kernel
def predict_row(
    belief: BankBelief,
    plan: BankPlan,
    features: Matrix,
    missing: Mask,
    n: int,
    ahead: float,
    record: Matrix,
    room: ClassRoom,
) -> None:
    """The same for one of the rows."""
    prepare_waves(belief, plan, features[n], missing, n, room)
    for m in range(plan.drift.size):
        silent(record[m])
        if belief.rest[m] <= 0.0:
            given = features[n], belief.past, missing, n
            if marginals(belief, plan, m, *given, 1.0 + ahead + belief.idle[m], room):
                race(room.mean, room.total, record[m], room.race)


@borrowing_kernel
def learn_classes(
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
    room: ClassRoom,
) -> int:
    """Absorb the rows in order; stops at one that makes a latent not finite, and returns how many were absorbed.

    Records what each member said before the target was used, the share of each in what the bank said, and log E p of
    the bank. A row that counts k times is absorbed k times at one time, and members are weighed k times by what they
    said of it before, as in `bayou.numerics.banks.learn_bank`. One that counts for nothing is only predicted.
    """
    members = plan.drift.size
    for n in range(targets.size):
        weight, y = float(weights[n]) if n < weights.size else 1.0, int(targets[n])
        if weight == 0.0:
            predict_row(belief, plan, features, missing, n, 0.0, record[n], room)
            foresee(belief, plan, 0.0, shares[n])
            for m in range(members):
                room.values[m] = math.log(record[n, m, y])
            evidence[n] = mixed(room.values, shares[n])
            continue
        count = pieces(weight)
        switch(belief, plan, shares[n])
        prepare_waves(belief, plan, features[n], missing, n, room)
        for m in range(members):
            silent(record[n, m])
            if belief.rest[m] > 0.0:
                belief.idle[m] += 1.0
                continue
            pass_time(belief, plan, m)
            for piece in range(count):
                here = record[n, m] if piece == 0 else room.record[m]
                if not marginals(belief, plan, m, features[n], belief.past, missing, n, 0.0, room):
                    return n
                points = race(room.mean, room.total, here, room.race)
                absorb_class(belief, plan, m, targets[n], points, weight / count, room)
            room.values[m] = math.log(record[n, m, y])
        evidence[n] = weigh(belief, room.values, shares[n], weight)
        belief.pulse[STEPS] += 1.0
        belief.pulse[LATEST] = belief.pulse[STEPS]
        look(belief, plan, evidence[n])
        remember(belief.past, targets[n])
    return targets.size


# Targets that come late


@borrowing_kernel
def forecast_classes(
    belief: BankBelief,
    plan: BankPlan,
    kernels: Any,
    params: Matrix,
    features: Matrix,
    missing: Mask,
    record: Array,
    of_chains: Array,
    room: ClassRoom,
) -> None:
    """Let the time of rows pass, and record what each member says of each and what chains (n, k, m) foresee of them."""
    for n in range(features.shape[0]):
        foresee_chains(belief, plan, belief.pulse[STEPS] - belief.pulse[LATEST], of_chains[n])
        prepare_waves(belief, plan, features[n], missing, n, room)
        for m in range(plan.drift.size):
            silent(record[n, m])
            if belief.rest[m] > 0.0:
                belief.idle[m] += 1.0
                continue
            pass_time(belief, plan, m)
            if marginals(belief, plan, m, features[n], belief.past, missing, n, 0.0, room):
                race(room.mean, room.total, record[n, m], room.race)
        belief.pulse[STEPS] += 1.0


@borrowing_kernel
def learn_late_class(
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
    room: ClassRoom,
) -> float:
    """Absorb a target so many steps after it was forecast; returns log E p of the bank, or NaN, with nothing learnt.

    See `bayou.numerics.banks.learn_late`.
    """
    prepare_waves(belief, plan, features[0], missing, 0, room)
    for m in range(plan.drift.size):
        if belief.rest[m] <= 0.0 and not marginals(belief, plan, m, features[0], past, missing, 0, 0.0, room):
            return math.nan
    switch(belief, plan, room.shares)
    for m in range(plan.drift.size):
        room.shares[m] = 0.0
        for k in range(of_chains.shape[0]):
            room.shares[m] += of_chains[k, m]
        if room.shares[m] > 0.0:
            room.values[m] = math.log(record[0, m, int(then)])
        if belief.rest[m] > 0.0:
            continue
        marginals(belief, plan, m, features[0], past, missing, 0, 0.0, room)
        keep_older(plan, m, features.shape[1], past, lag, room)
        points = race(room.mean, room.total, room.record[m], room.race)
        absorb_class(belief, plan, m, y, points, 1.0, room)
    given = weigh_late(belief, room.values, of_chains, room.shares, lag)
    belief.pulse[LATEST] = max(belief.pulse[LATEST], belief.pulse[STEPS] - lag)
    look(belief, plan, given)
    remember(belief.past, y)
    return given


@borrowing_kernel
def keep_older(plan: BankPlan, m: int, n_inputs: int, past: Vector, lag: float, room: ClassRoom) -> None:
    """Of each variance keep the share that is older than so many steps: see `bayou.numerics.banks.older`."""
    size = plan.size[m]
    for c in range(plan.latents[m]):
        see_past(plan, m, c, n_inputs, past, room)
        variance, walked = room.variance[c], 0.0
        for j in range(size):
            walked += plan.ceiling[plan.at[m] + j] * room.x[j] * room.x[j]
        walked *= min(lag * plan.drift[m], 1.0)
        share = max(1.0 - walked / variance, 0.0) if variance > 0.0 else 0.0
        for j in range(size):
            room.direction[c, j] *= share
        room.variance[c] = share * variance
        room.total[c] = room.variance[c] + room.blur[c]
