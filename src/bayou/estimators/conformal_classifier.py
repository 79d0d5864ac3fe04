"""Classification by sets that hold the true class as often as they promise, even where the model is wrong."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin

from bayou.contracts import Mask, Matrix, Vector
from bayou.errors import InvalidTarget
from bayou.estimators.classifier import OnlineClassifier
from bayou.estimators.conformal import ConformalEstimator
from bayou.estimators.conformal_reach import Reach

SMALLEST = 2.0**-52  # probability that is left, beyond which a set holds every class
HIGHEST = -math.log(SMALLEST)


class ConformalClassifier(ClassifierMixin, ConformalEstimator):
    """An online classifier with sets of classes that hold the true one as often as they promise, or more often.

    ``estimator`` is any of bayou's online classifiers, `OnlineClassifier()` if none is given. A set has the most
    probable class, and the next ones until those left out have little probability; how little is adapted, row by row:
    each row is predicted, its set is judged by the label, then the sets adapt and the model learns. In the long run the
    share of sets that hold the true class is at least ``coverage``, whatever the stream does, among classes that were
    known. It is more where the most probable class alone is right more often, for a set is never empty.

    >>> import numpy as np
    >>> from bayou import ConformalClassifier
    >>> random = np.random.default_rng(0)
    >>> x = random.normal(size=(3000, 1))
    >>> y = np.digitize(x[:, 0] + random.normal(size=3000), [-1.0, 1.0])
    >>> model = ConformalClassifier(coverage=0.9).fit(x, y)
    >>> bool(abs(model.coverage_ - 0.9) < 0.02)
    True
    >>> model.predict_set([[-3.0], [-1.0]])
    array([[ True, False, False],
           [ True,  True, False]])
    """

    def _default(self) -> OnlineClassifier:
        return OnlineClassifier()

    def _first_reach(self, coverage: float) -> Reach:
        # The probability that is left from the true class on is nearly uniform where a model is right; its log is not.
        return Reach(coverage, -math.log1p(-coverage), 1.0 - coverage, (0.0, HIGHEST))

    # --- learning

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Forget everything and learn the rows in order, in one pass."""
        if y is None:
            raise InvalidTarget(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        self._learn_rows(X, y, np.unique(np.asarray(y)), sample_weight, reset=True)
        return self

    def learn_many(
        self, X: Any, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Matrix:
        """Learn more rows; returns the probabilities given to each class before each target was used."""
        return self._learn_rows(X, y, classes, sample_weight, reset=False)[0]

    def learn_sets(
        self, X: Any, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Mask:
        """Learn more rows; returns which classes were in the set of each before its target was used.

        Columns are those of ``classes_`` afterwards; a class is in no set before it was known.
        """
        given, known, before = self._learn_rows(X, y, classes, sample_weight, reset=False)
        sets: Mask = known & (scores(given) <= before[:, None])
        return sets

    def _learn_rows(
        self, X: Any, y: ArrayLike, classes: ArrayLike | None, sample_weight: ArrayLike | None, reset: bool
    ) -> tuple[Matrix, Mask, Vector]:
        """Probabilities of the classes, which of them were known, and the reach: of each row, before it was learnt."""
        model, reach = self._model(reset)
        named = list(getattr(model, "classes_", [])) + ([] if classes is None else list(np.asarray(classes).flat))
        options = {"classes": classes, "sample_weight": sample_weight}
        given = model.learn_many(X, y, **{name: value for name, value in options.items() if value is not None})
        labels = np.asarray(y).reshape(-1)
        codes = np.searchsorted(model.classes_, labels)
        known = _known_before(codes, np.isin(model.classes_, named))
        rows = np.arange(len(labels))
        needed = np.where(known[rows, codes], scores(given)[rows, codes], math.inf)
        before = reach.judge(needed, self._judged(reset, len(labels), sample_weight))
        self._keep(model, reach)
        return given, known, before

    def learn_one(self, x: Mapping[Hashable, Any], y: Any) -> None:
        """Learn from a dict of named values, any of which may be new, absent or None; the class may be new too."""
        model, reach = self._model(reset=False)
        given = model.predict_proba_one(x)
        model.learn_one(x, y)
        if given:
            found = dict(zip(given, scores(np.array([list(given.values())]))[0].tolist(), strict=True))
            reach.judge(np.array([found.get(y, math.inf)]), np.ones(1, dtype=np.bool_))
        self._keep(model, reach)

    # --- predicting

    def predict_set(self, X: Any) -> Mask:
        """Which classes are in the set of each row: a column per class, in the order of ``classes_``."""
        inside: Mask = scores(self.predict_proba(X)) <= self._reach.now
        return inside

    def predict_set_one(self, x: Mapping[Hashable, Any]) -> set[Any]:
        """The set of a dict of named values; empty before any class was seen."""
        given = self.predict_proba_one(x)
        if not given:
            return set()
        needed = scores(np.array([list(given.values())]))[0]
        return {label for label, score in zip(given, needed.tolist(), strict=True) if score <= self._reach.now}

    def predict_proba(self, X: Any) -> Matrix:
        """Probability that the model inside gives to each class, in the order of ``classes_``."""
        probabilities: Matrix = self._known().predict_proba(X)
        return probabilities

    def predict_proba_one(self, x: Mapping[Hashable, Any]) -> dict[Any, float]:
        """The same for a dict of named values; empty before anything was learnt."""
        given: dict[Any, float] = self.estimator_.predict_proba_one(x) if self.__sklearn_is_fitted__() else {}
        return given

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes known so far, sorted."""
        classes: NDArray[Any] = self.estimator_.classes_
        return classes

    @property
    def left_out_(self) -> float:
        """Probability, as the model inside gives it, that classes outside of a set may have at most."""
        self._known()
        return math.exp(-self._reach.now)


def scores(probabilities: Matrix) -> Matrix:
    """The least reach that has each class in its set: minus the log of the probability of it and all less probable.

    Of the most probable class it is 0. Classes of the same probability are in or out together.
    """
    order = np.argsort(probabilities, axis=1)
    ascending = np.take_along_axis(probabilities, order, axis=1)
    classes = probabilities.shape[1]
    last = np.ones(probabilities.shape, dtype=np.bool_)  # of those that are equal
    last[:, :-1] = ascending[:, 1:] > ascending[:, :-1]
    places = np.where(last, np.arange(classes), classes)
    nearest = np.minimum.accumulate(places[:, ::-1], axis=1)[:, ::-1]
    left = np.take_along_axis(np.cumsum(ascending, axis=1), nearest, axis=1)
    needed = np.maximum(-np.log(np.clip(left, SMALLEST, 1.0)), 0.0)
    needed[nearest == classes - 1] = 0.0
    unsorted = np.empty_like(needed)
    np.put_along_axis(unsorted, order, needed, axis=1)
    return unsorted


def _known_before(codes: NDArray[np.intp], named: Mask) -> Mask:
    """Which classes were known before each row: those named, and those that came in a row before."""
    first = np.where(named, -1, len(codes))
    for code in np.unique(codes[~named[codes]]):
        first[code] = int(np.argmax(codes == code))
    known: Mask = first < np.arange(len(codes))[:, None]
    return known
