"""Binary factors behind rows, as many as harmony keeps."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from bayou.contracts import Matrix, State, Vector
from bayou.errors import InvalidFeatures, InvalidSpec, ModelFileError, ShapeMismatch
from bayou.estimators.complete_rows import CompleteRows, Scale, scale_of
from bayou.mixtures.binary_factors import Factors, Sums, explain, learn, no_sums
from bayou.mixtures.binary_harmony import fit, pruned, worth_keeping

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N_KEPT = 200  # rows of a stream that are kept, for fits; from then on memory is constant
N_BETWEEN = 100  # rows between looks at whether a factor still does anything


class BinaryFactorAnalysis(ClassNamePrefixFeaturesOutMixin, TransformerMixin, CompleteRows):
    """x = A y + location + noise, where each of at most ``n_factors`` bits y_j is 1 with a probability of its own.

    Maximum likelihood (``harmony=0``, the EM algorithm) finds a use for every factor that it is given. Harmony
    (``harmony=1``) asks in addition that the bits of each row are sure: factors that are not needed lose their effect
    or their variation, and are pruned (L. Xu's BYY harmony learning). Numbers between are a compromise. `fit` goes from
    maximum likelihood to harmony over 30 iterations, from ``n_starts`` random starts, and takes the best by
    ``harmony`` less (parameters / 2) ln N.

    Up to 10 factors all 2^m combinations of bits are summed over. Beyond, only the most probable one that a search
    finds, and those that differ from it in one bit: densities are then lower bounds.

    A stream (`partial_fit`, `learn_one`) starts from fits to its first rows, whenever there are twice as many and once
    more when there are 200. From then on, and in between, each row adds its expected bits, with harmony's weights, to
    sums from which the parameters follow, and is forgotten. Factors can still be pruned, but no new ones are found.

    The noise is the same for all inputs; scale columns that differ in kind. The bit y_j could be called 1 - y_j: what
    is called 1 is what makes the largest entry of its row of ``components_`` positive. Factors come by the variance
    that they make. There may be none.

    >>> import numpy as np
    >>> from bayou import BinaryFactorAnalysis
    >>> random = np.random.default_rng(0)
    >>> bits = random.random((500, 3)) < [0.3, 0.5, 0.6]
    >>> X = bits @ random.normal(size=(3, 8)) + random.normal(0.0, 0.3, size=(500, 8))
    >>> model = BinaryFactorAnalysis(n_factors=5).fit(X)
    >>> model.n_factors_
    3
    >>> model.transform(X).shape
    (500, 3)
    """

    def __init__(self, n_factors: int = 5, harmony: float = 1.0, n_starts: int = 3, seed: int = 0) -> None:
        self.n_factors = n_factors
        self.harmony = harmony
        self.n_starts = n_starts
        self.seed = seed

    # --- learning

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Forget everything and learn the rows; ``y`` is not used."""
        self._check_params()
        rows = self._rows(X, reset=True)
        self._names, self._width, self._n_rows = [], rows.shape[1], len(rows)
        self._early = np.array(rows if len(rows) < N_KEPT else rows[:0])
        self._fit_rows(rows)
        return self

    def partial_fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learn more rows, in order, from where the last call ended; ``y`` is not used."""
        self._check_params()
        self._learn_rows(self._rows(X, reset=not self._begun()), [])
        return self

    def learn_one(self, x: Mapping[Hashable, Any] | ArrayLike) -> None:
        """Learn from a dict of named values, always the same names, or from one row."""
        self._check_params()
        self._learn_rows(*self._one_row(x))

    def _fit_rows(self, rows: Matrix) -> None:
        self._scale = scale_of(rows)
        random = np.random.default_rng(self.seed)
        fitted = fit(self._scale.into(rows), self.n_factors, self.n_starts, 1.0 - self.harmony, random)
        self._factors, self._sums = fitted.factors, fitted.sums

    def _learn_rows(self, rows: Matrix, names: list[Hashable]) -> None:
        before = dict(self.__dict__)
        if self._begun():  # rows change these in place
            before |= {"_factors": Factors(*map(np.copy, self._factors)), "_sums": Sums(*map(np.copy, self._sums))}
        else:
            self._names, self._width, self._n_rows = names, rows.shape[1], 0
            self._early = np.zeros((0, rows.shape[1]))
        try:
            self._learn_parts(rows)
        except InvalidFeatures:  # a row is too far off: everything is as it was
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _learn_parts(self, rows: Matrix) -> None:
        start = 0
        while start < len(rows):
            look, keeps = self._next_look(), self._n_rows < N_KEPT
            part = rows[start : start + look - self._n_rows]
            if keeps:
                self._early = np.concatenate([self._early, part])
            if keeps and self._n_rows + len(part) == look:
                self._n_rows = look
                self._fit_rows(self._early)
                self._early = self._early[: look if look < N_KEPT else 0]
            else:
                self._absorb(part, start)
            start += len(part)

    def _absorb(self, rows: Matrix, first: int) -> None:
        """Add rows to the sums; at every hundredth, look for factors that do nothing any more."""
        learn(self._factors, self._sums, self._scale.into(rows, first), 1.0 - self.harmony)
        self._n_rows += len(rows)
        if self._n_rows % N_BETWEEN == 0:
            while not (keep := worth_keeping(self._factors)).all():
                self._factors, self._sums = pruned(self._factors, self._sums, keep)

    def _next_look(self) -> int:
        """The number of rows at which a fit, or a look at factors, is due next."""
        if self._n_rows < N_KEPT:
            return min(1 << int(self._n_rows).bit_length(), N_KEPT)
        return (self._n_rows // N_BETWEEN + 1) * N_BETWEEN

    def _check_params(self) -> None:
        self._check_whole("n_factors", 1)
        self._check_whole("n_starts", 1)
        self._check_whole("seed", 0)
        if not 0.0 <= self.harmony <= 1.0:
            raise InvalidSpec(f"`harmony` must lie between 0 and 1; got {self.harmony!r}.")

    # --- the model

    @property
    def n_factors_(self) -> int:
        """How many factors there are."""
        self._check_begun()
        return int(self._factors.probabilities.size)

    @property
    def components_(self) -> Matrix:
        """What each bit adds to x if it is 1, a row each: A, transposed."""
        self._check_begun()
        components: Matrix = self._factors.loadings.T * self._scale.spread
        return components

    @property
    def location_(self) -> Vector:
        """What x is expected to be if all bits are 0."""
        self._check_begun()
        location: Vector = self._factors.location * self._scale.spread + self._scale.centre
        return location

    @property
    def probabilities_(self) -> Vector:
        """How probable it is that each bit is 1."""
        self._check_begun()
        return self._factors.probabilities.copy()

    @property
    def noise_variance_(self) -> float:
        """Variance of the noise, the same for each input."""
        self._check_begun()
        return float(self._factors.noise[0]) * self._scale.spread**2

    @property
    def n_examples_(self) -> int:
        """How many rows were learnt."""
        self._check_begun()
        return self._n_rows

    @property
    def _n_features_out(self) -> int:
        return self.n_factors_

    # --- bits of rows

    def transform(self, X: ArrayLike) -> Matrix:
        """The probability that each bit is 1, given each row."""
        return self._explained(X)[0]

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """The most probable bits, all together, given each row."""
        return self._explained(X)[1]

    def transform_one(self, x: Mapping[Hashable, Any] | ArrayLike) -> dict[str, float]:
        """The same as `transform` for a dict or one row, by names of the factors; empty before anything was learnt."""
        if not self._begun():
            return {}
        chances = self._explained_rows(self._one_row(x)[0])[0][0]
        return dict(zip(self.get_feature_names_out().tolist(), chances.tolist(), strict=True))

    def score_samples(self, X: ArrayLike) -> Vector:
        """Log density of each row."""
        return self._explained(X)[2] - self._width * math.log(self._scale.spread)

    def score(self, X: ArrayLike, y: object = None) -> float:
        """Mean log density of the rows; ``y`` is not used."""
        return float(np.mean(self.score_samples(X)))

    def inverse_transform(self, X: ArrayLike) -> Matrix:
        """What x is expected to be, given bits or their probabilities, a row for each row of them."""
        self._check_begun()
        bits = np.asarray(X, dtype=np.float64)
        if bits.ndim != 2 or bits.shape[1] != self.n_factors_:
            raise ShapeMismatch(f"`X` must have a column for each of the {self.n_factors_} factors; got {bits.shape}.")
        if not np.isfinite(bits).all():
            raise InvalidFeatures(f"`X` must be finite; got {bits[~np.isfinite(bits)][0]}.")
        rows: Matrix = bits @ self.components_ + self.location_
        return rows

    def sample(self, n_samples: int = 1, seed: int | np.random.Generator = 0) -> tuple[Matrix, NDArray[np.int64]]:
        """Rows drawn from the model, and their bits."""
        self._check_begun()
        if n_samples < 1:
            raise InvalidSpec(f"`n_samples` must be at least 1; got {n_samples!r}.")
        random = np.random.default_rng(seed)
        bits = (random.random((n_samples, self.n_factors_)) < self.probabilities_).astype(np.int64)
        noise = random.normal(size=(n_samples, self._width)) * (math.sqrt(self._factors.noise[0]) * self._scale.spread)
        return self.inverse_transform(bits) + noise, bits

    def _explained(self, X: ArrayLike) -> tuple[Matrix, NDArray[np.int64], Vector]:
        self._check_begun()
        return self._explained_rows(self._rows(X, reset=False))

    def _explained_rows(self, rows: Matrix) -> tuple[Matrix, NDArray[np.int64], Vector]:
        shape = len(rows), self.n_factors_
        chances, bits, densities = np.empty(shape), np.empty(shape, dtype=np.int64), np.empty(len(rows))
        explain(self._factors, self._scale.into(rows), chances, bits, densities)
        return chances, bits, densities

    def plot(self, X: ArrayLike, columns: tuple[Hashable, Hashable] = (0, 1)) -> Figure:
        """Rows by their bits, and what each bit adds, in two columns, by number or name; needs ``bayou[plot]``."""
        from bayou.estimators.bit_plots import plot_factors  # noqa: PLC0415  # needs the extra

        return plot_factors(self, X, columns)

    # --- as data

    def to_state(self) -> State:
        """All that this estimator is, as data."""
        config: dict[str, Any] = {"params": self.get_params(deep=False), "begun": self._begun()}
        if not self._begun():
            return State(config, {})
        config |= self._inputs_as_data() | {"n_rows": self._n_rows, "n_found": self.n_factors_}
        config["spread"] = self._scale.spread
        arrays: dict[str, Any] = {"centre": self._scale.centre, "early": self._early}
        for part, values in (("factors", self._factors), ("sums", self._sums)):
            arrays |= {f"{part}.{name}": array for name, array in values._asdict().items()}
        return State(config, arrays)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The estimator that this data describes; it continues to the last bit."""
        config, arrays = state
        model = cls(**config["params"])
        if config["begun"]:
            model._check_params()
            model._inputs_from_data(config)
            m, width = int(config["n_found"]), model._width
            model._n_rows, spread = int(config["n_rows"]), float(config["spread"])
            if not (0 <= m <= model.n_factors and model._n_rows > 0 and 0.0 < spread < math.inf):
                raise ModelFileError(f"factors must be 0 to {model.n_factors}, of rows that vary; got {m}.")
            model._scale = Scale(cls._array(arrays, "centre", (width,)), spread)
            n_early = len(arrays["early"])
            if n_early != (model._n_rows if model._n_rows < N_KEPT else 0):
                raise ModelFileError(f"`early` must have the {model._n_rows} rows learnt, if few; got {n_early}.")
            model._early = cls._array(arrays, "early", (n_early, width))
            shapes = Factors((width, m), (width,), (m,), (1,))  # type: ignore[arg-type]  # shapes in their places
            model._factors = Factors(
                *(cls._array(arrays, f"factors.{name}", shape) for name, shape in shapes._asdict().items())
            )
            known = no_sums(m, width)._asdict()
            model._sums = Sums(*(cls._array(arrays, f"sums.{name}", array.shape) for name, array in known.items()))
            p = model._factors.probabilities
            if not (np.all((p > 0.0) & (p < 1.0)) and model._factors.noise[0] > 0.0 < model._sums.weight[0]):
                raise ModelFileError(f"probabilities must lie between 0 and 1, and noise be positive; got {p}.")
        return model

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if self._begun():
            self._factors = Factors(*(np.require(array, requirements=["C", "W"]) for array in self._factors))
            self._sums = Sums(*(np.require(array, requirements=["C", "W"]) for array in self._sums))
