"""A model of the service: what happens to it in order is all that it is, so that the journal can make it again."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import orjson

from bayou.contracts import Matrix, State
from bayou.encoders import SparseEncoder
from bayou.errors import BayouError, InvalidFeatures, InvalidSpec, InvalidTarget, ModelFileError
from bayou.estimators.forecasts import Pending
from bayou.estimators.table_model import CLASSES, Learnt, TableModel
from bayou.evaluation.table_run import TableRun
from bayou.modelfile import from_bytes, to_bytes
from bayou.service.errors import HalfDone, NotFound, Unusable
from bayou.service.events import FEEDBACK, ISSUE, LEARN, Event, prediction_id
from bayou.service.limits import INLINE_ROWS, MOST_CLASSES, MOST_COLUMNS, MOST_WAITING, MOST_WEIGHTS
from bayou.service.quick_rows import quick_features
from bayou.service.rows import Row, check_label, check_rows, names_of, table_of, unknown_names
from bayou.service.settings import Settings
from bayou.service.waiting import Waiting, WaitingLabels

SOURCE = "the service"
KINDS: dict[type, type] = {bool: bool, int: float, float: float}  # of labels, which are text else
MOST_IGNORED = 20  # columns that are named in an answer


class Applied(NamedTuple):
    """What came of an event: rows that were learnt, columns that were not, what was said before, and how long the
    labels were waited for; whether the first row was learnt when not even its class was known.
    """

    rows: int
    ignored: list[str]
    learnt: Learnt | None = None
    said: list[Any] | None = None
    delays: tuple[float, ...] = ()
    knew_nothing: bool = False


class ServedModel:
    """A `TableModel`, its scores, and the predictions that wait for their labels."""

    def __init__(self, settings: Settings, model: TableModel | None = None) -> None:
        self.settings = settings
        self.model = settings.new_model() if model is None else model
        self.run = TableRun.of(self.model) if "run" in self.model.extra.config else TableRun(self.model, SOURCE)
        self.pending = WaitingLabels()
        self.seq = 0  # of the latest event
        self.model.most_weights = MOST_WEIGHTS

    # --- what happens

    def apply(self, seq: int, event: Event) -> Applied:
        """Let one thing happen; raises, and stays as it was, if it cannot, or else raises `HalfDone`."""
        if event.kind == ISSUE:
            return self.issue_all([(seq, event)])[0]
        apply = {LEARN: self._learn, FEEDBACK: self._feedback}[event.kind]
        done = apply(seq, event)
        self.seq = seq
        return done

    def _learn(self, seq: int, event: Event) -> Applied:
        rows: Sequence[Row] = event.body["rows"]
        check_rows(rows)
        table, ignored = self._table(rows)
        labels = [row.get(self.model.target.column) for row in rows]
        self._check_classes(labels)
        if self.model.target.comparison is None:
            self._check_kinds([label for label in labels if label is not None])
        was_begun, named = self.model.begun, None
        if not was_begun and self.model.target.comparison is None:
            named = self.settings.classes  # from the first row on
        try:
            learnt = self.model.learn_many(table, classes=named)
            self.model.halfway = True
            self.run.count(learnt)
            self.model.halfway = False
        except (ArithmeticError, BayouError, ValueError) as error:
            if self.model.halfway or not isinstance(error, BayouError):
                raise HalfDone(_refusal(error)) from error
            raise
        knew_nothing = not was_begun and named is None and self.model.task in CLASSES
        return Applied(int(learnt.known.sum()), ignored, learnt, knew_nothing=knew_nothing)

    def issue_all(self, events: Sequence[tuple[int, Event]]) -> list[Applied]:
        """Forecast the rows of events, in order; the oldest predictions that wait make room.

        The same as one event after another, in less time; raises, and none happens, if one of them cannot.
        """
        rows: list[Row] = [row for _, event in events for row in event.body["rows"]]
        inputs = self._inputs(rows)  # raises where there is no estimator yet
        all_issued = iter(self.model.estimator.forecast_many(inputs))
        done = []
        for seq, event in events:
            own, said = event.body["rows"], []
            for place, issued in enumerate(islice(all_issued, len(own))):
                kept = issued.said if isinstance(issued.said, dict) else None
                letters = sum(len(value) for value in own[place].values() if type(value) is str)
                self.pending.add(prediction_id(seq, place), Waiting(issued.id, event.at, kept, letters))
                said.append(issued.said)
            self._expire(event.at)
            self.seq = seq
            done.append(Applied(0, self.ignored(own), said=said))
        return done

    def _expire(self, now: float) -> None:
        """Wait no longer for labels that are late by a stated time, or where too many are waited for."""
        while len(self.pending):
            id, oldest = next(iter(self.pending))
            are_few = len(self.pending) <= self.settings.most_pending and self.pending.letters <= MOST_WAITING
            if are_few and oldest.at >= now - self.settings.label_wait:
                return
            self.model.estimator.drop_forecast(self.pending.take(id).forecast)

    def _feedback(self, seq: int, event: Event) -> Applied:
        """Learn labels of predictions; all of them are looked at before one is learnt."""
        labels = [(str(id), label) for id, label in event.body["labels"]]
        known: dict[str, Any] = {}
        for id, label in labels:
            if id not in self.pending or id in known:
                raise NotFound(f"`id` must be that of a prediction that waits for its label; got {id[:40]!r}.")
            known[id] = self._target(label)
        self._check_classes(list(known.values()))
        self._check_new_classes(list(known.values()))
        self.model.check_room(self.model.task, self.model.layout, np.array(list(known.values()), dtype=object))
        delays = [max(event.at - self.pending[id].at, 0.0) for id in known]
        try:
            for id, target in known.items():
                self._learn_late(self.pending.take(id), target)
        except (ArithmeticError, BayouError, ValueError) as error:
            raise HalfDone(_refusal(error)) from error
        return Applied(len(known), [], delays=tuple(delays))

    def _learn_late(self, waiting: Waiting, target: Any) -> None:
        estimator = self.model.estimator
        told = self._told(estimator.forecasts.waits(waiting.forecast), waiting)
        estimator.learn_late(waiting.forecast, target)
        self.model.n_rows += 1
        known = np.ones(1, np.bool_)
        targets = np.array([target], dtype=object if isinstance(target, str) else None)
        if self.model.task in CLASSES:
            classes = sorted({*self.model.classes, *(told or {}), target})
            said = None if told is None else np.array([[told.get(label, 0.0) for label in classes]])
            self.run.count(Learnt(said, targets, classes, known))
        else:
            self.run.count(Learnt(told, targets.astype(np.float64), [], known))

    def _told(self, pending: Pending, waiting: Waiting) -> Any:
        """What was said of an example; of one whose forecaster is no more, what would be said now."""
        estimator = self.model.estimator
        if waiting.said is not None or self.model.task in CLASSES:
            return waiting.said
        if pending.forecast is not None:
            said: Any = pending.forecast.prediction
            return estimator._told_of(said.in_units(*pending.units) if pending.units != (0.0, 1.0) else said)
        return estimator._told_of(estimator._predicted(pending.example)) if self.model.begun else None

    # --- rows and targets

    def _columns(self) -> dict[str, str] | None:
        """The kinds of the inputs, as far as they are known."""
        return self.model.kinds() if self.model.layout is not None else self.settings.columns  # type: ignore[return-value]

    def _table(self, rows: Sequence[Row]) -> tuple[Any, list[str]]:
        """Rows as a table with their targets; and columns that are not used."""
        kinds = self._columns()
        others = [self.model.target.column, *([self.model.weight] if self.model.weight else [])]
        if kinds is None:
            columns = [name for name in names_of(rows) if name not in self.settings.ignore]
            if len(columns) > MOST_COLUMNS:
                raise InvalidFeatures(f"rows must have at most {MOST_COLUMNS} columns in all; got {len(columns)}.")
            if others[0] not in columns:
                raise InvalidTarget(
                    f"rows must have the target {others[0]!r}; got {', '.join(map(repr, columns[:12]))}."
                )
            return table_of(rows, {}, columns), []
        return table_of(rows, kinds, others), self.ignored(rows)

    def _inputs(self, rows: Sequence[Row]) -> list[Any]:
        """Each row as a forecast takes it."""
        if self.model.layout is None:
            raise InvalidSpec("a model must have learnt something before it predicts; this one has not.")
        check_rows(rows)
        inputs: Any = quick_features(self.model.layout, rows)
        if inputs is None:
            inputs = self.model._inputs_of(self.model.layout, table_of(rows, self.model.kinds()))
        if hasattr(inputs, "iter_rows"):
            return list(inputs.iter_rows(named=True))
        return [row[None] for row in inputs]

    def ignored(self, rows: Sequence[Row]) -> list[str]:
        """Columns of rows that are not used."""
        known = {*(self._columns() or ()), self.model.target.column, *self.settings.ignore, self.model.weight or ""}
        return unknown_names(rows, known)[:MOST_IGNORED]

    def _target(self, label: Any) -> Any:
        """A label as the model takes it: the outcome of a comparison, or what is compared."""
        check_label(label)
        target = self.model.target
        if target.comparison is not None and isinstance(label, bool):
            return label
        values, known = target.of(table_of([{target.column: label}], {}, [target.column]), self.model.task)
        if not known.all():
            raise InvalidTarget(f"a label must be a value of {target.text!r}; got {label!r}.")
        return values.tolist()[0]

    def _check_classes(self, labels: list[Any]) -> None:
        if self.model.task in CLASSES and self.model.target.comparison is None:
            count = len({*self.model.classes, *labels} - {None})
            if count > MOST_CLASSES:
                raise InvalidTarget(f"the target must have at most {MOST_CLASSES:,} classes; got {count:,}.")
        named = self.settings.classes
        if named is None or self.model.target.comparison is not None:
            return
        for label in labels:
            if label is not None and label not in named:
                raise InvalidTarget(f"the target must be one of the classes {named[:12]}; got {repr(label)[:60]}.")

    def _check_new_classes(self, labels: list[Any]) -> None:
        """A third class comes to a task of two, or a class of another kind: raises where that is not to be."""
        if self.model.task not in CLASSES:
            return
        self._check_kinds(labels)
        self.model.task = self.model._task_of(np.array(labels, dtype=object))

    def _check_kinds(self, labels: list[Any]) -> None:
        """Truth values, numbers and text are different classes, and hardly meant to stand side by side."""
        known = [*self.model.classes[:1], *labels[:1]]
        if len({KINDS.get(kind, str) for kind in {*map(type, known), *map(type, labels)}}) > 1:
            other = next(label for label in labels if kind_of(label) != kind_of(known[0]))
            raise InvalidTarget(f"labels must be of one kind, as {known[0]!r}; got {repr(other)[:60]}.")

    # --- asking

    def predict(self, rows: Sequence[Row]) -> list[Any]:
        """What is known of rows, in JSON's types; nothing waits for a label, and nothing changes."""
        check_rows(rows)
        if not self.model.begun:
            return [None] * len(rows)
        inputs = quick_features(self.model.layout, rows) if len(rows) <= INLINE_ROWS else None
        if inputs is None:
            return self.shown(self.model.predict(table_of(rows, self.model.kinds())), len(rows))
        estimator = self.model.estimator
        is_classes = self.model.task in CLASSES
        return self.shown(
            (estimator.predict_proba if is_classes else estimator.predict_distribution)(inputs), len(rows)
        )

    def predict_with_intervals(self, rows: Sequence[Row]) -> list[Any]:
        """The same; of two classes, with the interval that has the probability of the label with 90 %."""
        shown = self.predict(rows)
        if not self.model.begun or self.model.task not in CLASSES or len(self.model.classes) != 2:
            return shown
        inputs = self.model._inputs_of(self.model.layout, table_of(rows, self.model.kinds()))
        ends = self.model.estimator.predict_proba_interval(inputs).tolist()
        for one, (low, high) in zip(shown, ends, strict=True):
            is_second = one["label"] == self.model.classes[1]
            one["low"], one["high"] = (low, high) if is_second else (1.0 - high, 1.0 - low)
        return shown

    def shown(self, said: Any, count: int, classes: list[Any] | None = None) -> list[Any]:
        """What was said of rows, in JSON's types; null before anything was learnt."""
        if said is None:
            return [None] * count
        if self.model.task in CLASSES:
            return _of_classes(np.asarray(said), self.model.classes if classes is None else classes)
        return _of_numbers(said)

    def shown_each(self, said: Sequence[Any]) -> list[Any]:
        """The same of forecasts, each of which said its own."""
        return [
            None if one is None else _of_probabilities(one) if isinstance(one, dict) else _of_numbers(one)[0]
            for one in said
        ]

    # --- as data

    def to_bytes(self) -> bytes:
        """All of it, as a model file."""
        self.keep()
        return to_bytes(self.model)

    def keep(self) -> None:
        """Lay what the service knows beside the model."""
        self.run.keep()
        waiting = [
            [id, one.forecast, one.at, None if one.said is None else [[k, v] for k, v in one.said.items()], one.letters]
            for id, one in self.pending
        ]
        config, arrays = self.model.extra
        self.model.extra = State(config | {"service": {"seq": self.seq, "waiting": waiting}}, arrays)

    @classmethod
    def of_bytes(cls, settings: Settings | None, data: bytes) -> ServedModel:
        """From a model file; of one that the service has not written, nothing waits, and its settings are found."""
        model = from_bytes(data)
        if not isinstance(model, TableModel):
            raise ModelFileError(f"a model of the service must be a TableModel; got {type(model).__name__}.")
        if isinstance(model.encoder, SparseEncoder):
            raise ModelFileError("a model of the service must be of tables; this one is of libsvm or VW's text.")
        served = cls(settings or Settings.of_model(model), model)
        known = model.extra.config.get("service", {"seq": 0, "waiting": []})
        served.seq = int(known["seq"])
        for id, forecast, at, said, *letters in known["waiting"]:  # which files did not always have
            told = None if said is None else {label: float(p) for label, p in said}
            served.pending.add(str(id), Waiting(int(forecast), float(at), told, *map(int, letters)))
        return served

    def rolled_back(self, data: bytes) -> ServedModel:
        """An older state of this model. What waits for a label now still does, and is learnt as if it came then."""
        older = ServedModel.of_bytes(self.settings, data)
        mine, its = self.model.estimator, older.model.estimator
        older.pending.clear()
        if mine is None or its is None:
            return older
        its.forecasts.waiting.clear()
        its.forecasts.issued = max(its.forecasts.issued, mine.forecasts.issued)
        for id, one in self.pending:
            example = mine.forecasts.waits(one.forecast).example
            if isinstance(example, np.ndarray):
                example = _with_columns(example, self.model.layout.names, older.model.layout.names)
            its.forecasts.waiting[one.forecast] = Pending(example, None, (0.0, 1.0))
            older.pending.add(id, one)
        return older


