"""What shards on many workers cost: a formula with measured constants, and a simulation of what a formula leaves out.

A round of S shards on W workers takes

    ceil(S / W) * (rows / S * per_row(d) + per_shard(d))     the learning; the slowest worker ends it
    + S * per_task                                           the scheduler hands out one task after another
    + ceil(log2 S) * (per_task + bytes(d) / bandwidth)       the tree

where a shard's natural parameters take bytes(d) = 8 (d (d + 1) / 2 + d), per_row(d) grows with d^2, and per_shard(d),
one inverse of a d x d matrix and one factor of it, with d^3. Adding two of them is nothing beside sending one.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Costs:
    """Seconds, measured; ``bandwidth`` in bytes per second is an assumption about a network."""

    per_row: float
    per_shard: float
    per_task: float
    bandwidth: float = 1e9


@dataclass(frozen=True)
class Job:
    rows: float
    n_features: int
    shards: int
    rounds: int = 3

    @property
    def n_bytes(self) -> int:
        """Of what a shard tells."""
        d = self.n_features
        return 8 * (d * (d + 1) // 2 + d)

    def shard_seconds(self, costs: Costs) -> float:
        return self.rows / self.shards * costs.per_row + costs.per_shard


def predicted(job: Job, workers: int, costs: Costs) -> float:
    """Seconds of all rounds, if every shard takes as long as any other and nobody dies."""
    learning = math.ceil(job.shards / workers) * job.shard_seconds(costs)
    return job.rounds * (learning + _around(job, costs))


def _around(job: Job, costs: Costs) -> float:
    """Handing out the shards of a round, and the tree."""
    levels = math.ceil(math.log2(job.shards)) if job.shards > 1 else 0
    return job.shards * costs.per_task + levels * (costs.per_task + job.n_bytes / costs.bandwidth)


def simulated(
    job: Job, workers: int, costs: Costs, spread: float = 0.0, failures_per_hour: float = 0.0, seed: int = 0
) -> float:
    """Seconds of all rounds where shards take lognormal times of this spread, and workers die and are replaced.

    Who dies loses the shard at hand and all that it kept of this round, which is learnt again; it is back after 30 s.
    """
    rng = np.random.default_rng(seed)
    seconds = 0.0
    for _ in range(job.rounds):
        seconds += _one_round(job, workers, costs, spread, failures_per_hour / 3600.0, rng) + _around(job, costs)
    return seconds


def _one_round(job: Job, workers: int, costs: Costs, spread: float, rate: float, rng: np.random.Generator) -> float:
    alone = job.shard_seconds(costs)
    left, kept = job.shards, [0] * workers
    dies = rng.exponential(1.0 / rate, workers) if rate else np.full(workers, np.inf)
    free = [(0.0, worker) for worker in range(workers)]
    heapq.heapify(free)
    busy: list[tuple[float, int]] = []  # until when, by whom
    end = 0.0
    while left or busy:
        if left and free and (not busy or free[0][0] <= busy[0][0]):
            start, worker = heapq.heappop(free)
            left -= 1
            heapq.heappush(busy, (start + alone * rng.lognormal(-0.5 * spread**2, spread), worker))
            continue
        done, worker = heapq.heappop(busy)
        if dies[worker] < done:
            left += 1 + kept[worker]
            kept[worker], died = 0, float(dies[worker])
            dies[worker] = died + rng.exponential(1.0 / rate)
            heapq.heappush(free, (died + 30.0, worker))
            continue
        kept[worker] += 1
        end = max(end, done)
        heapq.heappush(free, (done, worker))
    return end
