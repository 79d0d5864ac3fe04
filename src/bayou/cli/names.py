"""Names of columns, as they are written in one word."""

from __future__ import annotations


def split(names: str) -> tuple[str, ...]:
    """Those that commas separate."""
    return tuple(name.strip() for name in names.split(",") if name.strip())