def _refusal(error: Exception) -> BayouError:
    """What to answer where rows were found out while they were learnt."""
    return error if isinstance(error, BayouError) else Unusable(f"this cannot be learnt: {error}.")


def _with_columns(example: Matrix, names: Sequence[str], wanted: Sequence[str]) -> Matrix:
    """An example with the columns that are wanted; a category that was not there has a zero."""
    place = {name: column for column, name in enumerate(names)}
    found = np.zeros((1, len(wanted)))
    for column, name in enumerate(wanted):
        if place.get(name, len(names)) < example.shape[1]:  # it may have come after the example
            found[0, column] = example[0, place[name]]
    return found


def kind_of(label: Any) -> type:
    """Of a label: bool, float for all numbers, or str."""
    return KINDS.get(type(label), str)


def name_of(label: Any) -> str:
    """A class as a key of JSON: text as it is, others as JSON writes them.

    >>> name_of("yes"), name_of(True), name_of(2)
    ('yes', 'true', '2')
    """
    return label if isinstance(label, str) else orjson.dumps(label).decode()


def _of_classes(said: Any, classes: list[Any]) -> list[Any]:
    names, best = [name_of(label) for label in classes], np.argmax(said, axis=1).tolist()
    return [
        {"label": classes[place], "probabilities": dict(zip(names, row, strict=True))}
        for place, row in zip(best, said.tolist(), strict=True)
    ]


def _of_probabilities(said: dict[Any, float]) -> dict[str, Any]:
    return {"label": max(said, key=said.__getitem__), "probabilities": {name_of(k): said[k] for k in sorted(said)}}


def _of_numbers(said: Any) -> list[Any]:
    ends = np.atleast_2d(said.interval(0.9))
    means, deviations = np.atleast_1d(said.mean), np.sqrt(np.atleast_1d(said.variance))
    return [
        {"mean": mean, "sd": deviation, "low": low, "high": high}
        for mean, deviation, (low, high) in zip(means.tolist(), deviations.tolist(), ends.tolist(), strict=True)
    ]
