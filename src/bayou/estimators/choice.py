"""The posterior "auto": every correlation while that can be afforded, then the strongest, or none."""

from __future__ import annotations

from typing import Any, NamedTuple

from bayou.contracts import Posterior
from bayou.members import Member
from bayou.posteriors import DiagonalGaussian, LowRankGaussian

AUTO = "auto"
MOST_FULL = 1000  # columns, of which every correlation is kept
RANK = 10
MOST_BYTES = 2**28  # of the strongest correlations


class Choice(NamedTuple):
    """A posterior, why it was chosen, and how much narrower its prior is than that of few columns; or the members of a
    bank, of which each has every correlation.
    """

    posterior: Posterior[Any]
    why: str
    narrower: float = 1.0
    members: tuple[Member, ...] = ()


def choose(full: Posterior[Any], sparse: Posterior[Any], n_columns: int, is_sparse: bool) -> Choice:
    """For rows of so many columns; ``full`` and ``sparse`` are what an estimator takes for few columns and many.

    Beyond a thousand columns the prior of each weight narrows as they become more, so that what a row is expected to
    be stays of one size.
    """
    count = f"{n_columns:,} columns"
    if n_columns <= MOST_FULL:
        return Choice(full, f"every correlation between weights: {count}, at most {MOST_FULL:,}")
    if is_sparse:
        return Choice(sparse, f"each weight by itself: sparse rows of {count}, more than {MOST_FULL:,}")
    narrower = MOST_FULL / n_columns
    variance = narrower * full.prior_variance  # type: ignore[attr-defined]  # every default has one
    n_bytes = 8 * (2 * RANK + 2) * n_columns
    if n_bytes <= MOST_BYTES:
        why = f"the {RANK} strongest correlations: {count}, more than {MOST_FULL:,}"
        return Choice(LowRankGaussian(rank=RANK, prior_variance=variance), why, narrower)
    why = f"each weight by itself: {count}, of which even the {RANK} strongest correlations take {n_bytes:,} bytes"
    return Choice(DiagonalGaussian(prior_variance=variance), why, narrower)
