"""Forests, for what there is to gain beyond linear models: River's, and CapyMOA's where it is installed.

They are slow, so that they may be given fewer rows than the others. Adaptive forests take categories as they are,
River's Mondrian forest a column per value.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from shutil import which
from typing import Any

import numpy as np
from river import forest

from bayou.contracts import Matrix, Vector
from benchmarks.streams.contenders import WARM_UP, Clock, Contender, Predicted
from benchmarks.streams.linear import even_if_empty, without
from benchmarks.streams.stream import Stream

N_TREES = 10  # the default of River
N_MOA_TREES = 100  # the default of CapyMOA


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


def by_capymoa(n_trees: int) -> Callable[[Stream], Predicted]:
    """MOA's adaptive forest, in a process of its own: Java's machine and what we compile are kept apart."""

    def way(stream: Stream) -> Predicted:
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            return process.submit(grow_moa, stream, n_trees).result()

    return way


def grow_moa(stream: Stream, n_trees: int) -> Predicted:
    """The time is that of all threads of Java's machine, once it has seen a few rows; its size is not told."""
    from capymoa.classifier import AdaptiveRandomForestClassifier  # noqa: PLC0415 (it may be absent)
    from capymoa.core import LabeledInstance  # noqa: PLC0415

    def grow(stream: Stream) -> Predicted:
        schema, given = moa_schema(stream), []
        model = AdaptiveRandomForestClassifier(schema, ensemble_size=n_trees)
        with Clock() as clock:
            for row, label in zip(moa_rows(stream), stream.labels.tolist(), strict=True):
                instance = LabeledInstance.from_array(schema, row, label)
                given.append(of_all(model.predict_proba(instance), stream.n_classes))
                model.train(instance)
        return Predicted(np.array(given), clock.seconds, None)

    grow(stream.first(WARM_UP))
    return grow(stream)


def moa_schema(stream: Stream) -> Any:
    """Numbers, then categories by their values, of which the last is any other; the label is named as no column is."""
    from capymoa.stream import Schema  # noqa: PLC0415

    columns = [f"number {column}" for column in range(stream.numbers.shape[1])]
    categories = {
        f"category {name}": [*map(str, range(len(category.values))), "another"]
        for name, category in stream.categories.items()
    }
    label = {"label": [str(code) for code in range(stream.n_classes)]}
    features = [*columns, *categories, *label]
    return Schema.from_custom(features=features, target="label", categories=categories | label, name=stream.name)


def moa_rows(stream: Stream) -> Matrix:
    """Each category as the place of its value in the schema."""
    codes = [np.where(c.codes < 0, len(c.values), c.codes) for c in stream.categories.values()]
    return np.column_stack([stream.numbers, *codes]).astype(np.float64)


def of_all(votes: Any, n_classes: int) -> Vector:
    """Probabilities from votes, of which there are none at first, and then as many as classes that were seen."""
    padded = np.zeros(n_classes)
    if votes is not None:
        padded[: len(votes)] = votes
    total = padded.sum()
    return padded / total if total > 0.0 else np.full(n_classes, 1.0 / n_classes)


def without_java() -> str:
    """Why a peer in Java is left out; nothing if Java is there."""
    return "" if "JAVA_HOME" in os.environ or which("java") is not None else "Java is not installed"


def trees(most_rows: int | None) -> list[Contender]:
    adaptive = by_river(lambda: forest.ARFClassifier(n_models=N_TREES, seed=0), as_they_are=True)
    mondrian = by_river(lambda: forest.AMFClassifier(n_estimators=N_TREES, seed=0), as_they_are=False)
    capymoa = without("capymoa") or without_java()
    return [
        Contender("River ARFClassifier", adaptive, "trees", most_rows),
        Contender("River AMFClassifier", mondrian, "trees", most_rows),
        *[
            Contender(
                f"CapyMOA AdaptiveRandomForest, {n_trees} trees", by_capymoa(n_trees), "trees", most_rows, capymoa
            )
            for n_trees in (N_TREES, N_MOA_TREES)
        ],
    ]
