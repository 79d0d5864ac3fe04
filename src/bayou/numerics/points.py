"""What point estimates share: a belief that is one set of weights, moved by each example through a metric.

A point says nothing of how sure it is. Its latents have no variance, its intervals no width, and its predictions are
those of the likelihood at the point. ``tally[0]`` of its belief counts the examples, by which a schedule goes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from bayou.contracts import Array, Kernel, Mask, Matrix, Posterior, Vector
from bayou.errors import ImproperBelief, InvalidSpec
from bayou.numerics.jit import rebound, vectorized_kernel
from bayou.numerics.passes import predict
from bayou.numerics.pointers import call_log_evidence, call_site
from bayou.numerics.priors import Scales, check_forgetting, check_prior
from bayou.numerics.sites import LARGEST, pieces


class PointBelief(Protocol):
    """What the belief of every point estimate has."""

    @property
    def mean(self) -> Array: ...

    @property
    def tally(self) -> Array: ...


P = TypeVar("P", bound=Any)  # a NamedTuple that is a PointBelief


@vectorized_kernel
def marginal(belief: PointBelief, x: Array) -> tuple[float, float]:
    """The latent w . x, which is known."""
    mean = 0.0
    for j in range(x.size):
        mean += np.float64(belief.mean[j]) * x[j]
    return mean, 0.0


@vectorized_kernel
def scatter(belief: PointBelief, missing: Mask) -> float:
    """Sum of w_j^2 over the missing features."""
    total = 0.0
    for j in range(missing.size):
        if missing[j]:
            total += np.float64(belief.mean[j]) * belief.mean[j]
    return total


@vectorized_kernel
def length_of(x: Array) -> float:
    """Euclidean length, in double precision."""
    total = 0.0
    for j in range(x.size):
        total += np.float64(x[j]) * x[j]
    return math.sqrt(total)


@vectorized_kernel
def largest_weight(weights: Array) -> float:
    """Beyond this a weight of the array's type would soon be infinite."""
    return 1e36 if weights.itemsize == 4 else 1e290


@vectorized_kernel
def step_along(weights: Array, step: float, direction: Array) -> None:
    """weights += step * direction."""
    for j in range(weights.size):
        weights[j] += step * direction[j]


def learn_signs(
    belief: Any,
    kernels: Any,
    params: Vector,
    features: Array,
    missing: Mask,
    targets: Vector,
    weights: Vector,
    record: Matrix,
) -> int:
    """Take a step for each row in order; the likelihood is only asked what it gave the target before."""
    for n in range(targets.size):
        x, y = features[n], targets[n]
        mean, variance = marginal(belief, x)
        if n < missing.shape[0]:
            variance += scatter(belief, missing[n])
        if not abs(mean + variance) < np.inf:
            return n
        record[n, 0], record[n, 1] = mean, variance
        record[n, 2] = call_log_evidence(kernels, kernels, y, mean, variance, params)[0]
        weight = float(weights[n]) if n < weights.size else 1.0
        count = pieces(weight)
        for _ in range(count):
            step(belief, x, y, weight / count)
    return targets.size


def learn_errors(
    belief: Any,
    kernels: Any,
    params: Vector,
    features: Array,
    missing: Mask,
    targets: Vector,
    weights: Vector,
    record: Matrix,
) -> int:
    """Take a step for each row in order, by how far its target lies from the latent.

    A latent that is blurred by missing features is met by no target: such a row is trusted as less of one.
    """
    for n in range(targets.size):
        x, y = features[n], targets[n]
        weight = float(weights[n]) if n < weights.size else 1.0
        count = pieces(weight)
        for piece in range(count):
            mean, blur = marginal(belief, x)
            if n < missing.shape[0]:
                blur += scatter(belief, missing[n])
            if not abs(mean + blur) < np.inf:
                return n
            value, _, precision = call_site(kernels, kernels, y, mean, blur, params)
            if piece == 0:
                record[n, 0], record[n, 1], record[n, 2] = mean, blur, value
            error = min(max(y - mean, -LARGEST), LARGEST)
            if not step(belief, x, error, weight / count, 1.0 / (1.0 + precision * blur)):
                return n
    return targets.size


