"""READ FIRST. The abstractions that every part of bayou is made of.

A model has a latent ``f = w . x``, a belief ``q(w)`` and a likelihood ``p(y | f)``. Whatever the approximation, one
example tells the belief two numbers, a slope and a precision, together called a *site*:

    marginal    mean = w . x,  variance = x' C x                    the belief, seen through one example
    site        slope, precision                                    from the likelihood, by a rule
    absorb      gain = 1 / (1 + precision * variance)
                w += gain * slope * C x        C -= gain * precision * (C x)(C x)'

Likelihoods, rules and posteriors never see each other: they meet in `bayou.learner`. There are three kinds of things:

    spec      a frozen dataclass: hyper-parameters only, equal by value, ``eval(repr(spec)) == spec``
    belief    a NamedTuple of arrays, owned by one learner; only learn, absorb and forget write into it
    kernel    a module-level compiled function: numbers and arrays in, numbers out; never raises
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import fields
from statistics import NormalDist
from typing import Any, ClassVar, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from bayou.errors import ImproperBelief, InvalidSpec, InvalidTarget

Array: TypeAlias = NDArray[np.floating[Any]]
Vector: TypeAlias = NDArray[np.float64]
Matrix: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Kernel: TypeAlias = Callable[..., Any]
B = TypeVar("B", bound=tuple[Any, ...])


class Latent(NamedTuple):
    """The belief seen through some examples: what a posterior tells a likelihood.

    ``mean`` and ``variance`` have one entry per example, or one row per example for likelihoods of several latents.
    Where the noise is learnt, ``variance`` is in units of the noise, whose scale is known as ``noise`` with so many
    ``degrees`` of freedom.
    """

    mean: Vector
    variance: Vector
    noise: Vector | float = 1.0
    degrees: Vector | float = np.inf


class State(NamedTuple):
    """All of a model, as data: what `bayou.save` writes. Models have ``to_state()`` and ``from_state(state)``.

    ``config`` holds JSON's types, specs, small arrays, the names of code, and dictionaries and lists of these;
    ``arrays`` are named with dots.
    """

    config: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


class Code(NamedTuple):
    """A function that the user wrote, in the place of the function: a model file knows it by name alone."""

    name: str


class Spec(ABC):
    """A frozen dataclass of hyper-parameters."""


class Schedule(Spec):
    """How large the steps of a perceptron are, by the examples per weight seen so far or by its own mistakes."""

    @property
    @abstractmethod
    def numbers(self) -> Vector:
        """What the belief keeps of it, and `bayou.numerics.schedules.rate` reads."""


class Stiffness(Spec):
    """How reluctantly a function changes, as examples are learnt: the precision of what is known of it."""

    @abstractmethod
    def numbers(self, n_functions: int) -> Vector:
        """What the belief keeps of it, and `bayou.numerics.stiffness` reads."""


class Basis(Spec):
    """Functions over a box: a latent that is not linear in its inputs, but linear in the weights of these.

    They are learnt through combinations of them that are orthonormal over the box: the mean of psi_j psi_k, with all of
    the box alike, is 1 if j = k, else 0. So the squared length of the weights is the mean square of the function, and
    moving a weight changes the function by as much as moving any other.
    """

    @property
    @abstractmethod
    def box(self) -> tuple[tuple[float, float], ...]:
        """Per input, the least and the largest value that it takes."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many orthonormal functions there are: the number of features."""

    @abstractmethod
    def encode(self, rows: Matrix) -> Matrix:
        """The orthonormal functions at some inputs, which must lie in the box: (row, function)."""

    @property
    @abstractmethod
    def roughness(self) -> Vector:
        """Per orthonormal function the mean of |slope|^2 / 6, each input in units of its side of the box: 2 for a line.

        Slopes of different functions are orthogonal too, so this tells all of it.
        """

    @property
    @abstractmethod
    def means(self) -> Vector:
        """The mean of each orthonormal function over the box."""

    @abstractmethod
    def functions(self, rows: Matrix) -> Matrix:
        """The functions that the user named, as they are: (row, function)."""

    @abstractmethod
    def gram(self) -> Matrix:
        """The mean of phi_j phi_k over the box, of the functions as they are."""

    def gram_band(self) -> Matrix:
        """The same, a row per function j: its product with itself, then with the functions j + 1, j + 2, ... as far as
        any two overlap, and zeros beyond the last function. Narrow for functions that are local.
        """
        gram = self.gram()
        n = len(gram)
        band = np.zeros((n, n))
        for j in range(n):
            band[j, : n - j] = gram[j, j:]
        return band

    @abstractmethod
    def coefficients(self, weights: Vector) -> Vector:
        """Weights of the orthonormal functions, told as weights of the functions as they are."""

    @abstractmethod
    def grown(self, box: tuple[tuple[float, float], ...]) -> tuple[Basis, Matrix]:
        """A basis over a box that holds this one and the other, and what the old functions are in it.

        In the old box, the old orthonormal functions are the matrix times the new ones: what was learnt can be told in
        the new ones as it is.
        """


