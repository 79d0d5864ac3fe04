"""Learn a source in shards: look at all of it once, learn each shard in the common frame, add up; refine in rounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from bayou.bank import Bank
from bayou.contracts import Vector
from bayou.distributed import bank_shards, hashed_shards
from bayou.distributed.bank_shards import BankedPlan
from bayou.distributed.engines import Engine, engine_of
from bayou.distributed.hashed_shards import HashedPlan, HashedReader, learns_sparse
from bayou.distributed.naturals import added, check_family, log_partition, n_bytes, prior_of, write
from bayou.distributed.progress import Show, Stage, bar
from bayou.distributed.readers import ArrayReader, Reader, TableReader, join, look
from bayou.distributed.scores import Scores
from bayou.distributed.shards import Plan, Told, one_thread
from bayou.distributed.sources import Reading, Shard, shards_of
from bayou.encoders import TableEncoder
from bayou.errors import ImproperBelief, InvalidSpec
from bayou.estimators import OnlineClassifier, OnlineCounter, OnlineRegressor, TableModel
from bayou.estimators.common_frame import begun, check_kind, encoding_of
from bayou.estimators.table_model import CLASSES
from bayou.learner import Learner
from bayou.likelihoods import Logistic, Poisson
from bayou.posteriors import NormalInverseGamma

AnyPlan = Plan | BankedPlan | HashedPlan
ROUNDS = 3  # at most, of what is not exact
FIRST_ROWS = 16_384  # that columns are found out from
# Without drift: parts of a stream have no common now.
STATIC: dict[str, Any] = {
    "binary": lambda: OnlineClassifier(likelihood=Logistic()),
    "multiclass": lambda: OnlineClassifier(likelihood=Logistic()),
    "regression": lambda: OnlineRegressor(posterior=NormalInverseGamma(prior_variance=10.0)),
    "count": lambda: OnlineCounter(likelihood=Poisson()),
}
# Of hashed rows a classifier is one learner by itself.
HASHED: dict[str, Any] = STATIC | {
    "binary": OnlineClassifier,
    "multiclass": OnlineClassifier,
    "regression": OnlineRegressor,
}


class Move(NamedTuple):
    """How far a belief has moved: of any weight the mean, in deviations, and the deviation, as a fraction of it."""

    mean: float
    deviation: float

    def __str__(self) -> str:
        return f"a mean by {self.mean:.3g} deviations, a deviation by {100.0 * self.deviation:.2g} %"


class Round(NamedTuple):
    """One pass over all shards: how far it moved the belief, and what it took."""

    moved: Move | None  # None of the first, before which there was nothing
    seconds: float
    busy_seconds: float  # of all workers together
    bytes_moved: int
    log_score: float  # of a row, on average, given what the other shards have told and the rows before it
    scores: Scores  # of the same predictions: metrics, with a value and a standard error each


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model that was learnt in shards, and how that went.

    ``one_pass`` is what a single pass would have given; ``refined`` how far the rounds moved it from there. ``exact``
    says that nothing was lost by learning in shards, ``settled`` that the last round moved the belief by no more than
    was asked for.
    """

    model: Any
    one_pass: Any
    rounds: tuple[Round, ...]
    exact: bool
    settled: bool
    refined: Move | None
    rows: int
    n_shards: int
    seconds_to_look: float
    note: str = ""

    @property
    def scores(self) -> dict[str, float]:
        """Of each row before it was learnt, in the last round: given the rows before it in its own shard and, but for
        the first round, what all other shards have told. ``rounds`` has those of the others, with standard errors.
        """
        return {name: metric.value for name, metric in self.rounds[-1].scores.items()}

    def __str__(self) -> str:
        lines = [f"{self.rows:,} rows in {self.n_shards} shards, {len(self.rounds)} round(s)"]
        if self.exact:
            lines.append("exact: the same as of one pass over all rows, whatever the shards")
        elif self.rounds[-1].moved is not None:
            state = "settled" if self.settled else "not settled"
            lines.append(f"{state}: the last round moved {self.rounds[-1].moved}")
            lines.append(f"a single pass would have been off: {self.refined}")
        else:
            lines.append("one round: shards know nothing of each other; more would refine it")
        if len(self.rounds) > 1 and self.rounds[1].log_score < self.rounds[0].log_score:
            lines.append("shards do not agree, a row fares worse by what the others tell: the stream may drift")
        return "\n".join([*lines, self.note] if self.note else lines)


