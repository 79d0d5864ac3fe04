"""What a belief about f says about y, for many examples at once.

Quantiles need P(y <= t) = E P(y <= t | f). Seen from f, P(y <= t | f) is a step at some place, of some width, which may
be far narrower or far wider than the belief. In f = place + width sinh(u) both are smooth, and a trapezoid in u is
accurate to about 1e-9 with few points.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import special

from bayou.contracts import Latent, Matrix, ScalarLikelihood, Vector
from bayou.numerics.jit import kernel
from bayou.numerics.pointers import call_log_density, call_log_evidence, likelihood_kernels

NODES = 201
ABRUPT = 1e-9  # of the belief's width: a step so narrow is one without width
NEGLIGIBLE = 1e-12
REACH = 9.0  # standard deviations of the belief
PAIRS_AT_ONCE = 2048  # bounds the memory to some megabytes
MOST_STEPS = 120
LARGEST = float(np.finfo(np.float64).max)


@kernel
def _log_evidences(
    kernels: Vector, targets: Vector, mean: Vector, variance: Vector, params: Vector, result: Vector
) -> None:
    for i in range(targets.size):
        result[i] = call_log_evidence(kernels, kernels, targets[i], mean[i], variance[i], params)[0]


@kernel
def _log_densities(kernels: Vector, targets: Vector, latents: Vector, params: Vector, result: Matrix) -> None:
    for i in range(targets.size):
        result[i, 0], result[i, 1], result[i, 2] = call_log_density(kernels, targets[i], latents[i], params)


def log_densities(likelihood: ScalarLikelihood, targets: Vector, latents: Vector) -> tuple[Vector, Vector, Vector]:
    """log p(y | f), its slope and minus its curvature, for each target and its latent."""
    result = np.empty((targets.size, 3))
    given, known = (np.require(part, np.float64, ["C", "W"]) for part in (targets, latents))
    _log_densities(likelihood_kernels(likelihood), given, known, likelihood.params, result)
    return result[:, 0], result[:, 1], result[:, 2]


def log_evidences(likelihood: ScalarLikelihood, targets: Vector | float, latent: Latent) -> Vector:
    """log E p(y | f) of each example, for one target each or one for all."""
    mean, variance = (np.require(part, np.float64, ["C", "W"]) for part in (latent.mean, latent.variance))
    given = np.array(np.broadcast_to(np.asarray(targets, dtype=np.float64), mean.shape))
    result = np.empty(mean.shape)
    _log_evidences(likelihood_kernels(likelihood), given, mean, variance, likelihood.params, result)
    return result


def binary_moments(likelihood: ScalarLikelihood, latent: Latent) -> tuple[Vector, Vector]:
    """Mean 2p - 1 and variance 4p(1 - p) of a target that is -1 or +1."""
    rows = np.ones(len(latent.mean))
    up, down = (np.exp(likelihood.log_probability(sign * rows, latent)) for sign in (1.0, -1.0))
    return up - down, 4.0 * up * down


def binary_quantiles(likelihood: ScalarLikelihood, latent: Latent, probabilities: Vector) -> Matrix:
    """-1 where that is already probable enough, else +1."""
    return np.where(_chance_of_minus_one(likelihood, latent)[:, None] >= np.asarray(probabilities), -1.0, 1.0)


def binary_cumulative(likelihood: ScalarLikelihood, values: Vector, latent: Latent) -> Vector:
    """P(y <= value) of a target that is -1 or +1."""
    given = np.asarray(values)
    return np.where(given < -1.0, 0.0, np.where(given < 1.0, _chance_of_minus_one(likelihood, latent), 1.0))


def _chance_of_minus_one(likelihood: ScalarLikelihood, latent: Latent) -> Vector:
    return np.minimum(np.exp(likelihood.log_probability(np.full(len(latent.mean), -1.0), latent)), 1.0)


def class_cumulative(below: Matrix, values: Vector) -> Vector:
    """P(y <= value) of a target that is 0, 1, ..., given P(y <= 0), P(y <= 1), ... as columns."""
    last = np.clip(np.floor(values), -1.0, below.shape[1] - 1.0).astype(np.intp)
    some = np.take_along_axis(below, np.maximum(last, 0)[:, None], axis=1)[:, 0]
    return np.where(last < 0, 0.0, some)


def smoothed(
    conditional: Callable[[Vector], Vector], place: Vector, width: Vector, mean: Vector, spread: Vector
) -> Vector:
    """E conditional(f) for f ~ N(mean, spread^2) per row, where conditional falls from 1 to 0 at place."""
    distance = np.abs(place - mean)
    abrupt = width < ABRUPT * spread
    # A belief without width is one of negligible width beside the step, its distance and the mean's resolution.
    spread = np.maximum(spread, NEGLIGIBLE * (width + distance + np.abs(mean)))
    width = np.maximum(width, np.maximum(ABRUPT * spread * abrupt, NEGLIGIBLE**2 * distance))
    low, high = (np.arcsinh((mean + side * REACH * spread - place) / width) for side in (-1.0, 1.0))
    u = low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, NODES)
    with np.errstate(over="ignore", under="ignore"):
        f = place[:, None] + width[:, None] * np.sinh(u)
        weights = np.exp(-0.5 * ((f - mean[:, None]) / spread[:, None]) ** 2) * np.cosh(u)
        resolved = np.asarray((weights * conditional(f)).sum(axis=1) / weights.sum(axis=1))
    sharp: Vector = special.ndtr((place - mean) / spread)
    return np.where(abrupt, sharp, np.clip(resolved, 0.0, 1.0))


def crossing(
    excess: Callable[[Vector], Vector], low: Vector, high: Vector, tolerance: Callable[[Vector], Vector]
) -> Vector:
    """Where each row of an increasing function passes zero between low and high, by Illinois' method.

    The end of the interval beyond which it lies, if it does not pass zero in between.
    """
    at_low, at_high = excess(low), excess(high)
    low, high = np.where(at_high < 0.0, high, low), np.where(at_low >= 0.0, low, high)
    last_moved = np.zeros_like(low)
    for step in range(MOST_STEPS):
        gap = high - low
        if np.all(gap <= tolerance(high)):
            break
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            secant = high - at_high * gap / (at_high - at_low)
        bisect = step % 4 == 3  # so that no shape of function needs more than a few times the halvings
        usable = np.isfinite(secant) & (secant > low) & (secant < high) & (not bisect)
        middle = np.where(usable, secant, low + 0.5 * gap)
        value = excess(middle)
        moved = np.where(value >= 0.0, 1.0, -1.0)
        stale = np.where(moved == last_moved, 0.5, 1.0)
        at_low, at_high = np.where(moved > 0, stale * at_low, value), np.where(moved > 0, value, stale * at_high)
        low, high = np.where(moved > 0, low, middle), np.where(moved > 0, middle, high)
        last_moved = moved
    return high


def by_rows(solve: Callable[[Vector, Vector, Vector], Vector], latent: Latent, given: Vector) -> Vector:
    """Solve for each example, given mean, standard deviation and a number of its own, in portions."""
    mean, variance, numbers = (np.asarray(part, np.float64) for part in (latent.mean, latent.variance, given))
    portions = [slice(i, i + PAIRS_AT_ONCE) for i in range(0, mean.size, PAIRS_AT_ONCE)]
    return np.concatenate([np.zeros(0), *(solve(mean[i], np.sqrt(variance[i]), numbers[i]) for i in portions)])


def by_pairs(solve: Callable[[Vector, Vector, Vector], Vector], latent: Latent, probabilities: Vector) -> Matrix:
    """Solve for each example and probability, given mean, standard deviation and probability."""
    mean, variance, wanted = np.broadcast_arrays(
        np.asarray(latent.mean)[:, None], np.asarray(latent.variance)[:, None], np.asarray(probabilities, np.float64)
    )
    return by_rows(solve, Latent(mean.ravel(), variance.ravel()), wanted.ravel()).reshape(mean.shape)


class CountLaw(NamedTuple):
    """Counts with a log link: P(y <= count | f) is a step in f, at log(count + 1), of some width."""

    conditional: Callable[[Vector, Vector], Vector]  # of count and f
    width: Callable[[Vector], Vector]  # of count

    def below(self, count: Vector, mean: Vector, spread: Vector) -> Vector:
        """P(y <= count) for f ~ N(mean, spread^2)."""
        return smoothed(lambda f: self.conditional(count[:, None], f), np.log1p(count), self.width(count), mean, spread)


def count_cumulative(law: CountLaw, values: Vector, latent: Latent) -> Vector:
    """P(y <= value) of a count."""

    def solve(mean: Vector, spread: Vector, value: Vector) -> Vector:
        chance = law.below(np.clip(np.floor(value), 0.0, LARGEST), mean, spread)
        return np.where(value < 0.0, 0.0, np.where(value > LARGEST, 1.0, chance))

    return by_rows(solve, latent, values)


def count_quantiles(law: CountLaw, latent: Latent, probabilities: Vector) -> Matrix:
    """The smallest count whose predictive probability of not being exceeded is large enough."""

    def solve(mean: Vector, spread: Vector, wanted: Vector) -> Vector:
        inside = (wanted > 0.0) & (wanted < 1.0)
        score = special.ndtri(np.where(inside, wanted, 0.5))

        def excess(log_count: Vector) -> Vector:
            chance = law.below(np.expm1(log_count), mean, spread)
            return np.asarray(special.ndtri(np.clip(chance, 1e-300, 1.0 - 1e-16)) - score)

        # Ends at the largest count that is a number; beyond the answer is infinite.
        top = np.clip(mean + REACH * spread + 40.0 * (1.0 + law.width(np.zeros_like(mean)) ** 2), 1.0, 700.0)
        log_count = crossing(excess, np.zeros_like(mean), top, lambda high: 0.2 * np.exp(-high) + 1e-13 * high)
        count = np.floor(np.expm1(log_count)) + 1.0
        for _ in range(2):  # the crossing is that of an interpolation in the count: settle on the integer
            fewer = np.maximum(count - 1.0, 0.0)
            count = np.where(law.below(fewer, mean, spread) >= wanted, fewer, count)
        count = np.where(law.below(np.full_like(mean, np.expm1(700.0)), mean, spread) < wanted, np.inf, count)
        return np.where(wanted >= 1.0, np.inf, np.where(wanted <= 0.0, 0.0, count))

    return by_pairs(solve, latent, probabilities)
