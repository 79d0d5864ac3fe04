"""What the figures were measured with."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing import Contender, Effort, microseconds_per_example

SIZE = 1500
PEERS = (
    "bayou",
    "numpy",
    "numba",
    "scikit-learn",
    "river",
    "padasip",
    "polars",
    "vowpalwabbit",
    "bayesianbandits",
    "capymoa",
)


def versions() -> dict[str, str]:
    """Of Python, ourselves and the peers."""
    return {"Python": platform.python_version(), **{name: _version(name) for name in PEERS}}


def facts(effort: Effort) -> dict[str, Any]:
    """Of the processor."""
    rate = gigaflops(microseconds_per_example([dgemm()], effort._replace(rounds=min(effort.rounds, 5)))["dgemm"])
    return {"processor": _processor(), "cores": os.cpu_count(), "dgemm GFLOP/s (1 thread)": round(rate, 1)}


def dgemm() -> Contender:
    """A product of two matrices: what this machine can do at best."""
    matrix = np.random.default_rng(0).normal(size=(SIZE, SIZE))

    def prepare() -> Callable[[], object]:
        return lambda: matrix @ matrix

    return Contender("dgemm", 1, prepare)


def gigaflops(microseconds: float) -> float:
    """The rate of a product that took so long."""
    return 2.0 * SIZE**3 / microseconds / 1e3


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # run from the sources
        import bayou  # noqa: PLC0415

        return bayou.__version__ if package == "bayou" else "missing"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
