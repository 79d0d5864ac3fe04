"""Models as values: what two have learnt of different rows, together; and what one has learnt without a part of it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayou.bank import Bank
from bayou.distributed.belonging import check_alike, check_part
from bayou.distributed.naturals import added, log_partition, prior_of, taken, write
from bayou.distributed.readers import placed
from bayou.distributed.retelling import Learnt, in_units, learnt_by, told_in, with_classes
from bayou.distributed.sparse_merging import combined_banks, combined_learners, merged_sparse, sparse_without
from bayou.errors import ImproperBelief, InvalidSpec, StreamError
from bayou.estimators import BayesianCCA, OnlineClassifier, OnlineCounter, OnlineRegressor, TableModel
from bayou.estimators.common_frame import (
    Seen,
    begun,
    moments_of,
    take_frame,
    target_moments_of,
)
from bayou.learner import Learner
from bayou.mixtures import two_views
from bayou.numerics.column_moments import Moments
from bayou.sparse_bank import SparseBank
from bayou.sparse_learner import SparseLearner


def merge(*models: Any) -> Any:
    """What models that learnt different rows know together: the prior, times what each has learnt beyond it.

    They must be of one kind and the same settings; their columns may have been told in other units, and tables may have
    shown them other categories. It is exact for Gaussian likelihoods with every correlation; for others it is a single
    pass over shards that know nothing of each other, which `bayou.distributed.fit` refines. Banks merge member by
    member, if none of them drifts.

    >>> import numpy as np
    >>> from bayou import NormalInverseGamma, OnlineRegressor, merge, subtract
    >>> x = np.random.default_rng(0).normal(size=(300, 2))
    >>> y = x @ [1.0, -2.0] + 3.0
    >>> new = lambda: OnlineRegressor(posterior=NormalInverseGamma(10.0))
    >>> one, other = new().partial_fit(x[:100], y[:100]), new().partial_fit(x[100:], y[100:])
    >>> both = merge(one, other)
    >>> both.n_examples_, both.coef_.round(1)
    (300, array([ 1., -2.]))
    >>> subtract(both, other).n_examples_
    100
    """
    if not models:
        raise InvalidSpec("there must be a model at least to merge; got none.")
    check_alike(models)
    first = models[0]
    if isinstance(first, Bank):
        return first.merged(models[1:])
    if isinstance(first, (SparseLearner, SparseBank)):
        return _combined_sparse([(1.0, one) for one in models])
    if isinstance(first, Learner):
        total = _fresh(first)
        return _combined(total, [(1.0, learnt_by(one)) for one in models])
    if isinstance(first, TableModel):
        return _merged_tables(models)
    if isinstance(first, BayesianCCA):
        return reduce(_merged_views, models)
    if first._inputs is not None:
        return merged_sparse(models)
    places = _places(models)
    return _merged_estimators(models, places, keys=_joined_names(models) or None)


def subtract(whole: Any, part: Any) -> Any:
    """What a model knows without what a part of its rows has taught another of its kind: to forget a customer's rows.

    It is told in the frame of the whole. Exact where `merge` is; raises `ImproperBelief` where the part is none.
    """
    check_alike((whole, part))
    if isinstance(whole, Bank):
        return whole.without(part)
    if isinstance(whole, (Learner, SparseBank)):
        check_part(whole.n_examples, part.n_examples)
        if isinstance(whole, (SparseLearner, SparseBank)):
            return _combined_sparse([(1.0, whole), (-1.0, part)])
        total = _fresh(whole)
        return _combined(total, [(1.0, learnt_by(whole)), (-1.0, learnt_by(part))])
    if isinstance(whole, TableModel):
        check_part(whole.n_rows, part.n_rows)
        layout, places = _joined_layouts(whole, part)
        if not layout.hashed and len(layout.names) > whole.estimator._frame.mean.size:
            raise ImproperBelief(f"the part has values that the whole has not: {layout.names[-1]!r} was never learnt.")
        rest = copy.copy(whole)
        ways = (whole.estimator, part.estimator)
        rest.estimator = sparse_without(*ways) if layout.hashed else _without(*ways, places)
        rest.n_rows = whole.n_rows - part.n_rows
        return rest
    check_part(whole.n_examples_, part.n_examples_)
    if isinstance(whole, BayesianCCA):
        return _views_without(whole, part)
    if whole._inputs is not None:
        return sparse_without(whole, part)
    names = list(whole._names)
    for name in part._names:
        if name not in whole._names:
            raise ImproperBelief(f"the part has an input that the whole has not: {name!r} was never learnt.")
    return _without(whole, part, _placed(part, names))


# --- learners


def _combined_sparse(parts: Sequence[tuple[float, Any]]) -> Any:
    return (combined_banks if isinstance(parts[0][1], SparseBank) else combined_learners)(parts)


def _fresh(learner: Learner) -> Learner:
    return Learner(learner.likelihood, learner.posterior, learner.rule, learner.n_features)


def _combined(total: Learner, parts: Sequence[tuple[float, Learnt]]) -> Learner:
    """Write what parts tell together to a learner that knows nothing."""
    at_first, natural = log_partition(total), prior_of(total)
    for share, part in parts:
        natural = added(natural, part.natural) if share > 0.0 else taken(natural, part.natural)
    write(total, natural)
    total.n_examples = sum(int(share) * part.rows for share, part in parts)
    total.log_evidence = sum(share * part.log_scale for share, part in parts) + log_partition(total) - at_first
    return total


# --- estimators


def _learnt(model: Any) -> Learnt:
    """In its own frame; evidence is that of targets in its own units."""
    learner, (_, scale) = model._learner_, _units(model)
    in_own_units = model.log_evidence_ + learner.n_examples * float(np.log(scale))
    return learnt_by(learner, in_own_units if _has_units(model) else None)


def _has_units(model: Any) -> bool:
    return isinstance(model, OnlineRegressor) and model._in_units


def _units(model: Any) -> tuple[float, float]:
    found: tuple[float, float] = model._units.current if _has_units(model) else (0.0, 1.0)
    return found


def _told(model: Any, to: Any, places: NDArray[np.intp]) -> Learnt:
    """What a model has learnt, in the columns, units and classes of another."""
    learnt = _learnt(model)
    if _has_units(model):
        learnt = in_units(learnt, _units(model), _units(to), model._learner_.n_features)
    learnt = told_in(model, learnt, to._frame, places)
    if isinstance(model, OnlineClassifier):
        learnt = with_classes(learnt, [model._codes[label] for label in to._codes])
    return learnt


def _seen(model: Any, places: NDArray[np.intp], n_columns: int) -> Seen:
    """What a model has seen, in the columns of all."""
    own = moments_of(model)
    targets = target_moments_of(model) if isinstance(model, OnlineRegressor) else Moments.none(1)
    labels = tuple(model._codes) if isinstance(model, OnlineClassifier) else ()
    largest = model._largest if isinstance(model, OnlineCounter) else 0.0
    seen = Seen(model._learner_.n_examples, model._seen, 0, own, targets, largest, labels)
    told = placed(seen, places, n_columns)
    if model._names:  # an input that never came is missing, not 0
        told.columns.weight[np.setdiff1d(np.arange(n_columns), places)] = 0.0
    return told


def _merged_estimators(
    models: Sequence[Any],
    places: Sequence[NDArray[np.intp]],
    names: Sequence[str] | None = None,
    keys: Sequence[Any] | None = None,
) -> Any:
    first = models[0]
    n_columns = max(len(names or ()), len(keys or ()), first._frame.mean.size)
    seen = reduce(Seen.joined, (_seen(m, at, n_columns) for m, at in zip(models, places, strict=True)))
    total: Any = begun(first, seen, names, keys, first._given_sparse)
    _keep_frame(total, models, places)
    parts = [(1.0, _told(model, total, at)) for model, at in zip(models, places, strict=True)]
    _combined(total._learner_, parts)
    if _has_units(total):
        total._units.log_scales = total._learner_.n_examples * float(np.log(_units(total)[1]))
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(first, name) and not names:
            setattr(total, name, getattr(first, name))
    if keys is not None:
        total.__dict__.pop("n_features_in_", None)
    return total


def _keep_frame(total: Any, models: Sequence[Any], places: Sequence[NDArray[np.intp]]) -> None:
    """Where all have the same frame and units it stays, and nothing need be told anew."""
    frames = [model._frame for model in models]
    same = all(at.size == total._frame.mean.size and np.all(np.diff(at) == 1) for at in places)
    for name in ("centre", "deviation"):
        same = same and all(np.array_equal(getattr(frame, name), getattr(frames[0], name)) for frame in frames)
    if same:
        total._frame.centre[...], total._frame.deviation[...] = frames[0].centre, frames[0].deviation
    if _has_units(total) and len({_units(model) for model in models}) == 1:
        total._units.current = _units(models[0])


def _without(whole: Any, part: Any, places: NDArray[np.intp]) -> Any:
    told, of_part = _learnt(whole), _told(part, whole, places)
    rest: Any = type(whole).from_state(whole.to_state())
    rest._column_names = whole._column_names
    rest._learner_ = _combined(_fresh(whole._learner_), [(1.0, told), (-1.0, of_part)])
    seen = _seen(part, places, whole._frame.mean.size)
    centre, deviation = whole._frame.centre.copy(), whole._frame.deviation.copy()
    take_frame(rest, moments_of(whole).without(seen.columns))
    rest._frame.centre[...], rest._frame.deviation[...] = centre, deviation
    rest._seen = max(whole._seen - part._seen, 0.0)
    if _has_units(rest):
        moments = target_moments_of(whole).without(seen.targets)
        for array, value in zip(rest._units._frame, moments, strict=False):
            array[...] = value
        rest._units.log_scales = rest._learner_.n_examples * float(np.log(_units(rest)[1]))
    return rest


def _joined_names(models: Sequence[Any]) -> list[Any]:
    """Inputs of dicts, in the order in which models have met them."""
    return list(dict.fromkeys(name for model in models for name in model._names))


def _placed(model: Any, names: list[Any]) -> NDArray[np.intp]:
    if not model._names:
        return np.arange(model._frame.mean.size)
    return np.array([names.index(name) for name in model._names])


def _places(models: Sequence[Any]) -> list[NDArray[np.intp]]:
    names = _joined_names(models)
    return [_placed(model, names) for model in models]


# --- tables


def _joined_layouts(one: TableModel, other: TableModel) -> tuple[Any, NDArray[np.intp]]:
    assert one.layout is not None
    assert other.layout is not None
    bases = [layout.to_state().config.get("basis") for layout in (one.layout, other.layout)]
    if bases[0] != bases[1]:
        raise InvalidSpec("models must have the same basis; got other knots: begin both by the same rows.")
    try:
        joined: tuple[Any, NDArray[np.intp]] = one.layout.joined(other.layout)
        return joined
    except StreamError as error:
        raise InvalidSpec(str(error)) from None


def _merged_tables(models: Sequence[TableModel]) -> TableModel:
    first = models[0]
    layout = first.layout
    places: list[NDArray[np.intp]] = [np.arange(len(layout.names) if layout else 0)]
    both = copy.copy(first)
    for model in models[1:]:
        both.layout, at = _joined_layouts(both, model)
        places.append(at)
    assert both.layout is not None
    merged = TableModel(first.target.text, first.task, first.encoder, first.weight, first.bits, first.budget)
    merged.target, merged.layout = first.target, both.layout
    each = [model.estimator for model in models]
    in_full = not both.layout.hashed
    merged.estimator = _merged_estimators(each, places, both.layout.names) if in_full else merged_sparse(each)
    merged.n_rows = sum(model.n_rows for model in models)
    return merged


# --- two views: moments, which add up as they are


def _of_views(like: Any, moments: two_views.Moments, n_rows: int) -> Any:
    other = type(like).from_state(like.to_state())
    other._moments, other._n_rows, other._solved = moments, n_rows, None
    return other


def _merged_views(one: Any, other: Any) -> Any:
    return _of_views(one, two_views.merged(one._moments, other._moments), one._n_rows + other._n_rows)


def _views_without(whole: Any, part: Any) -> Any:
    weight = whole._moments.weight - part._moments.weight
    if not weight > 0.0:
        raise ImproperBelief("nothing would be left: the part is all of the whole.")
    mean = (whole._moments.weight * whole._moments.mean - part._moments.weight * part._moments.mean) / weight
    rest = two_views.Moments(weight, mean, np.zeros_like(whole._moments.scatter))
    apart = two_views.merged(rest, part._moments).scatter - part._moments.scatter  # by the distance of their means
    scatter = whole._moments.scatter - part._moments.scatter - apart
    if not np.all(np.diag(scatter) >= -1e-9 * np.diag(whole._moments.scatter)):
        raise ImproperBelief("the part varies more than the whole: it was never learnt.")
    return _of_views(whole, rest._replace(scatter=scatter), whole._n_rows - part._n_rows)
