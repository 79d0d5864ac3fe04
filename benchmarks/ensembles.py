"""Replicas of learners, on one thread and on all: wall time."""

from __future__ import annotations

from collections.abc import Iterator

from bayou.papers.speed import CORES, speed_of_replicas
from benchmarks.report import Result
from benchmarks.timing import Effort

REPLICAS = 500  # a second on one thread: short turns, many of them


def ensembles(effort: Effort) -> Iterator[Result]:
    n_replicas = effort.examples(REPLICAS)
    speed = speed_of_replicas(n_replicas, rounds=max(2 * effort.rounds, 2))
    setting = f"{n_replicas:,} replicas"
    yield Result("ensembles", setting, f"bayou on {CORES} threads", speed.all)
    yield Result("ensembles", setting, "bayou on 1 thread", speed.one, speed.ratio, goal=1.8)
