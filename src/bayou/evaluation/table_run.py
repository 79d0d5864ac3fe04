"""One pass of a model over a stream of tables: every row is predicted, scored and learnt; a run can be taken up again.

What a run has found lies in the model file beside the model: scores, the learning curve, and how far it has come in
which source. A model begins by the first 16,384 rows, and tables are cut at the same rows whatever the reader gives, so
that a run that was broken off and taken up again ends with the same model, to the bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import State
from bayou.errors import InvalidSpec, ModelFileError, StreamError
from bayou.estimators.table_model import Learnt, TableModel
from bayou.evaluation.stream_scores import KINDS, StreamScores
from bayou.numerics.broken_rows import Skipped, SkippedRow
from bayou.numerics.files import polars
from bayou.numerics.sparse_table import rows_joined

FIRST_ROWS = 16_384  # that a model begins by
DENSE_ROWS, HASHED_ROWS = 1024, 16_384  # that are learnt at a time
GROWTH = 1.15  # between points of the learning curve
FIRST_POINT = 16


class TableRun:
    """A model on its way through a source. Without ``learns`` rows are scored and not learnt; ``tell`` is called with
    what was said of each part. With ``skipped``, rows that cannot be learnt are left out and told there; they are
    counted among the rows that the reader gives.

    >>> import polars as pl
    >>> from bayou import TableModel
    >>> from bayou.evaluation import TableRun
    >>> table = pl.DataFrame({"x": list(range(200)), "y": [n % 7 < 3 for n in range(200)]})
    >>> run = TableRun(TableModel("y"), "made")
    >>> for _ in run.over([table]):
    ...     pass
    >>> run.rows, sorted(run.scores.values())[:3]
    (200, ['accuracy', 'auc', 'brier'])
    """

    def __init__(
        self,
        model: TableModel,
        source: str,
        delay: int = 0,
        learns: bool = True,
        tell: Callable[[Learnt], None] | None = None,
        skipped: Skipped | None = None,
    ) -> None:
        if not (isinstance(delay, int) and delay >= 0):
            raise InvalidSpec(f"`delay` must be a whole number of rows, at least 0; got {delay!r}.")
        self.model, self.source, self.delay, self.learns, self.tell = model, source, delay, learns, tell
        self.skipped = skipped
        self.beside: Callable[[], dict[str, Any]] | None = None  # what else is known where a run is saved
        self.known_beside: dict[str, Any] | None = None  # that of the run that was taken up
        self.rows = 0  # of the source that were read, without those that were skipped
        self.without_target = 0
        self.finished = False
        self.curve: list[tuple[float, ...]] = []
        self.curve_errors: list[tuple[float, ...]] = []  # the standard error of each score of each point
        self._scores: StreamScores | None = None
        self._next_point = FIRST_POINT
        self._told = (0, 0.0)  # rows and the first score, when `since_last` was last asked
        self._given = 0  # rows by the reader
        self._new: list[Any] = []  # tables that a model is to begin by
        self._held: list[Any] = []  # tables that are to be cut
        self._start, self._at = 0, 0  # the first row that is held; the row after those

    @property
    def has_scores(self) -> bool:
        """Whether any row was scored."""
        return self._scores is not None and self._scores.rows > 0

    @property
    def scores(self) -> StreamScores:
        """The scores of all rows so far."""
        if self._scores is None:
            raise InvalidSpec("a run has scores once it has learnt rows; this one has not.")
        return self._scores

    # --- learning

    def over(self, tables: Iterable[Any], cut_every: int | None = None) -> Iterator[int]:
        """Learn the tables of a source, from where the run stands; after each part, how many rows were read.

        Parts end at every multiple of ``cut_every`` rows, too: it is there that a run may be saved.
        """
        for table in tables:
            yield from self.take(table, cut_every)
        yield from self.finish(cut_every)

    def take(self, table: Any, cut_every: int | None = None) -> Iterator[int]:
        """Learn what can be learnt with one table more; after each part, how many rows were read."""
        self._new.append(table)
        if self.model.layout is None and sum(map(len, self._new)) < FIRST_ROWS:
            return
        self._hold()
        while True:
            if self._start < self.rows:  # read before
                self._start, self._held = _dropped(self._held, self._start, self.rows)
            stop = self._next_cut(self._start, cut_every)
            if self._start < self.rows or stop > self._at:
                return
            yield self._learn_held(stop)

    def finish(self, cut_every: int | None = None) -> Iterator[int]:
        """All has been read: the rest is learnt, and targets that were on their way have come."""
        if self._new:
            self._hold()
        if self._at < self.rows:
            raise InvalidSpec(
                f"the source must have the {self.rows:,} rows that were read of it before; got {self._at:,}."
            )
        self._start, self._held = _dropped(self._held, self._start, self.rows)
        while self._at > self._start:
            yield self._learn_held(min(self._next_cut(self._start, cut_every), self._at))
        if self.learns:
            self.model.learn_waiting()
        self.finished = True

    def _hold(self) -> None:
        """Begin, where that is to be done, and take the tables that came without the rows that cannot be learnt."""
        if self.model.layout is None:
            first = rows_joined(self._new).head(FIRST_ROWS)
            if self.skipped is not None:
                first = first.filter(polars().Series(_good(len(first), self.model.bad_rows(first))))
            if not len(first):
                raise StreamError(f"{self.source} must have rows that can be learnt; got none in the first.")
            self.model.begin(first)
        whole = [self.whole(table) for table in self._new]
        self._new = []
        self._held += [table for table in whole if len(table)]
        self._at += sum(map(len, whole))

    def whole(self, table: Any) -> Any:
        """The rows of a table that can be learnt; if those that cannot are skipped, they are told."""
        first, self._given = self._given + 1, self._given + len(table)
        bad = {} if self.skipped is None else self.model.bad_rows(table)
        for row in sorted(bad):
            assert self.skipped is not None
            self.skipped.add(SkippedRow(self.source, first + row, None, bad[row]))
        return table.filter(polars().Series(_good(len(table), bad))) if bad else table

    def _learn_held(self, stop: int) -> int:
        part, self._held = _taken(self._held, stop - self._start)
        self._start = stop
        self.learn(part)
        return self.rows

    def learn(self, table: Any) -> None:
        """Learn one part."""
        self.count(self.model.learn_many(table, self.delay) if self.learns else self.model.said_of(table))

    def count(self, learnt: Learnt) -> None:
        """Score what was said of rows, and count them."""
        if self.tell is not None:
            self.tell(learnt)
        if self._scores is None:
            self._scores = KINDS[self.model.task]()
        if learnt.said is not None:
            self._scores.update(learnt.said, learnt.targets, learnt.classes)
        self.rows += len(learnt.known)
        self.without_target += int((~learnt.known).sum())
        if self.rows >= self._next_point:
            self._next_point = max(int(self.rows * GROWTH), self.rows + 1)
            self.add_point()

    def add_point(self) -> None:
        """A point of the learning curve: the row, and the scores since the point before."""
        if self._scores is not None and self._scores.rows:
            self.curve_errors.append(tuple(metric.standard_error for metric in self._scores.window.values()))
            self.curve.append((float(self.rows), *self._scores.close_window().values()))

    def since_last(self) -> float:
        """The first score of the rows since this was last asked."""
        scores = self.scores
        name, value = next(iter(scores.values().items()))
        mean = value**2 if name == "rmse" else value
        (rows, before), self._told = self._told, (scores.rows, mean)
        if scores.rows <= rows:
            return math.nan
        since = (scores.rows * mean - rows * before) / (scores.rows - rows)
        return math.sqrt(max(since, 0.0)) if name == "rmse" else since

    def _next_cut(self, row: int, cut_every: int | None) -> int:
        assert self.model.layout is not None
        size = HASHED_ROWS if self.model.layout.hashed else DENSE_ROWS
        cuts = [row + size - row % size]
        if cut_every:
            cuts.append(row + cut_every - row % cut_every)
        if row < self._first_cuts(size):
            cuts.append(max(2 * row, 16))
        return min(cuts)

    @staticmethod
    def _first_cuts(size: int) -> int:
        """Up to here parts are short, so that the beginning of the curve is seen."""
        return min(size, DENSE_ROWS)

    # --- beside the model

    def keep(self) -> None:
        """Lay all of it beside the model, where `bayou.save` finds it."""
        config: dict[str, Any] = {
            "source": self.source,
            "delay": self.delay,
            "rows": self.rows,
            "without_target": self.without_target,
            "finished": self.finished,
            "next_point": self._next_point,
        }
        if self.beside is not None:
            config["beside"] = self.beside()
        arrays: dict[str, NDArray[Any]] = {}
        if self._scores is not None:
            state = self._scores.to_state()
            config["scores"] = state.config
            arrays = {f"scores.{name}": array for name, array in state.arrays.items()}
            width = 1 + len(self._scores.metrics)
            arrays["curve"] = np.array(self.curve, dtype=np.float64).reshape(len(self.curve), width)
            arrays["curve_errors"] = np.array(self.curve_errors, dtype=np.float64).reshape(len(self.curve), width - 1)
        self.model.extra = State({"run": config}, arrays)

    @classmethod
    def of(cls, model: TableModel) -> TableRun:
        """The run that a model was saved in."""
        config = model.extra.config.get("run")
        if config is None:
            raise InvalidSpec("the model was not saved by a run, and cannot be taken up; learn without --resume.")
        run = cls(model, str(config["source"]), int(config["delay"]))
        run.rows, run.finished = int(config["rows"]), bool(config["finished"])
        run.known_beside = config.get("beside")
        run.without_target, run._next_point = int(config["without_target"]), int(config["next_point"])
        if "scores" in config:
            if model.task not in KINDS:
                raise ModelFileError(f"scores must be of a task, {', '.join(KINDS)}; got {model.task!r}.")
            arrays = {k.removeprefix("scores."): a for k, a in model.extra.arrays.items() if k.startswith("scores.")}
            run._scores = KINDS[model.task].from_state(State(config["scores"], arrays))
            run.curve = [tuple(point) for point in model.extra.arrays["curve"].tolist()]
            run.curve_errors = run._known_errors(model.extra.arrays.get("curve_errors"))
        return run

    def _known_errors(self, found: NDArray[Any] | None) -> list[tuple[float, ...]]:
        """Those of a file; of a curve that was saved without them, as before 0.1.0, each is not known."""
        shape = (len(self.curve), len(self.scores.metrics))
        if found is None:
            found = np.full(shape, math.nan)
        if found.shape != shape:
            raise ModelFileError(f"the errors of the learning curve must have the shape {shape}; got {found.shape}.")
        return [tuple(point) for point in found.tolist()]


def _good(n_rows: int, bad: Iterable[int]) -> NDArray[np.bool_]:
    good = np.ones(n_rows, dtype=np.bool_)
    good[list(bad)] = False
    return good


def _dropped(held: list[Any], start: int, stop: int) -> tuple[int, list[Any]]:
    """The tables without the rows up to one, as far as there are as many."""
    rest: list[Any] = []
    for table in held:
        gone = min(max(stop - start, 0), len(table)) if not rest else 0
        start += gone
        if gone < len(table):
            rest.append(table.slice(gone))
    return start, rest


def _taken(held: list[Any], count: int) -> tuple[Any, list[Any]]:
    """The first rows as one table, and the rest."""
    found, rest = [], []
    for table in held:
        taken = min(count, len(table))
        count -= taken
        if taken:
            found.append(table.slice(0, taken))
        if taken < len(table):
            rest.append(table.slice(taken))
    return rows_joined(found), rest
