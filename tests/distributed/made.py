"""Rows and shards for the tests of learning in parts."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayou.distributed.sources import ArrayShard, Shard

WEIGHTS = np.array([1.0, -1.0, 0.5, 3.0])


def rows(n: int = 3000, seed: int = 0) -> NDArray[np.float64]:
    """Columns of different units."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 4)) * [1.0, 2.0, 0.5, 0.1] + [0.0, 5.0, -1.0, 1.0]


def numbers(X: NDArray[np.float64], noise: float = 2.0, seed: int = 1) -> NDArray[np.float64]:
    """Targets along a line."""
    y: NDArray[np.float64] = X @ WEIGHTS + noise * np.random.default_rng(seed).normal(size=len(X)) + 7.0
    return y


def labels(X: NDArray[np.float64], seed: int = 2) -> NDArray[np.bool_]:
    """Two classes, neither of which is rare."""
    latent = 0.7 * (X @ WEIGHTS + 2.0)
    found: NDArray[np.bool_] = latent + np.random.default_rng(seed).logistic(size=len(X)) > 0.0
    return found


def counts(X: NDArray[np.float64], seed: int = 3) -> NDArray[np.int64]:
    """Few on average."""
    return np.random.default_rng(seed).poisson(np.exp(0.2 * (X @ WEIGHTS + 2.0)))


def cut(X: Any, y: Any, places: list[int]) -> list[Shard]:
    """Shards between these places."""
    ends = [0, *places, len(X)]
    return [ArrayShard((X[a:b], y[a:b])) for a, b in pairwise(ends)]


def belief_bytes(model: Any) -> bytes:
    """All that a model believes."""
    return b"".join(array.tobytes() for array in model._learner_.belief)


@dataclass(frozen=True, eq=False)
class DeadlyShard:
    """Kills the process that reads it, as often as there are lives left in a folder; but never the one that made it."""

    inner: Shard
    folder: Path
    spared: int

    def chunks(self) -> Iterator[Any]:
        for number, chunk in enumerate(self.inner.chunks()):
            lives = sorted(self.folder.glob("life-*"))
            if number == 0 and lives and os.getpid() != self.spared:
                lives[0].unlink()
                os.kill(os.getpid(), signal.SIGKILL)
            yield chunk


@dataclass(frozen=True, eq=False)
class BrokenShard:
    """Cannot be read."""

    def chunks(self) -> Iterator[Any]:
        raise OSError("the disk is gone")


def deadly(shards: list[Shard], place: int, folder: Path, lives: int = 1) -> list[Shard]:
    """The same shards, of which one kills."""
    for life in range(lives):
        (folder / f"life-{life}").touch()
    return [*shards[:place], DeadlyShard(shards[place], folder, os.getpid()), *shards[place + 1 :]]
