"""What can go wrong with a request, each with the code that HTTP has for it."""

from __future__ import annotations

from bayou.errors import BayouError


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


class NotStored(Refused):
    """The disk took nothing, so nothing was learnt."""

    status = 507
