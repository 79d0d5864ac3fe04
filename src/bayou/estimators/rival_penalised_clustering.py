"""Clusters whose number need not be known, by rival penalised competitive learning."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin

from bayou.contracts import Mask, Matrix, State
from bayou.errors import InvalidSpec, ModelFileError
from bayou.estimators.complete_rows import CompleteRows, Scale, scale_of
from bayou.mixtures.rival_penalised import Units, compete, square_distances, train, worth_keeping

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AS_IT_IS = Scale(np.zeros(1), 1.0)


class RivalPenalisedClustering(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, CompleteRows):
    """Clusters, at most ``n_clusters``, each by its centre: units compete for rows, and rivals are driven away.

    The winner of a row moves towards it by ``rate`` of the way; the next best moves away by ``gamma`` times that. So a
    unit that shares a cluster with another leaves the data, and those that win more than 2 % of the rows are the
    clusters (Xu, Krzyzak and Oja 1993).

    How many are found hangs on ``gamma``. Where it is too small, units stay that should go; where it is too large,
    clusters are lost. What lies between is less than a factor of two wide, unless clusters are very far apart, and
    moves with the number of inputs and of clusters, and with how often rows are shown: with 16,000 presentations in all
    (``epochs=None``) it is about 0.2 to 0.3 for four clusters in two dimensions, and 0.25 to 0.35 in five; more
    presentations lower it. The default finds the right number of clusters five deviations apart in 60 to 95 % of cases
    if they are four, in 25 % if they are two. Treat ``n_clusters_`` as a proposal, and look at several values of
    ``gamma``; `HarmonyMixture` needs none.

    `fit` shows all rows ``epochs`` times, in random order, at a rate that falls linearly to zero. `partial_fit` and
    `learn_one` see each row once, and do not know how many will come: there the rate stays as it is, so that centres
    follow clusters that move, and wins are forgotten over n_clusters / rate rows, as fast as the centres forget, so
    that a unit counts by what it wins of late. The first n_clusters rows that differ are the units. Several thousand
    rows pass before the units that are too many have left; there a ``gamma`` of 0.3 to 0.5 does best.

    Rivals push also the clusters that stay: centres lie outside of the means, away from their neighbours, by a
    deviation or more. Labels hardly suffer; a few steps of k-means from ``cluster_centers_`` put the centres right.

    Distances are taken as the inputs come, all in one unit; scale columns that differ in kind. Labels count the
    clusters that there are now: as a stream goes on, they can change.

    >>> import numpy as np
    >>> from bayou import RivalPenalisedClustering
    >>> random = np.random.default_rng(0)
    >>> corners = [[0, 0], [9, 0], [0, 9], [9, 9]]
    >>> X = np.concatenate([random.normal(centre, 1.0, size=(100, 2)) for centre in corners])
    >>> model = RivalPenalisedClustering().fit(X)
    >>> model.n_clusters_
    4
    >>> len(set(model.predict(corners)))
    4
    """

    def __init__(
        self,
        n_clusters: int = 10,
        gamma: float = 0.25,
        rate: float = 0.05,
        epochs: int | None = None,
        seed: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.gamma = gamma
        self.rate = rate
        self.epochs = epochs
        self.seed = seed

    # --- learning

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Forget everything and learn the rows; ``y`` is not used."""
        self._check_params()
        rows = self._rows(X, reset=True)
        scale = scale_of(rows)
        scaled = scale.into(rows)
        units = train(scaled, self.n_clusters, self.gamma, self.rate, self.epochs, np.random.default_rng(self.seed))
        # What a stream would remember; a unit that was driven out counts as one win, or it would win at once.
        units.counts[:] = np.maximum(units.counts * (self._memory / units.counts.sum()), 1.0)
        self._names, self._width, self._n_rows = [], rows.shape[1], len(rows)
        self._units, self._scale, self._gathering = units, scale, False
        self.labels_ = self._label(rows)
        return self

    def partial_fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learn more rows, each once and in order; ``labels_`` are theirs. ``y`` is not used."""
        self._check_params()
        rows = self._rows(X, reset=not self._begun())
        self._learn_rows(rows, [])
        self.labels_ = self._label(rows)
        return self

    def learn_one(self, x: Mapping[Hashable, Any] | ArrayLike) -> None:
        """Learn from a dict of named values, always the same names, or from one row."""
        self._check_params()
        row, names = self._one_row(x)
        self._learn_rows(row, names)

    def _learn_rows(self, rows: Matrix, names: list[Hashable]) -> None:
        begun, start = self._begun(), 0
        units = self._units if begun else Units(np.zeros((0, rows.shape[1])), np.zeros(0))
        scale, gathering = (self._scale, self._gathering) if begun else (AS_IT_IS, True)
        if gathering:
            units, start = self._gathered(units, rows)
            if units.counts.size == self.n_clusters:
                scale, gathering = scale_of(units.centres), False
                units = Units(scale.into(units.centres), units.counts)
        scaled = scale.into(rows[start:], start)
        if not begun:
            self._names, self._width, self._n_rows = names, rows.shape[1], 0
        self._units, self._scale, self._gathering = units, scale, gathering
        rates = float(self.rate), float(self.rate)
        compete(units, scaled, np.arange(len(scaled)), *rates, float(self.gamma), self._memory)
        self._n_rows += len(rows)

    def _gathered(self, units: Units, rows: Matrix) -> tuple[Units, int]:
        """Make rows that differ units, as they are, until there are enough; also, how many rows that took."""
        known = {centre.tobytes(): unit for unit, centre in enumerate(units.centres)}
        centres, counts, taken = list(units.centres), list(units.counts), 0
        while taken < len(rows) and len(known) < self.n_clusters:
            row = rows[taken] + 0.0  # of two zeros one
            unit = known.setdefault(row.tobytes(), len(known))
            if unit == len(centres):
                centres.append(row)
                counts.append(0.0)
            counts[unit] += 1.0
            taken += 1
        return Units(np.array(centres), np.array(counts)), taken

    @property
    def _memory(self) -> float:
        return max(self.n_clusters / self.rate, 2.0)

    def _check_params(self) -> None:
        self._check_whole("n_clusters", 1)
        if self.epochs is not None:
            self._check_whole("epochs", 1)
        self._check_whole("seed", 0)
        if not 0.0 <= self.gamma < 1.0:
            raise InvalidSpec(f"`gamma` must be at least 0 and below 1; got {self.gamma!r}.")
        if not 0.0 < self.rate <= 1.0:
            raise InvalidSpec(f"`rate` must be above 0 and at most 1; got {self.rate!r}.")

    # --- clusters

    @property
    def _kept(self) -> Mask:
        self._check_begun()
        return worth_keeping(self._units.counts)

    @property
    def n_clusters_(self) -> int:
        """How many clusters there are: units that win more than 2 % of the rows."""
        return int(self._kept.sum())

    @property
    def cluster_centers_(self) -> Matrix:
        """Their centres, a row each."""
        centres: Matrix = self._units.centres[self._kept] * self._scale.spread + self._scale.centre
        return centres

    @property
    def n_examples_(self) -> int:
        """How many rows were learnt."""
        self._check_begun()
        return self._n_rows

    @property
    def _n_features_out(self) -> int:
        return self.n_clusters_

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """The cluster whose centre is nearest, for each row."""
        self._check_begun()
        return self._label(self._rows(X, reset=False))

    def predict_one(self, x: Mapping[Hashable, Any] | ArrayLike) -> int:
        """The cluster of a dict or of one row; 0 before anything was learnt."""
        return int(self._label(self._one_row(x)[0])[0]) if self._begun() else 0

    def transform(self, X: ArrayLike) -> Matrix:
        """The distance of each row from each centre."""
        self._check_begun()
        return self._distances(self._rows(X, reset=False))

    def _distances(self, rows: Matrix) -> Matrix:
        centres, scale = self._units.centres[self._kept], self._scale
        if self._gathering:  # the units are rows as they are
            scale = scale_of(centres)
            centres = scale.into(centres)
        distances: Matrix = np.sqrt(square_distances(centres, scale.into(rows))) * scale.spread
        return distances

    def _label(self, rows: Matrix) -> NDArray[np.int64]:
        labels: NDArray[np.int64] = np.argmin(self._distances(rows), axis=1).astype(np.int64)
        return labels

    def plot(self, X: ArrayLike | None = None, columns: tuple[Hashable, Hashable] = (0, 1)) -> Figure:
        """The centres in two columns, by number or name, with rows in the colours of their clusters if they are given.

        Of one column a histogram. Needs ``bayou[plot]``.
        """
        from bayou.estimators.mixture_plots import Drawn, plot_clusters  # noqa: PLC0415  # needs the extra

        self._check_begun()
        rows = None if X is None else self._rows(X, reset=False)
        labels = None if rows is None else self._label(rows)
        return plot_clusters(self, Drawn(self.cluster_centers_), rows, labels, columns)

    # --- as data

    def to_state(self) -> State:
        """All that this estimator is, as data."""
        config: dict[str, Any] = {"params": self.get_params(deep=False), "begun": self._begun()}
        if not self._begun():
            return State(config, {})
        config |= self._inputs_as_data() | {"n_rows": self._n_rows, "gathering": self._gathering}
        config |= {"spread": self._scale.spread, "n_units": self._units.counts.size}
        arrays: dict[str, Any] = {f"units.{name}": array for name, array in self._units._asdict().items()}
        arrays["centre"] = np.broadcast_to(self._scale.centre, (self._width,)).copy()
        labels = getattr(self, "labels_", None)
        return State(config, arrays if labels is None else arrays | {"labels": labels})

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The estimator that this data describes; it continues to the last bit."""
        config, arrays = state
        model = cls(**config["params"])
        if config["begun"]:
            model._check_params()
            model._inputs_from_data(config)
            n_units, width = int(config["n_units"]), model._width
            centres = cls._array(arrays, "units.centres", (n_units, width))
            counts = cls._array(arrays, "units.counts", (n_units,))
            spread, gathering = float(config["spread"]), bool(config["gathering"])
            if not (0 < n_units <= model.n_clusters and counts.min() >= 0.0 < counts.sum()):
                raise ModelFileError(f"there must be 1 to {model.n_clusters} units with counts; got {n_units}.")
            if not 0.0 < spread < math.inf or (gathering and n_units == model.n_clusters):
                raise ModelFileError(f"`spread` must be positive, and rows gathered few; got {spread} and {n_units}.")
            model._units, model._gathering = Units(centres, counts), gathering
            model._scale = Scale(cls._array(arrays, "centre", (width,)), spread)
            model._n_rows = int(config["n_rows"])
            if "labels" in arrays:
                model.labels_ = np.array(arrays["labels"], dtype=np.int64)
        return model

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if self._begun():
            self._units = Units(*(np.require(array, requirements=["C", "W"]) for array in self._units))
