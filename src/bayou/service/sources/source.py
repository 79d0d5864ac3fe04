"""What a source is to the one who follows it."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from bayou.errors import BayouError


class SourceError(BayouError):
    """A source that is no longer what it was: nothing can be read from it without losing or repeating rows."""


class SourceAway(BayouError):
    """A source that is not there now, and may be later."""


class Item(NamedTuple):
    """A row, or why there is none; where it stands, to be told; and what comes after it, to be kept."""

    row: dict[str, Any] | None
    why: str
    where: str
    end: Any


class Source(Protocol):
    """Rows in an order that is the same whenever they are read again."""

    name: str  # under which the place is kept with the model: the same after a start
    alone: str  # why but one model may follow it; nothing if more may

    async def open(self, place: dict[str, Any] | None) -> None:
        """Begin after a place, or at the beginning. May be called again, to go back to what was learnt."""

    async def read(self, most: int) -> list[Item] | None:
        """What comes next, within a fraction of a second; nothing if there is nothing yet, None at the end."""

    def place(self, end: Any) -> dict[str, Any]:
        """The place after an item that was read last, in JSON's types."""

    async def learnt(self, end: Any) -> None:
        """Everything up to here is stored."""

    async def close(self) -> None:
        """Let go what is held."""
