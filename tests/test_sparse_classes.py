"""Banks of sparse rows of three classes or more: dense banks and the mixture, written out, are the second route."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import bayou
from bayou import Bank, Budget, Gaussian, Hashing, Member, OnlineClassifier, Probit, Softmax
from bayou.contracts import State
from bayou.errors import ImproperBelief, InvalidSpec, InvalidTarget, ModelFileError
from bayou.estimators import standard_members
from bayou.modelfile import from_bytes, to_bytes
from bayou.sparse_bank import SparseBank
from bayou.sparse_class_bank import SparseClassBank

MEMBERS = [Member(Softmax(3), drift, size) for drift in (0.0, 1e-3) for size in (0.5, 4.0)]


def one_hot(n: int, d: int, seed: int) -> tuple[Any, Any]:
    """Rows of one entry each, of any value, and classes."""
    random = np.random.default_rng(seed)
    columns, values = random.integers(d, size=n), random.normal(size=n) + 1.0
    X = scipy.sparse.csr_array((values, (np.arange(n), columns)), shape=(n, d))
    weights = random.normal(size=(d, 3))
    y = np.argmax(values[:, None] * weights[columns] + random.gumbel(size=(n, 3)), axis=1)
    return X, y.astype(float)


def kinds(n: int, seed: int) -> tuple[dict[str, Any], Any]:
    """Tables of two categories and a number, and three classes that hang on them otherwise from half way on."""
    random = np.random.default_rng(seed)
    columns, number = [random.integers(size, size=n) for size in (4, 20)], random.normal(size=n)
    y = np.zeros(n, np.int64)
    for part in (slice(0, n // 2), slice(n // 2, n)):
        latent = sum(2.0 * random.normal(size=(c.max() + 1, 3))[c[part]] for c in columns)
        y[part] = np.argmax(latent + number[part, None] * [1.0, 0.0, -1.0] + random.gumbel(size=latent.shape), axis=1)
    table = {f"c{j}": [f"v{v}" for v in c] for j, c in enumerate(columns)} | {"size": number}
    return table, np.array(["low", "middle", "up"])[y]


def test_rows_of_one_entry_are_learnt_as_by_a_dense_bank() -> None:
    """Where a row has one entry no correlation is lost: members of both say the same."""
    X, y = one_hot(300, 5, seed=0)
    sparse, dense = SparseClassBank(MEMBERS, 5), Bank(MEMBERS, 5)
    counts = np.random.default_rng(1).integers(0, 4, size=300).astype(float)
    said, wanted = sparse.learn_many(X, y, counts), dense.learn_many(X.toarray(), y, counts)
    np.testing.assert_allclose(said.of_members, wanted.of_members, rtol=1e-3, atol=1e-5)
    for m in range(len(MEMBERS)):
        for c in range(3):
            np.testing.assert_allclose(sparse.by_class()[:, c, 0, m], dense.mean_of(m, c), atol=1e-3)
            if MEMBERS[m].drift == 0.0:  # else what was walked since a weight was met is not made up for yet
                variances = dense.covariance_of(m, c).diagonal()
                np.testing.assert_allclose(sparse.by_class()[:, c, 1, m], variances, rtol=1e-3)


def test_evidence_and_weights_are_those_of_the_mixture() -> None:
    X, y = one_hot(300, 5, seed=2)
    rates = np.array([0.0, 1e-2])
    bank = SparseClassBank(MEMBERS, 6, 1.0, switching=rates)
    said = bank.learn_many(X, y)
    m, evidence = len(MEMBERS), []
    chains = np.full((2, m), 0.5 / m)
    for row in said.of_members[np.arange(300), :, y.astype(int)]:
        chains = (1.0 - rates[:, None]) * chains + rates[:, None] * chains.sum(axis=1, keepdims=True) / m
        evidence.append(np.log(chains.sum(axis=0) @ row))
        chains = chains * row / (chains * row).sum()
    np.testing.assert_allclose(said.evidence, evidence, atol=1e-9)
    np.testing.assert_allclose(said.log_probability(y), evidence, atol=1e-9)
    np.testing.assert_allclose(bank.weights, chains.sum(axis=0), atol=1e-9)
    again = bank.predict_many(X)
    np.testing.assert_allclose(again.probabilities.sum(axis=1), 1.0)


def test_chunks_files_and_pickles_are_the_same_to_the_bit() -> None:
    X, y = one_hot(200, 8, seed=3)
    whole, parts = SparseClassBank(MEMBERS, 8), SparseClassBank(MEMBERS, 8)
    whole.learn_many(X, y)
    for start, stop in ((0, 1), (1, 90), (90, 200)):
        parts.learn_many(X[start:stop], y[start:stop])
        parts = pickle.loads(pickle.dumps(SparseClassBank.from_state(parts.to_state())))
    for one, other in zip(whole.belief, parts.belief, strict=True):
        np.testing.assert_array_equal(one, other)


def test_extreme_rows_keep_positive_variances() -> None:
    X = scipy.sparse.csr_array(np.tile([[30.0, 0.0], [1e5, 1.0], [1e-6, 1e-3], [0.0, 0.0]], (300, 1)))
    bank = SparseClassBank(MEMBERS, 3, constant=3.0)
    said = bank.learn_many(X, np.tile([0.0, 2.0, 1.0, 1.0, 2.0], 240))
    assert np.isfinite(said.probabilities).all()
    assert np.isfinite(said.evidence).all()
    for array in bank.belief:
        assert np.isfinite(array).all()
    assert np.all(bank.belief.weights[:, 1] > 0.0)
    before = [array.copy() for array in bank.belief]
    with pytest.raises(ImproperBelief):
        bank.learn_many(scipy.sparse.csr_array([[1.0, 0.0], [1e30, 1e30]]), [1.0, 1.0])
    with pytest.raises(InvalidTarget):
        bank.learn_many(scipy.sparse.csr_array([[1.0, 0.0]]), [3.0])
    for array, saved in zip(bank.belief, before, strict=True):
        np.testing.assert_array_equal(array, saved)


@pytest.mark.parametrize("members", [[Member(Probit())], [Member(Softmax(3)), Member(Gaussian())]])
def test_members_of_one_latent_are_refused(members: list[Member]) -> None:
    with pytest.raises(InvalidSpec, match="Softmax"):
        SparseClassBank(members, 3)


def test_a_class_more_goes_on_with_what_the_others_have_learnt() -> None:
    """Of two classes each has half of the latent: what the bank says of these two stays nearly the same."""
    X, y = one_hot(600, 5, seed=4)
    two = y < 2.0
    scalar = SparseBank([Member(Probit(), drift, 1.0) for drift in (0.0, 1e-3)], 6, 2.0)
    scalar.learn_many(X[two], 2.0 * y[two] - 1.0)
    wider = SparseClassBank([Member(Softmax(3), drift, 1.0) for drift in (0.0, 1e-3)], 6, 2.0)
    wider.carry(scalar, rarity=6.0)
    before, after = scalar.predict_many(X).probability_of_one(), wider.predict_many(X).probabilities
    np.testing.assert_allclose(after[:, 1] / after[:, :2].sum(axis=1), before, atol=0.05)
    assert after[:, 2].max() < 0.1
    np.testing.assert_allclose(wider.weights, scalar.weights, atol=1e-6)
    four = SparseClassBank([Member(Softmax(4), drift, 1.0) for drift in (0.0, 1e-3)], 6, 2.0)
    four.carry(wider, rarity=8.0)
    np.testing.assert_array_equal(four.by_class()[:, :3], wider.by_class())


# --- in the estimator


def test_hashed_rows_of_several_classes_have_a_bank(tmp_path: Path) -> None:
    table, labels = kinds(3000, seed=5)
    one, bank = OnlineClassifier(encoder=Hashing(bits=10)), OnlineClassifier(encoder=Hashing(bits=10), budget=Budget())
    names = np.unique(labels)
    place = np.searchsorted(names, labels)
    losses = [
        -np.log(model.learn_many(table, labels, classes=names)[np.arange(3000), place]).mean() for model in (one, bank)
    ]
    assert losses[1] < losses[0] - 0.05
    assert isinstance(bank.bank_, SparseClassBank)
    assert "drifts with probability" in str(bank.summary())
    assert bank.coef_.shape == (3, 2**10)
    bayou.save(bank, tmp_path / "m.bayou")
    again = bayou.load(tmp_path / "m.bayou")
    more, others = kinds(100, seed=6)
    for model in (bank, again):
        model.partial_fit(more, others)
    np.testing.assert_array_equal(bank.predict_proba(table), again.predict_proba(table))


def rows_of_many(n: int, width: int, seed: int) -> dict[str, list[str]]:
    """Tables of so many categories."""
    drawn = np.random.default_rng(seed).integers(30, size=(width, n))
    return {f"c{j}": [f"v{v}" for v in column] for j, column in enumerate(drawn)}


def learn_dicts(model: OnlineClassifier, table: dict[str, list[str]], labels: list[str]) -> None:
    for values, label in zip(zip(*table.values(), strict=True), labels, strict=True):
        model.learn_one(dict(zip(table, values, strict=True)), label)


def learn_matrix(model: OnlineClassifier, table: dict[str, list[str]], labels: list[str]) -> None:
    entries = np.array([[31 * j + int(v[1:]) for v in column] for j, column in enumerate(table.values())]).T
    rows = scipy.sparse.csr_array(
        (np.ones(entries.size), entries.ravel(), np.arange(len(labels) + 1) * len(table)),
        (len(labels), 31 * len(table)),
    )
    model.partial_fit(rows, labels)


@pytest.mark.parametrize(
    ("encoder", "learn"),
    [
        (Hashing(bits=10), lambda model, table, labels: model.partial_fit(table, labels)),
        (Hashing(bits=10), learn_dicts),
        (None, learn_matrix),
    ],
    ids=["tables", "dicts", "matrices"],
)
def test_classes_that_come_after_a_file_bring_the_members_that_they_would_have_brought(
    encoder: Any, learn: Any
) -> None:
    model: Any = OnlineClassifier(encoder=encoder, budget=Budget(microseconds=20.0))
    learn(model, rows_of_many(12, 40, seed=8), ["a", "b"] * 6)
    for label in ("c", "d"):
        again = from_bytes(to_bytes(model))
        assert again._choice == model._choice
        for one in (model, again):
            learn(one, rows_of_many(12, 40, seed=9), ["a", label] * 6)
        assert to_bytes(again) == to_bytes(model)
        assert isinstance(again.bank_, SparseClassBank)
    assert len(model.bank_.members) < len(standard_members.of_sparse_several(4, 1.0))  # the budget has counted


def test_a_file_that_does_not_tell_how_many_entries_a_row_has_still_loads() -> None:
    model = OnlineClassifier(encoder=Hashing(bits=10), budget=Budget())
    model.partial_fit(rows_of_many(12, 40, seed=8), ["a", "b"] * 6)
    config, arrays = model.to_state()
    assert config.pop("entries") == 40.0
    again = OnlineClassifier.from_state(State(config, arrays))
    table = rows_of_many(5, 40, seed=9)
    np.testing.assert_array_equal(again.predict_proba(table), model.predict_proba(table))


@pytest.mark.parametrize("entries", [-1.0, float("nan"), float("inf"), "many", None, [40.0]])
def test_rows_cannot_have_any_number_of_entries(entries: Any) -> None:
    model = OnlineClassifier(encoder=Hashing(bits=10), budget=Budget())
    model.partial_fit(rows_of_many(4, 3, seed=8), ["a", "b"] * 2)
    config, arrays = model.to_state()
    with pytest.raises(ModelFileError, match="`entries` must be"):
        OnlineClassifier.from_state(State(config | {"entries": entries}, arrays))


def test_classes_that_appear_dicts_and_late_labels() -> None:
    table, labels = kinds(300, seed=7)
    rows = [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)]
    model, late = (OnlineClassifier(encoder=Hashing(bits=10), budget=Budget()) for _ in range(2))
    for x, label in zip(rows, labels, strict=True):
        model.learn_one(x, label)
        late.learn_late(late.forecast_one(x).id, label)
    told = model.predict_proba_one(rows[3])
    assert sum(told.values()) == pytest.approx(1.0)
    assert late.predict_proba_one(rows[3]) == pytest.approx(told, abs=1e-6)
    model.learn_one(rows[0], "new")
    assert sorted(model.predict_proba_one(rows[3])) == ["low", "middle", "new", "up"]
    assert isinstance(model.bank_, SparseClassBank)
    small = OnlineClassifier(encoder=Hashing(bits=10), budget=Budget(n_bytes=60_000.0))
    for x, label in zip(rows, labels, strict=True):
        small.learn_one(x, label)  # two classes have a bank, three have not
    with pytest.raises(InvalidSpec, match="no bank"):
        _ = small.bank_
