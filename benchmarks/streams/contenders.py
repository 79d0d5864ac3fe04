"""What predicts each label of a stream before it is told, and what that costs: ourselves and the baselines."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

import bayou
from bayou.contracts import Matrix
from bayou.evaluation.baselines import Frequencies
from benchmarks.streams.stream import Stream

WARM_UP = 100  # rows that are learnt before the clock starts, by a model that is thrown away: kernels are compiled
OURS = "bayou OnlineClassifier"
NO_CHANGE = "no change"
BEST_RATE = "best rate in hindsight"


class Predicted(NamedTuple):
    """Probabilities before each label, a column per class; seconds of CPU; bytes of what is kept, if that is known.

    ``note`` is added to the contender's name.
    """

    probabilities: Matrix
    seconds: float
    n_bytes: int | None
    note: str = ""

    def first(self, rows: int) -> Predicted:
        """Of the first rows, at the same cost per row."""
        share, note = rows / len(self.probabilities), f"{self.note}, the first rows"
        return Predicted(self.probabilities[:rows], share * self.seconds, self.n_bytes, note)


@dataclass(frozen=True)
class Contender:
    """A way to predict a stream. ``kind``: ours, baseline, linear or trees; ``most_rows`` are the most it is given."""

    name: str
    predict: Callable[[Stream], Predicted]
    kind: str = "linear"
    most_rows: int | None = None
    missing: str = ""
    takes: Callable[[Stream], bool] = lambda stream: stream.delay == 0

    def run(self, stream: Stream) -> Predicted:
        """On one thread, after a short run that is not counted."""
        with threadpool_limits(1):
            self.predict(stream.first(WARM_UP))
            return self.predict(stream.first(self.most_rows))


class Clock:
    """CPU time of the process within a ``with``."""

    seconds = 0.0

    def __enter__(self) -> Clock:
        self._start = time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds += time.process_time() - self._start


def by_bayou(stream: Stream) -> Predicted:
    """With its defaults."""
    model = bayou.OnlineClassifier()
    classes, given = range(stream.n_classes), []
    with Clock() as clock:
        for rows, labels in stream.chunks():
            given.append(model.learn_many(rows, labels, classes=classes))
    return Predicted(np.concatenate(given), clock.seconds, kept_bytes(model))


def kept_bytes(model: bayou.OnlineClassifier) -> int:
    """Of its model file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        bayou.save(model, path)
        return path.stat().st_size


def by_frequencies(stream: Stream) -> Predicted:
    """How often each class came so far, each counted once more."""
    with Clock() as clock:
        probabilities = Frequencies(stream.n_classes).learn(stream.labels)
    return Predicted(probabilities, clock.seconds, 8 * stream.n_classes)


def by_no_change(stream: Stream) -> Predicted:
    """The last label, as probable as it was right so far to repeat it; the other classes share the rest evenly.

    Right and wrong are counted once more, as it is for the frequencies.
    """
    labels, n = stream.labels, len(stream)
    with Clock() as clock:
        repeated = np.concatenate([[0], np.cumsum(labels[1:] == labels[:-1])])  # among rows 1 to t
        tried = np.arange(n)
        right = (1.0 + repeated) / (2.0 + tried)  # after row t, of row t + 1
        probabilities = np.full((n, stream.n_classes), 1.0 / stream.n_classes)
        probabilities[1:] = ((1.0 - right[:-1]) / (stream.n_classes - 1))[:, None]
        probabilities[np.arange(1, n), labels[:-1]] = right[:-1]
    return Predicted(probabilities, clock.seconds, 3 * 8)


def by_truth(stream: Stream) -> Predicted:
    assert stream.truth is not None
    return Predicted(stream.truth, 0.0, 0)


def is_made(stream: Stream) -> bool:
    return stream.truth is not None and stream.delay == 0


OURSELVES = [Contender(OURS, by_bayou, "ours")]
BASELINES = [
    Contender(NO_CHANGE, by_no_change, "baseline"),
    Contender("class frequencies", by_frequencies, "baseline"),
    Contender("the probabilities that made it", by_truth, "baseline", takes=is_made),
]
