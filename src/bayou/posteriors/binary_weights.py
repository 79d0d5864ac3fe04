"""q(w) = prod_i (1 + mean_i w_i) / 2, w_i in {-1, +1}: the Ising perceptron, O(d) per example (Opper 1998, section 9).

In natural parameters, mean = tanh(field), moment matching is exact but for one step: with weight i taken out, the
latent is taken to be Gaussian, of mean h_i and variance v_i (the central limit theorem). With Z(m, v) = E p(y | f) for
f ~ N(m, v):

    exact:    field_i += (log Z(h_i + x_i, v_i) - log Z(h_i - x_i, v_i)) / 2
    cavity:   field_i += x_i d log Z(h_i, v_i) / d h_i,    its first order in x_i, for many weights
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bayou.contracts import Array, Mask, Matrix, Posterior, Vector
from bayou.errors import ImproperBelief, InvalidSpec
from bayou.numerics.jit import kernel, vectorized_kernel
from bayou.numerics.passes import passes
from bayou.numerics.pointers import call_log_evidence
from bayou.numerics.priors import Scales, check_forgetting, check_prior, per_weight
from bayou.numerics.sites import pieces

FORMS = ("exact", "cavity")
# A field beyond this is certainty: the variance is then still a positive number of the array's type.
LARGEST_FIELD, LARGEST_FIELD_OF_FLOAT32 = 300.0, 40.0
# No example is held back in what it says, in log odds, up to here; a chance below that counts as certainty.
LEAST_BOUND, SMALLEST_DOUBT = 20.0, 1e-300


class BinaryBelief(NamedTuple):
    """Field, mean and variance of each weight; ``form`` is 0.0 for "exact", 1.0 for "cavity"."""

    field: Array
    mean: Array
    variance: Array
    form: Array


@kernel
def set_field(belief: BinaryBelief, i: int, field: float) -> None:
    """Write a weight's field, and the mean and variance that follow; 1 - tanh^2 is never taken by subtraction."""
    largest = LARGEST_FIELD if belief.field.itemsize == 8 else LARGEST_FIELD_OF_FLOAT32
    if math.isnan(field):
        return  # both signs were impossible: nothing can be learnt from that
    field = min(max(field, -largest), largest)
    small = math.exp(-2.0 * abs(field))
    belief.field[i] = field
    belief.mean[i] = math.copysign((1.0 - small) / (1.0 + small), field)
    belief.variance[i] = 4.0 * small / ((1.0 + small) * (1.0 + small))


@kernel
def _doubt(belief: BinaryBelief, i: int) -> float:
    """Probability that a weight has not the sign of its mean: (1 - |mean|) / 2."""
    return belief.variance[i] / (2.0 * (1.0 + abs(belief.mean[i])))  # type: ignore[no-any-return]  # kernels return numbers


@kernel
def largest_push(doubt: float) -> float:
    """How far one example may move a field, if some other weight is wrong with this probability.

    That would explain the target too, however impossible it is if all others are right: so the log odds of a weight
    change by no more than the log of it. The Gaussian for the sum of the others does not know that once they are all
    but certain, and a perceptron that had become certain too early would turn all its weights round at once.
    """
    return 0.5 * max(LEAST_BOUND, -math.log(max(doubt, SMALLEST_DOUBT)))


@vectorized_kernel
def marginal(belief: BinaryBelief, x: Array) -> tuple[float, float]:
    """Mean and variance of w . x, summed in double precision."""
    mean = 0.0
    variance = 0.0
    for j in range(x.size):
        mean += np.float64(belief.mean[j]) * x[j]
        variance += np.float64(belief.variance[j]) * x[j] * x[j]
    return mean, variance


@kernel
def scatter(belief: BinaryBelief, missing: Mask) -> float:
    """Sum of E w_j^2 over the missing features: each is one."""
    total = 0.0
    for j in range(missing.size):
        if missing[j]:
            total += 1.0
    return total


