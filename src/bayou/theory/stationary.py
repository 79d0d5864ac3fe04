"""One weight behind a threshold: where w comes to rest, and how fast it does. Barkai et al. 1995, (23)-(27).

sgn f(s; w), one weight. Near the teacher's w0 a mistake has the chance r |w - w0| and moves w by eta c towards w0, c
being the size of df/dw where f is 0. In x = (w - w0) / (eta c) each mistake is x -> x - sgn x, at the rate r eta c |x|.

A constant rate, (24): all of -1 < x < 1 is visited, but x modulo 1 never changes, so that the law is not unique,

    F(x) = (1 - x) h(x)      F(x - 1) = x h(x)      0 < x < 1

for any density h, which is that of the phase x modulo 1. From a start that is smooth on the scale of eta the phase is
uniform, F = 1 - |x| is a triangle, and the error r eta c E|x| is r eta c / 3.

A rate eta0 / n, (27): phases mix, for x grows as n while w stands still. Let kappa = eta0 r c. Then G = x F obeys

    G' = kappa [G(x + 1) + (x < 1) G(1 - x) - G(x)]      G(0) = 0

Beyond x = 1 it decays as exp(-rate x), rate = kappa (1 - exp(-rate)), which there is where kappa > 1; below, it is
closed by reflection. With P(x) = (1 - exp(-rate x)) / (1 - exp(-rate))

    G = P(x) [1 + P(1 - x)]   x < 1        G = exp(-rate (x - 1))   x > 1
"""

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike
from scipy import integrate, optimize, special

from bayou.contracts import Vector
from bayou.errors import InvalidSpec

Density = Callable[[Vector], Vector]


def stationary_density(x: ArrayLike, phase: Density | None = None) -> Vector:
    """F at x = (w - w0) / (eta c), for a constant rate, where x modulo 1 has this density; uniform unless given.

    >>> stationary_density([-0.25, 0.5, 2.0])
    array([0.75, 0.5 , 0.  ])
    """
    places = np.asarray(x, dtype=np.float64)
    inside = np.abs(places) < 1.0
    share = np.where(inside, 1.0 - np.abs(places), 0.0)
    return share if phase is None else share * np.where(inside, phase(places % 1.0), 0.0)


def stationary_error(scale: float, phase: Density | None = None) -> float:
    """The error at which a constant rate stays, ``scale`` = r eta c: a third of it where the phase is uniform.

    In general it is 2 scale E[x (1 - x)], x the phase.

    >>> stationary_error(0.3)
    0.1
    """
    if not 0.0 <= scale < math.inf:
        raise InvalidSpec(f"`scale` must be finite and not negative; got {scale!r}.")
    if phase is None:
        return scale / 3.0
    return 2.0 * scale * float(integrate.quad(lambda x: x * (1.0 - x) * phase(x), 0.0, 1.0, limit=200)[0])


def tail_rate(kappa: float) -> float:
    """The rate of the tail exp(-rate x): the root of rate = kappa (1 - exp(-rate)) above 0.

    >>> tail_rate(2.0)
    1.5936...
    """
    if not 1.0 < kappa < math.inf:
        raise InvalidSpec(f"`kappa` must be above 1, or no law is normal, and finite; got {kappa!r}.")
    if kappa < 1.0 + 1e-6:
        return 2.0 * (kappa - 1.0)  # where the root of Lambert's function loses its digits
    return kappa + float(special.lambertw(-kappa * math.exp(-kappa)).real)


def _unnormalised(x: Vector | float, rate: float) -> Vector:
    """G at x >= 0."""
    whole = -math.expm1(-rate)
    inner = np.minimum(x, 1.0)
    risen, left = -np.expm1(-rate * inner) / whole, -np.expm1(-rate * (1.0 - inner)) / whole
    return np.asarray(risen * (1.0 + left) * np.exp(-rate * np.maximum(x - 1.0, 0.0)))


def _masses(kappa: float) -> tuple[float, float]:
    """Integrals of G / x and of G over x > 0."""
    rate = tail_rate(kappa)
    ends = [0.0, *(end for end in (0.1 / rate, 1.0 / rate, 10.0 / rate, 1.0 - 1.0 / rate) if 0.0 < end < 1.0), 1.0]
    ends.sort()

    def over(function: Callable[[float], float]) -> float:
        return float(sum(integrate.quad(function, *pair)[0] for pair in pairwise(ends)))

    def height(x: float) -> float:
        return float(_unnormalised(x, rate))

    if rate < 100.0:
        tail = math.exp(rate) * float(special.exp1(rate))
    else:
        tail = float(integrate.quad(lambda z: math.exp(-z) / (rate + z), 0.0, 50.0)[0])
    return over(lambda x: height(x) / x if x else 0.0) + tail, over(height) + 1.0 / rate


def decaying_density(x: ArrayLike, kappa: float) -> Vector:
    """F at x = n (w - w0) / (eta0 c), for the rate eta0 / n in the end, kappa = eta0 r c > 1: (27).

    >>> decaying_density([0.25, 1.0, -3.0], 2.0)
    array([0.5496..., 0.1776..., 0.0024...])
    """
    mass, _ = _masses(kappa)
    size = np.abs(np.asarray(x, dtype=np.float64))
    rate = tail_rate(kappa)
    at_zero = rate / -math.expm1(-rate) * 2.0  # the slope of G
    with np.errstate(invalid="ignore", divide="ignore"):
        heights = np.where(size > 0.0, _unnormalised(size, rate) / size, at_zero)
    return np.asarray(heights / (2.0 * mass))


def decaying_error(kappa: float) -> float:
    """n times the error in the end, for the rate eta0 / n: kappa E|x|, kappa = eta0 r c > 1.

    >>> [round(decaying_error(kappa), 3) for kappa in (1.5, 2.0, 4.0)]
    [1.123, 1.119, 1.609]
    """
    mass, first = _masses(kappa)
    return kappa * first / mass


def best_kappa() -> float:
    """The kappa of the smallest error.

    >>> kappa = best_kappa()
    >>> round(kappa, 2), round(decaying_error(kappa), 3)
    (1.72, 1.095)
    """
    return float(optimize.minimize_scalar(decaying_error, bounds=(1.2, 3.0), options={"xatol": 1e-8}).x)
