"""What one example is worth to a perceptron: g, and the overlaps that it moves.

    K(a^2) = E_v phi(a v)^2 / Phi(a v)                        v ~ N(0, 1)
    g(y)   = 2 K(q / s^2) / s^2,   s^2 = noise + 1 - q        q = y / (1 + y)

The teacher's field has variance 1; of it the student knows the part q and misses 1 - q. g is the Fisher information of
one label about the field, averaged over the inputs (Opper 1998, section 9). Overlaps are kept as y = q / (1 - q), since
1 - q itself loses its digits as soon as something is learnt: a student at the angle pi e to its teacher has
y = cot(pi e)^2.
"""

import math

import numpy as np
from scipy import special

from bayou.contracts import Vector

# Scaled by the narrower of its two factors, the integrand of K is one smooth hill at every a.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(160)
_NODES, _WEIGHTS = 12.0 * _NODES, 12.0 * _WEIGHTS
_LOG_TWO_PI = math.log(2.0 * math.pi)

# sech has poles near the axis: a trapezoid does not mind, because it converges with the step, not with the degree.
_STEP = 0.05
_TRAPEZOID = _STEP * np.arange(-200, 201)
_NARROWEST = 16.0  # sech(x) needs |x| up to 40, where the normal needs 10
LARGEST_FIELD = 1400.0  # beyond, y is no number, and what is unknown has no weight


def fisher_average(squared_scale: float) -> float:
    """K(a^2)."""
    v = _NODES / math.sqrt(1.0 + squared_scale)
    z = math.sqrt(squared_scale) * v
    logs = -0.5 * v * v - z * z - special.log_ndtr(z) - 1.5 * _LOG_TWO_PI
    return float(_WEIGHTS @ np.exp(logs)) / math.sqrt(1.0 + squared_scale)


def gain(y: float, noise: float) -> float:
    """g(y): how much one example per weight adds to the knowledge of the field."""
    s2 = noise + 1.0 / (1.0 + y)
    return 2.0 * fisher_average(y / (1.0 + y) / s2) / s2


def angle_error(y: Vector) -> Vector:
    """e = arccos(sqrt(q)) / pi, of a student that votes as the mean does."""
    return np.asarray(np.arctan2(1.0, np.sqrt(y)) / math.pi)


def gibbs_error(y: Vector) -> Vector:
    """e = arccos(q) / pi, of a student that is drawn from the posterior."""
    return np.asarray(np.arctan2(np.sqrt(1.0 + 2.0 * y), y) / math.pi)


def ising_log_overlap(field: float) -> float:
    """log y of weights +-1 whose log odds are N(field w*, field): 1 - q = exp(-field / 2) E_v sech(sqrt(field) v)."""
    shrink = math.sqrt(1.0 + field / _NARROWEST)
    v = _TRAPEZOID / shrink
    density = np.exp(-0.5 * v * v) * (_STEP / shrink / math.sqrt(2.0 * math.pi))
    x = np.abs(math.sqrt(field) * v)
    sech = 2.0 * np.exp(-x) / (1.0 + np.exp(-2.0 * x))
    log_unknown = -0.5 * field + math.log(float(density @ sech))
    if field > 1.0:
        return math.log(-math.expm1(log_unknown)) - log_unknown
    known = float(density @ np.tanh(math.sqrt(field) * v + field) ** 2)  # q, without the difference from 1
    return math.log(known) - log_unknown


def ising_gain(field: float, noise: float) -> float:
    """g at the overlap that log odds of this size make."""
    return gain(math.exp(ising_log_overlap(field)), noise)
