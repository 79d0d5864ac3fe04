"""Dicts of texts: the short way learns what the long way does."""

from __future__ import annotations

import copy
import enum
from collections import UserDict
from typing import Any

import numpy as np
import pytest

from bayou import Budget, Hashing, Linearized, OnlineClassifier
from bayou.errors import InvalidFeatures
from bayou.estimators.classifier import OnlineClassifier as Classifier
from bayou.modelfile import to_bytes

FIELDS = [f"field {j}" for j in range(6)]
SPECS = [
    Hashing(bits=12),
    Hashing(bits=10, signed=True),
    Hashing(bits=12, interactions=(("field 0", "field 1"), ("field 2", "field 2"))),
]


class Colour(str, enum.Enum):  # noqa: UP042  # a StrEnum says its value by str(), this one does not
    RED = "red"


def examples(n: int = 400, n_labels: int = 2) -> list[tuple[dict[str, Any], str]]:
    rng = np.random.default_rng(3)
    words = np.floor(2.0 ** (rng.random((n, len(FIELDS))) * 8)).astype(int).tolist()
    labels = [f"label {(row[0] + row[1]) % n_labels}" for row in words]
    texts = [dict(zip(FIELDS, [f"{word:x} é" for word in row], strict=True)) for row in words]
    return list(zip(texts, labels, strict=True))


def learnt(model: Classifier, rows: list[tuple[Any, str]], kind: Any = dict) -> Classifier:
    for x, y in rows:
        model.learn_one(kind(x), y)
    return model


def assert_same(one: Classifier, two: Classifier) -> None:
    for a, b in zip(one._learner_.belief, two._learner_.belief, strict=True):
        np.testing.assert_array_equal(a, b)
    assert one.log_evidence_ == two.log_evidence_
    assert one.n_examples_ == two.n_examples_
    assert one._inputs.note() == two._inputs.note()  # type: ignore[union-attr]  # it has some
    assert str(one.inspect(10)) == str(two.inspect(10))


@pytest.mark.parametrize("spec", SPECS, ids=repr)
@pytest.mark.parametrize("n_labels", [2, 3])
def test_it_learns_what_the_long_way_does_to_the_last_bit(spec: Hashing, n_labels: int) -> None:
    rows = examples(n_labels=n_labels)
    short = learnt(OnlineClassifier(encoder=spec), rows)
    assert short._short_way is not None
    assert short._short_way(dict(rows[0][0]), "label 0")  # which is taken
    assert_same(short, learnt(OnlineClassifier(encoder=spec), [*rows, (rows[0][0], "label 0")], UserDict))


def test_other_dicts_take_the_long_way() -> None:
    rows = examples(60)
    others: list[tuple[dict[Any, Any], str]] = [
        ({**rows[0][0], "number": 2.5}, "label 1"),
        ({**rows[1][0], "field 3": None}, "label 0"),
        ({**rows[2][0], "field 3": "with \x1f inside"}, "label 1"),
        ({**rows[3][0], "field 3": Colour.RED}, "label 1"),
        ({**rows[4][0], "field 3": "\ud800"}, "label 0"),
        ({"field 5": "fewer"}, "label 0"),
        ({}, "label 1"),
        (rows[5][0], "label of its own"),
    ]
    mixed = [pair for both in zip(rows[:8], others, strict=True) for pair in both] + rows
    spec = Hashing(bits=12)
    assert_same(learnt(OnlineClassifier(encoder=spec), mixed), learnt(OnlineClassifier(encoder=spec), mixed, UserDict))


def test_a_copy_goes_its_own_way() -> None:
    rows = examples(80)
    model = learnt(OnlineClassifier(encoder=Hashing(bits=12)), rows[:40])
    twin = copy.deepcopy(model)
    learnt(twin, rows[40:])
    assert model.n_examples_ == 40
    assert_same(twin, learnt(model, rows[40:]))


def test_a_rule_without_evidence_has_no_short_way() -> None:
    model = learnt(OnlineClassifier(encoder=Hashing(bits=12), rule=Linearized()), examples(20))
    assert model._short_way is None
    assert model.n_examples_ == 20
    assert np.isfinite(model.log_evidence_)


def test_names_must_be_text() -> None:
    model = learnt(OnlineClassifier(encoder=Hashing(bits=12)), examples(20))
    before = copy.deepcopy(model)
    with pytest.raises(InvalidFeatures, match="7"):
        model.learn_one({7: "seven"}, "label 0")
    assert model.n_examples_ == before.n_examples_
    np.testing.assert_array_equal(model._learner_.belief.weights, before._learner_.belief.weights)


@pytest.mark.parametrize("budget", [None, Budget()], ids=["learner", "bank"])
@pytest.mark.parametrize("text", [(), ("field 5",)], ids=["categories", "words"])
def test_predictions_leave_no_trace(text: tuple[str, ...], budget: Budget | None) -> None:
    spec = Hashing(bits=12, text=text, interactions=(("field 0", "number"),))
    rows = [(x | {"number": float(n)}, y) for n, (x, y) in enumerate(examples(40))]
    model = learnt(OnlineClassifier(encoder=spec, budget=budget), rows)
    inputs: Any = model._inputs
    inputs.names.credit = 0.5  # as after more names than may be asked for at once
    table = {name: [x[name] for x, _ in rows] for name in rows[0][0]}
    table["field 1"] = [f"never seen {n}" for n in range(len(rows))]
    before = to_bytes(model)
    for x in (rows[0][0], dict.fromkeys(FIELDS, "never seen"), {"field 0": None, "number": 2.5, "new": 1.0}):
        model.predict_one(x)
        model.predict_proba_one(x)
    model.predict(table)
    model.predict_proba_interval(table)
    model.decision_function(table)
    model.inspect(5)
    assert to_bytes(model) == before
