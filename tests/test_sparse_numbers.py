"""Banks of sparse rows of numbers and counts: dense banks, batch solutions and plain sums are the second route."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from scipy.stats import t as student_t

import bayou
from bayou import (
    Bank,
    Budget,
    Gaussian,
    Hashing,
    Member,
    NegativeBinomial,
    OnlineCounter,
    OnlineRegressor,
    Poisson,
    SparseBank,
)
from bayou.errors import ImproperBelief, InvalidTarget, ModelFileError

EVER = math.inf
MEMBERS = [Member(Gaussian(), d, s, noise_memory=k) for d in (0.0, 1e-4) for s in (1.0, 10.0) for k in (EVER, 50.0)]
HEAVY = [Member(Gaussian(), d, 2.0, noise_memory=k, tails=3.0) for d in (0.0, 1e-3) for k in (EVER, 50.0)]
COUNTS = [Member(kind, d, 0.3) for kind in (Poisson(), NegativeBinomial(0.5)) for d in (0.0, 1e-3)]


def one_hot(n: int, d: int, seed: int, drift: float = 0.0) -> tuple[Any, Any]:
    """Rows of one entry each, of any value, and numbers by weights that walk."""
    random = np.random.default_rng(seed)
    columns, values = random.integers(d, size=n), random.normal(size=n) + 2.0
    X = scipy.sparse.csr_array((values, (np.arange(n), columns)), shape=(n, d))
    weights, y = random.normal(size=d), np.zeros(n)
    for t in range(n):
        weights += np.sqrt(drift) * random.normal(size=d)
        y[t] = values[t] * weights[columns[t]] + 0.5 * random.normal()
    return X, y


def streams(n: int, seed: int, kind: str) -> tuple[dict[str, Any], Any]:
    """Tables of three categories and a number, and numbers that hang on them in the end otherwise than at first."""
    random = np.random.default_rng(seed)
    sizes = (5, 30, 200)
    columns = [random.integers(size, size=n) for size in sizes]
    number, weights, y = random.normal(size=n), [random.normal(size=size) for size in sizes], np.zeros(n)
    for t in range(n):
        if kind == "abrupt" and t == n // 2:
            weights = [random.normal(size=size) for size in sizes]
        if kind == "drift":
            weights = [w + 0.01 * random.normal(size=w.size) for w in weights]
        noise = random.standard_t(3.0) if kind == "tails" else random.normal()
        y[t] = 40.0 + 5.0 * (sum(w[c[t]] for w, c in zip(weights, columns, strict=True)) + number[t] + 0.5 * noise)
    return {f"c{j}": [f"v{v}" for v in c] for j, c in enumerate(columns)} | {"size": number}, y


# --- the same as what is written out


@pytest.mark.parametrize("members", [MEMBERS, HEAVY, COUNTS])
def test_rows_of_one_entry_are_learnt_as_by_a_dense_bank(members: list[Member]) -> None:
    """Where a row has one entry no correlation is lost: both are the same mixture, one in double precision."""
    X, y = one_hot(500, 6, seed=0, drift=1e-3)
    if members is COUNTS:
        X.data /= 4.0
        y = np.random.default_rng(1).poisson(np.exp(np.clip(0.3 * y, -3.0, 3.0))).astype(float)
    rates = (0.0, 1e-2)
    # a dense bank draws members anew from those who were believed of late, too: compared member by member
    sparse, dense = SparseBank(members, 6, switching=rates), Bank(members, 6, switching=rates)
    said, wanted = sparse.learn_many(X, y), dense.learn_many(X.toarray(), y)
    for one, other in zip(said.latents, wanted.latents, strict=True):
        for field, expected in zip(one, other, strict=True):
            np.testing.assert_allclose(field, expected, rtol=2e-3, atol=2e-4)
    asked, dense_asked = sparse.predict_many(X), dense.predict_many(X.toarray())
    for one, other in zip(asked.latents, dense_asked.latents, strict=True):
        np.testing.assert_allclose(one.degrees, other.degrees, rtol=1e-9)
        np.testing.assert_allclose(one.noise, other.noise, rtol=2e-3)


def test_evidence_and_weights_are_those_of_the_mixture() -> None:
    """Each member gives a Student t to a number; the chains are written out."""
    X, y = one_hot(300, 5, seed=2)
    rates = np.array([0.0, 1e-2])
    bank = SparseBank(MEMBERS, 5, switching=rates)
    said = bank.learn_many(X, y)
    m = len(MEMBERS)
    given = np.stack(
        [
            student_t.logpdf(y, latent.degrees, latent.mean, np.sqrt(latent.noise * (1.0 + latent.variance)))
            for latent in said.latents
        ],
        axis=1,
    )
    chains, evidence = np.full((2, m), 0.5 / m), []
    for row in np.exp(given):
        chains = (1.0 - rates[:, None]) * chains + rates[:, None] * chains.sum(axis=1, keepdims=True) / m
        evidence.append(np.log(chains.sum(axis=0) @ row))
        chains = chains * row / (chains * row).sum()
    np.testing.assert_allclose(said.evidence, evidence, atol=1e-5)
    np.testing.assert_allclose(bank.weights, chains.sum(axis=0), atol=1e-5)


def test_a_member_without_drift_is_the_batch_solution() -> None:
    """Rows of one entry and a prior in units of the noise: normal times inverse gamma, solved in one step."""
    X, y = one_hot(400, 4, seed=3)
    bank = SparseBank([Member(Gaussian(), 0.0, 5.0, noise_memory=EVER)], 4)
    bank.learn_many(X, y)
    full = X.toarray()
    precision = full.T @ full + np.eye(4) / 5.0
    mean = np.linalg.solve(precision, full.T @ y)
    shape, rate = 0.5 + 200.0, 0.5 + 0.5 * (y @ y - mean @ precision @ mean)
    np.testing.assert_allclose(bank.belief.noise[0], [shape, rate], rtol=1e-4)
    np.testing.assert_allclose(bank.belief.weights[:, 0, 0], mean, rtol=1e-3)
    told = bank.weights_told()
    np.testing.assert_allclose(told.variance, rate / shape * np.diag(np.linalg.inv(precision)), rtol=1e-3)


def test_rows_that_count_several_times_are_learnt_several_times() -> None:
    X, y = one_hot(60, 5, seed=4)
    counts = np.random.default_rng(0).integers(0, 4, size=60)
    stays = [member for member in MEMBERS if member.drift == 0.0 and member.noise_memory == EVER]
    weighed, repeated = SparseBank(stays, 5, switching=(0.0,)), SparseBank(stays, 5, switching=(0.0,))
    weighed.learn_many(X, y, counts)
    repeated.learn_many(X[np.repeat(np.arange(60), counts)], np.repeat(y, counts))
    np.testing.assert_allclose(weighed.belief.weights, repeated.belief.weights, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(weighed.belief.noise, repeated.belief.noise, rtol=1e-6)
    nothing = SparseBank(MEMBERS, 5)
    before = [array.copy() for array in nothing.belief]
    nothing.learn_many(X, y, np.zeros(60))
    for array, saved in zip(nothing.belief, before, strict=True):
        np.testing.assert_array_equal(array, saved)


# --- units, files, extreme inputs


def test_numbers_told_in_other_units_change_nothing() -> None:
    X, y = one_hot(400, 5, seed=5)
    plain, retold = SparseBank(MEMBERS, 6, 2.0), SparseBank(MEMBERS, 6, 2.0)
    for bank in (plain, retold):
        bank.learn_many(X[:200], y[:200])
    retold.retell_targets(4.0, -3.0)
    one, other = plain.learn_many(X[200:], y[200:]), retold.learn_many(X[200:], 4.0 * y[200:] - 3.0)
    np.testing.assert_allclose(4.0 * one.mean - 3.0, other.mean, atol=2e-3)
    np.testing.assert_allclose(16.0 * one.variance, other.variance, rtol=1e-2)
    np.testing.assert_allclose(plain.weights, retold.weights, atol=1e-2)


@pytest.mark.parametrize("members", [MEMBERS, COUNTS])
def test_chunks_files_and_pickles_are_the_same_to_the_bit(members: list[Member]) -> None:
    X, y = one_hot(300, 20, seed=6)
    if members is COUNTS:
        X.data /= 4.0
        y = np.floor(np.abs(y))
    whole, parts = SparseBank(members, 20), SparseBank(members, 20)
    whole.learn_many(X, y)
    for start, stop in ((0, 1), (1, 100), (100, 300)):
        parts.learn_many(X[start:stop], y[start:stop])
        parts = pickle.loads(pickle.dumps(SparseBank.from_state(parts.to_state())))
    for one, other in zip(whole.belief, parts.belief, strict=True):
        np.testing.assert_array_equal(one, other)


def test_states_of_before_noise_was_learnt_are_read() -> None:
    X, y = one_hot(50, 5, seed=7)
    bank = SparseBank([Member(Gaussian(), 0.0), Member(Gaussian(), 1e-3)], 5)
    bank.learn_many(X, y)
    state = bank.to_state()
    del state.arrays["belief.noise"]
    again = SparseBank.from_state(state)
    np.testing.assert_array_equal(again.predict_many(X).mean, bank.predict_many(X).mean)
    del state.arrays["belief.seen"]
    with pytest.raises((KeyError, ModelFileError)):
        SparseBank.from_state(state)


def test_noise_that_is_not_positive_is_no_belief() -> None:
    bank = SparseBank(MEMBERS, 5)
    state = bank.to_state()
    state.arrays["belief.noise"] = np.zeros((len(MEMBERS), 2))
    with pytest.raises(ImproperBelief, match="positive"):
        SparseBank.from_state(state)


@pytest.mark.parametrize("targets", [(1e140, -1e140), (0.0, 0.0), (1e-140, 0.0), (0.0, 1e100)])
@pytest.mark.parametrize("members", [MEMBERS, HEAVY])
def test_extreme_numbers_leave_finite_beliefs(members: list[Member], targets: tuple[float, float]) -> None:
    X = scipy.sparse.csr_array(np.tile([[30.0, 0.0], [1e5, 1.0], [1e-6, 1e-3], [0.0, 0.0]], (500, 1)))
    bank = SparseBank(members, 3, constant=3.0)
    said = bank.learn_many(X, np.tile(targets, 1000))
    assert np.isfinite(said.mean).all()
    assert np.isfinite(said.evidence).all()
    for array in bank.belief:
        assert np.isfinite(array).all()
    assert np.all(bank.belief.weights[:, 1] > 0.0)
    assert np.all(bank.belief.noise > 0.0)
    assert np.all(bank.predict_many(X).variance > 0.0)


def test_a_row_that_is_too_large_leaves_the_bank_as_it_was() -> None:
    bank = SparseBank(MEMBERS, 2)
    bank.learn_many(scipy.sparse.csr_array([[1.0, 2.0]]), [1.0])
    before = [array.copy() for array in bank.belief]
    with pytest.raises(ImproperBelief):
        bank.learn_many(scipy.sparse.csr_array([[1.0, 0.0], [1e30, 1e30]]), [1.0, 1.0])
    for array, saved in zip(bank.belief, before, strict=True):
        np.testing.assert_array_equal(array, saved)


# --- in the estimators


@pytest.mark.parametrize("kind", ["stays", "drift", "abrupt", "tails"])
def test_intervals_of_hashed_numbers_cover(kind: str) -> None:
    table, y = streams(6000, seed=11, kind=kind)
    one, bank = OnlineRegressor(encoder=Hashing(bits=12)), OnlineRegressor(encoder=Hashing(bits=12), budget=Budget())
    said, alone = bank.learn_many(table, y), one.learn_many(table, y)
    low, high = said.interval(0.9).T
    inside = (low <= y) & (y <= high)
    assert 0.86 <= inside[100:].mean() <= 0.94
    gain = np.mean(said.log_probability(y)[100:] - alone.log_probability(y)[100:])
    # measured: 0.010, 0.164, 0.989, 0.159
    assert gain > {"stays": -0.02, "drift": 0.1, "abrupt": 0.7, "tails": 0.1}[kind]


def test_numbers_of_any_size_and_place_are_learnt_alike(tmp_path: Path) -> None:
    table, y = streams(800, seed=12, kind="stays")
    plain, far = (OnlineRegressor(encoder=Hashing(bits=12), budget=Budget()) for _ in range(2))
    plain.partial_fit(table, y)
    far.partial_fit(table, 1e9 * y - 1e12)
    asked = {name: column[:50] for name, column in table.items()}
    wanted = 1e9 * plain.predict(asked) - 1e12
    np.testing.assert_allclose(far.predict(asked), wanted, rtol=0.0, atol=2e-2 * 1e9 * y.std())
    bayou.save(plain, tmp_path / "m.bayou")
    again = bayou.load(tmp_path / "m.bayou")
    more, others = streams(300, seed=13, kind="stays")
    for model in (plain, again):
        model.partial_fit(more, others)
    np.testing.assert_array_equal(plain.predict_interval(asked), again.predict_interval(asked))
    assert plain.log_evidence_ == again.log_evidence_
    assert len(again.bank_.members) == 16
    assert "drifts with probability" in str(plain.summary())
    assert np.isfinite(plain.intercept_)


def test_dicts_late_targets_and_tables_of_numbers_agree() -> None:
    table, y = streams(400, seed=14, kind="stays")
    rows = [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)]
    by_table, by_dict, late = (OnlineRegressor(encoder=Hashing(bits=12), budget=Budget()) for _ in range(3))
    by_table.partial_fit(table, y)
    for x, target in zip(rows, y, strict=True):
        by_dict.learn_one(x, target)
        late.learn_late(late.forecast_one(x).id, target)
    told = by_dict.predict_one(rows[7])
    assert late.predict_one(rows[7]) == told
    assert by_table.predict(table)[7] == pytest.approx(told, abs=1e-3 * y.std())


def test_the_evidence_of_numbers_is_that_of_their_own_units() -> None:
    """The sum of the log densities that were told, but for the first targets, before there were units."""
    table, y = streams(500, seed=15, kind="stays")
    model = OnlineRegressor(encoder=Hashing(bits=12), budget=Budget())
    total = 0.0
    for start in range(0, 500, 50):
        part = {name: column[start : start + 50] for name, column in table.items()}
        before = model.log_evidence_ if start else 0.0
        said = model.learn_many(part, y[start : start + 50])
        if start:
            total += float(said.log_probability(y[start : start + 50]).sum()) - (model.log_evidence_ - before)
    assert total == pytest.approx(0.0, abs=1e-2)


def test_numbers_that_never_differ_and_huge_ones() -> None:
    model = OnlineRegressor(encoder=Hashing(bits=10), budget=Budget())
    for _ in range(300):
        model.learn_one({"a": "b"}, 7.0)
    assert model.predict_one({"a": "b"}) == pytest.approx(7.0)
    for y in (1e140, -1e140, 0.0, 1e-200):
        model.learn_one({"a": "b"}, y)
    said = model.predict_distribution_one({"a": "b"})
    assert np.isfinite(said.mean).all()
    assert np.isfinite(said.interval(0.9)).all()
    with pytest.raises(InvalidTarget):
        model.learn_one({"a": "b"}, math.nan)


def test_hashed_counts_have_a_bank() -> None:
    random = np.random.default_rng(0)
    n = 4000
    city = random.integers(20, size=n)
    rate = np.exp(1.0 + random.normal(size=20)[city] * np.where(np.arange(n) < n // 2, 1.0, -1.0))
    table, y = {"city": [f"c{c}" for c in city]}, random.poisson(rate * random.gamma(2.0, 0.5, size=n)).astype(float)
    one, bank = OnlineCounter(encoder=Hashing(bits=10)), OnlineCounter(encoder=Hashing(bits=10), budget=Budget())
    alone, said = one.learn_many(table, y), bank.learn_many(table, y)
    assert len(bank.bank_.members) == 12
    assert said.log_probability(y).mean() > alone.log_probability(y).mean() + 0.7  # measured: -2.31 against -3.59
    assert "drifts with probability" in str(bank.summary())
    late = OnlineCounter(encoder=Hashing(bits=10), budget=Budget())
    late.learn_late(late.forecast_one({"city": "c1"}).id, 3)
    assert late.bank_.n_examples == 1
    with pytest.raises(InvalidTarget):
        bank.learn_one({"city": "c1"}, -1.0)


def test_a_small_budget_has_fewer_members() -> None:
    few = OnlineCounter(encoder=Hashing(bits=10), budget=Budget(microseconds=5.0))
    few.learn_one({"city": "c1"}, 3)
    assert 3 <= len(few.bank_.members) < 12
