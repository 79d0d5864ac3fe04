"""Regression by local linear functions, each on a subspace of its own: from rows, or from a stream."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax
from sklearn.base import RegressorMixin

from bayou.contracts import Matrix, State, Vector
from bayou.encoders.standardizer import check_magnitude
from bayou.errors import InvalidSpec, InvalidTarget, ModelFileError, ShapeMismatch
from bayou.estimators.complete_rows import scaled
from bayou.estimators.harmony_rows import HarmonyRows, require
from bayou.estimators.two_view_rows import checked_coverage, values_of
from bayou.mixtures.conditional import Conditional, conditional, log_density, mixed, quantiles
from bayou.mixtures.evidence import Prior, Statistics
from bayou.mixtures.experts import (
    Experts,
    expert_means,
    experts_from_gaussians,
    gate_log_probabilities,
    learn_experts,
    log_joint_of_experts,
)
from bayou.mixtures.gaussians import Gaussians
from bayou.mixtures.harmony import Mixture, settled
from bayou.mixtures.joint import local_regressions, predictive_noise
from bayou.mixtures.shapes import EXTENDED_RADIAL, FULL, NORMALISED_RADIAL
from bayou.mixtures.subspace_functions import subspace_functions_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHAPES = {
    "subspace": FULL,
    "experts": FULL,
    "alternative_experts": FULL,
    "radial": NORMALISED_RADIAL,
    "extended_radial": EXTENDED_RADIAL,
}
LEAST_ROWS = 1e-3  # of an expert that no row is of


class SubspaceRegressor(RegressorMixin, HarmonyRows):
    """Regression where the data lie in several places, each with directions and a linear function of its own.

    Inputs and targets together make clusters, as many as there are, and at most ``n_clusters``, found as by
    `HarmonyMixture`. Within a cluster targets are linear. What is expected of new inputs is the mean over clusters,
    weighted by how probable each is at these inputs; with it come deviation, intervals and quantiles of that mixture.

    ``component`` is what a cluster is: "subspace", inputs vary along a few directions, on which alone targets depend
    (up to ``n_factors``; None: all); "alternative_experts", inputs have any covariance; "extended_radial", inputs are
    balls; "radial", balls with constant targets; "experts", gates by logistic regression, which are sharper, and no
    density of the inputs (only by `fit`).

    It is the right tool for data in separate regions, and for functions with jumps. A smooth function of evenly
    covered inputs needs many clusters: there an `IncrementalRiskRegressor` or a forest does better.

    >>> import numpy as np
    >>> from bayou import SubspaceRegressor
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-1.0, 1.0, size=(600, 1))
    >>> y = np.where(x[:, 0] < 0.0, 2.0 + x[:, 0], -1.0 - 3.0 * x[:, 0]) + 0.1 * rng.normal(size=600)
    >>> model = SubspaceRegressor().fit(x, y)
    >>> model.n_clusters_, model.predict([[-0.5], [0.5]]).round(1)
    (2, array([ 1.5, -2.5]))
    >>> model.predict_interval([[0.5]], coverage=0.9).round(1)
    array([[-2.7, -2.3]])
    """

    _one_target: bool
    _target_names: list[Hashable]
    _experts: Experts | None
    _read: tuple[Mixture, Gaussians, NDArray[np.intp]] | None  # off which sums; what; how many factors

    def __init__(
        self,
        n_clusters: int = 20,
        component: str = "subspace",
        n_factors: int | None = None,
        matching: float = 0.0,
        half_life: float | None = None,
        seed: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.component = component
        self.n_factors = n_factors
        self.matching = matching
        self.half_life = half_life
        self.seed = seed

    # --- learning

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Forget everything and learn from all rows at once; ``y`` has one target per row, or several in columns."""
        self._check_settings()
        with self._whole_or_not():
            rows = self._rows(X, reset=True)
            targets, one = self._targets(y, len(rows))
            self._begin(rows.shape[1], targets.shape[1], one, [], [])
            self._learn_all(np.hstack([rows, targets]))
            self._take_experts(np.hstack([rows, targets]))
            self._functions()
        return self

    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn more rows, in order."""
        self._check_settings()
        self._check_streams()
        with self._whole_or_not():
            rows = self._rows(X, reset=not self._begun())
            targets, one = self._targets(y, len(rows))
            if not self._begun():
                self._begin(rows.shape[1], targets.shape[1], one, [], [])
            self._check_targets(targets)
            self._learn_more(np.hstack([rows, targets]))
        return self

    def learn_one(self, x: Mapping[Hashable, Any] | ArrayLike, y: float | Mapping[Hashable, Any] | ArrayLike) -> None:
        """Learn from a dict of named values, always of the same names, or from one row; ``y`` is a number, a dict of
        several targets, or a row of them.
        """
        self._check_settings()
        self._check_streams()
        with self._whole_or_not():
            row, names = self._one_row(x)
            target_names = list(y) if isinstance(y, Mapping) else []
            if isinstance(y, Mapping):
                known = self._target_names if self._begun() else target_names
                targets, one = values_of(y, known, "y")[None, :], False
            else:
                targets, one = self._targets(np.atleast_1d(np.asarray(y))[None, :], 1)[0], np.ndim(y) == 0
            if not self._begun():
                self._begin(row.shape[1], targets.shape[1], one, names, target_names)
            if bool(target_names) != bool(self._target_names):
                wanted = f"a dict of {self._target_names}" if self._target_names else "a number or a row"
                raise InvalidTarget(f"`y` must be {wanted}, as before; got {y!r}.")
            self._check_targets(targets)
            self._learn_more(np.hstack([row, targets]))

    def _begin(
        self, n_inputs: int, n_targets: int, one: bool, names: list[Hashable], target_names: list[Hashable]
    ) -> None:
        self._forget_all(n_inputs + n_targets)
        self._names, self._width = names, n_inputs
        self._one_target, self._target_names, self._experts, self._read = one, target_names, None, None

    def _n_inputs(self) -> int:
        return self._width

    def _shape(self) -> int:
        return SHAPES[self.component]

    def _learn_batch(self, rows: Matrix) -> Mixture:
        mixture = super()._learn_batch(rows)
        prior = mixture.prior
        return settled(rows, mixture, lambda sums: self._functions_of(sums, prior)[0], float(self.matching))

    def _functions_of(self, statistics: Statistics, prior: Prior) -> tuple[Gaussians, NDArray[np.intp]]:
        """Local functions, as Gaussians of inputs and targets, and how many factors each has."""
        if self.component == "subspace":
            most = self._width if self.n_factors is None else int(self.n_factors)
            made, factors, _ = subspace_functions_of(statistics, prior, most)
            return made, np.array([one.loadings.size for one in factors])
        n_factors = 0 if self.component == "radial" else self._width
        return local_regressions(statistics, prior), np.full(statistics.n.size, n_factors)

    def _functions(self) -> tuple[Gaussians, NDArray[np.intp]]:
        """Read off the sums when they are asked for: it takes longer than to learn a row."""
        mixture = self._known()
        if self._read is None or self._read[0] is not mixture:
            self._read = mixture, *self._functions_of(mixture.statistics, mixture.prior)
        return self._read[1:]

    def _take_experts(self, rows: Matrix) -> None:
        """Sharpen the gates of what was learnt from all rows."""
        if self.component == "experts":
            told, d = self._told(rows), self._width
            x, z = told[:, :d], told[:, d:]
            found = learn_experts(x, z, experts_from_gaussians(self._functions()[0], d, x), float(self.matching))
            n = np.exp(log_softmax(log_joint_of_experts(found, x, z), axis=1)).sum(axis=0)
            n = np.maximum(n, LEAST_ROWS)
            self._experts = found._replace(noise=predictive_noise(found.noise, n[:, None], np.array(d)))

    # --- what was learnt

    @property
    def n_factors_(self) -> NDArray[np.intp]:
        """How many directions of each cluster the targets depend on."""
        return self._functions()[1].copy()

    def _given(self, rows: Matrix) -> Conditional:
        """What inputs tell of targets, in the units of the targets that were learnt."""
        clusters, d = self._functions()[0], self._width  # first: those of few rows bring their units
        told = np.ascontiguousarray(scaled(rows, self._location[:d], self._scale[:d]))
        if self._experts is not None:
            chance = np.exp(gate_log_probabilities(self._experts, told))
            return Conditional(chance, expert_means(self._experts, told), self._experts.noise)
        return conditional(clusters, told, np.arange(self._location.size) >= d)

    def _asked(self, X: ArrayLike) -> Conditional:
        self._check_begun()
        return self._given(self._rows(X, reset=False))

    def _centre_and_unit(self) -> tuple[Vector, Vector]:
        """Of the targets."""
        return self._location[self._width :], self._scale[self._width :]

    def _moments(self, found: Conditional) -> tuple[Matrix, Matrix]:
        """Mean and deviation of each target."""
        (mean, variance), (centre, unit) = mixed(found), self._centre_and_unit()
        return centre + unit * mean, unit * np.sqrt(variance)

    def _quantiles(self, found: Conditional, probabilities: Vector) -> NDArray[np.float64]:
        centre, unit = self._centre_and_unit()
        return np.asarray(centre[:, None] + unit[:, None] * quantiles(found, probabilities))

    def predict(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Expected target of each row; with ``return_std``, also its predictive standard deviation."""
        mean, deviation = (self._formed(part) for part in self._moments(self._asked(X)))
        return (mean, deviation) if return_std else mean

    def predict_var(self, X: ArrayLike) -> NDArray[np.float64]:
        """Predictive variance of the target of each row."""
        return self._formed(self._moments(self._asked(X))[1] ** 2)

    def predict_interval(self, X: ArrayLike, coverage: float = 0.9) -> NDArray[np.float64]:
        """Central intervals that the targets fall into with this probability: the last axis is (low, high)."""
        tail = 0.5 * (1.0 - checked_coverage(coverage))
        return self._formed(self._quantiles(self._asked(X), np.array([tail, 1.0 - tail])))

    def predict_quantiles(self, X: ArrayLike, alpha: ArrayLike = (0.05, 0.5, 0.95)) -> NDArray[np.float64]:
        """Predictive quantiles: the last axis has one per probability in ``alpha``."""
        probabilities = np.atleast_1d(np.asarray(alpha, dtype=np.float64))
        if not np.all((probabilities > 0.0) & (probabilities < 1.0)):
            raise InvalidSpec(f"`alpha` must be probabilities between 0 and 1; got {alpha!r}.")
        return self._formed(self._quantiles(self._asked(X), probabilities))

    def predict_cluster(self, X: ArrayLike) -> NDArray[np.intp]:
        """The most probable cluster of each row, by its inputs."""
        best: NDArray[np.intp] = np.argmax(self._asked(X).chance, axis=1)
        return best

    def log_density(self, X: ArrayLike, y: ArrayLike) -> Vector:
        """Log density that was given to the target of each row."""
        found = self._asked(X)
        targets = self._targets(y, len(found.chance))[0]
        self._check_targets(targets)
        centre, unit = self._centre_and_unit()
        return log_density(found, scaled(targets, centre, unit)) - float(np.sum(np.log(unit)))

    def predict_one(self, x: Mapping[Hashable, Any] | ArrayLike) -> Any:
        """Expected target of a dict of named values or of one row; 0 before anything was learnt."""
        if not self._begun():
            return 0.0
        mean = self._moments(self._given(self._one_row(x)[0]))[0][0]
        if self._target_names:
            return dict(zip(self._target_names, mean.tolist(), strict=True))
        return float(mean[0]) if self._one_target else mean

    def _formed(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of one target as it came: without an axis for targets."""
        return values[:, 0] if self._one_target else values

    def plot(self, X: ArrayLike | None = None, y: ArrayLike | None = None) -> Figure:
        """What is expected along one input, and the central 90 %, with rows if given; needs ``bayou[plot]``."""
        from bayou.estimators.mixture_plots import names_of  # noqa: PLC0415  # needs the extra
        from bayou.estimators.regression_plots import plot_regression  # noqa: PLC0415  # needs the extra

        self._check_begun()
        clusters, n_targets = self._functions()[0], self._location.size - self._width
        if (self._width, n_targets) != (1, 1):
            raise InvalidSpec(f"a picture is of one input and one target; there are {self._width} and {n_targets}.")
        rows = None
        if X is not None and y is not None:
            inputs = self._rows(X, reset=False)
            rows = np.hstack([inputs, self._targets(y, len(inputs))[0]])
        centres, deviations = clusters.mean[:, 0], np.sqrt(clusters.covariance[:, 0, 0])
        ends = np.array([np.min(centres - 2.0 * deviations), np.max(centres + 2.0 * deviations)])
        low, high = self._location[0] + self._scale[0] * ends if rows is None else (rows[:, 0].min(), rows[:, 0].max())
        return plot_regression(self._line, (float(low), float(high)), str(names_of(self)[0]), rows)

    def _line(self, inputs: Vector) -> tuple[Vector, Matrix]:
        """Mean and central 90 % along one input."""
        found = self._given(inputs[:, None])
        return self._moments(found)[0][:, 0], self._quantiles(found, np.array([0.05, 0.95]))[:, 0]

    # --- what comes in

    def _targets(self, y: ArrayLike, n: int | None) -> tuple[Matrix, bool]:
        """Targets as columns, and whether they came as one without a column."""
        if y is None:
            raise InvalidTarget(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        try:
            targets = np.asarray(y, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidTarget(f"`y` must be numbers; got {np.asarray(y, dtype=object).ravel()[:1]!r}.") from None
        if targets.ndim not in (1, 2) or (n is not None and len(targets) != n) or 0 in targets.shape:
            raise ShapeMismatch(
                f"`y` must have one target per row, or a row of them; got shape {targets.shape} for {n}."
            )
        if not np.isfinite(targets).all():
            row = int(np.argwhere(~np.isfinite(targets))[0][0])
            raise InvalidTarget(f"targets must be finite, not NaN or infinity; got {targets[row]} in row {row}.")
        check_magnitude(targets[:, None] if targets.ndim == 1 else targets)
        return (targets[:, None], True) if targets.ndim == 1 else (targets, False)

    def _check_targets(self, targets: Matrix) -> None:
        wanted = self._location.size - self._width
        if targets.shape[1] != wanted:
            raise ShapeMismatch(f"rows must have {wanted} targets, as before; got {targets.shape[1]}.")

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.component not in SHAPES:
            raise InvalidSpec(f"`component` must be one of {', '.join(SHAPES)}; got {self.component!r}.")
        if self.n_factors is not None:
            self._check_whole("n_factors", 0)

    def _check_streams(self) -> None:
        if self.component == "experts":
            raise InvalidSpec(
                "`component` must be another than 'experts' for a stream: its gates are learnt from all rows at once "
                "(`fit`); 'alternative_experts' has gates that follow a stream."
            )
        if self._begun() and (self._belief is not None or self._mixture is not None):
            prior = self._prior if self._mixture is None else self._mixture.prior
            changed = prior.shape != self._shape() or self._experts is not None
            if changed:
                raise InvalidSpec(f"`component` must stay what it was, or `fit` begin anew; got {self.component!r}.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    # --- as data

    def to_state(self) -> State:
        """All that this estimator is, as data."""
        config: dict[str, Any] = {"params": self.get_params(deep=False), "begun": self._begun()}
        if not self._begun():
            return State(config, {})
        rows, arrays = self._mixture_as_data()
        config |= rows | {"one_target": self._one_target, "target_names": self._target_names}
        if self._experts is not None:
            arrays |= {f"experts.{name}": part for name, part in self._experts._asdict().items()}
        return State(config, arrays)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The estimator that this data describes; it continues to the last bit."""
        config, arrays = state
        model = cls(**config["params"])
        if not config["begun"]:
            return model
        model._check_settings()
        d, width = arrays["location"].size, int(config["width"])
        require(0 < width < d, "width")
        names = [tuple(name) if isinstance(name, list) else name for name in config["target_names"]]
        require(len(names) in (0, d - width), "target_names")
        require(d - width == 1 or not config["one_target"], "one_target")
        model._begin(width, d - width, bool(config["one_target"]), [], names)
        model._mixture_from_data(config, arrays)
        if model.component == "experts":
            if "experts.gate" not in arrays:
                raise ModelFileError("`experts` must be there, if `component` is 'experts'.")
            k = model._known().statistics.n.size
            shapes = ((k, 1 + width), (k, 1 + width, d - width), (k, d - width))
            parts = (
                cls._array(arrays, f"experts.{name}", shape)
                for name, shape in zip(Experts._fields, shapes, strict=True)
            )
            model._experts = Experts(*parts)
            require(bool(np.all(model._experts.noise > 0.0)), "experts.noise")
        return model
