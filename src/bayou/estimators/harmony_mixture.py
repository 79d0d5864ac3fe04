"""A mixture of Gaussian clusters whose number is found with them: from rows, or from a stream."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClusterMixin, DensityMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import validate_data

from bayou.contracts import Matrix, State, Vector
from bayou.errors import InvalidFeatures, InvalidSpec, ModelFileError
from bayou.mixtures.conditional import conditional, mixed
from bayou.mixtures.evidence import Prior, Statistics
from bayou.mixtures.gaussians import Gaussians, gaussians_of, log_joint
from bayou.mixtures.harmony import Mixture, learn_mixture
from bayou.mixtures.points import StreamBelief
from bayou.mixtures.streaming import BESIDE_SUMS, StreamOptions, begin_stream, learn_stream, resumed, statistics_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEWEST_FIRST = 100  # rows of a stream that are learnt as a batch; ten per column, if those are more
LARGEST = 1e140  # squares of larger values would overflow


class Completion(NamedTuple):
    """What missing values are expected to be, and their variances; known values are as they were, with variance 0."""

    mean: Matrix
    variance: Matrix


class HarmonyMixture(ClusterMixin, DensityMixin, BaseEstimator):
    """Clusters of any Gaussian shape, as many as there are: nobody has to say how many.

    There are at most ``n_clusters``. With ``matching=0`` the answer is to the question how many clusters there are
    (harmony: each point should be of one of them); with ``matching=1``, how many Gaussians make the density (maximum
    likelihood). Clusters whose centres are closer than about 3.4 deviations are one to harmony, and two to matching.

    `fit` learns from all rows at once. `partial_fit` and `learn_one` learn from a stream, in one pass and constant
    memory: clusters are born, merge, split and vanish on the way. ``half_life`` is the number of rows after which a row
    counts half; None: nothing is forgotten.

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
    _names: list[Hashable]

    def __init__(
        self, n_clusters: int = 10, matching: float = 0.0, half_life: float | None = None, seed: int = 0
    ) -> None:
        self.n_clusters = n_clusters
        self.matching = matching
        self.half_life = half_life
        self.seed = seed

    # --- learning

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Forget everything and learn from all rows at once."""
        rows = self._rows(X, reset=True)
        self._check_settings()
        self._forget_all(rows.shape[1])
        self._take_units(rows)
        self._mixture = self._learn_batch(self._told(rows))
        self.labels_ = self.predict(rows)
        self.n_examples_ = len(rows)
        return self

    def partial_fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Learn more rows, in order."""
        rows = self._rows(X, reset=not self._begun())
        self._check_settings()
        if not self._begun():
            self._forget_all(rows.shape[1])
        self._learn_rows(rows)
        return self

    def learn_one(self, x: Mapping[Hashable, Any], y: Any = None) -> None:
        """Learn from a dict of named values, always of the same names."""
        self._check_settings()
        if not self._begun():
            names = list(x)
            row = self._row(x, names)
            self._forget_all(len(names))
            self._names = names
            self.n_features_in_ = len(names)
        else:
            row = self._row(x, self._known_names())
        self._learn_rows(row)

    def _learn_rows(self, rows: Matrix) -> None:
        """As a batch while the first rows are few; from then on as a stream."""
        self.n_examples_ += len(rows)
        if self._mixture is not None and self._belief is None:  # learnt by `fit`: a stream may go on from there
            self._belief = begin_stream(self._mixture, np.zeros((0, rows.shape[1])))
        if self._belief is None:
            wanted = self._n_first() - len(self._early)
            self._early, rows = np.concatenate([self._early, rows[:wanted]]), rows[wanted:]
            self._mixture = None
            if len(self._early) < self._n_first():
                return
            self._take_units(self._early)
            first = self._told(self._early)
            self._mixture = self._learn_batch(first)
            self._belief = begin_stream(self._mixture, first)
            self._early = self._early[:0]
        if len(rows):
            assert self._mixture is not None
            prior = self._mixture.prior
            self._belief = learn_stream(self._belief, self._told(rows), self._options(prior))
            statistics = statistics_of(self._belief)
            self._mixture = Mixture(statistics, self._clusters_of(statistics, prior), prior)

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
        for name in ("labels_", "_names"):
            self.__dict__.pop(name, None)
        self.n_examples_ = 0
        self._location, self._scale = np.zeros(n_columns), np.ones(n_columns)
        self._early = np.zeros((0, n_columns))
        self._mixture, self._belief = None, None

    def _take_units(self, rows: Matrix) -> None:
        self._location = rows.mean(axis=0)
        deviation = rows.std(axis=0)
        self._scale = np.where(deviation > 1e-12 * np.abs(self._location), np.maximum(deviation, 1e-150), 1.0)

    def _told(self, rows: Matrix) -> Matrix:
        return np.ascontiguousarray((rows - self._location) / self._scale)

    # --- what was learnt

    def _known(self) -> Mixture:
        """The mixture; of a stream that has just begun, that of its rows so far."""
        self._check_begun()
        if self._mixture is None:
            self._take_units(self._early)
            return self._learn_batch(self._told(self._early))
        return self._mixture

    def _clusters(self) -> Gaussians:
        """In the units of the rows."""
        clusters = self._known().clusters
        covariance = clusters.covariance * np.outer(self._scale, self._scale)
        return clusters._replace(mean=self._location + self._scale * clusters.mean, covariance=covariance)

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
        return self._clusters().mean

    @property
    def covariances_(self) -> NDArray[np.float64]:
        """The covariance of each cluster."""
        return self._clusters().covariance

    def _joint(self, rows: Matrix) -> Matrix:
        return log_joint(self._known().clusters, self._told(rows))

    def predict_proba(self, X: ArrayLike) -> Matrix:
        """The probability of each cluster, per row."""
        joint = self._joint(self._rows(X, reset=False))
        chances: Matrix = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
        return chances

    def predict(self, X: ArrayLike) -> NDArray[np.intp]:
        """The most probable cluster of each row."""
        best: NDArray[np.intp] = np.argmax(self._joint(self._rows(X, reset=False)), axis=1)
        return best

    def score_samples(self, X: ArrayLike) -> Vector:
        """The log density at each row: low where nothing was seen, which is how anomalies are known."""
        density: Vector = logsumexp(self._joint(self._rows(X, reset=False)), axis=1)
        return density - float(np.sum(np.log(self._scale)))

    def score(self, X: ArrayLike, y: Any = None) -> float:
        """The mean log density of the rows."""
        return float(np.mean(self.score_samples(X)))

    def predict_one(self, x: Mapping[Hashable, Any]) -> int | None:
        """The most probable cluster of a dict of named values; None before anything was learnt."""
        if not self._begun():
            return None
        return int(np.argmax(self._joint(self._row(x, self._known_names()))[0]))

    def sample(self, n: int = 1, seed: int | None = None) -> tuple[Matrix, NDArray[np.intp]]:
        """So many rows that the mixture would give, and the cluster of each."""
        rng, clusters = np.random.default_rng(self.seed if seed is None else seed), self._clusters()
        labels = rng.choice(clusters.share.size, n, p=clusters.share / clusters.share.sum())
        lower = np.linalg.cholesky(clusters.covariance)
        normal = rng.standard_normal((n, clusters.mean.shape[1]))
        return clusters.mean[labels] + np.einsum("nij,nj->ni", lower[labels], normal), labels

    def complete(self, X: ArrayLike) -> Completion:
        """What missing values (NaN) are expected to be, given those of the row that are known, and their variances."""
        self._check_begun()
        rows = np.array(validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite="allow-nan"))
        mean, variance = rows.copy(), np.zeros_like(rows)
        clusters = self._clusters()
        for pattern in np.unique(np.isnan(rows), axis=0):
            if pattern.any():
                chosen = np.flatnonzero((np.isnan(rows) == pattern).all(axis=1))
                found = mixed(conditional(clusters, rows[np.ix_(chosen, ~pattern)], pattern))
                mean[np.ix_(chosen, pattern)], variance[np.ix_(chosen, pattern)] = found
        return Completion(mean, variance)

    def plot(self, X: ArrayLike | None = None) -> Figure:
        """The clusters of two columns as ellipses, with rows if they are given; needs ``bayou[plot]``."""
        from bayou.estimators.mixture_plots import plot_clusters  # noqa: PLC0415  # needs the extra

        clusters = self._clusters()
        rows = None if X is None else self._rows(X, reset=False)
        return plot_clusters(clusters, rows, None if rows is None else self.predict(rows))

    # --- what comes in

    def _check_settings(self) -> None:
        if not (isinstance(self.n_clusters, (int, np.integer)) and self.n_clusters >= 1):
            raise InvalidSpec(f"`n_clusters` must be a whole number, at least 1; got {self.n_clusters!r}.")
        if not 0.0 <= self.matching <= 1.0:
            raise InvalidSpec(f"`matching` must be between 0 and 1; got {self.matching!r}.")
        if self.half_life is not None and not 1.0 <= self.half_life < math.inf:
            raise InvalidSpec(f"`half_life` must be None or at least 1 row; got {self.half_life!r}.")

    def _begun(self) -> bool:
        return hasattr(self, "n_examples_")

    def __sklearn_is_fitted__(self) -> bool:
        return self._begun()

    def _check_begun(self) -> None:
        if not self._begun():
            raise NotFittedError(
                f"This {type(self).__name__} has learnt nothing yet; call `fit`, `partial_fit` or `learn_one`."
            )

    def _rows(self, X: ArrayLike, reset: bool) -> Matrix:
        if not reset:
            self._check_begun()
        rows: Matrix = validate_data(self, X, reset=reset, dtype=np.float64, order="C", ensure_min_samples=1)
        large = np.argwhere(np.abs(rows) > LARGEST)
        if len(large):
            row, column = large[0]
            raise InvalidFeatures(f"values must be below {LARGEST:g} in size; got {rows[row, column]} in row {row}.")
        return rows

    def _known_names(self) -> list[Hashable]:
        if not hasattr(self, "_names"):
            raise InvalidFeatures(f"this {type(self).__name__} has learnt rows without names; got a dict.")
        return self._names

    @staticmethod
    def _row(x: Mapping[Hashable, Any], names: list[Hashable]) -> Matrix:
        """The values of a dict, in the order of the names."""
        if set(x) != set(names):
            raise InvalidFeatures(f"the values must be {', '.join(map(repr, names))}; got {', '.join(map(repr, x))}.")
        try:
            row = np.array([[float(x[name]) for name in names]])
        except (TypeError, ValueError):
            raise InvalidFeatures(f"every value must be a number; got {dict(x)!r}.") from None
        if not (np.abs(row) <= LARGEST).all():
            raise InvalidFeatures(f"every value must be finite and below {LARGEST:g} in size; got {dict(x)!r}.")
        return row

    # --- as data

    def to_state(self) -> State:
        """All that this estimator is, as data."""
        config: dict[str, Any] = {"params": self.get_params(deep=False), "begun": self._begun()}
        if not self._begun():
            return State(config, {})
        config |= {"n_examples": self.n_examples_, "names": getattr(self, "_names", None)}
        config |= {"learnt": self._mixture is not None, "streams": self._belief is not None}
        arrays: dict[str, Any] = {"location": self._location, "scale": self._scale, "early": self._early}
        if self._mixture is not None:
            config["prior"] = list(self._mixture.prior)
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
        model.n_features_in_, model.n_examples_ = d, int(config["n_examples"])
        if config["names"] is not None:
            model._names = [tuple(name) if isinstance(name, list) else name for name in config["names"]]
        model._location, model._scale, model._early = arrays["location"], arrays["scale"], arrays["early"]
        _require(model._scale.shape == (d,) and bool(np.all(model._scale > 0.0)), "scale")
        _require(model._early.ndim == 2 and model._early.shape[1] == d, "early")
        if config["learnt"]:
            statistics = Statistics(*(arrays[f"sums.{name}"] for name in Statistics._fields))
            k = statistics.n.size
            _require(statistics.s1.shape == (k, d) and statistics.s2.shape == (k, d, d) and k > 0, "sums")
            _require(all(np.isfinite(part).all() for part in statistics) and bool(np.all(statistics.n > 0.0)), "sums")
            prior = Prior(*(float(value) for value in config["prior"]))
            _require(all(0.0 < value < math.inf for value in prior), "prior")
            model._mixture = Mixture(statistics, model._clusters_of(statistics, prior), prior)
            if config["streams"]:
                model._belief = resumed(statistics, {name: arrays[f"stream.{name}"] for name in BESIDE_SUMS})
        if "labels" in arrays:
            model.labels_ = arrays["labels"]
        return model


def _require(right: bool, name: str) -> None:
    if not right:
        raise ModelFileError(f"`{name}` must fit the other parts, with positive numbers where they are needed.")
