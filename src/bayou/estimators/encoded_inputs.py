"""From raw rows or dicts to features.

Features are an intercept, then one standardised column per input. A missing value (NaN, None, an absent key) is treated
as unknown: the column's distribution so far stands in for it, so its expectation enters the prediction, and the
prediction is less sure by what the value could have changed. Where an encoder hashes the inputs, or rows are sparse and
wide, they become sparse rows instead: see `bayou.estimators.sparse_inputs`.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, validate_data

from bayou.contracts import Mask, Matrix, SparsePosterior, SparseRows, Vector
from bayou.encoders import Hashing, Standardizer
from bayou.encoders.standardizer import Frame, check_magnitude, count_and_scale
from bayou.errors import InvalidFeatures, InvalidSpec
from bayou.estimators.choice import Choice
from bayou.estimators.dicts import NOT_PLAIN, in_order, number_of, values_of
from bayou.estimators.sparse_inputs import HashedInputs, SparseInputs, Table
from bayou.learner import Learner
from bayou.numerics.jit import entry_point
from bayou.numerics.sparse_rows import checked as checked_rows
from bayou.numerics.sparse_rows import is_sparse, sparse_rows

NO_WEIGHTS: Vector = np.zeros(0)
COLUMNS = re.compile(r"[\d,]+ columns")  # as a choice counts them
NONE_MISSING: Mask = np.zeros((0, 0), dtype=np.bool_)


class EncodedInputs(BaseEstimator):
    """The inputs of an estimator, as features of a learner."""

    # The value of the intercept's feature: the prior deviation of the intercept, in units of that of the weights.
    _intercept = 1.0
    _takes_sparse = True
    _inputs: SparseInputs | None = None  # how inputs become sparse rows; None if rows are told in full
    _given_sparse = False
    _entries = 0.0  # that a row has, where it has few: of the first rows given
    _learner_: Learner
    # Learns what dicts it can, once laid out for the names and labels known; see `bayou.estimators.dicts`.
    _short_way: Callable[[Any, Hashable], bool] | None = None
    fit_intercept: bool
    standardize: bool
    n_features_in_: int
    encoder: Hashing | None = None
    _column_names: list[str] | None = None

    def _choose(self, n_columns: int) -> Choice:
        """The posterior for rows of so many columns, and why."""
        raise InvalidSpec(f"{type(self).__name__} has no posterior of its own")

    def _begun(self) -> bool:
        return hasattr(self, "_learner_")

    def _begin(self, n_columns: int, names: list[Hashable] | None = None) -> None:
        """Start with so many inputs; names, if they come as dicts."""
        self._first = 1 if self.fit_intercept else 0
        self._choice = self._choose(n_columns)
        # Without an intercept nothing in the model could carry a centre.
        self._standardizer = Standardizer(centred=bool(self.fit_intercept))
        self._inputs = self._sparse_inputs(n_columns)
        self._intercept = type(self)._intercept / math.sqrt(self._choice.narrower)
        self._frame = self._frame_of(0 if self._inputs else n_columns)
        self._seen, self._next = 0.0, 1.0
        known = names if names and self._inputs is None else []  # those of sparse rows are hashed
        self._names: dict[Hashable, int] = {name: column for column, name in enumerate(known)}
        self._lay_out()

    def _sparse_inputs(self, n_columns: int) -> SparseInputs | None:
        if self.encoder is not None:
            dtype = getattr(self._choice.posterior, "dtype", "float32")
            return HashedInputs(self.encoder, bool(self.standardize), bool(self.fit_intercept), dtype)
        return SparseInputs(n_columns) if isinstance(self._choice.posterior, SparsePosterior) else None

    @property
    def _standardizes(self) -> bool:
        """Whether columns are standardised: not those of sparse rows, where zero means that nothing is there."""
        return bool(self.standardize) and not self._given_sparse

    def _hashes(self) -> bool:
        """Whether an encoder makes sparse rows of the inputs."""
        if self.encoder is not None and not isinstance(self.encoder, Hashing):
            raise InvalidSpec(f"`encoder` must be Hashing(...) or None; got {self.encoder!r}.")
        return self.encoder is not None and self._takes_sparse

    def _frame_of(self, n_columns: int) -> Frame:
        frame = self._standardizer.begin(n_columns)
        if not self._standardizes:
            frame.deviation[:] = 1.0
        return frame

    def _lay_out(self) -> None:
        """Buffers for one example, as wide as the inputs known so far."""
        n_columns = self._frame.mean.size
        self._order = tuple(self._names)
        self._values, self._packer = values_of(self._order), struct.Struct(f"{len(self._order)}d")
        self._raw = np.full((1, n_columns), np.nan)
        self._features = np.full((1, self._first + n_columns), self._intercept)
        self._line = self._features[0]
        self._missing = np.zeros((1, self._first + n_columns), dtype=np.bool_)
        self._counts, self._centred = int(self._standardizes), int(self._standardizer.centred)
        rows = self._frame, self._raw, NO_WEIGHTS
        place = self._centred, self._first, self._features, self._missing
        self._encoding = (*rows, 0, *place), (*rows, self._counts, *place)  # to predict, to learn
        self._encode_row = entry_point(count_and_scale, *self._encoding[0])
        self._short_way = None

    def _rows(self, X: Any, reset: bool) -> Any:
        """The rows of a matrix, a sparse matrix or, where there is an encoder, a table."""
        if self._hashes():
            table = Table(X)
            if reset:
                self._entries = float(table.width)
            return table
        if reset:
            self._given_sparse = self._takes_sparse and is_sparse(X)
        if not reset and self._names and not hasattr(X, "columns"):
            raise InvalidFeatures(f"{type(self).__name__} has learnt dicts with named values; got rows without names.")
        if self._takes_sparse and is_sparse(X):
            return self._sparse_rows(X, reset)
        if not reset and self._are_plain(X):
            check_magnitude(X)
            return X
        checked = validate_data(self, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan", order="C")
        check_magnitude(checked)
        return np.require(checked, requirements=["C", "W"])

    def _are_plain(self, X: Any) -> bool:
        """Whether rows are what they are to become, which spares one row most of the time that it takes."""
        if type(X) is not np.ndarray or X.dtype != np.float64 or X.ndim != 2 or not X.flags.carray:
            return False
        return X.shape[1] == self.n_features_in_ and len(X) > 0 and not hasattr(self, "feature_names_in_")

    def _sparse_rows(self, X: Any, reset: bool) -> SparseRows:
        if isinstance(X, SparseRows) or not hasattr(X, "tocsr"):
            rows = sparse_rows(X, None if reset else self.n_features_in_)
            if reset:
                self.n_features_in_ = rows.n_columns
        else:
            kinds = [np.float64, np.float32]
            rows = sparse_rows(validate_data(self, X, reset=reset, accept_sparse="csr", dtype=kinds))
        tidy, _ = checked_rows(rows, self.n_features_in_, rows.values.dtype if rows.values.size else np.float64)
        if reset:
            self._entries = tidy.columns.size / max(len(tidy), 1)
        return tidy

    def _columns_of(self, rows: Any) -> int:
        """How many columns a model of these rows has."""
        return self.encoder.n_columns if isinstance(rows, Table) else int(rows.shape[1])  # type: ignore[union-attr]  # tables are for encoders

    def _encode(self, rows: Matrix, weights: Vector, learn: bool) -> tuple[Matrix, Mask | None]:
        """Features of the rows, and which are missing (None if none are)."""
        features = np.full((len(rows), self._first + rows.shape[1]), self._intercept)
        missing = np.zeros(features.shape, dtype=np.bool_)
        counts = self._counts if learn else 0
        absent = count_and_scale(self._frame, rows, weights, counts, self._centred, self._first, features, missing)
        return features, missing if absent else None

    def _weights(self, sample_weight: ArrayLike | None, rows: Matrix) -> Vector:
        if sample_weight is None:
            return NO_WEIGHTS
        weights = _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
        return np.require(weights, requirements=["C", "W"])

    # --- dicts

    def _pack(self, x: Mapping[Hashable, Any], learn: bool) -> None:
        """The values of a dict into the buffer; inputs never seen are admitted if ``learn``, else left out."""
        if type(x) is dict and len(x) == len(self._order):
            try:
                self._packer.pack_into(self._raw, 0, *self._values(x))  # type: ignore[arg-type]  # an array is a buffer
                return
            except NOT_PLAIN:
                pass
        if learn and not self._names.keys() >= x.keys():
            self._admit_inputs(x)
        self._pack_any(x)

    def _pack_any(self, x: Mapping[Hashable, Any]) -> None:
        row = np.full(self._raw.shape[1], np.nan)
        for name, value in x.items():
            column = self._names.get(name)
            if column is not None and value is not None:
                row[column] = number_of(name, value)
        self._raw[0] = row

    def _admit_inputs(self, x: Mapping[Hashable, Any]) -> None:
        """Make room for inputs that were never seen; all of them are checked before anything changes."""
        fresh = in_order(name for name in x if name not in self._names)
        self._check_dict(x)
        for name in fresh:
            self._names[name] = len(self._names)
        self._widen(len(self._names))

    def _widen(self, n_columns: int) -> None:
        """Make room for more inputs."""
        frame = self._frame_of(n_columns)
        for array, known in zip(frame, self._frame, strict=True):
            array[: known.size] = known
        self._frame = frame
        self._lay_out()
        if self._begun():
            self._learner_.extend(self._features.shape[1])

    def add_columns(self, names: Sequence[str]) -> None:
        """Go on with rows of more columns, of which these are all names; so far the new ones were zero in every row.

        For categories of which a value comes for the first time.
        """
        if not self._begun():  # there may be rows that wait for their targets
            self._column_names = list(names)
            self._pad_waiting(len(names))
            return
        if self._inputs is not None or self._names:
            raise InvalidSpec("columns can be added to dense rows without names of their own; got others.")
        known = self._frame.mean.size
        if len(names) < known:
            raise InvalidSpec(f"`names` must be those of all columns, at least {known}; got {len(names)}.")
        self._column_names = list(names)
        if len(names) > known:
            self._widen(len(names))
            self._choice = self._choice._replace(why=COLUMNS.sub(f"{len(names):,} columns", self._choice.why))
            self._frame.weight[known:] = self._seen
            self.n_features_in_ = len(names)
            self._pad_waiting(len(names))

    def _pad_waiting(self, n_columns: int) -> None:
        """Tell rows that wait for their targets with as many columns as there are now."""

    def _check_dict(self, x: Mapping[Hashable, Any]) -> None:
        """Raise unless every value is a number or None; where there is an encoder, unless it can be encoded."""
        if self._hashes():
            assert self.encoder is not None
            self._entries = float(len(x))
            HashedInputs(self.encoder, True, True, "float64").encoded_one(x, learn=False)
            return
        for name, value in x.items():
            if value is not None:
                number_of(name, value)

    def _encode_one(self, x: Mapping[Hashable, Any], learn: bool) -> Any:
        """Features of a dict into the buffer; returns the mask of missing ones, empty if there are none.

        Where rows are sparse, it returns the dict as a sparse row.
        """
        if self._inputs is not None:
            return self._inputs.encoded_one(x, learn)
        self._pack(x, learn)
        absent = self._encode_row(*self._encoding[learn])
        if absent < 0:
            check_magnitude(self._raw)
        return self._missing if absent else NONE_MISSING

    def _input_names(self) -> list[str]:
        if self._names:
            return [str(name) for name in self._names]
        names = getattr(self, "feature_names_in_", self._column_names)
        return [f"x{j}" for j in range(self._frame.mean.size)] if names is None else [str(name) for name in names]

    def _weight_scale(self) -> Any:
        """What a weight is divided by to be one of the raw input."""
        return 1.0 if self._inputs else np.where(self._frame.deviation > 0.0, self._frame.deviation, 1.0)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        for buffer in (
            "_encode_row",
            "_encoding",
            "_values",
            "_packer",
            "_raw",
            "_features",
            "_line",
            "_missing",
            "_short_way",
        ):
            state.pop(buffer, None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if self._begun():
            self._frame = Frame(*(np.require(array, requirements=["C", "W"]) for array in self._frame))
            self._lay_out()
