"""What every rule and every learning pass does to a site: bound it, weigh it, blur it."""

import math
from typing import Any

from bayou.contracts import Array, Vector
from bayou.numerics.jit import borrowing_kernel, kernel
from bayou.numerics.pointers import call_move, call_site

# A site may widen a belief, but not without bound: 1 + precision * variance stays above this.
NARROWEST = 1e-6
LARGEST = 1e200
# A weight of up to so many rows is absorbed one by one; beyond, each of so many pieces carries an equal share.
MOST_PIECES = 64


@kernel
def smallest_variance(variances: Array) -> float:
    """Below this a variance of the array's type would soon be zero: a model surer than that has collapsed."""
    return 1e-36 if variances.itemsize == 4 else 1e-290


@kernel
def bounded(slope: float, precision: float, variance: float) -> tuple[float, float]:
    """The nearest site with finite numbers and 1 + precision * variance > 0."""
    if not math.isfinite(slope) or math.isnan(precision):
        return 0.0, 0.0
    slope = min(max(slope, -LARGEST), LARGEST)
    precision = min(precision, LARGEST)
    if precision < 0.0 and precision * variance < NARROWEST - 1.0:
        precision = (NARROWEST - 1.0) / variance
    return slope, precision


@kernel
def pieces(weight: float) -> int:
    """In how many equal pieces a weighted example is absorbed: as many as it counts rows."""
    return int(min(max(math.ceil(weight), 1.0), MOST_PIECES))


@kernel
def observe(
    kernels: Any, params: Vector, y: float, mean: float, variance: float, blur: float, weight: float
) -> tuple[float, float, float]:
    """log E p(y | f) or NaN, slope and precision of one example, or of a piece of it.

    ``blur`` is variance of the latent that does not come from the weights: the site tells of the sum of both, and
    what it tells of the weights alone is weaker. ``weight`` multiplies the log density that the site stands for.
    """
    value, slope, precision = call_site(kernels, kernels, y, mean, variance + blur, params)
    if blur == 0.0 and weight == 1.0:
        return value, slope, precision  # a rule has bounded its site
    share = weight / (1.0 + precision * blur)
    slope, precision = bounded(slope * share, precision * share, variance)
    return value, slope, precision


@borrowing_kernel
def moved(slope: float, precision: float, variance: float) -> tuple[float, float, float]:
    """What a site does to its latent: step and spread of `bayou.numerics.pointers.move`, and what is kept."""
    kept = 1.0 / (1.0 + precision * variance)
    return slope * kept, precision * kept, kept


@borrowing_kernel
def observe_move(
    kernels: Any, params: Vector, y: float, mean: float, variance: float, blur: float, weight: float
) -> tuple[float, float, float, float]:
    """log E p(y | f) or NaN, step, spread and what is kept, of one example or of a piece of it.

    The same as `observe` and `moved`, without the divisions that undo each other where a rule matches moments.
    """
    value, step, spread, kept = call_move(kernels, kernels, y, mean, variance + blur, params)
    step, spread, kept = settled(step, spread, kept, variance, blur, weight)
    return value, step, spread, kept


@borrowing_kernel
def is_settled(step: float, spread: float, kept: float) -> bool:
    """Whether what was said is finite, and within bounds."""
    return abs(step) + abs(spread) < LARGEST and kept < 1.0 / NARROWEST


@borrowing_kernel
def settled(
    step: float, spread: float, kept: float, variance: float, blur: float, weight: float
) -> tuple[float, float, float]:
    """How a latent of this variance moves, by what was said of it with the blur: finite, and as often as it counts."""
    if blur == 0.0 and weight == 1.0 and is_settled(step, spread, kept):
        return step, spread, kept
    slope, precision = bounded(step / kept, spread / kept, variance + blur)
    share = weight / (1.0 + precision * blur)
    slope, precision = bounded(slope * share, precision * share, variance)
    step, spread, kept = moved(slope, precision, variance)
    return step, spread, kept
