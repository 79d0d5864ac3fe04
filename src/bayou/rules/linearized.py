"""slope = l'(mean), precision = -l''(mean), l(f) = log p(y | f): extended Kalman filter, natural gradient."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayou.contracts import Rule, Vector
from bayou.numerics.jit import kernel
from bayou.numerics.pointers import call_log_density, call_vector_log_density
from bayou.numerics.sites import bounded


@kernel
def site(kernels: Any, y: float, mean: float, variance: float, params: Vector) -> tuple[float, float, float]:
    _, slope, curvature = call_log_density(kernels, y, mean, params)
    slope, precision = bounded(slope, max(curvature, 0.0), variance)
    return np.nan, slope, precision


@kernel
def vector_site(
    kernels: Any, y: float, mean: Vector, variance: Vector, params: Vector, slope: Vector, precision: Vector
) -> float:
    call_vector_log_density(kernels, y, mean, params, slope, precision)
    for c in range(mean.size):
        slope[c], precision[c] = bounded(slope[c], max(precision[c], 0.0), variance[c])
    return np.nan


@dataclass(frozen=True)
class Linearized(Rule):
    """One Newton step from the mean. A site never takes information away: negative curvature counts as none.

    >>> from bayou import Linearized
    >>> Linearized()
    Linearized()
    """

    site = staticmethod(site)
    vector_site = staticmethod(vector_site)
