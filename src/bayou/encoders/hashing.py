"""Names and values to one of 2**bits columns: column = top bits of the key, a hash of 64 bits.

    a category        key = hash(value, seed = hash(name)),    value 1
    a number          key = hash(name),                        its value
    a missing value   key = hash("", seed = not hash(name)),   value 1
    a token of text   a category of that name,                 how often it comes
    an interaction    key = mix(key_a + key_b),                value_a * value_b

`bayou.numerics.hashing` defines the hash, for ever. ``hash(name)`` has the seed of the encoder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from bayou.contracts import SparseRows, Spec, Vector
from bayou.errors import InvalidFeatures, InvalidSpec
from bayou.numerics.grams import whole_number
from bayou.numerics.hashed_names import MOST_ORDERS, HashedNames
from bayou.numerics.hashed_rows import pair_keys, row_of_keys
from bayou.numerics.hashed_tables import BLOCK, HashedTable, Settings, encoded, feature_of, tokens_of
from bayou.numerics.hashing import Keys, hash_bytes, hash_joined, wrapping
from bayou.numerics.table_columns import text_of

SEPARATOR = "\x1f"
NO_VALUES = np.zeros(0)


@final
@dataclass(frozen=True)
class Hashing(Spec):
    """Categories, numbers and text to sparse rows of 2**bits columns, without a dictionary.

    ``signed`` gives each key a sign, so that names that share a column cancel on average. ``interactions`` are pairs of
    names whose products become features too. Columns named in ``text`` are split into words. What was met is
    remembered in the `HashedNames` that `begin` makes.

    >>> from bayou import Hashing
    >>> encoder = Hashing(bits=18, interactions=(("city", "age"),))
    >>> names = encoder.begin()
    >>> columns, values = encoder.encode_one(names, {"city": "Paris"}, {"age": 1.5})
    >>> names.names_of(columns), values
    (['city=Paris', 'age', 'city=Paris x age'], array([1. , 1.5, 1.5]))
    """

    bits: int = 18
    signed: bool = False
    interactions: tuple[tuple[str, str], ...] = ()
    text: tuple[str, ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "bits", whole_number("bits", self.bits, 10, 26))
        object.__setattr__(self, "seed", whole_number("seed", self.seed, 0, 2**53))
        if not isinstance(self.signed, (bool, np.bool_)):
            raise InvalidSpec(f"`signed` must be True or False; got {self.signed!r}.")
        object.__setattr__(self, "signed", bool(self.signed))
        object.__setattr__(self, "interactions", checked_pairs(self.interactions))
        object.__setattr__(self, "text", checked_names(self.text))

    @property
    def n_columns(self) -> int:
        """How many columns there are."""
        return 1 << self.bits

    def begin(self) -> HashedNames:
        """The memory of no names."""
        return HashedNames(self.bits)

    # One row

    def encode_one(
        self,
        names: HashedNames,
        categories: Mapping[str, Any],
        numbers: Mapping[str, float] | None = None,
        learn: bool = True,
    ) -> tuple[NDArray[np.int32], Vector]:
        """Columns and values of one row; with ``learn`` its names are remembered."""
        if not self.text and not self.interactions and not numbers:
            keys = self._joined(names, categories)
            if keys is not None:
                return self._row(
                    names, keys, NO_VALUES, learn, lambda i: f"{(item := list(categories.items())[i])[0]}={item[1]}"
                )
        return self._mixed(names, categories, numbers or {}, learn)

    def _joined(self, names: HashedNames, categories: Mapping[str, Any]) -> Keys | None:
        """Keys of categories that are all text, hashed in one go; None if some are not, or have the separator."""
        order = tuple(categories)
        seeds = names.orders.get(order)
        if seeds is None:
            seeds = self._seeds(names, order)
        try:
            data = SEPARATOR.join(categories.values()).encode()
        except (TypeError, UnicodeEncodeError):
            return None
        keys = np.empty(seeds.size, np.uint64)
        with wrapping():
            found = hash_joined(np.frombuffer(data, np.uint8), 0x1F, seeds, keys)
        return keys if found == seeds.size else None

    def _seeds(self, names: HashedNames, order: tuple[str, ...]) -> Keys:
        if len(names.orders) >= MOST_ORDERS:
            names.orders.clear()
        seeds: Keys = np.array([feature_of(name, self.seed).key for name in order], np.uint64)
        names.orders[order] = seeds
        return seeds

    def _mixed(
        self, names: HashedNames, categories: Mapping[str, Any], numbers: Mapping[str, float], learn: bool
    ) -> tuple[NDArray[np.int32], Vector]:
        keys: list[int] = []
        values: list[float] = []
        labels: list[str] = []
        places: dict[str, range] = {}

        def add(name: str, found: Sequence[tuple[Any, float, str]]) -> None:
            places[name] = range(len(keys), len(keys) + len(found))
            for key, value, label in found:
                keys.append(key)
                values.append(value)
                labels.append(label)

        for name, given in categories.items():
            feature, text = feature_of(name, self.seed), _text(name, given)
            if text is None:
                add(name, [(feature.missing, 1.0, f"{name} is missing")])
            elif name in self.text:
                add(
                    name,
                    [
                        (hash_bytes(encoded(t), int(feature.key)), float(n), f"{name}:{t}")
                        for t, n in tokens_of(text).items()
                    ],
                )
            else:
                add(name, [(hash_bytes(encoded(text), int(feature.key)), 1.0, f"{name}={text}")])
        for name, number in numbers.items():
            feature = feature_of(name, self.seed)
            if number is None or number != number:
                add(name, [(feature.missing, 1.0, f"{name} is missing")])
            else:
                add(name, [(feature.key, number, name)])
        pairs = [
            (i, j)
            for a, b in self.interactions
            for i in places.get(a, ())
            for j in places.get(b, ())
            if a != b or i <= j
        ]
        n = len(keys)
        every, given_values = np.empty(n + len(pairs), np.uint64), np.empty(n + len(pairs))
        every[:n], given_values[:n] = keys, values
        if pairs:
            with wrapping():
                pair_keys(every, given_values, np.array(pairs, np.int64), n)
        return self._row(
            names,
            every,
            given_values,
            learn,
            lambda i: labels[i] if i < n else " x ".join(labels[j] for j in pairs[i - n]),
        )

    def _row(
        self, names: HashedNames, keys: Keys, values: Vector, learn: bool, label: Callable[[int], str]
    ) -> tuple[NDArray[np.int32], Vector]:
        columns, sums = np.empty(keys.size, np.int32), np.empty(keys.size)
        n, n_reports = row_of_keys(
            keys, values, self.bits, self.signed, learn, names.noticed, names.places, columns, sums
        )
        for i in names.noticed.reports[:n_reports, 0].tolist():
            names.remember(int(keys[i]) >> (64 - self.bits), label(i))
        return (columns, sums) if n == keys.size else (columns[:n], sums[:n])

    @property
    def _settings(self) -> Settings:
        return Settings(self.bits, self.signed, self.interactions, self.text, self.seed)

    # Tables

    def encode_table(
        self,
        names: HashedNames,
        table: Any,
        numbers: Mapping[str, Vector] | None = None,
        learn: bool = True,
        dtype: DTypeLike = np.float32,
    ) -> SparseRows:
        """Rows of a table: numbers as they are given (NaN is missing), all its other columns as categories or text."""
        blocks = HashedTable(self._settings, names, table, numbers or {}, np.dtype(dtype))
        return blocks.encode(0, blocks.n_rows, learn)

    def encode_chunks(
        self,
        names: HashedNames,
        table: Any,
        numbers: Mapping[str, Vector] | None = None,
        learn: bool = True,
        dtype: DTypeLike = np.float32,
        chunk_rows: int = BLOCK,
    ) -> Iterator[SparseRows]:
        """The same, so many rows at a time: they are near when they are learnt."""
        blocks = HashedTable(self._settings, names, table, numbers or {}, np.dtype(dtype))
        for first in range(0, blocks.n_rows, chunk_rows):
            yield blocks.encode(first, min(chunk_rows, blocks.n_rows - first), learn)


def _text(name: str, value: Any) -> str | None:
    if type(value) is str:
        return value
    try:
        return text_of(value)
    except InvalidFeatures as error:
        raise InvalidFeatures(f"{name!r} {error}") from error


def checked_names(names: Any) -> tuple[str, ...]:
    """Different names of columns, as a tuple."""
    if isinstance(names, str) or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise InvalidSpec(f"`text` must be different names of columns, as a tuple; got {names!r}.")
    return tuple(names)


def checked_pairs(pairs: Any) -> tuple[tuple[str, str], ...]:
    """Different pairs of names, as a tuple of tuples."""
    try:
        found: tuple[Any, ...] = tuple((a, b) for a, b in pairs)
    except (TypeError, ValueError):
        found = ((None, None),)
    fit = not isinstance(pairs, str) and all(isinstance(name, str) for pair in found for name in pair)
    if not fit or len({frozenset(pair) for pair in found}) < len(found):
        raise InvalidSpec(f"`interactions` must be different pairs of names, as a tuple; got {pairs!r}.")
    return found
