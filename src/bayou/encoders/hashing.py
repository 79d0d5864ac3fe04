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
from bayou.numerics.hashed_dicts import ONE_REPORT
from bayou.numerics.hashed_names import EARNED_BY_DICT, FREE, MOST_LAYOUTS, HashedNames, encoded
from bayou.numerics.hashed_rows import Layout, pair_keys
from bayou.numerics.hashed_tables import BLOCK, HashedTable, Settings, checked_numbers
from bayou.numerics.hashed_tokens import tokens_of
from bayou.numerics.hashing import BETWEEN, END, Keys, hash_bytes, hash_joined, wrapping
from bayou.numerics.table_columns import text_of

NO_NUMBERS: Mapping[str, float] = {}
NO_AMOUNTS = np.zeros(0)
# Quicker than their names.
empty, frombuffer, fromiter = np.empty, np.frombuffer, np.fromiter
FLOAT64, INT32, UINT8 = np.dtype(np.float64), np.dtype(np.int32), np.dtype(np.uint8)


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
        return HashedNames(self.bits, self.signed, self.seed)

    # One row

    def encode_one(
        self,
        names: HashedNames,
        categories: Mapping[str, Any],
        numbers: Mapping[str, float] | None = None,
        learn: bool = True,
    ) -> tuple[NDArray[np.int32], Vector]:
        """Columns and values of one row; with ``learn`` its names are remembered.

        It is quickest where all categories are text.
        """
        numbers = NO_NUMBERS if numbers is None else numbers
        if names.owner is not self:
            names.belong_to(self)
        if self.text:
            return self._mixed(names, categories, numbers, learn)
        try:
            data = (BETWEEN.join(categories.values()) + END).encode()
            amounts = fromiter(numbers.values(), FLOAT64, len(numbers)) if numbers else NO_AMOUNTS
        except (TypeError, ValueError):  # some are neither text nor numbers
            return self._mixed(names, categories, numbers, learn)
        of_categories, of_numbers, layout = names.last
        if of_categories != tuple(categories) or of_numbers != tuple(numbers):
            layout = self.layout_of(names, tuple(categories), tuple(numbers))
        n = layout.keys.size
        columns, values = empty(n, INT32), empty(n)
        done = names.of_joined(frombuffer(data, UINT8), layout, amounts, columns, values, *names.kept, learn)
        if done == n:
            return columns, values
        if done < 0:  # a string has the separator in it, or a number is not finite
            return self._mixed(names, categories, numbers, learn)
        if done >= ONE_REPORT:
            label = labels(categories, numbers, {}).__getitem__
            self._remember(names, layout.keys, done // ONE_REPORT, layout.pairs, label)
            done %= ONE_REPORT
        return columns[:done], values[:done]

    def layout_of(self, names: HashedNames, categories: tuple[str, ...], numbers: tuple[str, ...] = ()) -> Layout:
        """What rows with these names have in common."""
        layout: Layout | None = names.layouts.get((categories, numbers))
        if layout is None:
            if len(names.layouts) >= MOST_LAYOUTS:
                names.layouts.clear()
            features = [names.feature(name) for name in numbers]
            pairs = self._pairs((*categories, *numbers), {})
            n = len(categories) + len(numbers) + len(pairs)
            layout = names.layouts[categories, numbers] = Layout(
                np.array([names.feature(name).key for name in categories], np.uint64),
                np.array([feature.key for feature in features], np.uint64),
                np.array([feature.missing for feature in features], np.uint64),
                pairs,
                np.empty(n, np.uint64),
                np.empty(n),
            )
        names.last = categories, numbers, layout
        return layout

    def remember_texts(self, names: HashedNames, layout: Layout, n_reports: int, categories: Mapping[str, str]) -> None:
        """Let names that `bayou.numerics.hashed_dicts.learn_texts` asks for be known."""
        if names.credit + EARNED_BY_DICT < 1.0:  # as most often: no time for it
            names.credit += EARNED_BY_DICT
            return
        items = list(categories.items())
        self._remember(names, layout.keys, n_reports, layout.pairs, lambda i: "{}={}".format(*items[i]))

    def _mixed(
        self, names: HashedNames, categories: Mapping[str, Any], numbers: Mapping[str, float], learn: bool
    ) -> tuple[NDArray[np.int32], Vector]:
        """Any row: categories, then numbers, then tokens, then interactions."""
        texts = {name: given if type(given) is str else _text(name, given) for name, given in categories.items()}
        words = {name: texts.pop(name) for name in self.text if name in texts}
        for name in self.text:
            if name in numbers:
                raise InvalidFeatures(f"`text` must name what is text; {name!r} came as the number {numbers[name]!r}.")
        parts = [self._categories(names, texts), self._numbers(names, numbers)]
        parts += [self._tokens(names, name, text) for name, text in words.items()]
        keys, values = np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
        n = len(keys)
        sizes = {name: len(tokens) for name, (tokens, _) in zip(words, parts[2:], strict=True)}
        pairs = self._pairs((*texts, *numbers), sizes)
        keys, values = np.resize(keys, n + len(pairs)), np.resize(values, n + len(pairs))
        columns, sums = np.empty(len(keys), np.int32), np.empty(len(keys))
        with wrapping():
            pair_keys(keys, values, pairs, n)
            done = names.of_keys(keys, values, columns, sums, *names.kept, learn)
        if done >= ONE_REPORT:
            self._remember(names, keys, done // ONE_REPORT, pairs, labels(texts, numbers, words).__getitem__)
            done %= ONE_REPORT
        return columns[:done], sums[:done]

    def _categories(self, names: HashedNames, texts: Mapping[str, str | None]) -> tuple[Keys, Vector]:
        keys = np.empty(len(texts), np.uint64)
        for i, (name, text) in enumerate(texts.items()):
            key, missing = names.feature(name)
            keys[i] = missing if text is None else hash_bytes(encoded(text), int(key))
        return keys, np.ones(keys.size)

    def _numbers(self, names: HashedNames, numbers: Mapping[str, float]) -> tuple[Keys, Vector]:
        keys = np.array([names.feature(name).key for name in numbers], np.uint64)
        try:
            values = np.fromiter((np.nan if x is None else x for x in numbers.values()), np.float64, len(keys))
        except (TypeError, ValueError) as error:
            raise InvalidFeatures(f"`numbers` must be numbers; got {dict(numbers)!r}.") from error
        for i in np.flatnonzero(~np.isfinite(values)).tolist():
            name = list(numbers)[i]
            if values[i] == values[i]:
                raise InvalidFeatures(f"the number {name!r} must be finite; got {values[i]}.")
            keys[i], values[i] = names.feature(name).missing, 1.0
        return keys, values

    def _tokens(self, names: HashedNames, name: str, text: str | None) -> tuple[Keys, Vector]:
        feature = names.feature(name)
        if text is None:
            return np.array([feature.missing]), np.ones(1)
        tokens = tokens_of(text)
        keys = np.empty(len(tokens), np.uint64)
        if tokens:
            data = (BETWEEN.join(tokens) + END).encode()
            with wrapping():
                hash_joined(np.frombuffer(data, np.uint8), np.full(len(tokens), feature.key), keys)
        return keys, np.fromiter(tokens.values(), np.float64, len(tokens))

    def _pairs(self, singles: Sequence[str], words: Mapping[str, int]) -> NDArray[np.int64]:
        """Which entries are paired: names of one entry each, then those of so many."""
        places = {name: range(i, i + 1) for i, name in enumerate(singles)}
        begin = len(singles)
        for name, size in words.items():
            places[name] = range(begin, begin + size)
            begin += size
        none = range(0)
        found = [
            (i, j)
            for a, b in self.interactions
            for i in places.get(a, none)
            for j in places.get(b, none)
            if a != b or i <= j
        ]
        return np.array(found, np.int64).reshape(-1, 2)

    def _remember(
        self,
        names: HashedNames,
        keys: Keys,
        n_reports: int,
        pairs: NDArray[np.int64],
        label: Callable[[int], str],
    ) -> None:
        """Let the names of the entries reported be known, as far as time is granted for it: making them takes some."""
        names.credit = min(names.credit + EARNED_BY_DICT, FREE)
        if names.credit < 1.0:
            return
        single = keys.size - len(pairs)
        for i in names.noticed.reports[:n_reports, 0].tolist():
            column = int(keys[i]) >> (64 - self.bits)
            if not names.is_named(column):
                names.credit -= 1.0
                pair = pairs[i - single].tolist() if i >= single else [i]
                names.remember(column, " x ".join(map(label, pair)))

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
        whole = self.open_table(names, table, checked_numbers(numbers or {}), dtype)
        return whole.encode(0, whole.n_rows, learn)

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
        size = whole_number("chunk_rows", chunk_rows, 1, 2**31)
        whole = self.open_table(names, table, checked_numbers(numbers or {}), dtype)
        return (rows for _, rows in whole.chunks(slice(0, whole.n_rows), learn, size))

    def open_table(
        self, names: HashedNames, table: Any, numbers: Mapping[str, Vector], dtype: DTypeLike
    ) -> HashedTable:
        """A table of which rows are made later; the numbers, one per row, are trusted to be finite or NaN by then."""
        if names.owner is not self:
            names.belong_to(self)
        if np.dtype(dtype) not in (np.float32, np.float64):
            raise InvalidSpec(f"`dtype` must be float32 or float64; got {dtype!r}.")
        return HashedTable(self._settings, names, table, numbers, np.dtype(dtype))


def _text(name: str, value: Any) -> str | None:
    if type(value) is str:
        return value
    try:
        return text_of(value)
    except InvalidFeatures as error:
        raise InvalidFeatures(f"{name!r} {error}") from error


def labels(texts: Mapping[str, Any], numbers: Mapping[str, float], words: Mapping[str, str | None]) -> list[str]:
    """What the entries of a row are called, but for interactions."""
    every = [f"{name} is missing" if text is None else f"{name}={text}" for name, text in texts.items()]
    every += [f"{name} is missing" if x is None or x != x else name for name, x in numbers.items()]
    for name, text in words.items():
        every += [f"{name} is missing"] if text is None else [f"{name}:{token}" for token in tokens_of(text)]
    return every


def checked_names(names: Any) -> tuple[str, ...]:
    """Different names of columns, as a tuple."""
    fit = isinstance(names, (tuple, list)) and all(isinstance(name, str) for name in names)
    if not fit or len(set(names)) < len(names):
        raise InvalidSpec(f"`text` must be different names of columns, as a tuple; got {names!r}.")
    return tuple(names)


def checked_pairs(pairs: Any) -> tuple[tuple[str, str], ...]:
    """Different pairs of names, as a tuple of tuples."""
    fit = isinstance(pairs, (tuple, list)) and all(
        isinstance(pair, (tuple, list)) and len(pair) == 2 and all(isinstance(name, str) for name in pair)
        for pair in pairs
    )
    if not fit or len({frozenset(pair) for pair in pairs}) < len(pairs):
        raise InvalidSpec(f"`interactions` must be different pairs of names, as a tuple; got {pairs!r}.")
    return tuple((a, b) for a, b in pairs)
