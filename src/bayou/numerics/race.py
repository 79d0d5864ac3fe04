"""The Gumbel race: expectations of a softmax of independent Gaussians, each as one integral over a line.

With standard Gumbel ``G_c``, class c has the largest ``f_c + G_c`` with probability ``softmax_c(f)``. So

    E p_y = e^(m_y + v_y/2) * integral du e^-u prod_c H(u; a_c, v_c)      a_c = m_c + v_c [c = y]
    E p_c = integral du h(u; m_c, v_c) prod_{j != c} H(u; m_j, v_j)       H(u; a, v) = E_{f ~ N(a, v)} exp(-e^(f - u))

where H is the cdf of ``f + G`` and ``h = H'``; the first is the second, with ``N(m_y, v_y)`` tilted by ``e^f``, which
keeps unlikely classes exact. Means enter through the factors alone, so one pass over u gives all derivatives. The
integrands are log-concave in (u, f): they have one mode, away from which they fall at least as fast as the prior.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.polynomial.hermite_e import hermegauss

from bayou.contracts import Matrix, Vector
from bayou.numerics.jit import kernel, vectorized_kernel

EULER = 0.5772156649015329
HALF_LOG_TAU = 0.9189385332046727
DEPTH = 28.0  # what is so many nats below the mode is not integrated
DEVIATIONS = 7.5  # of the prior of f, on either side of the mode: the same depth

# The grid of u: so many steps from the left edge to the mode, growing geometrically once past it. On the left the
# integrand falls doubly exponentially, and whatever is of width w is within some 10 w of that edge, or flat by then.
STEPS_TO_MODE = 12.0
STEPS_BEFORE_GROWTH = 15.0
GROWTH = 0.15
NARROWEST_STEP = 0.27
LARGEST_GRID = 192

# Rows of scratch: e^-u, 1 - e^-x, H, h, h + h'. One array with fixed distances shows the compiler that they are apart.
MISSING, HIT, ONCE, TWICE, SCRATCH = (row * LARGEST_GRID for row in (1, 2, 3, 4, 5))

NARROW = (0.03, 0.1, 0.2)  # up to these deviations of f, Hermite rules
ORDERS = (4, 6, 10)  # of these orders are good to 1e-10
WIDE = 12.0  # from this deviation on, a Gauss rule for the Gumbel is


def gauss_gumbel(order: int) -> tuple[Vector, Vector]:
    """Gauss rule for the standard Gumbel: Lanczos on a fine trapezoid, then eigenvalues of the Jacobi matrix."""
    grid = np.linspace(-5.0, 45.0, 2001)
    root = np.exp(-0.5 * (grid + np.exp(-grid)))
    basis = [root / np.linalg.norm(root)]
    diagonal, beside = [], []
    for _ in range(order):
        image = grid * basis[-1]
        diagonal.append(basis[-1] @ image)
        for vector in basis + basis:  # Gram-Schmidt once would leave rounding errors that grow with the order
            image = image - (vector @ image) * vector
        beside.append(np.linalg.norm(image))
        basis.append(image / beside[-1])
    nodes, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside[:-1], 1) + np.diag(beside[:-1], -1))
    return nodes, vectors[0] ** 2


def _gauss_hermite() -> tuple[Matrix, Matrix]:
    nodes, weights = np.zeros((len(ORDERS), max(ORDERS))), np.zeros((len(ORDERS), max(ORDERS)))
    for row, order in enumerate(ORDERS):
        nodes[row, :order], weights[row, :order] = hermegauss(order)
    return nodes, weights / weights.sum(axis=1, keepdims=True)


GUMBEL_NODES, GUMBEL_WEIGHTS = gauss_gumbel(14)
HERMITE_NODES, HERMITE_WEIGHTS = _gauss_hermite()


@kernel
def _share(excess: float, variance: float) -> float:
    """The p with ``variance * p + log p = excess``: Lambert's function, by Fritsch's Newton of fourth order."""
    if variance < 1e-200:
        return math.exp(min(excess, 500.0))
    level = excess + math.log(variance)
    if level < -30.0:
        return math.exp(excess)
    w = level - math.log(level) if level > 1.0 else math.exp(level) / (1.0 + math.exp(level))
    for _ in range(2):
        gap = level - w - math.log(w)
        bend = 2.0 * (1.0 + w) * (1.0 + w + gap * (2.0 / 3.0))
        w *= 1.0 + gap / (1.0 + w) * (bend - gap) / (bend - 2.0 * gap)
    return w / variance


@kernel
def _profile(u: float, tilt: float, centres: Vector, variances: Vector) -> tuple[float, float, float]:
    """max over f of log prod_c N(f_c) exp(-e^(f_c - u)), less tilt * u; its slope in u; minus its curvature."""
    height, slope, curvature = -tilt * u, -tilt, 0.0
    for c in range(centres.size):
        p = _share(centres[c] - u, variances[c])
        height -= p * (1.0 + 0.5 * variances[c] * p)
        slope += p
        curvature += p / (1.0 + variances[c] * p)
    return height, slope, curvature


@kernel
def _mode(centres: Vector, variances: Vector) -> tuple[float, float]:
    """Where the profile with tilt 1 is largest, and how large: the shares of all classes sum to one there."""
    k = centres.size
    low, high = -np.inf, -np.inf
    for c in range(k):
        low = max(low, centres[c] - variances[c])  # its share is one
        high = max(high, centres[c] - variances[c] / k + math.log(k))  # every share is at most 1 / k
    u, height = low, 0.0
    for _ in range(60):
        height, slope, curvature = _profile(u, 1.0, centres, variances)
        if abs(slope) < 0.01:
            break
        if slope > 0.0:
            low = u
        else:
            high = u
        u += math.log1p(slope) * (1.0 + slope) / curvature  # the log of the sum of shares is near linear
        if not low < u < high:
            u = 0.5 * (low + high)
    return u, height


@kernel
def _edge(
    step: float, origin: float, top: float, depth: float, tilt: float, centres: Vector, variances: Vector
) -> tuple[float, float]:
    """Where, going from the origin to the side of the step, the profile has fallen so deep, and how steep it is there.

    Newton between brackets, on the root of the depth, linear in the distance for a Gaussian, or from far outside on
    its logarithm, linear for a Gumbel. A few rounds do, as an edge that is somewhat too deep serves as well.
    """
    side = 1.0 if step > 0.0 else -1.0
    distance, steepness, low, high = abs(step), 0.0, 0.0, np.inf
    for attempt in range(60):
        height, slope, _ = _profile(origin + side * distance, tilt, centres, variances)
        gap, steepness = top - height, -side * slope
        if 0.95 * depth <= gap <= 1.2 * depth:
            break
        if gap > depth:
            high = distance
        else:
            low = distance
        if gap > 2.0 * depth:
            distance += gap * math.log(depth / gap) / steepness
        elif gap > 0.0 and steepness > 0.0:
            distance += 2.0 * gap * (math.sqrt(depth / gap) - 1.0) / steepness
        if high < np.inf and (attempt % 3 == 2 or not low < distance < high):
            distance = 0.5 * (low + high)
        elif not distance > low:
            distance = 2.0 * low
    return origin + side * distance, abs(steepness)


@kernel
def _grid(left: float, mode: float, right: float, steepness: float) -> Matrix:
    """Rows: the points of the grid, and how much of the line each stands for."""
    # A steep edge far left of the mode is that of a narrow class under a wide one. It needs narrow steps, if not
    # narrower than suit the Gumbel; and these must not have outgrown the wide class by the time they get there.
    wide_step = (mode - left) / STEPS_TO_MODE
    step = min(wide_step, max(NARROWEST_STEP, 4.0 / steepness))
    rate = GROWTH if step > 0.5 * wide_step else GROWTH / 1.5
    growth = math.exp(-rate * STEPS_BEFORE_GROWTH)
    origin = left - step * growth / rate
    grid = np.empty((2, LARGEST_GRID))
    n = 0
    while n == 0 or (n < LARGEST_GRID and grid[0, n - 1] < right):
        grid[0, n] = origin + step * (n + growth / rate)
        grid[1, n] = step * (1.0 + growth)
        growth *= math.exp(rate)
        n += 1
    return grid[:, :n].copy()


@vectorized_kernel
def _missing(x: float) -> float:
    """1 - e^-x for 0 <= x <= 40, by Taylor at x / 1024 and doubling: unlike calls of expm1, many at once."""
    x *= 0.0009765625
    missing = x * (1.0 - x / 2.0 * (1.0 - x / 3.0 * (1.0 - x / 4.0 * (1.0 - x / 5.0 * (1.0 - x / 6.0)))))
    for _ in range(10):
        missing *= 2.0 - missing
    return missing


@vectorized_kernel
def _narrow(n: int, offset: float, deviation: float, scratch: Vector) -> None:
    """H, h and h + h' of a class whose deviation is small beside the Gumbel's: a Hermite rule in f."""
    row = 0
    while deviation > NARROW[row]:
        row += 1
    for node in range(ORDERS[row] if deviation > 0.0 else 1):
        weight = HERMITE_WEIGHTS[row, node] if deviation > 0.0 else 1.0
        scale = math.exp(min(offset + deviation * HERMITE_NODES[row, node], 500.0))
        for i in range(n):
            x = scale * scratch[i]
            term = weight * (1.0 - _missing(min(x, 40.0))) if x < 40.0 else 0.0
            scratch[HIT + i] += term
            term *= x
            scratch[ONCE + i] += term
            scratch[TWICE + i] += term * x


@vectorized_kernel
def _middle(n: int, offset: float, variance: float, pull: float, scratch: Vector) -> None:
    """H, h and h + h' by the trapezoid rule in f, around the mode, where the log prior falls by ``pull`` per unit of f.

    The step divides log 2, so that ``x = e^(f - u)`` doubles every so many nodes and ``1 - e^-x`` follows from
    ``1 - e^-2x = (1 - e^-x) (1 + e^-x)`` without an exponential.
    """
    deviation = math.sqrt(variance)
    chains = 2 if deviation >= 2.0 else 3 if deviation >= 0.4 else 4
    step = math.log(2.0) / chains
    last = int(DEVIATIONS * deviation / step) + 1
    for chain in range(chains):
        scale = math.exp(min(offset + (chain - last) * step, 500.0))
        for i in range(n):
            scratch[MISSING + i] = _missing(min(scale * scratch[i], 40.0))
        for node in range(chain - last, last + 1, chains):
            away = node * step
            weight = step / deviation * math.exp(-0.5 * away * away / variance - away * pull - HALF_LOG_TAU)
            for i in range(n):
                x = scale * scratch[i]
                missing = scratch[MISSING + i]
                # Past x = 40 rounding would keep 1 - missing from vanishing while x goes on doubling.
                term = weight * (1.0 - missing) if x < 40.0 else 0.0
                scratch[HIT + i] += term
                term *= x
                scratch[ONCE + i] += term
                scratch[TWICE + i] += term * x
                scratch[MISSING + i] = missing * (2.0 - missing)
            scale *= 2.0


@kernel
def _wide(points: Vector, centre: float, variance: float, exponent: Vector, scratch: Vector) -> None:
    """H, h and h + h' of a class beside which the Gumbel is narrow, each over an e^exponent that is added to."""
    deviation = math.sqrt(variance)
    for i in range(points.size):
        middle = min((points[i] - EULER - centre) / deviation, 0.0)
        exponent[i] -= 0.5 * middle * middle
        scale = math.exp(0.5 * min(middle * middle, 1000.0))
        for node in range(GUMBEL_NODES.size):
            z = (points[i] - GUMBEL_NODES[node] - centre) / deviation
            density = GUMBEL_WEIGHTS[node] * math.exp(0.5 * (middle - z) * (middle + z) - HALF_LOG_TAU)
            if z > -20.0:
                scratch[HIT + i] += 0.5 * GUMBEL_WEIGHTS[node] * scale * math.erfc(-z * math.sqrt(0.5))
            else:
                ratio = -z  # of density to tail, by its continued fraction
                for n in range(8, 0, -1):
                    ratio = n / ratio - z
                scratch[HIT + i] += density / ratio
            density /= deviation
            scratch[ONCE + i] += density
            scratch[TWICE + i] += density * (1.0 - z / deviation)


