"""Examples that wait for their targets, as bytes: a line of JSON for each. They may be long texts, and many of them."""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayou import strict_json
from bayou.contracts import SparseRows
from bayou.errors import ModelFileError
from bayou.json_values import decode, encode

UTF8 = "utf-8", "surrogatepass"  # halves of pairs of UTF-16, which are no text, as they are
MOST_COLUMNS = 2**31  # that columns of sparse rows can count
PLAIN = {str, int, float, bool, type(None)}


def plain(example: Any) -> Any:
    """A dict as it is, a row as a list, a sparse one as lists of columns and values: what `example_of` takes."""
    if isinstance(example, Mapping):
        return {name: _one(value) for name, value in example.items()}
    if isinstance(example, SparseRows):
        return [example.columns.tolist(), example.values.tolist(), int(example.n_columns)]
    return [None if math.isnan(value) else value for value in example[0].tolist()]


def _one(value: Any) -> Any:
    """A value of a dict; an array of one number is that number."""
    return value.item() if isinstance(value, np.ndarray) and value.size == 1 else value


def as_bytes(examples: Iterable[Any]) -> NDArray[np.uint8]:
    """The line of each."""
    written = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode
    lines = [written(encode(plain(example))) for example in examples]
    return np.frombuffer("\n".join(lines).encode(*UTF8), np.uint8)


def told_by(data: Any, count: int) -> list[Any]:
    """What so many lines tell, which may come from anywhere, as `plain` has it."""
    if data.dtype != np.uint8 or data.ndim != 1:
        raise ModelFileError(f"`pending.examples` must be bytes in a row; got {data.dtype} of shape {data.shape}.")
    lines = data.tobytes().split(b"\n")
    if len(lines) != count:
        raise ModelFileError(f"`pending.examples` must tell the {count} examples that wait; got {len(lines)} lines.")
    return [_told_by(line) for line in lines]


def _told_by(line: bytes) -> Any:
    try:
        value = strict_json.loads(line.decode(*UTF8))
    except (ValueError, RecursionError) as error:
        said = f"{type(error).__name__}: {str(error)[:200]}"
        raise ModelFileError(f"an example that waits must be JSON in UTF-8; {said}") from error
    try:
        return decode(value)
    except ModelFileError:
        raise
    except Exception as error:  # whatever a hostile value may break
        raise _wrong(value) from error


def example_of(told: Any, is_sparse: bool) -> Any:
    """The example that `plain` made this of."""
    if is_sparse:
        return _sparse_row(told)
    if type(told) is dict and {type(value) for value in told.values()} <= PLAIN:
        return told
    if type(told) is list and {type(value) for value in told} <= {float, type(None)}:
        return np.array([told], dtype=np.float64)
    raise _wrong(told)


def _sparse_row(told: Any) -> SparseRows:
    match told:
        case [list(columns), list(values), int(n_columns)] if (
            0 <= n_columns <= MOST_COLUMNS
            and all(type(column) is int and 0 <= column < n_columns for column in columns)
            and all(type(value) is float for value in values)
            and len(values) in (0, len(columns))
        ):
            entries = np.array(columns, np.int32), np.array(values, np.float64)
            return SparseRows(np.array([0, len(columns)]), *entries, n_columns)
    raise _wrong(told)


def _wrong(told: Any) -> ModelFileError:
    wanted = "names with numbers and texts, a list of numbers, or columns and values of a sparse row"
    return ModelFileError(f"an example that waits must be {wanted}; got {reprlib.repr(told)}.")
