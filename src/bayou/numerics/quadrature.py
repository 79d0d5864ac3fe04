"""Averages over a normal latent of what has no closed form.

    log_evidence            log E p(y | f), its derivatives in the mean, and the variance left
    expected_log_density    E log p(y | f), its derivatives in the mean

The first finds the mode of p(y | f) N(f), then both ends where it has fallen by `NEGLIGIBLE` in the log; p must be
log-concave in f. Both then halve a trapezoid, which converges exponentially as long as the step resolves p. Where the
belief is so wide that p looks like a kink, adaptive Gauss-Kronrod takes over: it costs one panel per halving of scale.

Positions are offsets from the mean, since a narrow belief far from zero is below the resolution of f itself.
"""

import math
from typing import TypeAlias

import numpy as np

from bayou.contracts import Vector
from bayou.numerics.jit import kernel
from bayou.numerics.normal import LOG_SQRT_TWO_PI, TINY
from bayou.numerics.pointers import call_log_density

Sums: TypeAlias = tuple[float, float, float, float, float, float, float]
Frame: TypeAlias = tuple[bool, float, float, float, float, float]

NEGLIGIBLE = 38.0  # exp(-38) = 3e-17
SEARCH_STEPS = 200
FIRST_POINTS = 24
HALVINGS = 4
TRAPEZOID_TOLERANCE = 1e-11  # of the difference; the error of the finer sum is about the square of it
KRONROD_TOLERANCE = 1e-11
COARSEST_LEVEL = 3
FINEST_LEVEL = 48
MOST_PANELS = 2000
NOISE = 1e-290

_HALF_NODES = (0.991455371120812639206854697526329, 0.949107912342758524526189684047851, 0.864864423359769072789712788640926,
               0.741531185599394439863864773280788, 0.586087235467691130294144258693950, 0.405845151377397166906606412076961,
               0.207784955007898467600689403773245)  # fmt: skip
_HALF_KRONROD = (0.022935322010529224963732008058970, 0.063092092629978553290700663189204, 0.104790010322250183839876322541518,
                 0.140653259715525918745189590510238, 0.169004726639267902826583426598550, 0.190350578064785409913256402421014,
                 0.204432940075298892414161999234649)  # fmt: skip
_HALF_GAUSS = (0.0, 0.129484966168869693270611432679082, 0.0, 0.279705391489276667901467771423780,
               0.0, 0.381830050505118944950369775488975, 0.0)  # fmt: skip
_NODES = np.array([*(-node for node in _HALF_NODES), 0.0, *_HALF_NODES[::-1]])
_KRONROD = np.array([*_HALF_KRONROD, 0.209482141084727828012999174891714, *_HALF_KRONROD[::-1]])
_GAUSS = np.array([*_HALF_GAUSS, 0.417959183673469387755102040816327, *_HALF_GAUSS[::-1]])


@kernel
def _add(a: Sums, b: Sums, factor: float) -> Sums:
    return (
        a[0] + factor * b[0],
        a[1] + factor * b[1],
        a[2] + factor * b[2],
        a[3] + factor * b[3],
        a[4] + factor * b[4],
        a[5] + factor * b[5],
        a[6] + factor * b[6],
    )


@kernel
def _agree(a: Sums, b: Sums, scale: Sums, spread: float, tolerance: float) -> bool:
    """Whether two estimates are equal, each sum on the scale of what it is a mean of."""
    first = math.sqrt(scale[0] * scale[2]) + abs(scale[1])
    second = math.sqrt(scale[0] * scale[4]) + abs(scale[3])
    return (
        abs(a[0] - b[0]) <= tolerance * scale[0]
        and abs(a[1] - b[1]) <= tolerance * first + NOISE
        and abs(a[2] - b[2]) <= tolerance * scale[2] + NOISE
        and abs(a[3] - b[3]) <= tolerance * second + NOISE
        and abs(a[4] - b[4]) <= tolerance * scale[4] + NOISE
        and abs(a[5] - b[5]) <= tolerance * (abs(scale[5]) + second / spread) + NOISE
        and abs(a[6] - b[6]) <= tolerance * (spread * first + abs(scale[6])) + NOISE
    )