def fit(
    estimator: Any,
    source: Any,
    target: str | None = None,
    engine: Any = None,
    rounds: int | None = None,
    tolerance: float = 0.05,
    shards: int | None = None,
    reading: Reading | None = None,
    progress: Show | bool = False,
    learner: Any = None,
) -> Fitted:
    """Learn a source in shards, which are learnt side by side, and add up what they tell.

    ``estimator`` is an `OnlineRegressor`, `OnlineClassifier` or `OnlineCounter` without a bank, a `Bank` of members
    that know nothing of time, which are added up one by one, or a `TableModel`, in which one learner without drift
    stands for the bank. ``source`` is what `bayou.distributed.sources` has; ``target`` names the column of tables that
    estimators of plain numbers learn. ``engine`` is None for local processes, a number
    of them, "dask", the address of a Dask cluster, or an engine. ``shards`` is how many there are to be, where the
    source does not say; ``learner`` the estimator that learns the rows of a TableModel, if it is not to be the usual.

    With a Gaussian likelihood, every correlation and no missing values, one round is exact. Otherwise at most
    ``rounds`` of them (three, where nothing is said) refine it, each shard learnt again given what all others tell,
    until no mean moves by more than ``tolerance`` deviations and no deviation by more than that fraction. Hashed rows
    have one round unless more are asked for: weights that are taken as independent are not always better for more.

    >>> import numpy as np
    >>> from bayou import Logistic, OnlineClassifier
    >>> from bayou.distributed import InProcess, fit
    >>> x = np.random.default_rng(0).normal(size=(2000, 3))
    >>> y = x[:, 0] > x[:, 1]
    >>> fitted = fit(OnlineClassifier(likelihood=Logistic()), (x, y), engine=InProcess(), shards=4)
    >>> bool(fitted.model.score(x, y) > 0.9), fitted.n_shards
    (True, 4)
    """
    if rounds is not None and not (isinstance(rounds, int) and rounds >= 1):
        raise InvalidSpec(f"`rounds` must be a whole number, at least 1; got {rounds!r}.")
    if not tolerance > 0.0:
        raise InvalidSpec(f"`tolerance` must be above 0; got {tolerance!r}.")
    show = bar if progress is True else (progress or None)
    parts = shards_of(source, shards, reading)
    reader, note = _reader(estimator, parts[0], target, learner)
    with engine_of(engine) as runs:
        work = _Work(runs, parts, show)
        looked = work.look(reader)
        model, plan = _planned(estimator, looked, learner)
        exact = not isinstance(plan, HashedPlan) and plan.is_exact(looked.seen)
        enough = 1 if isinstance(plan, HashedPlan) else ROUNDS
        told, passes, settled = work.refine(plan, 1 if exact else rounds or enough, tolerance)
    if isinstance(plan, HashedPlan):
        head = next(parts[0].chunks())
        models = [(hashed_shards.finished(plan, one, head), one.rows) for one in (told[0], told[-1])]
        first, last = (_in_table(reader, *one) for one in models)
    elif isinstance(plan, BankedPlan):
        first, last = (bank_shards.finished(model, plan, one) for one in (told[0], told[-1]))
    else:
        first, last = (_finished(model, plan, one) for one in (told[0], told[-1]))
    refined = moved(_learner_of(first), _learner_of(last)) if len(told) > 1 else None
    return Fitted(
        last,
        first,
        tuple(passes),
        exact,
        settled or exact,
        refined,
        looked.seen.rows,
        len(parts),
        work.seconds_to_look,
        note,
    )


