"""The normal distribution far from its centre: log Phi(z), lambda = phi/Phi, k = lambda (lambda + z), and 1 - k.

    (log Phi)' = lambda      (log Phi)'' = -k      1 - k = variance of a standard normal known to lie below z

Everything follows from ``w(x) = lambda(-x) - x`` for x >= 0, which never cancels: lambda(-x) = x + w. Below `TAIL` it
is a table of polynomials; beyond, w and 1 - k are series in 1 / x^2. Both are fitted here, at import, to the continued
fraction of Mills' ratio. Relative errors are below 1e-13 at every z.
"""

import math

import numpy as np
from numpy.polynomial import chebyshev
from scipy import special

from bayou.contracts import Matrix, Vector
from bayou.numerics.jit import kernel

TAIL = 6.0
PANELS_PER_UNIT = 8.0
PANEL_DEGREE = 7
TAIL_DEGREE = 12
FARTHEST = 1e150  # whose square is still a number

TINY = 1e-300
LOG_SQRT_TWO_PI = 0.5 * math.log(2.0 * math.pi)
INVERSE_SQRT_TWO_PI = 1.0 / math.sqrt(2.0 * math.pi)

# Beyond this fall of the log density over an interval the closed forms of its moments no longer cancel.
NARROW_FALL = 2.0


def _continued_fraction(x: Vector, terms: int = 300) -> tuple[Vector, Vector]:
    """w(x) and 1 - k(-x), for x >= 1."""
    e = np.zeros_like(x)
    for numerator in range(terms, 1, -1):
        e = numerator / (x + e)
    w = 1.0 / (x + e)
    return w, (e - w) / (x + e)


def _excess(x: Vector) -> Vector:
    """w(x), for x >= 0."""
    from_erfcx = math.sqrt(2.0 / math.pi) / special.erfcx(x / math.sqrt(2.0)) - x
    return np.where(x < 1.0, from_erfcx, _continued_fraction(np.maximum(x, 1.0))[0])


def _fit(values: Vector) -> Vector:
    """Coefficients, lowest first, of the polynomial with these values at the Chebyshev points of [-1, 1]."""
    nodes = chebyshev.chebpts1(values.size)
    coefficients = chebyshev.chebvander(nodes, values.size - 1).T @ values * (2.0 / values.size)
    coefficients[0] /= 2.0
    powers = np.zeros(values.size)
    trimmed = chebyshev.cheb2poly(coefficients)
    powers[: trimmed.size] = trimmed
    return powers


def _fit_panels() -> Matrix:
    """One polynomial for w per panel of [0, TAIL]."""
    offsets = 0.5 * (chebyshev.chebpts1(PANEL_DEGREE + 1) + 1.0)
    starts = np.arange(TAIL * PANELS_PER_UNIT)
    return np.array([_fit(_excess((start + offsets) / PANELS_PER_UNIT)) for start in starts])


def _fit_tail() -> Matrix:
    """Polynomials in 2 (TAIL / x)^2 - 1 for x w and for x^2 (1 - k), for x beyond TAIL."""
    x = TAIL / np.sqrt(0.5 * (chebyshev.chebpts1(TAIL_DEGREE + 1) + 1.0))
    w, kept = _continued_fraction(x)
    return np.array([_fit(x * w), _fit(x**2 * kept)])


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
def _lower_tail(x: float) -> tuple[float, float, float]:
    """lambda, k and 1 - k at -x, for x >= 0."""
    if x < TAIL:
        panel = int(x * PANELS_PER_UNIT)
        t = 2.0 * (x * PANELS_PER_UNIT - panel) - 1.0
        w = _PANELS[panel, PANEL_DEGREE]
        for j in range(PANEL_DEGREE - 1, -1, -1):
            w = w * t + _PANELS[panel, j]
        k = (x + w) * w
        return x + w, k, 1.0 - k
    w = _tail(0, x) / x
    return x + w, (x + w) * w, _tail(1, x) / x**2


@kernel
def normal_ratios(z: float) -> tuple[float, float, float, float]:
    """log Phi(z), lambda, k and 1 - k."""
    x = min(abs(z), FARTHEST)
    ratio, k, kept = _lower_tail(x)
    if z <= 0.0:
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
