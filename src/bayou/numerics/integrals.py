"""Integrals over f of p(y | f) N(f), and of log p(y | f) N(f), with what their derivatives need, in one go.

A trapezoid is halved until it has converged, which it does exponentially as long as its step resolves p. Where the
belief is so wide that p looks like a kink, adaptive Clenshaw-Curtis takes over: it costs one panel per halving of
scale. It has nodes at both ends of a panel, so that no kink can hide between a panel's end and its first node.

Positions are offsets from the mean, since a narrow belief far from zero is below the resolution of f itself.
"""

import math
from typing import TypeAlias

import numpy as np

from bayou.contracts import Vector
from bayou.numerics.jit import kernel
from bayou.numerics.pointers import call_log_density

# See `_terms`.
Sums: TypeAlias = tuple[float, float, float, float, float, float, float]

# Whether tilted by p, mean, variance, centre, log of p N there, slope of log p there.
Frame: TypeAlias = tuple[bool, float, float, float, float, float]

FIRST_POINTS = 32
HALVINGS = 4
TRAPEZOID_TOLERANCE = 1e-7  # of the difference; the error of the finer sum is about the square of it
PANEL_TOLERANCE = 1e-10  # of the difference to the coarser rule
COARSEST_LEVEL = 3
FINEST_LEVEL = 48
MOST_PANELS = 2000
NOISE = 1e-290
ROUNDING = 1e-13


def _clenshaw_curtis(panels: int) -> tuple[Vector, Vector]:
    """Nodes cos(k pi / panels) and weights on [-1, 1]."""
    angles = np.pi * np.arange(panels + 1) / panels
    even = np.arange(0, panels + 1, 2)
    halved = np.where((even == 0) | (even == panels), 0.5, 1.0)
    weights = 2.0 / panels * (np.cos(np.outer(angles, even)) @ (halved * 2.0 / (1.0 - even**2.0)))
    weights[[0, -1]] *= 0.5
    return np.cos(angles), weights


_NODES, _WEIGHTS = _clenshaw_curtis(16)
_COARSE_WEIGHTS = np.zeros_like(_WEIGHTS)  # the rule on every second node
_COARSE_WEIGHTS[::2] = _clenshaw_curtis(8)[1]


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
def _scales(sums: Sums, tilted: bool) -> tuple[float, float]:
    """How large the two quantities are that are averaged, whatever of them cancels."""
    if tilted:
        return math.sqrt(sums[0] * sums[2]) + abs(sums[1]), math.sqrt(sums[0] * sums[4]) + abs(sums[3])
    return sums[2], sums[4]


@kernel
def _agree(a: Sums, b: Sums, frame: Frame, tolerance: float) -> bool:
    """Whether two estimates of the integrals are equal."""
    tilted, spread = frame[0], math.sqrt(frame[2])
    first, second = _scales(b, tilted)
    second += b[0] * abs(frame[5])  # beside the slope at the centre, its variation may be mere rounding
    return (
        abs(a[0] - b[0]) <= tolerance * b[0]
        and abs(a[1] - b[1]) <= tolerance * first + NOISE
        and abs(a[3] - b[3]) <= tolerance * second + NOISE
        and abs(a[5] - b[5]) <= tolerance * abs(b[5]) + NOISE
        and abs(a[6] - b[6]) <= tolerance * spread * first + NOISE
        and (not tilted or abs(a[2] - b[2]) <= tolerance * b[2] + NOISE)
        and (not tilted or abs(a[4] - b[4]) <= tolerance * (b[4] + abs(b[5])) + NOISE)
    )


@kernel
def _moments_agree(a: Sums, b: Sums, scale: Sums, frame: Frame) -> bool:
    """The same for those integrals that are used where p looks like a kink: not those that live in the kink alone."""
    tilted, spread = frame[0], math.sqrt(frame[2])
    first, second = _scales(scale, tilted)
    return (
        abs(a[0] - b[0]) <= PANEL_TOLERANCE * scale[0]
        and abs(a[1] - b[1]) <= PANEL_TOLERANCE * first + NOISE
        and abs(a[6] - b[6]) <= PANEL_TOLERANCE * spread * first + NOISE
        and (not tilted or abs(a[2] - b[2]) <= PANEL_TOLERANCE * scale[2] + NOISE)
        and (tilted or abs(a[3] - b[3]) <= PANEL_TOLERANCE * second + NOISE)
    )


