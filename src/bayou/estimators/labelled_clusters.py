"""Classes from clusters and a few labels: P(class | x) = sum_l p(l | x) P(class | l).

P(class | l) is the mean of a Dirichlet posterior. Its counts are how much of each labelled row the cluster has; its
prior, worth ``PRIOR_STRENGTH`` rows, is the share of each class among all labels. The rows themselves are kept, so the
counts are always those of the clusters as they are now: labels outlast clusters that merge, split or move.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import column_or_1d

from bayou.contracts import Matrix
from bayou.errors import InvalidTarget, ModelFileError, ShapeMismatch
from bayou.estimators.complete_rows import CompleteRows

MOST_LABELLED = 1000  # rows whose labels are kept, the latest
PRIOR_STRENGTH = 1.0


class Labelled(NamedTuple):
    """Rows, for each of them the number of its class, and the classes in order."""

    rows: Matrix
    codes: NDArray[np.int64]
    classes: list[Any]


def dirichlet_means(chances: Matrix, codes: NDArray[np.int64], n_classes: int) -> Matrix:
    """P(class | cluster), a row per cluster, from the clusters' probabilities of rows and the classes of these."""
    belongs = np.eye(n_classes)[codes]
    counts = chances.T @ belongs + PRIOR_STRENGTH * belongs.mean(axis=0)
    means: Matrix = counts / counts.sum(axis=1, keepdims=True)
    return means


class LabelledClusters(CompleteRows):
    """An estimator of clusters that can be told the labels of some rows."""

    _labelled: Labelled | None
    _class_chances: tuple[object, Matrix] | None  # P(class | cluster), and the clusters of which it was computed

    @abstractmethod
    def _clusters_now(self) -> object:
        """The clusters: another object whenever they have changed."""

    @abstractmethod
    def _chances(self, rows: Matrix) -> Matrix:
        """The probability of each cluster, per row."""

    def label(self, X: ArrayLike, y: ArrayLike | Iterable[Any]) -> None:
        """Tell the labels of some rows, which need not be among those that were learnt, and are not learnt by this.

        Of the rows that were ever labelled the latest 1,000 are kept. Labels may be of any one type that can be told
        apart: strings, whole numbers, ...
        """
        self._check_begun()
        rows = self._rows(X, reset=False)
        self._chances(rows)  # what cannot be told in the units of the clusters is refused here
        labels = _plain(y)
        if len(labels) != len(rows):
            raise ShapeMismatch(f"`y` must have one label per row, {len(rows)}; got {len(labels)}.")
        known = self._labelled
        if known is not None:
            rows = np.concatenate([known.rows, rows])
            labels = [known.classes[code] for code in known.codes] + labels
        _check_types(labels)
        self._labelled, self._class_chances = _sorted(rows[-MOST_LABELLED:], labels[-MOST_LABELLED:]), None

    @property
    def label_classes_(self) -> NDArray[Any]:
        """The classes among the labels that are kept, in order."""
        return _array(self._told_labels().classes)

    def predict_label_proba(self, X: ArrayLike) -> Matrix:
        """The probability of each class of ``label_classes_``, per row."""
        self._check_begun()
        labelled, now = self._told_labels(), self._clusters_now()
        if self._class_chances is None or self._class_chances[0] is not now:
            found = dirichlet_means(self._chances(labelled.rows), labelled.codes, len(labelled.classes))
            self._class_chances = now, found
        return self._chances(self._rows(X, reset=False)) @ self._class_chances[1]

    def predict_label(self, X: ArrayLike) -> NDArray[Any]:
        """The most probable class of each row."""
        chances = self.predict_label_proba(X)
        labels: NDArray[Any] = self.label_classes_[np.argmax(chances, axis=1)]
        return labels

    def _told_labels(self) -> Labelled:
        self._check_begun()
        if self._labelled is None:
            raise NotFittedError(f"This {type(self).__name__} knows no labels yet; call `label` with some rows.")
        return self._labelled

    def _forget_labels(self) -> None:
        self._labelled, self._class_chances = None, None

    # --- as data

    def _labels_as_data(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What a model file has of the labels: config and arrays; nothing of none."""
        if self._labelled is None:
            return {}, {}
        rows, codes, classes = self._labelled
        return {"label_classes": classes}, {"labelled.rows": rows, "labelled.codes": codes}

    def _labels_from_data(self, config: dict[str, Any], arrays: dict[str, Any]) -> None:
        self._forget_labels()
        if "label_classes" not in config:
            return
        codes, classes = arrays["labelled.codes"], config["label_classes"]
        rows = self._array(arrays, "labelled.rows", (codes.size, self._width))
        if not (codes.dtype == np.int64 and codes.ndim == 1 and 0 < codes.size <= MOST_LABELLED):
            raise ModelFileError(f"`labelled.codes` must be 1 to {MOST_LABELLED} numbers; got shape {codes.shape}.")
        if np.unique(codes).tolist() != list(range(len(classes))) or _sorted_values(classes) != classes:
            raise ModelFileError(f"`label_classes` must be those of the labelled rows, in order; got {classes!r}.")
        self._labelled = Labelled(rows, np.array(codes), classes)


def _plain(y: Any) -> list[Any]:
    """Labels as plain Python values, so that 1 and numpy's 1 are one class."""
    if isinstance(y, (str, bytes)) or not isinstance(y, Iterable):
        raise InvalidTarget(f"`y` must be the labels of the rows, one each; got {y!r}.")
    given = list(y) if isinstance(y, (list, tuple)) else column_or_1d(y, warn=True).tolist()
    labels = [label.item() if isinstance(label, np.generic) else label for label in given]
    for row, label in enumerate(labels):
        if not _can_be_known_again(label):
            raise InvalidTarget(
                f"`y` must have a label for each row, a value that can be known again; got {label!r} in row {row}. "
                "Leave out the rows that have no label."
            )
    return labels


def _can_be_known_again(label: Any) -> bool:
    if label is None or (isinstance(label, float) and not math.isfinite(label)):
        return False
    try:
        hash(label)
        return bool(label == label)  # what stands for a missing value is not equal to itself
    except TypeError:
        return False


def _check_types(labels: list[Any]) -> None:
    for label in labels:
        if type(label) is not type(labels[0]):
            raise InvalidTarget(f"labels must be of one type; got {label!r} beside {labels[0]!r}.")


def _sorted(rows: Matrix, labels: list[Any]) -> Labelled:
    classes = _sorted_values(set(labels))
    code_of = {label: code for code, label in enumerate(classes)}
    return Labelled(rows.copy(), np.array([code_of[label] for label in labels], dtype=np.int64), classes)


def _sorted_values(values: Iterable[Any]) -> list[Any]:
    """In their own order, if they have one."""
    distinct = set(values)
    try:
        return sorted(distinct)
    except TypeError:
        return sorted(distinct, key=repr)


def _array(values: list[Any]) -> NDArray[Any]:
    """An array with one value per place, also of values that are sequences."""
    if isinstance(values[0], (bool, int, float, str)):
        return np.array(values)
    return np.fromiter(values, dtype=object, count=len(values))