class Growth(NamedTuple):
    """What becomes of features whose functions get a wider box: in the old box, old = forward @ new, new = back @ old.

    ``share`` is what the old box is of the new one.
    """

    forward: Matrix
    back: Matrix
    share: float


class Likelihood(Spec):
    """p(y | f), and what it predicts for y when f is known as a `Latent`."""

    target_range: ClassVar[tuple[float, float]] = (-np.inf, np.inf)
    smooth: ClassVar[bool] = True  # log p has a slope everywhere; without one only moment matching applies
    normalised: ClassVar[bool] = True  # sums to one over y; if not, the evidence is no log probability of the targets
    scales_with_noise: ClassVar[bool] = False  # a Gaussian in f, so that a posterior may learn the noise
    targets_are: ClassVar[str] = "that are finite numbers"
    n_latents: int = 1

    @property
    def params(self) -> Vector:
        """The numbers that the kernels read: the fields, in order."""
        values = [np.ravel(np.asarray(getattr(self, field.name), dtype=np.float64)) for field in fields(self)]  # type: ignore[arg-type]  # every spec is a dataclass
        return np.concatenate(values) if values else np.zeros(0)

    @abstractmethod
    def accepts(self, targets: Vector) -> Mask:
        """Which targets this likelihood can produce."""

    def accepts_one(self, y: float) -> bool:
        """The same for one target, for likelihoods that can tell faster."""
        return bool(self.accepts(np.array([y]))[0])

    @abstractmethod
    def moments(self, latent: Latent) -> tuple[Vector, Vector]:
        """Predictive mean and variance of y, per example."""

    @abstractmethod
    def quantiles(self, latent: Latent, probabilities: Vector) -> Matrix:
        """Predictive quantiles of y: a row per example, a column per probability."""

    @abstractmethod
    def log_probability(self, targets: Vector, latent: Latent) -> Vector:
        """Log predictive density or probability of each target."""

    def log_weight(self, targets: Vector, latent: Latent) -> Vector:
        """Log evidence of each target: its log probability, unless this likelihood is not normalised."""
        return self.log_probability(targets, latent)

    def check_targets(self, targets: Vector) -> None:
        """Raise unless every target is one that this likelihood can produce."""
        refused = ~self.accepts(targets)
        if refused.any():
            row = int(np.argmax(refused))
            low, high = self.target_range
            raise InvalidTarget(
                f"{self!r} takes targets {self.targets_are}, in [{low:g}, {high:g}]; got {targets[row]} in row {row}."
            )


