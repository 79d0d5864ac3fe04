"""f* = argmax l(f) - (f - mean)^2 / 2 variance; precision = -l''(f*), slope = l'(f*) (1 + precision variance).

The belief then moves to the mode of the posterior and takes its curvature: Laplace's approximation, the iterated
extended Kalman filter.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayou.contracts import Rule, Vector
from bayou.numerics.jit import kernel
from bayou.numerics.pointers import call_log_density, call_vector_log_density
from bayou.numerics.sites import bounded

STEPS = 100
HALVINGS = 40
CLOSE = 1e-13


@kernel
def mode(kernels: Any, y: float, mean: float, variance: float, params: Vector) -> float:
    """The mode on the side to which the likelihood pulls: Newton's steps, kept inside a shrinking bracket."""
    _, slope, _ = call_log_density(kernels, y, mean, params)
    if slope == 0.0 or variance == 0.0 or not math.isfinite(slope):
        return mean
    near, far = mean, float(mean + variance * slope)  # a concave l has its mode between them
    for _ in range(HALVINGS):  # elsewhere the far end must still be found
        _, slope, _ = call_log_density(kernels, y, far, params)
        if (slope * variance - (far - mean)) * (far - near) <= 0.0:
            break
        near, far = far, far + 2.0 * (far - near)
    f = near
    for _ in range(STEPS):
        _, slope, curvature = call_log_density(kernels, y, f, params)
        residual = slope * variance - (f - mean)
        if residual * (far - near) > 0.0:
            near = f
        else:
            far = f
        newton = f + residual / (1.0 + max(curvature, 0.0) * variance)
        inside = min(near, far) < newton < max(near, far)
        following = newton if inside and math.isfinite(newton) else 0.5 * (near + far)
        if abs(following - f) <= CLOSE * (abs(following) + math.sqrt(variance)):
            return following
        f = following
    return f


@kernel
def site(kernels: Any, y: float, mean: float, variance: float, params: Vector) -> tuple[float, float, float]:
    _, slope, curvature = call_log_density(kernels, y, mode(kernels, y, mean, variance, params), params)
    precision = max(curvature, 0.0)
    slope, precision = bounded(slope * (1.0 + precision * variance), precision, variance)
    return np.nan, slope, precision


@kernel
def vector_site(
    kernels: Any, y: float, mean: Vector, variance: Vector, params: Vector, slope: Vector, precision: Vector
) -> float:
    f, trial = mean.copy(), np.empty_like(mean)
    value = call_vector_log_density(kernels, y, f, params, slope, precision)
    for _ in range(STEPS):
        step = np.empty_like(mean)
        size = 0.0
        for c in range(mean.size):
            residual = slope[c] * variance[c] - (f[c] - mean[c])
            step[c] = residual / (1.0 + max(precision[c], 0.0) * variance[c])
            size = max(size, abs(step[c]) / (abs(f[c]) + math.sqrt(variance[c]) + 1e-300))
        if size <= CLOSE:
            break
        share = 1.0
        for _ in range(HALVINGS):  # latents curve together, which steps taken one by one do not see
            change = 0.0
            for c in range(mean.size):
                trial[c] = f[c] + share * step[c]
                if variance[c] > 0.0:
                    change += ((trial[c] - mean[c]) ** 2 - (f[c] - mean[c]) ** 2) / (2.0 * variance[c])
            reached = call_vector_log_density(kernels, y, trial, params, slope, precision)
            if reached - change >= value - 1e-14 * abs(value):
                break
            share *= 0.5
        f, trial = trial, f
        value = reached
    for c in range(mean.size):
        curvature = max(precision[c], 0.0)
        slope[c], precision[c] = bounded(slope[c] * (1.0 + curvature * variance[c]), curvature, variance[c])
    return np.nan


@dataclass(frozen=True)
class Iterated(Rule):
    """Re-linearised until the mode is found. Negative curvature counts as none.

    >>> from bayou import Iterated
    >>> Iterated()
    Iterated()
    """

    site = staticmethod(site)
    vector_site = staticmethod(vector_site)
