"""Student's t with n degrees of freedom, and its mean over a normal, as a mixture of normals.

The log weight of x = log g (see `bayou.likelihoods.student_t`) is, but for a constant,

    h(x) = (n (x - exp x) - log T - e^2 / T) / 2      T = exp(-x) + variance

It has one peak, or two: the target came from the core, or it is an outlier.
"""

import math

import numpy as np

from bayou.contracts import Vector
from bayou.numerics.gamma import log_gamma_half_step, stirling_error
from bayou.numerics.jit import kernel
from bayou.numerics.normal import LOG_SQRT_TWO_PI, TINY

NORMAL_FROM = 1e16  # degrees from which on a t is a normal to the last digit
NEGLIGIBLE = 40.0
SEARCH_STEPS = 200
FIRST_POINTS = 32
HALVINGS = 8
TOLERANCE = 1e-7  # of the difference; the error of the finer sum is about the square of it


@kernel
def student_t_log_density(z: float, degrees: float) -> float:
    """log density at z of a standard t; of a normal if the degrees are infinite."""
    if degrees >= NORMAL_FROM:
        return -0.5 * z * z - LOG_SQRT_TWO_PI
    normaliser = log_gamma_half_step(0.5 * degrees) - 0.5 * math.log(math.pi * degrees)
    return normaliser - 0.5 * (degrees + 1.0) * math.log1p(z * z / degrees)


@kernel
def log_student(error: float, variance: float, shape: float) -> float:
    """log density at an error of a t of 2 * shape degrees of freedom and this squared scale."""
    return student_t_log_density(error / math.sqrt(variance), 2.0 * shape) - 0.5 * math.log(variance)


@kernel
def _log_densities(z: Vector, degrees: Vector, result: Vector) -> None:
    for i in range(z.size):
        result[i] = student_t_log_density(z[i], degrees[i])


def student_t_log_densities(z: Vector, degrees: Vector) -> Vector:
    """log density of each z, each with its degrees of freedom."""
    result = np.empty_like(z)
    _log_densities(z, degrees, result)
    return result


@kernel
def _log_weight(x: float, square: float, variance: float, degrees: float) -> float:
    total = math.exp(-x) + variance
    return 0.5 * (degrees * (x - math.expm1(x)) - math.log(total) - square / total)


@kernel
def _gradient(x: float, square: float, variance: float, degrees: float) -> float:
    """2 h'(x)."""
    g = math.exp(x)
    share = 1.0 / (1.0 + variance * g)
    return -degrees * math.expm1(x) + share * (1.0 - square * g * share)


@kernel
def _peak(low: float, high: float, square: float, variance: float, degrees: float) -> float:
    """Where h stops rising between low and high, to a fraction of the width of a peak."""
    close = 0.1 / math.sqrt(1.0 + degrees)
    for _ in range(SEARCH_STEPS):
        if high - low < close:
            break
        middle = 0.5 * (low + high)
        if _gradient(middle, square, variance, degrees) > 0.0:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


@kernel
def _peaks(square: float, variance: float, degrees: float) -> tuple[float, float]:
    """The lowest and the highest peak of h, equal if there is only one.

    h' has the sign of a cubic in g = exp(x), whose turning points separate the peaks.
    """
    low = math.log((degrees + 1.0) / (degrees + square))
    high = math.log1p(1.0 / degrees)
    a = 3.0 * degrees * variance * variance
    b = degrees * variance * (variance - 2.0)
    c = degrees * (2.0 * variance - 1.0) + variance - square
    discriminant = b * b + a * c
    if discriminant <= 0.0 or b <= 0.0 or c >= 0.0:
        peak = _peak(low, high, square, variance, degrees)
        return peak, peak
    root = b + math.sqrt(discriminant)
    first = min(max(math.log(-c / root), low), high)
    second = min(max(math.log(root / a), low), high)
    lowest_is_first = _gradient(first, square, variance, degrees) < 0.0
    highest_is_second = _gradient(second, square, variance, degrees) > 0.0
    if lowest_is_first and highest_is_second:
        return _peak(low, first, square, variance, degrees), _peak(second, high, square, variance, degrees)
    peak = (
        _peak(low, first, square, variance, degrees)
        if lowest_is_first
        else _peak(second, high, square, variance, degrees)
    )
    return peak, peak


