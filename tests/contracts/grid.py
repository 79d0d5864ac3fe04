"""The grid, found from `__all__`: a component that is added is met by every test here."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from bayou import likelihoods, posteriors, rules
from bayou.contracts import Latent, Likelihood, Posterior, Rule, VectorLikelihood
from bayou.contracts.fit import check_fit
from bayou.errors import InvalidSpec
from bayou.numerics.jit import COMPILED

LIKELIHOODS: list[Likelihood] = [getattr(likelihoods, name)() for name in likelihoods.__all__]
RULES: list[Rule] = [getattr(rules, name)() for name in rules.__all__]
POSTERIORS: list[Posterior[Any]] = [
    *(getattr(posteriors, name)() for name in posteriors.__all__),
    posteriors.FullGaussian(dtype="float32"),
    posteriors.DiagonalGaussian(projection="precision"),
    posteriors.LowRankGaussian(rank=2),
]
SCALAR = [likelihood for likelihood in LIKELIHOODS if not isinstance(likelihood, VectorLikelihood)]


def fits(likelihood: Likelihood, posterior: Posterior[Any], rule: Rule) -> bool:
    """Whether a learner can be made of the three; the refusals themselves are tested in test_learners."""
    try:
        check_fit(likelihood, posterior, rule)
    except InvalidSpec:
        return False
    return True


def points(
    of_likelihoods: list[Likelihood] = LIKELIHOODS,
    of_posteriors: list[Posterior[Any]] = POSTERIORS,
    of_rules: list[Rule] = RULES,
) -> list[Any]:
    """All points of the grid that exist, as pytest parameters."""
    product = itertools.product(of_likelihoods, of_posteriors, of_rules)
    return [pytest.param(*point, id="-".join(map(repr, point))) for point in product if fits(*point)]


def draw_targets(likelihood: Likelihood, n: int, rng: np.random.Generator) -> np.ndarray:
    """Targets that the likelihood gives around a latent of mean 0 and variance 1, by inverting its predictive."""
    shape = (1, likelihood.n_latents) if isinstance(likelihood, VectorLikelihood) else (1,)
    latent = Latent(np.zeros(shape), np.ones(shape))
    return likelihood.quantiles(latent, rng.uniform(0.02, 0.98, n))[0]


def rows_for(likelihood: Likelihood, n: int) -> int:
    """Fewer rows where nothing is compiled and each costs an integral."""
    if COMPILED:
        return n
    return min(n, 4 if isinstance(likelihood, VectorLikelihood) else 12)