@kernel
def absorb(belief: BinaryBelief, x: Array, slope: float, precision: float, variance: float) -> None:
    """Move the belief by one Gaussian site, for which the exact form has a closed expression."""
    for i in range(x.size):
        others = max(variance - belief.variance[i] * x[i] * x[i], 0.0)
        push = x[i] * (slope + precision * belief.mean[i] * x[i]) / (1.0 + precision * others)
        set_field(belief, i, belief.field[i] + push)


@kernel
def latent_belief(belief: BinaryBelief, c: int) -> BinaryBelief:
    """The belief about the weights of one latent."""
    return BinaryBelief(belief.field[c], belief.mean[c], belief.variance[c], belief.form[c])


_passes = passes(__name__, marginal, scatter, absorb, latent_belief)


@kernel
def learn(
    belief: BinaryBelief,
    kernels: Any,
    params: Vector,
    features: Array,
    missing: Mask,
    targets: Vector,
    weights: Vector,
    record: Matrix,
) -> int:
    """Absorb the rows in order, asking the likelihood's evidence about each weight with all others integrated out."""
    first_order = belief.form[0] == 1.0
    for n in range(targets.size):
        x, y = features[n], targets[n]
        weight = float(weights[n]) if n < weights.size else 1.0
        count = pieces(weight)
        share = weight / count
        for piece in range(count):
            mean, variance = marginal(belief, x)
            total = variance + (scatter(belief, missing[n]) if n < missing.shape[0] else 0.0)
            if not math.isfinite(mean + total):
                return n
            if piece == 0:
                record[n, 0], record[n, 1] = mean, total
                record[n, 2] = call_log_evidence(kernels, kernels, y, mean, total, params)[0]
            doubt = 0.0
            for i in range(x.size):
                doubt += _doubt(belief, i)
            for i in range(x.size):
                if x[i] == 0.0:
                    continue
                # all weights move together: mean and total are those from before this example
                others = mean - belief.mean[i] * x[i]
                spread = max(total - belief.variance[i] * x[i] * x[i], 0.0)
                if first_order:
                    push = x[i] * call_log_evidence(kernels, kernels, y, others, spread, params)[1]
                else:
                    up = call_log_evidence(kernels, kernels, y, others + x[i], spread, params)[0]
                    down = call_log_evidence(kernels, kernels, y, others - x[i], spread, params)[0]
                    push = 0.5 * (up - down)
                most = largest_push(doubt - _doubt(belief, i))
                set_field(belief, i, belief.field[i] + share * min(max(push, -most), most))
    return targets.size


