"""A table in, predictions out: what the columns are is found out, and the estimator that fits is taken."""

from __future__ import annotations

import math
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Mask, SparseRows, State
from bayou.encoders import Hashing, SparseEncoder, TableEncoder
from bayou.encoders.standardizer import check_magnitude
from bayou.encoders.table_encoder import basis_of
from bayou.errors import BayouError, InvalidFeatures, InvalidSpec, InvalidTarget, ModelFileError
from bayou.estimators.classifier import OnlineClassifier
from bayou.estimators.counter import OnlineCounter
from bayou.estimators.forecasts import MOST_PENDING
from bayou.estimators.online import below
from bayou.estimators.regressor import OnlineRegressor
from bayou.estimators.summary import Summary
from bayou.estimators.table_target import AUTO, TASKS, Target, parsed
from bayou.estimators.table_weights import weights_of
from bayou.members import Budget
from bayou.numerics.files import polars
from bayou.numerics.sparse_layout import SparseLayout
from bayou.numerics.sparse_table import SparseTable
from bayou.numerics.table_kinds import as_table, listed
from bayou.numerics.table_layout import TableLayout

CLASSES = ("binary", "multiclass")
ESTIMATORS: dict[str, Any] = {"regression": OnlineRegressor, "count": OnlineCounter}


class Learnt(NamedTuple):
    """What was said of rows before they were learnt: probabilities of ``classes``, or predictions of numbers; the
    targets of these rows, and which rows of the table had one. Of numbers nothing is said before the first is known.
    """

    said: Any
    targets: NDArray[Any]
    classes: list[Any]
    known: Mask


