"""Forests, for what there is to gain beyond linear models: River's, and CapyMOA's where it is installed.

They are slow, so that they may be given fewer rows than the others; River's adaptive forest takes categories as they
are, the others a column per value.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
from river import forest

from bayou.contracts import Vector
from benchmarks.streams.contenders import Clock, Contender, Predicted
from benchmarks.streams.linear import even_if_empty, without
from benchmarks.streams.stream import Stream

N_TREES = 10  # the default of River; that of CapyMOA, 100, takes ten times as long


def by_river(make: Callable[[], Any], as_they_are: bool) -> Callable[[Stream], Predicted]:
    """A dict per call."""

    def way(stream: Stream) -> Predicted:
        model, codes, given = make(), range(stream.n_classes), []
        rows = stream.dicts() if as_they_are else stream.dense_dicts()
        with Clock() as clock:
            for x, label in rows:
                told = model.predict_proba_one(x)
                given.append([told.get(code, 0.0) for code in codes])
                model.learn_one(x, label)
        return Predicted(even_if_empty(given), clock.seconds, len(pickle.dumps(model)))

    return way


def by_capymoa(stream: Stream) -> Predicted:
    """MOA's adaptive forest, in Java; the time is that of all threads of its machine, its size is not told."""
    from capymoa.classifier import AdaptiveRandomForestClassifier  # noqa: PLC0415 (it may be absent)
    from capymoa.core import LabeledInstance  # noqa: PLC0415
    from capymoa.stream import Schema  # noqa: PLC0415

    columns, classes = [f"x{column}" for column in range(stream.n_columns)], list(map(str, range(stream.n_classes)))
    schema = Schema.from_custom(features=[*columns, "y"], target="y", categories={"y": classes}, name="stream")
    model = AdaptiveRandomForestClassifier(schema, ensemble_size=N_TREES)
    given = []
    with Clock() as clock:
        for rows, labels in stream.chunks():
            for row, label in zip(rows, labels.tolist(), strict=True):
                instance = LabeledInstance.from_array(schema, row, label)
                given.append(of_all(model.predict_proba(instance), stream.n_classes))
                model.train(instance)
    return Predicted(np.array(given), clock.seconds, None)


def of_all(votes: Any, n_classes: int) -> Vector:
    """Probabilities from votes, of which there are none at first, and then as many as classes that were seen."""
    padded = np.zeros(n_classes)
    if votes is not None:
        padded[: len(votes)] = votes
    total = padded.sum()
    return padded / total if total > 0.0 else np.full(n_classes, 1.0 / n_classes)


def trees(most_rows: int | None) -> list[Contender]:
    adaptive = by_river(lambda: forest.ARFClassifier(n_models=N_TREES, seed=0), as_they_are=True)
    mondrian = by_river(lambda: forest.AMFClassifier(n_estimators=N_TREES, seed=0), as_they_are=False)
    capymoa = without("capymoa")
    return [
        Contender("River ARFClassifier", adaptive, "trees", most_rows),
        Contender("River AMFClassifier", mondrian, "trees", most_rows),
        Contender("CapyMOA AdaptiveRandomForest, 10 trees", by_capymoa, "trees", most_rows, capymoa),
    ]