@kernel
def _fallen(x: float, share: float, top: float, square: float, variance: float, degrees: float) -> bool:
    """Whether the weight at x is negligible, also when multiplied by so many powers of 1/(g T)."""
    powers = share * math.log1p(variance * math.exp(x))
    return top - _log_weight(x, square, variance, degrees) + powers >= NEGLIGIBLE


@kernel
def _end(x: float, step: float, share: float, top: float, square: float, variance: float, degrees: float) -> float:
    """Where h has become negligible beside its top, seen from x in the direction of step."""
    inside = x
    for _ in range(SEARCH_STEPS):
        if _fallen(x + step, share, top, square, variance, degrees):
            break
        inside = x + step
        step *= 1.5
    outside = x + step
    for _ in range(4):
        middle = 0.5 * (inside + outside)
        if _fallen(middle, share, top, square, variance, degrees):
            outside = middle
        else:
            inside = middle
    return outside


@kernel
def _terms(
    x: float, top: float, best: float, square: float, variance: float, degrees: float
) -> tuple[float, float, float, float, float]:
    """Weight, and weight times e/T less that at the best g, its square, 1/T, and 1/(g T); best is 1/g there."""
    variable = math.exp(-x)
    total = variable + variance
    weight = math.exp(0.5 * (degrees * (x - math.expm1(x)) - math.log(total) - square / total) - top)
    pull = math.sqrt(square) / total * ((best - variable) / (best + variance))
    return weight, weight * pull, weight * pull * pull, weight / total, weight * (variable / total)


@kernel
def mixture_evidence(error: float, variance: float, degrees: float) -> tuple[float, float, float, float]:
    """log density of a standard t plus N(0, variance) at the error, slope and minus curvature in the mean, and kept."""
    square = error * error
    first, second = _peaks(square, variance, degrees)
    at_first = _log_weight(first, square, variance, degrees)
    at_second = _log_weight(second, square, variance, degrees)
    top = max(at_first, at_second)
    best = first if at_first >= at_second else second
    step = 4.0 / math.sqrt(1.0 + degrees)
    # The variance of e/T draws on smaller g than the weights themselves do.
    share_of_best = top - 2.0 * math.log1p(variance * math.exp(best))
    leftmost = first if at_first > top - NEGLIGIBLE else second
    rightmost = second if at_second > top - NEGLIGIBLE else first
    low = _end(leftmost, -step, 2.0, share_of_best, square, variance, degrees)
    high = _end(rightmost, step, 0.0, top, square, variance, degrees)
    best = math.exp(-best)

    points = FIRST_POINTS
    step = (high - low) / points
    s0, s1, s2, s3, s4 = _terms(low, top, best, square, variance, degrees)
    for i in range(1, points + 1):
        t0, t1, t2, t3, t4 = _terms(low + i * step, top, best, square, variance, degrees)
        s0, s1, s2, s3, s4 = s0 + t0, s1 + t1, s2 + t2, s3 + t3, s4 + t4
    for _ in range(HALVINGS):
        before = (2.0 * s0, 2.0 * s1, 2.0 * s2, 2.0 * s3, 2.0 * s4)
        for i in range(points):
            t0, t1, t2, t3, t4 = _terms(low + (i + 0.5) * step, top, best, square, variance, degrees)
            s0, s1, s2, s3, s4 = s0 + t0, s1 + t1, s2 + t2, s3 + t3, s4 + t4
        points *= 2
        step *= 0.5
        if (
            abs(s0 - before[0]) <= TOLERANCE * s0
            and abs(s1 - before[1]) <= TOLERANCE * (math.sqrt(s0 * s2) + abs(s1)) + TINY
            and abs(s2 - before[2]) <= TOLERANCE * s2 + TINY
            and abs(s3 - before[3]) <= TOLERANCE * s3
            and abs(s4 - before[4]) <= TOLERANCE * s4
        ):
            break

    shift = s1 / s0
    scatter = max(s2 / s0 - shift * shift, 0.0)
    log_mass = top + math.log(s0 * step) + 0.5 * math.log(0.5 * degrees) - 2.0 * LOG_SQRT_TWO_PI
    log_mass -= stirling_error(0.5 * degrees)
    return (
        log_mass,
        math.copysign(abs(error) / (best + variance) + shift, error),
        s3 / s0 - scatter,
        max(s4 / s0 + variance * scatter, TINY),
    )
