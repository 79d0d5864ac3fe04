"""What a quick run leaves behind, for tests to ask."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple


class QuickRun(NamedTuple):
    """What the command left behind."""

    code: int
    rows: list[dict[str, Any]]
    folder: Path

    def find(self, item: str, part: str) -> dict[str, Any]:
        """The one claim about an item whose quantity contains this."""
        (row,) = [row for row in self.rows if row["item"] == item and part in row["quantity"]]
        return row
