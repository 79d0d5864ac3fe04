"""q(w) = N(mean, diag(variance)) for millions of weights, of which an example touches few: O(entries) per example.

Mean and variance of a weight lie side by side, so that an entry costs one look at memory, which is asked for some rows
ahead. In single precision by default: what rounding takes is far below what an example tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bayou.contracts import Array, Mask, Matrix, SparsePosterior, Vector
from bayou.errors import ImproperBelief
from bayou.numerics.factor import aligned
from bayou.numerics.independent import combined
from bayou.numerics.instructions import prefetch, prefetch_pair
from bayou.numerics.jit import borrowing_kernel, vectorized_kernel
from bayou.numerics.pair_rows import move_pairs, sum_pairs
from bayou.numerics.passes import passes
from bayou.numerics.pointers import call_vector_site
from bayou.numerics.priors import Scales, check_forgetting, check_prior, per_weight
from bayou.numerics.sites import bounded, moved, observe_move, pieces, smallest_variance
from bayou.numerics.sparse_checks import are_sound

# So many rows ahead the weights of a row are asked for: time enough for memory, not so much that they are gone again.
AHEAD = 4
# Weights of so many bytes lie in caches or near them, where the next row is early enough.
CACHED = 2**21
# So many rows are looked at before they are learnt, where that is asked for: they are still near.
TOGETHER = 64
PER_LINE = 16  # columns of 4 bytes that memory sends at once


class SparseDiagonalBelief(NamedTuple):
    """Mean and variance of each weight, side by side."""

    weights: Array

    @property
    def mean(self) -> Array:
        """Of each weight, as a view."""
        return self.weights[..., 0]

    @property
    def variance(self) -> Array:
        """Of each weight, as a view."""
        return self.weights[..., 1]


@vectorized_kernel
def marginal(belief: SparseDiagonalBelief, x: Array) -> tuple[float, float]:
    """Mean and variance of w . x for a row told in full."""
    mean = variance = 0.0
    for j in range(x.size):
        mean += np.float64(belief.weights[j, 0]) * x[j]
        variance += np.float64(belief.weights[j, 1]) * x[j] * x[j]
    return mean, variance


@vectorized_kernel
def scatter(belief: SparseDiagonalBelief, missing: Mask) -> float:
    """Sum of E w_j^2 over the missing features."""
    total = 0.0
    for j in range(missing.size):
        if missing[j]:
            total += np.float64(belief.weights[j, 0]) * belief.weights[j, 0] + belief.weights[j, 1]
    return total


@vectorized_kernel
def absorb(belief: SparseDiagonalBelief, x: Array, slope: float, precision: float, variance: float) -> None:
    """Move the belief by one site of a row told in full."""
    step, spread, kept = moved(slope, precision, variance)
    site = narrowed(belief.weights, step, spread, kept, variance)
    for j in range(x.size):
        move(belief.weights, j, x[j], site)


@borrowing_kernel
def narrowed(
    weights: Array, step: float, spread: float, kept: float, variance: float
) -> tuple[Any, Any, Any, Any, Any]:
    """What `move` needs of a site, in the precision of the weights: step, kept, spread, variance, floor."""
    kind = weights.dtype.type
    return kind(step), kind(kept), kind(spread), kind(variance), kind(smallest_variance(weights))


@borrowing_kernel
def move(weights: Array, j: Any, x: Any, site: tuple[Any, Any, Any, Any, Any]) -> None:
    """One weight, as `move_pairs` moves many."""
    step, kept, spread, variance, floor = site
    known = weights[j, 1]
    direction = known * x
    others = max(variance - direction * x, floor)
    weights[j, 0] += step * direction
    weights[j, 1] = max(known * (kept + spread * others), floor)


@vectorized_kernel
def latent_belief(belief: SparseDiagonalBelief, c: int) -> SparseDiagonalBelief:
    """The belief about the weights of one latent."""
    return SparseDiagonalBelief(belief.weights[c])


_passes = passes(__name__, marginal, scatter, absorb, latent_belief)


@borrowing_kernel
def sparse_marginal(
    weights: Array, columns: Any, values: Array, begin: int, end: int, constant: float
) -> tuple[float, float]:
    """Mean and variance of the latent of one row, summed in the precision of the weights."""
    mean, variance = sum_pairs(weights, columns, values, begin, end)
    if constant != 0.0:
        last = weights.shape[0] - 1
        mean += weights[last, 0] * constant
        variance += weights[last, 1] * constant * constant
    return mean, variance


@borrowing_kernel
def sparse_absorb(
    weights: Array,
    columns: Any,
    values: Array,
    begin: int,
    end: int,
    constant: float,
    step: float,
    spread: float,
    kept: float,
    variance: float,
) -> None:
    """Move the belief by one site of one row."""
    site = narrowed(weights, step, spread, kept, variance)
    move_pairs(weights, columns, values, begin, end, *site)
    if constant != 0.0:
        move(weights, weights.shape[0] - 1, weights.dtype.type(constant), site)


@borrowing_kernel
def ask_for(weights: Array, starts: Any, columns: Any, n: int) -> None:
    """Have memory send the weights of a row soon to come: while the site of row n is worked out, after its sums."""
    coming = n + (AHEAD if weights.size * weights.itemsize > CACHED else 1)
    if coming < starts.size - 1:
        for k in range(starts[coming], starts[coming + 1]):
            prefetch_pair(weights, np.uint32(columns[np.uint64(k)]))


@borrowing_kernel
def ask_for_entries(columns: Any, values: Array, begin: int, end: int) -> None:
    """Have memory send the entries of a row that is looked at soon: a look takes no time to speak of, but for that."""
    ahead = (TOGETHER + 2 * AHEAD) * (end - begin)
    for k in range(begin + ahead, end + ahead, PER_LINE):
        prefetch(columns, k)
        if values.size:
            prefetch(values, k)


@borrowing_kernel
def predict_sparse(
    belief: SparseDiagonalBelief, starts: Any, columns: Any, values: Array, constant: float, record: Matrix
) -> None:
    """Record mean and variance of the latent of each row."""
    rows = starts.size - 1
    for n in range(rows):
        ask_for(belief.weights, starts, columns, n)
        record[n, 0], record[n, 1] = sparse_marginal(
            belief.weights, columns, values, starts[n], starts[n + 1], constant
        )


@borrowing_kernel
def learn_sparse(
    belief: SparseDiagonalBelief,
    kernels: Any,
    params: Vector,
    starts: Any,
    columns: Any,
    values: Array,
    constant: float,
    targets: Vector,
    counts: Vector,
    record: Matrix,
    careful: int,
) -> int:
    """Absorb the rows in order: the pass of `bayou.numerics.passes` for sparse rows."""
    weights = belief.weights
    rows = targets.size
    n_columns = weights.shape[0] - (constant != 0.0)
    for n in range(rows):
        if (
            careful
            and n % TOGETHER == 0
            and not are_sound(starts, columns, values, n, min(n + TOGETHER, rows), n_columns)
        ):
            return n
        begin, end = starts[n], starts[n + 1]
        if careful:
            ask_for_entries(columns, values, begin, end)
        count = float(counts[n]) if n < counts.size else 1.0
        parts = pieces(count)
        for part in range(parts):
            mean, variance = sparse_marginal(weights, columns, values, begin, end, constant)
            if not abs(mean + variance) < np.inf:
                return n
            if part == 0:
                ask_for(weights, starts, columns, n)
            value, step, spread, kept = observe_move(kernels, params, targets[n], mean, variance, 0.0, count / parts)
            if part == 0:
                record[n, 0], record[n, 1], record[n, 2] = mean, variance, value
            sparse_absorb(weights, columns, values, begin, end, constant, step, spread, kept, variance)
    return rows


@vectorized_kernel
def learn_sparse_vector(
    belief: SparseDiagonalBelief,
    kernels: Any,
    params: Vector,
    starts: Any,
    columns: Any,
    values: Array,
    constant: float,
    targets: Vector,
    counts: Vector,
    record: Array,
    careful: int,
) -> int:
    """The same for several latents, each with a belief of its own."""
    k = record.shape[0]
    mean, variance, slope, precision = np.empty(k), np.empty(k), np.empty(k), np.empty(k)
    rows = targets.size
    n_columns = belief.weights.shape[1] - (constant != 0.0)
    for n in range(rows):
        if (
            careful
            and n % TOGETHER == 0
            and not are_sound(starts, columns, values, n, min(n + TOGETHER, rows), n_columns)
        ):
            return n
        for c in range(k):
            ask_for(belief.weights[c], starts, columns, n)
        begin, end = starts[n], starts[n + 1]
        count = float(counts[n]) if n < counts.size else 1.0
        parts = pieces(count)
        for part in range(parts):
            total = 0.0
            for c in range(k):
                mean[c], variance[c] = sparse_marginal(belief.weights[c], columns, values, begin, end, constant)
                total += mean[c] + variance[c]
            if not abs(total) < np.inf:
                return n
            value = call_vector_site(kernels, kernels, targets[n], mean, variance, params, slope, precision)
            for c in range(k):
                if part == 0:
                    record[c, n, 0], record[c, n, 1], record[c, n, 2] = mean[c], variance[c], value
                share = count / parts
                slope_c, precision_c = bounded(slope[c] * share, precision[c] * share, variance[c])
                step, spread, kept = moved(slope_c, precision_c, variance[c])
                sparse_absorb(belief.weights[c], columns, values, begin, end, constant, step, spread, kept, variance[c])
    return rows


@vectorized_kernel
def add_shard(known: Array, shard: Array, total: Array) -> int:
    """What a shard learnt beyond what was known, added to the total, in natural parameters; -1, or a bad weight.

    Most weights are as they were, in most shards.
    """
    for j in range(known.shape[0]):
        if shard[j, 0] != known[j, 0] or shard[j, 1] != known[j, 1]:
            of_total = 1.0 / np.float64(total[j, 1])
            of_shard, of_known = 1.0 / np.float64(shard[j, 1]), 1.0 / np.float64(known[j, 1])
            precision = of_total + of_shard - of_known
            if not precision > 0.0:
                return j
            shift = total[j, 0] * of_total + shard[j, 0] * of_shard - known[j, 0] * of_known
            total[j, 0], total[j, 1] = shift / precision, 1.0 / precision
    return -1


@dataclass(frozen=True)
class SparseDiagonalGaussian(SparsePosterior[SparseDiagonalBelief]):
    """Independent Gaussian weights, for rows of which few entries are not zero.

    It takes rows told in full, too; where most entries are not zero, `DiagonalGaussian` is quicker.

    >>> from bayou import SparseDiagonalGaussian
    >>> posterior = SparseDiagonalGaussian(prior_variance=0.5)
    >>> posterior.prior(2**20).weights.nbytes // 2**20
    8
    """

    prior_variance: Scales = 1.0
    prior_mean: Scales = 0.0
    dtype: str = "float32"

    predict = staticmethod(_passes.predict)
    learn = staticmethod(_passes.learn)
    learn_vector = staticmethod(_passes.learn_vector)
    predict_sparse = staticmethod(predict_sparse)
    learn_sparse = staticmethod(learn_sparse)
    learn_sparse_vector = staticmethod(learn_sparse_vector)

    def __post_init__(self) -> None:
        check_prior(self.prior_mean, self.prior_variance, self.dtype)

    def prior(self, n_features: int) -> SparseDiagonalBelief:
        """The belief before any example."""
        belief = SparseDiagonalBelief(aligned((n_features, 2), self.dtype))
        for name, column in (("prior_mean", belief.mean), ("prior_variance", belief.variance)):
            value = getattr(self, name)
            if np.ndim(value):
                column[...] = per_weight(name, value, n_features)
            elif value != 0.0:  # which they are: there may be millions of them
                column[...] = value
        return belief

    def check(self, belief: SparseDiagonalBelief) -> None:
        """Raise unless the belief is one that kernels may trust."""
        if not np.all(belief.variance > 0.0):
            raise ImproperBelief(f"variances must be positive; got {belief.variance.min()}.")

    def absorb(self, belief: SparseDiagonalBelief, features: Vector, slope: float, precision: float) -> None:
        """Move the belief by one site, in place."""
        x = np.ascontiguousarray(features, dtype=self.dtype)
        absorb(belief, x, slope, precision, marginal(belief, x)[1])

    def covariance(self, belief: SparseDiagonalBelief) -> Matrix:
        """Covariance of the weights."""
        return np.diag(self.variances(belief))

    def variances(self, belief: SparseDiagonalBelief) -> Vector:
        """Variance of each weight."""
        return belief.variance.astype(np.float64)

    def sample(self, belief: SparseDiagonalBelief, n: int, seed: int | np.random.Generator) -> Matrix:
        """So many draws of the weights, one per row."""
        normal = np.random.default_rng(seed).standard_normal((n, len(belief.mean)))
        draws: Matrix = belief.mean + normal * np.sqrt(self.variances(belief))
        return draws

    def log_density(self, belief: SparseDiagonalBelief, weights: Vector) -> float:
        """Log density of the belief at some weights."""
        variance = self.variances(belief)
        return float(-0.5 * np.sum((weights - belief.mean) ** 2 / variance + np.log(2.0 * np.pi * variance)))

    def forget(self, belief: SparseDiagonalBelief, discount: float = 1.0, diffusion: float = 0.0) -> None:
        """Let go of the past, in place; see `Posterior.forget`."""
        check_forgetting(discount, diffusion)
        prior = self.prior(len(belief.mean))
        if discount < 1.0:
            belief.weights[...] = self._combine(prior, [(discount, belief)]).weights
        belief.variance[...] += np.clip(prior.variance - belief.variance, 0.0, diffusion)

    def transform(self, belief: SparseDiagonalBelief, scale: Vector, shift: Vector) -> None:
        """Make it the belief about ``scale * w``, with ``shift . w`` added to the first weight, in place."""
        gained, moved = float(shift**2 @ belief.variance), float(shift @ belief.mean)
        belief.mean[...] *= scale
        belief.variance[...] *= scale**2
        belief.mean[0] += moved
        belief.variance[0] += gained

    def merge(self, shards: Sequence[SparseDiagonalBelief]) -> SparseDiagonalBelief:
        """The prior, times what each shard learnt beyond it."""
        return self._combine(self.prior(len(shards[0].mean)), [(1.0, shard) for shard in shards])

    def merge_onto(self, belief: SparseDiagonalBelief, shards: Sequence[SparseDiagonalBelief]) -> None:
        """Add to a belief what each shard, begun as a copy of it, has learnt beyond it, in place."""
        known = belief.weights.copy()
        for shard in shards:
            worst = add_shard(known, shard.weights, belief.weights)
            if worst >= 0:
                belief.weights[...] = known
                raise ImproperBelief(f"weight {worst} would have no positive precision: the shards contradict it.")

    def subtract(self, belief: SparseDiagonalBelief, part: SparseDiagonalBelief) -> SparseDiagonalBelief:
        """The belief without what the part learnt beyond the prior."""
        return self._combine(self.prior(len(belief.mean)), [(1.0, belief), (-1.0, part)])

    def _combine(
        self, prior: SparseDiagonalBelief, parts: Sequence[tuple[float, SparseDiagonalBelief]]
    ) -> SparseDiagonalBelief:
        """Prior + sum of share * (part - prior), in natural parameters."""
        prior.mean[...], prior.variance[...] = combined(prior, parts)
        return prior
