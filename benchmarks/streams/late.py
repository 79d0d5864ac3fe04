"""Labels that come late: what predicts a row then knows the labels of rows so many before it, and no later ones."""

from __future__ import annotations

import pickle
from collections import deque
from typing import Any

import numpy as np
from river import preprocessing

import bayou
from bayou.contracts import Matrix
from benchmarks.streams.contenders import BEST_RATE, NO_CHANGE, OURS, Clock, Contender, Predicted, kept_bytes
from benchmarks.streams.linear import RATES, Way, best_of, even_if_empty, has_two_classes, river_model
from benchmarks.streams.stream import Stream


def by_bayou(stream: Stream) -> Predicted:
    """With its defaults: each row is forecast, and its label learnt when it comes."""
    model, waiting, given = bayou.OnlineClassifier(), deque[tuple[int, int]](), []
    codes = range(stream.n_classes)
    with Clock() as clock:
        for rows, labels in stream.chunks():
            for row, label in zip(rows, labels.tolist(), strict=True):
                if len(waiting) > stream.delay:
                    model.learn_late(*waiting.popleft())
                issued = model.forecast_one(row)
                waiting.append((issued.id, label))
                given.append([(issued.said or {}).get(code, 0.0) for code in codes])
    return Predicted(even_if_empty(given), clock.seconds, kept_bytes(model))


def by_river(rate: float | None = None) -> Way:
    """Its regression after its scaler, which needs no labels; a row is learnt when its label comes."""

    def way(stream: Stream) -> Predicted:
        scaler, model = preprocessing.StandardScaler(), river_model(stream.n_classes, rate)
        waiting, given = deque[tuple[dict[Any, float], int]](), []
        with Clock() as clock:
            for numbers, places, label in stream.each():
                if len(waiting) > stream.delay:
                    model.learn_one(*waiting.popleft())
                raw = dict(enumerate(numbers.tolist()))
                scaler.learn_one(raw)
                x = {**scaler.transform_one(raw), **dict.fromkeys(places, 1.0)}
                told = model.predict_proba_one(x)
                given.append([told.get(code, 0.0) for code in range(stream.n_classes)])
                waiting.append((x, label))
        return Predicted(even_if_empty(given), clock.seconds, len(pickle.dumps((scaler, model))))

    return way


def by_best_rate(stream: Stream) -> Predicted:
    """Of all rates the one whose log loss is least, which only hindsight can tell; the cost is that of one run."""
    return best_of({rate: by_river(rate)(stream) for rate in RATES}, stream)


def by_no_change(stream: Stream) -> Predicted:
    """The latest label that is known, as probable as it was right so far to repeat it."""
    with Clock() as clock:
        probabilities = _repeated(stream)
    return Predicted(probabilities, clock.seconds, 3 * 8)


def _repeated(stream: Stream) -> Matrix:
    labels, lag, n = stream.labels, stream.delay, len(stream)
    same = np.zeros(n)
    same[lag + 1 :] = labels[lag + 1 :] == labels[: n - lag - 1]  # row t has the label of row t - lag - 1
    right = (1.0 + np.cumsum(same)) / (2.0 + np.maximum(np.arange(n) - lag, 0))
    probabilities = np.full((n, stream.n_classes), 1.0 / stream.n_classes)
    for t in range(lag + 1, n):
        known = t - lag - 1  # whose label has come, and so whether it was repeated
        probabilities[t] = (1.0 - right[known]) / (stream.n_classes - 1)
        probabilities[t, labels[known]] = right[known]
    return probabilities


def is_late(stream: Stream) -> bool:
    return stream.delay > 0 and has_two_classes(stream)


LATE = [
    Contender(OURS, by_bayou, "ours", takes=is_late),
    Contender("River regression, default rate", by_river(), takes=is_late),
    Contender(f"River regression, {BEST_RATE}", by_best_rate, takes=is_late),
    Contender(NO_CHANGE, by_no_change, "baseline", takes=is_late),
]
