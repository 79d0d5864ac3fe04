"""What can go wrong with a request, each with the code that HTTP has for it."""

from __future__ import annotations

from bayou.errors import BayouError

NOT_STORED = "the store could not be written, so nothing was learnt; try again."


class HalfDone(Exception):
    """Some of an event was applied before it failed: the model must be made again from what is written."""

    def __init__(self, why: BayouError) -> None:
        super().__init__(str(why))
        self.why = why


class Refused(BayouError):
    """A request that cannot be granted."""

    status = 400


class NotFound(Refused):
    """There is no such model, version or prediction."""

    status = 404


class Conflict(Refused):
    """The model is there already, or the source is elsewhere than was thought."""

    status = 409


class TooLarge(Refused):
    """More than is taken at once."""

    status = 413


class Unusable(Refused):
    """What was sent can be read, and makes no sense."""

    status = 422


class Busy(Refused):
    """Too much waits already."""

    status = 503


class Unread(Refused):
    """The model is in the store, and could not be read back."""

    status = 503


class NotStored(Refused):
    """The disk took nothing, so nothing was learnt."""

    status = 507
