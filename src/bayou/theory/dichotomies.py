"""Learning curves of the perceptron rule whose rate falls: Barkai, Seung & Sompolinsky 1995, section 2.

W += (eta / N) S y where the sign of W . S is not the label y, then W is divided by its length. Inputs are isotropic and
labels true, theta is the angle to the teacher, and the error theta / pi. In the limit of many weights (their (4))

    dtheta/dalpha = -eta sin(theta) / sqrt(2 pi) + eta^2 theta cos(theta) / (2 pi sin(theta))

It is solved in psi = artanh(cos(theta)), which has its digits where the error is 1e-12 and where it is 1/2:

    dpsi/dalpha = eta / sqrt(2 pi) - eta^2 theta sinh(psi) cosh(psi) / (2 pi)

Where W keeps its length L, the rate is eta / L, and dL/dalpha = -eta (1 - cos(theta)) / sqrt(2 pi) + eta^2 theta /
(2 pi L). Schedules are told in the units of the paper, eta = eta0 sqrt(2 pi) (alpha + offset)^-power, or as a function
of alpha. Their (6) is meant with log(alpha) / (pi alpha) at eta0 = 1, where the print seems to have a root.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import integrate, optimize

from bayou.contracts import Vector
from bayou.errors import InvalidSpec

UNIT = math.sqrt(2.0 * math.pi)  # of the rate
FIRST_ALPHA = 1e-10  # of the steps of time, which are of logs
HUGE = 1e10  # of eta^2 alpha: so many steps of order 1 that the start is forgotten
TOLERANCE = 1e-10
FARTHEST = 300.0  # where steps that the integrator tries and rejects may lead

Rate = float | tuple[float, ...] | Callable[[float], float]
Schedule = Callable[[float], float]


@dataclass(frozen=True, eq=False)
class DichotomyCurve:
    """What is predicted at each alpha, in the order in which the alphas came.

    ``error`` is the chance to disagree with the teacher, ``overlap`` the cosine of the angle to it, and ``norm`` the
    squared length of the student, where the teacher has 1.
    """

    alpha: Vector
    error: Vector
    overlap: Vector
    norm: Vector


@dataclass(frozen=True)
class AsymptoticLaw:
    """error - floor ~ prefactor alpha^exponent log(alpha)^log_exponent; a NaN is what depends on the start.

    >>> AsymptoticLaw(-1.0, 4.0 / 3.0)(1e3)
    array(0.001333...)
    """

    exponent: float
    prefactor: float
    log_exponent: float = 0.0

    def __call__(self, alpha: ArrayLike) -> Vector:
        size = np.asarray(alpha, dtype=np.float64)
        return np.asarray(self.prefactor * size**self.exponent * np.log(size) ** self.log_exponent)


def dichotomy_curve(
    rate: Rate, alphas: ArrayLike, *, start: float = 0.5, normalised: bool = True, length: float = 1.0
) -> DichotomyCurve:
    """The learning curve of the perceptron rule under a schedule of its rate, in the limit of many weights.

    ``rate``         eta itself where it is constant; (eta0, power) or (eta0, power, offset) for
                     eta = eta0 sqrt(2 pi) (alpha + offset)^-power; or any function of alpha
    ``start``        the error at alpha = 0; what is drawn at random has 1/2
    ``normalised``   whether W is divided by its length; where not, ``length`` is the first one

    >>> curve = dichotomy_curve((2.0, 1.0), [1e2, 1e6])  # the best schedule: 4 / (pi alpha) in the end
    >>> curve.error * curve.alpha
    array([1.2558..., 1.2732...])
    """
    eta = schedule(rate, UNIT)
    alpha = checked_alphas(alphas)
    if not 0.0 < start < 1.0:
        raise InvalidSpec(f"`start` must be an error between 0 and 1, and neither; got {start!r}.")
    if not 0.0 < length < math.inf or (normalised and length != 1.0):
        raise InvalidSpec(f"`length` must be positive, and 1 where W is normalised; got {length!r}.")
    if not normalised and 2.0 * eta(2.0 * FIRST_ALPHA) ** 2 < 1.001 * eta(FIRST_ALPHA) ** 2:  # of an infinite integral
        raise InvalidSpec(f"`rate` must not make W infinite at once, it needs an offset; got {rate!r}.")

    def slope(size: float, state: Vector) -> list[float]:
        psi, log_length = float(state[0]), float(state[1])
        theta = 2.0 * math.atan(math.exp(-psi))
        step = eta(size) * math.exp(-log_length) / UNIT
        spread = step * step * theta
        turn = step - 0.5 * spread * math.sinh(2.0 * psi)
        missed = 2.0 / (1.0 + math.exp(2.0 * psi))  # 1 - cos(theta)
        return [turn, 0.0 if normalised else spread - step * missed]

    first = [math.log(1.0 / math.tan(0.5 * math.pi * start)), math.log(length)]
    psi, log_length = solve_schedule(slope, eta, np.array(first), alpha)
    return DichotomyCurve(alpha, 2.0 * np.arctan(np.exp(-psi)) / math.pi, np.tanh(psi), np.exp(2.0 * log_length))


def residual_error(eta: float) -> float:
    """Where a constant rate ends: theta / pi, sin(theta)^2 / (theta cos(theta)) = eta / sqrt(2 pi).

    For a small rate it is eta / sqrt(2 pi^3), their (5).

    >>> residual_error(0.5), 0.5 / math.sqrt(2.0 * math.pi**3)
    (0.06307..., 0.06349...)
    """
    if not 0.0 <= eta < math.inf:
        raise InvalidSpec(f"`eta` must be finite and not negative; got {eta!r}.")
    step = eta / UNIT
    if step < 1e-9:
        return step / math.pi  # to the last digit

    def excess(log_cotangent: float) -> float:  # of the angle
        cotangent = math.exp(log_cotangent)
        theta = math.atan2(1.0, cotangent)
        return log_cotangent + math.log(math.hypot(1.0, cotangent)) + math.log(step) + math.log(theta)

    high = abs(math.log(step)) + 2.0
    root = optimize.brentq(excess, -high, high, xtol=1e-14, rtol=1e-15)
    return math.atan2(1.0, math.exp(root)) / math.pi


def asymptotic_law(eta0: float, power: float, *, normalised: bool = True) -> AsymptoticLaw:
    """How the error falls in the end where eta = eta0 sqrt(2 pi) alpha^-power, their (6).

    A rate that falls faster than 1 / alpha freezes: the exponent is 0 and the prefactor depends on the start. Where W
    keeps its length, L^3 is 3/2 of the integral of (eta0 alpha^-power)^3, so that all powers below 1/3 end as
    alpha^(-1/3) whatever eta0; above it L ends at a value that depends on the start.

    >>> asymptotic_law(2.0, 1.0)
    AsymptoticLaw(exponent=-1.0, prefactor=1.2732..., log_exponent=0.0)
    >>> asymptotic_law(1.0, 0.0, normalised=False)
    AsymptoticLaw(exponent=-0.3333..., prefactor=0.27806..., log_exponent=0.0)
    """
    if not (0.0 < eta0 < math.inf and 0.0 <= power < math.inf):
        raise InvalidSpec(f"`eta0` must be positive and `power` not negative; got {eta0!r} and {power!r}.")
    if power > 1.0:
        return AsymptoticLaw(0.0, math.nan)
    if not normalised:
        return _unnormalised_law(power)
    if power == 0.0:
        return AsymptoticLaw(0.0, residual_error(eta0 * UNIT))
    if power < 1.0:
        return AsymptoticLaw(-power, eta0 / math.pi)
    if eta0 < 1.0:
        return AsymptoticLaw(-eta0, math.nan)
    if eta0 == 1.0:
        return AsymptoticLaw(-1.0, 1.0 / math.pi, 1.0)
    return AsymptoticLaw(-1.0, eta0**2 / (math.pi * (eta0 - 1.0)))


def _unnormalised_law(power: float) -> AsymptoticLaw:
    third = 1.0 / 3.0
    if math.isclose(power, third, rel_tol=1e-12):
        return AsymptoticLaw(-third, (2.0 / 3.0) ** third / math.pi, -third)
    if power < third:
        return AsymptoticLaw(-third, (2.0 / 3.0 * (1.0 - 3.0 * power)) ** third / math.pi)
    return AsymptoticLaw(-power if power < 1.0 else math.nan, math.nan)  # at 1 even the power depends on the length


def schedule(rate: Rate, unit: float) -> Schedule:
    """eta as a function of alpha; a tuple is (eta0, power, offset), eta0 in the given unit."""
    if callable(rate):
        return rate
    if not isinstance(rate, tuple):
        constant = float(rate)
        if not 0.0 <= constant < math.inf:
            raise InvalidSpec(f"`rate` must be finite and not negative; got {rate!r}.")
        return lambda alpha: constant
    if len(rate) not in (2, 3) or not (0.0 <= rate[0] < math.inf and all(0.0 <= part < math.inf for part in rate[1:])):
        raise InvalidSpec(f"`rate` must be (eta0, power) or (eta0, power, offset), none negative; got {rate!r}.")
    eta0, power, offset = (float(part) for part in (*rate, 0.0)[:3])
    return lambda alpha: unit * eta0 * (alpha + offset) ** -power


def checked_alphas(alphas: ArrayLike) -> Vector:
    alpha = np.atleast_1d(np.array(alphas, dtype=np.float64))
    if alpha.ndim != 1 or not np.all(np.isfinite(alpha) & (alpha >= 0.0)):
        raise InvalidSpec(f"`alphas` must be finite numbers, none negative, in one row; got {alphas!r}.")
    return alpha


def solve_schedule(
    slope: Callable[[float, Vector], list[float]], eta: Schedule, first: Vector, alpha: Vector, start: float = 0.0
) -> Vector:
    """The state at each alpha, a row for each of its parts; up to ``start`` it is the first.

    In log alpha, by a method for stiff equations: a rate that falls slowly, or is constant, makes the state follow the
    ever same balance. Where a rate is infinite at 0, nothing is left of the first state when it has become HUGE.
    """
    begin, given = FIRST_ALPHA, first
    while eta(start + begin) ** 2 * begin > HUGE:
        begin, first = 2.0 * begin, np.zeros_like(first)
    sizes, places = np.unique(alpha, return_inverse=True)
    late = sizes[sizes > start + begin]
    states = np.where(sizes > start, first[:, None], given[:, None])
    if late.size:

        def logarithmic(log_time: float, state: Vector) -> list[float]:
            time = begin * math.exp(log_time)
            parts = slope(start + time, np.clip(state, -FARTHEST, FARTHEST))
            return [time * part for part in parts]

        times = np.log((late - start) / begin)  # from 0: what a huge first rate does may take 1e-12 of it
        span = (0.0, float(times[-1]))
        found = integrate.solve_ivp(logarithmic, span, first, "Radau", times, rtol=TOLERANCE, atol=TOLERANCE)
        assert found.success, found.message
        states[:, sizes.size - late.size :] = found.y
    return states[:, places]