@kernel
def _factors(grid: Matrix, centres: Vector, modes: Vector, variances: Vector, exponent: Vector) -> Matrix:
    """Per class three rows, H, h and h' on the grid; all factors together are still to be multiplied by e^exponent."""
    n, left = exponent.size, grid[0, 0]
    factors = np.empty((3 * centres.size, n))
    scratch = np.empty(SCRATCH)
    for i in range(n):
        scratch[i] = math.exp(left - grid[0, i])
    for c in range(centres.size):
        scratch[HIT:] = 0.0
        deviation = math.sqrt(variances[c])
        if deviation <= NARROW[-1]:
            _narrow(n, centres[c] - left, deviation, scratch)
        elif deviation <= WIDE:
            pull = (modes[c] - centres[c]) / variances[c]
            _middle(n, modes[c] - left, variances[c], pull, scratch)
            exponent -= 0.5 * variances[c] * pull * pull
        else:
            _wide(grid[0], centres[c], variances[c], exponent, scratch)
        for i in range(n):
            factors[3 * c, i] = scratch[HIT + i]
            factors[3 * c + 1, i] = scratch[ONCE + i]
            factors[3 * c + 2, i] = scratch[TWICE + i] - scratch[ONCE + i]
    return factors


@kernel
def race_evidence(winner: int, mean: Vector, variance: Vector, slope: Vector, curvature: Vector) -> float:
    """log E p_winner; writes its slope and minus its curvature in each mean."""
    centres, modes = mean.copy(), np.empty(mean.size)
    centres[winner] += variance[winner]
    mode, top = _mode(centres, variance)
    left, steepness = _edge(-3.0, mode, top, DEPTH, 1.0, centres, variance)
    right, _ = _edge(DEPTH, mode, top, DEPTH, 1.0, centres, variance)
    grid = _grid(left, mode, right, steepness)
    for c in range(mean.size):
        modes[c] = centres[c] - variance[c] * _share(centres[c] - mode, variance[c])
    exponent = mean[winner] - grid[0] + 0.5 * variance[winner]
    factors = _factors(grid, centres, modes, variance, exponent)

    top, evidence = float(np.max(exponent)), 0.0
    slope[:] = 0.0
    curvature[:] = 0.0
    for i in range(exponent.size):
        part = grid[1, i] * math.exp(exponent[i] - top)
        for c in range(mean.size):
            part *= factors[3 * c, i]
        if part > 0.0:
            evidence += part
            for c in range(mean.size):
                first, second = factors[3 * c + 1, i] / factors[3 * c, i], factors[3 * c + 2, i] / factors[3 * c, i]
                slope[c] -= part * first
                curvature[c] -= part * (second if c != winner else 1.0 - 2.0 * first + second)
    slope[winner] = 0.0
    slope /= evidence
    slope[winner] = -np.sum(slope)  # shifting all means changes nothing; this is right even where it is all but 0
    for c in range(mean.size):
        curvature[c] = max(curvature[c] / evidence + slope[c] * slope[c], 0.0)
    return min(math.log(evidence) + top, 0.0)