@dataclass(frozen=True)
class BinaryWeights(Posterior[BinaryBelief]):
    """Independent weights that are -1 or +1.

    It asks the likelihood for its evidence, whose moments are matched weight by weight: of the rules it takes
    `MomentMatching` alone. ``form="cavity"`` is cheaper and differs by O(1 / d).

    >>> from bayou import BinaryWeights, Learner, MomentMatching, Step
    >>> learner = Learner(Step(), BinaryWeights(), MomentMatching(), n_features=3)
    >>> _ = learner.learn_many([[1.0, 0.1, -0.2], [0.9, -0.3, 0.1], [0.2, 1.0, 0.1]], [1, 1, -1])
    >>> learner.belief.mean.round(2)
    array([ 1.  , -1.  , -0.25])
    """

    prior_mean: Scales = 0.0
    form: str = "exact"
    dtype: str = "float64"

    asks_evidence = True
    predict = staticmethod(_passes.predict)
    learn = staticmethod(learn)

    def __post_init__(self) -> None:
        check_prior(self.prior_mean, 1.0, self.dtype)
        if not np.all(np.abs(self.prior_mean) < 1.0):
            raise InvalidSpec(f"`prior_mean` of weights -1 or +1 must lie between them; got {self.prior_mean!r}.")
        if self.form not in FORMS:
            raise InvalidSpec(f"`form` must be one of {', '.join(FORMS)}; got {self.form!r}.")

    def prior(self, n_features: int) -> BinaryBelief:
        """The belief before any example."""
        return self._belief(np.arctanh(per_weight("prior_mean", self.prior_mean, n_features)))

    def _belief(self, field: Array) -> BinaryBelief:
        values, mean, variance = (np.empty(field.size, dtype=self.dtype) for _ in range(3))
        belief = BinaryBelief(values, mean, variance, np.full(1, float(FORMS.index(self.form)), dtype=self.dtype))
        for i, value in enumerate(field):
            set_field(belief, i, float(value))
        return belief

    def check(self, belief: BinaryBelief) -> None:
        """Raise unless means and variances are those of the fields."""
        wanted = self._belief(belief.field.astype(np.float64))
        for name, array, right in zip(BinaryBelief._fields, belief, wanted, strict=True):
            if not np.allclose(array, right, rtol=1e-5, atol=0.0):
                raise ImproperBelief(f"`{name}` must be that of the fields of weights -1 or +1; it is not.")

    def absorb(self, belief: BinaryBelief, features: Vector, slope: float, precision: float) -> None:
        """Move the belief by one site, in place."""
        x = np.ascontiguousarray(features, dtype=self.dtype)
        absorb(belief, x, slope, precision, marginal(belief, x)[1])

    def covariance(self, belief: BinaryBelief) -> Matrix:
        """Covariance of the weights."""
        return np.diag(self.variances(belief))

    def variances(self, belief: BinaryBelief) -> Vector:
        """Variance of each weight."""
        return belief.variance.astype(np.float64)

    def sample(self, belief: BinaryBelief, n: int, seed: int | np.random.Generator) -> Matrix:
        """So many draws of the weights, one per row."""
        uniform = np.random.default_rng(seed).uniform(-1.0, 1.0, (n, belief.mean.size))
        return np.where(uniform < belief.mean, 1.0, -1.0)

    def log_density(self, belief: BinaryBelief, weights: Vector) -> float:
        """Log probability of some weights; those that are not -1 or +1 have none."""
        if not np.all(np.abs(weights) == 1.0):
            return -math.inf
        return float(-np.sum(np.logaddexp(0.0, -2.0 * belief.field.astype(np.float64) * weights)))

    def intervals(self, belief: BinaryBelief, coverage: float) -> Matrix:
        """The least that holds each weight with this probability, ends included: one sign, or both."""
        tail = 0.5 - 0.5 * coverage
        plus = 0.5 + 0.5 * belief.mean.astype(np.float64)
        return np.column_stack([np.where(1.0 - plus > tail, -1.0, 1.0), np.where(plus > tail, 1.0, -1.0)])

    def sign_probability(self, belief: BinaryBelief) -> Vector:
        """Probability that each weight has the sign of its mean."""
        return 0.5 + 0.5 * np.abs(belief.mean.astype(np.float64))

    def forget(self, belief: BinaryBelief, discount: float = 1.0, diffusion: float = 0.0) -> None:
        """Let go of the past, in place; see `Posterior.forget`."""
        check_forgetting(discount, diffusion)
        prior = self.prior(belief.mean.size)
        if discount < 1.0:
            self._write(belief, prior.field + discount * (belief.field - prior.field))
        if diffusion > 0.0:
            variance = belief.variance + np.clip(prior.variance - belief.variance, 0.0, diffusion)
            mean = np.sqrt(np.maximum(1.0 - variance, 0.0))
            self._write(belief, np.copysign(np.log1p(mean) - 0.5 * np.log(variance), belief.field))

    def _write(self, belief: BinaryBelief, field: Array) -> None:
        for array, value in zip(belief, self._belief(field), strict=True):
            array[...] = value

    def transform(self, belief: BinaryBelief, scale: Vector, shift: Vector) -> None:
        """Refused, unless nothing changes: what is -1 or +1 in one unit is not in another."""
        if not (np.all(scale == 1.0) and np.all(shift == 0.0)):
            raise InvalidSpec("weights that are -1 or +1 hold for features as they are; use `standardize=False`.")

    def merge(self, shards: Sequence[BinaryBelief]) -> BinaryBelief:
        """The prior, times what each shard learnt beyond it."""
        prior = self.prior(shards[0].mean.size).field
        return self._belief(prior + sum(shard.field - prior for shard in shards))

    def subtract(self, belief: BinaryBelief, part: BinaryBelief) -> BinaryBelief:
        """The belief without what the part learnt beyond the prior."""
        return self._belief(belief.field - (part.field - self.prior(belief.mean.size).field))