class ScalarLikelihood(Likelihood):
    """p(y | f) for one latent. Its kernels:

    ``log_density(y, f, params)``
        log p(y | f), its slope in f, and minus its curvature in f.
    ``log_evidence(kernels, y, mean, variance, params)``
        The same three for log E p(y | f) under f ~ N(mean, variance), in the mean; and the fraction of the latent's
        variance that is left once y is known, ``1 - variance * (minus curvature)``, computed without cancellation.
    ``expected_log_density(kernels, y, mean, variance, params)``
        E log p(y | f), its slope, minus its curvature, in the mean.

    ``kernels`` is the table of addresses (`bayou.numerics.pointers`) through which one kernel calls another: where
    there is no closed form, ``log_evidence = staticmethod(log_evidence_by_quadrature)`` says so openly.
    """

    log_density: ClassVar[Kernel]
    log_evidence: ClassVar[Kernel]
    expected_log_density: ClassVar[Kernel]


class VectorLikelihood(Likelihood):
    """p(y | f) for ``n_latents`` latents, independent of each other under the belief. Its kernels write per latent:

    ``log_density(y, f, params, slope, curvature)``
        Returns log p(y | f).
    ``log_evidence(y, mean, variance, params, slope, curvature, kept)``
        Returns log E p(y | f).
    ``expected_log_density(y, mean, variance, params, slope, curvature)``
        Returns E log p(y | f).

    Only the diagonal of the curvature is asked for: the belief keeps the latents independent, and the projection of
    a site on such a belief is its diagonal.
    """

    log_density: ClassVar[Kernel]
    log_evidence: ClassVar[Kernel]
    expected_log_density: ClassVar[Kernel]


class Rule(Spec):
    """How one target becomes a site. Its kernels:

    ``site(kernels, y, mean, variance, params)``
        log E p(y | f) if the rule computes it, else NaN; slope; precision.
    ``vector_site(kernels, y, mean, variance, params, slope, precision)``
        The same for several latents; writes slope and precision.

    A rule guarantees ``1 + precision * variance > 0`` and finite numbers, for every likelihood, at every input.
    """

    needs_slope: ClassVar[bool] = True  # refuses likelihoods that are not smooth
    site: ClassVar[Kernel]
    vector_site: ClassVar[Kernel]


class Function(Spec):
    """f(x; w): a latent, or several, that are not linear in the weights. A learner sees it through its tangent at the
    mean of the weights, in which it is linear again, with the gradient in place of the features.

    What is compiled has the kernel ``linearize(layout, weights, features, values, jacobian, inputs)``: it writes the
    value of each latent, its gradient in the weights (a row per latent, one after the other), and, unless ``inputs`` is
    empty, its gradient in the features. What is not (``linearize`` is None) has `linearized` alone.
    """

    linearize: ClassVar[Kernel | None] = None
    n_outputs: int = 1

    @abstractmethod
    def n_weights(self, n_features: int) -> int:
        """How many weights there are."""

    @abstractmethod
    def start(self, n_features: int) -> tuple[Vector, Vector]:
        """Mean and variance of each weight before any example. The mean must break what symmetry there is."""

    @abstractmethod
    def linearized(self, weights: Vector, rows: Matrix) -> tuple[Matrix, NDArray[np.float64]]:
        """Values (row, latent) and gradients in the weights (row, latent, weight)."""

    def layout(self, n_features: int) -> Vector:
        """The numbers that the kernel reads."""
        return np.array([float(n_features)])


