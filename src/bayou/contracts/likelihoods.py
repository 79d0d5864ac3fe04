"""p(y | f), and how a target becomes a site."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import fields
from typing import ClassVar

import numpy as np

from bayou.contracts.data import Kernel, Latent, Mask, Matrix, Spec, Vector
from bayou.errors import InvalidTarget


class Likelihood(Spec):
    """p(y | f), and what it predicts for y when f is known as a `Latent`."""

    target_range: ClassVar[tuple[float, float]] = (-np.inf, np.inf)
    smooth: ClassVar[bool] = True  # log p has a slope everywhere; without one only moment matching applies
    normalised: ClassVar[bool] = True  # sums to one over y; if not, the evidence is no log probability of the targets
    scales_with_noise: ClassVar[bool] = False  # a Gaussian in f, so that a posterior may learn the noise
    log_link: ClassVar[bool] = False  # the latent is the log of what is expected
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

    def moments_within_sight(self, latent: Latent, largest: Vector) -> tuple[Vector, Vector]:
        """The same where so much is the largest y so far; likelihoods with a log link expect nothing far beyond."""
        return self.moments(latent)

    @abstractmethod
    def quantiles(self, latent: Latent, probabilities: Vector) -> Matrix:
        """Predictive quantiles of y: a row per example, a column per probability."""

    @abstractmethod
    def cumulative(self, values: Vector, latent: Latent) -> Vector:
        """Predictive P(y <= value) of each example, for one value each, be it a target or not."""

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

    Who can tell four latents at once in less time than one after another has, for banks, besides:

    ``log_evidence_four(y, params, means, variances, blurs, said)``
        Of latents whose variances are sums, with the blur. Writes four log E p(y | f), then what that does to each
        latent as `bayou.numerics.pointers.move` has it: four steps, four spreads, and four shares that are kept.
        Returns 1, or 0 where one of the four must be asked alone.
    """

    log_density: ClassVar[Kernel]
    log_evidence: ClassVar[Kernel]
    expected_log_density: ClassVar[Kernel]
    log_evidence_four: ClassVar[Kernel | None] = None


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
    matches_moments: ClassVar[bool] = False  # the belief moves just as the derivatives of log E p(y | f) say
    site: ClassVar[Kernel]
    vector_site: ClassVar[Kernel]
