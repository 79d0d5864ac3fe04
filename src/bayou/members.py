"""What the members of a bank differ in, and what all of them may cost."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bayou.contracts import ScalarLikelihood, Spec
from bayou.errors import InvalidSpec
from bayou.likelihoods import Softmax
from bayou.numerics.priors import Scales, check_prior

__all__ = ["Budget", "Member", "Waves"]

SHAPES = ("cosine", "step")


@dataclass(frozen=True)
class Waves(Spec):
    """Random waves of the inputs, whose weights say how a function bends: cosines (random Fourier features), or of the
    ``shape`` "step" edges at random places, over which a function goes from one level to another and stays there.

    ``scale`` is how far inputs must move, together, for the function to become another: in units of their own, times
    the root of how many there are. ``amplitude`` is the prior variance of the function; of steps, far out. With
    ``inputs`` each wave looks at so many of them, drawn at random, and no more: of 1 the function is a sum of curves,
    one per input, of 2 a sum of surfaces, which take fewer rows to learn where the truth is one.
    """

    scale: float = 0.5
    n_waves: int = 60
    amplitude: float = 8.0
    seed: int = 0
    inputs: int | None = None
    shape: str = "cosine"

    def __post_init__(self) -> None:
        for name in ("scale", "amplitude"):
            value = getattr(self, name)
            if not (isinstance(value, (int, float)) and 0.0 < value < math.inf):
                raise InvalidSpec(f"`{name}` must be positive and finite; got {value!r}.")
        for name, least in (("n_waves", 1), ("seed", 0), ("inputs", 1)):
            value = getattr(self, name)
            if name == "inputs" and value is None:
                continue
            if not (isinstance(value, int) and value >= least):
                raise InvalidSpec(f"`{name}` must be a whole number, at least {least}; got {value!r}.")
        if self.shape not in SHAPES:
            raise InvalidSpec(f"`shape` must be one of {', '.join(map(repr, SHAPES))}; got {self.shape!r}.")


@dataclass(frozen=True)
class Member(Spec):
    """One way in which a stream may behave.

    Each weight walks: per step its variance grows by ``drift`` times its prior variance, and not beyond that. With a
    drift of 0 nothing is forgotten; with 1e-3 what was learnt a thousand rows ago counts for little. ``waves`` bend
    what is linear in the inputs; ``past`` is how many of the latest targets a member sees beside them, of which each
    latent of `Softmax` sees whether they were its own class; of counts it sees log(1 + y), of which a weight of 1 is no
    change. ``past_variance`` is the prior variance of their weights, if it is not that of the inputs, and ``past_mean``
    the prior mean of that of the latest. One that ``restarts`` begins anew now and then, and stands for a stream that
    has changed at that row. ``noise_memory`` is for how many rows the size of the noise is remembered by a member that
    learns it; None if the likelihood says it. Of counts it is noise of the log of what is expected: they vary more than
    their mean by as much as is found. Of numbers such noise may have heavy ``tails``: that of Student's t with so many
    degrees of freedom, of which targets far away tell little.

    One with ``jumps`` stands for targets that are far from where others would have them, who differ from it in nothing
    but their noise: any row may be such, with a probability that is learnt, and the next is theirs again. It learns its
    noise from these rows alone.

    >>> from bayou import FlipProbit, Gaussian, Member
    >>> Member(FlipProbit(flip_rate=0.1), drift=1e-4).drift
    0.0001
    >>> Member(Gaussian(), noise_memory=500.0).learns_noise
    True
    """

    likelihood: ScalarLikelihood | Softmax
    drift: float = 0.0
    prior_variance: Scales = 1.0
    waves: Waves | None = None
    past: int = 0
    restarts: bool = False
    noise_memory: float | None = None
    past_variance: float | None = None
    past_mean: float = 0.0
    tails: float = math.inf
    jumps: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.likelihood, (ScalarLikelihood, Softmax)):
            raise InvalidSpec(f"`likelihood` must be one of a single latent, or Softmax(); got {self.likelihood!r}.")
        if not (isinstance(self.drift, (int, float)) and 0.0 <= self.drift <= 1.0):
            raise InvalidSpec(f"`drift` must be from 0 to 1; got {self.drift!r}.")
        check_prior(0.0, self.prior_variance, "float64")
        if self.past_variance is not None:
            check_prior(0.0, self.past_variance, "float64")
        if not (self.waves is None or isinstance(self.waves, Waves)):
            raise InvalidSpec(f"`waves` must be Waves(...) or None; got {self.waves!r}.")
        if not (isinstance(self.past, int) and 0 <= self.past <= 64):
            raise InvalidSpec(f"`past` must be a whole number from 0 to 64; got {self.past!r}.")
        if not (isinstance(self.past_mean, (int, float)) and math.isfinite(self.past_mean)):
            raise InvalidSpec(f"`past_mean` must be a finite number; got {self.past_mean!r}.")
        for name in ("restarts", "jumps"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidSpec(f"`{name}` must be True or False; got {getattr(self, name)!r}.")
        self._check_noise()

    def _check_noise(self) -> None:
        if not (isinstance(self.tails, (int, float)) and self.tails > 0.0):
            raise InvalidSpec(f"`tails` must be degrees of freedom, above 0; got {self.tails!r}.")
        if self.noise_memory is None:
            if self.tails < math.inf:
                raise InvalidSpec(f"`tails` are of noise that is learnt, with a `noise_memory`; got {self.tails!r}.")
            if self.jumps:
                raise InvalidSpec("`jumps` are of members that learn their noise, with a `noise_memory`; got None.")
            return
        if not (isinstance(self.noise_memory, (int, float)) and self.noise_memory >= 1.0):
            raise InvalidSpec(
                f"`noise_memory` must be a number of rows, at least 1, or None; got {self.noise_memory!r}."
            )
        if self.jitters:
            if self.tails < math.inf or self.jumps:
                raise InvalidSpec(f"`tails` and `jumps` are of noise of numbers; got {self.likelihood!r}.")
        elif not self.likelihood.scales_with_noise or self.likelihood.params.tolist() != [1.0]:
            raise InvalidSpec(
                f"noise is learnt in units of it, with Gaussian(1.0), or of counts; got {self.likelihood!r}."
            )

    @property
    def learns_noise(self) -> bool:
        """Whether the size of the noise is learnt with the weights."""
        return self.noise_memory is not None and not self.jitters

    @property
    def jitters(self) -> bool:
        """Whether the size of noise of the latent itself is learnt, the log of what is expected."""
        return self.noise_memory is not None and bool(self.likelihood.log_link)

    @property
    def noise_kept(self) -> float:
        """The share of what is known of the noise that outlasts a row; -1 where it is not learnt."""
        return -1.0 if self.noise_memory is None else math.exp(-1.0 / self.noise_memory)

    def n_features(self, n_inputs: int) -> int:
        """How many features it has where there are so many inputs."""
        return n_inputs + self.past + (0 if self.waves is None else self.waves.n_waves)

    @property
    def n_latents(self) -> int:
        """One, or one per class."""
        return self.likelihood.n_latents


@dataclass(frozen=True)
class Budget(Spec):
    """What an estimator may spend: microseconds per row, roughly, once it has seen some hundred, and bytes.

    >>> from bayou import Budget, OnlineClassifier
    >>> model = OnlineClassifier(budget=Budget(microseconds=5.0))
    """

    microseconds: float = 50.0
    n_bytes: float = 2.0**28

    def __post_init__(self) -> None:
        for name in ("microseconds", "n_bytes"):
            value = getattr(self, name)
            if not (isinstance(value, (int, float)) and value > 0.0):
                raise InvalidSpec(f"`{name}` must be a number above 0; got {value!r}.")