class Posterior(Spec, Generic[B]):
    """A family of beliefs about the weights. Its kernels:

    ``predict(belief, features, missing, record)``
        Record mean and variance of the latent of each row (and noise and degrees, if it learns the noise).
    ``learn(belief, kernels, params, features, missing, targets, weights, record)``
        Absorb the rows in order; record what `predict` would have said before each, and in the last column
        log E p(y | f). Returns how many rows were absorbed: fewer than given if one has no finite latent.
    ``learn_vector``
        The same with a leading axis of latents on every array of the belief and on the record.

    `bayou.numerics.passes` makes all three from ``marginal``, ``scatter`` and ``absorb``. A missing feature (True in
    ``missing``, 0 in ``features``) is one of mean 0 and variance 1, independent of the rest.
    """

    n_records: int = 3
    learns_noise: bool = False
    is_point: ClassVar[bool] = False  # knows weights, but not how sure they are
    needs_slope: ClassVar[bool] = False  # refuses likelihoods that are not smooth
    needs_signs: ClassVar[bool] = False  # refuses likelihoods whose targets are not -1 or +1
    needs_errors: ClassVar[bool] = False  # refuses likelihoods that are not Gaussian in the latent
    asks_evidence: ClassVar[bool] = False  # asks the likelihood itself, as moment matching does: no other rule applies
    predict: ClassVar[Kernel]
    learn: ClassVar[Kernel]
    learn_vector: ClassVar[Kernel | None] = None  # None: one latent only
    tangents: ClassVar[Any] = None  # passes of `bayou.numerics.tangents`, for a `Function`; None: linear latents only

    @abstractmethod
    def prior(self, n_features: int) -> B:
        """The belief before any example."""

    def check(self, belief: B) -> None:  # most beliefs are right as soon as their shapes are
        """Raise unless a belief from elsewhere, of the right shapes, is one that kernels may trust."""

    @abstractmethod
    def absorb(self, belief: B, features: Vector, slope: float, precision: float) -> None:
        """Move the belief by one site, in place."""

    @abstractmethod
    def covariance(self, belief: B) -> Matrix:
        """Covariance of the weights."""

    @abstractmethod
    def variances(self, belief: B) -> Vector:
        """Variance of each weight."""

    @abstractmethod
    def sample(self, belief: B, n: int, seed: int | np.random.Generator) -> Matrix:
        """So many draws of the weights, one per row."""

    @abstractmethod
    def log_density(self, belief: B, weights: Vector) -> float:
        """Log density of the belief at some weights."""

    def intervals(self, belief: B, coverage: float) -> Matrix:
        """Central interval of each weight: a row (low, high) per weight. Gaussian unless a family says otherwise."""
        reach = NormalDist().inv_cdf(0.5 + 0.5 * coverage) * np.sqrt(self.variances(belief))
        mean: Vector = belief.mean  # type: ignore[attr-defined]  # every belief has a mean
        return np.column_stack([mean - reach, mean + reach])

    def sign_probability(self, belief: B) -> Vector:
        """Probability that each weight has the sign of its mean. Gaussian unless a family says otherwise."""
        mean: Vector = belief.mean  # type: ignore[attr-defined]  # every belief has a mean
        distance = np.abs(mean) / np.sqrt(self.variances(belief))
        return np.array([NormalDist().cdf(value) for value in distance])

    @abstractmethod
    def forget(self, belief: B, discount: float = 1.0, diffusion: float = 0.0) -> None:
        """Let go of the past, in place.

        ``discount`` keeps that fraction of what was learnt beyond the prior (exponential forgetting). ``diffusion`` is
        the variance that each weight gains in a random walk; no weight becomes less certain than the prior had it.
        """

    @abstractmethod
    def transform(self, belief: B, scale: Vector, shift: Vector) -> None:
        """Make it the belief about ``scale * w``, with ``shift . w`` added to the first weight, in place.

        Of the correlations that the sum brings, a family keeps those that it has.
        """

    def retell(self, belief: B, scale: Vector, shift: Vector) -> None:
        """Tell what was learnt in new coordinates, as by `transform`; the prior is then that of the new ones."""
        prior = self.prior(scale.size)
        self.transform(belief, scale, shift)
        self.transform(prior, scale, shift)
        try:
            kept = self.subtract(belief, prior)
        except ImproperBelief:  # the old prior hides what was learnt beyond the digits there are: it stays
            return
        for array, value in zip(belief, kept, strict=True):
            array[...] = value

    def recast(self, belief: B, before: Posterior[B], growth: Growth) -> B:
        """What a belief of this family, but of functions over a smaller box, becomes over the wider one."""
        raise InvalidSpec(f"{self!r} cannot be told in other functions; its domain cannot grow.")

    @abstractmethod
    def merge(self, shards: Sequence[B]) -> B:
        """The prior, times what each shard learnt beyond it."""

    @abstractmethod
    def subtract(self, belief: B, part: B) -> B:
        """The belief without what the part learnt beyond the prior."""
