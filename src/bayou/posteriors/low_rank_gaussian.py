"""q(w) = N(mean, S (I - Q' (I - K) Q) S): deviations S, and a full covariance K in the span of a few rows Q.

Outside the span the weights keep their own deviations. An example adds its direction to the span, where the update is
that of a full belief (`bayou.numerics.factor`); when ``2 * rank`` directions are full, the ``rank`` best known are kept
and what was known of the others goes into the diagonal of the precision. O(d * rank) per example.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bayou.contracts import Array, Mask, Matrix, Posterior, Vector
from bayou.errors import ImproperBelief, InvalidSpec
from bayou.numerics import factor as factors
from bayou.numerics.few_rows import COLUMNS, add_rows, orthonormalize, remove_rows
from bayou.numerics.jit import vectorized_kernel
from bayou.numerics.passes import passes
from bayou.numerics.priors import Scales, check_forgetting, check_prior, per_weight
from bayou.numerics.sites import observe, pieces
from bayou.numerics.tangents import tangents

# A residual this much shorter than its vector is rounding: the direction is in the subspace already.
INSIDE = 1e-10


class LowRankBelief(NamedTuple):
    """Mean; S; orthonormal rows Q; factors of K; and how many rows of Q are in use."""

    mean: Array
    deviation: Array
    basis: Array
    factor: Array
    scale: Array
    used: Array


@vectorized_kernel
def split(belief: LowRankBelief, x: Array, inside: Array, outside: Array) -> float:
    """S x = Q' inside + outside; returns the squared length of outside."""
    before = 0.0
    for j in range(x.size):
        outside[j] = belief.deviation[j] * x[j]
        before += np.float64(outside[j]) * outside[j]
    after = remove_rows(belief.basis, int(belief.used[0]), outside, inside)
    return after if after > INSIDE**2 * before else 0.0


@vectorized_kernel
def variance_inside(belief: LowRankBelief, inside: Array, projection: Array) -> float:
    """inside' K inside; leaves the projection that `downdate` needs."""
    total = 0.0
    for m in range(int(belief.used[0])):
        row = belief.factor[m]
        along = inside[m]
        for i in range(m):
            along += row[i] * inside[i]
        projection[m] = along
        total += np.float64(belief.scale[m]) * along * along
    return total


@vectorized_kernel
def see(belief: LowRankBelief, x: Array, inside: Array, outside: Array) -> tuple[float, float, float]:
    """Mean and variance of w . x, and the squared length of its part outside; leaves both parts."""
    projection = np.empty_like(belief.scale)
    mean = 0.0
    for j in range(x.size):
        mean += np.float64(belief.mean[j]) * x[j]
    square = split(belief, x, inside, outside)
    return mean, square + variance_inside(belief, inside, projection), square


@vectorized_kernel
def marginal(belief: LowRankBelief, x: Array) -> tuple[float, float]:
    """Mean and variance of w . x."""
    mean, variance, _ = see(belief, x, np.empty_like(belief.scale), np.empty_like(belief.mean))
    return mean, variance


@vectorized_kernel
def scatter(belief: LowRankBelief, missing: Mask) -> float:
    """Sum of E w_j^2 over the missing features."""
    used = int(belief.used[0])
    total = 0.0
    inside, projection = np.empty_like(belief.scale), np.empty_like(belief.scale)
    for j in range(missing.size):
        if missing[j]:
            outside = 1.0
            for m in range(used):
                inside[m] = belief.basis[m, j]
                outside -= np.float64(inside[m]) * inside[m]
            variance = max(outside, 0.0) + variance_inside(belief, inside, projection)
            total += np.float64(belief.mean[j]) * belief.mean[j] + belief.deviation[j] ** 2 * variance
    return total


@vectorized_kernel
def absorb(belief: LowRankBelief, x: Array, slope: float, precision: float, variance: float) -> None:
    """Move the belief by one site."""
    inside, outside = np.empty_like(belief.scale), np.empty_like(belief.mean)
    absorb_split(belief, inside, outside, split(belief, x, inside, outside), slope, precision)


