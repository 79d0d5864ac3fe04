"""What a bank holds: beliefs of its members, one after another, what is believed of these, and how all is laid out.

Members may have features of different number, so that their means and covariances lie in one array each, flat.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Array, Mask, Matrix, Vector
from bayou.numerics.quick_race import RaceRoom

Integers = NDArray[np.int64]

MEAN, VARIANCE, NOISE, DEGREES, VALUE = range(5)
N_RECORDS = 5
# What a bank counts: rows that have passed, targets that were learnt, the loss of the block of rows that is under way;
# mean, variance and weight of the losses of blocks before; the row of the latest restart; how many changes were found;
# and the latest row whose target is known.
STEPS, LEARNT, LOSS, USUAL, SPREAD, BLOCKS, RESTARTED, CHANGES, LATEST = range(9)
N_PULSES = 9
MOST_CHANGES = 64  # that are remembered


class BankBelief(NamedTuple):
    """All that is learnt.

    ``mean`` and ``covariance`` are those of all members; ``noise`` (m, 2) is shape and rate of those who learn it;
    ``chains`` (k, m) sum to one, and so does ``usual`` (m,), what was believed of each member of late. ``merit``
    (m,) is how much more each gave to the latest targets than the bank, ``rest`` for how many targets it sleeps,
    ``naps`` how long it slept the last time, ``idle`` how many rows it has not walked, ``born`` the row at which it
    began. ``past`` are the latest targets, the newest first, of classes and counts -1 before there are any;
    ``pulse`` see `STEPS`. ``changes`` (c, 2) are rows at which all began anew, and how probable that was when it
    was most. ``frequency`` (g, w, d) and ``phase`` (g, w) are of the waves. ``jumps`` (m, 5) is, of a member that
    stands for jumps, how many rows were: see `bayou.numerics.bank_jumps`.
    """

    mean: Vector
    covariance: Vector
    noise: Matrix
    chains: Matrix
    usual: Vector
    merit: Vector
    rest: Vector
    naps: Vector
    idle: Vector
    born: Vector
    past: Vector
    pulse: Vector
    changes: Matrix
    frequency: Array
    phase: Matrix
    jumps: Matrix


class BankPlan(NamedTuple):
    """How it is laid out, and the settings of members.

    Members of the same features, which have the same ``seen`` (m,), lie in ``fours`` (f, 4), side by side: the numbers
    of each of them are ``beside`` (m,) places apart, and otherwise 1. Others are ``alone`` (a,). ``seat`` (m,) is
    where a member stands among those of the first four, the second, ..., and then the others. Fours ``together`` (f,)
    have a likelihood that tells four latents at once.

    Features of a member are the inputs, ``past`` (m,) of the latest targets, and the waves of its ``group`` (m,), if
    that is not -1: ``size`` (m,) in all. Its mean begins at ``at``, its covariance at ``square``; of a member of
    several ``latents`` (m,), those of its first, behind which the others lie. ``origin`` are prior means, ``ceiling``
    prior variances, ``drift`` the share of them gained per step, ``keeps`` the share of what is known of the noise that
    outlasts a row, -1 where noise is not learnt, ``jitter`` the same of noise of the latent, ``tails`` its degrees of
    freedom; ``jump`` who stands for its jumps, itself or another, or -1; ``jumpers`` are those
    who do. ``reach`` (m,) is how far out past
    targets are let in, as features. ``restarts`` are those that begin anew now and then. Members of one
    ``kin`` have weights that mean the same. ``cost`` is that of a row in microseconds, roughly; ``limits`` are that of
    all who are awake, and whether any may sleep; ``patience`` are the targets before which a member does not.
    ``amplitude`` (g,) is that of waves, of which some are ``steps`` (g,). ``log_past`` (1,) is whether past targets are
    told by their logs.
    """

    size: Integers
    latents: Integers
    at: Integers
    square: Integers
    past: Integers
    reach: Vector
    group: Integers
    restarts: Integers
    kin: Integers
    origin: Vector
    ceiling: Vector
    drift: Vector
    keeps: Vector
    jitter: Vector
    tails: Vector
    jump: Integers
    jumpers: Integers
    cost: Vector
    limits: Vector
    patience: Vector
    switching: Vector
    amplitude: Vector
    steps: Mask
    log_past: Mask
    seen: Integers
    beside: Integers
    fours: Any
    alone: Integers
    seat: Integers
    together: Mask


class BankRoom(NamedTuple):
    """Room for one row. By seat: whether a member is ``asked``, by how much its weights walk, what it knows of the
    latent, its mean, variance, and blur, and how that moves, by step and spread. By member: what each gave. Features of
    a member; C x, of each where its mean lies; the waves, and which are needed; a record and shares that nobody asks
    for; and what is said of four at once.
    """

    x: Vector
    direction: Vector
    asked: Vector
    walks: Vector
    latent: Vector
    variance: Vector
    blur: Vector
    step: Vector
    spread: Vector
    values: Vector
    waves: Matrix
    needed: Integers
    record: Matrix
    shares: Vector
    of_four: Vector


class ClassRoom(NamedTuple):
    """Room for one row where targets are classes: the same, with C x of each latent (k, d), what is known of each (k,),
    and that of a race between them.
    """

    x: Vector
    direction: Matrix
    values: Vector
    waves: Matrix
    needed: Integers
    record: Matrix
    shares: Vector
    mean: Vector
    variance: Vector
    blur: Vector
    total: Vector
    slope: Vector
    curvature: Vector
    race: RaceRoom


def blocks_of(plan: BankPlan) -> BankPlan:
    """The plan with each latent of a member as a member of its own: where only weights matter, not who has them."""
    if np.all(plan.latents == 1):
        return plan
    fields = (
        "size",
        "at",
        "square",
        "past",
        "reach",
        "group",
        "restarts",
        "drift",
        "keeps",
        "jitter",
        "tails",
        "jump",
        "cost",
        "seen",
        "beside",
        "seat",
    )
    every = {name: np.repeat(getattr(plan, name), plan.latents) for name in fields}
    which = np.concatenate([np.arange(count) for count in plan.latents.tolist()])
    every["at"] += which * every["size"]
    every["square"] += which * every["size"] ** 2
    return plan._replace(latents=np.ones_like(which), **every)


def slice_of(plan: BankPlan, m: int, latent: int = 0) -> tuple[slice, slice, int]:
    """Where the mean and the covariance of a member lie, of one latent, and how many weights it has."""
    size, beside = int(plan.size[m]), int(plan.beside[m])
    at, square = int(plan.at[m]) + latent * size, int(plan.square[m]) + latent * size * size
    numbers = slice(at, at + (size - 1) * beside + 1, beside)
    return numbers, slice(square, square + (size * size - 1) * beside + 1, beside), size


def by_member(belief: BankBelief, plan: BankPlan) -> BankBelief:
    """The same with what members believe one after another, as it lies in files."""
    if not plan.fours.size:
        return belief
    places = [slice_of(plan, m)[:2] for m in range(plan.size.size)]
    return belief._replace(
        mean=np.concatenate([belief.mean[at] for at, _ in places]),
        covariance=np.concatenate([belief.covariance[square] for _, square in places]),
    )


def side_by_side(belief: BankBelief, plan: BankPlan) -> BankBelief:
    """What `by_member` has told, where the plan has it."""
    if not plan.fours.size:
        return belief
    own = belief._replace(mean=np.empty_like(belief.mean), covariance=np.empty_like(belief.covariance))
    begin = begin_square = 0
    for m in range(plan.size.size):
        at, square, size = slice_of(plan, m)
        own.mean[at] = belief.mean[begin : begin + size]
        own.covariance[square] = belief.covariance[begin_square : begin_square + size * size]
        begin, begin_square = begin + size, begin_square + size * size
    return own
