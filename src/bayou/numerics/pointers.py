"""The calls by which kernels reach each other: a rule its likelihood, a learning pass its rule.

Each takes the table of addresses that `bayou.learner` makes, then the arguments of the kernel (see `bayou.contracts`).
"""

from functools import cache
from typing import Any

from bayou.contracts import Rule, ScalarLikelihood, Vector, VectorLikelihood
from bayou.numerics.jit import Pointer, addresses, kernel

SITE = Pointer(0, ("addresses", "float", "float", "float", "numbers"), returns=3)
LOG_DENSITY = Pointer(1, ("float", "float", "numbers"), returns=3)
LOG_EVIDENCE = Pointer(2, ("addresses", "float", "float", "float", "numbers"), returns=4)
EXPECTED_LOG_DENSITY = Pointer(3, ("addresses", "float", "float", "float", "numbers"), returns=3)
MOVE = Pointer(4, ("addresses", "float", "float", "float", "numbers"), returns=4)
MOVE_FOUR = Pointer(5, ("float", "numbers", "vector", "vector", "vector", "vector"), returns=1)

call_site = SITE.caller
call_log_density = LOG_DENSITY.caller
call_log_evidence = LOG_EVIDENCE.caller
call_expected_log_density = EXPECTED_LOG_DENSITY.caller
call_move = MOVE.caller
call_move_four = MOVE_FOUR.caller

VECTOR_SITE = Pointer(0, ("addresses", "float", *["vector"] * 5), returns=1)
VECTOR_LOG_DENSITY = Pointer(1, ("float", *["vector"] * 4), returns=1)
VECTOR_LOG_EVIDENCE = Pointer(2, ("float", *["vector"] * 6), returns=1)
VECTOR_EXPECTED_LOG_DENSITY = Pointer(3, ("float", *["vector"] * 5), returns=1)

call_vector_site = VECTOR_SITE.caller
call_vector_log_density = VECTOR_LOG_DENSITY.caller
call_vector_log_evidence = VECTOR_LOG_EVIDENCE.caller
call_vector_expected_log_density = VECTOR_EXPECTED_LOG_DENSITY.caller


@kernel
def move(kernels: Any, y: float, mean: float, variance: float, params: Vector) -> tuple[float, float, float, float]:
    """log E p or NaN, and what a site does to its latent: how the mean and the variance move, and what is kept of it.

    The mean gains variance * step, the variance loses variance^2 * spread: it keeps the share 1 - variance * spread.
    """
    value, slope, precision = call_site(kernels, kernels, y, mean, variance, params)
    kept = 1.0 / (1.0 + precision * variance)
    return value, slope * kept, precision * kept, kept


def scalar_kernels(likelihood: ScalarLikelihood, rule: Rule) -> Any:
    """Addresses of a rule and of the likelihood that it asks."""
    return addresses(
        [
            (SITE, rule.site),
            (LOG_DENSITY, likelihood.log_density),
            (LOG_EVIDENCE, likelihood.log_evidence),
            (EXPECTED_LOG_DENSITY, likelihood.expected_log_density),
            (MOVE, likelihood.log_evidence if rule.matches_moments else move),
            (MOVE_FOUR, likelihood.log_evidence_four if rule.matches_moments else None),
        ]
    )


@cache
def _likelihood_kernels(likelihood: type[ScalarLikelihood]) -> Any:
    return addresses(
        [
            (LOG_DENSITY, likelihood.log_density),
            (LOG_EVIDENCE, likelihood.log_evidence),
            (EXPECTED_LOG_DENSITY, likelihood.expected_log_density),
        ]
    )


def likelihood_kernels(likelihood: ScalarLikelihood) -> Any:
    """Addresses of a likelihood alone, for those who ask it without a rule."""
    return _likelihood_kernels(type(likelihood))


def vector_kernels(likelihood: VectorLikelihood, rule: Rule) -> Any:
    """Addresses of a rule and of the likelihood of several latents that it asks."""
    return addresses(
        [
            (VECTOR_SITE, rule.vector_site),
            (VECTOR_LOG_DENSITY, likelihood.log_density),
            (VECTOR_LOG_EVIDENCE, likelihood.log_evidence),
            (VECTOR_EXPECTED_LOG_DENSITY, likelihood.expected_log_density),
        ]
    )