class TableModel:
    """Learns one column of tables from the others, in one pass; rows may come in tables of any size.

    ``target`` is a column, or a comparison as ``"delay > 15"``. ``task`` is "binary", "multiclass", "regression",
    "count", or "auto" to see from the first rows. ``encoder`` says what the columns are where that is not to be found
    out; ``weight`` names a column of weights. With hashed rows there are 2**bits weights. ``SparseEncoder()`` is for
    rows of libsvm and Vowpal Wabbit's text, whose target is "label". A binary task that was found by "auto" becomes
    multiclass when a third class comes.

    >>> import random
    >>> import polars as pl
    >>> from bayou import TableModel
    >>> cities = random.Random(0).choices(["Paris", "Rome"], k=200)
    >>> table = pl.DataFrame({"city": cities, "bought": [city == "Paris" for city in cities]})
    >>> model = TableModel("bought")
    >>> _ = model.learn_many(table)
    >>> model.task, model.predict_table({"city": ["Paris", "Rome"]})["prediction"].to_list()
    ('binary', [True, False])
    """

    def __init__(
        self,
        target: str,
        task: str = AUTO,
        encoder: TableEncoder | SparseEncoder | None = None,
        weight: str | None = None,
        bits: int = 18,
        budget: Budget | None = None,
    ) -> None:
        if task not in (AUTO, *TASKS):
            raise InvalidSpec(f"`task` must be one of {', '.join((AUTO, *TASKS))}; got {task!r}.")
        if not (encoder is None or isinstance(encoder, TableEncoder | SparseEncoder)):
            raise InvalidSpec(f"`encoder` must be TableEncoder(...), SparseEncoder(...) or None; got {encoder!r}.")
        if weight is not None and isinstance(encoder, SparseEncoder):
            raise InvalidSpec(f"sparse rows have no column of weights, but their own; got {weight!r}.")
        self.target, self.task, self.weight, self.bits, self.budget = parsed(target), task, weight, bits, budget
        self.encoder = TableEncoder() if encoder is None else encoder
        self.may_grow = task == AUTO  # from two classes to more
        self.layout: Any = None  # a TableLayout, or a SparseLayout
        self.estimator: Any = None
        self.n_rows = 0
        self.most_weights = math.inf  # that all classes may have together
        self.halfway = False  # whether learning has begun to change something, and has not come to its end
        self.waiting: deque[tuple[int, Any]] = deque()  # forecasts whose targets are on their way
        self.extra = State({}, {})  # what a run keeps beside the model

    # --- learning

    def begin(self, table: Any) -> None:
        """Look at the first rows: what is to be predicted, what the columns are, and who learns. Nothing is learnt."""
        rows = self._as_table(table)
        target = parsed(self.target.text, rows.columns)
        task = target.task(rows) if self.task == AUTO else self.task
        target.of(rows, task)
        left_out = {target.column} | ({self.weight} if self.weight else set())
        if self.weight is not None and self.weight not in rows.columns:
            raise InvalidSpec(f"`weight` must be a column; got {self.weight!r} of {listed(rows.columns, self.weight)}.")
        layout = self.encoder.begin(rows, left_out)
        self.target, self.task, self.layout, self.estimator = target, task, layout, self._new_estimator(task, layout)

    def _as_table(self, rows: Any) -> Any:
        """A table of polars, or sparse rows; raises where the other kind is learnt."""
        if isinstance(rows, SparseTable) != isinstance(self.encoder, SparseEncoder):
            kinds = ["tables of columns", "rows of libsvm or Vowpal Wabbit's text"]
            wanted, came = kinds if isinstance(rows, SparseTable) else kinds[::-1]
            raise InvalidFeatures(f"the model must be given {wanted}, as it was made for them; got {came}.")
        return rows if isinstance(rows, SparseTable) else as_table(rows)

    def _new_estimator(self, task: str, layout: Any) -> Any:
        options: dict[str, Any] = {"budget": self.budget}
        if layout.hashed:
            options["budget"] = Budget() if self.budget is None else self.budget  # there is time for a calibration
        if layout.hashed and isinstance(layout, TableLayout):
            texts = tuple(name for name, kind in layout.kinds.items() if kind == "text")
            pairs = tuple((str(a), str(b)) for a, b in layout.pairs)
            options["encoder"] = Hashing(bits=self.bits, interactions=pairs, text=texts)
        basis = self.encoder.basis if isinstance(self.encoder, TableEncoder) else None
        kind, count = (None, 0) if basis is None else basis_of(basis)
        if kind == "fourier":
            options["n_waves"] = count
        return (OnlineClassifier if task in CLASSES else ESTIMATORS[task])(**options)

    def learn_many(self, table: Any, delay: int = 0, classes: Sequence[Any] | None = None) -> Learnt:
        """Learn rows; returns what was said of each before its target was used. Rows without a target are left out.

        With a ``delay`` each row is forecast when it comes, and its target is learnt so many rows later. Those of
        ``classes`` are possible from now on, also before they have come.
        """
        rows, is_new = self._as_table(table), self.layout is None
        before = self.target, self.task, self.layout, self.estimator
        try:
            if is_new:
                self.begin(rows)
            return self._learn(rows, delay, classes)
        except BayouError:
            if is_new:
                self.target, self.task, self.layout, self.estimator = before
            raise

    def _learn(self, rows: Any, delay: int, classes: Sequence[Any] | None) -> Learnt:
        """All that can be wrong with the rows is found before anything is learnt."""
        assert self.layout is not None
        self.halfway = False
        self._check_delay(delay)
        values, known = self.target.of(rows, self.task)
        told = rows if known.all() else rows.filter(polars().Series(known))
        weights = weights_of(told, self.weight, delay)
        task = self._task_of(values)
        if not len(told):
            return Learnt(None, values, [], known)
        if weights is not None and not weights.any():
            return self._left(told, values, known)
        layout = self.layout.admitted(told)
        inputs = self._inputs_of(layout, told)
        self.check_room(task, layout, values)
        self.task, self.layout, self.halfway = task, layout, True
        if not layout.hashed:
            self.estimator.add_columns(layout.names)
        with warnings.catch_warnings():  # that few rows have many classes: the task was decided by more of them
            warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
            if delay:
                said, values, known_classes = self._learn_late(inputs, values, delay)
            else:
                named = {} if classes is None else {"classes": classes}
                said = self.estimator.learn_many(inputs, values, sample_weight=weights, **named)
                known_classes = self.classes
        self.n_rows += len(told)
        self.halfway = False
        return Learnt(said, values, known_classes, known)

    def check_room(self, task: str, layout: Any, values: NDArray[Any]) -> None:
        """Raise if classes would have more weights than they may."""
        if task not in CLASSES or self.most_weights == math.inf:
            return
        count = len({*self.classes, *values.tolist()})
        each = 2**self.bits if layout.hashed else len(layout.names) + 1
        if count > 2 and count * each > self.most_weights:
            most = max(int(self.most_weights / each), 2)
            raise InvalidTarget(
                f"the target {self.target.text!r} must have at most {most:,} classes, of {each:,} weights each; "
                f"got {count:,}."
            )

    def _left(self, told: Any, values: NDArray[Any], known: Mask) -> Learnt:
        """Rows that all weigh nothing: they are counted, and that is all."""
        inputs = self._inputs_of(self.layout, told)
        self.n_rows += len(told)
        if not self.begun or (self.task in CLASSES and not set(values.tolist()) <= set(self.classes)):
            return Learnt(None, values, [], known)
        ask = self.estimator.predict_proba if self.task in CLASSES else self.estimator.predict_distribution
        return Learnt(ask(inputs), values, self.classes, known)

    def _check_delay(self, delay: int) -> None:
        if not (isinstance(delay, int) and 0 <= delay <= MOST_PENDING):
            raise InvalidSpec(f"`delay` must be a whole number of rows, from 0 to {MOST_PENDING:,}; got {delay!r}.")
        if delay and self.weight is not None:
            raise InvalidSpec(f"targets that come late have no weights; got a delay of {delay} and {self.weight!r}.")

    @staticmethod
    def _inputs_of(layout: Any, rows: Any) -> Any:
        """Rows as the estimator takes them; raises if one has a number that is too large."""
        if isinstance(rows, SparseTable):
            layout.check_values(rows)
        if layout.hashed:
            return layout.prepared(rows)
        inputs = layout.encode(rows)
        check_magnitude(inputs)
        return inputs

    def bad_inputs(self, table: Any) -> dict[int, str]:
        """Rows that cannot be predicted, and why."""
        bad: dict[int, str] = {} if self.layout is None else self.layout.bad_rows(self._as_table(table))
        return bad

    def bad_rows(self, table: Any) -> dict[int, str]:
        """Rows that cannot be learnt, and why; before the model has begun, by what their columns look like."""
        rows = self._as_table(table)
        target, task, layout = self.target, self.task, self.layout
        if layout is None:
            target = parsed(self.target.text, rows.columns)
            plain = replace(self.encoder, basis=None) if isinstance(self.encoder, TableEncoder) else self.encoder
            layout = plain.begin(rows, {target.column, self.weight or target.column})
            task = target.task(rows) if task == AUTO else task
        bad: dict[int, str] = target.bad_rows(rows, task) | layout.bad_rows(rows)
        return bad

    def _learn_late(self, inputs: Any, values: NDArray[Any], delay: int) -> tuple[Any, NDArray[Any], list[Any]]:
        """Forecast each row, and learn the targets that have come by then."""
        said = []
        for row, target in zip(_each(inputs), values.tolist(), strict=True):
            while len(self.waiting) >= delay:
                self.estimator.learn_late(*self.waiting.popleft())
            issued = self.estimator.forecast_one(row)
            self.waiting.append((issued.id, target))
            said.append(issued.said)
        if self.task in CLASSES:
            classes = sorted({*self.classes, *values.tolist()})
            return np.array([[(one or {}).get(label, 0.0) for label in classes] for one in said]), values, classes
        parts = [one for one in said if one is not None]
        known = np.array([one is not None for one in said])
        return (self.estimator.joined(parts) if parts else None), values[known], []

    def learn_waiting(self) -> None:
        """Learn the targets that are on their way."""
        while self.waiting:
            self.estimator.learn_late(*self.waiting.popleft())

    def _task_of(self, values: NDArray[Any]) -> str:
        """The task with these targets: of two classes where a third comes, that of several.

        Raises before anything is begun, if there must be two.
        """
        if self.task != "binary" or self.target.comparison is not None:  # which has two outcomes, whatever comes
            return self.task
        found = list(dict.fromkeys([*self.classes, *(target for _, target in self.waiting), *values.tolist()]))
        if len(found) <= 2:
            return self.task
        if self.may_grow:
            return "multiclass"
        raise InvalidTarget(
            f"the target {self.target.text!r} must have two classes, {found[0]!r} and {found[1]!r}; "
            f"got {found[2]!r}. For more, the task is multiclass."
        )

    @property
    def begun(self) -> bool:
        """Whether anything was learnt."""
        return self.estimator is not None and self.estimator._begun()

    @property
    def classes(self) -> list[Any]:
        """The classes known so far, sorted; none of numbers."""
        if not self.begun or self.task not in CLASSES:
            return []
        found: list[Any] = self.estimator.classes_.tolist()
        return found

    # --- predicting

    def predict(self, table: Any) -> Any:
        """What is known of the target of each row: probabilities of ``classes``, or a prediction of numbers."""
        if not self.begun:
            raise InvalidSpec("a model must have learnt something before it predicts; this one has not.")
        inputs = self._inputs_of(self.layout, self._as_table(table))
        if self.task in CLASSES:
            return self.estimator.predict_proba(inputs)
        return self.estimator.predict_distribution(inputs)

    def said_of(self, table: Any) -> Learnt:
        """What is said of rows whose targets are there, which are not learnt."""
        rows = self._as_table(table)
        values, known = self.target.of(rows, self.task)
        told = rows if known.all() else rows.filter(polars().Series(known))
        unknown = [label for label in dict.fromkeys(values.tolist()) if label not in self.classes]
        if self.task in CLASSES and unknown:
            raise InvalidTarget(f"the target {self.target.text!r} must be one of {self.classes}; got {unknown[0]!r}.")
        return Learnt(self.predict(told) if len(told) else None, values, self.classes, known)

    def predict_table(self, table: Any, coverage: float = 0.9) -> Any:
        """Predictions as a table: the most probable class and the probability of each, or mean and interval."""
        return self._table_of(self.predict(table), self.classes, coverage)

    def told_table(self, learnt: Learnt, coverage: float = 0.9) -> Any:
        """What was said of rows before they were learnt, as a table, with their targets."""
        if learnt.said is None:
            return None
        said = self._table_of(learnt.said, learnt.classes, coverage)
        return said.with_columns(polars().Series("target", learnt.targets.tolist()))

    def _table_of(self, said: Any, classes: list[Any], coverage: float) -> Any:
        library = polars()
        if self.task in CLASSES:
            best = [classes[place] for place in np.argmax(said, axis=1).tolist()]
            columns = {f"probability_{label}": said[:, place] for place, label in enumerate(classes)}
            return library.DataFrame({"prediction": best, **columns})
        ends = said.interval(coverage)
        return library.DataFrame({"prediction": said.mean, "low": ends[:, 0], "high": ends[:, 1]})

    # --- what was learnt

    def summary(self, coverage: float = 0.9) -> Summary:
        """Each weight with its deviation, interval and the probability of its sign, by the names of the columns."""
        if isinstance(self.encoder, SparseEncoder) and self.layout.hashed:
            self.estimator._inputs.known_names = self.layout.known_names
        told: Summary = self.estimator.summary(coverage)
        return told

    def summary_per_deviation(self, coverage: float = 0.9) -> Summary:
        """The same, each weight times the deviation of its input, so that all can be compared.

        Inputs of zeros and ones keep their unit, and those of hashed rows are scaled already.
        """
        told = self.summary(coverage)
        scale = np.atleast_1d(self.estimator._weight_scale())
        each = np.resize(scale, len(told.names))  # once per class
        return told._replace(
            mean=told.mean * each, deviation=told.deviation * each, interval=told.interval * each[:, None]
        )

    def kinds(self) -> dict[str, str]:
        """What each column was taken for."""
        return {} if self.layout is None else dict(self.layout.kinds)

    # --- as data

    def to_state(self) -> State:
        """All that this model is, as data."""
        config: dict[str, Any] = {
            "params": {
                "target": self.target.text,
                "task": self.task,
                "encoder": self.encoder,
                "weight": self.weight,
                "bits": self.bits,
                "budget": self.budget,
            },
            "may_grow": self.may_grow,
            "n_rows": self.n_rows,
            "waiting": [list(one) for one in self.waiting],
            "extra": self.extra.config,
        }
        arrays = {f"extra.{name}": array for name, array in self.extra.arrays.items()}
        if self.layout is not None:
            layout, estimator = self.layout.to_state(), self.estimator.to_state()
            config |= {"layout": layout.config, "column": self.target.column, "estimator": estimator.config}
            arrays |= {f"layout.{name}": array for name, array in layout.arrays.items()}
            arrays |= {f"estimator.{name}": array for name, array in estimator.arrays.items()}
        return State(config, arrays)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The model that this data describes; it continues to the last bit."""
        config, arrays = state
        model = cls(**config["params"])
        model.may_grow = bool(config.get("may_grow", False))
        model.n_rows = int(config["n_rows"])
        model.waiting.extend((int(id), target) for id, target in config["waiting"])
        model.extra = State(dict(config["extra"]), below("extra.", arrays))
        if "layout" in config:
            if model.task not in TASKS:
                raise ModelFileError(f"`task` must be one of {', '.join(TASKS)}; got {model.task!r}.")
            layout = SparseLayout if isinstance(model.encoder, SparseEncoder) else TableLayout
            model.layout = layout.from_state(State(config["layout"], below("layout.", arrays)))
            kind = OnlineClassifier if model.task in CLASSES else ESTIMATORS[model.task]
            model.estimator = kind.from_state(State(config["estimator"], below("estimator.", arrays)))
            model.target = _target_of(model.target, str(config["column"]))
            if not model.layout.hashed:
                model.estimator.add_columns(model.layout.names)
        return model

    def __repr__(self) -> str:
        return f"TableModel({self.target.text!r}, task={self.task!r}, {self.n_rows} rows)"


def _each(inputs: Any) -> Iterator[Any]:
    """One row after the other, as `forecast_one` takes them."""
    if isinstance(inputs, SparseRows):
        return (inputs[row : row + 1] for row in range(len(inputs)))
    if hasattr(inputs, "iter_rows"):
        return iter(inputs.iter_rows(named=True))
    return (row[None] for row in inputs)


def _target_of(target: Target, column: str) -> Target:
    """As it was read when the columns were known."""
    return target if target.column == column else Target(target.text, column)
