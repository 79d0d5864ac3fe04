"""The perceptron rule where labels are flipped and inputs are off centre: Barkai, Seung & Sompolinsky 1995, section 3.

Inputs are S = U + n, n isotropic; labels those of the teacher W0, flipped with probability p; |W0| = |W| = 1 and

    u = |U|    q0 = U . W0    b^2 = u^2 - q0^2    R = W . W0 = cos(theta)    q = U . W
    m(q) = erf(q / sqrt 2)    g(q) = sqrt(2/pi) exp(-q^2/2)    M(v) = v m(v) + g(v) = E|v + n|

W disagrees with W0 in the double wedge that a plane sweeps over as it turns by theta. With t = (q - R q0) / sin(theta)

    error = p + (1 - 2p) D      D = int_0^theta exp(-(q0 cos + t sin)^2 / 2) M(t cos - q0 sin) dphi / sqrt(2 pi)

which is (8), and has its digits where D is small; (8) is meant with the factor 1 - 2p. The rules are

    plain      W += (eta/N) S y at mistakes, then W is normalised
    shifted    W += (eta/N) (S - T) y, T = U + W0 g(q0) / m(q0), (13)
    learned    the same, T by running means of y S and of y; W = A / |A|, A the sum of y S, up to alpha = warm_up

In psi = artanh(R) and t (which is b in size where W lies in the plane of W0 and U) all three are

    psi' = (eta/2) [k + j (q0 - t sinh psi)] - x sinh psi cosh psi      x = eta^2 error / 2 - (eta/2) c v
    t'   = (eta/2) j (b^2 - t^2) cosh psi - x t cosh^2 psi

    plain      k = (1 - 2p) g(q0)         j = (1 - 2p) m(q0) - m(q)     c = 0
    shifted    k = g(q0) m(q) / m(q0)     j = 0                         c = 0
    learned    k = g(q0) m(q) / m(q0)     j = 0                         c = 1 - m(q) / ((1 - 2p) m(q0))

where v = W . Z, Z the error of A / n, of squared length 1 / alpha: W learnt from the examples that T is made of, and

    v' = (eta error - v - eta c / 2) / alpha - (eta/2) k R v - x v
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from bayou.contracts import Vector
from bayou.errors import InvalidSpec
from bayou.theory.dichotomies import Rate, Schedule, checked_alphas, schedule, solve_schedule

RULES = ("plain", "shifted", "learned")
ROUNDED = 1e-3  # how far R and q may be from what is possible, for they may have been read from a table
WARM_UP = 5.0  # examples per weight
_ROOT = math.sqrt(2.0 * math.pi)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)


def gauss(x: float) -> float:
    """g(x) = E[sgn(x + n) n]."""
    return math.sqrt(2.0 / math.pi) * math.exp(-0.5 * x * x)


def mean_sign(x: float) -> float:
    """m(x) = E[sgn(x + n)]."""
    return math.erf(x / math.sqrt(2.0))


@dataclass(frozen=True)
class OffCentre:
    """The task: labels flipped with probability ``flip_rate``, inputs around U; ``distance`` = |U|, ``field`` = U . W0.

    >>> figure_2 = OffCentre(flip_rate=0.2, distance=4.0, field=-1.95)
    """

    flip_rate: float
    distance: float
    field: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.flip_rate < 0.5:
            raise InvalidSpec(f"`flip_rate` must be from 0 to less than 1/2; got {self.flip_rate!r}.")
        if not abs(self.field) <= self.distance < math.inf:
            raise InvalidSpec(f"`field` must not be larger than `distance`; got {self.field!r} and {self.distance!r}.")

    @property
    def across(self) -> float:
        """b, the part of U at right angles to the teacher."""
        return math.sqrt((self.distance - self.field) * (self.distance + self.field))

    @property
    def kept(self) -> float:
        """1 - 2p: what flips leave of each correlation with the label."""
        return 1.0 - 2.0 * self.flip_rate


@dataclass(frozen=True, eq=False)
class OffCentreCurve:
    """At each alpha, as they came: ``error`` against labels, flips and all, R = ``overlap`` and q = ``field``."""

    alpha: Vector
    error: Vector
    overlap: Vector
    field: Vector


def off_centre_error(task: OffCentre, overlap: ArrayLike, field: ArrayLike) -> Vector:
    """(8) in closed form, by Owen's T: the chance that a student with these R and q disagrees with a label.

    >>> off_centre_error(OffCentre(0.2, 4.0, -1.95), 0.9528, -0.7975)
    array(0.312...)
    """
    R, q = np.broadcast_arrays(*(np.asarray(part, dtype=np.float64) for part in (overlap, field)))
    missed = [_owen(task, *pair) for pair in zip(R.ravel().tolist(), q.ravel().tolist(), strict=True)]
    return np.asarray(task.flip_rate + task.kept * np.reshape(missed, R.shape))


def _owen(task: OffCentre, R: float, q: float) -> float:
    """D = 2 T(q, (q0 - R q) / (q s)) + 2 T(q0, (q - R q0) / (q0 s)), and 1 where q and q0 differ in sign."""
    s, t = _tilt(task, R, q)
    q0 = task.field
    if s == 0.0:
        return 0.0 if R > 0.0 else 1.0
    if q == q0 == 0.0:
        return math.atan2(s, R) / math.pi
    opposite = q * q0 < 0.0 or (q * q0 == 0.0 and q + q0 < 0.0)
    total = 2.0 * _owen_ratio(q, q0 * s - R * t) + 2.0 * _owen_ratio(q0, t) + float(opposite)
    return min(max(total, 0.0), 1.0)  # by rounding it may be -1e-17


def _owen_ratio(h: float, slope: float) -> float:
    """T(h, slope / h), h = 0 as the limit from above."""
    if h == 0.0:
        return math.copysign(0.25, slope) if slope else 0.0
    return float(special.owens_t(h, slope / h if abs(slope) < abs(h) * 1e300 else math.copysign(math.inf, slope * h)))


def _tilt(task: OffCentre, R: float, q: float) -> tuple[float, float]:
    """sin(theta) and t; q says no more than t does, which is at most b in size."""
    if not abs(R) <= 1.0:
        raise InvalidSpec(f"R must be from -1 to 1; got {R!r}.")
    s, b = math.sqrt((1.0 - R) * (1.0 + R)), task.across
    excess = q - R * task.field
    if not abs(excess) <= b * s + ROUNDED * (1.0 + task.distance):
        raise InvalidSpec(f"q = {q!r} is not possible where R = {R!r} in {task!r}.")
    return s, min(max(excess / s, -b), b) if s else 0.0


def wedge_error(task: OffCentre, angle: float, tilt: float) -> float:
    """D, by the integral over the angle: Gauss-Legendre, as many panels as the width 1 / u asks for."""
    panels = 1 + int(angle * task.distance / 4.0)
    half = 0.5 * angle / panels
    phi = half * (_NODES[None, :] + (1.0 + 2.0 * np.arange(panels))[:, None])
    cos, sin = np.cos(phi), np.sin(phi)
    height, along = task.field * cos + tilt * sin, tilt * cos - task.field * sin
    size = along * special.erf(along / math.sqrt(2.0)) + math.sqrt(2.0 / math.pi) * np.exp(-0.5 * along**2)
    return float(half / _ROOT * np.sum(_WEIGHTS * size * np.exp(-0.5 * height**2)))


def off_centre_curve(
    task: OffCentre,
    rate: Rate,
    alphas: ArrayLike,
    *,
    rule: str = "plain",
    start: tuple[float, float] | None = None,
    warm_up: float = WARM_UP,
) -> OffCentreCurve:
    """The learning curve of the plain, the shifted or the learned rule, in the limit of many weights.

    ``rate``      eta itself where it is constant; (eta0, power) or (eta0, power, offset) for
                  eta = (eta0 / g(q0)) (alpha + offset)^-power; or any function of alpha
    ``start``     R and q at alpha = 0. The plain rule starts at (0, 0), which is a random W, unless told; the shifted
                  rule must be told, for at q = 0 it does not know the sign; the learned one makes its own, by Hebb

    >>> task = OffCentre(0.2, 4.0, -1.95)
    >>> off_centre_curve(task, 0.01, [1e4]).error
    array([0.3122...])
    >>> curve = off_centre_curve(task, lambda alpha: min(0.25, 2.0 / (gauss(-1.95) * alpha)), [1e6], rule="learned")
    >>> (curve.error - 0.2) * 1e3  # sqrt(2 p / (pi alpha)), their (18)
    array([0.357...])
    """
    if rule not in RULES:
        raise InvalidSpec(f"`rule` must be one of {', '.join(map(repr, RULES))}; got {rule!r}.")
    if rule != "plain" and task.field == 0.0:
        raise InvalidSpec(f"`rule` {rule!r} needs a mean label that is not zero; got {task!r}.")
    if not 0.0 < warm_up < math.inf:
        raise InvalidSpec(f"`warm_up` must be positive and finite; got {warm_up!r}.")
    if (rule == "shifted" and start is None) or (rule == "learned" and start is not None):
        raise InvalidSpec(f"`start` is for the plain rule, and needed for the shifted one; got {start!r} for {rule!r}.")
    alpha, eta = checked_alphas(alphas), schedule(rate, 1.0 / gauss(task.field))
    if rule == "learned":
        return _learned(task, eta, alpha, warm_up)
    R, q = (0.0, 0.0) if start is None else (float(part) for part in start)
    s, t = _tilt(task, R, q)
    if s == 0.0:
        raise InvalidSpec(f"`start` must not be the teacher or its opposite, where it would stay; got {start!r}.")
    state = solve_schedule(_slopes(task, rule, eta), eta, np.array([math.atanh(R), t]), alpha)
    return _curve(task, alpha, state[0], state[1])


def hebb_overlaps(task: OffCentre, alphas: ArrayLike) -> tuple[Vector, Vector]:
    """R and q of W = A / |A|, A the sum of y S: a start that has the right sign.

    A / n is (1 - 2p) (m(q0) U + g(q0) W0), and noise of squared length 1 / alpha.
    """
    root = np.sqrt(checked_alphas(alphas))
    m0, g0, q0 = mean_sign(task.field), gauss(task.field), task.field
    length = np.sqrt(1.0 + root**2 * _hebb_norm(task))
    return (
        task.kept * (q0 * m0 + g0) * root / length,
        task.kept * (task.distance**2 * m0 + q0 * g0) * root / length,
    )


def _hebb_norm(task: OffCentre) -> float:
    m0, g0 = mean_sign(task.field), gauss(task.field)
    return task.kept**2 * (task.distance**2 * m0**2 + 2.0 * task.field * m0 * g0 + g0**2)


def _learned(task: OffCentre, eta: Schedule, alpha: Vector, warm_up: float) -> OffCentreCurve:
    R, q = hebb_overlaps(task, np.append(np.minimum(alpha, warm_up), warm_up))
    psi = np.arctanh(R)
    tilt = np.array([_tilt(task, *pair)[1] for pair in zip(R.tolist(), q.tolist(), strict=True)])
    shared = 1.0 / (warm_up * math.sqrt(_hebb_norm(task) + 1.0 / warm_up))
    first = np.array([psi[-1], tilt[-1], shared])
    state = solve_schedule(_slopes(task, "learned", eta), eta, first, alpha, warm_up)
    early = alpha <= warm_up
    return _curve(task, alpha, np.where(early, psi[:-1], state[0]), np.where(early, tilt[:-1], state[1]))


def _curve(task: OffCentre, alpha: Vector, psi: Vector, tilt: Vector) -> OffCentreCurve:
    theta, R = 2.0 * np.arctan(np.exp(-psi)), np.tanh(psi)
    missed = [wedge_error(task, *pair) for pair in zip(theta.tolist(), tilt.tolist(), strict=True)]
    error = task.flip_rate + task.kept * np.array(missed, dtype=np.float64)
    return OffCentreCurve(alpha, error, R, R * task.field + np.sin(theta) * tilt)


def plain_drift(task: OffCentre, field: float) -> tuple[float, float]:
    """k and j: the plain rule draws W to k W0 + j U."""
    return task.kept * gauss(task.field), task.kept * mean_sign(task.field) - mean_sign(field)


def _slopes(task: OffCentre, rule: str, eta: Schedule) -> Callable[[float, Vector], list[float]]:
    """Of psi and t, and of v where T is learned, as on top of this file."""
    p, q0, b, kept = task.flip_rate, task.field, task.across, task.kept
    g0, m0 = gauss(q0), mean_sign(q0)

    def slope(alpha: float, state: Vector) -> list[float]:
        psi, tilt, *rest = state.tolist()
        cosh, sinh = math.cosh(psi), math.sinh(psi)
        field = math.tanh(psi) * q0 + tilt / cosh
        m = mean_sign(field)
        rate = eta(alpha)
        error = p + kept * wedge_error(task, 2.0 * math.atan(math.exp(-psi)), tilt)
        k, j = plain_drift(task, field) if rule == "plain" else (g0 * m / m0, 0.0)
        c, shared = (1.0 - m / (kept * m0), rest[0]) if rest else (0.0, 0.0)
        x = 0.5 * rate * (rate * error - c * shared)
        slopes = [
            0.5 * rate * (k + j * (q0 - tilt * sinh)) - x * sinh * cosh,
            0.5 * rate * j * (b - tilt) * (b + tilt) * cosh - x * tilt * cosh * cosh,
        ]
        if rest:
            news = (rate * error - shared - 0.5 * rate * c) / alpha
            slopes.append(news - (0.5 * rate * k * math.tanh(psi) + x) * shared)
        return slopes

    return slope
