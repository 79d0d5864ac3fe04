"""The table of results, and the same as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

UNITS = {
    "ratio": "x",
    "fraction": "of dgemm",
    "microseconds": "us beyond the kernel",
    "step": "us",
    "nanoseconds": "ns per function",
    "learners": "learners",
    "per feature": "ns per feature",
    "seconds": "s",
    "megabytes": "MB",
    "growth": "x the memory",
    "nats": "nats",
    "percent": "% right",
}
LARGER_IS_BETTER = {"ratio", "fraction", "percent"}


@dataclass(frozen=True)
class Result:
    """What one contender took, and the figure that is made of it; a goal is a bound on the figure.

    ``ratio`` is the time of this peer over ours; ``fraction`` our rate over that of a matrix product; ``microseconds``
    what a call costs beyond its kernel; ``step`` our time itself; ``learners`` that over the time of one learner;
    ``nanoseconds`` that per function of a basis, ``per feature`` per feature; ``seconds`` wall time; ``megabytes`` the
    most memory of a process, ``growth`` that over another's; ``nats`` a log loss, ``percent`` a share of right answers.
    What is better when larger should be above its goal, all else below it.
    """

    case: str
    setting: str
    contender: str
    microseconds: float | None = None
    figure: float | None = None
    unit: str = "ratio"
    goal: float | None = None

    @property
    def reached(self) -> bool | None:
        if self.goal is None or self.figure is None:
            return None
        return self.figure >= self.goal if self.unit in LARGER_IS_BETTER else self.figure < self.goal

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "reached": self.reached}


def against(case: str, setting: str, times: Mapping[str, float], ours: str, goals: Mapping[str, float]) -> list[Result]:
    """Our time, then each other contender's with its ratio to ours."""
    results = [Result(case, setting, ours, times[ours])]
    for name, microseconds in times.items():
        if name != ours:
            results.append(Result(case, setting, name, microseconds, microseconds / times[ours], goal=goals.get(name)))
    return results


def show(results: Sequence[Result], facts: Mapping[str, Any], console: Console) -> None:
    """Print the facts and the table."""
    for title, values in facts.items():
        console.print(f"{title}: " + ", ".join(f"{name} {value}" for name, value in values.items()), highlight=False)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("case", "setting", "contender"):
        table.add_column(heading, no_wrap=True)
    for heading in ("us / example", "figure", "goal"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("reached")
    for before, result in zip([None, *results], results, strict=False):
        if before is not None and before.case != result.case:
            table.add_section()
        first = before is None or (before.case, before.setting) != (result.case, result.setting)
        table.add_row(*_cells(result, first))
    console.print(table)


def _cells(result: Result, first: bool) -> list[str]:
    unit = UNITS[result.unit]
    bound = ">=" if result.unit in LARGER_IS_BETTER else "<"
    return [
        result.case if first else "",
        result.setting if first else "",
        result.contender,
        "" if result.microseconds is None else _digits(result.microseconds),
        "" if result.figure is None else f"{_digits(result.figure)} {unit}",
        "" if result.goal is None else f"{bound} {result.goal:g}",
        {None: "", True: "yes", False: "NO"}[result.reached],
    ]


def _digits(value: float) -> str:
    return f"{value:.3f}" if value < 10.0 else f"{value:.1f}"


def write(path: Path, results: Sequence[Result], facts: Mapping[str, Any]) -> None:
    """The facts and the results as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {**facts, "results": [result.as_dict() for result in results]}
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