def moved(before: Learner | Bank, after: Learner | Bank) -> Move:
    """How far a belief is from another."""
    spread = np.sqrt(_variances(after))
    step = np.abs(np.ravel(after.belief.mean) - np.ravel(before.belief.mean)) / spread
    ratio = np.abs(np.sqrt(_variances(before)) / spread - 1.0)
    return Move(float(step.max()), float(ratio.max()))


def _variances(learner: Learner | Bank) -> Vector:
    if isinstance(learner, Bank):
        return bank_shards.variances(learner)
    each = [learner.posterior.variances(belief) for belief in learner.beliefs()]
    return np.concatenate([np.broadcast_to(one, (learner.n_features,)) for one in each])


class _Work:
    """The shards of one source on one engine."""

    def __init__(self, engine: Engine, shards: Sequence[Shard], show: Show | None) -> None:
        self._engine, self._shards, self._show = engine, shards, show
        self._rows = [0] * len(shards)
        self.seconds_to_look = 0.0

    def look(self, reader: Reader | HashedReader) -> Any:
        """What all shards hold."""
        ways: Any = (hashed_shards.look, hashed_shards.join) if isinstance(reader, HashedReader) else (look, join)
        shared = self._engine.share(reader)
        stage = Stage("looking ", self._rows, 0, self._show)
        handles = self._engine.map(ways[0], [(shared, shard) for shard in self._shards], stage)
        looked = self._engine.reduce(ways[1], handles)
        self._rows = list(looked.rows)
        self.seconds_to_look = stage.seconds
        return looked

    def refine(self, plan: AnyPlan, rounds: int, tolerance: float) -> tuple[list[Told], list[Round], bool]:
        """What all shards have told after each round, and how the rounds went."""
        shared, before = self._engine.share(plan), None
        handles: list[Any] = []
        totals: list[Told] = []
        passes: list[Round] = []
        for number in range(rounds):
            known = None if not totals else plan.total(totals[-1])
            total = None if known is None else self._engine.share(known)
            each = plan.first_bytes() if known is None else 2 * n_bytes(known)
            stage = Stage(f"round {number + 1}", self._rows, each, self._show)
            tasks = [
                (shared, shard) if total is None else (shared, shard, total, handles[place])
                for place, shard in enumerate(self._shards)
            ]
            handles = self._engine.map(plan.learn, tasks, stage)
            told = self._engine.reduce(plan.join, handles)
            try:
                after = plan.after(told)
            except ImproperBelief:
                if not totals:
                    raise
                break  # what was known before this round stands
            step = None if before is None else moved(before, after)
            sent = told.bytes_told
            if known is not None:
                sent += totals[-1].bytes_told + len(tasks) * n_bytes(known)
            score = told.log_score / max(told.rows, 1)
            passes.append(Round(step, stage.seconds, told.seconds, sent, score, told.scores))
            totals.append(told)
            before = after
            if step is not None and max(step) <= tolerance:
                return totals, passes, True
            if plan.may_diverge and number > 1 and passes[-1].log_score < passes[-2].log_score:
                return totals[:-2], passes, False  # the round before has gone too far: its belief scored worse
        return totals, passes, False


# --- what is learnt


def _reader(estimator: Any, first: Shard, target: str | None, learner: Any) -> tuple[Reader | HashedReader, str]:
    """How the rows are read, by the first of them."""
    if isinstance(estimator, TableModel):
        if target is not None:
            raise InvalidSpec(f"a TableModel has a target, {estimator.target.text!r}; got `target` {target!r}, too.")
        if learner is not None:
            check_kind(learner)
        model = _begun_table(estimator, first)
        note = "one learner without drift, not a bank of many"
        if model.layout is not None and model.layout.hashed:
            texts = () if model.estimator.encoder is None else model.estimator.encoder.text
            return HashedReader(model.task not in CLASSES, texts, None, model), note
        return TableReader(model), note
    if learner is not None:
        raise InvalidSpec(f"`learner` is for a TableModel; got {learner!r} beside {estimator!r}.")
    if isinstance(estimator, Bank):
        return bank_shards.reader_of(estimator, target), bank_shards.note_of(estimator)
    check_kind(estimator)
    are_numbers = not isinstance(estimator, OnlineClassifier)
    if estimator.encoder is not None:
        return HashedReader(are_numbers, estimator.encoder.text, target), ""
    head = next(first.chunks())
    is_sparse = isinstance(head, tuple) and hasattr(head[0], "tocsr")
    if is_sparse and learns_sparse(estimator, head[0].shape[1]):
        return HashedReader(are_numbers, ()), ""
    return ArrayReader(are_numbers, target, sparse=is_sparse), ""


