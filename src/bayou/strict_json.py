"""JSON in the strict sense: keys come once, and numbers are finite."""

from __future__ import annotations

import json
import math
import reprlib
from typing import Any


def loads(text: str) -> Any:
    """What a text says; raises ValueError, or RecursionError, where it is not such JSON.

    >>> loads('{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    """
    return json.loads(text, object_pairs_hook=_unique, parse_constant=_finite, parse_float=_finite)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError(f"a key may come once; got {reprlib.repr([key for key, _ in pairs])}")
    return dict(pairs)


def _finite(text: str) -> float:
    if not math.isfinite(float(text)):
        raise ValueError(f"numbers must be finite; got {text[:40]}")
    return float(text)
