"""Predictions that wait for their labels, the oldest first, and how much text waits with them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, NamedTuple


class Waiting(NamedTuple):
    """One of them: which forecast of the estimator it is, when it was made, of classes what it said, and how many
    letters of text its row has.
    """

    forecast: int
    at: float
    said: dict[Any, float] | None
    letters: int = 0


class WaitingLabels:
    """All of a model, by the ids that they were given."""

    def __init__(self) -> None:
        self._each: OrderedDict[str, Waiting] = OrderedDict()
        self.letters = 0

    def __len__(self) -> int:
        return len(self._each)

    def __contains__(self, id: str) -> bool:
        return id in self._each

    def __getitem__(self, id: str) -> Waiting:
        return self._each[id]

    def __iter__(self) -> Iterator[tuple[str, Waiting]]:
        return iter(self._each.items())

    def add(self, id: str, one: Waiting) -> None:
        """Let one wait, after all others."""
        self._each[id] = one
        self.letters += one.letters

    def take(self, id: str) -> Waiting:
        """One waits no longer."""
        one = self._each.pop(id)
        self.letters -= one.letters
        return one

    def clear(self) -> None:
        """None of them does."""
        self._each.clear()
        self.letters = 0
