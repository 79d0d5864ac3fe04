"""What estimators by harmony share: rows that are learnt as a batch or as a stream, and the mixture that they tell."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Matrix, Vector
from bayou.errors import InvalidSpec, ModelFileError
from bayou.estimators.complete_rows import CompleteRows, scaled
from bayou.mixtures.all_rows import AllRows
from bayou.mixtures.evidence import Prior, Statistics
from bayou.mixtures.gaussians import Gaussians, gaussians_of
from bayou.mixtures.harmony import Mixture, learn_mixture
from bayou.mixtures.points import StreamBelief
from bayou.mixtures.shapes import FULL
from bayou.mixtures.streaming import (
    BESIDE_SUMS,
    StreamOptions,
    Units,
    begin_stream,
    learn_stream,
    resumed,
    retold,
    statistics_of,
    units_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEWEST_FIRST = 100  # rows of a stream that are learnt as a batch; ten per column, if those are more
BETWEEN_LOOKS = 500  # rows of a stream between looks at how many clusters there are: each look costs time
MOST_ORDERS = 1000  # changes of that number that are kept, the latest


class HarmonyRows(CompleteRows):
    """An estimator whose belief is a mixture of rows, in units of the first of them.

    As a batch while the first rows of a stream are few; from then on in one pass and constant memory.
    """

    n_clusters: int
    matching: float
    half_life: float | None
    seed: int

    n_examples_: int
    _location: Vector
    _scale: Vector
    _early: Matrix
    _mixture: Mixture | None  # what was learnt; of a stream it is told when it is asked for
    _prior: Prior  # of a stream
    _belief: StreamBelief | None
    _orders: NDArray[np.int64]
    _provisional: Mixture | None  # of a stream that has just begun

    # --- learning

    def _learn_all(self, rows: Matrix) -> None:
        """All rows at once, after everything was forgotten."""
        self._take_units(rows)
        self._mixture = self._learn_batch(self._told(rows))
        self.n_examples_ = len(rows)
        self._note_order(self._mixture.clusters.share.size)

    def _learn_more(self, rows: Matrix) -> None:
        """Further rows, in order."""
        if self._mixture is not None and self._belief is None:  # learnt by `fit`: a stream may go on from there
            self._belief = begin_stream(self._mixture, np.zeros((0, rows.shape[1])))
            self._prior = self._mixture.prior
        first = 0
        if self._belief is None:
            first = min(self._n_first() - len(self._early), len(rows))
            self._early, self._provisional = np.concatenate([self._early, rows[:first]]), None
            self.n_examples_ += first
            if len(self._early) < self._n_first():
                return
            self._take_units(self._early)
            told = self._told(self._early)
            self._mixture = self._learn_batch(told)
            self._belief, self._prior = begin_stream(self._mixture, told), self._mixture.prior
            self._early = self._early[:0]
            self._note_order(self._belief.n.size)
        if first < len(rows):
            self._learn_stream(rows[first:], first)

    def _learn_stream(self, rows: Matrix, first: int) -> None:
        """As a stream; looks at how many clusters there are come at the same rows, whatever the chunks."""
        assert self._belief is not None
        self._told(rows, first)  # what is too far away is refused before anything is learnt
        belief, prior, start = self._belief, self._prior, 0
        while start < len(rows):
            seen, grown = self.n_examples_, next_growth(self.n_examples_, self._n_first())
            until = min(next_multiple(seen, BETWEEN_LOOKS), grown)
            part = np.ascontiguousarray((rows[start : start + until - seen] - self._location) / self._scale)
            belief = learn_stream(belief, part, self._options(prior))
            self.n_examples_ += len(part)
            start += len(part)
            if self.n_examples_ == grown:
                belief, prior = self._retake_units(belief, prior)
            if self.n_examples_ % BETWEEN_LOOKS == 0:
                self._note_order(belief.n.size)
        self._belief, self._prior, self._mixture = belief, prior, None

    def _retake_units(self, belief: StreamBelief, prior: Prior) -> tuple[StreamBelief, Prior]:
        """Whenever there are half as many rows more: the first of them need not be like all."""
        location, deviation = units_of(belief)
        scale = self._scale_of(deviation)
        belief, prior = retold(belief, prior, Units(location, scale))
        self._location, self._scale = self._location + self._scale * location, self._scale * scale
        return belief, prior

    def _note_order(self, k: int) -> None:
        if not len(self._orders) or self._orders[-1, 1] != k:
            self._orders = np.concatenate([self._orders, [[self.n_examples_, k]]])[-MOST_ORDERS:]

    def _clusters_of(self, statistics: Statistics, prior: Prior) -> Gaussians:
        """What the sums tell."""
        return gaussians_of(statistics, prior)

    def _shape(self) -> int:
        """Of the clusters."""
        return FULL

    def _n_inputs(self) -> int:
        """Of clusters whose first columns are inputs."""
        return 0

    def _nearest(self) -> int:
        """Of how many clusters a row may be; 0: of all."""
        return 0

    def _learn_batch(self, rows: Matrix) -> Mixture:
        return self._mixture_of(rows)

    def _mixture_of(self, rows: Matrix | AllRows) -> Mixture:
        """What rows tell, in their units; they may be far apart."""
        rng = np.random.default_rng(self.seed)
        numbers = self._shape(), self._n_inputs(), self._nearest()
        return learn_mixture(rows, self.n_clusters, float(self.matching), rng, *numbers)

    def _options(self, prior: Prior) -> StreamOptions:
        forgetting = 0.0 if self.half_life is None else 1.0 - 0.5 ** (1.0 / self.half_life)
        return StreamOptions(prior, float(self.matching), forgetting, self.n_clusters, self._nearest())

    def _n_first(self) -> int:
        return max(FEWEST_FIRST, 10 * self._location.size)

    def _forget_all(self, n_columns: int) -> None:
        self._names, self._width, self.n_examples_ = [], n_columns, 0
        self._location, self._scale = np.zeros(n_columns), np.ones(n_columns)
        self._early = np.zeros((0, n_columns))
        self._mixture, self._belief, self._provisional = None, None, None
        self._orders = np.zeros((0, 2), dtype=np.int64)

    def _take_units(self, rows: Matrix) -> None:
        self._take_moments(rows.mean(axis=0), rows.std(axis=0))

    def _take_moments(self, location: Vector, deviation: Vector) -> None:
        self._location = location
        self._scale = self._scale_of(np.where(deviation > 1e-12 * np.abs(self._location), deviation, 0.0))

    def _scale_of(self, deviation: Vector) -> Vector:
        """The unit of each column, if its deviation is this."""
        return np.where(deviation > 1e-150, deviation, 1.0)

    def _told(self, rows: Matrix, first: int = 0) -> Matrix:
        return np.ascontiguousarray(scaled(rows, self._location, self._scale, first))

    # --- what was learnt

    def _learnt(self) -> Mixture | None:
        """The mixture; None while the first rows of a stream are too few."""
        if self._mixture is None and self._belief is not None:
            statistics = statistics_of(self._belief)
            self._mixture = Mixture(statistics, self._clusters_of(statistics, self._prior), self._prior)
        return self._mixture

    def _known(self) -> Mixture:
        """The mixture; of a stream that has just begun, that of its rows so far."""
        self._check_begun()
        learnt = self._learnt()
        if learnt is not None:
            return learnt
        if self._provisional is None:
            self._take_units(self._early)
            self._provisional = self._learn_batch(self._told(self._early))
        return self._provisional

    @property
    def n_clusters_(self) -> int:
        """How many clusters there are."""
        return int(self._known().clusters.share.size)

    @property
    def weights_(self) -> Vector:
        """The share of each cluster."""
        return self._known().clusters.share.copy()

    @property
    def order_history_(self) -> NDArray[np.int64]:
        """How many clusters there were: a row (rows learnt, clusters) per change, the latest 1,000 of them.

        A stream is looked at every 500 rows: clusters that came and went in between are not among these.
        """
        self._check_begun()
        return self._orders.copy()

    def plot_order(self) -> Figure:
        """How many clusters there were, as rows were learnt; needs ``bayou[plot]``."""
        from bayou.estimators.mixture_plots import plot_order  # noqa: PLC0415  # needs the extra

        self._check_begun()
        return plot_order(self.order_history_, self.n_examples_, self.n_clusters_)

    def _check_settings(self) -> None:
        self._check_whole("n_clusters", 1)
        if not 0.0 <= self.matching <= 1.0:
            raise InvalidSpec(f"`matching` must be between 0 and 1; got {self.matching!r}.")
        if self.half_life is not None and not 1.0 <= self.half_life < math.inf:
            raise InvalidSpec(f"`half_life` must be None or at least 1 row; got {self.half_life!r}.")

    # --- as data

    def _mixture_as_data(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What a model file has of rows and mixture: config and arrays."""
        config = self._inputs_as_data() | {"names": self._names or None, "n_examples": self.n_examples_}
        mixture = self._learnt()
        config |= {"learnt": mixture is not None, "streams": self._belief is not None}
        arrays: dict[str, Any] = {"location": self._location, "scale": self._scale, "early": self._early}
        arrays["orders"] = self._orders
        if mixture is not None:
            prior = mixture.prior
            config |= {"prior": list(prior[:3]), "shape": list(prior[3:])}
            arrays |= {f"sums.{name}": part for name, part in mixture.statistics._asdict().items()}
        if self._belief is not None:
            arrays |= {f"stream.{name}": getattr(self._belief, name) for name in BESIDE_SUMS}
        return config, arrays

    def _mixture_from_data(self, config: dict[str, Any], arrays: dict[str, Any]) -> None:
        d = arrays["location"].size
        # The first files had neither the width nor what scikit-learn knows of the columns, and no orders.
        inputs = {"width": d, "n_features_in": None if config["names"] else d, "feature_names": []} | config
        self._inputs_from_data(inputs | {"names": config["names"] or []})
        self.n_examples_ = int(config["n_examples"])
        self._location, self._scale = (self._array(arrays, name, (d,)) for name in ("location", "scale"))
        require(bool(np.all(self._scale > 0.0)), "scale")
        self._early = self._array(arrays, "early", (len(arrays["early"]), d))
        self._orders = np.array(arrays.get("orders", self._orders))
        require(self._orders.dtype == np.int64 and self._orders.shape[1:] == (2,), "orders")
        if not config["learnt"]:
            return
        statistics = Statistics(*(arrays[f"sums.{name}"] for name in Statistics._fields))
        k = statistics.n.size
        require(statistics.s1.shape == (k, d) and statistics.s2.shape == (k, d, d) and k > 0, "sums")
        require(all(np.isfinite(part).all() for part in statistics) and bool(np.all(statistics.n > 0.0)), "sums")
        certainty, strength, scale = (float(value) for value in config["prior"])
        prior = Prior(certainty, strength, scale, *(int(value) for value in config.get("shape", ())))
        require(all(0.0 < value < math.inf for value in prior[:3]), "prior")
        require(prior.shape == self._shape() and prior.n_inputs == self._n_inputs(), "shape")
        self._mixture = Mixture(statistics, self._clusters_of(statistics, prior), prior)
        if config["streams"]:
            self._belief = resumed(statistics, {name: arrays[f"stream.{name}"] for name in BESIDE_SUMS})
            self._prior = prior


def one_unit(deviation: Vector) -> Vector:
    """The same unit for all columns: the root of their mean variance."""
    common = float(np.sqrt(np.mean(np.square(deviation))))
    return np.full(deviation.size, common if common > 1e-150 else 1.0)


def next_multiple(n: int, every: int) -> int:
    """The first number of rows after these that is so many times another."""
    return n + every - n % every


def next_growth(n: int, first: int) -> int:
    """The first number of rows after these that is the first, half as many more, half as many more than that, ..."""
    found = first
    while found <= n:
        found += found // 2
    return found


def require(right: bool, name: str) -> None:
    """Raise unless a part of a model file is as it must be."""
    if not right:
        raise ModelFileError(f"`{name}` must fit the other parts, with positive numbers where they are needed.")
