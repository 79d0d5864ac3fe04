"""The normal distribution far from its centre: log Phi(z), lambda = phi/Phi, k = lambda (lambda + z), and 1 - k.

    (log Phi)' = lambda      (log Phi)'' = -k      1 - k = variance of a standard normal known to lie below z

Everything follows from ``u(z)``: lambda where z is positive, lambda + z where it is not, which never cancels there.
k = u (u + |z|) on both sides. Up to `TAIL` on either side u and log Phi are a table of polynomials, which takes neither
an exponential nor a logarithm: half of a short example's time would go there. Beyond, on the lower side, u and 1 - k
are series in 1 / z^2. All are fitted here, at import, to the continued fraction of Mills' ratio and to scipy's
functions. Relative errors are below 1e-13 at every z.
"""

import math

import numpy as np
from numpy.polynomial import chebyshev
from scipy import special

from bayou.contracts import Array, Matrix, Vector
from bayou.numerics.jit import kernel

TAIL = 6.0
WITHIN = TAIL - 1e-9  # nearer to it, rounding may lead to a panel beyond the last
PANELS_PER_UNIT = 8.0
PANEL_DEGREE = 9
TAIL_DEGREE = 12
FARTHEST = 1e150  # whose square is still a number

TINY = 1e-300
LOG_SQRT_TWO_PI = 0.5 * math.log(2.0 * math.pi)
INVERSE_SQRT_TWO_PI = 1.0 / math.sqrt(2.0 * math.pi)

# Beyond this fall of the log density over an interval the closed forms of its moments no longer cancel.
NARROW_FALL = 2.0


def _continued_fraction(x: Vector, terms: int = 300) -> tuple[Vector, Vector]:
    """u and 1 - k at -x, for x >= 1."""
    e = np.zeros_like(x)
    for numerator in range(terms, 1, -1):
        e = numerator / (x + e)
    u = 1.0 / (x + e)
    return u, (e - u) / (x + e)


def _below_zero(x: Vector) -> tuple[Vector, Vector]:
    """log Phi and u at -x, for x >= 0."""
    near = math.sqrt(2.0 / math.pi) / special.erfcx(x / math.sqrt(2.0)) - x
    u = np.where(x < 1.0, near, _continued_fraction(np.maximum(x, 1.0))[0])
    return -0.5 * x * x - LOG_SQRT_TWO_PI - np.log(x + u), u


def _above_zero(z: Vector) -> tuple[Vector, Vector]:
    """log Phi and u, for z >= 0."""
    below = special.ndtr(-z)
    return np.log1p(-below), INVERSE_SQRT_TWO_PI * np.exp(-0.5 * z * z) / (1.0 - below)


def _fit(values: Vector) -> Vector:
    """Coefficients, lowest first, of the polynomial with these values at the Chebyshev points of [-1, 1]."""
    nodes = chebyshev.chebpts1(values.size)
    coefficients = chebyshev.chebvander(nodes, values.size - 1).T @ values * (2.0 / values.size)
    coefficients[0] /= 2.0
    powers = np.zeros(values.size)
    trimmed = chebyshev.cheb2poly(coefficients)
    powers[: trimmed.size] = trimmed
    return powers


def _fit_panels() -> Array:
    """For each panel of [-TAIL, TAIL]: one polynomial for log Phi, one for u."""
    offsets = 0.5 * (chebyshev.chebpts1(PANEL_DEGREE + 1) + 1.0)
    panels = []
    for start in np.arange(-TAIL * PANELS_PER_UNIT, TAIL * PANELS_PER_UNIT):
        z = (start + offsets) / PANELS_PER_UNIT
        panels.append([_fit(values) for values in (_below_zero(-z) if start < 0 else _above_zero(z))])
    return np.array(panels)


def _fit_tail() -> Matrix:
    """Polynomials in 2 (TAIL / x)^2 - 1 for x u and for x^2 (1 - k), at -x beyond TAIL."""
    x = TAIL / np.sqrt(0.5 * (chebyshev.chebpts1(TAIL_DEGREE + 1) + 1.0))
    u, kept = _continued_fraction(x)
    return np.array([_fit(x * u), _fit(x**2 * kept)])


_PANELS = _fit_panels()
_TAIL = _fit_tail()
_NODES, _WEIGHTS = (0.5 * array for array in np.polynomial.legendre.leggauss(12))
_NODES = _NODES + 0.5


@kernel
def _tail(row: int, x: float) -> float:
    t = 2.0 * (TAIL / x) ** 2 - 1.0
    total = _TAIL[row, TAIL_DEGREE]
    for j in range(TAIL_DEGREE - 1, -1, -1):
        total = total * t + _TAIL[row, j]
    return float(total)


@kernel
def _polynomial(panel: int, row: int, t: float) -> float:
    """By Estrin's scheme: pairs, and pairs of pairs, so that the sums need not wait for each other."""
    c = _PANELS[panel, row]
    t2 = t * t
    t4 = t2 * t2
    low = (c[0] + c[1] * t) + (c[2] + c[3] * t) * t2
    high = (c[4] + c[5] * t) + (c[6] + c[7] * t) * t2
    return low + (high + (c[8] + c[9] * t) * t4) * t4  # type: ignore[no-any-return]  # kernels return numbers


