"""Beliefs of banks added up in natural parameters, and told in other coordinates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import logsumexp

from bayou.contracts import Array, Matrix, Vector
from bayou.numerics.bank_belief import LEARNT, STEPS, BankBelief, BankPlan, blocks_of, slice_of
from bayou.numerics.bank_jumps import FIRST_JUMPS, LATEST_JUMP
from bayou.numerics.bank_naturals import (
    BankNatural,
    believed,
    log_partitions,
    natural_of,
    prior_of,
    symmetric,
    write,
)
from bayou.numerics.bank_past import FARTHEST
from bayou.numerics.bank_weights import FAINTEST, FIRST_JITTER, FIRST_NOISE

FEW = 16.0  # targets of which the prior of the noise outweighs some
LEAST_KNOWN = 1e-200  # with less, a chain has forgotten who of its members was better
FIRST_UNITS = 2.0  # targets that units need
MOST_AT_ONCE = 32  # beliefs whose products are taken in one sum; of more, as banks of classes have, one by one


def combined(
    total: BankBelief, plan: BankPlan, parts: Sequence[tuple[float, BankBelief]], log_evidence: float = 0.0
) -> float:
    """Write what the parts know together, each so many times, to a belief that knows nothing; returns its evidence.

    ``log_evidence`` is that of the parts, added up. What they gave to their rows, each by itself, is not what one that
    learnt all rows would have given: members are weighed by the latter, as `bayou.numerics.bank_naturals` has it. That
    is exact of Gaussian targets if members never change places and none sleeps.
    """
    prior, at_first = prior_of(plan), log_partitions(total, plan)
    natural, beyond = prior, np.zeros_like(at_first)
    for share, belief in parts:
        told = natural_of(belief, plan)
        natural = BankNatural(*(a + share * (b - c) for a, b, c in zip(natural, told, prior, strict=True)))
        beyond -= share * (log_partitions(belief, plan) - at_first)
    write(total, plan, natural)
    beyond += log_partitions(total, plan) - at_first
    total.usual[...] = np.mean([belief.usual for share, belief in parts if share > 0.0], axis=0)
    jumps = sum((share * (belief.jumps - FIRST_JUMPS) for share, belief in parts), np.zeros_like(total.jumps))
    total.jumps[:, :LATEST_JUMP] = (FIRST_JUMPS + np.maximum(jumps, 0.0))[:, :LATEST_JUMP]
    jittery = plan.jitter >= 0.0
    noise = sum((share * (belief.noise - FIRST_JITTER) for share, belief in parts), np.zeros_like(total.noise))
    total.noise[jittery] = (FIRST_JITTER + np.maximum(noise, 0.0))[jittery]
    total.pulse[STEPS] = sum(share * belief.pulse[STEPS] for share, belief in parts)
    return log_evidence + weigh(total, plan, parts, beyond)


def weigh(total: Any, plan: Any, parts: Sequence[tuple[float, Any]], beyond: Vector) -> float:
    """Weigh members, of whom each gave so much more to all rows than to the parts; returns what the bank gave more.

    Beliefs may be of any bank, with chains, and so may its plan.

    Members who change places have no evidence of their own. So it is taken from the chain in which they never do, and
    told to all; what parts say of the rates is multiplied. Without such a chain, or where nothing is left of it, what
    parts say of all is multiplied, and no more. Of whom nothing was left in a part, nothing is.
    """
    n_rates, n_members = total.chains.shape
    never = np.flatnonzero(plan.switching == 0.0)
    own = [belief.chains[never[0]] for _, belief in parts] if never.size else []
    lost = np.any([chain <= 2.0 * FAINTEST for chain in own], axis=0)
    if not never.size or np.all(lost) or min(chain.max() for chain in own) < LEAST_KNOWN:
        total.chains[...] = believed(sum((share * np.log(belief.chains) for share, belief in parts), np.zeros(1)))
        return 0.0
    of_members, of_rates = np.where(lost, -np.inf, beyond), np.zeros(n_rates)
    for (share, belief), chain in zip(parts, own, strict=True):
        of_members += share * np.log(chain / chain.sum())
        of_rates += share * np.log(n_rates * belief.chains.sum(axis=1))
    total.chains[...] = believed(of_rates[:, None] + of_members)
    more = 1.0 - sum(share for share, _ in parts)  # how often what was believed at first would be missing
    gave = float(logsumexp(of_members)) - more * math.log(n_members)
    return gave + float(logsumexp(of_rates)) - math.log(n_rates)


def retold(belief: BankBelief, plan: BankPlan, scale: Vector, shift: Vector, bent: bool = True) -> None:
    """Tell the beliefs about the weights of inputs, with old inputs = scale * new + shift of the first; in place.

    What was learnt beyond the old prior is kept, and the prior is then that of the new inputs. Waves are of the same
    raw inputs as before. Without ``bent``, members that have waves are left as they are, for those who reset them.
    """
    first = belief.frequency @ shift
    belief.frequency[...] *= scale
    belief.frequency[:, :, 0] += first
    plan = blocks_of(plan)
    change = np.diag(scale)
    change[0] += shift
    wanted = (plan.group < 0) | bent
    plain = np.flatnonzero(wanted & (plan.size == scale.size)).tolist()
    if plain:  # together
        places = [slice_of(plan, m)[:2] for m in plain]
        mean = np.stack([belief.mean[at] for at, _ in places]) @ change.T
        covariance = change @ np.stack([belief.covariance[square].reshape(change.shape) for _, square in places])
        per_ceiling = 1.0 / np.stack([plan.ceiling[at] for at, _ in places])
        told = _with_prior(mean, covariance @ change.T, per_ceiling, np.linalg.inv(change))
        for (at, square), new_mean, new_covariance in zip(places, *told, strict=True):
            belief.mean[at], belief.covariance[square] = new_mean, symmetric(new_covariance).ravel()
    for m in np.flatnonzero(wanted & (plan.size > scale.size)).tolist():
        at, square, size = slice_of(plan, m)
        _retell_some(belief.mean[at], belief.covariance[square].reshape(size, size), plan.ceiling[at], change)


def _retell_some(mean: Vector, covariance: Matrix, ceiling: Vector, change: Matrix) -> None:
    """The same for one belief whose first weights are those of inputs; in place, without a cube of all its weights.

    The prior changes for the first alone. So what is believed of the others, given these, stays: they follow the first
    as far as they are correlated with them.
    """
    d = len(change)
    mean[:d] = change @ mean[:d]
    covariance[:d] = change @ covariance[:d]
    covariance[:, :d] = covariance[:, :d] @ change.T
    own = symmetric(covariance[:d, :d])
    told = _with_prior(mean[None, :d], own[None], 1.0 / ceiling[None, :d], np.linalg.inv(change))
    follows = np.linalg.solve(own, covariance[:d]).T
    mean += follows @ (told[0][0] - mean[:d])
    covariance[...] = symmetric(covariance + follows @ (symmetric(told[1][0]) - own) @ follows.T)


def _with_prior(mean: Matrix, covariance: Array, per_ceiling: Matrix, inverse: Array) -> tuple[Matrix, Array]:
    """The same with the new prior in place of the old, for each of some beliefs of one size."""
    diagonal = np.eye(mean.shape[1]) * per_ceiling[:, None, :]
    try:
        known = np.linalg.inv(covariance)
        precision = known - inverse.T @ diagonal @ inverse + diagonal
        np.linalg.cholesky(precision)
        fresh = np.linalg.inv(precision)
    except np.linalg.LinAlgError:
        if len(mean) == 1:  # the old prior hides what was learnt beyond the digits there are: it stays
            return mean, covariance
        parts = [
            _with_prior(mean[m : m + 1], covariance[m : m + 1], per_ceiling[m : m + 1], inverse)
            for m in range(len(mean))
        ]
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
    if len(mean) <= MOST_AT_ONCE:
        return np.einsum("mij,mjk,mk->mi", fresh, known, mean), fresh
    return (fresh @ (known @ mean[:, :, None]))[:, :, 0], fresh


def retold_noise(noise: Matrix, learnt: float, ratio: float) -> None:
    """Tell what is believed of the noise of targets that are told ``ratio`` times as large, after so many; in place."""
    prior = FIRST_NOISE[1] if learnt <= FEW else 0.0  # which is that of the new units while it counts
    noise[:, 1] = prior + np.maximum(noise[:, 1] - prior, 0.0) * ratio**2


def retold_targets(belief: BankBelief, plan: BankPlan, n_inputs: int, ratio: float, shift: float) -> None:
    """Tell beliefs of members that learn the noise of targets that are ratio * y + shift; in place.

    In units of the noise, covariances stay; but past targets are inputs that are told otherwise, too.
    """
    few = belief.pulse[LEARNT] <= FEW
    for m in range(plan.size.size):
        at, square, size = slice_of(plan, m)
        past = slice(n_inputs, n_inputs + int(plan.past[m]))
        if plan.past[m] and (few or not 0.1 < ratio < 10.0):  # past targets in units that may have been any
            belief.mean[at], belief.covariance[square] = plan.origin[at], np.diag(plan.ceiling[at]).ravel()
            continue
        belief.mean[at] *= ratio
        if plan.past[m]:
            change = np.eye(size)
            change[past, past] /= ratio
            change[0, past] = -shift / ratio
            belief.mean[at] = change @ belief.mean[at]
            covariance = change @ belief.covariance[square].reshape(size, size) @ change.T
            belief.covariance[square] = symmetric(covariance).ravel()
        belief.mean[at.start] += shift
    retold_noise(belief.noise, float(belief.pulse[LEARNT]), ratio)
    belief.past[...] = 0.0 if few else np.clip(ratio * belief.past + shift, -FARTHEST, FARTHEST)
    if belief.pulse[LEARNT] <= FIRST_UNITS:  # what members gave to targets in no units tells nothing of them
        belief.chains[...] = 1.0 / belief.chains.size
        belief.usual[...] = 1.0 / belief.usual.size
        belief.merit[...] = 0.0
