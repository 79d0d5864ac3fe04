"""Short ways for dicts: numbers by known names, and texts, straight to the place where a kernel reads them.

They are taken by dicts proper only: others may make up a value for a name that they lack.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from bayou.encoders import Hashing
from bayou.encoders.standardizer import LARGEST
from bayou.errors import InvalidFeatures
from bayou.learner import Learner
from bayou.numerics.hashed_dicts import NOT_LEARNT, row_of, texts_entry
from bayou.numerics.hashed_names import HashedNames
from bayou.numerics.hashing import BETWEEN, END
from bayou.sparse_learner import SparseLearner

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


def text_way(
    encoder: Hashing,
    names: HashedNames,
    learner: SparseLearner,
    targets: Mapping[Hashable, float],
    count: Callable[[float], None],
) -> Callable[[Any, Hashable], bool]:
    """What learns a dict of texts whose label is among the targets, and has it counted.

    It returns False, with nothing learnt, for any other. It holds for this learner and these names.
    """
    target_of, join, frombuffer, kind = targets.get, BETWEEN.join, np.frombuffer, np.dtype(np.uint8)
    learning, kept = learner.learning(), (names.noticed, names.places, names.bits, names.signed)
    known: tuple[Any, ...] | None = None
    row, layout = row_of(0, learner.belief.mean.dtype), encoder.layout_of(names, ())
    learn = texts_entry(learner.learn_pass, learning, row, layout, *kept)

    def learn_one(x: Any, y: Hashable) -> bool:
        nonlocal known, row, layout
        target = target_of(y)
        if target is None or type(x) is not dict:
            return False
        try:
            data = (join(x.values()) + END).encode()
        except (TypeError, UnicodeEncodeError):  # some are no text, or none that can be told
            return False
        fields = tuple(x)
        if fields != known:
            if not all(isinstance(name, str) for name in fields):
                return False
            known, layout = fields, encoder.layout_of(names, fields)
            if row.columns.size < layout.keys.size:
                row = row_of(layout.keys.size, row.values.dtype)
        asked = learn(learning, row, layout, *kept, frombuffer(data, kind), target)
        if asked == NOT_LEARNT:
            return False
        if asked:
            encoder.remember_texts(names, layout, asked, x)
        count(1.0)
        return True

    return learn_one


def in_order(names: Iterable[Hashable]) -> list[Hashable]:
    """Names in an order of their own: that in which a dict has them means nothing."""
    return sorted(names, key=lambda name: (type(name).__name__, str(name)))


def number_of(name: Hashable, value: Any, wanted: str = "a number, or None if it is missing") -> float:
    """A value of a dict, as a number."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InvalidFeatures(f"feature {name!r} must be {wanted}; got {value!r}.") from None
    except OverflowError:  # of a whole number
        raise InvalidFeatures(f"feature {name!r} must be below {LARGEST:g} in size; got a larger one.") from None
    if abs(number) > LARGEST:
        raise InvalidFeatures(f"feature {name!r} must be finite and below {LARGEST:g} in size; got {value!r}.")
    return number