def step(*_: Any) -> Any:
    """What the templates name is given by `pass_over_signs` and `passes_over_errors`."""
    raise NameError("a pass is compiled for a point by a function of this module, not called by itself")


def pass_over_signs(module: str, step: Kernel) -> Kernel:
    """Compile `learn_signs` for the point of that module, which gives ``step(belief, x, y, share)``."""
    return vectorized_kernel(rebound(learn_signs, module, step=step))


class ErrorPasses(NamedTuple):
    """The compiled passes of a point that learns from errors."""

    predict: Kernel
    learn: Kernel


def passes_over_errors(module: str, step: Kernel) -> ErrorPasses:
    """Compile the passes for the point of that module, which gives ``step(belief, x, error, weight, trust)``.

    It moves the point by a row that counts for so many and is trusted by so much of one; False, with the point as it
    was, if what it would become is not finite.
    """
    callees: dict[str, Kernel] = {"marginal": marginal, "scatter": scatter, "step": step}
    return ErrorPasses(
        *(vectorized_kernel(rebound(template, module, **callees)) for template in (predict, learn_errors))
    )


class PointEstimate(Posterior[P]):
    """A family of beliefs that are points."""

    is_point = True
    prior_mean: Scales
    dtype: str

    def __post_init__(self) -> None:
        check_prior(self.prior_mean, 1.0, self.dtype)

    def covariance(self, belief: P) -> Matrix:
        """Zero: a point does not vary."""
        return np.zeros((belief.mean.size, belief.mean.size))

    def variances(self, belief: P) -> Vector:
        """Zero: a point does not vary."""
        return np.zeros(belief.mean.size)

    def sample(self, belief: P, n: int, seed: int | np.random.Generator) -> Matrix:
        """The point, so many times."""
        return np.tile(belief.mean.astype(np.float64), (n, 1))

    def log_density(self, belief: P, weights: Vector) -> float:
        """Infinite at the point, minus infinity elsewhere."""
        return math.inf if np.array_equal(weights, belief.mean) else -math.inf

    def sign_probability(self, belief: P) -> Vector:
        """One: a point has no doubt about a sign."""
        return np.ones(belief.mean.size)

    def forget(self, belief: P, discount: float = 1.0, diffusion: float = 0.0) -> None:
        """Let the examples so far count for less, so that those to come move the point further."""
        check_forgetting(discount, diffusion)
        if diffusion > 0.0:
            raise InvalidSpec(f"`diffusion` must be 0 for a point, which has no variance to gain; got {diffusion!r}.")
        belief.tally[0] *= discount

    def transform(self, belief: P, scale: Vector, shift: Vector) -> None:
        """Make it the point ``scale * w``, with ``shift . w`` added to the first weight, in place."""
        moved = float(shift @ belief.mean)
        belief.mean[...] *= scale
        belief.mean[0] += moved

    def retell(self, belief: P, scale: Vector, shift: Vector) -> None:
        """Tell the point in new coordinates: there is no prior in it that would have to change."""
        self.transform(belief, scale, shift)

    def merge(self, shards: Sequence[P]) -> P:
        """The average of the points, each weighed by the examples that it has seen."""
        return self._average([(1.0, shard) for shard in shards])

    def subtract(self, belief: P, part: P) -> P:
        """The point whose average with the part is this one."""
        return self._average([(1.0, belief), (-1.0, part)])

    def _average(self, parts: Sequence[tuple[float, P]]) -> P:
        merged = self.prior(parts[0][1].mean.size)
        total = sum(share * float(part.tally[0]) for share, part in parts)
        if total < 0.0:
            raise ImproperBelief(
                f"a point must have seen no fewer examples than are taken out; {total:g} would be left. "
                "Was something taken out that was never learnt?"
            )
        if total > 0.0:
            merged.mean[...] = sum(share * float(part.tally[0]) * part.mean for share, part in parts) / total
            merged.tally[0] = total
        return merged
