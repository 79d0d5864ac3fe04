"""One frame for many: estimators that learn parts of the rows must tell columns and targets in the same units.

What was seen of each part adds up; the frame is taken once, of all of it, before anything is learnt. `Encoding` is then
all that it takes to make features of rows, on any machine.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from bayou.contracts import Mask, Matrix, Vector
from bayou.encoders.standardizer import Frame, check_magnitude, count_and_scale, deviation_of
from bayou.errors import InvalidSpec, InvalidTarget, ShapeMismatch
from bayou.estimators.classifier import OnlineClassifier
from bayou.estimators.counter import OnlineCounter
from bayou.estimators.doublings import next_look
from bayou.estimators.encoded_inputs import NO_WEIGHTS
from bayou.estimators.online import OnlineEstimator
from bayou.estimators.regressor import OnlineRegressor
from bayou.members import Member
from bayou.numerics.column_moments import Moments, moments_and_missing

NO_COMMON_NOW = (
    "{member!r} {why}, and parts of a stream have no common now. Chain the shards in time: learn the parts one after "
    "another, in the order of time, with `partial_fit` (`learn_many` of a bank); or {instead}."
)
ONE_LEARNER = (
    "set a likelihood or a posterior, as {example}, and there is one learner without drift, whose parts add up"
)
INSTEAD: dict[type, str] = {
    OnlineClassifier: "OnlineClassifier(likelihood=Logistic())",
    OnlineRegressor: "OnlineRegressor(posterior=NormalInverseGamma(10.0))",
    OnlineCounter: "OnlineCounter(likelihood=Poisson())",
}


class Seen(NamedTuple):
    """What there is to know of rows before they are learnt; it adds up."""

    rows: int
    weight: float
    missing: int
    columns: Moments
    targets: Moments  # of numbers; none of classes
    largest: float
    labels: tuple[Any, ...]

    @classmethod
    def of(cls, rows: Matrix, targets: NDArray[Any], weights: Vector | None, are_numbers: bool) -> Seen:
        """Of some rows."""
        weight = float(len(rows)) if weights is None else float(weights.sum())
        columns, missing = moments_and_missing(rows, weights)
        if not are_numbers:
            return cls(len(rows), weight, missing, columns, Moments.none(1), 0.0, tuple(np.unique(targets).tolist()))
        values = np.asarray(targets, dtype=np.float64)
        largest = float(values.max()) if values.size else -math.inf
        return cls(len(rows), weight, missing, columns, moments_and_missing(values[:, None], weights)[0], largest, ())

    def joined(self, other: Seen) -> Seen:
        """Of the rows of both."""
        return Seen(
            self.rows + other.rows,
            self.weight + other.weight,
            self.missing + other.missing,
            self.columns.joined(other.columns),
            self.targets.joined(other.targets),
            max(self.largest, other.largest),
            self.labels + tuple(label for label in other.labels if label not in self.labels),
        )


@dataclass(frozen=True, eq=False)
class Encoding:
    """From rows and targets to features and what a learner is told, in a frame that stays."""

    frame: Frame
    first: int
    intercept: float
    centred: bool
    labels: tuple[Any, ...] = ()
    location: float = 0.0
    scale: float = 1.0
    counts: bool = False  # whether targets are counts

    def features(self, rows: Any) -> tuple[Matrix, Mask | None]:
        """Features of rows, and which are missing (None if none are)."""
        given = np.require(rows, dtype=np.float64, requirements=["C", "W"])
        if given.ndim != 2 or given.shape[1] != self.frame.mean.size:
            raise ShapeMismatch(f"rows must have {self.frame.mean.size} columns; got shape {given.shape}.")
        features = np.full((len(given), self.first + given.shape[1]), self.intercept)
        missing = np.zeros(features.shape, dtype=np.bool_)
        place = self.first, features, missing
        absent = count_and_scale(self.frame, given, NO_WEIGHTS, 0, int(self.centred), *place)
        if absent < 0:
            check_magnitude(given)
        return features, missing if absent else None

    def targets(self, values: NDArray[Any]) -> Vector:
        """Targets as a learner takes them."""
        if not self.labels:
            return (np.asarray(values, dtype=np.float64) - self.location) / self.scale
        codes = np.full(len(values), -1.0)
        for code, label in enumerate(self.labels):
            codes[np.asarray(values == label)] = code
        if (codes < 0.0).any():
            raise InvalidTarget(f"labels must be of {list(self.labels)}; got {values[int(np.argmin(codes))]!r}.")
        return codes if len(self.labels) > 2 else 2.0 * codes - 1.0


def begun(
    estimator: OnlineEstimator,
    seen: Seen,
    names: Sequence[str] | None = None,
    keys: Sequence[Hashable] | None = None,
    sparse: bool = False,
) -> OnlineEstimator:
    """An estimator of these settings that has learnt nothing, in the frame of what was seen.

    ``names`` are those of columns, ``keys`` those of dicts; rows of ``sparse`` matrices are not standardised.
    """
    check_kind(estimator)
    model: Any = clone(estimator)
    n_columns = seen.columns.mean.size
    model._given_sparse = sparse
    if isinstance(model, OnlineClassifier):
        if len(seen.labels) < 2:
            raise InvalidTarget(f"there must be two classes at least; got {list(seen.labels)}.")
        model._start(n_columns, sorted_labels(seen.labels), None if keys is None else list(keys))
        model._calibration = None  # it learns from the order of rows
    else:
        model._start(n_columns, None if keys is None else list(keys))
    check_static(model)
    model.n_features_in_ = n_columns
    if names is not None:
        model._column_names = list(names)
    take_frame(model, seen.columns)
    if isinstance(model, OnlineRegressor) and model._in_units:
        take_units(model, seen.targets)
    if isinstance(model, OnlineCounter):
        model._largest = max(seen.largest, 0.0)
    model._seen = seen.weight
    model._next = next_look(seen.weight)
    return model  # type: ignore[no-any-return]  # a clone is of the same class


def check_kind(estimator: Any) -> None:
    """Raise unless it is an estimator whose parts add up."""
    if type(estimator) not in INSTEAD:
        known = ", ".join(kind.__name__ for kind in INSTEAD)
        raise InvalidSpec(f"the estimator must be one of {known}; got {type(estimator).__name__}.")


def check_static(model: Any, instead: str | None = None) -> None:
    """Raise unless a begun estimator has one learner, told in full rows, whose noise is not found beside it."""
    if model._bank is not None:
        check_members(model._bank.members, instead or ONE_LEARNER.format(example=INSTEAD[type(model)]))
        raise InvalidSpec(f"a bank must be told its rows by itself, as `Bank(members, n_features)`; got {model!r}.")
    if model._inputs is not None:
        raise InvalidSpec(f"rows must be told in full; got {model._learner_.posterior!r} for sparse ones.")
    if getattr(model, "_finds_noise", False):
        raise InvalidSpec(f"the noise must be learnt or told where rows are shared out; got {model!r}.")


def check_members(members: Sequence[Member], instead: str, past: bool = True) -> None:
    """Raise unless no member of a bank reads anything into the order of rows; those who see the past may be let in."""
    for member in members:
        if member.drift > 0.0:
            why = "drifts"
        elif member.restarts:
            why = "begins anew where the stream changes"
        elif (member.noise_memory or math.inf) < math.inf:
            why = "forgets the noise"
        elif member.jitters:
            why = "learns the noise of what it expects"
        elif member.jumps:
            why = "takes for jumps what others would not expect"
        elif past and member.past:
            why = "sees past targets, which the first rows of a part do not have"
        else:
            continue
        raise InvalidSpec(NO_COMMON_NOW.format(member=member, why=why, instead=instead))


def encoding_of(model: Any) -> Encoding:
    """How a begun estimator makes features."""
    location, scale = model._units.current if isinstance(model, OnlineRegressor) and model._in_units else (0.0, 1.0)
    labels = tuple(model._codes) if isinstance(model, OnlineClassifier) else ()
    frame = model._frame, model._first, model._intercept, bool(model._centred)
    return Encoding(*frame, labels, location, scale, isinstance(model, OnlineCounter))


def moments_of(model: Any) -> Moments:
    """What a begun estimator has seen of its columns."""
    return Moments(*(array.copy() for array in model._frame[:3]))


def take_frame(model: Any, moments: Moments) -> None:
    """Let the frame of an estimator be that of these moments, in place; what it has learnt is not told anew."""
    frame = model._frame
    for array, value in zip(frame, moments, strict=False):
        array[...] = value
    if not model._standardizes:
        return
    frame.deviation[...] = [deviation_of(frame, j) for j in range(frame.mean.size)]
    frame.centre[...] = np.where(frame.deviation > 0.0, frame.mean, 0.0) if model._standardizer.centred else 0.0


def target_moments_of(model: Any) -> Moments:
    """What a begun regressor has seen of its targets."""
    return Moments(*(array.copy() for array in model._units._frame[:3]))


def take_units(model: Any, moments: Moments) -> None:
    """Let the units of a regressor be those of these moments of targets, in place."""
    for array, value in zip(model._units._frame, moments, strict=False):
        array[...] = value
    model._units.take()


def sorted_labels(labels: tuple[Any, ...]) -> list[Any]:
    """Labels in the order in which classes are told; raises where there is none."""
    try:
        return sorted(labels)
    except TypeError:
        raise InvalidTarget(f"labels must be of one type; got {list(labels)}.") from None
