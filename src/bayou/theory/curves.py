"""Learning curves of the perceptron: the error of each learner against alpha, the examples per weight.

Inputs and teacher are isotropic, labels are S = sign(w* . x + sigma0 n), noise = sigma0^2 / N for weights of unit size.
With y = cot(pi e)^2 and g of `bayou.theory.overlaps`:

    batch_bayes   y = alpha g(y)                  the exact posterior (replica symmetric)
    gibbs         the same y, e = arccos(q) / pi  one draw from the exact posterior
    spherical     dy/dalpha = g(y)                Opper 1998, (9.4); de Oliveira & Alamino 2007, (17), (18), (22)
    variational   the same equation               the best online rule of one vector; de Oliveira & Alamino 2007, (3)
    rosenblatt    `_rosenblatt`                   the perceptron rule: learn from mistakes, with a constant step
    ising         dH/dalpha = g(y(H))             weights +-1, learnt online; H is the size of their log odds
    ising_batch   H = alpha g(y(H))               weights +-1, the exact posterior, on the branch of no knowledge

Batch is y = alpha g and online is y = integral of g: that is all the difference there is. (22) is meant with the factor
1/2 that its second term lacks in print. The variational rule starts at one Hebbian step, of no weight in the limit.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import integrate, optimize

from bayou.contracts import Vector
from bayou.errors import InvalidSpec
from bayou.theory.overlaps import (
    LARGEST_FIELD,
    angle_error,
    gain,
    gibbs_error,
    ising_gain,
    ising_log_overlap,
)

FIRST_ALPHA = 1e-14  # before it, a curve is its first term to the last digit
LAST_ALPHA = 1e30
TOLERANCE = 1e-12
SETTLED = 1e-10  # logs so close to where they end are there
LONGEST_STEP = 0.25  # in logs: what lies between two steps is then as good as the steps
_LIMITS = {"rtol": TOLERANCE, "atol": TOLERANCE, "max_step": LONGEST_STEP}
Overlaps = Callable[[Vector, float], Vector]


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """What is predicted at each alpha, in the order in which the alphas came.

    ``error``      chance to disagree with the teacher without its noise on a new input
    ``overlap``    cosine of the angle between student and teacher
    ``norm``       squared length of the student, per weight, where the teacher has 1; of the variational rule, whose
                   length says nothing, that of the spherical belief with the same direction
    ``variance``   of each weight under the student's belief; NaN where it has none
    """

    kind: str
    noise: float
    alpha: Vector
    error: Vector
    overlap: Vector
    norm: Vector
    variance: Vector

    @property
    def label_error(self) -> Vector:
        """Chance to disagree with a label, noise and all: what a progressive evaluation sees."""
        return label_error(self.error, self.noise)


def label_error(error: ArrayLike, noise: float) -> Vector:
    """Error against noisy labels of a student with this error against the teacher.

    By the cosines of the angles: cos(pi label_error) = cos(pi error) / sqrt(1 + noise).

    >>> float(label_error(0.0, noise=1.0)), float(label_error(0.5, noise=1.0))
    (0.25, 0.5)
    """
    _check_noise(noise)
    angle = math.pi * np.asarray(error, dtype=np.float64)
    if not np.all((angle >= 0.0) & (angle <= math.pi)):
        raise InvalidSpec(f"`error` must be numbers from 0 to 1; got {error!r}.")
    return np.asarray(np.arctan2(np.sqrt(np.sin(angle) ** 2 + noise), np.cos(angle)) / math.pi)


def perceptron_curve(kind: str, alphas: ArrayLike, noise: float = 0.0) -> LearningCurve:
    """The learning curve of one kind of learner, started from no knowledge, in the limit of many weights.

    ``kind`` is one of "batch_bayes", "gibbs", "spherical" (scalar BOnA where noise is 0), "variational",
    "rosenblatt", "ising" and "ising_batch". ``noise`` is sigma0^2 / N, and the learner knows it (but for Rosenblatt's,
    which knows nothing). At alpha = 0 nothing is known: the error is 1/2.

    >>> curve = perceptron_curve("spherical", [10.0, 1e6])
    >>> curve.error * curve.alpha
    array([0.71165595, 0.88339...])
    """
    if kind not in _KINDS:
        raise InvalidSpec(f"`kind` must be one of {', '.join(map(repr, _KINDS))}; got {kind!r}.")
    _check_noise(noise)
    alpha = np.atleast_1d(np.array(alphas, dtype=np.float64))
    if alpha.ndim != 1 or not np.all((alpha >= 0.0) & (alpha <= LAST_ALPHA)):
        raise InvalidSpec(f"`alphas` must be numbers from 0 to {LAST_ALPHA:g}, in one row; got {alphas!r}.")
    sizes, places = np.unique(alpha, return_inverse=True)
    some = sizes[sizes > 0.0]
    parts: Sequence[Vector] = _KINDS[kind](some, float(noise)) if some.size else [np.zeros(0)] * 4
    unknown = [0.5, 0.0, 1.0 if kind == "gibbs" else 0.0, np.nan if kind == "rosenblatt" else 1.0]
    if some.size < sizes.size:
        parts = [np.concatenate([[at_zero], part]) for at_zero, part in zip(unknown, parts, strict=True)]
    return LearningCurve(kind, float(noise), alpha, *(part[places] for part in parts))


def _check_noise(noise: float) -> None:
    if not 0.0 <= noise < math.inf:
        raise InvalidSpec(f"`noise` must be finite and not negative; got {noise!r}.")


Parts = tuple[Vector, Vector, Vector, Vector]


def _well_informed(solve: Overlaps, error_of: Callable[[Vector], Vector] = angle_error) -> Callable[..., Parts]:
    """Curves of beliefs that are true on average: their means have the length and the overlap q, and miss 1 - q."""

    def parts(alpha: Vector, noise: float) -> Parts:
        y = solve(alpha, noise)
        with np.errstate(divide="ignore", over="ignore"):
            known = 1.0 / (1.0 + 1.0 / y)
        drawn = error_of is gibbs_error
        return error_of(y), known if drawn else np.sqrt(known), np.ones_like(y) if drawn else known, 1.0 / (1.0 + y)

    return parts


def online_overlaps(alpha: Vector, noise: float) -> Vector:
    """y at increasing alphas, from dy/dalpha = g(y), y(0) = 0."""
    first = gain(0.0, noise)

    def slope(log_alpha: float, log_y: Vector) -> list[float]:
        y = math.exp(log_y[0])
        return [math.exp(log_alpha) * gain(y, noise) / y]

    y = first * alpha
    late = alpha > FIRST_ALPHA
    if late.any():
        stops = np.log(alpha[late])
        span = (math.log(FIRST_ALPHA), float(stops[-1]))
        solution = integrate.solve_ivp(slope, span, [math.log(first * FIRST_ALPHA)], "DOP853", stops, **_LIMITS)
        y[late] = np.exp(solution.y[0])
    return y


def batch_overlaps(alpha: Vector, noise: float) -> Vector:
    """y = alpha g(y): what is left to explain falls with y, so there is one root."""

    def overlap(size: float) -> float:
        def excess(log_y: float) -> float:
            return math.log(size) + math.log(gain(math.exp(log_y), noise)) - log_y

        low = math.log(size * gain(0.0, noise))
        return math.exp(_root(excess, low - 1.0, 1.0))

    return np.array([overlap(size) for size in alpha])


def _root(falling: Callable[[float], float], low: float, step: float) -> float:
    """Where a falling function is zero, above some place where it is positive."""
    high = low + step
    while falling(high) > 0.0:
        low, step = high, 2.0 * step
        high = low + step
    return float(optimize.brentq(falling, low, high, xtol=1e-14, rtol=1e-15, maxiter=200))


def _rosenblatt(alpha: Vector, noise: float) -> Parts:
    """w += S x / sqrt(N) where S w . x < 0. With L = |w| / sqrt(N), and a the cotangent of the angle pi e to w*:

        dL/dalpha   = -(1 - gamma rho) / sqrt(2 pi) + f / (2 L)
        drho/dalpha = gamma (1 - rho^2) / (sqrt(2 pi) L) - rho f / (2 L^2)

    where rho = cos(pi e), f = arccos(gamma rho) / pi is the chance of a mistake, gamma = 1 / sqrt(1 + noise) what noise
    leaves of the correlation with the label. At first L^2 = alpha / 2 and rho = gamma sqrt(alpha / pi). Late, both
    terms of each equation nearly cancel, so the method must be one for stiff equations. With noise the rule never comes
    to rest: it ends at rho = gamma, an error as large as the rate of wrong labels.
    """
    gamma = 1.0 / math.sqrt(1.0 + noise)
    lost = noise * gamma / (1.0 + 1.0 / gamma)  # 1 - gamma, without the difference

    def slope(log_alpha: float, state: Vector) -> list[float]:
        size, length, cotangent = math.exp(log_alpha), math.exp(state[0]), math.exp(state[1])
        angle = math.atan2(1.0, cotangent)
        rho = math.cos(angle)
        missed = lost + gamma * 2.0 * math.sin(0.5 * angle) ** 2  # 1 - gamma rho
        mistakes = math.atan2(math.sqrt(missed * (1.0 + gamma * rho)), gamma * rho) / math.pi
        growth = mistakes / (2.0 * length) - missed / math.sqrt(2.0 * math.pi)
        secant = math.sqrt(1.0 + cotangent**2)
        turn = gamma * secant / (cotangent * math.sqrt(2.0 * math.pi)) - 0.5 * secant**2 * mistakes / length
        return [size * growth / length, size * turn / length]

    first = FIRST_ALPHA**2  # the next term is relatively of order sqrt(alpha), where elsewhere it is of order alpha
    start = [0.5 * math.log(0.5 * first), math.log(gamma * math.sqrt(first / math.pi))]
    early, late = alpha[alpha <= first], alpha[alpha > first]
    length, cotangent = np.sqrt(0.5 * early), gamma * np.sqrt(early / math.pi)
    if late.size:
        stops = np.log(late)
        span = (math.log(first), float(stops[-1]))
        end = _rosenblatt_end(noise)

        def settled(_: float, state: Vector) -> float:
            return float(np.abs(np.subtract(state, end)).max()) - SETTLED

        settled.terminal = True  # type: ignore[attr-defined]  # scipy's way to say it
        tolerances = {"rtol": TOLERANCE, "atol": TOLERANCE}
        solution = integrate.solve_ivp(slope, span, start, "LSODA", stops, events=settled, **tolerances)
        assert solution.success, solution.message
        rest = np.tile(end, (stops.size - len(solution.t), 1)).T
        logs = np.concatenate([np.reshape(solution.y, (2, -1)), rest], axis=1)
        length, cotangent = np.append(length, np.exp(logs[0])), np.append(cotangent, np.exp(logs[1]))
    overlap = cotangent / np.sqrt(1.0 + cotangent**2)
    return angle_error(cotangent**2), overlap, length**2, np.full_like(alpha, np.nan)


def _rosenblatt_end(noise: float) -> tuple[float, float]:
    """Logs of L and of the cotangent where both derivatives are zero: at rho = gamma; without noise, nowhere."""
    if noise == 0.0:
        return math.inf, math.inf
    mistakes = math.atan2(math.sqrt(noise * (2.0 + noise)), 1.0) / math.pi  # arccos(gamma^2) / pi
    return math.log(math.sqrt(0.5 * math.pi) * mistakes * (1.0 + 1.0 / noise)), -0.5 * math.log(noise)


def _ising_online(alpha: Vector, noise: float) -> Vector:
    """y, from dalpha/dH = 1 / g: without noise H becomes infinite at a finite alpha, but alpha(H) is smooth."""

    def slope(log_field: float, log_alpha: Vector) -> list[float]:
        field = math.exp(log_field)
        return [field / ising_gain(field, noise) * math.exp(-log_alpha[0])]

    first = gain(0.0, noise)
    span = (math.log(first * FIRST_ALPHA), math.log(LARGEST_FIELD))
    solution = integrate.solve_ivp(slope, span, [math.log(FIRST_ALPHA)], "DOP853", dense_output=True, **_LIMITS)
    perfect = float(solution.y[0, -1])

    def overlap(size: float) -> float:
        if size <= FIRST_ALPHA:
            return first * size
        log_alpha = math.log(size)
        if log_alpha >= perfect:
            return math.inf
        log_field = optimize.brentq(lambda x: solution.sol(x)[0] - log_alpha, *span, xtol=1e-14, rtol=1e-15)
        return math.exp(ising_log_overlap(math.exp(log_field)))

    return np.array([overlap(size) for size in alpha])


def _ising_batch(alpha: Vector, noise: float) -> Vector:
    """y, where alpha = H / g(H) for the first time: the fixed point that is reached from no knowledge.

    Where H / g falls again, the curve jumps; without noise it jumps to perfect knowledge.
    """

    def log_alpha(log_field: float) -> float:
        return log_field - math.log(ising_gain(math.exp(log_field), noise))

    start = math.log(max(alpha[0], FIRST_ALPHA) * gain(0.0, noise)) - 1.0
    places = np.linspace(start, math.log(LARGEST_FIELD), 40 + int(40.0 * (math.log(LARGEST_FIELD) - start)))
    heights = [log_alpha(place) for place in places]
    for i in range(1, len(places) - 1):  # a jump is where the height is highest, which is between two places
        if heights[i - 1] < heights[i] >= heights[i + 1]:
            around = (places[i - 1], places[i + 1])
            top = optimize.minimize_scalar(lambda x: -log_alpha(x), bounds=around, options={"xatol": 1e-9})
            places[i], heights[i] = top.x, -top.fun
    highest = np.maximum.accumulate(heights)

    def overlap(size: float) -> float:
        if size <= FIRST_ALPHA:
            return gain(0.0, noise) * size
        i = int(np.searchsorted(highest, math.log(size)))
        if i == len(places):
            return math.inf
        log_field = optimize.brentq(
            lambda x: log_alpha(x) - math.log(size), places[i - 1], places[i], xtol=1e-14, rtol=1e-15
        )
        return math.exp(ising_log_overlap(math.exp(log_field)))

    return np.array([overlap(size) for size in alpha])


_KINDS: dict[str, Callable[[Vector, float], Parts]] = {
    "batch_bayes": _well_informed(batch_overlaps),
    "gibbs": _well_informed(batch_overlaps, gibbs_error),
    "spherical": _well_informed(online_overlaps),
    "variational": _well_informed(online_overlaps),
    "rosenblatt": _rosenblatt,
    "ising": _well_informed(_ising_online),
    "ising_batch": _well_informed(_ising_batch),
}