def _begun_table(given: TableModel, first: Shard) -> TableModel:
    """A new model of the same settings, which has looked at the first rows."""
    head = given._as_table(next(first.chunks())).head(FIRST_ROWS)
    encoders = [given.encoder]  # which finds out by itself, but for tables
    if isinstance(given.encoder, TableEncoder) and not given.encoder.hashed:
        encoders = [replace(given.encoder, hashed=hashed) for hashed in (False, True)]
    for encoder in encoders:
        model = TableModel(given.target.text, given.task, encoder, given.weight, given.bits, given.budget)
        model.begin(head)
        if "text" not in model.kinds().values():  # whose words are hashed
            break
    return model


def _planned(estimator: Any, looked: Any, learner: Any) -> tuple[Any, AnyPlan]:
    """A model in the frame of all that was seen, and all that it takes to learn a shard."""
    reader, seen = looked.reader, looked.seen
    if isinstance(reader, HashedReader):
        if reader.table is not None:
            own = HASHED[reader.table.task]() if learner is None else clone(learner)
            estimator = own.set_params(encoder=reader.table.estimator.encoder)
        plan = HashedPlan(estimator, looked._replace(rows=()))
        return plan.model(), plan
    if isinstance(estimator, Bank):
        return estimator, bank_shards.planned(estimator, reader, seen)
    is_table = isinstance(estimator, TableModel)
    names = None if not is_table else reader.model.layout.names
    if isinstance(reader, TableReader):
        reader.model.task = reader.model._task_of(np.array(seen.labels, dtype=object))
    if is_table:
        estimator = STATIC[reader.model.task]() if learner is None else learner
    model: Any = begun(estimator, seen, names, sparse=getattr(reader, "sparse", False))
    if not isinstance(reader, TableReader) and reader.columns is not None:
        model.feature_names_in_ = np.asarray(reader.columns, dtype=object)
    own = model._learner_
    check_family(own.posterior)
    return model, Plan(reader, encoding_of(model), own.likelihood, own.posterior, own.rule, own.n_features)


def _finished(model: Any, plan: Plan, told: Told) -> Any:
    """The model, once all shards have told what they did."""
    finished = type(model).from_state(model.to_state())
    finished._column_names = model._column_names
    learner = finished._learner_
    prior = prior_of(learner)
    at_first = log_partition(learner)
    with one_thread():
        write(learner, added(prior, told.natural))
    learner.n_examples = told.rows
    learner.log_evidence = told.log_scale + log_partition(learner) - at_first
    if isinstance(finished, OnlineRegressor) and finished._in_units:
        finished._units.log_scales = told.rows * float(np.log(plan.encoding.scale))
    return _in_table(plan.reader, finished, told.rows)


def _in_table(reader: Any, estimator: Any, rows: int) -> Any:
    """The model of tables that an estimator is to learn for, if there is one."""
    table = reader.table if isinstance(reader, HashedReader) else getattr(reader, "model", None)
    if table is None:
        return estimator
    whole = TableModel(table.target.text, table.task, table.encoder, table.weight, table.bits, table.budget)
    whole.target, whole.layout, whole.estimator, whole.n_rows = table.target, table.layout, estimator, rows
    return whole


def _learner_of(model: Any) -> Learner | Bank:
    if isinstance(model, Bank):
        return model
    found: Learner = (model.estimator if isinstance(model, TableModel) else model)._learner_
    return found
