"""The short way for a dict of known names: its values, by name, straight into the place where a kernel reads them.

It is taken by dicts proper only: others may make up a value for a name that they lack.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from bayou.encoders.standardizer import LARGEST
from bayou.errors import InvalidFeatures
from bayou.learner import Learner

# What tells that a dict must take the long way: a name is absent, or a value is not a number.
NOT_PLAIN = (KeyError, TypeError, struct.error)

Values = Callable[[Any], tuple[Any, ...]]


def values_of(names: Sequence[Hashable]) -> Values:
    """What takes the values of these names, in this order, out of a dict."""
    if len(names) >= 2:
        return itemgetter(*names)
    return lambda x: tuple(x[name] for name in names)


def short_way(
    learner: Learner, names: Sequence[Hashable], intercept: Sequence[float], targets: Mapping[Hashable, float]
) -> Callable[[Any, Hashable], bool]:
    """What learns a dict of just these names, taken as they are, whose label is among the targets.

    It returns False, with nothing changed, for any other. It holds for this learner while it has these features.
    """
    size = len(names)
    values, target_of = values_of(names), targets.get
    learner.example[: len(intercept)] = intercept
    place, learn = memoryview(learner.example), learner.learn_example  # type: ignore[arg-type]  # an array is a buffer
    start = 8 * len(intercept)
    pack = struct.Struct(f"{size + 1}d").pack_into

    def learn_one(x: Any, y: Hashable) -> bool:
        target = target_of(y)
        if target is None or type(x) is not dict or len(x) != size:
            return False
        try:
            pack(place, start, *values(x), target)
        except NOT_PLAIN:
            return False
        return learn()

    return learn_one


def number_of(name: Hashable, value: Any, wanted: str = "a number, or None if it is missing") -> float:
    """A value of a dict, as a number."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InvalidFeatures(f"feature {name!r} must be {wanted}; got {value!r}.") from None
    if abs(number) > LARGEST:
        raise InvalidFeatures(f"feature {name!r} must be finite and below {LARGEST:g} in size; got {value!r}.")
    return number
