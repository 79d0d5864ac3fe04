"""Clusters that lie along subspaces, of which the number and each one's dimension are found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import TransformerMixin

from bayou.contracts import Matrix, Vector
from bayou.errors import InvalidSpec
from bayou.estimators.harmony_mixture import HarmonyMixture
from bayou.estimators.harmony_rows import one_unit
from bayou.mixtures.evidence import Prior, Statistics
from bayou.mixtures.factors import Factors, clusters_along_factors, settle_factors
from bayou.mixtures.gaussians import Gaussians
from bayou.mixtures.harmony import Mixture

if TYPE_CHECKING:
    from bayou.estimators.mixture_plots import Drawn


class LocalFactorAnalysis(TransformerMixin, HarmonyMixture):
    """A mixture of factor analysers: each cluster varies along a few directions of its own, and a little everywhere.

    How many clusters there are is found as by `HarmonyMixture`, then how many factors each has, up to ``n_factors``
    (None: all but one). All columns are told in one common unit, in which the noise of a cluster is the same for all.

    >>> import numpy as np
    >>> from bayou import LocalFactorAnalysis
    >>> rng = np.random.default_rng(0)
    >>> flat = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 6)) * 3.0  # a plane in six dimensions
    >>> line = rng.normal(size=(300, 1)) @ rng.normal(size=(1, 6)) * 3.0 + 20.0
    >>> X = np.concatenate([flat, line]) + rng.normal(size=(600, 6))
    >>> sorted(LocalFactorAnalysis().fit(X).n_factors_.tolist())
    [1, 2]
    """

    def __init__(
        self,
        n_clusters: int = 10,
        n_factors: int | None = None,
        matching: float = 0.0,
        half_life: float | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(n_clusters, matching, half_life, seed)
        self.n_factors = n_factors

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.n_factors is not None and not (isinstance(self.n_factors, (int, np.integer)) and self.n_factors >= 0):
            raise InvalidSpec(f"`n_factors` must be a whole number, not negative, or None; got {self.n_factors!r}.")

    def _most_factors(self) -> int:
        return int(self._location.size - 1 if self.n_factors is None else self.n_factors)

    def _scale_of(self, deviation: Vector) -> Vector:
        return one_unit(deviation)

    def _learn_batch(self, rows: Matrix) -> Mixture:
        mixture = settle_factors(rows, super()._learn_batch(rows), self._most_factors(), float(self.matching))
        return mixture._replace(clusters=self._clusters_of(mixture.statistics, mixture.prior))

    def _clusters_of(self, statistics: Statistics, prior: Prior) -> Gaussians:
        return clusters_along_factors(statistics, self._most_factors())[0]

    def _factors(self) -> list[Factors]:
        """Of each cluster, in the common unit."""
        return clusters_along_factors(self._known().statistics, self._most_factors())[1]

    @property
    def n_factors_(self) -> NDArray[np.intp]:
        """How many factors each cluster has."""
        return np.array([factors.loadings.size for factors in self._factors()])

    @property
    def components_(self) -> list[Matrix]:
        """Per cluster the directions of its factors, a row each, as long as their deviations beyond the noise."""
        return [(f.directions * np.sqrt(f.loadings)).T * self._scale[0] for f in self._factors()]

    @property
    def noise_variance_(self) -> Vector:
        """Per cluster, of every column."""
        noise: Vector = np.array([factors.noise for factors in self._factors()]) * self._scale[0] ** 2
        return noise

    def transform(self, X: ArrayLike) -> Matrix:
        """The factors of each row in its most probable cluster, as they are expected to be; 0 beyond as many as it has.

        In units of their own deviation: a factor is standard normal within its cluster.
        """
        rows = self._asked(X)
        labels, factors = np.argmax(self._joint(rows), axis=1), self._factors()
        told = self._told(rows)
        found = np.zeros((len(rows), max((f.loadings.size for f in factors), default=0)))
        for k, (directions, loadings, noise) in enumerate(factors):
            own = labels == k
            centred = (told[own] - self._known().clusters.mean[k]) @ directions
            found[np.ix_(own, np.arange(loadings.size))] = centred * np.sqrt(loadings) / (loadings + noise)
        return found

    def fit_transform(self, X: ArrayLike, y: Any = None) -> Matrix:
        """Fit, then the factors of the same rows."""
        return self.fit(X).transform(X)

    def _drawn(self) -> Drawn:
        """With the deviations along the factors, noise included: the lines end where the ellipses do."""
        own = self._factors()
        directions = [(f.directions * np.sqrt(f.loadings + f.noise)).T * self._scale[0] for f in own]
        return super()._drawn()._replace(directions=directions)
