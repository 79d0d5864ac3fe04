"""Replicas of Opper's Fig. 2 (three families, twenty examples per weight), on one thread and on all: wall time."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from bayou.papers.ensembles import run_replicas, times_of
from bayou.papers.opper1998 import figure_2
from benchmarks.report import Result, against
from benchmarks.timing import Effort

CORES = os.cpu_count() or 1


def ensembles(effort: Effort) -> Iterator[Result]:
    students = list(figure_2.STUDENTS.values())
    times = times_of(figure_2.ALPHAS, figure_2.N_WEIGHTS)
    n_replicas = effort.examples(figure_2.REPLICAS)
    run_replicas(students, figure_2.WORLD, times, 2, threads=1)  # compiles
    fastest = {CORES: float("inf"), 1: float("inf")}
    for _ in range(max(effort.rounds // 3, 2)):
        for threads, best in fastest.items():
            start = time.perf_counter()
            run_replicas(students, figure_2.WORLD, times, n_replicas, threads=threads)
            fastest[threads] = min(best, time.perf_counter() - start)
    examples = n_replicas * times[-1] * len(students)
    names = {threads: f"bayou on {threads} {'thread' if threads == 1 else 'threads'}" for threads in fastest}
    microseconds = {names[threads]: 1e6 * seconds / examples for threads, seconds in fastest.items()}
    yield from against("ensembles", f"{n_replicas:,} replicas", microseconds, names[CORES], {names[1]: 1.8})