@kernel
def _place(z: float) -> tuple[int, float]:
    """The panel of z, and where in it: from -1 to 1."""
    panels = (z + TAIL) * PANELS_PER_UNIT
    panel = int(panels)
    return panel, 2.0 * (panels - panel) - 1.0


@kernel
def _lower_tail(x: float) -> tuple[float, float, float]:
    """lambda, k and 1 - k at -x, for x >= 0."""
    if x < WITHIN:
        panel, t = _place(-x)
        u = _polynomial(panel, 1, t)
        k = (x + u) * u
        return x + u, k, 1.0 - k
    u = _tail(0, x) / x
    return x + u, (x + u) * u, _tail(1, x) / x**2


@kernel
def normal_ratios(z: float) -> tuple[float, float, float, float]:
    """log Phi(z), lambda, k and 1 - k."""
    x = min(abs(z), FARTHEST)
    if x < WITHIN:
        panel, t = _place(z)
        u = _polynomial(panel, 1, t)
        k = u * (u + x)
        return _polynomial(panel, 0, t), u if z > 0.0 else u + x, k, 1.0 - k
    ratio, k, kept = _lower_tail(x)
    if z < 0.0:
        return -0.5 * x * x - LOG_SQRT_TWO_PI - math.log(ratio), ratio, k, kept
    density = INVERSE_SQRT_TWO_PI * math.exp(-0.5 * x * x)
    above = density / ratio
    ratio = density / (1.0 - above)
    k = ratio * (ratio + x)
    return math.log1p(-above), ratio, k, 1.0 - k


@kernel
def log_ndtr(z: float) -> float:
    """log Phi(z)."""
    return normal_ratios(z)[0]


@kernel
def _narrow_interval(start: float, width: float) -> tuple[float, float, float, float]:
    """A sum of positive terms, for intervals over which the density hardly changes."""
    mass = 0.0
    first = 0.0
    for i in range(_NODES.size):
        t = width * _NODES[i]
        weight = _WEIGHTS[i] * math.exp(-t * (start + 0.5 * t))
        mass += weight
        first += weight * t
    centre = first / mass
    second = 0.0
    for i in range(_NODES.size):
        t = width * _NODES[i]
        second += _WEIGHTS[i] * math.exp(-t * (start + 0.5 * t)) * (t - centre) ** 2
    spread = second / mass
    return -0.5 * start * start - LOG_SQRT_TWO_PI + math.log(width * mass), start + centre, 1.0 - spread, spread


@kernel
def _central_interval(start: float, width: float) -> tuple[float, float, float, float]:
    """An interval around zero that is not narrow: all terms of k are positive."""
    below, _, _, _ = normal_ratios(start)
    above, _, _, _ = normal_ratios(-start - width)
    outside = math.exp(below) + math.exp(above)
    mass = 1.0 - outside
    end = min(start + width, FARTHEST)
    start = max(start, -FARTHEST)
    left = INVERSE_SQRT_TWO_PI * math.exp(-0.5 * start * start) / mass
    right = INVERSE_SQRT_TWO_PI * math.exp(-0.5 * end * end) / mass
    centre = left - right
    k = centre * centre + end * right - start * left
    return math.log1p(-outside), centre, k, 1.0 - k


@kernel
def _tail_interval(start: float, width: float) -> tuple[float, float, float, float]:
    """An interval above zero: what is left of the tail beyond its start when the tail beyond its end is taken away."""
    near, _, near_kept = _lower_tail(start)
    far, _, far_kept = _lower_tail(min(start + width, FARTHEST))
    beyond = math.exp(-width * (start + 0.5 * width)) * (near / far)
    within = 1.0 - beyond
    centre = (near - beyond * far) / within
    apart = far - near
    spread = (near_kept - beyond * far_kept - (beyond * apart) * (apart / within)) / within
    spread = max(spread, TINY)
    log_mass = -0.5 * start * start - LOG_SQRT_TWO_PI - math.log(near) + math.log1p(-beyond)
    return log_mass, centre, 1.0 - spread, spread


@kernel
def interval_ratios(start: float, width: float) -> tuple[float, float, float, float]:
    """For a standard normal known to lie in (start, start + width): log of its chance, mean, 1 - variance, variance."""
    start = min(max(start, -FARTHEST), FARTHEST)
    width = max(min(width, FARTHEST), TINY)
    side = 1.0
    if start + 0.5 * width < 0.0:
        start = -(start + width)
        side = -1.0
    if width * (max(start, 0.0) + 0.5 * width) < NARROW_FALL and (start >= 0.0 or width < 1.0):
        log_mass, centre, k, kept = _narrow_interval(start, width)
    elif start >= 0.0:
        log_mass, centre, k, kept = _tail_interval(start, width)
    else:
        log_mass, centre, k, kept = _central_interval(start, width)
    return log_mass, side * centre, k, kept
