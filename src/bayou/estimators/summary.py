"""A table of weights with their uncertainty, for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Matrix, Posterior, Vector


class Summary(NamedTuple):
    """Per weight, in the units of the raw inputs: mean, deviation, central interval, probability of its sign."""

    names: list[str]
    mean: Vector
    deviation: Vector
    interval: Matrix
    sign_probability: Vector
    coverage: float
    note: str = ""

    @classmethod
    def of(
        cls, names: list[str], posterior: Posterior[Any], belief: Any, first: int, scale: Vector, coverage: float
    ) -> Summary:
        """Of the weights from ``first`` on, each times its scale."""
        mean = belief.mean[first:].astype(np.float64)
        interval = np.sort(posterior.intervals(belief, coverage)[first:] * scale[:, None], axis=1)
        deviation = np.sqrt(posterior.variances(belief)[first:]) * np.abs(scale)
        return cls(names, mean * scale, deviation, interval, posterior.sign_probability(belief)[first:], coverage)

    @classmethod
    def joined(cls, parts: Sequence[Summary]) -> Summary:
        """One table of several."""
        names = [name for part in parts for name in part.names]
        mean, deviation, interval, sign = (np.concatenate([part[field] for part in parts]) for field in range(1, 5))
        return cls(names, mean, deviation, interval, sign, parts[0].coverage)

    def most_certain(self, n: int) -> Summary:
        """The weights whose sign is surest; of equally sure ones, those furthest from zero in deviations."""
        distance = np.abs(self.mean) / np.where(self.deviation > 0.0, self.deviation, np.inf)
        return self.taken(np.lexsort((-distance, -self.sign_probability))[:n])

    def taken(self, order: NDArray[np.intp]) -> Summary:
        """The weights at these places, in their order."""
        return Summary(
            [self.names[i] for i in order],
            self.mean[order],
            self.deviation[order],
            self.interval[order],
            self.sign_probability[order],
            self.coverage,
            self.note,
        )

    def __str__(self) -> str:
        head = ["weight", "mean", "sd", f"{self.coverage:.0%} interval", "P(sign)"]
        rows = [
            [name, f"{mean:.4g}", f"{deviation:.3g}", f"[{low:.4g}, {high:.4g}]", f"{probability:.4f}"]
            for name, mean, deviation, (low, high), probability in zip(
                self.names, self.mean, self.deviation, self.interval, self.sign_probability, strict=True
            )
        ]
        return aligned([head, *rows]) + (f"\n{self.note}" if self.note else "")


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Columns of text: the first to the left, the others to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = (
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)