@kernel
def _terms(kernels: Vector, y: float, params: Vector, frame: Frame, x: float) -> Sums:
    """What is summed at one offset: a weight, two quantities with their squares, minus the curvature, a product.

    Under the posterior of f (tilted), the offset and the slope; under the prior, the slope and the log density.
    """
    tilted, mean, variance, centre, peak, slope_at_centre = frame
    log_density, slope, curvature = call_log_density(kernels, y, mean + x, params)
    log_weight = -0.5 * x * (x / variance)
    if tilted:
        weight = math.exp(min(log_density + log_weight - peak, 1.0))
        if weight == 0.0:
            return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        first = x - centre
        second = slope - slope_at_centre
        product = 0.0
    else:
        weight = math.exp(log_weight)
        first = slope
        second = log_density
        product = weight * x * slope
    return (
        weight,
        weight * first,
        weight * first * first,
        weight * second,
        weight * second * second,
        weight * curvature,
        product,
    )


@kernel
def _trapezoid(kernels: Vector, y: float, params: Vector, frame: Frame, low: float, high: float) -> tuple[bool, Sums]:
    """Whether halving the step changed nothing any more, and the integrals."""
    points = FIRST_POINTS
    step = (high - low) / points
    total = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for i in range(points + 1):
        total = _add(total, _terms(kernels, y, params, frame, low + i * step), 1.0)
    spread = math.sqrt(frame[2])
    for _ in range(HALVINGS):
        finer = total
        for i in range(points):
            finer = _add(finer, _terms(kernels, y, params, frame, low + (i + 0.5) * step), 1.0)
        converged = _agree(_add(total, total, 1.0), finer, finer, spread, TRAPEZOID_TOLERANCE)
        total = finer
        points *= 2
        step *= 0.5
        if converged:
            return True, _add((0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0), total, step)
    return False, _add((0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0), total, step)


@kernel
def _adaptive(
    kernels: Vector, y: float, params: Vector, frame: Frame, low: float, high: float, scale: Sums
) -> Sums:
    """Gauss-Kronrod on panels that are halved until each is good enough, visited from low to high without a stack."""
    total = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    spread = math.sqrt(frame[2])
    level = 0
    index = 0
    panels = 0
    while level > 0 or index == 0:
        half = 0.5 * math.ldexp(high - low, -level)
        middle = low + (2 * index + 1) * half
        kronrod = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        gauss = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        if level >= COARSEST_LEVEL:
            for i in range(_NODES.size):
                terms = _terms(kernels, y, params, frame, middle + half * _NODES[i])
                kronrod = _add(kronrod, terms, half * _KRONROD[i])
                gauss = _add(gauss, terms, half * _GAUSS[i])
            panels += 1
        resolved = _agree(kronrod, gauss, scale, spread, KRONROD_TOLERANCE) or panels > MOST_PANELS
        if level < COARSEST_LEVEL or not (resolved or level >= FINEST_LEVEL):
            level += 1
            index *= 2
            continue
        total = _add(total, kronrod, 1.0)
        index += 1
        while level > 0 and index % 2 == 0:
            level -= 1
            index //= 2
    return total


@kernel
def _integrate(kernels: Vector, y: float, params: Vector, frame: Frame, low: float, high: float) -> tuple[bool, Sums]:
    """Whether the trapezoid was enough, and the integrals."""
    converged, sums = _trapezoid(kernels, y, params, frame, low, high)
    if not converged:
        sums = _adaptive(kernels, y, params, frame, low, high, sums)
    return converged, sums


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
    x = far
    for _ in range(SEARCH_STEPS):  # Newton, kept between what is known to be on either side
        gradient = slope - precision * x
        stiffness = precision + curvature
        if gradient * gradient <= 1e-4 * stiffness:
            break
        if (gradient > 0.0) == rising:
            near = x
        else:
            far = x
        x += gradient / stiffness
        if not min(near, far) < x < max(near, far):
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
    smooth, sums = _integrate(kernels, y, params, frame, low, high)

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
    smooth, sums = _integrate(kernels, y, params, frame, -end, end)
    curvature = sums[5] / sums[0]
    if not smooth:  # by parts: a kink has a slope on either side, but its curvature falls between the nodes
        curvature = -sums[6] / sums[0] / variance
    return sums[3] / sums[0], sums[1] / sums[0], curvature
