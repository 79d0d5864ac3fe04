"""Targets that come late: what estimators do with them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bayou.calibration import Foreseen
from bayou.contracts import SparseRows
from bayou.encoders.standardizer import check_magnitude
from bayou.errors import InvalidSpec, ShapeMismatch
from bayou.estimators.chosen_learner import ChosenLearner
from bayou.estimators.encoded_inputs import NO_WEIGHTS
from bayou.estimators.forecasts import Forecasts, Issued, Pending
from bayou.numerics.sparse_rows import checked


class LateTargets(ChosenLearner):
    """What estimators do with targets that come late; mixed into those that may have a bank."""

    _pending: Forecasts | None = None

    @property
    def forecasts(self) -> Forecasts:
        """Those that wait for their targets."""
        if self._pending is None:
            self._pending = Forecasts()
        return self._pending

    def forecast_one(self, x: Mapping[Hashable, Any] | Any) -> Issued:
        """Say what is known of a dict, or of one row, sparse or not, and let it wait for its target: `learn_late` takes
        its id.

        >>> from bayou import OnlineClassifier
        >>> model = OnlineClassifier()
        >>> for size in (1.0, 9.0, 8.0, 2.0, 1.0, 9.0, 2.0, 8.0):
        ...     model.learn_one({"size": size}, "large" if size > 5.0 else "small")
        >>> issued = model.forecast_one({"size": 7.0})
        >>> issued.said["large"] > 0.5
        True
        >>> model.learn_late(issued.id, "large")
        """
        return self.forecast_many([x])[0]

    def forecast_many(self, X: Iterable[Any]) -> list[Issued]:
        """`forecast_one` of each of these, in order, in less time; where one of them is wrong, none waits.

        >>> from bayou import OnlineRegressor
        >>> model = OnlineRegressor()
        >>> for size in (1.0, 9.0, 8.0, 2.0, 1.0, 9.0, 2.0, 8.0):
        ...     model.learn_one({"size": size}, 10.0 * size)
        >>> small, large = model.forecast_many([{"size": 1.0}, {"size": 7.0}])
        >>> bool(small.said.mean < large.said.mean), model.learn_late(large.id, 70.0)
        (True, None)
        """
        examples = [_kept(x) for x in X]
        self.forecasts.check_room(len(examples))
        if not self._begun():
            for example in examples:  # later ones are looked at by who says something of them
                self._check_first(example)
            return [Issued(self.forecasts.issue(Pending(example, None, (0.0, 1.0))), None) for example in examples]
        if self._bank is None:
            said = [self._predicted(example) for example in examples]
            foreseen: Sequence[Foreseen | None] = [it for one in said for it in self._foreseen(one, 1)]
            waiting = [Pending(example, None, (0.0, 1.0), one) for example, one in zip(examples, foreseen, strict=True)]
        elif examples:
            together, forecasts = self._bank.forecast_many(*self._features_of_all(examples))
            units, foreseen = self._units_now(), self._foreseen(together, len(examples))
            said = [_in_units(forecast.prediction, units) for forecast in forecasts]
            known = zip(examples, forecasts, foreseen, strict=True)
            waiting = [Pending(example, forecast, units, calibrated) for example, forecast, calibrated in known]
        else:
            return []
        told = [self._told_of(*one) for one in zip(said, foreseen, strict=True)]
        return [Issued(self.forecasts.issue(pending), one) for pending, one in zip(waiting, told, strict=True)]

    def _check_first(self, example: Any) -> None:
        """Raise if an example that comes before anything was learnt can never be."""
        if isinstance(example, Mapping):
            self._check_dict(example)
        elif isinstance(example, np.ndarray):
            check_magnitude(example)

    def _foreseen(self, said: Any, count: int) -> Sequence[Foreseen | None]:
        """What a calibration makes of what was said of so many examples, if there is one."""
        return [None] * count

    def _units_now(self) -> tuple[float, float]:
        """Location and scale of the targets that a bank is told."""
        return 0.0, 1.0

    def _pad_waiting(self, n_columns: int) -> None:
        """Tell rows that wait for their targets with as many columns as there are now."""
        for id, pending in self.forecasts.waiting.items():
            if isinstance(pending.example, np.ndarray):
                row = np.pad(pending.example, ((0, 0), (0, n_columns - pending.example.shape[1])))
                self.forecasts.waiting[id] = pending._replace(example=row)

    def drop_forecast(self, id: int) -> None:
        """Wait no longer for the target of a forecast."""
        self.forecasts.waits(id)
        del self.forecasts.waiting[id]

    def learn_late(self, id: int, y: Any) -> None:
        """Learn the target of a forecast, once, however many rows have come since."""
        pending = self.forecasts.waits(id)
        target = self._late_target(y)
        if target is None or (pending.forecast is None and pending.calibrated is None):
            self._learn_example(pending.example, y)
        else:
            self._learn_forecast(target, pending)
            self._count(1.0)
        del self.forecasts.waiting[id]

    def _late_target(self, y: Any) -> float | None:
        """A target as a bank takes it; None if it cannot, as a class that was never seen; raises if it is none."""
        raise InvalidSpec(f"{type(self).__name__} does not learn late targets")

    def _learn_forecast(self, target: float, pending: Pending) -> None:
        """Learn a target that comes late, of an example whose features are told as they are now."""
        if self._inputs is not None:
            self._learn_sparse(pending.example, target)
            return
        features, mask = self._features_of(pending.example, learn=True)
        if pending.forecast is None or self._bank is None:
            self._learner_.learn_many(features, np.array([target]), None, mask)
        else:
            self._bank.learn_late(pending.forecast.seen_as(features, mask), target)

    def _learn_sparse(self, example: Any, target: float) -> None:
        """Have a dict or a row learnt by a learner of sparse rows."""
        if isinstance(example, Mapping):
            columns, values = self._encode_one(example, learn=True)
            self._sparse_learner.learn_entries(columns, values, target)
        else:
            assert self._inputs is not None
            rows = self._rows(example, reset=False)
            self._inputs.learn(self._sparse_learner, rows, np.array([target]), NO_WEIGHTS)

    def _learn_example(self, example: Any, y: Any) -> None:
        """Learn a dict or a row as if it came now."""
        if isinstance(example, Mapping):
            self.learn_one(example, y)
        else:
            self.partial_fit(example, [y])

    def _predicted(self, example: Any) -> Any:
        """What is known of a dict or a row."""
        if isinstance(example, Mapping):
            return self._predict_dict(example)
        return self._predict_rows(self._rows(example, reset=False))

    def _told_of(self, prediction: Any, calibrated: Foreseen | None = None) -> Any:
        """What a forecast says; ``calibrated`` is what a calibration has made of it already."""
        return prediction

    def _features_of_all(self, examples: list[Any]) -> tuple[Any, Any]:
        """Features of dicts or rows that are not learnt, a row each, and their mask or None."""
        are_rows = all(isinstance(example, np.ndarray) for example in examples)
        if are_rows and not self._names and all(example.shape == (1, self.n_features_in_) for example in examples):
            rows = np.concatenate(examples)
            check_magnitude(rows)
            return self._encode(rows, NO_WEIGHTS, learn=False)
        parts = [self._features_of(example, learn=False) for example in examples]
        if len(parts) == 1:
            return parts[0]
        features = np.concatenate([own for own, _ in parts])
        masks = [np.zeros((1, features.shape[1]), np.bool_) if mask is None else mask for _, mask in parts]
        return features, np.concatenate(masks)

    def _features_of(self, example: Any, learn: bool) -> tuple[Any, Any]:
        """Features of a dict or a row, as one row, and its mask or None."""
        if isinstance(example, Mapping):
            mask = self._encode_one(example, learn)
            return self._features.copy(), mask.copy() if mask.size else None
        if example.shape != (1, self.n_features_in_) or self._names:
            self._rows(example, reset=False)  # which says what is wrong
        check_magnitude(example)
        return self._encode(example, NO_WEIGHTS, learn)


def _kept(x: Any) -> Any:
    """An example as it is kept until its target comes: one row, and not what whoever gave it may change."""
    if isinstance(x, Mapping):
        return dict(x)
    row: Any = x if isinstance(x, SparseRows) else np.array(np.atleast_2d(x), dtype=np.float64)
    if len(row.shape) != 2 or row.shape[0] != 1:
        raise ShapeMismatch(f"an example that waits for its target must be one row; got shape {row.shape}.")
    return checked(row, row.n_columns, np.float64)[0][:1] if isinstance(row, SparseRows) else row  # as files have it


def _in_units(said: Any, units: tuple[float, float]) -> Any:
    return said if units == (0.0, 1.0) else said.in_units(*units)
