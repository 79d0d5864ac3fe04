"""What a model has learnt, told in the columns and units of another.

With features that are linear in those of before, x' = T x, what rows tell of the weights becomes T A T' and T b in
natural parameters, exactly: also for columns that a model has never seen to vary, which stood still somewhere else than
the others have their centre. Targets in other units, y' = ratio y + shift, change the sums over targets likewise.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Matrix, Vector
from bayou.distributed.naturals import (
    FULL,
    Natural,
    check_family,
    log_partition,
    natural_of,
    packed,
    prior_of,
    taken,
    unpacked,
)
from bayou.encoders.standardizer import Frame
from bayou.errors import InvalidSpec
from bayou.learner import Learner


class Learnt(NamedTuple):
    """What rows have told of the weights; ``log_scale`` is what of the evidence does not depend on other rows."""

    natural: Natural
    rows: int
    log_scale: float


def learnt_by(learner: Learner, log_evidence: float | None = None) -> Learnt:
    """What a learner knows beyond its prior."""
    check_family(learner.posterior)
    fresh = Learner(learner.likelihood, learner.posterior, learner.rule, learner.n_features)
    evidence = learner.log_evidence if log_evidence is None else log_evidence
    log_scale = evidence - log_partition(learner) + log_partition(fresh)
    return Learnt(taken(natural_of(learner), prior_of(fresh)), learner.n_examples, log_scale)


def transition(old: Frame, new: Frame, places: NDArray[np.intp], first: int, intercept: float) -> Matrix:
    """T, where the columns of an old frame lie in these places of a new one. Columns that it does not have were 0.

    A value that was missing in every row stays unknown, which is as if it were at the centre.
    """
    n_old, n_new = old.mean.size, new.mean.size
    T = np.zeros((first + n_new, first + n_old))
    T[:first, :first] = np.eye(first)
    per_deviation = np.divide(1.0, new.deviation, where=new.deviation > 0.0, out=np.zeros(n_new))
    varies = old.deviation > 0.0
    unknown = ~varies & (old.weight == 0.0)
    T[first + places, first + np.arange(n_old)] = old.deviation * per_deviation[places]
    if first:
        at = np.zeros(n_new)
        stood = np.where(varies, old.centre, np.where(unknown, new.centre[places], old.mean))
        np.add.at(at, places, stood)
        T[first:, 0] = (at - new.centre) * per_deviation / intercept
    return T


def told_in(model: Any, learnt: Learnt, frame: Frame, places: NDArray[np.intp]) -> Learnt:
    """What a model has learnt, in the columns of a frame."""
    same = frame.mean.size == places.size and np.array_equal(places, np.arange(places.size))
    own = model._frame
    if same and np.array_equal(own.centre, frame.centre) and np.array_equal(own.deviation, frame.deviation):
        return learnt
    if not isinstance(model._learner_.posterior, FULL):
        return _told_without_correlations(model, learnt, frame, same)
    T = transition(own, frame, places, model._first, model._intercept)
    sums, shifts, *others = learnt.natural
    new_sums = np.stack([packed(T @ unpacked(upper, T.shape[1]) @ T.T) for upper in sums])
    return learnt._replace(natural=(new_sums, shifts @ T.T, *others))


def _told_without_correlations(model: Any, learnt: Learnt, frame: Frame, same: bool) -> Learnt:
    """By the moments of a family that has no correlations to carry what a change of centres makes of them."""
    if not same:
        raise InvalidSpec(f"models of {model._learner_.posterior!r} must have the same columns in the same order.")
    other, own, first = copy.deepcopy(model._learner_), model._frame, model._first
    unit = np.where(own.deviation > 0.0, own.deviation, 1.0)
    known = (own.deviation > 0.0) & (frame.deviation > 0.0)
    ratio = np.where(known, frame.deviation / unit, 1.0)
    shift = np.where(known, (frame.centre - own.centre) / unit, 0.0)
    ones = np.ones(first)
    other.retell(np.concatenate([ones, ratio]), np.concatenate([0.0 * ones, shift / model._intercept]))
    return learnt_by(other)._replace(log_scale=learnt.log_scale)


def in_units(learnt: Learnt, before: tuple[float, float], after: tuple[float, float], n_features: int) -> Learnt:
    """What was learnt of targets in units of a location and a scale, in other units. The intercept's feature is 1."""
    if before == after:
        return learnt
    ratio, shift = before[1] / after[1], (before[0] - after[0]) / after[1]
    sums, shifts, noise = learnt.natural
    of_rows = unpacked(sums[0], n_features)[0]  # sums of the features, of which the first is 1
    of_targets: Vector = ratio * shifts[0] + shift * of_rows
    squares = ratio**2 * noise[0, 1] + ratio * shift * shifts[0, 0] + 0.5 * shift**2 * of_rows[0]
    return learnt._replace(natural=(sums, of_targets[None], np.array([[noise[0, 0], squares]])))


def with_classes(learnt: Learnt, order: list[int]) -> Learnt:
    """What was learnt of classes that are counted in another order: of two, the latent points the other way."""
    if order == sorted(order):
        return learnt
    if len(order) == 2:
        sums, shifts = learnt.natural
        return learnt._replace(natural=(sums, -shifts))
    return learnt._replace(natural=tuple(array[order] for array in learnt.natural))
