"""One pass of a model over a stream of tables: every row is predicted, scored and learnt; a run can be taken up again.

What a run has found lies in the model file beside the model: scores, the learning curve, and how far it has come in
which source. Tables are cut at the same rows whatever the reader gives, so that a run that was broken off and taken up
again ends with the same model, to the bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import State
from bayou.errors import InvalidSpec, ModelFileError
from bayou.estimators.table_model import Learnt, TableModel
from bayou.evaluation.stream_scores import KINDS, StreamScores
from bayou.numerics.files import polars

DENSE_ROWS, HASHED_ROWS = 1024, 16_384  # that are learnt at a time
GROWTH = 1.15  # between points of the learning curve
FIRST_POINT = 16


class TableRun:
    """A model on its way through a source. Without ``learns`` rows are scored and not learnt; ``tell`` is called with
    what was said of each part.

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
    ) -> None:
        if not (isinstance(delay, int) and delay >= 0):
            raise InvalidSpec(f"`delay` must be a whole number of rows, at least 0; got {delay!r}.")
        self.model, self.source, self.delay, self.learns, self.tell = model, source, delay, learns, tell
        self.rows = 0  # of the source that were read
        self.without_target = 0
        self.finished = False
        self.curve: list[tuple[float, ...]] = []
        self._scores: StreamScores | None = None
        self._next_point = FIRST_POINT
        self._told = (0, 0.0)  # rows and the first score, when `since_last` was last asked

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
        for table in self._parts(tables, cut_every):
            self.learn(table)
            yield self.rows
        self.finish()

    def finish(self) -> None:
        """All has been read: targets that were on their way have come."""
        if self.learns:
            self.model.learn_waiting()
        self.finished = True

    def learn(self, table: Any) -> None:
        """Learn one part."""
        learnt = self.model.learn_many(table, self.delay) if self.learns else self.model.said_of(table)
        if self.tell is not None:
            self.tell(learnt)
        if self._scores is None:
            self._scores = KINDS[self.model.task]()
        if learnt.said is not None:
            self._scores.update(learnt.said, learnt.targets, learnt.classes)
        self.rows += len(table)
        self.without_target += int((~learnt.known).sum())
        if self.rows >= self._next_point:
            self._next_point = max(int(self.rows * GROWTH), self.rows + 1)
            self.add_point()

    def add_point(self) -> None:
        """A point of the learning curve: the row, and the scores since the point before."""
        if self._scores is not None and self._scores.rows:
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

    def _parts(self, tables: Iterable[Any], cut_every: int | None) -> Iterator[Any]:
        """The rows that were not read yet, cut where they always are."""
        held: list[Any] = []
        start, at = 0, 0  # first row that is held; the row after those
        for table in tables:
            if self.model.layout is None:
                self.model.begin(table)
            at += len(table)
            held.append(table)
            while True:
                if start < self.rows:  # read before
                    start, held = _dropped(held, start, self.rows)
                stop = self._next_cut(start, cut_every)
                if start < self.rows or stop > at:
                    break
                part, held = _taken(held, stop - start)
                start = stop
                yield part
        if start < self.rows and at < self.rows:
            raise InvalidSpec(f"the source must have the {self.rows:,} rows that were read of it before; got {at:,}.")
        if held and at > start:
            yield _taken(held, at - start)[0]

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
        arrays: dict[str, NDArray[Any]] = {}
        if self._scores is not None:
            state = self._scores.to_state()
            config["scores"] = state.config
            arrays = {f"scores.{name}": array for name, array in state.arrays.items()}
            arrays["curve"] = np.array(self.curve, dtype=np.float64).reshape(len(self.curve), -1)
        self.model.extra = State({"run": config}, arrays)

    @classmethod
    def of(cls, model: TableModel) -> TableRun:
        """The run that a model was saved in."""
        config = model.extra.config.get("run")
        if config is None:
            raise InvalidSpec("the model was not saved by a run, and cannot be taken up; learn without --resume.")
        run = cls(model, str(config["source"]), int(config["delay"]))
        run.rows, run.finished = int(config["rows"]), bool(config["finished"])
        run.without_target, run._next_point = int(config["without_target"]), int(config["next_point"])
        if "scores" in config:
            if model.task not in KINDS:
                raise ModelFileError(f"scores must be of a task, {', '.join(KINDS)}; got {model.task!r}.")
            arrays = {k.removeprefix("scores."): a for k, a in model.extra.arrays.items() if k.startswith("scores.")}
            run._scores = KINDS[model.task].from_state(State(config["scores"], arrays))
            run.curve = [tuple(point) for point in model.extra.arrays["curve"].tolist()]
        return run


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
    return found[0] if len(found) == 1 else polars().concat(found), rest
