"""Which likelihoods, posteriors and rules can work together."""

from __future__ import annotations

from typing import Any

from bayou.contracts.likelihoods import Likelihood, Rule, VectorLikelihood
from bayou.contracts.posteriors import Posterior
from bayou.errors import InvalidSpec


def check_fit(likelihood: Likelihood, posterior: Posterior[Any], rule: Rule) -> None:
    """Raise unless the three can work together."""
    for name, part, kind in (
        ("likelihood", likelihood, Likelihood),
        ("posterior", posterior, Posterior),
        ("rule", rule, Rule),
    ):
        if not isinstance(part, kind):
            raise InvalidSpec(f"`{name}` must be a {kind.__name__}; got {part!r}.")
    if rule.needs_slope and not likelihood.smooth:
        raise InvalidSpec(f"{likelihood!r} has no slope for {rule!r} to follow; use MomentMatching().")
    if posterior.needs_slope and not likelihood.smooth:
        raise InvalidSpec(f"{likelihood!r} has no slope for {posterior!r} to follow.")
    if posterior.needs_signs and likelihood.target_range != (-1.0, 1.0):
        raise InvalidSpec(f"{posterior!r} learns targets -1 and +1; {likelihood!r} has others.")
    if posterior.needs_errors and not likelihood.scales_with_noise:
        raise InvalidSpec(f"{posterior!r} learns from errors, those of a Gaussian likelihood; got {likelihood!r}.")
    if posterior.asks_evidence and rule.needs_slope:
        raise InvalidSpec(f"{posterior!r} asks the likelihood itself, as MomentMatching() does; got {rule!r}.")
    if posterior.learns_noise and not likelihood.scales_with_noise:
        raise InvalidSpec(f"{posterior!r} learns the noise of a Gaussian likelihood; got {likelihood!r}.")
    if isinstance(likelihood, VectorLikelihood) and posterior.learn_vector is None:
        raise InvalidSpec(f"{posterior!r} knows one latent only; {likelihood!r} has {likelihood.n_latents}.")
