"""Probabilities that come true as often as they say: what a model is wrong about is learnt from how it turned out.

A bank within a small problem of its own, one number in and one out: members that bend the log odds by a curve, some
smooth and some bold, some that forget, some that see the latest errors, some that see nothing but the latest labels;
and one that leaves them as they are. Weighed by evidence, they cost next to nothing where there is nothing to mend.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from bayou.contracts import Matrix, State, Vector
from bayou.errors import ImproperBelief, InvalidTarget, ModelFileError, ShapeMismatch
from bayou.likelihoods import Logistic
from bayou.numerics.calibration import (
    MEMORIES,
    CalibrationBelief,
    CalibrationPlan,
    CalibrationRoom,
    forecast_calibrated,
    learn_calibrated,
    learn_late_calibrated,
    predict_calibrated,
)
from bayou.numerics.jit import COMPILED, entry_point
from bayou.numerics.pointers import scalar_kernels
from bayou.numerics.validation import checked_weights
from bayou.rules import MomentMatching

KNOTS = (-8.0, -5.0, -3.5, -2.5, -1.5, -0.75, 0.0, 0.75, 1.5, 2.5, 3.5, 5.0, 8.0)  # log odds
SMOOTHNESS = 2.0  # log odds over which a curve becomes another
SWITCHING = (0.0, 1e-4, 1e-3, 1e-2)
N_TRAIL = MEMORIES.size + 1
BOLD = 9.0  # prior variance of what the last label says to those who see nothing else
_EQUAL_WEIGHTS: Vector = np.zeros(0)
_ENTRIES: dict[str, Any] = {}


class Curve(NamedTuple):
    """A member: how far its curve may go, which share of what it knows it forgets per row, and whether it sees the
    trail of the latest errors. One that is ``blind`` sees nothing else: where inputs tell nothing, or mislead, it is
    what repeats the last label as far as that was right.
    """

    reach: float
    forgets: float
    sees_trail: bool = False
    blind: bool = False

    @property
    def size(self) -> int:
        return len(KNOTS) + (N_TRAIL if self.sees_trail else 0)

    def prior(self) -> Matrix:
        """Covariance of its weights: a smooth curve, which may be steeper or flatter on the whole, and the trail."""
        knots = np.array(KNOTS)
        apart = (knots[:, None] - knots) * (not self.blind)
        tilt = 0.0 if self.blind else 0.04
        curve = np.exp(-0.5 * (apart / SMOOTHNESS) ** 2) + tilt * np.outer(knots, knots) + 1e-4 * np.eye(knots.size)
        covariance = np.eye(self.size)
        covariance[-1, -1] = BOLD if self.blind else 1.0
        covariance[: knots.size, : knots.size] = self.reach**2 * curve
        return covariance


CURVES = (
    *(Curve(reach, forgets) for reach in (0.15, 0.5, 1.5) for forgets in (0.0, 1e-3)),
    *(Curve(0.5, forgets, sees_trail=True) for forgets in (0.0, 1e-3)),
    Curve(1.0, 0.0, sees_trail=True, blind=True),
)
LEAN = CURVES[6:8]  # those that see the trail: most of what all of them gain, for a quarter of the time


class Foreseen(NamedTuple):
    """A forecast that waits for its target: the probability given, what was said of it, and by whom; ``step`` is when:
    how many were forecast or learnt before.
    """

    given: float
    said: float
    step: int
    trail: Vector
    issued: Vector
    chains: Matrix


class Calibration:
    """Learns, row by row, how often what a model says of two classes comes true, and says that instead.

    Targets are -1 and +1; probabilities those of +1. ``gain`` is by how much the log probability of all targets is
    larger than that of what was given. `learn_many` in chunks of any size is the same as a loop.

    >>> import numpy as np
    >>> from bayou import Calibration
    >>> random = np.random.default_rng(0)
    >>> chance = random.uniform(size=5000)
    >>> came = np.where(random.uniform(size=5000) < chance, 1.0, -1.0)
    >>> too_bold = chance**3 / (chance**3 + (1 - chance) ** 3)
    >>> calibration = Calibration()
    >>> _ = calibration.learn_many(too_bold, came)
    >>> calibration.predict_many([0.027, 0.5, 0.973]).round(1)
    array([0.2, 0.5, 0.8])
    """

    def __init__(self, curves: Sequence[Curve] = CURVES) -> None:
        size = max(curve.size for curve in curves)
        prior = np.zeros((len(curves), size * size))
        for row, curve in zip(prior, curves, strict=True):
            row[: curve.size**2] = curve.prior().ravel()
        self.curves = tuple(curves)
        self._plan = CalibrationPlan(
            knots=np.array(KNOTS),
            begins=np.array([float(not curve.blind) for curve in curves]),
            size=np.array([curve.size for curve in curves]),
            prior=prior,
            forgets=np.array([curve.forgets for curve in curves]),
            switching=np.array(SWITCHING),
        )
        shape = len(SWITCHING), len(curves) + 1
        self.belief = CalibrationBelief(
            mean=np.zeros((len(curves), size)),
            covariance=prior.copy(),
            chains=np.full(shape, 1.0 / math.prod(shape)),
            trail=np.zeros(N_TRAIL),
        )
        rooms = (len(KNOTS) + N_TRAIL, size, shape[1], shape[1], shape[0], shape[0])  # all features, seen or not
        self._room = CalibrationRoom(*(np.zeros(room) for room in rooms))
        self.gain, self.n_examples, self.n_steps = 0.0, 0, 0
        self._prepare()

    def _prepare(self) -> None:
        """Compile what is not yet on disk."""
        likelihood = Logistic()
        table = scalar_kernels(likelihood, MomentMatching())
        self._with = self.belief, self._plan, np.array(table) if COMPILED else table, likelihood.params
        if not _ENTRIES:
            one, room, chains = np.zeros(1), self._room, self.belief.chains
            late = 0.5, 1.0, one, one, chains, 0.0, room
            _ENTRIES["predict"] = entry_point(predict_calibrated, *self._with, one, one, room)
            _ENTRIES["learn"] = entry_point(learn_calibrated, *self._with, one, one, one, one, room)
            _ENTRIES["forecast"] = entry_point(forecast_calibrated, *self._with, 0.5, one, chains, room)
            _ENTRIES["learn_late"] = entry_point(learn_late_calibrated, *self._with, *late)

    @property
    def share_unchanged(self) -> float:
        """How probable it is that what is given needs no mending."""
        return float(self.belief.chains[:, -1].sum())

    def predict_many(self, probabilities: ArrayLike) -> Vector:
        """What comes true of each probability."""
        given = _checked(probabilities)
        calibrated = np.empty_like(given)
        _ENTRIES["predict"](*self._with, given, calibrated, self._room)
        return calibrated

    def learn_many(self, probabilities: ArrayLike, targets: ArrayLike, weights: ArrayLike | None = None) -> Vector:
        """Learn how these turned out; returns what was said of each before its target was used."""
        given, came = _checked(probabilities), np.require(targets, np.float64, ["C", "W"])
        if came.shape != given.shape:
            raise ShapeMismatch(f"`targets` must have one value per probability, {given.size}; got {came.shape}.")
        _check_targets(came)
        counts = _EQUAL_WEIGHTS if weights is None else checked_weights(weights, given.size)
        calibrated = np.empty_like(given)
        _ENTRIES["learn"](*self._with, given, came, counts, calibrated, self._room)
        self._count(calibrated, given, came)
        self.n_steps += came.size
        return calibrated

    def forecast(self, probability: float) -> Foreseen:
        """What comes true of a probability whose target comes later: `learn_late` takes it with the target."""
        given = float(probability)
        if not 0.0 <= given <= 1.0:
            raise InvalidTarget(f"`probability` must be from 0 to 1; got {probability}.")
        issued, foreseen = np.empty(self.belief.chains.shape[1]), np.empty_like(self.belief.chains)
        said = _ENTRIES["forecast"](*self._with, given, issued, foreseen, self._room)
        self.n_steps += 1
        return Foreseen(given, float(said), self.n_steps, self.belief.trail.copy(), issued, foreseen)

    def learn_late(self, foreseen: Foreseen, target: float) -> None:
        """Learn how a forecast turned out. Members are weighed by what they said when they were asked, and by less the
        more forecasts there were since.
        """
        came = np.array([target], np.float64)
        _check_targets(came)
        given, said, step, trail, issued, chains = foreseen
        shape = self.belief.chains.shape
        if issued.shape != shape[1:] or chains.shape != shape or trail.size != N_TRAIL or step > self.n_steps:
            raise ShapeMismatch("`foreseen` must be a forecast of such a calibration.")
        lag = float(self.n_steps - step)
        _ENTRIES["learn_late"](*self._with, given, float(came[0]), trail, issued, chains, lag, self._room)
        self._count(np.array([said]), np.array([given]), came)

    def _count(self, said: Vector, given: Vector, came: Vector) -> None:
        """By how much more probable the targets were."""
        before = [np.clip(np.where(came > 0.0, p, 1.0 - p), 1e-300, 1.0) for p in (said, given)]
        self.gain += float(np.sum(np.log(before[0]) - np.log(before[1])))
        self.n_examples += came.size

    # --- as data

    def to_state(self) -> State:
        """All that was learnt, as data."""
        curves = [list(curve) for curve in self.curves]
        config = {"gain": self.gain, "n_examples": self.n_examples, "n_steps": self.n_steps, "curves": curves}
        return State(config, dict(self.belief._asdict()))

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The calibration that this data describes; it continues to the last bit."""
        curves = state.config.get("curves")  # files of before have the first of them
        known = CURVES[: len(state.arrays["mean"])] if curves is None else [Curve(*curve) for curve in curves]
        if not all(curve in CURVES for curve in known):
            raise ModelFileError(f"curves must be some of {CURVES}; got {known}.")
        calibration = cls(known)
        for name, own in calibration.belief._asdict().items():
            saved = state.arrays[name]
            if saved.shape != own.shape or saved.dtype != own.dtype or not np.isfinite(saved).all():
                raise ModelFileError(f"`{name}` must be finite {own.dtype} of shape {own.shape}; got {saved.shape}.")
            own[...] = saved
        chains = calibration.belief.chains
        if not (np.all(chains > 0.0) and abs(chains.sum() - 1.0) < 1e-6):
            raise ImproperBelief(f"weights of members must be positive and sum to 1; got {chains.sum()}.")
        calibration.gain, calibration.n_examples = float(state.config["gain"]), int(state.config["n_examples"])
        calibration.n_steps = int(state.config.get("n_steps", calibration.n_examples))
        return calibration

    def __getstate__(self) -> dict[str, Any]:
        return {"state": self.to_state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        config, arrays = state["state"]
        self.__dict__.update(self.from_state(State(config, {name: a.copy() for name, a in arrays.items()})).__dict__)

    def __repr__(self) -> str:
        return f"Calibration({self.n_examples} examples, unchanged with probability {self.share_unchanged:.2f})"


def _check_targets(came: Vector) -> None:
    legal = np.isin(came, (-1.0, 1.0))
    if not legal.all():
        raise InvalidTarget(f"targets must be -1 or +1; got {came[~legal][0]}.")


def _checked(probabilities: ArrayLike) -> Vector:
    given = np.require(probabilities, np.float64, ["C", "W"])
    if given.ndim != 1:
        raise ShapeMismatch(f"`probabilities` must be a vector; got shape {given.shape}.")
    if not np.all((given >= 0.0) & (given <= 1.0)):
        raise InvalidTarget(f"probabilities must be from 0 to 1; got {given[~((given >= 0.0) & (given <= 1.0))][0]}.")
    return given


__all__ = ["CURVES", "Calibration", "Curve", "Foreseen"]
