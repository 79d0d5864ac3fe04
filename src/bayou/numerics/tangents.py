"""The loop over examples for latents that are not linear in the weights: tangent, marginal, site, absorb.

At the mean of the weights the function is replaced by its tangent, whose features are its gradient. A posterior gives
two kernels and gets its passes, compiled for it:

    look(belief, x, seen) -> variance                    of the latent w . x; leaves in ``seen`` what absorb can use
    absorb(belief, x, seen, slope, precision, variance)  move the belief by a site, with what was seen

Where ``noise`` is not empty (`bayou.numerics.running_noise`), the noise of a Gaussian likelihood is learnt, and kept as
the first of its params.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bayou.contracts import Array, Kernel, Mask, Matrix, Vector
from bayou.numerics.jit import Pointer, addresses, rebound, vectorized_kernel
from bayou.numerics.pointers import call_vector_site
from bayou.numerics.running_noise import count_error, noise_variance, predictive_noise, restraint, tail_degrees
from bayou.numerics.sites import bounded, observe, pieces
from bayou.numerics.student_t import student_t_log_density

LINEARIZE = Pointer(0, ("vector",) * 6, returns=1)
call_linearize = LINEARIZE.caller


def function_kernels(linearize: Kernel) -> Any:
    """Address of a function, for the passes."""
    return addresses([(LINEARIZE, linearize)])


class Tangents(NamedTuple):
    """The compiled passes of one posterior: over rows of a compiled function, and over rows linearised already."""

    predict: Kernel
    learn: Kernel
    learn_vector: Kernel
    spread: Kernel
    learn_line: Kernel
    learn_lines: Kernel


def tangents(module: str, look: Kernel, absorb: Kernel) -> Tangents:
    """Compile the passes for the posterior of that module."""
    callees: dict[str, Kernel] = {"look": look, "absorb": absorb}
    for template in (learn_line, learn_lines):
        callees[template.__name__] = vectorized_kernel(rebound(template, module, **callees))
    predicts, learns, learns_vectors, spreads = (
        vectorized_kernel(rebound(template, module, **callees)) for template in (predict, learn, learn_vector, spread)
    )
    return Tangents(predicts, learns, learns_vectors, spreads, callees["learn_line"], callees["learn_lines"])


@vectorized_kernel
def blur_of(inputs: Vector, missing: Mask) -> float:
    """Variance of a latent by missing features of unit variance, along its tangent."""
    total = 0.0
    for j in range(missing.size):
        if missing[j]:
            total += inputs[j] * inputs[j]
    return total


def predict(
    belief: Any, function: Any, layout: Vector, features: Array, missing: Mask, noise: Vector, record: Matrix
) -> None:
    """Record mean and variance of each latent of each row (latent, row); where the noise is learnt, that too."""
    k, d, size = record.shape[0], features.shape[1], belief.mean.size
    values, jacobian, inputs, seen = np.empty(k), np.empty(k * size), np.empty(k * d), np.empty(size)
    degrees = tail_degrees(noise) if noise.size else 0.0
    for n in range(features.shape[0]):
        blurred = n < missing.shape[0]
        call_linearize(function, layout, belief.mean, features[n], values, jacobian, inputs if blurred else inputs[:0])
        for c in range(k):
            variance = look(belief, jacobian[c * size : (c + 1) * size], seen)
            if blurred:
                variance += blur_of(inputs[c * d : (c + 1) * d], missing[n])
            record[c, n, 0], record[c, n, 1] = values[c], variance
            if noise.size:
                record[c, n, 1] = variance / noise_variance(noise)
                record[c, n, 2], record[c, n, 3] = predictive_noise(noise, degrees), degrees


def learn(
    belief: Any,
    kernels: Any,
    params: Vector,
    function: Any,
    layout: Vector,
    features: Array,
    missing: Mask,
    targets: Vector,
    weights: Vector,
    noise: Vector,
    record: Matrix,
) -> int:
    """Absorb the rows in order; record what was said before each, and log E p. Returns how many were absorbed."""
    d, size = features.shape[1], belief.mean.size
    values, jacobian, inputs, seen = np.empty(1), np.empty(size), np.empty(d), np.empty(size)
    for n in range(targets.size):
        weight = float(weights[n]) if n < weights.size else 1.0
        count = pieces(weight)
        blurred = n < missing.shape[0]
        for piece in range(count):
            call_linearize(
                function, layout, belief.mean, features[n], values, jacobian, inputs if blurred else inputs[:0]
            )
            blur = blur_of(inputs, missing[n]) if blurred else 0.0
            target, share = targets[n], weight / count
            entry = record[0, n] if piece == 0 else record[0, n, :0]
            if not learn_line(belief, kernels, params, values[0], jacobian, seen, blur, target, share, noise, entry):
                return n
    return targets.size


def learn_line(
    belief: Any,
    kernels: Any,
    params: Vector,
    mean: float,
    gradient: Vector,
    seen: Array,
    blur: float,
    target: float,
    weight: float,
    noise: Vector,
    entry: Vector,
) -> bool:
    """Absorb one example of a latent with this value and gradient; False, untouched, if it is not finite."""
    variance = look(belief, gradient, seen)
    if not abs(mean + variance + blur) < np.inf:
        return False
    scale = noise_variance(noise) if noise.size else 1.0
    value, slope, precision = observe(kernels, params, target, mean, variance, blur, weight)
    if entry.size:
        entry[0], entry[1], entry[entry.size - 1] = mean, (variance + blur) / scale, value
    if noise.size:
        spread = params[0] + variance + blur
        if entry.size:
            degrees = tail_degrees(noise)
            entry[2], entry[3] = predictive_noise(noise, degrees), degrees
            width = np.sqrt(spread / scale * entry[2])
            entry[4] = student_t_log_density((target - mean) / width, degrees) - np.log(width)
        slope *= restraint(target - mean, spread)
        count_error(noise, target - mean, spread, weight)
        params[0] *= noise_variance(noise) / scale
    absorb(belief, gradient, seen, slope, precision, variance)
    return True


def learn_vector(
    belief: Any,
    kernels: Any,
    params: Vector,
    function: Any,
    layout: Vector,
    features: Array,
    missing: Mask,
    targets: Vector,
    weights: Vector,
    noise: Vector,
    record: Matrix,
) -> int:
    """The same for several latents, which share their weights."""
    k, d, size = record.shape[0], features.shape[1], belief.mean.size
    values, jacobian, inputs, blur = np.empty(k), np.empty(k * size), np.empty(k * d), np.zeros(k)
    for n in range(targets.size):
        weight = float(weights[n]) if n < weights.size else 1.0
        count = pieces(weight)
        blurred = n < missing.shape[0]
        for piece in range(count):
            call_linearize(
                function, layout, belief.mean, features[n], values, jacobian, inputs if blurred else inputs[:0]
            )
            for c in range(k):
                blur[c] = blur_of(inputs[c * d : (c + 1) * d], missing[n]) if blurred else 0.0
            share = weight / count
            entry = record[:, n] if piece == 0 else record[:0, n]
            if not learn_lines(belief, kernels, params, values, jacobian, blur, targets[n], share, entry):
                return n
    return targets.size


def learn_lines(
    belief: Any,
    kernels: Any,
    params: Vector,
    values: Vector,
    jacobian: Vector,
    blur: Vector,
    target: float,
    weight: float,
    entry: Matrix,
) -> bool:
    """Absorb one example of several latents, of which the target is the number of one: a choice among them.

    The slopes are the rule's, 1 - p for the one chosen and -p for others: p at the means, or its expectation. The
    precision is that of such a choice, diag(p) - p p', not only its diagonal, since the latents share weights. It is a
    sum of squares: of each latent against those after it.
    """
    k, size = values.size, belief.mean.size
    total, slope, precision, seen = np.empty(k), np.empty(k), np.empty(k), np.empty(size)
    for c in range(k):
        total[c] = look(belief, jacobian[c * size : (c + 1) * size], seen) + blur[c]
    if not abs(values.sum() + total.sum()) < np.inf:
        return False
    value = call_vector_site(kernels, kernels, target, values, total, params, slope, precision)
    for c in range(entry.shape[0]):
        entry[c, 0], entry[c, 1], entry[c, 2] = values[c], total[c], value
    chosen = int(target)
    left = 0.0
    for c in range(k):
        precision[c] = min(max((1.0 if c == chosen else 0.0) - slope[c], 1e-12), 1.0)  # the probabilities
        left += precision[c]
    for c in range(k):
        precision[c] /= left
        slope[c] = (1.0 if c == chosen else 0.0) - precision[c]
    before, direction = belief.mean.copy(), np.empty(size)
    tail = 1.0
    for c in range(k - 1):
        rest = max(tail - precision[c], 1e-300)
        direction[:] = jacobian[c * size : (c + 1) * size]
        for j in range(c + 1, k):
            part = precision[j] / rest
            row = jacobian[j * size : (j + 1) * size]
            for i in range(size):
                direction[i] -= part * row[i]
            slope[j] += part * slope[c]
        moved = 0.0
        for i in range(size):
            moved += direction[i] * (belief.mean[i] - before[i])
        variance = look(belief, direction, seen)
        share = weight / (1.0 + precision[c] * rest / tail * blur[c])
        strength = share * precision[c] * rest / tail
        slope_c, strength_c = bounded(share * slope[c] - strength * moved, strength, variance)
        absorb(belief, direction, seen, slope_c, strength_c, variance)
        tail = rest
    return True


def spread(belief: Any, jacobian: Array, variances: Matrix) -> None:
    """Variance of each latent of each row (row, latent) along its gradient (row, latent, weight)."""
    seen = np.empty(belief.mean.size)
    for n in range(jacobian.shape[0]):
        for c in range(jacobian.shape[1]):
            variances[n, c] = look(belief, jacobian[n, c], seen)


def _unbound(*_: Any) -> Any:
    """What the templates name is given by `tangents`."""
    raise NameError("a pass is compiled for a posterior by `tangents`, not called by itself")


look = absorb = _unbound
