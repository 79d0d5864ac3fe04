"""Scores of what was predicted, and what we want of ours.

log loss    mean of -log p of the label, p kept within [1e-6, 1 - 1e-6]
accuracy    share of labels that were the most probable
ECE         distance of probability and frequency in 20 bins of equal width: of the second of two classes, or else
            of the most probable one; ``ece_by_chance`` is what true probabilities would show on so many rows
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bayou.contracts import Matrix, Vector
from bayou.evaluation.metrics import Accuracy, CalibrationError
from benchmarks.streams.contenders import NO_CHANGE, OURS, Contender, Predicted
from benchmarks.streams.stream import Stream

SMALLEST = 1e-6
BINS = 20
WINDOWS = 40
FEW_ROWS = 5000
ECE_GOAL, ECE_GOAL_OF_FEW = 0.02, 0.03


@dataclass(frozen=True)
class Score:
    """One contender on one stream; ``losses`` are of each row."""

    stream: str
    contender: str
    kind: str
    rows: int
    log_loss: float
    standard_error: float
    accuracy: float
    ece: float
    ece_by_chance: float
    microseconds: float
    n_bytes: int | None
    losses: Vector

    def windows(self) -> list[float]:
        """The mean log loss of each of 40 stretches of the stream, or of as many as it has rows."""
        return [float(np.mean(part)) for part in np.array_split(self.losses, min(WINDOWS, self.rows))]

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "losses": self.windows()}


def score(stream: Stream, contender: Contender, predicted: Predicted) -> Score:
    """Of as many rows as were predicted."""
    probabilities = checked(predicted.probabilities, stream.n_classes)
    labels = stream.labels[: len(probabilities)]
    losses = log_losses(probabilities, labels)
    accuracy, calibration = Accuracy(), CalibrationError(BINS)
    accuracy.update(probabilities, labels)
    calibration.update(probabilities, labels)
    return Score(
        stream=stream.name,
        contender=contender.name + predicted.note,
        kind=contender.kind,
        rows=len(labels),
        log_loss=float(losses.mean()),
        standard_error=float(losses.std() / np.sqrt(len(losses))),
        accuracy=accuracy.value,
        ece=calibration.value,
        ece_by_chance=calibration.noise,
        microseconds=1e6 * predicted.seconds / len(labels),
        n_bytes=predicted.n_bytes,
        losses=losses,
    )


def checked(probabilities: Matrix, n_classes: int) -> Matrix:
    """What is no number counts as the worst that can be said: no class has any probability."""
    if probabilities.ndim != 2 or probabilities.shape[1] != n_classes:
        raise ValueError(f"probabilities must have a column for each of {n_classes} classes; got {probabilities.shape}")
    return np.clip(np.nan_to_num(probabilities, nan=0.0), 0.0, 1.0)


def log_losses(probabilities: Matrix, labels: Vector) -> Vector:
    given = probabilities[np.arange(len(labels)), labels]
    losses: Vector = -np.log(np.clip(given, SMALLEST, 1.0 - SMALLEST))
    return losses


@dataclass(frozen=True)
class Goal:
    """A bound on a figure of ours, and how far we are from it where both were measured row by row."""

    stream: str
    what: str
    measure: str
    figure: float
    bound: float
    reached: bool
    difference: float | None = None
    standard_error: float | None = None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def goals(scores: Sequence[Score]) -> list[Goal]:
    """Not above the best linear peer, its rate in hindsight included; calibrated; not above the last label again."""
    ours = next(score for score in scores if score.contender == OURS)
    linear = [score for score in scores if score.kind == "linear" and score.rows == ours.rows]
    found = []
    if linear:
        best = min(linear, key=lambda score: score.log_loss)
        found.append(_not_above(ours, best))
    trees = [score for score in scores if score.kind == "trees" and score.rows == ours.rows]
    if trees:
        found.append(_not_above(ours, min(trees, key=lambda score: score.log_loss)))
    bound = ECE_GOAL if ours.rows >= FEW_ROWS else ECE_GOAL_OF_FEW
    found.append(Goal(ours.stream, "calibrated", "ece", ours.ece, bound, ours.ece < bound))
    for baseline in scores:
        if baseline.contender == NO_CHANGE:
            found.append(_not_above(ours, baseline))
    return found


def _not_above(ours: Score, other: Score) -> Goal:
    """The standard error takes rows as independent, which along a stream they are not quite."""
    differences = ours.losses - other.losses
    return Goal(
        stream=ours.stream,
        what=f"not above {other.contender}",
        measure="log_loss",
        figure=ours.log_loss,
        bound=other.log_loss,
        reached=ours.log_loss <= other.log_loss,
        difference=float(differences.mean()),
        standard_error=float(differences.std() / np.sqrt(len(differences))),
    )
