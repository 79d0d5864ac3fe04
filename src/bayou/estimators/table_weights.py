"""How much each row of a table counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayou.contracts import Vector
from bayou.errors import InvalidFeatures, InvalidSpec
from bayou.numerics.files import polars
from bayou.numerics.sparse_table import SparseTable

MOST_WEIGHT = 1e9  # of a row: beside one that counts more, nothing else would


def weights_of(rows: Any, column: str | None, delay: int = 0) -> Vector | None:
    """Weights by a column, or those that sparse rows bring; none where all count alike."""
    if isinstance(rows, SparseTable):
        if delay and rows.weights is not None and (rows.weights != 1.0).any():
            raise InvalidSpec(f"targets that come late have no weights; got a delay of {delay} and importances.")
        return None if delay else rows.weights
    if column is None:
        return None
    if column not in rows.columns:
        raise InvalidFeatures(f"the table must have the column of weights {column!r}; got {rows.columns}.")
    try:
        weights: Vector = rows[column].cast(polars().Float64).to_numpy()
    except Exception as error:
        raise InvalidFeatures(f"weights must be numbers; got {rows[column].dtype}.") from error
    good = (weights >= 0.0) & (weights <= MOST_WEIGHT)
    if not good.all():
        told = f"finite, at least 0 and at most {MOST_WEIGHT:g}; got {weights[int(np.argmin(good))]}"
        raise InvalidFeatures(f"weights in {column!r} must be {told}.")
    return weights
