"""A few rows as features without a table between: what `TableLayout.encode` gives, in a hundredth of the time.

Only what is plain is told this way: numbers and categories with columns of their own. Of all else None is returned, and
a table says what is right, or wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayou.contracts import Matrix
from bayou.encoders.standardizer import LARGEST
from bayou.service.rows import Row, text_of


def quick_features(layout: Any, rows: Sequence[Row]) -> Matrix | None:
    """Features of rows of JSON's types, or None where a table must be made of them."""
    if layout.hashed or layout.clocks or layout.pairs or layout.basis is not None or layout.buckets:
        return None
    features = np.zeros((len(rows), len(layout.names)))
    at = 0
    for name, kind in layout.kinds.items():  # numbers come first, in this order
        if kind == "number":
            for place, row in enumerate(rows):
                value = row.get(name)
                if value is None:
                    features[place, at] = np.nan
                elif type(value) is str or not -LARGEST <= value <= LARGEST:
                    return None
                else:
                    features[place, at] = value
            at += 1
        elif kind == "category":
            known = layout.categories.get(name, {})
            for place, row in enumerate(rows):
                text = text_of(row.get(name)) or ""
                if not text.isprintable():  # what is a blank there, polars says
                    return None
                column = known.get(text.strip(), -1)
                if column >= 0:
                    features[place, column] = 1.0
        else:
            return None
    return features