@kernel
def _terms(kernels: Vector, y: float, params: Vector, frame: Frame, x: float) -> Sums:
    """What is summed at one offset: a weight, two quantities with their sizes, minus the curvature, and a product.

    Under the posterior of f (tilted), the offset and the slope, with their squares. Under the prior, the slope and the
    log density, with their absolute values.
    """
    tilted, mean, variance, centre, peak, slope_at_centre = frame
    log_density, slope, curvature = call_log_density(kernels, y, mean + x, params)
    log_weight = -0.5 * x * (x / variance)
    if not tilted:
        weight = math.exp(log_weight)
        a, b = weight * slope, weight * log_density
        return weight, a, abs(a), b, abs(b), weight * curvature, a * x
    weight = math.exp(min(log_density + log_weight - peak, 1.0))
    if weight == 0.0:
        return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    first = x - centre
    second = slope - slope_at_centre
    a, b = weight * first, weight * second
    return weight, a, a * first, b, b * second, weight * curvature, 0.0


@kernel
def _trapezoid(kernels: Vector, y: float, params: Vector, frame: Frame, low: float, high: float) -> tuple[bool, Sums]:
    """Whether halving the step changed nothing any more, and the integrals."""
    points = FIRST_POINTS
    step = (high - low) / points
    total = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for i in range(points + 1):
        total = _add(total, _terms(kernels, y, params, frame, low + i * step), 1.0)
    # What the rounding of f does to the slope must not look like a want of convergence.
    resolution = ROUNDING * (1.0 + abs(frame[1]) + max(abs(low), abs(high))) / (high - low)
    for _ in range(HALVINGS):
        finer = total
        for i in range(points):
            finer = _add(finer, _terms(kernels, y, params, frame, low + (i + 0.5) * step), 1.0)
        converged = _agree(_add(total, total, 1.0), finer, frame, TRAPEZOID_TOLERANCE + resolution)
        total = finer
        points *= 2
        step *= 0.5
        if converged:
            return True, _add((0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0), total, step)
    return False, _add((0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0), total, step)


@kernel
def _adaptive(kernels: Vector, y: float, params: Vector, frame: Frame, low: float, high: float, scale: Sums) -> Sums:
    """Clenshaw-Curtis on panels that are halved until each is good enough, visited from low to high without a stack."""
    total = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    level = 0
    index = 0
    panels = 0
    while level > 0 or index == 0:
        half = 0.5 * math.ldexp(high - low, -level)
        middle = low + (2 * index + 1) * half
        fine = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        coarse = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        if level >= COARSEST_LEVEL:
            for i in range(_NODES.size):
                terms = _terms(kernels, y, params, frame, middle + half * _NODES[i])
                fine = _add(fine, terms, half * _WEIGHTS[i])
                coarse = _add(coarse, terms, half * _COARSE_WEIGHTS[i])
            panels += 1
        resolved = _moments_agree(coarse, fine, scale, frame) or panels > MOST_PANELS
        if level < COARSEST_LEVEL or not (resolved or level >= FINEST_LEVEL):
            level += 1
            index *= 2
            continue
        total = _add(total, fine, 1.0)
        index += 1
        while level > 0 and index % 2 == 0:
            level -= 1
            index //= 2
    return total


@kernel
def integrate(kernels: Vector, y: float, params: Vector, frame: Frame, low: float, high: float) -> tuple[bool, Sums]:
    """Whether the trapezoid was enough, and the integrals."""
    converged, sums = _trapezoid(kernels, y, params, frame, low, high)
    if not converged:
        sums = _adaptive(kernels, y, params, frame, low, high, sums)
        if not frame[0]:  # the trapezoid may have missed the kink, and with it the scale of the slope
            sums = _adaptive(kernels, y, params, frame, low, high, sums)
    return converged, sums
