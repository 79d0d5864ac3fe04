"""Averages over a normal latent of what has no closed form.

    log_evidence            log E p(y | f), its derivatives in the mean, and the variance left
    expected_log_density    E log p(y | f), its derivatives in the mean

The first finds the mode of p(y | f) N(f), then both ends where it has fallen by `NEGLIGIBLE` in the log: p must be
log-concave in f. The second takes any smooth p.
"""

import math

from bayou.contracts import Vector
from bayou.numerics.integrals import Frame, integrate
from bayou.numerics.jit import kernel
from bayou.numerics.normal import LOG_SQRT_TWO_PI, TINY
from bayou.numerics.pointers import call_log_density

NEGLIGIBLE = 38.0  # exp(-38) = 3e-17
SEARCH_STEPS = 200


@kernel
def _mode(kernels: Vector, y: float, mean: float, variance: float, params: Vector) -> float:
    """Offset at which p(y | f) N(f) is largest, to a small fraction of its width."""
    precision = 1.0 / variance
    _, slope, curvature = call_log_density(kernels, y, mean, params)
    near = 0.0
    far = slope / (precision + curvature)
    if far == 0.0:
        return 0.0
    rising = slope > 0.0
    for _ in range(SEARCH_STEPS):  # double the step until the mode is behind it
        _, slope, curvature = call_log_density(kernels, y, mean + far, params)
        if (slope - precision * far > 0.0) != rising:
            break
        near = far
        far *= 2.0
    x: float = far
    for i in range(SEARCH_STEPS):  # Newton, kept between what is known to be on either side
        gradient = slope - precision * x
        stiffness = precision + curvature
        if abs(gradient) <= 0.01 * math.sqrt(stiffness):
            break
        if (gradient > 0.0) == rising:
            near = x
        else:
            far = x
        x += gradient / stiffness
        if i % 3 == 2 or not min(near, far) < x < max(near, far):  # Newton alone creeps down an exponential
            x = 0.5 * (near + far)
        _, slope, curvature = call_log_density(kernels, y, mean + x, params)
    return x


@kernel
def _reach(kernels: Vector, y: float, params: Vector, frame: Frame, width: float) -> float:
    """How far from the centre, on the side of width's sign, p(y | f) N(f) has become negligible."""
    _, mean, variance, centre, peak, _ = frame
    inside = 0.0
    outside = math.inf
    t = 9.0 * width
    for _ in range(SEARCH_STEPS):
        x = centre + t
        fall = peak + 0.5 * x * (x / variance) - call_log_density(kernels, y, mean + x, params)[0]
        guess = t * math.sqrt((NEGLIGIBLE + 4.0) / max(fall, 1.0))  # exact for a normal
        if fall < NEGLIGIBLE:
            inside = abs(t)
        else:
            outside = abs(t)
            if fall < 1.5 * NEGLIGIBLE or outside - inside < 0.05 * outside:
                break
        if outside == math.inf:
            size = min(max(abs(guess), 1.2 * inside), 4.0 * inside)
        else:
            margin = 0.2 * (outside - inside)
            size = min(max(abs(guess), inside + margin), outside - margin)
        t = math.copysign(size, width)
    return t


@kernel
def log_evidence_by_quadrature(
    kernels: Vector, y: float, mean: float, variance: float, params: Vector
) -> tuple[float, float, float, float]:
    """log E p(y | f), slope and minus curvature in the mean, and the variance left, for a log-concave p."""
    if variance < TINY:
        log_density, slope, curvature = call_log_density(kernels, y, mean, params)
        return log_density, slope, curvature, 1.0
    centre = _mode(kernels, y, mean, variance, params)
    log_density, slope, curvature = call_log_density(kernels, y, mean + centre, params)
    peak = log_density - 0.5 * centre * (centre / variance)
    frame = (True, mean, variance, centre, peak, slope)
    width = 1.0 / math.sqrt(1.0 / variance + curvature)
    low = centre + _reach(kernels, y, params, frame, -width)
    high = centre + _reach(kernels, y, params, frame, width)
    smooth, sums = integrate(kernels, y, params, frame, low, high)

    log_mass = peak + math.log(sums[0]) - LOG_SQRT_TWO_PI - 0.5 * math.log(variance)
    offset = sums[1] / sums[0]
    kept = min(max((sums[2] / sums[0] - offset * offset) / variance, TINY), 1.0)
    if smooth and kept > 0.5:  # otherwise the slope varies more than (f - mean) / variance, and the moments are better
        extra = sums[3] / sums[0]
        precision = max(sums[5] / sums[0] - (sums[4] / sums[0] - extra * extra), 0.0)
        return log_mass, slope + extra, precision, 1.0 - variance * precision
    return log_mass, (centre + offset) / variance, (1.0 - kept) / variance, kept


@kernel
def expected_log_density_by_quadrature(
    kernels: Vector, y: float, mean: float, variance: float, params: Vector
) -> tuple[float, float, float]:
    """E log p(y | f), its slope, and minus its curvature, in the mean, for any smooth p."""
    if variance < TINY:
        at_mean: tuple[float, float, float] = call_log_density(kernels, y, mean, params)
        return at_mean
    frame = (False, mean, variance, 0.0, 0.0, 0.0)
    end = 9.5 * math.sqrt(variance)
    smooth, sums = integrate(kernels, y, params, frame, -end, end)
    curvature = sums[5] / sums[0]
    if not smooth:  # by parts: a kink has a slope on either side, but its curvature falls between the nodes
        curvature = -sums[6] / sums[0] / variance
    return sums[3] / sums[0], sums[1] / sums[0], curvature
