"""Exactly two classes: labels, their signs, and probabilities that know one error rate."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from bayou.contracts import Matrix, Vector
from bayou.errors import InvalidTarget

LARGEST_DOUBT = 0.5 - 1e-9  # the class that is predicted is never the less probable one


def checked_labels(y: ArrayLike, n: int, who: str) -> NDArray[Any]:
    """One label per row."""
    if y is None:
        raise InvalidTarget(f"{who} requires y to be passed, but the target y is None.")
    labels: NDArray[Any] = column_or_1d(y, warn=True)
    assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    if len(labels) != n:
        raise InvalidTarget(f"`y` must have one label per row, {n}; got {len(labels)}.")
    return labels


def two_classes(labels: Any, who: str) -> NDArray[Any]:
    """The two that there are, sorted."""
    found: NDArray[Any] = np.unique(np.asarray(labels))
    if len(found) != 2:
        raise InvalidTarget(
            f"Only binary classification is supported: {who} needs exactly two classes; got "
            f"{len(found)} class{'es' * (len(found) != 1)}, {found[:5].tolist()}."
        )
    return found


def signs_of(labels: NDArray[Any], classes: NDArray[Any]) -> Vector:
    """-1 for the first class and +1 for the second."""
    codes = {label: code for code, label in enumerate(classes.tolist())}
    values, inverse = np.unique(labels, return_inverse=True)
    for value in values.tolist():
        if value not in codes:
            raise InvalidTarget(f"`y` must hold labels of `classes`, {classes.tolist()}; got {value!r}.")
    signs: Vector = np.array([2.0 * codes[value] - 1.0 for value in values.tolist()])[inverse]
    return signs


def smoothed_error_rate(wrong: Any, worth: Any) -> Any:
    """A share of mistakes among so many examples, with one mistake and one right answer more."""
    return (worth * wrong + 1.0) / (worth + 2.0)


def probabilities(values: Vector, doubt: Any) -> Matrix:
    """Of the two classes, where each answer, by the sign of its value, is wrong with the probability of the doubt."""
    doubt = np.minimum(doubt, LARGEST_DOUBT)
    second = np.where(values > 0.0, 1.0 - doubt, doubt)
    return np.column_stack([1.0 - second, second])
