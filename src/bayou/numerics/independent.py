"""Beliefs about weights that are independent of each other, added up in natural parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayou.contracts import Vector
from bayou.errors import ImproperBelief


def combined(prior: Any, parts: Sequence[tuple[float, Any]]) -> tuple[Vector, Vector]:
    """Mean and variance of: prior + sum of share * (part - prior). Each has a mean and a variance per weight."""
    base = 1.0 / prior.variance.astype(np.float64)
    precision, shift = base.copy(), prior.mean * base
    for share, part in parts:
        own = 1.0 / part.variance.astype(np.float64)
        precision += share * (own - base)
        shift += share * (part.mean * own - prior.mean * base)
    if not np.all(precision > 0.0):
        worst = int(np.argmin(precision))
        raise ImproperBelief(
            f"a belief must have positive precisions; weight {worst} would have {precision[worst]:.3g}. "
            "Was something taken out that was never learnt?"
        )
    return shift / precision, 1.0 / precision
