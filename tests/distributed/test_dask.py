"""Shards on a real cluster of Dask: two worker processes on this machine."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from bayou import FullGaussian, Gaussian, HarmonyMixture, Logistic, OnlineClassifier, OnlineRegressor, TableModel
from bayou.distributed import DaskCluster, InProcess, fit, fit_mixture
from bayou.errors import InvalidSpec, StreamError
from tests.distributed import made

pytestmark = pytest.mark.filterwarnings("default::DeprecationWarning", "default::FutureWarning")

X = made.rows(2000)
LABELS, NUMBERS = made.labels(X), made.numbers(X)
SHARDS = made.cut(X, LABELS, [300, 700, 1200, 1700])
CLASSIFIER = OnlineClassifier(likelihood=Logistic())
REGRESSOR = OnlineRegressor(posterior=FullGaussian(50.0), likelihood=Gaussian(4.0))


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Of a cluster as the engine starts it where it is told of none."""
    with DaskCluster(workers=2) as engine:
        yield engine._client
    assert engine._client is None


def pids(client: Any) -> list[int]:
    return sorted(client.run(os.getpid).values())


@pytest.fixture(scope="module")
def expected() -> bytes:
    """What is believed when all shards are learnt here; asked for before the workers, who find kernels compiled."""
    return made.belief_bytes(fit(CLASSIFIER, SHARDS, engine=InProcess()).model)


def test_it_is_the_same_to_the_bit(expected: bytes, client: Any) -> None:
    assert len(pids(client)) == 2
    fitted = fit(CLASSIFIER, SHARDS, engine=DaskCluster(client))
    assert made.belief_bytes(fitted.model) == expected
    assert len(fitted.rounds) > 1


def test_an_address_is_enough(client: Any) -> None:
    with pytest.raises(InvalidSpec, match="there must be a Dask scheduler at 'nowhere'"), DaskCluster("nowhere"):
        pass
    told: list[Any] = []
    fitted = fit(CLASSIFIER, SHARDS, engine=client.scheduler.address, progress=told.append, rounds=1)
    assert fitted.rows == len(X)
    assert [one.done for one in told[-5:]] == [1, 2, 3, 4, 5]


def test_what_goes_wrong_on_a_worker_is_raised_here(client: Any) -> None:
    with pytest.raises(OSError, match="the disk is gone"):
        fit(CLASSIFIER, [*SHARDS[:2], made.BrokenShard()], engine=DaskCluster(client))
    with pytest.raises(StreamError, match="columns"):
        fit(CLASSIFIER, [*SHARDS[:2], *made.cut(X[:, :2], LABELS, [])], engine=DaskCluster(client))


def test_arrays_and_frames_of_dask(client: Any) -> None:
    from dask import array, dataframe

    here = fit(REGRESSOR, made.cut(X, NUMBERS, [500, 1500]), engine=InProcess()).model
    rows = array.from_array(X, chunks=((500, 1000, 500), (2, 2)))
    for targets in (NUMBERS, array.from_array(NUMBERS, chunks=700)):
        fitted = fit(REGRESSOR, (rows, targets), engine=DaskCluster(client))
        assert fitted.n_shards == 3
        assert made.belief_bytes(fitted.model) == made.belief_bytes(here)
    table = pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "city": np.where(X[:, 2] > 0, "u", "v"), "late": LABELS})
    frame = dataframe.from_pandas(table.to_pandas(), npartitions=3)
    fitted = fit(TableModel("late"), frame, engine=DaskCluster(client))
    ends = [len(frame.partitions[k]) for k in range(3)]
    parts = [table[start : start + size] for start, size in zip(np.cumsum([0, *ends[:-1]]), ends, strict=True)]
    alike = fit(TableModel("late"), parts, engine=InProcess())
    assert made.belief_bytes(fitted.model.estimator) == made.belief_bytes(alike.model.estimator)
    with pytest.raises(InvalidSpec, match=r"\(X, y\)"):
        fit(REGRESSOR, rows, engine=DaskCluster(client))


def test_a_worker_that_is_killed_mid_job(expected: bytes, client: Any, tmp_path: Path) -> None:
    before = pids(client)
    fitted = fit(CLASSIFIER, made.deadly(SHARDS, 3, tmp_path), engine=DaskCluster(client))
    assert not list(tmp_path.iterdir())  # somebody died
    assert made.belief_bytes(fitted.model) == expected
    client.wait_for_workers(2, timeout=60)
    assert pids(client) != before


def test_a_worker_that_is_killed_between_rounds_takes_what_it_kept_with_it(expected: bytes, client: Any) -> None:
    client.wait_for_workers(2, timeout=60)
    victim, killed = pids(client)[0], []

    def kill(progress: Any) -> None:
        if progress.stage == "round 1" and progress.done == progress.shards and not killed:
            killed.append(victim)
            os.kill(victim, signal.SIGKILL)

    fitted = fit(CLASSIFIER, SHARDS, engine=DaskCluster(client), progress=kill)
    assert killed
    assert made.belief_bytes(fitted.model) == expected


def test_a_mixture_is_the_batch_fit(client: Any) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(5400, 2)) + np.repeat([[0.0, 0.0], [6.0, 1.0], [0.0, 7.0]], 1800, axis=0)
    dask_array = pytest.importorskip("dask.array")
    whole = HarmonyMixture().fit(rows)
    fitted = fit_mixture(HarmonyMixture(), dask_array.from_array(rows, chunks=(2000, 2)), engine=DaskCluster(client))
    assert fitted.n_shards == fitted.model.n_clusters_ == whole.n_clusters_ == 3
    np.testing.assert_allclose(fitted.model.means_, whole.means_, atol=1e-10)
    np.testing.assert_allclose(fitted.model.covariances_, whole.covariances_, atol=1e-10)
