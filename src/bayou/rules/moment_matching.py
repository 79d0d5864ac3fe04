"""slope = Z' / s, precision = -Z'' / s, s = 1 + variance Z'', Z = log E p(y | f)   (Opper 1998, (7.1)-(7.2))."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayou.contracts import Rule, Vector
from bayou.numerics.jit import kernel
from bayou.numerics.pointers import call_log_evidence, call_vector_log_evidence
from bayou.numerics.sites import bounded


@kernel
def site(kernels: Any, y: float, mean: float, variance: float, params: Vector) -> tuple[float, float, float]:
    value, slope, curvature, kept = call_log_evidence(kernels, kernels, y, mean, variance, params)
    per_kept = 1.0 / kept
    slope, precision = bounded(slope * per_kept, curvature * per_kept, variance)
    return value, slope, precision


@kernel
def vector_site(
    kernels: Any, y: float, mean: Vector, variance: Vector, params: Vector, slope: Vector, precision: Vector
) -> float:
    kept = np.empty_like(mean)
    value = call_vector_log_evidence(kernels, y, mean, variance, params, slope, precision, kept)
    for c in range(mean.size):
        slope[c], precision[c] = bounded(slope[c] / kept[c], precision[c] / kept[c], variance[c])
    return value  # type: ignore[no-any-return]  # kernels return numbers


@dataclass(frozen=True)
class MomentMatching(Rule):
    """The new belief has the mean and the variance that the exact posterior would have.

    Its site may widen the belief (negative precision) where the target contradicts it and the likelihood allows
    for outliers.

    >>> from bayou import MomentMatching
    >>> MomentMatching()
    MomentMatching()
    """

    needs_slope = False
    matches_moments = True
    site = staticmethod(site)
    vector_site = staticmethod(vector_site)
