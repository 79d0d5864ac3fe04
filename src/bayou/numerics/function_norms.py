"""The kernels of `bayou.posteriors.FunctionNorm`: q(w) = N(mean, A^-1 / stiffness), moved by one example at a time.

A is the identity, of orthonormal functions, or known by the band of its Cholesky factor (`bayou.numerics.bands`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bayou.contracts import Array, Mask, Matrix, Vector
from bayou.numerics.bands import solve
from bayou.numerics.jit import vectorized_kernel
from bayou.numerics.pointers import call_site
from bayou.numerics.running_noise import kept_share
from bayou.numerics.sites import observe, pieces
from bayou.numerics.stiffness import stiffen
from bayou.numerics.student_t import log_student


class FunctionBelief(NamedTuple):
    """The mean; how rough each function is; the band of the Cholesky factor of A, empty if A is the identity, and the
    diagonal of A^-1; the stiffness (`bayou.numerics.stiffness`); shape and rate of the noise by the latest quarter of
    the examples, and how many there were, empty if the noise is given.
    """

    mean: Array
    roughness: Vector
    factor: Matrix
    spread: Vector
    stiffness: Vector
    noise: Vector


@vectorized_kernel
def stiffness_of(belief: FunctionBelief, j: int) -> float:
    """The precision of the weight of one orthonormal function."""
    numbers = belief.stiffness
    return float(numbers[0] * (1.0 + numbers[1] * belief.roughness[j]) + numbers[2])


@vectorized_kernel
def look(belief: FunctionBelief, x: Array, seen: Vector) -> tuple[float, float]:
    """Mean and variance of w . x; leaves C x."""
    mean, variance = 0.0, 0.0
    if belief.factor.shape[0] == 0:
        for j in range(x.size):
            seen[j] = x[j] / stiffness_of(belief, j)
            mean += np.float64(belief.mean[j]) * x[j]
            variance += seen[j] * x[j]
        return mean, variance
    solve(belief.factor, x, seen)
    scale = 1.0 / stiffness_of(belief, 0)
    for j in range(x.size):
        seen[j] *= scale
        mean += np.float64(belief.mean[j]) * x[j]
        variance += seen[j] * x[j]
    return mean, variance


@vectorized_kernel
def move(belief: FunctionBelief, seen: Vector, slope: float, precision: float, variance: float, share: float) -> None:
    """Move the mean by a site, along what `look` has left, and stiffen."""
    gain = 1.0 / (1.0 + precision * variance)
    step = gain * slope
    loss, width = 0.0, 0.0
    if belief.factor.shape[0] == 0:
        for j in range(seen.size):
            inverse = 1.0 / stiffness_of(belief, j)
            belief.mean[j] += step * seen[j]
            loss += seen[j] * seen[j]
            width += inverse * inverse
    else:  # traces are those of A C, which does not depend on how the functions are told
        inverse = 1.0 / stiffness_of(belief, 0)
        for j in range(seen.size):
            belief.mean[j] += step * seen[j]
        loss, width = variance * inverse, seen.size * inverse * inverse
    stiffen(belief.stiffness, share, precision, gain * precision * loss, width)


@vectorized_kernel
def count_noise(noise: Vector, slope: float, precision: float, variance: float, share: float) -> None:
    """Let in the error, slope / precision, of a prediction that was made with this variance, in units of the noise.

    What is known of a function alike everywhere is known less well than that says in some places, and better in others:
    errors of the past are let go, and what the noise has of them goes with them.
    """
    if precision > 0.0:
        noise[2] += share
        kept = kept_share(noise[2], share)
        noise[0] = kept * noise[0] + 0.5 * share
        noise[1] = kept * noise[1] + 0.5 * slope * slope / (precision * (1.0 + precision * variance))


@vectorized_kernel
def marginal(belief: FunctionBelief, x: Array) -> tuple[float, float]:
    """Mean and variance of w . x."""
    return look(belief, x, np.empty(x.size))


@vectorized_kernel
def scatter(belief: FunctionBelief, missing: Mask) -> float:
    """Sum of E w_j^2 over the missing features, in units of the noise."""
    unit = belief.noise[0] / belief.noise[1] if belief.noise.size else 1.0
    total = 0.0
    for j in range(missing.size):
        if missing[j]:
            total += unit * belief.mean[j] * belief.mean[j] + belief.spread[j] / stiffness_of(belief, j)
    return total


@vectorized_kernel
def absorb(belief: FunctionBelief, x: Array, slope: float, precision: float, variance: float) -> None:
    """Move the belief by one site."""
    seen = np.empty(x.size)
    variance = look(belief, x, seen)[1]
    move(belief, seen, slope, precision, variance, 1.0)


@vectorized_kernel
def latent_belief(belief: FunctionBelief, c: int) -> FunctionBelief:
    """The belief about the weights of one latent."""
    mean, roughness, factor, spread, stiffness, noise = belief
    return FunctionBelief(mean[c], roughness[c], factor[c], spread[c], stiffness[c], noise[c])


@vectorized_kernel
def predict(belief: FunctionBelief, features: Array, missing: Mask, record: Matrix) -> None:
    """Record mean and variance of the latent of each row, then scale and degrees of freedom of the noise, if learnt."""
    seen = np.empty(belief.mean.size)
    for n in range(features.shape[0]):
        record[n, 0], record[n, 1] = look(belief, features[n], seen)
        if n < missing.shape[0]:
            record[n, 1] += scatter(belief, missing[n])
        if belief.noise.size:
            record[n, 2], record[n, 3] = belief.noise[1] / belief.noise[0], 2.0 * belief.noise[0]


@vectorized_kernel
def learn_seen(
    belief: FunctionBelief,
    kernels: Any,
    params: Vector,
    seen: Vector,
    mean: float,
    variance: float,
    blur: float,
    target: float,
    share: float,
    entry: Vector,
) -> None:
    """Absorb one example, or a share of it, of which `look` has left ``seen``; what was said before goes to the entry,
    unless that is empty.
    """
    noise = belief.noise
    if noise.size == 0:
        value, slope, precision = observe(kernels, params, target, mean, variance, blur, share)
        if entry.size:
            entry[0], entry[1], entry[2] = mean, variance + blur, value
        move(belief, seen, slope, precision, variance, share)
        return
    # A Gaussian site, in units of the noise: it holds the error, slope / precision.
    _, slope, precision = call_site(kernels, kernels, target, mean, variance + blur, params)
    if entry.size:
        unit = noise[1] / noise[0]
        entry[0], entry[1], entry[2], entry[3] = mean, variance + blur, unit, 2.0 * noise[0]
        entry[4] = log_student(slope / precision, unit * (1.0 / precision + variance + blur), noise[0])
    part = share / (1.0 + precision * blur)
    move(belief, seen, slope * part, precision * part, variance, share)
    count_noise(noise, slope * part, precision * part, variance, share)


@vectorized_kernel
def learn(
    belief: FunctionBelief,
    kernels: Any,
    params: Vector,
    features: Array,
    missing: Mask,
    targets: Vector,
    weights: Vector,
    record: Matrix,
) -> int:
    """Absorb the rows in order; record what `predict` would have said before each, and log E p."""
    seen = np.empty(belief.mean.size)
    for n in range(targets.size):
        weight = float(weights[n]) if n < weights.size else 1.0
        count = pieces(weight)
        for piece in range(count):
            mean, variance = look(belief, features[n], seen)
            blur = scatter(belief, missing[n]) if n < missing.shape[0] else 0.0
            if not abs(mean + variance + blur) < np.inf:
                return n
            entry = record[n] if piece == 0 else record[n, :0]
            learn_seen(belief, kernels, params, seen, mean, variance, blur, targets[n], weight / count, entry)
    return targets.size
