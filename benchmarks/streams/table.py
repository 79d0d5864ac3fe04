"""Scores and goals as a table per stream, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.streams.scores import BINS, SMALLEST, Goal, Score
from benchmarks.streams.stream import Stream

HEADINGS = ("rows", "log loss", "accuracy", "ECE", "by chance", "us / row", "bytes")
EXPLAINED = (
    f"Each row is predicted, then learnt. Log loss in nats, of probabilities within [{SMALLEST:g}, 1 - {SMALLEST:g}] "
    f"for everyone; ECE in {BINS} bins of equal width, and what it would be by chance if all probabilities were true; "
    "CPU time on one thread; bytes of what is kept. A goal shows its bound, and by how much ours keeps it or not, with "
    "the standard error of that."
)


def show(stream: Stream, scores: Sequence[Score], goals: Sequence[Goal], console: Console) -> None:
    """The contenders of one stream from the least log loss to the largest, those of fewer rows apart, and the goals."""
    title = f"{stream.name}: {len(stream):,} rows, {stream.n_columns} columns, {stream.n_classes} classes"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("contender", no_wrap=True)
    for heading in HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("reached", no_wrap=True)
    in_order = sorted(scores, key=lambda score: (-score.rows, score.log_loss))
    for before, score in zip([None, *in_order], in_order, strict=False):
        if before is not None and before.rows != score.rows:
            table.add_section()
        table.add_row(*_cells(score), style="bold" if score.kind == "ours" else None)
    table.add_section()
    for goal in goals:
        table.add_row(*_goal_cells(goal))
    console.print(table)


def _cells(score: Score) -> list[str]:
    return [
        score.contender,
        f"{score.rows:,}",
        f"{score.log_loss:.4f}",
        f"{100.0 * score.accuracy:.2f} %",
        f"{100.0 * score.ece:.2f} %",
        f"{100.0 * score.ece_by_chance:.2f} %",
        "" if score.kind == "baseline" else f"{score.microseconds:.1f}",
        "" if score.n_bytes is None else f"{score.n_bytes:,}",
        "",
    ]


def _goal_cells(goal: Goal) -> list[str]:
    bound = {"log_loss": ("", f"<= {goal.bound:.4f}"), "ece": ("", "", "", f"< {100.0 * goal.bound:g} %")}[goal.measure]
    reached = "yes" if goal.reached else "NO"
    if goal.difference is not None:
        reached += f", by {abs(goal.difference):.4f} ± {goal.standard_error:.4f}"
    return [f"goal: {goal.what}", *bound, *[""] * (len(HEADINGS) - len(bound)), reached]


def write(path: Path, scores: Sequence[Score], goals: Sequence[Goal], facts: Mapping[str, Any]) -> None:
    """All of it; ``losses`` are the means of 40 stretches of the stream."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {
        **facts,
        "scores": [score.as_dict() for score in scores],
        "goals": [goal.as_dict() for goal in goals],
    }
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
