"""How fast replicas of Opper's Fig. 2 (three families, twenty examples per weight) run on one thread and on all."""

from __future__ import annotations

import os
import time
from statistics import median
from typing import NamedTuple

from bayou.papers.ensembles import run_replicas, times_of
from bayou.papers.opper1998 import figure_2

CORES = os.cpu_count() or 1


class Speed(NamedTuple):
    """Median microseconds per example of a replica, on one thread and on all; and the median ratio of two turns.

    The ratio is that of neighbours in time: the machine may be slower an instant later, for whatever else it does.
    """

    one: float
    all: float
    ratio: float


def speed_of_replicas(n_replicas: int, rounds: int) -> Speed:
    """Let so many replicas run on one thread and on all, in turns."""
    students = list(figure_2.STUDENTS.values())
    times = times_of(figure_2.ALPHAS, figure_2.N_WEIGHTS)
    run_replicas(students, figure_2.WORLD, times, 2, threads=1)  # compiles
    examples = n_replicas * times[-1] * len(students)

    def microseconds(threads: int) -> float:
        start = time.perf_counter()
        run_replicas(students, figure_2.WORLD, times, n_replicas, threads=threads)
        return 1e6 * (time.perf_counter() - start) / examples

    turns = [(microseconds(1), microseconds(CORES)) for _ in range(rounds)]
    one, every = zip(*turns, strict=True)
    return Speed(median(one), median(every), median(a / b for a, b in turns))
