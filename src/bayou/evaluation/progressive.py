"""Every run is an evaluation: each row is predicted, the prediction is scored, then the row is learnt."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayou.errors import InvalidSpec, ShapeMismatch
from bayou.estimators import OnlineCounter
from bayou.estimators.summary import aligned
from bayou.evaluation.delays import LateModel, arrivals
from bayou.evaluation.monitor import CalibrationMonitor, CoverageMonitor
from bayou.evaluation.scores import Classification, Counting, Regression, Scores, Task

REPORTS = 50  # per run, unless told otherwise: enough for a curve
SMALLEST_WINDOW = 25  # fewer rows tell little
S = TypeVar("S", bound=Scores)


@dataclass(frozen=True)
class Report(Generic[S]):
    """How good the model was up to some row: over all rows, and over the window since the report before.

    ``seconds`` is the time that the model took to predict and learn. Print it to see a table.
    """

    rows: int
    seconds: float
    total: S
    window: S

    def __str__(self) -> str:
        table = [[f"after {self.rows} rows", "all", "± se", "window", "± se"]]
        windows = self.window.metrics()
        for name, metric in self.total.metrics().items():
            pairs = ((part.value, part.standard_error) for part in (metric, windows[name]))
            table.append([name.replace("_", " "), *(f"{value:.4g}" for pair in pairs for value in pair)])
        return aligned(table).replace("nan", "  -")


def progressive(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    chunk: int = 1000,
    every: int | None = None,
    warm_up: int = 0,
    coverage: float = 0.9,
    delay: Any = None,
    times: ArrayLike | None = None,
    monitor: CalibrationMonitor | CoverageMonitor | None = None,
    progress: Callable[[int], None] | None = None,
) -> Iterator[Report[Any]]:
    """Predict, score and learn the rows in order; a report after each ``every`` rows and after the last one.

    ``model`` is an `OnlineClassifier`, `OnlineRegressor` or `OnlineCounter`, or a conformal estimator, new or already
    taught. Rows are handed to it in chunks, whose size changes nothing but the memory used. The first ``warm_up`` rows
    are learnt without being scored. A ``monitor`` watches what is scored: probabilities, or intervals of this
    ``coverage``. ``progress`` is called with the number of rows done.

    With a ``delay`` each row is forecast when it comes, and its target is known so many rows later; or, with a column
    of ``times``, so much later by these. Baselines know no more than the model. Numbers are scored from the first row
    on before which a target was known.

    >>> from sklearn.datasets import load_breast_cancer
    >>> from bayou import OnlineClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> *_, last = progressive(OnlineClassifier(), X, y)
    >>> bool(last.total.accuracy.value > 0.94 > last.total.majority_accuracy.value)
    True
    """
    targets = np.asarray(y)
    if targets.ndim != 1 or len(targets) != len(X) or not len(targets):
        raise ShapeMismatch(f"`y` must have one value per row, {len(X)}, at least 1; got shape {targets.shape}.")
    step = max(math.ceil(len(targets) / REPORTS), SMALLEST_WINDOW) if every is None else every
    for name, value, least in (("chunk", chunk, 1), ("every", step, 1), ("warm_up", warm_up, 0)):
        if value < least:
            raise InvalidSpec(f"`{name}` must be at least {least}; got {value!r}.")
    task = _task(model, targets, coverage)
    _check_monitor(monitor, task, coverage)
    if delay is not None:
        due = arrivals(len(targets), delay, times)
        task.delay(due)
        model = LateModel(model, due)
    elif times is not None:
        raise InvalidSpec("`times` say when targets come only together with a `delay`; got None.")
    task.scores()  # a wrong level is refused now, not when the first report is asked for
    return _reports(model, X, targets, task, (chunk, step, warm_up), monitor, progress)


def _check_monitor(monitor: CalibrationMonitor | CoverageMonitor | None, task: Task, coverage: float) -> None:
    if isinstance(monitor, CalibrationMonitor) and not isinstance(task, Classification):
        raise InvalidSpec(f"`monitor` must watch intervals, for numbers are learnt; got {monitor!r}.")
    if isinstance(monitor, CoverageMonitor) and isinstance(task, Classification):
        raise InvalidSpec(f"`monitor` must watch probabilities, for classes are learnt; got {monitor!r}.")
    if isinstance(monitor, CoverageMonitor) and monitor.level != coverage:
        raise InvalidSpec(f"`monitor` must watch intervals of the coverage {coverage!r}; got one of {monitor.level!r}.")


def _task(model: Any, targets: NDArray[Any], coverage: float) -> Task:
    if hasattr(model, "predict_proba"):
        return Classification(targets)
    return Counting(coverage) if isinstance(model, OnlineCounter) else Regression(coverage)


def _reports(
    model: Any,
    X: Any,
    targets: NDArray[Any],
    task: Task,
    sizes: tuple[int, int, int],
    monitor: CalibrationMonitor | CoverageMonitor | None,
    progress: Callable[[int], None] | None,
) -> Iterator[Report[Any]]:
    chunk, every, warm_up = sizes
    total, window, seconds, done = task.scores(), task.scores(), 0.0, 0
    while done < len(targets):
        report_at = every * (done // every + 1)
        stop = min(done + chunk, report_at, warm_up if done < warm_up else len(targets), len(targets))
        part, learnt = slice(done, stop), targets[done:stop]
        started = time.perf_counter()
        predicted = task.learn(model, X[part], learnt)
        seconds += time.perf_counter() - started
        judged = task.judge(model, predicted, learnt, model.known if isinstance(model, LateModel) else None)
        if stop > warm_up and judged:
            total.update(*judged)
            window.update(*judged)
            if monitor is not None:
                monitor.update(*task.promised(judged))
        done = stop
        if progress is not None:
            progress(done)
        if done > warm_up and done in (report_at, len(targets)):
            yield Report(done, seconds, copy.deepcopy(total), window)
            window = task.scores()
