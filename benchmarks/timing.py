"""CPU time of several ways to do the same work, taken in turns."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from threadpoolctl import threadpool_limits


class Effort(NamedTuple):
    """How long to measure: rounds, and the size of a round's work as a fraction of the usual."""

    rounds: int
    size: float

    def examples(self, usual: int, least: int = 20) -> int:
        return max(int(usual * self.size), least)


class Contender(NamedTuple):
    """One way to do the work: ``prepare`` makes a fresh model and returns the work, which learns so many examples."""

    name: str
    examples: int
    prepare: Callable[[], Callable[[], object]]


def microseconds_per_example(contenders: Sequence[Contender], effort: Effort) -> dict[str, float]:
    """The fastest round of each, on one thread. A round is one turn of every contender; the first is not counted."""
    fastest = dict.fromkeys((contender.name for contender in contenders), float("inf"))
    gc.collect()  # once: it sweeps the caches, and who comes next would pay for it
    gc.disable()
    try:
        with threadpool_limits(1):
            for round_number in range(effort.rounds + 1):
                for contender in contenders:
                    seconds = _cpu_time(contender.prepare())
                    if round_number > 0:
                        fastest[contender.name] = min(fastest[contender.name], 1e6 * seconds / contender.examples)
    finally:
        gc.enable()
    return fastest


def _cpu_time(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start
