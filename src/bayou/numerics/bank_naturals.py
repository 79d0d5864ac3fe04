"""Beliefs of banks in natural parameters, where what was learnt of different rows adds up; and so does evidence.

A member whose weights do not walk believes q(w) = exp(g . t(w) - Z(g)), where t(w) are w and w w', g the natural
parameters and Z the log partition. Rows of a Gaussian likelihood multiply it by exp(r . t(w) + c): r and c are sums
over the rows, whatever was known before them. So a member that knew g0 gives to the rows

    log p(rows) = c + Z(g0 + r) - Z(g0)

and c, the ``log_scale``, is what is left of its evidence once the partitions before and after are taken away. With the
prior g0, and shards that tell (r1, c1), (r2, c2), ...,

    log p(rows of all shards) = c1 + c2 + ... + Z(g0 + r1 + r2 + ...) - Z(g0)

exactly: shards need not know of each other. Of noise that is learnt it is the same with its shape and rate among the
parameters. Of other likelihoods r and c depend on what was known before; they are then those of expectation
propagation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from bayou.contracts import Array, Matrix, Vector
from bayou.errors import ImproperBelief
from bayou.numerics.bank_belief import BankBelief, BankPlan, blocks_of, slice_of
from bayou.numerics.bank_weights import FAINTEST, FIRST_NOISE


class BankNatural(NamedTuple):
    """Of all members, one behind the other: upper halves of precisions, precision times mean, noise, and log scales.

    ``noise`` (m, 2) is shape, and rate plus half of mean . precision . mean, of those who learn it; 0 of others.
    """

    precision: Vector
    shift: Vector
    noise: Matrix
    log_scale: Vector


def prior_of(plan: BankPlan) -> BankNatural:
    """What members believe before anything is known."""
    blocks = blocks_of(plan)
    uppers, shift = [], plan.origin / plan.ceiling
    noise = np.where(plan.keeps[:, None] >= 0.0, FIRST_NOISE, 0.0)
    for m in range(blocks.size.size):
        at, _, size = slice_of(blocks, m)
        uppers.append(np.diag(1.0 / plan.ceiling[at])[np.triu_indices(size)])
        if blocks.keeps[m] >= 0.0:  # such a member has one latent, so that blocks are members
            noise[m, 1] += 0.5 * float(plan.origin[at] @ shift[at])
    return BankNatural(np.concatenate(uppers), shift, noise, np.zeros(plan.size.size))


def natural_of(belief: BankBelief, plan: BankPlan) -> BankNatural:
    """What members believe now; scales are 0."""
    blocks = blocks_of(plan)
    uppers, shift = [], np.empty_like(belief.mean)
    noise = np.where(plan.keeps[:, None] >= 0.0, belief.noise, 0.0)
    for m in range(blocks.size.size):
        at, square, size = slice_of(blocks, m)
        precision = symmetric(np.linalg.inv(belief.covariance[square].reshape(size, size)))
        uppers.append(precision[np.triu_indices(size)])
        shift[at] = precision @ belief.mean[at]
        if blocks.keeps[m] >= 0.0:
            noise[m, 1] += 0.5 * float(belief.mean[at] @ shift[at])
    return BankNatural(np.concatenate(uppers), shift, noise, np.zeros(plan.size.size))


def write(belief: BankBelief, plan: BankPlan, natural: BankNatural) -> None:
    """Let members believe this; raises, with nothing written, where that would be no belief."""
    blocks, start = blocks_of(plan), 0
    mean, covariance, noise = np.empty_like(belief.mean), np.empty_like(belief.covariance), belief.noise.copy()
    for m in range(blocks.size.size):
        at, square, size = slice_of(blocks, m)
        stop = start + size * (size + 1) // 2
        precision = np.zeros((size, size))
        precision[np.triu_indices(size)] = natural.precision[start:stop]
        precision += np.triu(precision, 1).T
        start = stop
        if not np.linalg.eigvalsh(precision).min() > 0.0:
            raise ImproperBelief(f"member {m} would have no positive precision: the part is none of the whole.")
        own = symmetric(np.linalg.inv(precision))
        covariance[square] = own.ravel()
        mean[at] = own @ natural.shift[at]
        if blocks.keeps[m] >= 0.0:
            shape, rate = natural.noise[m] - [0.0, 0.5 * float(mean[at] @ natural.shift[at])]
            if not (shape > 0.0 and rate > 0.0):
                raise ImproperBelief(
                    f"member {m} would have noise of shape {shape} and rate {rate}: the part is none of the whole."
                )
            noise[m] = shape, rate
    belief.mean[...], belief.covariance[...], belief.noise[...] = mean, covariance, noise


def log_partitions(belief: BankBelief, plan: BankPlan) -> Vector:
    """Z of each member, up to a constant that is the same before and after rows."""
    blocks = blocks_of(plan)
    each = np.empty(blocks.size.size)
    for m in range(blocks.size.size):
        at, square, size = slice_of(blocks, m)
        factor = np.linalg.cholesky(belief.covariance[square].reshape(size, size))
        each[m] = np.sum(np.log(np.diagonal(factor)))
        if blocks.keeps[m] >= 0.0:
            shape, rate = belief.noise[m]
            each[m] += float(gammaln(shape)) - shape * np.log(rate)
        else:
            whitened = np.linalg.solve(factor, belief.mean[at])
            each[m] += 0.5 * float(whitened @ whitened)
    of_members: Vector = np.add.reduceat(each, np.cumsum(plan.latents) - plan.latents)
    return of_members


def believed(log_evidence: Matrix) -> Matrix:
    """What is believed of who gave so much to all targets: none is forgotten."""
    weights: Matrix = np.maximum(np.exp(log_evidence - np.max(log_evidence)), FAINTEST)
    weights = np.maximum(weights / weights.sum(), FAINTEST)
    return weights


def symmetric(matrix: Array) -> Matrix:
    """Without what rounding has made of it."""
    half: Matrix = 0.5 * (matrix + matrix.T)
    return half
