"""How fast rows are learnt."""

from __future__ import annotations

import time
from collections import deque


class Rate:
    """Rows per second, of the last ten seconds or so."""

    def __init__(self) -> None:
        self.total = 0
        self._parts: deque[tuple[float, int]] = deque(maxlen=1000)

    def add(self, rows: int) -> None:
        """So many more."""
        self.total += rows
        if rows:
            self._parts.append((time.monotonic(), rows))

    def now(self) -> float:
        """As of now."""
        since = time.monotonic() - 10.0
        recent = [(at, rows) for at, rows in list(self._parts) if at >= since]
        if not recent:
            return 0.0
        return sum(rows for _, rows in recent) / max(time.monotonic() - recent[0][0], 0.25)
