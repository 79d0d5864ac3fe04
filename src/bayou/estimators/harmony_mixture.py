"""A mixture of Gaussian clusters whose number is found with them: from rows, or from a stream."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import ClusterMixin, DensityMixin

from bayou.contracts import Matrix, State, Vector
from bayou.errors import InvalidSpec
from bayou.estimators.harmony_rows import HarmonyRows, one_unit, require
from bayou.estimators.labelled_clusters import LabelledClusters
from bayou.mixtures.all_rows import AllRows
from bayou.mixtures.conditional import conditional, mixed
from bayou.mixtures.gaussians import log_joint
from bayou.mixtures.shapes import DIAGONAL, FULL, SPHERICAL

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bayou.estimators.mixture_plots import Drawn

SHAPES = {"full": FULL, "diag": DIAGONAL, "spherical": SPHERICAL}


class Completion(NamedTuple):
    """What missing values are expected to be, and their variances; known values are as they were, with variance 0."""

    mean: Matrix
    variance: Matrix


class HarmonyMixture(ClusterMixin, DensityMixin, LabelledClusters, HarmonyRows):
    """Clusters of any Gaussian shape, as many as there are: nobody has to say how many.

    There are at most ``n_clusters``. With ``matching=0`` the answer is to the question how many clusters there are
    (harmony: each point should be of one of them); with ``matching=1``, how many Gaussians make the density (maximum
    likelihood). Clusters whose centres are closer than about 3.4 deviations are one to harmony, and two to matching.

    `fit` learns from all rows at once. `partial_fit` and `learn_one` learn from a stream, in one pass and constant
    memory: clusters are born, merge, split and vanish on the way. ``half_life`` is the number of rows after which a row
    counts half; None: nothing is forgotten.

    ``covariance_type`` is the shape of clusters: "full"; "diag", columns vary independently; "spherical", balls in the
    common unit of all columns. With ``n_nearest`` a row is only of so many clusters, those nearest to it: with many
    clusters 2 save work in `fit`, and lose little.

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

    labels_: NDArray[Any]

    def __init__(
        self,
        n_clusters: int = 10,
        matching: float = 0.0,
        half_life: float | None = None,
        seed: int = 0,
        covariance_type: str = "full",
        n_nearest: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.matching = matching
        self.half_life = half_life
        self.seed = seed
        self.covariance_type = covariance_type
        self.n_nearest = n_nearest

    # --- learning

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Forget everything, labels too, and learn from all rows at once; ``y`` is not used."""
        self._check_settings()
        with self._whole_or_not():
            rows = self._rows(X, reset=True)
            self._forget_all(rows.shape[1])
            self._learn_all(rows)
            self.labels_ = np.argmax(self._joint(rows), axis=1)
        return self

    def learn_apart(self, location: Vector, deviation: Vector, told: Callable[[Vector, Vector], AllRows]) -> Self:
        """Forget everything, and learn from rows that are elsewhere, as `fit` does; no labels are kept.

        Columns have this mean and deviation; ``told`` takes the location and scale that rows are to be told in.
        """
        self._check_settings()
        self._forget_all(location.size)
        self._take_moments(location, deviation)
        rows = told(self._location, self._scale)
        self._mixture, self.n_examples_ = self._mixture_of(rows), rows.shape[0]
        self._note_order(self._mixture.clusters.share.size)
        self.n_features_in_ = location.size
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
        if not self._begun():
            self._forget_all(rows.shape[1])
            self._names = names
        self._learn_more(rows)

    def _forget_all(self, n_columns: int) -> None:
        super()._forget_all(n_columns)
        self.__dict__.pop("labels_", None)
        self._forget_labels()

    def _shape(self) -> int:
        return SHAPES[self.covariance_type]

    def _nearest(self) -> int:
        return 0 if self.n_nearest is None else int(self.n_nearest)

    def _scale_of(self, deviation: Vector) -> Vector:
        """Balls are balls in one unit of all columns."""
        return one_unit(deviation) if self.covariance_type == "spherical" else super()._scale_of(deviation)

    # --- what was learnt

    def _clusters_now(self) -> object:
        return self._known()

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

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.covariance_type not in SHAPES:
            raise InvalidSpec(f"`covariance_type` must be one of {', '.join(SHAPES)}; got {self.covariance_type!r}.")
        if self.n_nearest is not None:
            self._check_whole("n_nearest", 1)

    # --- as data

    def to_state(self) -> State:
        """All that this estimator is, as data."""
        config: dict[str, Any] = {"params": self.get_params(deep=False), "begun": self._begun()}
        if not self._begun():
            return State(config, {})
        (labels, labelled), (rows, arrays) = self._labels_as_data(), self._mixture_as_data()
        config, arrays = config | rows | labels, arrays | labelled
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
        model._forget_all(arrays["location"].size)
        model._mixture_from_data(config, arrays)
        require(model._width == model._location.size, "width")
        model._labels_from_data(config, arrays)
        if "labels" in arrays:
            model.labels_ = arrays["labels"]
        return model
