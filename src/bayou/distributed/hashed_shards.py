"""Hashed rows in shards: weights that are told apart add up one by one, and only those that were touched are sent.

    cavity = prior + what all have told - what this shard told before           of each weight by itself
    told   = what a learner that began with the cavity believes after the rows - cavity

Weights are taken as independent, so that shards which explain the same by other weights do not notice: it is never
exact. Rounds refine it by part of a step each: by whole ones many shards together go too far, and farther each time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from bayou.contracts import SparsePosterior, SparseRows, Vector
from bayou.distributed.naturals import n_bytes
from bayou.distributed.scores import count, no_scores
from bayou.distributed.shards import Told, join_told, one_thread
from bayou.distributed.sources import Shard
from bayou.errors import ImproperBelief, InvalidFeatures, InvalidSpec, InvalidTarget, StreamError
from bayou.estimators import OnlineClassifier, OnlineCounter, TableModel
from bayou.estimators.common_frame import ONE_LEARNER, Seen, check_kind, check_members, encoding_of, sorted_labels
from bayou.estimators.doublings import next_look
from bayou.estimators.sparse_inputs import Table, check_number
from bayou.estimators.table_weights import weights_of
from bayou.numerics.column_moments import Moments, moments_and_missing
from bayou.numerics.files import polars
from bayou.numerics.sparse_rows import sparse_rows
from bayou.numerics.table_columns import arrow_table, column_names
from bayou.numerics.table_kinds import as_table, listed
from bayou.numerics.table_numbers import number_names, numbers_of
from bayou.sparse_bank import SparseBank
from bayou.sparse_learner import SparseLearner

STEP = 0.4  # of the way that a shard goes in a round, from the second on: all go it at once, and would go too far
LEAST = 1e-6  # of the prior's precision: a cavity that has less is none, and the prior stands for it
WITHOUT_BUDGET = "OnlineClassifier(encoder=Hashing(), likelihood=Probit()), or no `budget`"


class Touched(NamedTuple):
    """What was told of some weights, in natural parameters; latents are one after another."""

    places: NDArray[np.int64]
    precision: Vector
    shift: Vector


def added(one: Touched, other: Touched) -> Touched:
    """What both tell."""
    places = np.union1d(one.places, other.places)
    both = Touched(places, np.zeros(places.size), np.zeros(places.size))
    for part in (one, other):
        at = np.searchsorted(places, part.places)
        both.precision[at] += part.precision
        both.shift[at] += part.shift
    return both


# --- rows, and what there is to see of them


@dataclass(frozen=True, eq=False)
class HashedReader:
    """From tables to columns of anything, targets and weights; by a `TableModel`, if there is one.

    What is sparse already stays as it is: matrices of scipy, and rows of libsvm and Vowpal Wabbit's text.
    """

    are_numbers: bool
    text: tuple[str, ...]
    target: str | None = None
    table: TableModel | None = None

    def examples(self, chunk: Any) -> tuple[Any, NDArray[Any], Vector | None]:
        """The rows of a chunk that have a target."""
        if isinstance(chunk, tuple):
            X, y, weights = chunk
            if not hasattr(X, "tocsr"):
                raise InvalidSpec("hashed rows must be tables with a column for the target; got arrays.")
            return sparse_rows(X), y, None if weights is None else np.asarray(weights, dtype=np.float64)
        rows = as_table(chunk) if self.table is None else self.table._as_table(chunk)
        if self.table is not None:
            targets, known = self.table.target.of(rows, self.table.task)
            told = rows if known.all() else rows.filter(polars().Series(known))
            return self.table._inputs_of(self.table.layout, told), targets, weights_of(told, self.table.weight)
        if self.target is None:
            raise InvalidSpec(f"`target` must name a column of the tables; got None of {listed(rows.columns)}.")
        if self.target not in rows.columns:
            raise StreamError(
                f"the target must be a column; got {self.target!r} of {listed(rows.columns, self.target)}."
            )
        told = rows.filter(rows[self.target].is_not_null())
        return told.drop(self.target), told[self.target].to_numpy(), None


class HashedLooked(NamedTuple):
    """What was seen of shards: targets, the moments of numbers, which columns are none, and rows per shard; of sparse
    rows how many columns they have, and how many entries all of them together.
    """

    reader: HashedReader
    seen: Seen
    numbers: dict[str, Moments]
    others: frozenset[str]
    rows: tuple[int, ...]
    n_columns: int = 0
    entries: int = 0

    def joined(self, other: HashedLooked) -> HashedLooked:
        """Of the rows of both."""
        numbers = dict(self.numbers)
        for name, moments in other.numbers.items():
            numbers[name] = numbers[name].joined(moments) if name in numbers else moments
        others = self.others | other.others
        for name in numbers:
            if name in others:
                raise InvalidFeatures(f"column {name!r} must be of one kind; got numbers and other values.")
        if self.n_columns != other.n_columns:
            raise StreamError(f"shards must have the same columns, {self.n_columns}; got {other.n_columns}.")
        seen, entries = self.seen.joined(other.seen), self.entries + other.entries
        return HashedLooked(self.reader, seen, numbers, others, self.rows + other.rows, self.n_columns, entries)


def look(reader: HashedReader, shard: Shard) -> HashedLooked:
    """All rows of a shard, before anything is learnt."""
    found: HashedLooked | None = None
    for chunk in shard.chunks():
        rows, targets, weights = reader.examples(chunk)
        seen = Seen.of(np.zeros((len(targets), 0)), targets, weights, reader.are_numbers)
        if isinstance(rows, SparseRows):
            sizes = rows.n_columns, rows.columns.size
            part = HashedLooked(reader, seen, {}, frozenset(), (len(targets),), *sizes)
        else:
            part = HashedLooked(reader, seen, *_columns(rows, weights, reader.text), (len(targets),))
        found = part if found is None else found.joined(part)._replace(rows=(found.rows[0] + len(targets),))
    if found is None:
        raise StreamError("a shard must have rows; got none.")
    return found


def _columns(rows: Any, weights: Vector | None, text: tuple[str, ...]) -> tuple[dict[str, Moments], frozenset[str]]:
    """The moments of the columns of a table that are numbers, and the names of the others."""
    table, numbers = arrow_table(rows), {}
    for name in number_names(table):
        if name not in text:
            values = numbers_of(table, name)
            check_number(name, values)
            numbers[name] = moments_and_missing(values[:, None], weights)[0]
    return numbers, frozenset(column_names(table)) - frozenset(numbers)


def join(one: HashedLooked, other: HashedLooked) -> HashedLooked:
    """What was seen of the rows of both."""
    return one.joined(other)


# --- who learns


@dataclass(frozen=True, eq=False)
class HashedPlan:
    """All that it takes to learn a shard."""

    estimator: Any
    looked: HashedLooked

    may_diverge: ClassVar[bool] = True

    def model(self) -> Any:
        """One that has learnt nothing, in the frame of all that was seen."""
        return begun(self.estimator, self.looked)

    def learner(self) -> SparseLearner:
        """That of such a model."""
        found: SparseLearner = self.model()._learner_
        return found

    def first_bytes(self) -> int:
        """What a shard tells at first is not known before."""
        return 0

    def total(self, told: Told) -> Any:
        """What all have told, for those who learn again."""
        return told.natural

    def after(self, told: Told) -> SparseLearner:
        """A learner that believes what all have told."""
        learner = self.learner()
        write(learner, Touched(*told.natural))
        return learner

    @staticmethod
    def learn(plan: HashedPlan, shard: Shard, total: Any = None, before: Told | None = None) -> Told:
        """See `learn_hashed`."""
        return learn_hashed(plan, shard, total, before)

    @staticmethod
    def join(one: Told, other: Told) -> Told:
        """What both have told."""
        return join_told(one, other, lambda a, b: added(Touched(*a), Touched(*b)))


def begun(estimator: Any, looked: HashedLooked) -> Any:
    """An estimator of these settings that has learnt nothing, in the frame of what was seen."""
    if looked.n_columns:
        return begun_sparse(estimator, looked.seen, looked.entries / max(looked.seen.rows, 1), looked.n_columns)
    model = begun_sparse(estimator, looked.seen, float(len(looked.numbers) + len(looked.others)))
    inputs = model._inputs
    inputs._admit(list(looked.numbers))
    inputs._others.update(looked.others)
    for j, moments in enumerate(looked.numbers.values()):
        for array, part in zip(inputs._frame, moments, strict=False):
            array[j] = part[0]
    inputs.take_frame()
    return model


def begun_sparse(estimator: Any, seen: Seen, entries: float, n_columns: int = 1) -> Any:
    """An estimator of these settings that has learnt nothing, of rows of so many entries: tables, if there is an
    encoder, or matrices of so many columns.
    """
    check_kind(estimator)
    model: Any = clone(estimator)
    model._given_sparse, model._entries = estimator.encoder is None, entries
    if isinstance(model, OnlineClassifier):
        if len(seen.labels) < 2:
            raise InvalidTarget(f"there must be two classes at least; got {list(seen.labels)}.")
        model._start(n_columns, sorted_labels(seen.labels))
        model._calibration = None  # it learns from the order of rows
    else:
        model._start(n_columns)
    check_one_learner(model)
    if model._given_sparse:
        model.n_features_in_ = n_columns
    if isinstance(model, OnlineCounter):
        model._largest = max(seen.largest, 0.0)
    model._seen, model._next = seen.weight, next_look(seen.weight)
    return model


def learns_sparse(estimator: Any, n_columns: int) -> bool:
    """Whether an estimator takes weights as independent where it is given sparse rows of so many columns."""
    model: Any = clone(estimator)
    model._given_sparse = True
    return isinstance(model._choose(n_columns).posterior, SparsePosterior)


def check_one_learner(model: Any, instead: str | None = None) -> None:
    """Raise unless a begun estimator of sparse rows has one learner, whose noise is not found beside it."""
    if isinstance(model._learner_, SparseBank):
        check_members(model._learner_.members, instead or ONE_LEARNER.format(example=WITHOUT_BUDGET))
        raise InvalidSpec(f"a bank of sparse rows must be told its rows by itself: set no `budget`; got {model!r}.")
    if getattr(model, "_finds_noise", False):
        raise InvalidSpec(f"the noise must be told where sparse rows are shared out: set a likelihood; got {model!r}.")


def write(learner: SparseLearner, told: Touched, improper: bool = True) -> None:
    """Let a new learner believe what was told; where that is no belief, raise, or let the prior stand."""
    width = learner.n_features
    for latent, belief in enumerate(learner.beliefs()):
        own = slice(*np.searchsorted(told.places, [latent * width, (latent + 1) * width]))
        places = told.places[own] - latent * width
        mean, variance = (part[places].astype(np.float64) for part in (belief.mean, belief.variance))
        precision = 1.0 / variance + told.precision[own]
        bad = precision * variance < LEAST
        if improper and bad.any():
            worst = int(places[np.argmax(bad)])
            raise ImproperBelief(f"weight {worst} would have no positive precision: the shards contradict each other.")
        safe = np.where(bad, 1.0, precision)
        belief.mean[places] = np.where(bad, mean, (mean / variance + told.shift[own]) / safe)
        belief.variance[places] = np.where(bad, variance, 1.0 / safe)


def learn_hashed(plan: HashedPlan, shard: Shard, total: Any = None, before: Told | None = None) -> Told:
    """Learn all rows of a shard, given what all shards have told before."""
    started = time.process_time()
    with one_thread():
        model = plan.model()
        learner: SparseLearner = model._learner_
        if total is not None and before is not None:
            write(learner, added(Touched(*total), _times(-1.0, Touched(*before.natural))), improper=False)
        known = [(belief.mean.copy(), belief.variance.copy()) for belief in learner.beliefs()]
        encoding = encoding_of(model)
        scores = no_scores(encoding)
        for chunk in shard.chunks():
            rows, targets, weights = plan.looked.reader.examples(chunk)
            if not len(targets):
                continue
            told, counts = encoding.targets(targets), np.zeros(0) if weights is None else weights
            for part, some in _parts(model, rows):
                said = learner.learn_unchecked(some, told[part], counts[part])
                count(scores, encoding, said, told[part], None if weights is None else weights[part])
        natural = _beyond(learner, known)
        if before is not None:
            natural = added(_times(1.0 - STEP, Touched(*before.natural)), _times(STEP, natural))
    evidence, seconds = learner.log_evidence, time.process_time() - started
    return Told(natural, learner.n_examples, evidence, evidence, seconds, scores, n_bytes(natural))


def _parts(model: Any, rows: Any) -> Iterator[tuple[slice, SparseRows]]:
    """Rows as a learner takes them, some at a time."""
    if isinstance(rows, SparseRows):
        yield slice(0, len(rows)), model._learner_._checked(rows)[0]
    else:
        yield from model._inputs._encoded(Table(rows), np.zeros(0), learn=False)


def _times(share: float, told: Touched) -> Touched:
    return Touched(told.places, share * told.precision, share * told.shift)


def _beyond(learner: SparseLearner, known: list[tuple[Any, Any]]) -> Touched:
    """What was learnt beyond what was known, of the weights that have changed."""
    parts = []
    for latent, (belief, (mean, variance)) in enumerate(zip(learner.beliefs(), known, strict=True)):
        places = np.flatnonzero((belief.mean != mean) | (belief.variance != variance))
        new, old = 1.0 / belief.variance[places].astype(np.float64), 1.0 / variance[places].astype(np.float64)
        shift = new * belief.mean[places] - old * mean[places]
        parts.append(Touched(places + latent * learner.n_features, new - old, shift))
    return Touched(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def finished(plan: HashedPlan, told: Told, first: Any) -> Any:
    """The model, once all shards have told what they did; it remembers the names that the first rows have."""
    model, table = plan.model(), plan.looked.reader.table
    if not plan.looked.n_columns:
        _remember_names(model, plan.looked.reader.examples(first)[0])
    elif table is not None:
        table.layout.admitted(first)
    write(model._learner_, Touched(*told.natural))
    model._learner_.n_examples, model._learner_.log_evidence = told.rows, told.log_score
    return model


def _remember_names(model: Any, rows: Any) -> None:
    """Let inputs know the names in some rows, and count none of their numbers."""
    frame = model._inputs._frame
    before = [array.copy() for array in frame]
    for _ in model._inputs._encoded(Table(rows), np.zeros(0), learn=True):
        pass
    for array, value in zip(frame, before, strict=True):
        array[...] = value