@kernel
def race_shares(mean: Vector, variance: Vector, probability: Vector, curvature: Vector) -> float:
    """E log sum e^f; writes E p_c, and its derivative E p_c (1 - p_c) in the mean of c."""
    origin = np.max(mean) + math.log(mean.size)
    mode, _ = _edge(-1.0, origin, 0.0, 1.0, 0.0, mean, variance)
    left, steepness = _edge(-3.0, mode, 0.0, DEPTH, 0.0, mean, variance)
    grid = _grid(left, mode, np.max(mean + DEVIATIONS * np.sqrt(variance)) + DEPTH, steepness)
    exponent = np.zeros(grid.shape[1])
    factors = _factors(grid, mean, mean, variance, exponent)

    total = expected = 0.0
    probability[:] = 0.0
    curvature[:] = 0.0
    for i in range(exponent.size):
        part = grid[1, i] * math.exp(exponent[i])
        for c in range(mean.size):
            part *= factors[3 * c, i]
        if part > 0.0:
            for c in range(mean.size):
                first = part * factors[3 * c + 1, i] / factors[3 * c, i]
                probability[c] += first
                curvature[c] -= part * factors[3 * c + 2, i] / factors[3 * c, i]
                total += first
                expected += first * (grid[0, i] - origin)
    probability /= total
    for c in range(mean.size):
        curvature[c] = max(curvature[c] / total, 0.0)
    return origin + expected / total - EULER
