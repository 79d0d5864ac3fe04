"""What a bank holds: beliefs of its members, one after another, what is believed of these, and how all is laid out.

Members may have features of different number, so that their means and covariances lie in one array each, flat.
"""

from __future__ import annotations

from typing import NamedTuple

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

    Features of a member are the inputs, ``past`` (m,) of the latest targets, and the waves of its ``group`` (m,), if
    that is not -1: ``size`` (m,) in all. Its mean begins at ``at``, its covariance at ``square``; of a member of
    several ``latents`` (m,), those of its first, behind which the others lie. ``origin`` are prior means, ``ceiling``
    prior variances, ``drift`` the share of them gained per step, ``keeps`` the share of what is known of the noise that
    outlasts a row, -1 where noise is not learnt, ``jitter`` the same of noise of the latent, ``tails`` its degrees of
    freedom; ``jump`` who stands for its jumps, itself or another, or -1. ``reach`` (m,) is how far out past
    targets are let in, as features. ``restarts`` are those that begin anew now and then. Members of one
    ``kin`` have weights that mean the same. ``cost`` is that of a row in microseconds, roughly; ``limits`` are that of
    all who are awake, and whether any may sleep; ``patience`` are the targets before which a member does not.
    ``log_past`` (1,) is whether past targets are told by their logs.
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
    cost: Vector
    limits: Vector
    patience: Vector
    switching: Vector
    amplitude: Vector
    log_past: Mask


class BankRoom(NamedTuple):
    """Room for one row: features of a member; by member, C x, what is ``known`` of the latent, its variance and blur,
    and how a target is to ``move`` it, step and spread; what each member gave; the waves, and which are needed; a
    record and shares that nobody asks for; and who is ``awake``.
    """

    x: Vector
    direction: Matrix
    known: Matrix
    move: Matrix
    values: Vector
    waves: Matrix
    needed: Integers
    record: Matrix
    shares: Vector
    awake: Integers


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
    )
    every = {name: np.repeat(getattr(plan, name), plan.latents) for name in fields}
    which = np.concatenate([np.arange(count) for count in plan.latents.tolist()])
    every["at"] += which * every["size"]
    every["square"] += which * every["size"] ** 2
    return plan._replace(latents=np.ones_like(which), **every)