@vectorized_kernel
def absorb_split(
    belief: LowRankBelief, inside: Array, outside: Array, square: float, slope: float, precision: float
) -> None:
    """Move the belief by the site of an example that has been split; what is outside becomes a row of the basis."""
    capacity, d = belief.scale.size, belief.mean.size
    projection, direction = np.zeros_like(belief.scale), np.empty_like(belief.scale)
    used, length = int(belief.used[0]), np.sqrt(square)
    if length > 0.0:
        inside[used] = length
        belief.scale[used] = 1.0
        for i in range(capacity):
            belief.factor[used, i] = 1.0 if i == used else 0.0
        for j in range(d):
            belief.basis[used, j] = outside[j] / length
        used += 1
        belief.used[0] = used
    variance_inside(belief, inside, projection)
    here = projection[:used]
    gain = factors.downdate(belief.factor, belief.scale, here, precision, direction, here, here, 0)
    for m in range(used):
        direction[m] *= slope * gain
    for first in range(0, d, COLUMNS):
        part = outside[first : first + COLUMNS]
        for j in range(part.size):
            part[j] = 0.0
        add_rows(belief.basis, used, first, direction, part)
    for j in range(d):
        belief.mean[j] += belief.deviation[j] * outside[j]
    if used == capacity:
        compress(belief, capacity // 2)


@vectorized_kernel
def compress(belief: LowRankBelief, keep: int) -> None:
    """Keep the directions known best; what is known of the others goes into the diagonal of the precision."""
    used, d = int(belief.used[0]), belief.mean.size
    inner = np.zeros((used, used))
    for m in range(used):
        for i in range(m + 1):
            for k in range(m + 1):
                inner[i, k] += np.float64(belief.scale[m]) * belief.factor[m, i] * belief.factor[m, k]
    variances, rotation = np.linalg.eigh(inner)
    directions = np.zeros((used, d))
    shares = np.ascontiguousarray(rotation.T)
    for first in range(0, d, COLUMNS):
        for i in range(used):
            add_rows(belief.basis, used, first, shares[i], directions[i, first : first + COLUMNS])
    rewrite(belief, directions, 1.0 / variances - 1.0, min(keep, used))


@vectorized_kernel
def rewrite(belief: LowRankBelief, directions: Matrix, strengths: Vector, keep: int) -> None:
    """The belief of precision S^-1 (I + sum strength q q') S^-1, strongest first; those not kept go to the diagonal."""
    d = belief.mean.size
    growth = np.ones(d)
    for m in range(keep, strengths.size):
        for j in range(d):
            growth[j] += max(strengths[m], 0.0) * directions[m, j] ** 2
    rows = np.empty((keep, d))
    for j in range(d):
        root = np.sqrt(growth[j])
        belief.deviation[j] /= root
        for i in range(keep):
            rows[i, j] = directions[i, j] / root
    corner = np.zeros((keep, keep))
    orthonormalize(rows, corner)
    inner = np.zeros((keep, keep))
    for i in range(keep):
        inner[i, i] += 1.0
        for a in range(i + 1):
            for b in range(i + 1):
                inner[a, b] += corner[i, a] * strengths[i] * corner[i, b]
    factors.factor_inverse(inner, belief.factor, belief.scale)
    for i in range(keep):  # written out: numba takes seconds to compile the assignment of a slice
        for j in range(d):
            belief.basis[i, j] = rows[i, j]
    belief.used[0] = keep


@vectorized_kernel
def latent_belief(belief: LowRankBelief, c: int) -> LowRankBelief:
    """The belief about the weights of one latent."""
    return LowRankBelief(
        belief.mean[c], belief.deviation[c], belief.basis[c], belief.factor[c], belief.scale[c], belief.used[c]
    )


_passes = passes(__name__, marginal, scatter, absorb, latent_belief)


@vectorized_kernel
def learn(
    belief: LowRankBelief,
    kernels: Any,
    params: Vector,
    features: Array,
    missing: Mask,
    targets: Vector,
    weights: Vector,
    record: Matrix,
) -> int:
    """The pass of `bayou.numerics.passes`, with each row split once."""
    inside, outside = np.empty_like(belief.scale), np.empty_like(belief.mean)
    for n in range(targets.size):
        weight = float(weights[n]) if n < weights.size else 1.0
        count = pieces(weight)
        for piece in range(count):
            mean, variance, square = see(belief, features[n], inside, outside)
            blur = scatter(belief, missing[n]) if n < missing.shape[0] else 0.0
            if not abs(mean + variance + blur) < np.inf:
                return n
            value, slope, precision = observe(kernels, params, targets[n], mean, variance, blur, weight / count)
            if piece == 0:
                record[n, 0], record[n, 1], record[n, 2] = mean, variance + blur, value
            absorb_split(belief, inside, outside, square, slope, precision)
    return targets.size


@vectorized_kernel
def look(belief: LowRankBelief, x: Array, seen: Array) -> float:
    """Variance of w . x."""
    return marginal(belief, x)[1]


@vectorized_kernel
def absorb_seen(belief: LowRankBelief, x: Array, seen: Array, slope: float, precision: float, variance: float) -> None:
    """Move the belief by one site."""
    absorb(belief, x, slope, precision, variance)


_tangents = tangents(__name__, look, absorb_seen)


@dataclass(frozen=True)
class LowRankGaussian(Posterior[LowRankBelief]):
    """Gaussian weights whose strongest ``rank`` to ``2 * rank`` correlations are kept: the full belief, if d <= rank.

    >>> from bayou import LowRankGaussian
    >>> LowRankGaussian(rank=10).prior(10_000).basis.shape
    (20, 10000)
    """

    rank: int = 10
    prior_variance: Scales = 1.0
    prior_mean: Scales = 0.0
    dtype: str = "float64"

    predict = staticmethod(_passes.predict)
    learn = staticmethod(learn)
    learn_vector = staticmethod(_passes.learn_vector)
    tangents = _tangents

    def __post_init__(self) -> None:
        check_prior(self.prior_mean, self.prior_variance, self.dtype)
        if not (isinstance(self.rank, int) and self.rank >= 1):
            raise InvalidSpec(f"`rank` must be a whole number, at least 1; got {self.rank!r}.")

    def prior(self, n_features: int) -> LowRankBelief:
        """The belief before any example."""
        capacity = min(2 * self.rank, n_features + 1)
        variance = per_weight("prior_variance", self.prior_variance, n_features)
        return LowRankBelief(
            per_weight("prior_mean", self.prior_mean, n_features).astype(self.dtype),
            np.sqrt(variance).astype(self.dtype),
            np.zeros((capacity, n_features), dtype=self.dtype),
            np.eye(capacity, dtype=self.dtype),
            np.ones(capacity, dtype=self.dtype),
            np.zeros(1, dtype=self.dtype),
        )

    def check(self, belief: LowRankBelief) -> None:
        """Raise unless the belief is one that kernels may trust."""
        used, most = float(belief.used[0]), belief.scale.size - 1
        if not (0.0 <= used <= most and used.is_integer()):
            raise ImproperBelief(f"`used` must be a whole number from 0 to {most}; got {used}.")

    def absorb(self, belief: LowRankBelief, features: Vector, slope: float, precision: float) -> None:
        """Move the belief by one site, in place."""
        absorb(belief, np.ascontiguousarray(features, dtype=self.dtype), slope, precision, np.nan)

    def covariance(self, belief: LowRankBelief) -> Matrix:
        """Covariance of the weights, written out."""
        basis, inner = _subspace(belief)
        outside = np.eye(belief.mean.size) - basis.T @ basis
        deviation = belief.deviation.astype(np.float64)
        return deviation[:, None] * (outside + basis.T @ inner @ basis) * deviation

    def variances(self, belief: LowRankBelief) -> Vector:
        """Variance of each weight."""
        basis, inner = _subspace(belief)
        outside = np.maximum(1.0 - np.sum(basis**2, axis=0), 0.0)
        inside = np.einsum("mj,mi,ij->j", basis, inner, basis)
        result: Vector = belief.deviation.astype(np.float64) ** 2 * (outside + inside)
        return result

    def sample(self, belief: LowRankBelief, n: int, seed: int | np.random.Generator) -> Matrix:
        """So many draws of the weights, one per row."""
        generator = np.random.default_rng(seed)
        basis, inner = _subspace(belief)
        normal = generator.standard_normal((n, belief.mean.size))
        along = normal @ basis.T
        whitened = normal + (along @ np.linalg.cholesky(inner).T - along) @ basis
        draws: Matrix = belief.mean + whitened * belief.deviation
        return draws

    def log_density(self, belief: LowRankBelief, weights: Vector) -> float:
        """Log density of the belief at some weights."""
        basis, inner = _subspace(belief)
        z = (weights - belief.mean) / belief.deviation
        along = basis @ z
        squares = z @ z - along @ along + along @ np.linalg.solve(inner, along)
        logs = np.sum(np.log(2.0 * np.pi * belief.deviation.astype(np.float64) ** 2)) + np.linalg.slogdet(inner)[1]
        return float(-0.5 * (squares + logs))

    def forget(self, belief: LowRankBelief, discount: float = 1.0, diffusion: float = 0.0) -> None:
        """Let go of the past, in place; see `Posterior.forget`."""
        check_forgetting(discount, diffusion)
        if discount < 1.0:
            for array, value in zip(belief, self._combine([(discount, belief)], belief.mean.size), strict=True):
                array[...] = value
        if diffusion > 0.0:
            self._diffuse(belief, diffusion)

    def transform(self, belief: LowRankBelief, scale: Vector, shift: Vector) -> None:
        """Make it the belief about ``scale * w``, with ``shift . w`` added to the first weight, in place."""
        moved = float(shift @ belief.mean)
        belief.mean[...] *= scale
        belief.mean[0] += moved
        belief.deviation[...] *= scale

    def merge(self, shards: Sequence[LowRankBelief]) -> LowRankBelief:
        """The prior, times what each shard learnt beyond it, kept to the strongest directions."""
        return self._combine([(1.0, shard) for shard in shards], shards[0].mean.size)

    def subtract(self, belief: LowRankBelief, part: LowRankBelief) -> LowRankBelief:
        """The belief without what the part learnt beyond the prior, kept to the strongest directions."""
        return self._combine([(1.0, belief), (-1.0, part)], belief.mean.size)

    def _diffuse(self, belief: LowRankBelief, diffusion: float) -> None:
        """Exact: what is added to the diagonal leaves I - Q (I - K) Q' of the same rank, in new coordinates."""
        prior = per_weight("prior_variance", self.prior_variance, belief.mean.size)
        room = np.clip(prior - self.variances(belief), 0.0, diffusion)
        basis, inner = _subspace(belief)
        deviation = np.sqrt(belief.deviation.astype(np.float64) ** 2 + room)
        rows, corner = np.linalg.qr((basis * (belief.deviation / deviation)).T)
        known = np.eye(len(basis)) - inner
        factor, scale = factors.factors_of_covariance(np.eye(len(basis)) - corner @ known @ corner.T)
        used = len(basis)
        belief.deviation[...] = deviation
        belief.basis[:used], belief.factor[:used, :used], belief.scale[:used] = rows.T, factor, scale

    def _combine(self, parts: Sequence[tuple[float, LowRankBelief]], n_features: int) -> LowRankBelief:
        """Prior + sum of share * (part - prior), in natural parameters, compressed to the capacity."""
        result = self.prior(n_features)
        base = 1.0 / result.deviation.astype(np.float64) ** 2
        diagonal, shift = base.copy(), base * result.mean
        columns, strengths = [np.zeros((0, n_features))], [np.zeros(0)]
        for share, part in parts:
            basis, inner = _subspace(part)
            variances, rotation = np.linalg.eigh(inner)
            directions, known = rotation.T @ basis / part.deviation, 1.0 / variances - 1.0
            own = 1.0 / part.deviation.astype(np.float64) ** 2
            diagonal += share * (own - base)
            columns.append(directions)
            strengths.append(share * known)
            precision_times_mean = own * part.mean + directions.T @ (known * (directions @ part.mean))
            shift += share * (precision_times_mean - base * result.mean)
        if not np.all(diagonal > 0.0):
            raise ImproperBelief(
                f"a belief must have positive precisions; weight {int(np.argmin(diagonal))} would have "
                f"{diagonal.min():.3g}. Was something taken out that was never learnt?"
            )
        result.deviation[...] = 1.0 / np.sqrt(diagonal)
        # the signed columns, in orthonormal directions
        stacked = np.vstack(columns) / np.sqrt(diagonal)
        rows, corner = np.linalg.qr(stacked.T)
        values, rotation = np.linalg.eigh((corner * np.concatenate(strengths)) @ corner.T)
        if values.size and values[0] <= -1.0:
            raise ImproperBelief(
                "a belief must have a positive definite precision; its smallest eigenvalue would be "
                f"{1 + values[0]:.3g} of its diagonal. Was something taken out that was never learnt?"
            )
        keep = min(values.size, result.scale.size - 1)
        strongest_first = np.ascontiguousarray(rotation[:, ::-1].T @ rows.T)
        rewrite(result, strongest_first, np.ascontiguousarray(values[::-1]), keep)
        basis, inner = _subspace(result)
        scaled = result.deviation * shift
        along = basis @ scaled
        result.mean[...] = result.deviation * (scaled + basis.T @ (inner @ along - along))
        return result


def _subspace(belief: LowRankBelief) -> tuple[Matrix, Matrix]:
    """The rows of Q in use, and K."""
    used = int(belief.used[0])
    inner = factors.covariance_of(belief.factor[:used, :used], belief.scale[:used])
    return belief.basis[:used].astype(np.float64), inner
