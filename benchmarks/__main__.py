"""``python -m benchmarks [--quick] [--json PATH] [--only NAME] [--data FOLDER]``."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.console import Console

from benchmarks import (
    banks,
    dense,
    ensembles,
    functions,
    machine,
    mixtures,
    single,
    sparse,
    sparse_quality,
    startup,
    tables,
)
from benchmarks.report import Result, show, write
from benchmarks.timing import Effort

CASES: dict[str, Callable[[Effort], Iterator[Result]]] = {
    "diagonal": dense.diagonal,
    "full": dense.full,
    "low-rank": dense.low_rank,
    "banks": banks.banks,
    "arrays": single.arrays,
    "dicts": single.dicts,
    "functions": functions.functions,
    "cluster-streams": mixtures.cluster_streams,
    "mixtures": mixtures.mixtures,
    "nearest": mixtures.nearest,
    "ensembles": ensembles.ensembles,
    "start-up": startup.start_up,
    "sparse": sparse.sparse,
    "hashed": sparse.hashed,
    "tables": tables.tables,
    "memory": tables.memory,
    "quality": sparse_quality.quality,
}
BY_NAME = {"tables", "memory", "quality"}  # minutes each, gigabytes of disk, or files of one's own
USUAL = Effort(rounds=15, size=1.0)
QUICK = Effort(rounds=3, size=0.5)


def main(arguments: list[str] | None = None) -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser("benchmarks", description="Compare with scikit-learn, River, VW and padasip.")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds: three minutes, less exact")
    parser.add_argument("--json", type=Path, default=Path("out/bench.json"), metavar="PATH", help="where results go")
    parser.add_argument("--only", action="append", choices=CASES, metavar="NAME", help=", ".join(CASES))
    parser.add_argument("--data", type=Path, metavar="FOLDER", help=f"of a9a and w8a, or {sparse_quality.FOLDER}")
    chosen = parser.parse_args(arguments)
    if chosen.data is not None:
        os.environ[sparse_quality.FOLDER] = str(chosen.data)
    effort = QUICK if chosen.quick else USUAL
    console = Console(width=None if Console().is_terminal else 140)
    results: list[Result] = []
    with console.status("") as status:
        for name in chosen.only or [name for name in CASES if name not in BY_NAME]:
            status.update(f"measuring {name}")
            results.extend(CASES[name](effort))
        status.update("measuring the machine")
        facts = {"machine": machine.facts(effort), "versions": machine.versions(), "effort": effort._asdict()}
    show(results, facts, console)
    write(chosen.json, results, facts)
    console.print(f"written to {chosen.json}", highlight=False)


if __name__ == "__main__":
    main()
