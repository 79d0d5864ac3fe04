"""What estimators without targets share: rows and dicts in which nothing is missing, told in one common scale.

Rows are centred and divided by one number for all columns. That changes no direction and no ratio of distances, so
whatever is learnt is the same in any unit that all columns share; it keeps squares within the range of numbers.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from bayou.contracts import Matrix, Vector
from bayou.encoders.standardizer import ROUNDING, check_magnitude
from bayou.errors import InvalidFeatures, InvalidSpec, ModelFileError
from bayou.estimators.dicts import number_of
from bayou.estimators.online import _name

FARTHEST = 1e100  # in units of the spread of the first rows: squares of this, summed, are still numbers


class Scale(NamedTuple):
    """z = (x - centre) / spread."""

    centre: Vector
    spread: float

    def into(self, rows: Matrix, first: int = 0) -> Matrix:
        """Rows in these units; the first of them is called so in messages."""
        return scaled(rows, self.centre, self.spread, first)


def scaled(rows: Matrix, centre: Vector, spread: float | Vector, first: int = 0) -> Matrix:
    """Rows from a centre on, in units of a spread, or of one per column; missing values stay so."""
    with np.errstate(over="ignore"):
        told: Matrix = (rows - centre) / spread
    if np.any(np.abs(told) > FARTHEST):
        row, column = np.argwhere(np.abs(told) > FARTHEST)[0]
        raise InvalidFeatures(
            f"features must lie within {FARTHEST:g} times the spread of the first rows, "
            f"{np.broadcast_to(spread, rows.shape[1])[column]:g}; "
            f"got {rows[row, column]} in row {first + row}, column {column}."
        )
    return told


def scale_of(rows: Matrix) -> Scale:
    """The mean of each column, and the root of their mean variance; 1 if nothing varies beyond rounding."""
    centre = rows.mean(axis=0)
    apart = rows - centre
    widest = float(np.abs(apart).max())
    if not widest > ROUNDING * float(np.abs(centre).max()):
        return Scale(centre, 1.0)
    return Scale(centre, widest * math.sqrt(float(np.mean(np.square(apart / widest)))))


class CompleteRows(BaseEstimator):
    """An estimator of rows without targets, or of dicts that always have the same names."""

    _names: list[Hashable]
    _width: int

    # --- what comes in

    def _rows(self, X: ArrayLike, reset: bool, missing: bool = False) -> Matrix:
        """Rows that were checked: a matrix or, after dicts were learnt, a list of dicts; NaN only if it may be."""
        if not reset and self._names:
            if not (isinstance(X, (list, tuple)) and X and all(isinstance(x, Mapping) for x in X)):
                came = "rows" if np.ndim(X) else f"{X!r}"
                raise InvalidFeatures(
                    f"{type(self).__name__} has learnt dicts with named values, and takes a list of such; got {came}."
                )
            return np.concatenate([self._values(x, self._names, missing) for x in X])
        with self._whole_or_not():
            finite = "allow-nan" if missing else True
            checked = validate_data(self, X, reset=reset, dtype=np.float64, order="C", ensure_all_finite=finite)
            check_magnitude(checked)
        return np.require(checked, requirements=["C", "W"])

    def _one_row(self, x: Mapping[Hashable, Any] | ArrayLike) -> tuple[Matrix, list[Hashable]]:
        """A dict or a row, as a matrix of one row, and its names."""
        if not isinstance(x, Mapping):
            return self._rows(np.atleast_2d(np.asarray(x)), reset=not self._begun()), []
        if self._begun() and not self._names:
            raise InvalidFeatures(f"{type(self).__name__} has learnt rows without names; got a dict.")
        names = self._names if self._begun() else list(x)
        return self._values(x, names), names

    def _values(self, x: Mapping[Hashable, Any], names: list[Hashable], missing: bool = False) -> Matrix:
        """The values of a dict, in the order of the names; those that are not there are NaN, if that may be."""
        if not names or not (x.keys() <= set(names) if missing else x.keys() == set(names)):
            raise InvalidFeatures(f"a dict must have the names that came first, {names}; got {list(x)}.")
        row = np.array([[math.nan if x.get(name) is None else number_of(name, x[name]) for name in names]])
        if not missing and not np.isfinite(row).all():
            absent = names[int(np.argmin(np.isfinite(row[0])))]
            raise InvalidFeatures(f"feature {absent!r} must be there: {type(self).__name__} takes no missing values.")
        return row

    @contextmanager
    def _whole_or_not(self) -> Iterator[None]:
        """What is done within is done as a whole: after an error every attribute is the one that it was."""
        before = dict(self.__dict__)
        try:
            yield
        except Exception:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _check_whole(self, name: str, least: int) -> int:
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise InvalidSpec(f"`{name}` must be a whole number, at least {least}; got {value!r}.")
        return int(value)

    # --- whether anything was learnt

    def _begun(self) -> bool:
        return hasattr(self, "_width")

    def __sklearn_is_fitted__(self) -> bool:
        return self._begun()

    def _check_begun(self) -> None:
        from sklearn.exceptions import NotFittedError  # noqa: PLC0415  # only needed to say what is wrong

        if not self._begun():
            raise NotFittedError(
                f"This {type(self).__name__} has learnt nothing yet; call `fit`, `partial_fit` or `learn_one`."
            )

    # --- as data

    def _inputs_as_data(self) -> dict[str, Any]:
        return {
            "names": self._names,
            "width": self._width,
            "n_features_in": getattr(self, "n_features_in_", None),
            "feature_names": [str(name) for name in getattr(self, "feature_names_in_", [])],
        }

    def _inputs_from_data(self, config: dict[str, Any]) -> None:
        self._names, self._width = [_name(name) for name in config["names"]], int(config["width"])
        if self._names and len(self._names) != self._width:
            raise ModelFileError(f"`names` must have size {self._width} to fit the other parts; got {self._names}.")
        if config["n_features_in"] is not None:
            self.n_features_in_ = config["n_features_in"]
        if config["feature_names"]:
            self.feature_names_in_ = np.asarray(config["feature_names"], dtype=object)

    @staticmethod
    def _array(arrays: dict[str, Any], name: str, shape: tuple[int, ...]) -> Any:
        """A float array of a model file that has this shape; it is the model's own from now on."""
        if arrays[name].shape != shape or arrays[name].dtype != np.float64:
            came = f"{arrays[name].shape} of {arrays[name].dtype}"
            raise ModelFileError(f"`{name}` must have shape {shape} of float64 to fit the other parts; got {came}.")
        if not np.isfinite(arrays[name]).all():
            raise ModelFileError(f"`{name}` must be finite; got {arrays[name][~np.isfinite(arrays[name])][0]}.")
        return np.array(arrays[name])
