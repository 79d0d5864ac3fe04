"""Vowpal Wabbit, through its Python wheel: rows as its text, and runs over whole files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from scipy.sparse import csr_matrix

ABSENT = "vowpalwabbit is not installed"


def is_there() -> bool:
    return find_spec("vowpalwabbit") is not None


def write(path: Path, rows: csr_matrix, positive: Sequence[bool]) -> None:
    """One line per row: its label, then ``column:value``, where a value of 1 is left out."""
    starts, columns, values = rows.indptr.tolist(), rows.indices.tolist(), rows.data.tolist()
    with path.open("w", encoding="ascii") as file:
        for t, label in enumerate(positive):
            told = range(starts[t], starts[t + 1])
            features = (str(columns[k]) if values[k] == 1.0 else f"{columns[k]}:{values[k]:.6g}" for k in told)
            file.write(f"{1 if label else -1} | {' '.join(features)}\n")


def run(options: str) -> None:
    """One run over what the options name, to its end."""
    from vowpalwabbit import Workspace  # noqa: PLC0415 (it may be absent)

    Workspace(f"{options} --quiet").finish()


def a_run(options: str) -> Callable[[], Callable[[], object]]:
    """The same, as a contender prepares it."""
    return lambda: lambda: run(options)
