"""Shards against one pass, and many workers against one: python -m benchmarks.distributed [--data FOLDER] [--rows N].

With a folder that has ``flights/flights-3m.parquet``, what sixteen parts of it give beside a single pass. Without, the
speed of 1, 2 and 4 processes and of two workers of Dask on rows that are made, the constants of the cost model, and
what the model and the simulation say of more workers than there are here.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from bayou import (
    FullGaussian,
    Gaussian,
    Logistic,
    NormalInverseGamma,
    OnlineClassifier,
    OnlineRegressor,
    Probit,
    TableModel,
)
from bayou.distributed import DaskCluster, Fitted, LocalProcesses, fit, shards_of
from bayou.distributed.naturals import natural_of, write
from bayou.distributed.readers import TableReader
from bayou.estimators.common_frame import encoding_of
from bayou.learner import Learner
from bayou.numerics.files import polars
from bayou.rules import MomentMatching
from benchmarks.scale_model import Costs, Job, predicted, simulated

PARTS = 16
HELD_OUT_EVERY = 30
N_FEATURES = 200
REPEATS = 5
TASKS = 300
SPIN = 3_000_000
PER_DAY = 1.0 / 24.0  # deaths of a worker, per hour
FEWEST = 10  # workers: fewer would die before a round is over


# --- sixteen parts of a stream, and one pass


def flights(data: Path, workers: int) -> None:
    """Gaussian, logistic and probit models of delays: parts and rounds beside one pass in the same frame."""
    pl = polars()
    table = pl.read_parquet(data / "flights" / "flights-3m.parquet").with_row_index("row")
    held_out = table.filter(pl.col("row") % HELD_OUT_EVERY == 0).drop("row")
    told = table.filter(pl.col("row") % HELD_OUT_EVERY != 0).drop("row")
    with tempfile.TemporaryDirectory() as name, LocalProcesses(workers) as engine:
        for part in range(PARTS):
            rows = told[len(told) * part // PARTS : len(told) * (part + 1) // PARTS]
            rows.write_parquet(Path(name) / f"part-{part:02d}.parquet")
        source = str(Path(name) / "part-*.parquet")
        numbers(source, engine, held_out)
        for likelihood in (Logistic(), Probit()):
            classes(source, engine, OnlineClassifier(likelihood=likelihood), held_out)


def numbers(source: str, engine: Any, held_out: Any) -> None:
    """How far the parts are from one pass: in what they predict, and in every weight."""
    for learner in (
        OnlineRegressor(posterior=FullGaussian(10.0), likelihood=Gaussian(1000.0)),
        OnlineRegressor(posterior=NormalInverseGamma(prior_variance=10.0)),
    ):
        one, many = (fitted(TableModel("delay"), source, engine, learner, shards) for shards in (1, PARTS))
        means, spreads = both(one.model, many.model)
        apart = np.abs(means[1] - means[0]) / spreads[0]
        ratio = np.abs(spreads[1] / spreads[0] - 1.0)
        said = [model.model.predict(held_out) for model in (one, many)]
        off = np.abs(said[1].mean - said[0].mean).max() / held_out["delay"].std()
        wider = np.abs(np.sqrt(said[1].variance / said[0].variance) - 1.0).max()
        print(f"{learner.posterior}: exact: {many.exact}")
        print(f"  predictions within {off:.1e} deviations of the delay, their deviations within {wider:.1e}")
        largest = (np.abs(means[1] - means[0]) / np.abs(means[0]).max()).max()
        print(
            f"  means within {apart.max():.1e} deviations, or {largest:.1e} of the largest; "
            f"deviations within {ratio.max():.1e}"
        )


def classes(source: str, engine: Any, learner: Any, held_out: Any) -> None:
    """Held-out log loss and deviations, by rounds."""
    model = TableModel("delay > 15")
    one = fitted(model, source, engine, learner, 1, rounds=1)
    loss = log_loss(one.model, held_out)
    print(f"{learner.likelihood}: one pass {loss:.6f} on {len(held_out):,} rows held out")
    many = fitted(model, source, engine, learner, PARTS)
    for label, other in (("1 round", many.one_pass), (f"{len(many.rounds)} rounds", many.model)):
        means, spreads = both(one.model, other)
        off = log_loss(other, held_out)
        ratio = np.abs(spreads[1] / spreads[0] - 1.0).max()
        apart = (np.abs(means[1] - means[0]) / spreads[0]).max()
        print(
            f"  {label}: {off:.6f} ({100 * (off / loss - 1.0):+.4f} %), "
            f"deviations within {100 * ratio:.2f} %, means within {apart:.2f} deviations"
        )
    for number, done in enumerate(many.rounds, 1):
        print(f"  round {number}: {done.seconds:.1f} s, moved {done.moved}")
    if isinstance(learner.likelihood, Logistic):
        mode, spread = most_probable(source, many.model)
        for label, model in (("one pass", one.model), ("one round", many.one_pass), ("three rounds", many.model)):
            mean = model.estimator._learner_.belief.mean
            print(
                f"  {label}: within {(np.abs(mean - mode) / spread).max():.2f} deviations of the most probable weights"
            )


def most_probable(source: str, model: TableModel, prior_variance: float = 1.0) -> Any:
    """Weights of a logistic model by Newton's method over all rows, as often as it takes: what batch would give."""
    reader, encoding = TableReader(model), encoding_of(model.estimator)
    weights = model.estimator._learner_.belief.mean.copy()
    for _ in range(4):
        slope, curvature = -weights / prior_variance, np.eye(weights.size) / prior_variance
        for shard in shards_of(source):
            for chunk in shard.chunks():
                rows, targets, _ = reader.examples(chunk)
                features, _ = encoding.features(rows)
                signs = encoding.targets(targets)
                wrong = 1.0 / (1.0 + np.exp(signs * (features @ weights)))
                slope += features.T @ (signs * wrong)
                curvature += (features.T * (wrong * (1.0 - wrong))) @ features
        weights += np.linalg.solve(curvature, slope)
    return weights, np.sqrt(np.diag(np.linalg.inv(curvature)))


