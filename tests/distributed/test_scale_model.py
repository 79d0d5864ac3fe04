"""The cost model: the formula against the simulation where both must agree, and what must only make it worse."""

from __future__ import annotations

import numpy as np
import pytest

from bayou import Logistic, OnlineClassifier
from bayou.distributed import InProcess, fit
from bayou.distributed.naturals import n_bytes, natural_of
from benchmarks.scale_model import Costs, Job, predicted, simulated
from tests.distributed import made

COSTS = Costs(per_row=5e-6, per_shard=2e-3, per_task=1e-3)


@pytest.mark.parametrize(("shards", "workers"), [(16, 1), (16, 4), (17, 4), (1000, 30), (5, 9)])
def test_the_formula_is_the_simulation_of_workers_that_are_alike(shards: int, workers: int) -> None:
    job = Job(1e8, 200, shards)
    assert simulated(job, workers, COSTS) == pytest.approx(predicted(job, workers, COSTS), rel=1e-9)


def test_stragglers_and_deaths_cost_time() -> None:
    job = Job(1e9, 200, 400)
    even = predicted(job, 50, COSTS)
    uneven = np.mean([simulated(job, 50, COSTS, spread=0.5, seed=seed) for seed in range(8)])
    deaths = np.mean([simulated(job, 50, COSTS, spread=0.5, failures_per_hour=10.0, seed=seed) for seed in range(8)])
    assert even < uneven < deaths < 4.0 * even


def test_bytes_are_those_that_are_sent() -> None:
    X = made.rows(500)
    model = fit(OnlineClassifier(likelihood=Logistic()), (X, made.labels(X)), engine=InProcess(), shards=2)
    learner = model.model._learner_
    assert n_bytes(natural_of(learner)) == Job(1.0, learner.n_features, 2).n_bytes
    assert model.rounds[0].bytes_moved == 2 * Job(1.0, learner.n_features, 2).n_bytes
