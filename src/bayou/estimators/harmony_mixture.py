"""A mixture of Gaussian clusters whose number is found with them: from rows, or from a stream."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import ClusterMixin, DensityMixin

from bayou.contracts import Matrix, State, Vector
from bayou.errors import InvalidSpec, ModelFileError
from bayou.estimators.complete_rows import scaled
from bayou.estimators.labelled_clusters import LabelledClusters
from bayou.mixtures.conditional import conditional, mixed
from bayou.mixtures.evidence import Prior, Statistics
from bayou.mixtures.gaussians import Gaussians, gaussians_of, log_joint
from bayou.mixtures.harmony import Mixture, learn_mixture
from bayou.mixtures.points import StreamBelief
from bayou.mixtures.streaming import BESIDE_SUMS, StreamOptions, begin_stream, learn_stream, resumed, statistics_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bayou.estimators.mixture_plots import Drawn

FEWEST_FIRST = 100  # rows of a stream that are learnt as a batch; ten per column, if those are more
BETWEEN_LOOKS = 500  # rows of a stream between looks at how many clusters there are: each look costs time
MOST_ORDERS = 1000  # changes of that number that are kept, the latest


class Completion(NamedTuple):
    """What missing values are expected to be, and their variances; known values are as they were, with variance 0."""

    mean: Matrix
    variance: Matrix


class HarmonyMixture(ClusterMixin, DensityMixin, LabelledClusters):
    """Clusters of any Gaussian shape, as many as there are: nobody has to say how many.

    There are at most ``n_clusters``. With ``matching=0`` the answer is to the question how many clusters there are
    (harmony: each point should be of one of them); with ``matching=1``, how many Gaussians make the density (maximum
    likelihood). Clusters whose centres are closer than about 3.4 deviations are one to harmony, and two to matching.

    `fit` learns from all rows at once. `partial_fit` and `learn_one` learn from a stream, in one pass and constant
    memory: clusters are born, merge, split and vanish on the way. ``half_life`` is the number of rows after which a row
    counts half; None: nothing is forgotten.

    Classes come from few labels: `label` tells those of some rows, `predict_label` those of any.

    >>> import numpy as np
    >>> from bayou import HarmonyMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(centre, 1.0, size=(100, 2)) for centre in (0.0, 6.0, 12.0)])
    >>> HarmonyMixture().fit(X).n_clusters_
    3
    >>> HarmonyMixture().partial_fit(X).n_clusters_  # a stream that is sorted by cluster
    3
    """

    n_examples_: int
    labels_: NDArray[Any]
    _location: Vector
    _scale: Vector
    _early: Matrix
    _mixture: Mixture | None
    _belief: StreamBelief | None
    _orders: NDArray[np.int64]
    _provisional: Mixture | None  # of a stream that has just begun

    def __init__(
        self, n_clusters: int = 10, matching: float = 0.0, half_life: float | None = None, seed: int = 0
    ) -> None:
        self.n_clusters = n_clusters
        self.matching = matching
        self.half_life = half_life
        self.seed = seed

    # --- learning

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Forget everything, labels too, and learn from all rows at once; ``y`` is not used."""
        self._check_settings()
        with self._whole_or_not():
            rows = self._rows(X, reset=True)
            self._forget_all(rows.shape[1])
            self._take_units(rows)
            self._mixture = self._learn_batch(self._told(rows))
            self.labels_ = np.argmax(self._joint(rows), axis=1)
            self.n_examples_ = len(rows)
            self._note_order(self._mixture.clusters.share.size)
        return self

    def partial_fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Learn more rows, in order; ``y`` is not used."""
        self._check_settings()
        with self._whole_or_not():
            self._learn_rows(self._rows(X, reset=not self._begun()), [])
        return self

    def learn_one(self, x: Mapping[Hashable, Any] | ArrayLike, y: Any = None) -> None:
        """Learn from a dict of named values, always of the same names, or from one row; ``y`` is not used."""
        self._check_settings()
        with self._whole_or_not():
            self._learn_rows(*self._one_row(x))

    def _learn_rows(self, rows: Matrix, names: list[Hashable]) -> None:
        """As a batch while the first rows are few; from then on as a stream."""
        if not self._begun():
            self._forget_all(rows.shape[1])
            self._names = names
        if self._mixture is not None and self._belief is None:  # learnt by `fit`: a stream may go on from there
            self._belief = begin_stream(self._mixture, np.zeros((0, rows.shape[1])))
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
            self._belief = begin_stream(self._mixture, told)
            self._early = self._early[:0]
            self._note_order(self._belief.n.size)
        if first < len(rows):
            self._learn_told(self._told(rows[first:], first))

    def _learn_told(self, rows: Matrix) -> None:
        """As a stream; looks at how many clusters there are come at the same rows, whatever the chunks."""
        assert self._belief is not None
        assert self._mixture is not None
        prior, start = self._mixture.prior, 0
        while start < len(rows):
            part = rows[start : start + BETWEEN_LOOKS - self.n_examples_ % BETWEEN_LOOKS]
            self._belief = learn_stream(self._belief, part, self._options(prior))
            self.n_examples_ += len(part)
            start += len(part)
            if self.n_examples_ % BETWEEN_LOOKS == 0:
                self._note_order(self._belief.n.size)
        statistics = statistics_of(self._belief)
        self._mixture = Mixture(statistics, self._clusters_of(statistics, prior), prior)

    def _note_order(self, k: int) -> None:
        if not len(self._orders) or self._orders[-1, 1] != k:
            self._orders = np.concatenate([self._orders, [[self.n_examples_, k]]])[-MOST_ORDERS:]

    def _clusters_of(self, statistics: Statistics, prior: Prior) -> Gaussians:
        """What the sums tell."""
        return gaussians_of(statistics, prior)

    def _learn_batch(self, rows: Matrix) -> Mixture:
        return learn_mixture(rows, self.n_clusters, float(self.matching), np.random.default_rng(self.seed))

    def _options(self, prior: Prior) -> StreamOptions:
        forgetting = 0.0 if self.half_life is None else 1.0 - 0.5 ** (1.0 / self.half_life)
        return StreamOptions(prior, float(self.matching), forgetting, self.n_clusters)

    def _n_first(self) -> int:
        return max(FEWEST_FIRST, 10 * self._location.size)

    def _forget_all(self, n_columns: int) -> None:
        self.__dict__.pop("labels_", None)
        self._names, self._width, self.n_examples_ = [], n_columns, 0
        self._location, self._scale = np.zeros(n_columns), np.ones(n_columns)
        self._early = np.zeros((0, n_columns))
        self._mixture, self._belief, self._provisional = None, None, None
        self._orders = np.zeros((0, 2), dtype=np.int64)
        self._forget_labels()

    def _take_units(self, rows: Matrix) -> None:
        self._location = rows.mean(axis=0)
        deviation = rows.std(axis=0)
        self._scale = np.where(deviation > 1e-12 * np.abs(self._location), np.maximum(deviation, 1e-150), 1.0)

    def _told(self, rows: Matrix, first: int = 0) -> Matrix:
        return np.ascontiguousarray(scaled(rows, self._location, self._scale, first))

    # --- what was learnt

    def _known(self) -> Mixture:
        """The mixture; of a stream that has just begun, that of its rows so far."""
        self._check_begun()
        if self._mixture is not None:
            return self._mixture
        if self._provisional is None:
            self._take_units(self._early)
            self._provisional = self._learn_batch(self._told(self._early))
        return self._provisional

    def _clusters_now(self) -> object:
        return self._known()

    @property
    def n_clusters_(self) -> int:
        """How many clusters there are."""
        return int(self._known().clusters.share.size)

    @property
    def weights_(self) -> Vector:
        """The share of each cluster."""
        return self._known().clusters.share.copy()

    @property
    def means_(self) -> Matrix:
        """The centre of each cluster."""
        mean = self._known().clusters.mean
        return self._location + self._scale * mean

    @property
    def covariances_(self) -> NDArray[np.float64]:
        """The covariance of each cluster."""
        covariance = self._known().clusters.covariance
        return covariance * np.outer(self._scale, self._scale)

    @property
    def order_history_(self) -> NDArray[np.int64]:
        """How many clusters there were: a row (rows learnt, clusters) per change, the latest 1,000 of them.

        A stream is looked at every 500 rows: clusters that came and went in between are not among these.
        """
        self._check_begun()
        return self._orders.copy()

    def _joint(self, rows: Matrix) -> Matrix:
        clusters = self._known().clusters  # first: that of few rows brings their units
        return log_joint(clusters, self._told(rows))

    def _chances(self, rows: Matrix) -> Matrix:
        joint = self._joint(rows)
        chances: Matrix = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
        return chances

    def _asked(self, X: ArrayLike) -> Matrix:
        """Rows of which something is asked."""
        self._check_begun()
        return self._rows(X, reset=False)

    def predict_proba(self, X: ArrayLike) -> Matrix:
        """The probability of each cluster, per row."""
        return self._chances(self._asked(X))

    def predict(self, X: ArrayLike) -> NDArray[np.intp]:
        """The most probable cluster of each row."""
        best: NDArray[np.intp] = np.argmax(self._joint(self._asked(X)), axis=1)
        return best

    def score_samples(self, X: ArrayLike) -> Vector:
        """The log density at each row: low where nothing was seen, which is how anomalies are known."""
        density: Vector = logsumexp(self._joint(self._asked(X)), axis=1)
        return density - float(np.sum(np.log(self._scale)))

    def score(self, X: ArrayLike, y: Any = None) -> float:
        """The mean log density of the rows."""
        return float(np.mean(self.score_samples(X)))

    def predict_one(self, x: Mapping[Hashable, Any] | ArrayLike) -> int | None:
        """The most probable cluster of a dict of named values or of one row; None before anything was learnt."""
        if not self._begun():
            return None
        return int(np.argmax(self._joint(self._one_row(x)[0])[0]))

    def sample(self, n: int = 1, seed: int | None = None) -> tuple[Matrix, NDArray[np.intp]]:
        """So many rows that the mixture would give, and the cluster of each."""
        rng, clusters = np.random.default_rng(self.seed if seed is None else seed), self._known().clusters
        labels = rng.choice(clusters.share.size, n, p=clusters.share / clusters.share.sum())
        lower = np.linalg.cholesky(clusters.covariance)
        normal = rng.standard_normal((n, clusters.mean.shape[1]))
        told = clusters.mean[labels] + np.einsum("nij,nj->ni", lower[labels], normal)
        return self._location + self._scale * told, labels

    def complete(self, X: ArrayLike) -> Completion:
        """What missing values (NaN) are expected to be, given those of the row that are known, and their variances."""
        self._check_begun()
        rows, clusters = self._rows(X, reset=False, missing=True), self._known().clusters
        told, absent = self._told(rows), np.isnan(rows)
        mean, variance = rows.copy(), np.zeros_like(rows)
        for pattern in np.unique(absent, axis=0):
            if pattern.any():
                chosen = np.flatnonzero((absent == pattern).all(axis=1))
                found = mixed(conditional(clusters, told[np.ix_(chosen, ~pattern)], pattern))
                scale = self._scale[pattern]
                mean[np.ix_(chosen, pattern)] = self._location[pattern] + scale * found[0]
                variance[np.ix_(chosen, pattern)] = scale**2 * found[1]
        return Completion(mean, variance)

    def plot(self, X: ArrayLike | None = None, columns: tuple[Hashable, Hashable] = (0, 1)) -> Figure:
        """The clusters as ellipses of two deviations, in two columns, by number or name, with rows if they are given.

        Of a mixture of one column the densities. Needs ``bayou[plot]``.
        """
        from bayou.estimators.mixture_plots import plot_clusters  # noqa: PLC0415  # needs the extra

        rows = None if X is None else self._asked(X)
        labels = None if rows is None else np.argmax(self._joint(rows), axis=1)
        return plot_clusters(self, self._drawn(), rows, labels, columns)

    def _drawn(self) -> Drawn:
        from bayou.estimators.mixture_plots import Drawn  # noqa: PLC0415  # needs the extra

        return Drawn(self.means_, self.covariances_, self.weights_)

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

    def to_state(self) -> State:
        """All that this estimator is, as data."""
        config: dict[str, Any] = {"params": self.get_params(deep=False), "begun": self._begun()}
        if not self._begun():
            return State(config, {})
        labels, labelled = self._labels_as_data()
        config |= self._inputs_as_data() | {"names": self._names or None, "n_examples": self.n_examples_} | labels
        config |= {"learnt": self._mixture is not None, "streams": self._belief is not None}
        arrays: dict[str, Any] = {"location": self._location, "scale": self._scale, "early": self._early} | labelled
        arrays["orders"] = self._orders
        if self._mixture is not None:
            prior = self._mixture.prior
            config |= {"prior": list(prior[:3]), "shape": list(prior[3:])}
            arrays |= {f"sums.{name}": part for name, part in self._mixture.statistics._asdict().items()}
        if self._belief is not None:
            arrays |= {f"stream.{name}": getattr(self._belief, name) for name in BESIDE_SUMS}
        if hasattr(self, "labels_"):
            arrays["labels"] = np.asarray(self.labels_, dtype=np.int64)
        return State(config, arrays)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The estimator that this data describes; it continues to the last bit."""
        config, arrays = state
        model = cls(**config["params"])
        if not config["begun"]:
            return model
        model._check_settings()
        d = arrays["location"].size
        model._forget_all(d)
        # The first files had neither the width nor what scikit-learn knows of the columns, and no orders.
        inputs = {"width": d, "n_features_in": None if config["names"] else d, "feature_names": []} | config
        model._inputs_from_data(inputs | {"names": config["names"] or []})
        _require(model._width == d, "width")
        model.n_examples_ = int(config["n_examples"])
        model._location, model._scale = (cls._array(arrays, name, (d,)) for name in ("location", "scale"))
        _require(bool(np.all(model._scale > 0.0)), "scale")
        model._early = cls._array(arrays, "early", (len(arrays["early"]), d))
        model._orders = np.array(arrays.get("orders", model._orders))
        _require(model._orders.dtype == np.int64 and model._orders.shape[1:] == (2,), "orders")
        model._labels_from_data(config, arrays)
        if config["learnt"]:
            statistics = Statistics(*(arrays[f"sums.{name}"] for name in Statistics._fields))
            k = statistics.n.size
            _require(statistics.s1.shape == (k, d) and statistics.s2.shape == (k, d, d) and k > 0, "sums")
            _require(all(np.isfinite(part).all() for part in statistics) and bool(np.all(statistics.n > 0.0)), "sums")
            certainty, strength, scale = (float(value) for value in config["prior"])
            prior = Prior(certainty, strength, scale, *(int(value) for value in config.get("shape", ())))
            _require(all(0.0 < value < math.inf for value in prior[:3]), "prior")
            model._mixture = Mixture(statistics, model._clusters_of(statistics, prior), prior)
            if config["streams"]:
                model._belief = resumed(statistics, {name: arrays[f"stream.{name}"] for name in BESIDE_SUMS})
        if "labels" in arrays:
            model.labels_ = arrays["labels"]
        return model


def _require(right: bool, name: str) -> None:
    if not right:
        raise ModelFileError(f"`{name}` must fit the other parts, with positive numbers where they are needed.")
