"""The loop over examples, written once: marginal, site, absorb.

A posterior gives three kernels and gets its passes, compiled for it:

    marginal(belief, x) -> mean, variance            of the latent w . x
    scatter(belief, missing) -> variance             that missing features of unit variance add to it: sum of E w_j^2
    absorb(belief, x, slope, precision, variance)    move the belief by a site; variance is the marginal's
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bayou.contracts import Array, Kernel, Mask, Matrix, Vector
from bayou.numerics.jit import callee, rebound, vectorized_kernel
from bayou.numerics.pointers import call_vector_site
from bayou.numerics.sites import bounded, observe, pieces

REFUSED, LEARNT, NOT_VALUED = 0, 1, 2


class Passes(NamedTuple):
    """The compiled passes of one posterior."""

    predict: Kernel
    learn: Kernel
    learn_vector: Kernel


def passes(module: str, marginal: Kernel, scatter: Kernel, absorb: Kernel, latent_belief: Kernel) -> Passes:
    """Compile the passes for the posterior of that module.

    ``latent_belief(belief, c)`` is the belief about the weights of latent c in a belief that is stacked over latents.
    """
    callees = {"marginal": marginal, "scatter": scatter, "absorb": absorb, "latent_belief": latent_belief}
    return Passes(
        *(vectorized_kernel(rebound(template, module, **callees)) for template in (predict, learn, learn_vector))
    )


def predict(belief: Any, features: Array, missing: Mask, record: Matrix) -> None:
    """Record mean and variance of the latent of each row."""
    for n in range(features.shape[0]):
        record[n, 0], record[n, 1] = marginal(belief, features[n])
        if n < missing.shape[0]:
            record[n, 1] += scatter(belief, missing[n])


def learn(
    belief: Any,
    kernels: Any,
    params: Vector,
    features: Array,
    missing: Mask,
    targets: Vector,
    weights: Vector,
    record: Matrix,
) -> int:
    """Absorb the rows in order; record mean and variance before each target was used, and log E p."""
    for n in range(targets.size):
        x = features[n]
        weight = float(weights[n]) if n < weights.size else 1.0
        count = pieces(weight)
        for piece in range(count):
            mean, variance = marginal(belief, x)
            blur = scatter(belief, missing[n]) if n < missing.shape[0] else 0.0
            if not abs(mean + variance + blur) < np.inf:  # isfinite does not survive the reordering of sums
                return n
            value, slope, precision = observe(kernels, params, targets[n], mean, variance, blur, weight / count)
            if piece == 0:
                record[n, 0], record[n, 1], record[n, 2] = mean, variance + blur, value
            absorb(belief, x, slope, precision, variance)
    return targets.size


def learn_single(
    belief: Any,
    kernels: Any,
    params: Vector,
    features: Array,
    missing: Mask,
    targets: Vector,
    weights: Vector,
    record: Array,
    tally: Vector,
) -> int:
    """`callee`, a pass that learns, for one example, with how many and log E p added to the tally.

    Returns `REFUSED`, `LEARNT`, or `NOT_VALUED` if it was learnt by a rule that does not compute log E p.
    """
    if callee(belief, kernels, params, features, missing, targets, weights, record) == 0:
        return REFUSED
    tally[0] += 1.0
    value = record.flat[record.size - 1]
    if value != value:
        return NOT_VALUED
    tally[1] += value
    return LEARNT


def learn_vector(
    belief: Any,
    kernels: Any,
    params: Vector,
    features: Array,
    missing: Mask,
    targets: Vector,
    weights: Vector,
    record: Array,
) -> int:
    """The same for several latents, each with a belief of its own."""
    k = record.shape[0]
    mean, variance, blur, total = np.empty(k), np.empty(k), np.zeros(k), np.empty(k)
    slope, precision = np.empty(k), np.empty(k)
    for n in range(targets.size):
        x = features[n]
        weight = float(weights[n]) if n < weights.size else 1.0
        count = pieces(weight)
        for piece in range(count):
            for c in range(k):
                mean[c], variance[c] = marginal(latent_belief(belief, c), x)
                if n < missing.shape[0]:
                    blur[c] = scatter(latent_belief(belief, c), missing[n])
                total[c] = variance[c] + blur[c]
            if not abs(mean.sum() + total.sum()) < np.inf:
                return n
            value = call_vector_site(kernels, kernels, targets[n], mean, total, params, slope, precision)
            for c in range(k):
                if piece == 0:
                    record[c, n, 0], record[c, n, 1], record[c, n, 2] = mean[c], total[c], value
                share = weight / count / (1.0 + precision[c] * blur[c])
                slope_c, precision_c = bounded(slope[c] * share, precision[c] * share, variance[c])
                absorb(latent_belief(belief, c), x, slope_c, precision_c, variance[c])
    return targets.size


def _unbound(*_: Any) -> Any:
    """What the templates name is given by `passes`."""
    raise NameError("a pass is compiled for a posterior by `passes`, not called by itself")


marginal = scatter = absorb = latent_belief = _unbound
