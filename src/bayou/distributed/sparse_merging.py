"""Models of sparse rows as values: weights add up one by one, those of numbers in the units that all have together.

Weights are taken as independent, and added up as such: a single pass over shards that know nothing of each other.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayou.bank_merging import weigh
from bayou.contracts import Vector
from bayou.distributed.hashed_shards import begun_sparse
from bayou.encoders.standardizer import Frame
from bayou.errors import ImproperBelief, InvalidSpec
from bayou.estimators import OnlineClassifier, OnlineCounter
from bayou.estimators.common_frame import Seen
from bayou.estimators.sparse_inputs import HashedInputs, SparseInputs
from bayou.numerics.column_moments import Moments
from bayou.numerics.independent import combined
from bayou.posteriors.sparse_diagonal_gaussian import SparseDiagonalBelief
from bayou.sparse_bank import SparseBank
from bayou.sparse_learner import SparseLearner

# --- learners and banks


def combined_learners(parts: Sequence[tuple[float, SparseLearner]]) -> SparseLearner:
    """What learners know together, each so many times; evidence is what their rows were given."""
    first = parts[0][1]
    total = SparseLearner(first.likelihood, first.posterior, first.rule, first.n_features, first.constant)
    for own, *others in zip(total.beliefs(), *(learner.beliefs() for _, learner in parts), strict=True):
        told = list(zip((share for share, _ in parts), others, strict=True))
        own.mean[...], own.variance[...] = combined(first.posterior.prior(first.n_features), told)
    total.n_examples = sum(int(share) * learner.n_examples for share, learner in parts)
    total.log_evidence = sum(share * learner.log_evidence for share, learner in parts)
    return total


def combined_banks(parts: Sequence[tuple[float, SparseBank]]) -> SparseBank:
    """What banks know together, member by member, of whom none may drift."""
    first = parts[0][1]
    total = SparseBank(first.members, first.n_features, first.constant, first.switching)
    belief = total.belief
    for m in range(len(first.members)):
        told = [(share, SparseDiagonalBelief(bank.belief.weights[:, :, m])) for share, bank in parts]
        prior = SparseDiagonalBelief(belief.weights[:, :, m])
        belief.weights[:, 0, m], belief.weights[:, 1, m] = combined(prior, told)
    belief.steps[...] = sum(int(share) * bank.belief.steps for share, bank in parts)
    belief.seen[...] = belief.steps[0]  # which says how long a weight has walked: here none does
    evidence = float(sum(share * bank.log_evidence for share, bank in parts))
    beliefs = [(share, bank.belief) for share, bank in parts]
    total.log_evidence = evidence + weigh(belief, total.plan, beliefs, np.zeros(len(first.members)))
    total.n_examples = sum(int(share) * bank.n_examples for share, bank in parts)
    return total


# --- estimators


def merged_sparse(models: Sequence[Any]) -> Any:
    """What estimators of sparse rows know together."""
    first = models[0]
    seen = [_seen(model) for model in models]
    all_seen = seen[0]
    for other in seen[1:]:
        all_seen = all_seen.joined(other)
    total: Any = begun_sparse(first, all_seen, first._entries, first._inputs.n_columns)
    if isinstance(total._inputs, HashedInputs):
        _join_inputs(total._inputs, [model._inputs for model in models])
    total._learner_ = combined_learners([(1.0, _told(model, total)) for model in models])
    _keep_names(first, total)
    return total


def sparse_without(whole: Any, part: Any) -> Any:
    """What an estimator of sparse rows knows without what a part of its rows has taught another."""
    if isinstance(whole._inputs, HashedInputs):
        for name in part._inputs._numbers:
            if name not in whole._inputs._numbers:
                raise ImproperBelief(f"the part has a number that the whole has not: {name!r} was never learnt.")
    rest: Any = type(whole).from_state(whole.to_state())
    rest._learner_ = combined_learners([(1.0, whole._learner_), (-1.0, _told(part, whole))])
    rest._seen = max(whole._seen - part._seen, 0.0)
    if isinstance(rest._inputs, HashedInputs):
        frame, of_part = rest._inputs._frame, part._inputs._frame
        at = _places(part._inputs, rest._inputs)
        left = Moments(*(array[at] for array in frame[:3])).without(Moments(*of_part[:3]))
        for array, value in zip(frame, left, strict=False):
            array[at] = value
    return rest


def _keep_names(first: Any, total: Any) -> None:
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(first, name):
            setattr(total, name, getattr(first, name))


def _seen(model: Any) -> Seen:
    """What a model has seen, but for its columns."""
    labels = tuple(model._codes) if isinstance(model, OnlineClassifier) else ()
    largest = model._largest if isinstance(model, OnlineCounter) else 0.0
    return Seen(model._learner_.n_examples, model._seen, 0, Moments.none(0), Moments.none(1), largest, labels)


def _join_inputs(total: HashedInputs, each: Sequence[HashedInputs]) -> None:
    """Let inputs know the names of all, and tell numbers by what all have seen; where all agree on units, in these."""
    total.names = each[0].names
    for other in each[1:]:
        total.names = total.names.joined(other.names)
    for inputs in each:
        total._others |= inputs._others
    total._admit(list(dict.fromkeys(name for inputs in each for name in inputs._numbers)))
    for name in total._numbers:
        if name in total._others:
            raise InvalidSpec(f"column {name!r} must be of one kind in all models; got numbers and other values.")
    frame, seen = total._frame, Moments.none(len(total._numbers))
    for inputs in each:
        at, own = _places(inputs, total), Moments.none(len(total._numbers))
        for array, value in zip(own, inputs._frame, strict=False):
            array[at] = value
        seen = seen.joined(own)
    for array, value in zip(frame, seen, strict=False):
        array[...] = value
    total.take_frame()
    for name, j in total._numbers.items():
        units = {_unit(inputs._frame, inputs._numbers[name]) for inputs in each if name in inputs._numbers}
        if len(units) == 1:
            frame.centre[j], frame.deviation[j] = units.pop()


def _unit(frame: Frame, j: int) -> tuple[float, float]:
    return float(frame.centre[j]), float(frame.deviation[j])


def _places(inputs: HashedInputs, among: HashedInputs) -> NDArray[np.intp]:
    """Where the numbers of some inputs lie among those of others."""
    return np.array([among._numbers[name] for name in inputs._numbers], dtype=np.intp)


def _told(model: Any, to: Any) -> SparseLearner:
    """What a model has learnt, in the units and the order of classes of another."""
    learner: SparseLearner = model._learner_
    if isinstance(model._inputs, HashedInputs):
        learner = _in_units(model._inputs, learner, to._inputs)
    order = [model._codes[label] for label in to._codes] if isinstance(model, OnlineClassifier) else []
    if order == sorted(order):
        return learner
    other = copy.deepcopy(learner)
    if len(order) == 2:
        other.belief.mean[...] *= -1.0
    else:
        for array, own in zip(other.belief, learner.belief, strict=True):
            array[...] = own[order]
    return other


def _in_units(inputs: HashedInputs, learner: SparseLearner, to: SparseInputs) -> SparseLearner:
    """What was learnt of numbers in other units; one that stood still has taught nothing of its own weight."""
    assert isinstance(to, HashedInputs)
    own, at = inputs._frame, _places(inputs, to)
    centre, deviation = to._frame.centre[at], to._frame.deviation[at]
    known = (own.deviation > 0.0) & (deviation > 0.0)
    unit = np.where(known, own.deviation, 1.0)
    ratio: Vector = np.where(known, deviation / unit, 1.0)
    shift: Vector = np.where(known, (centre - own.centre) / unit, 0.0)
    if np.all(ratio == 1.0) and not shift.any():
        return learner
    other = copy.deepcopy(learner)
    inputs.retell(other, ratio, shift)
    return other
