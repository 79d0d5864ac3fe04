"""The online step for rows of which few entries are not zero."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayou.contracts import (
    Array,
    Latent,
    Likelihood,
    Mask,
    Matrix,
    Rule,
    ScalarLikelihood,
    SparsePosterior,
    SparseRows,
    State,
    Vector,
    VectorLikelihood,
)
from bayou.errors import ImproperBelief, InvalidFeatures, InvalidSpec, ShapeMismatch
from bayou.learner import Learner
from bayou.numerics.hashed_dicts import Learning
from bayou.numerics.jit import entry_point
from bayou.numerics.pointers import scalar_kernels, vector_kernels
from bayou.numerics.sparse_checks import decrease
from bayou.numerics.sparse_rows import checked, sparse_rows
from bayou.numerics.validation import checked_weights
from bayou.prediction import Prediction, latent_of

_EQUAL_WEIGHTS: Vector = np.zeros(0)
# Shards of fewer rows, of which there would be many, mistake what they have in common for evidence of their own.
LEAST_SHARD = 1024


class SparseLearner(Learner):
    """A `Learner` that takes sparse rows, too: a sparse matrix of scipy, Arrow's, or `SparseRows`.

    The order of the entries of a row does not matter; columns that come twice in a row are summed; a row without
    entries is a row of zeros. With a ``constant`` there is one feature more than columns, the last, which has that
    value in every row.

    >>> import scipy.sparse
    >>> from bayou import MomentMatching, Probit, SparseDiagonalGaussian, SparseLearner
    >>> rows = scipy.sparse.csr_array([[0.0, 0.0, 1.0], [2.0, 0.0, 0.0]])
    >>> learner = SparseLearner(Probit(), SparseDiagonalGaussian(), MomentMatching(), n_features=3)
    >>> _ = learner.learn_many(rows, [1, -1])
    >>> learner.predict_many(rows).mean.round(2)
    array([ 0.34, -0.59])
    """

    posterior: SparsePosterior[Any]

    def __init__(
        self,
        likelihood: Likelihood,
        posterior: SparsePosterior[Any],
        rule: Rule,
        n_features: int,
        constant: float = 0.0,
    ) -> None:
        if not isinstance(posterior, SparsePosterior):
            raise InvalidSpec(
                f"`posterior` must be one for sparse rows, as SparseDiagonalGaussian(); got {posterior!r}."
            )
        if not np.isfinite(constant):
            raise InvalidSpec(f"`constant` must be finite; got {constant!r}.")
        self.constant = float(constant)
        super().__init__(likelihood, posterior, rule, n_features)

    @property
    def n_columns(self) -> int:
        """How many columns rows have: the features, less that which is constant."""
        return self.n_features - (self.constant != 0.0)

    def _prepare(self) -> None:
        """Compile what is not yet on disk, and lay out what every call needs."""
        self._vector = isinstance(self.likelihood, VectorLikelihood)
        self._params, self.learns_noise = self.likelihood.params, self.posterior.learns_noise
        self._dtype = self.belief.mean.dtype
        self._target, self._starts = np.zeros(1), np.zeros(2, np.int64)
        record = self._one_record = self._record(1)
        if isinstance(self.likelihood, VectorLikelihood):
            self._kernels = vector_kernels(self.likelihood, self.rule)
            learn, record_of_one = self.posterior.learn_sparse_vector, record[0]
        else:
            assert isinstance(self.likelihood, ScalarLikelihood)
            self._kernels = scalar_kernels(self.likelihood, self.rule)
            learn, record_of_one = self.posterior.learn_sparse, record
        rows = self._starts, np.zeros(0, np.int32), np.zeros(0, self._dtype), self.constant
        self._predict = entry_point(self.posterior.predict_sparse, self.beliefs()[0], *rows, record_of_one)
        given = self.belief, self._kernels, self._params, *rows, self._target, _EQUAL_WEIGHTS, record, 0
        self._learn, self.learn_pass = entry_point(learn, *given), learn

    def _checked(self, features: Any) -> tuple[SparseRows, bool]:
        """Rows as the kernels take them, and whether any value is so large that a latent may overflow."""
        return checked(sparse_rows(features, self.n_columns), self.n_columns, self._dtype)

    def predict_one(self, features: Any) -> Prediction:
        """What is known of the target of one example: a dict of the columns that are not zero, or one row."""
        rows, _ = self._checked(_one_row(features, self.n_columns))
        return Prediction(self.likelihood, self._sparse_latents(rows), single=True)

    def predict_many(self, features: Any, missing: Mask | None = None) -> Prediction:
        """What is known of the target of each row."""
        _refuse(missing)
        return Prediction(self.likelihood, self._sparse_latents(self._checked(features)[0]))

    def predict_unchecked(self, rows: SparseRows) -> Prediction:
        """What is known of the targets of rows that are known to be right; see `learn_unchecked`."""
        return Prediction(self.likelihood, self._sparse_latents(rows))

    def _sparse_latents(self, rows: SparseRows) -> Latent:
        record = self._record(len(rows))
        parts = zip(self.beliefs(), record, strict=True) if self._vector else [(self.belief, record)]
        for belief, part in parts:
            self._predict(belief, rows.starts, rows.columns, rows.values, self.constant, part)
        return latent_of(record)

    def learn_one(self, features: Any, y: float, weight: float = 1.0) -> Prediction:
        """Learn from one example; returns the prediction made before the target was used."""
        rows, large = self._checked(_one_row(features, self.n_columns))
        target = np.array([y], dtype=np.float64)
        self.likelihood.check_targets(target)
        return self._learn_rows(rows, large, target, checked_weights([weight], 1), single=True)

    def learn_many(
        self,
        features: Any,
        targets: ArrayLike,
        weights: ArrayLike | None = None,
        missing: Mask | None = None,
        threads: int = 1,
    ) -> Prediction:
        """Learn from the rows in order; returns the predictions made before each target was used.

        With several ``threads`` the rows are cut into as many shards, of 1,024 rows at least, learnt side by side from
        what is known now, and what each has learnt is added up. It is not what learning them in order gives: no shard
        knows of the others, and a prediction knows the rows before it of its own shard alone. See docs/sparse.md for
        what that costs.
        """
        _refuse(missing)
        rows = sparse_rows(features, self.n_columns)
        wanted = np.require(targets, np.float64, ["C", "W"])
        if wanted.shape != (len(rows),):
            raise ShapeMismatch(f"`targets` must have one value per row, {len(rows)}; got shape {wanted.shape}.")
        self.likelihood.check_targets(wanted)
        counts = _EQUAL_WEIGHTS if weights is None else checked_weights(weights, len(rows))
        if not (isinstance(threads, int) and threads >= 1):
            raise InvalidSpec(f"`threads` must be a whole number, at least 1; got {threads!r}.")
        shards = min(threads, len(rows) // LEAST_SHARD)
        if shards > 1:
            return self._learn_shards(self._checked(rows)[0], wanted, counts, shards)
        plain = self._as_kernels_take(rows)
        if plain is not None and sum(array.nbytes for array in self.belief) < rows.columns.nbytes:
            return self._learn_or_go_back(plain, wanted, counts)
        return self._learn_rows(*self._checked(rows), wanted, counts)

    def _learn_or_go_back(self, rows: SparseRows, targets: Vector, counts: Vector) -> Prediction:
        """Learn rows that are looked at as they are learnt, and go back if one is not as most are.

        Where all rows are longer than what is believed, a copy of that costs less than a look at all of them before.
        """
        before, record = [array.copy() for array in self.belief], self._record(len(rows))
        if self._run(self.belief, rows, targets, counts, record, careful=1) == len(rows):
            return self._count(record, targets)
        for array, saved in zip(self.belief, before, strict=True):
            array[...] = saved
        return self._learn_rows(*self._checked(rows), targets, counts)

    def learn_unchecked(self, rows: SparseRows, targets: Vector, weights: Vector = _EQUAL_WEIGHTS) -> Prediction:
        """Learn rows that are known to be right: as `bayou.numerics.sparse_rows.checked` gives them, none large."""
        return self._learn_rows(rows, False, targets, weights)

    def learn_entries(self, columns: NDArray[np.int32], values: Array, y: float) -> None:
        """Learn one row by its columns and values, and a legal target: the short way, in which nothing is checked."""
        self._starts[1], self._target[0] = columns.size, y
        entries = self._starts, columns, values, self.constant
        record = self._one_record
        given = self._kernels, self._params, *entries, self._target, _EQUAL_WEIGHTS, record, 0
        if self._learn(self.belief, *given) == 0:
            raise ImproperBelief(_not_finite(0))
        self._tally[0] += 1.0
        value = record.flat[record.size - 1]
        self._tally[1] += value if value == value else self._evidence()

    def learning(self) -> Learning:
        """What a kernel needs to have `learn_pass` learn a row for this learner, and to count it."""
        return Learning(self.belief, self._kernels, self._params, self.constant, self._one_record, self._tally)

    def predict_entries(self, columns: NDArray[np.int32], values: Array) -> Prediction:
        """What is known of the target of one row, by its columns and values; it is not checked."""
        return self.predict_unchecked(SparseRows(np.array([0, columns.size]), columns, values, self.n_columns))

    def retell_some(self, places: NDArray[Any], scale: Vector, shift: Vector) -> None:
        """Go on with these features told otherwise: see `bayou.contracts.Posterior.retell`, of these weights alone."""
        for belief in self.beliefs():
            some = self.posterior.prior(len(places))
            for array, own in zip(some, belief, strict=True):
                array[...] = own[places]
            self.posterior.retell(some, scale, shift)
            for array, own in zip(some, belief, strict=True):
                own[places] = array

    def _learn_rows(
        self, rows: SparseRows, large: bool, targets: Vector, counts: Vector, single: bool = False
    ) -> Prediction:
        before = [array.copy() for array in self.belief] if large else self.belief
        record = self._record(len(rows))
        done = self._run(self.belief, rows, targets, counts, record)
        if done < len(rows):
            for array, saved in zip(self.belief, before, strict=True):
                array[...] = saved
            raise ImproperBelief(_not_finite(done))
        return self._count(record, targets, single)

    def _as_kernels_take(self, rows: SparseRows) -> SparseRows | None:
        """The same rows, if they begin and end among their entries, in arrays of the kernels' types or nearly so."""
        if rows.n_columns != self.n_columns or rows.starts.ndim != 1 or rows.starts.dtype.kind not in "iu":
            return None
        columns, values = rows.columns, rows.values
        if (
            columns.dtype != np.int32
            or columns.ndim != 1
            or not (columns.flags.c_contiguous and columns.flags.writeable)
        ):
            return None
        if values.size and (
            values.dtype != self._dtype or values.shape != columns.shape or not values.flags.c_contiguous
        ):
            return None
        starts = np.require(rows.starts, np.int64, ["C", "W"])
        plain = np.require(values, self._dtype, ["C", "W"])
        if starts.size == 0 or decrease(starts, columns.size) >= 0:
            return None
        return SparseRows(starts, columns, plain, rows.n_columns)

    def _run(
        self, belief: Any, rows: SparseRows, targets: Vector, counts: Vector, record: Matrix, careful: int = 0
    ) -> int:
        entries = rows.starts, rows.columns, rows.values, self.constant
        done: int = self._learn(belief, self._kernels, self._params, *entries, targets, counts, record, careful)
        return done

    def _learn_shards(self, rows: SparseRows, targets: Vector, counts: Vector, threads: int) -> Prediction:
        ends = np.linspace(0, len(rows), threads + 1).astype(int)
        parts = [slice(*pair) for pair in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]
        record = self._record(len(rows))
        shards = [type(self.belief)(*(array.copy() for array in self.belief)) for _ in parts]

        def learn(shard: Any, part: slice) -> int:
            own = self._record(part.stop - part.start)
            done = self._run(shard, rows[part], targets[part], counts[part], own)
            record[..., part, :] = own
            return int(part.start) + done

        with ThreadPoolExecutor(threads) as pool:
            for done, part in zip(pool.map(learn, shards, parts), parts, strict=True):
                if done < part.stop:
                    raise ImproperBelief(_not_finite(done))
        self._merge_onto(shards)
        return self._count(record, targets)

    def _merge_onto(self, shards: Sequence[Any]) -> None:
        kind = type(self.belief)
        for c, belief in enumerate(self.beliefs()):
            of_latent = [kind(*(array[c] for array in shard)) for shard in shards] if self._vector else shards
            self.posterior.merge_onto(belief, of_latent)

    def to_state(self) -> State:
        """All that this learner is, as data."""
        state = super().to_state()
        state.config["constant"] = self.constant
        return state

    @classmethod
    def _like(cls, config: dict[str, Any]) -> Self:
        parts = config["likelihood"], config["posterior"], config["rule"], config["n_features"]
        return cls(*parts, constant=float(config["constant"]))

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"constant": self.constant}

    def __repr__(self) -> str:
        constant = f", constant={self.constant}" if self.constant else ""
        return super().__repr__().replace("Learner(", "SparseLearner(", 1).removesuffix(")") + f"{constant})"


def _one_row(features: Any, n_columns: int) -> Any:
    """A row of its own, of a dict of columns."""
    if not isinstance(features, Mapping):
        return features
    try:
        columns = np.fromiter((operator.index(column) for column in features), np.int64, len(features))
    except TypeError:
        raise InvalidFeatures(f"columns must be whole numbers; got {list(features)[:5]}.") from None
    return SparseRows(np.array([0, len(columns)]), columns, np.fromiter(features.values(), float), n_columns)


def _refuse(missing: Mask | None) -> None:
    if missing is not None:
        raise InvalidFeatures("sparse rows have no missing entries: an entry that is not told is zero.")


def _not_finite(row: int) -> str:
    return (
        f"row {row} has a latent that is not finite: its features are too large for what is believed of the weights. "
        "No row was learnt."
    )
