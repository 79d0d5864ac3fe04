"""Where the rules of `bayou.theory.off_centre` end: fixed points, residual errors, and laws of their approach.

The plain rule does not find the teacher. As eta goes to 0, W is parallel to k W0 + j U, k = (1 - 2p) g(q0) and
j = (1 - 2p) m(q0) - m(q): in the plane of W0 and U, at the angle phi to W0 at which

    -k sin(phi) + j (b cos(phi) - q0 sin(phi)) = 0      and      k cos(phi) + j q > 0

the second being the rate at which what W has out of the plane decays. The shifted rule does, (14): near the teacher

    d(dR)/dalpha = -eta g(q0) dR + eta^2 p / 2
    d(dq)/dalpha = -(eta/2) g(q0) (dq + q0 dR) + eta^2 p q0 / 2      where dR = 1 - R, dq = q0 - q

and D = exp(-q0^2/2) sqrt(2 dR) / pi. (15) is meant with the factor 1 - 2p; printed (18), which has none, holds for a
T that is learned, whose own noise counts as much.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import optimize

from bayou.errors import InvalidSpec
from bayou.theory.dichotomies import AsymptoticLaw, asymptotic_law
from bayou.theory.off_centre import (
    OffCentre,
    gauss,
    mean_sign,
    off_centre_curve,
    off_centre_error,
    plain_drift,
    wedge_error,
)

SETTLED = 1e6  # units of 1 / eta: a plain rule is then where it ends, even if it is drawn there weakly
PLACES = 2001  # on the circle, between which roots are looked for
MARGINAL = 1e-9  # a rate that is zero but for rounding


@dataclass(frozen=True)
class FixedPoint:
    """R, q and error; the rates, per eta, at which a deviation grows within the plane of W0 and U and out of it."""

    overlap: float
    field: float
    error: float
    in_plane: float
    out_of_plane: float

    @property
    def stable(self) -> bool:
        return self.in_plane < -MARGINAL and self.out_of_plane < MARGINAL


def plain_fixed_points(task: OffCentre) -> tuple[FixedPoint, ...]:
    """All fixed points of the plain rule as its rate goes to 0; those that are not stable are saddles or repel.

    >>> stable = [point for point in plain_fixed_points(OffCentre(0.2, 4.0, -1.95)) if point.stable]
    >>> [(round(point.overlap, 4), round(point.field, 4), round(point.error, 4)) for point in stable]
    [(0.9528, -0.7975, 0.3122)]
    """
    q0, b = task.field, task.across

    def turn(phi: float) -> float:
        k, j = plain_drift(task, q0 * math.cos(phi) + b * math.sin(phi))
        return 0.5 * (-k * math.sin(phi) + j * (b * math.cos(phi) - q0 * math.sin(phi)))

    places = np.linspace(-math.pi, math.pi, PLACES) - 1e-3  # no place is a root that is known beforehand
    heights = [turn(phi) for phi in places]
    points = []
    for low, high, first, last in zip(places[:-1], places[1:], heights[:-1], heights[1:], strict=True):
        if first * last < 0.0:
            phi = float(optimize.brentq(turn, low, high, xtol=1e-15, rtol=1e-14))
            R, q = math.cos(phi), q0 * math.cos(phi) + b * math.sin(phi)
            k, j = plain_drift(task, q)
            within = (turn(phi + 1e-5) - turn(phi - 1e-5)) / 2e-5
            error = task.flip_rate + task.kept * wedge_error(
                task, abs(math.remainder(phi, 2.0 * math.pi)), _side(phi, b)
            )
            points.append(FixedPoint(R, q, error, within, -0.5 * (k * R + j * q)))
    return tuple(points)


def _side(phi: float, b: float) -> float:
    return math.copysign(b, math.remainder(phi, 2.0 * math.pi))


def small_noise_error(task: OffCentre) -> float:
    """Where the plain rule ends to first order in p as its rate goes to 0, (9): p + p |m(q0)| b M(b) / (1 + b^2).

    >>> small_noise_error(OffCentre(1e-3, 4.0, -1.95)) / 1e-3 - 1.0
    0.8769...
    """
    b = task.across
    size = b * mean_sign(b) + gauss(b)
    return task.flip_rate * (1.0 + abs(mean_sign(task.field)) * b * size / (1.0 + b * b))


def off_centre_residual(task: OffCentre, eta: float, rule: str = "plain") -> tuple[float, float, float]:
    """R, q and error where a constant rate ends: the plain rule from a random W, the shifted one on the right side.

    >>> task = OffCentre(flip_rate=0.2, distance=2.0, field=1.0)
    >>> R, q, error = off_centre_residual(task, 0.02, "shifted")
    >>> round(error - 0.2, 5), round(small_rate_error(task, 0.02) - 0.2, 5)
    (0.01085, 0.01053)
    """
    if not 0.0 < eta < math.inf:
        raise InvalidSpec(f"`eta` must be positive and finite; got {eta!r}.")
    if rule == "plain":
        curve = off_centre_curve(task, eta, [SETTLED / min(eta, 1.0)])
        return float(curve.overlap[0]), float(curve.field[0]), float(curve.error[0])
    if rule != "shifted" or task.field == 0.0:
        raise InvalidSpec(f"`rule` must be 'plain', or 'shifted' where the field is not 0; got {rule!r} for {task!r}.")
    q0 = task.field
    pull = gauss(q0) / mean_sign(q0)

    def error(psi: float) -> float:
        return task.flip_rate + task.kept * wedge_error(task, 2.0 * math.atan(math.exp(-psi)), 0.0)

    def turn(psi: float) -> float:
        return float(pull * mean_sign(q0 * math.tanh(psi)) - eta * error(psi) * math.sinh(psi) * math.cosh(psi))

    high = 1.0
    while turn(high) > 0.0:
        high *= 2.0
    places = np.linspace(high, 0.0, PLACES)[:-1]
    above = next((float(place) for place in places if turn(place) > 0.0), None)
    if above is None:
        return 0.0, 0.0, float(off_centre_error(task, 0.0, 0.0))
    psi = float(optimize.brentq(turn, above, high, xtol=1e-15, rtol=1e-14))
    return math.tanh(psi), q0 * math.tanh(psi), error(psi)


def small_rate_error(task: OffCentre, eta: float) -> float:
    """Where the shifted rule ends for a small constant rate: (15), with its factor 1 - 2p."""
    law = math.sqrt(eta * task.flip_rate) * math.exp(-0.25 * task.field**2) / (2.0 * math.pi**3) ** 0.25
    return float(task.flip_rate + task.kept * law)


def linear_slopes(task: OffCentre, eta: float, lost_overlap: float, lost_field: float) -> tuple[float, float]:
    """(14): d(dR)/dalpha and d(dq)/dalpha of the shifted rule, where dR = 1 - R and dq = q0 - q are small."""
    pull, spread = eta * gauss(task.field), 0.5 * eta**2 * task.flip_rate
    across = lost_field + task.field * lost_overlap
    return spread - pull * lost_overlap, spread * task.field - 0.5 * pull * across


def critical_rate(task: OffCentre) -> float:
    """2 g(q0) g(0) q0 / m(q0): above it the shifted rule forgets its sign, R = q = 0 being attracting.

    >>> round(critical_rate(OffCentre(0.2, 4.0, -1.95)), 3)
    0.391
    """
    if task.field == 0.0:
        return 2.0 * gauss(0.0)  # the limit
    return 2.0 * gauss(task.field) * gauss(0.0) * task.field / mean_sign(task.field)


def shifted_law(task: OffCentre, eta0: float, power: float, *, learned: bool = True) -> AsymptoticLaw:
    """How error - p falls in the end where eta = (eta0 / g(q0)) alpha^-power, for T learned or told: (16)-(18).

    A T that is told has the prefactor (1 - 2p) sqrt(eta0^2 p / (2 pi (eta0 - 1))). Without flips the law is that of
    `asymptotic_law`, of eta0 / 2.

    >>> law = shifted_law(OffCentre(0.2, 4.0, -1.95), 2.0, 1.0)
    >>> law.exponent, law.prefactor, math.sqrt(2.0 * 0.2 / math.pi)
    (-0.5, 0.3568..., 0.3568...)
    """
    if not (0.0 < eta0 < math.inf and 0.0 <= power < math.inf):
        raise InvalidSpec(f"`eta0` must be positive and `power` not negative; got {eta0!r} and {power!r}.")
    p, kept = task.flip_rate, task.kept
    if p == 0.0 and power > 0.0:
        return asymptotic_law(0.5 * eta0, power)
    if power > 1.0:
        return AsymptoticLaw(0.0, math.nan)
    if power < 1.0:
        return AsymptoticLaw(-0.5 * power, kept * math.sqrt(eta0 * p / (2.0 * math.pi)))
    if eta0 < 1.0:
        return AsymptoticLaw(-0.5 * eta0, math.nan)
    noise = eta0**2 * p + (8.0 * eta0 * p * p * (1.0 - p) / kept**2 if learned else 0.0)
    if eta0 == 1.0:
        return AsymptoticLaw(-0.5, kept * math.sqrt(noise / (2.0 * math.pi)), 0.5)
    return AsymptoticLaw(-0.5, kept * math.sqrt(noise / (2.0 * math.pi * (eta0 - 1.0))))


def best_eta0(flip_rate: float, *, learned: bool = True) -> float:
    """The eta0 of the smallest prefactor: 2 where T is told, 1 + sqrt(1 + 4p - 4p^2) / (1 - 2p) where it is learned.

    >>> best_eta0(0.2, learned=False), round(best_eta0(0.2), 2)
    (2.0, 3.13)
    """
    if not 0.0 <= flip_rate < 0.5:
        raise InvalidSpec(f"`flip_rate` must be from 0 to less than 1/2; got {flip_rate!r}.")
    if not learned:
        return 2.0
    return 1.0 + math.sqrt(1.0 + 4.0 * flip_rate * (1.0 - flip_rate)) / (1.0 - 2.0 * flip_rate)
