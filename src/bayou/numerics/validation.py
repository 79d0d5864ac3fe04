"""What the fields of a spec must be."""

import math

from bayou.contracts import Spec
from bayou.errors import InvalidSpec


def require_positive(spec: Spec, *names: str) -> None:
    """Make these fields plain floats, and raise unless they are positive and finite."""
    for name in names:
        given = getattr(spec, name)
        value = float(given)
        if not 0.0 < value < math.inf:
            raise InvalidSpec(f"`{name}` must be positive; got {given!r}.")
        object.__setattr__(spec, name, value)
