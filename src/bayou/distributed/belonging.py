"""Which models belong together: of one kind, with the same settings, and none that knows of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bayou.bank import Bank
from bayou.distributed.hashed_shards import check_one_learner
from bayou.errors import ImproperBelief, InvalidSpec
from bayou.estimators import BayesianCCA, OnlineClassifier, TableModel
from bayou.estimators.common_frame import INSTEAD, check_members, check_static
from bayou.learner import Learner
from bayou.sparse_bank import SparseBank
from bayou.sparse_learner import SparseLearner

KINDS = (Learner, SparseLearner, Bank, SparseBank, TableModel, BayesianCCA, *INSTEAD)
OF_TABLES = (
    "learn the parts by `bayou learn --workers` or `bayou.distributed.fit`, which let one learner without drift stand "
    "for the bank, and what they have learnt adds up"
)


def check_alike(models: Sequence[Any]) -> None:
    """Raise unless models are of one kind, with the same settings."""
    first = models[0]
    for model in models:
        if type(model) not in KINDS:
            known = ", ".join(kind.__name__ for kind in KINDS)
            raise InvalidSpec(f"models that add up are of {known}; got {type(model).__name__}.")
        if type(model) is not type(first):
            raise InvalidSpec(f"models must be of one kind, {type(first).__name__}; got {type(model).__name__}.")
        settings, others = _settings(first), _settings(model)
        for name, value in settings.items():
            if others.get(name) != value:
                raise InvalidSpec(f"models must have the same {name}, {value!r}; got {others.get(name)!r}.")


def _settings(model: Any) -> dict[str, Any]:
    """All that must be the same; raises of a model that adds up with none."""
    if isinstance(model, Learner):
        names = ["likelihood", "posterior", "rule", "n_features"] + ["constant"] * isinstance(model, SparseLearner)
        return {name: getattr(model, name) for name in names}
    if isinstance(model, (Bank, SparseBank)):
        check_members(model.members, "let all members be as Member(likelihood), without drift", past=False)
        names = ["members", "n_features"] + ["constant", "switching"] * isinstance(model, SparseBank)
        return {name: getattr(model, name) for name in names}
    if isinstance(model, TableModel):
        if model.layout is None or not model.begun:
            raise InvalidSpec(f"a model must have learnt something; got {model!r}.")
        if model.waiting:
            raise InvalidSpec(f"a model must not wait for targets; got one that waits for {len(model.waiting)}.")
        told: dict[str, Any] = {
            "target": model.target.text,
            "task": model.task,
            "weight": model.weight,
            "encoder": model.encoder,
        }
        told |= {"encoder of tables": model.encoder, "kinds of columns": model.kinds()}
        return {**told, **_settings_of_estimator(model.estimator, OF_TABLES)}
    if not model._begun():
        raise InvalidSpec(f"a model must have learnt something; got {model!r}.")
    if isinstance(model, BayesianCCA):
        return settings_of_views(model)
    return _settings_of_estimator(model)


def _settings_of_estimator(model: Any, instead: str | None = None) -> dict[str, Any]:
    if model._inputs is None:
        check_static(model, instead)
    else:
        check_one_learner(model, instead)
    settings: dict[str, Any] = dict(model.get_params(deep=False))
    settings |= {"posterior": model._learner_.posterior, "likelihood": model._learner_.likelihood}
    if isinstance(model, OnlineClassifier):
        settings["classes"] = model.classes_.tolist()
    if model.encoder is not None:
        return settings
    settings["kind of rows"] = "dicts" if model._names else "sparse" if model._given_sparse else "in full"
    if model._names:
        return settings
    columns = getattr(model, "feature_names_in_", None)
    settings["names of columns"] = None if columns is None else columns.tolist()
    if model._column_names is None:  # those of tables are joined
        settings["number of columns"] = model._inputs.n_columns if model._inputs else model._frame.mean.size
    return settings


def check_part(rows: int, of_part: int) -> None:
    if of_part > rows:
        raise ImproperBelief(f"a part must have no more rows than the whole, {rows:,}; got {of_part:,}.")


def settings_of_views(model: Any) -> dict[str, Any]:
    """The same of a model of two views."""
    if model.half_life is not None:
        raise InvalidSpec(f"a model that forgets knows what is so now, and parts have no common now; got {model!r}.")
    views = {"columns of both views": (model._n_x, model._moments.mean.size - model._n_x)}
    return {**model.get_params(deep=False), **views, "names": (model._x_names, model._y_names)}
