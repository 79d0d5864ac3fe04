"""What happens to a model, one row of the journal each: from these, in their order, it can be made again to the bit.

learn      rows with their targets
issue      rows that were predicted, and wait for their labels from then on
feedback   labels of such predictions
roll_back  the number of the version whose state came back
"""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson

from bayou.service.json_parts import dumped

LEARN, ISSUE, FEEDBACK, ROLL_BACK = "learn", "issue", "feedback", "roll_back"


class Event(NamedTuple):
    """One of them: when it came, in seconds since 1970, and what it brought."""

    kind: str
    at: float
    body: dict[str, Any]

    def to_bytes(self) -> bytes:
        """The body as JSON."""
        return as_json(self.body)

    @classmethod
    def of(cls, kind: str, at: float, body: bytes) -> Event:
        """From a row of the journal."""
        return cls(kind, at, orjson.loads(body))


def as_json(body: dict[str, Any]) -> bytes:
    """A body as it is kept."""
    if body.keys() == {"rows"}:
        return b'{"rows":' + dumped(body["rows"]) + b"}"
    return orjson.dumps(body)


def prediction_id(seq: int, place: int) -> str:
    """What a prediction is called: the row of the journal that it came with, and its place there.

    >>> prediction_id(255, 3)
    'ff-3'
    """
    return f"{seq:x}-{place}"