def fitted(model: Any, source: Any, engine: Any, learner: Any, shards: int, rounds: int = 3) -> Fitted:
    return fit(model, source, engine=engine, learner=learner, shards=shards, rounds=rounds, tolerance=1e-9)


def both(one: Any, other: Any) -> tuple[list[Any], list[Any]]:
    learners = [model.estimator._learner_ for model in (one, other)]
    spreads = [np.sqrt(learner.posterior.variances(learner.belief)) for learner in learners]
    return [learner.belief.mean for learner in learners], spreads


def log_loss(model: TableModel, table: Any) -> float:
    given, late = model.predict(table), table["delay"].to_numpy() > 15
    return float(-np.log(given[np.arange(len(late)), late.astype(int)]).mean())


# --- how fast, and what it takes


def peak() -> int:
    """Bytes that this process has held at most. (What `resource` says begins with what the parent held.)"""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def nothing(value: int) -> int:
    return value


def spin(count: int) -> int:
    """Work that needs a processor and nothing else."""
    total = 0
    for n in range(count):
        total ^= n
    return total


def silently(task: int) -> None:
    pass


def made(folder: Path, n_rows: int, shards: int = 8) -> str:
    """Files of rows of which one column is a class."""
    pl, rng = polars(), np.random.default_rng(0)
    weights = rng.normal(size=N_FEATURES) / np.sqrt(N_FEATURES)
    for shard in range(shards):
        X = rng.normal(size=(n_rows // shards, N_FEATURES)).astype(np.float32)
        columns = {f"x{j}": X[:, j] for j in range(N_FEATURES)}
        columns["y"] = X @ weights + rng.logistic(size=len(X)) > 0.0
        pl.DataFrame(columns).write_parquet(folder / f"part-{shard}.parquet", row_group_size=16_384)
    return str(folder / "part-*.parquet")


def speed(n_rows: int) -> tuple[float, float]:
    """Seconds of the fastest round by engine, measured in turns; returns seconds per row and per task of Dask."""
    model = OnlineClassifier(likelihood=Logistic())
    engines: dict[str, Any] = {f"{n} process(es)": LocalProcesses(n) for n in (1, 2, 4)} | {"Dask, 2": DaskCluster()}
    rounds, looks, per_task, spins, busy = {}, {}, {}, {}, np.inf
    tasks = [(n,) for n in range(TASKS)]
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        source = made(Path(name), n_rows)
        for label, engine in engines.items():
            stack.enter_context(engine)
            fit(model, source, target="y", engine=engine, rounds=2)  # who starts, starts now
            rounds[label] = looks[label] = per_task[label] = spins[label] = np.inf
        for _ in range(REPEATS):
            for label, engine in engines.items():
                started = time.perf_counter()
                engine.map(nothing, tasks, silently)
                per_task[label] = min(per_task[label], (time.perf_counter() - started) / TASKS)
                started = time.perf_counter()
                engine.map(spin, [(SPIN,)] * 8, silently)
                spins[label] = min(spins[label], time.perf_counter() - started)
                run = fit(model, source, target="y", engine=engine, rounds=2)
                looks[label] = min(looks[label], run.seconds_to_look)
                rounds[label] = min(rounds[label], *(one.seconds for one in run.rounds))
                busy = min(busy, *(one.busy_seconds for one in run.rounds))
        for label, engine in engines.items():
            peaks = engine.reduce(max, engine.map(peak, [() for _ in range(8)], silently))
            faster, given = (times["1 process(es)"] / times[label] for times in (rounds, spins))
            print(f"{label}: {looks[label]:.2f} s to look, {rounds[label]:.2f} s a round")
            print(f"  {n_rows / rounds[label]:,.0f} rows/s, {faster:.2f} times one process; spinning: {given:.2f}")
            print(f"  {1e3 * per_task[label]:.2f} ms a task, {peaks / 2**20:,.0f} MiB at most")
    return busy / n_rows, per_task["Dask, 2"]


def memory() -> None:
    """What a worker holds at most, of few rows and of many."""
    for n_rows in (40_000, 160_000, 640_000):
        with tempfile.TemporaryDirectory() as name, LocalProcesses(1) as engine:
            source = made(Path(name), n_rows, shards=2)
            fit(OnlineClassifier(likelihood=Logistic()), source, target="y", engine=engine, rounds=1)
            held = engine.map(peak, [()], silently)[0]
        print(f"{n_rows // 2:,} rows a shard: {held / 2**20:,.0f} MiB")


def of_a_shard(n_features: int) -> float:
    """Seconds to begin with a cavity and to tell what was learnt, of full covariance."""
    learner = Learner(Logistic(), FullGaussian(), MomentMatching(), n_features)
    rng = np.random.default_rng(0)
    learner.learn_many(rng.normal(size=(500, n_features)), np.where(rng.random(500) < 0.5, -1.0, 1.0))
    times = []
    for _ in range(10):
        started = time.perf_counter()
        write(learner, natural_of(learner))
        times.append(time.perf_counter() - started)
    return min(times)


def scale(per_row: float, per_task: float) -> None:
    """The formula and the simulation, of more workers than there are here."""
    costs = Costs(per_row, of_a_shard(N_FEATURES), per_task)
    print(f"{1e6 * per_row:.2f} us a row, {1e3 * costs.per_shard:.1f} ms a shard, {1e3 * per_task:.2f} ms a task")
    print("workers  shards  hours  efficiency  spread 0.5  and a death per worker and day")
    rows = 1e10
    alone = predicted(Job(rows, N_FEATURES, 20_000), 1, costs)
    for workers in (1, 10, 100, 1000, 10_000):
        job = Job(rows, N_FEATURES, max(4 * workers, 20_000))
        seconds = predicted(job, workers, costs)
        slow = simulated(job, workers, costs, spread=0.5)
        deaths = simulated(job, workers, costs, spread=0.5, failures_per_hour=PER_DAY) if workers >= FEWEST else np.nan
        efficiency = alone / (workers * seconds)
        print(
            f"{workers:7,} {job.shards:7,} {seconds / 3600:7.3f} {100 * efficiency:9.0f} % {slow / 3600:11.3f} "
            f"{deaths / 3600:12.3f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--rows", type=int, default=320_000)
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    if asked.data is not None:
        flights(asked.data, asked.workers)
        return
    per_row, per_task = speed(asked.rows)
    memory()
    scale(per_row, per_task)


if __name__ == "__main__":
    main()
