"""Banks of sparse rows: the mixture, written out in plain sums, is the second route."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from scipy.special import ndtr

import bayou
from bayou import (
    Budget,
    FlipProbit,
    Gaussian,
    Hashing,
    Member,
    MomentMatching,
    OnlineClassifier,
    Poisson,
    Probit,
    Softmax,
    SparseBank,
    SparseDiagonalGaussian,
    SparseLearner,
)
from bayou.errors import BayouError, ImproperBelief, InvalidFeatures, InvalidSpec, InvalidTarget, ShapeMismatch

MEMBERS = [Member(Probit(), drift, scale) for drift in (0.0, 1e-4, 1e-2) for scale in (1.0, 4.0)]


def rows_of(n: int, d: int, entries: int, seed: int, drift: float = 0.0) -> tuple[Any, Any]:
    """Rows of a few entries, and signs by weights that walk."""
    random = np.random.default_rng(seed)
    columns = np.stack([random.permutation(d)[:entries] for _ in range(n)])
    values = random.normal(size=(n, entries))
    X = scipy.sparse.csr_array((values.ravel(), (np.repeat(np.arange(n), entries), columns.ravel())), shape=(n, d))
    weights, y = random.normal(size=d), np.zeros(n)
    for t in range(n):
        weights += np.sqrt(drift) * random.normal(size=d)
        y[t] = np.sign(values[t] @ weights[columns[t]] + random.normal())
    return X, y


def written_out(X: Any, y: Any, members: list[Member], rates: tuple[float, ...]) -> tuple[Any, Any]:
    """Probabilities of the targets, and weights of the members, by what the text of the theory says, row by row."""
    d, m = X.shape[1], len(members)
    mean, prior = np.zeros((m, d)), np.array([[member.prior_variance] * d for member in members])
    variance, chains = prior.copy(), np.full((len(rates), m), 1.0 / (m * len(rates)))
    given = []
    for x, sign in zip(X.toarray(), y, strict=True):
        share = np.array([member.drift for member in members])[:, None]
        variance = np.minimum(variance + share * prior, prior)
        for k, rate in enumerate(rates):
            chains[k] = (1.0 - rate) * chains[k] + rate * chains[k].sum() / m
        total = 1.0 + variance @ x**2
        z = sign * (mean @ x) / np.sqrt(total)
        p = ndtr(z)
        given.append(float(chains.sum(axis=0) @ p))
        ratio = np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi) / p
        along = variance * x
        mean += (sign * ratio / np.sqrt(total))[:, None] * along
        variance -= (ratio * (z + ratio) / total)[:, None] * along**2
        chains *= p
        chains /= chains.sum()
    return np.array(given), chains.sum(axis=0)


def test_is_the_mixture_that_is_written_out() -> None:
    X, y = rows_of(400, 12, 4, seed=0, drift=1e-3)
    rates = (0.0, 1e-3, 1e-1)
    bank = SparseBank(MEMBERS, 12, switching=rates)
    said = bank.learn_many(X, y)
    given, weights = written_out(X, y, MEMBERS, rates)
    assert said.evidence is not None
    np.testing.assert_allclose(np.exp(said.evidence), given, rtol=2e-4)
    np.testing.assert_allclose(np.exp(said.log_probability(y)), given, rtol=2e-4)
    np.testing.assert_allclose(bank.weights, weights, atol=1e-3)
    assert bank.log_evidence == pytest.approx(np.log(given).sum(), rel=1e-4)


@pytest.mark.parametrize("constant", [0.0, 3.0])
def test_of_one_member_is_a_learner(constant: float) -> None:
    X, y = rows_of(2000, 50, 5, seed=1)
    width = 50 + (constant != 0.0)
    bank = SparseBank([Member(Probit(), 0.0, 0.7)], width, constant)
    learner = SparseLearner(Probit(), SparseDiagonalGaussian(prior_variance=0.7), MomentMatching(), width, constant)
    weights = np.random.default_rng(2).integers(0, 4, size=2000).astype(float)
    np.testing.assert_allclose(bank.learn_many(X, y, weights).mean, learner.learn_many(X, y, weights).mean, atol=2e-5)
    told, belief = bank.weights_told(), learner.belief
    np.testing.assert_allclose(told.mean, belief.mean, atol=2e-5)
    np.testing.assert_allclose(told.variance, belief.variance, rtol=1e-4)
    np.testing.assert_allclose(bank.predict_many(X).mean, learner.predict_many(X).mean, atol=2e-5)


def test_chunks_of_any_size_files_and_pickles_are_the_same_to_the_bit() -> None:
    X, y = rows_of(300, 20, 3, seed=3, drift=1e-3)
    whole, parts = SparseBank(MEMBERS, 20), SparseBank(MEMBERS, 20)
    whole.learn_many(X, y)
    for start, stop in ((0, 1), (1, 100), (100, 300)):
        parts.learn_many(X[start:stop], y[start:stop])
        parts = pickle.loads(pickle.dumps(SparseBank.from_state(parts.to_state())))
    for one, other in zip(whole.belief, parts.belief, strict=True):
        np.testing.assert_array_equal(one, other)
    assert parts.n_examples == 300
    assert parts.log_evidence == pytest.approx(whole.log_evidence)


def test_predictions_are_those_of_the_next_row_and_leave_nothing_behind() -> None:
    X, y = rows_of(300, 20, 3, seed=4, drift=1e-2)
    bank = SparseBank(MEMBERS, 20)
    bank.learn_many(X[:299], y[:299])
    before = [array.copy() for array in bank.belief]
    asked = bank.predict_many(X[299:]).probability_of_one()[0]
    for array, saved in zip(bank.belief, before, strict=True):
        np.testing.assert_array_equal(array, saved)
    said = np.exp(bank.learn_many(X[299:], y[299:]).evidence)[0]
    assert (asked if y[299] > 0 else 1.0 - asked) == pytest.approx(said, abs=1e-6)


def test_finds_how_fast_weights_walk() -> None:
    """The posterior is on the drift that made the stream or next to it; a stream that stays costs a logarithm."""
    for drift in (0.0, 1e-3):
        X, y = rows_of(8000, 30, 5, seed=5, drift=drift)
        members = [Member(Probit(), d) for d in (0.0, 1e-5, 1e-4, 1e-3, 1e-2)]
        bank = SparseBank(members, 30)
        best = max(_evidence(member, X, y) for member in members)
        bank.learn_many(X, y)
        assert bank.log_evidence > best - np.log(25.0) - 1.0
        near = sum(p for d, p in bank.settings("drift").items() if (d <= 1e-5 if drift == 0.0 else d >= 1e-4))
        assert near > 0.9
        assert (bank.drift_probability > 0.9) == (drift > 0.0)


def _evidence(member: Member, X: Any, y: Any) -> float:
    bank = SparseBank([member], X.shape[1])
    bank.learn_many(X, y)
    return bank.log_evidence


def test_labels_that_are_wrong() -> None:
    X, y = rows_of(6000, 20, 5, seed=6)
    flipped = np.where(np.random.default_rng(0).uniform(size=6000) < 0.2, -y, y)
    bank = SparseBank([Member(Probit()), Member(FlipProbit(0.2)), Member(FlipProbit(0.05))], 20)
    bank.learn_many(X, flipped)
    assert bank.settings("flip_rate")[0.2] > 0.9


@pytest.mark.parametrize(
    ("members", "options", "message"),
    [
        ([], {}, "members"),
        ([Member(Probit(), past=1)], {}, "drift, prior_variance, noise of numbers"),
        ([Member(Poisson(), noise_memory=100.0)], {}, "noise of numbers"),
        ([Member(Softmax(3))], {}, "one latent"),
        ([Member(Probit()), Member(Poisson())], {}, "same targets"),
        ([Member(Gaussian(), noise_memory=100.0), Member(Gaussian())], {}, "or none"),
        ([Member(Probit(), prior_variance=(1.0, 2.0))], {}, "one for all weights"),
        ([Member(Probit())], {"switching": (2.0,)}, "switching"),
        ([Member(Probit())], {"constant": np.inf}, "constant"),
        ([Member(Probit())], {"n_features": 0}, "n_features"),
    ],
)
def test_specs_that_do_not_fit_are_refused(members: list[Member], options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        SparseBank(members, **{"n_features": 3, **options})


@pytest.mark.parametrize(
    ("rows", "targets", "error"),
    [
        ([[np.nan, 0.0]], [1.0], InvalidFeatures),
        ([[1.0, 0.0, 0.0]], [1.0], BayouError),
        ([[1.0, 0.0]], [0.5], InvalidTarget),
        ([[1.0, 0.0]], [1.0, 1.0], ShapeMismatch),
        ([[1.0, 0.0], [1e30, 1e30]], [1.0, 1.0], ImproperBelief),
    ],
)
def test_bad_rows_leave_the_bank_as_it_was(rows: Any, targets: Any, error: type[Exception]) -> None:
    bank = SparseBank(MEMBERS, 2)
    bank.learn_many(scipy.sparse.csr_array([[1.0, 2.0]]), [1.0])
    before = [array.copy() for array in bank.belief]
    with pytest.raises(error):
        bank.learn_many(scipy.sparse.csr_array(rows), targets)
    for array, saved in zip(bank.belief, before, strict=True):
        np.testing.assert_array_equal(array, saved)
    assert bank.n_examples == 1


def test_long_streams_keep_positive_variances() -> None:
    X = scipy.sparse.csr_array(np.full((1, 2), 30.0))
    bank = SparseBank(MEMBERS, 3, constant=3.0)
    rows = scipy.sparse.csr_array(scipy.sparse.vstack([X] * 5000))
    said = bank.learn_many(rows, np.tile([1.0, -1.0], 2500))
    assert np.isfinite(said.mean).all()
    assert np.all(bank.belief.weights[:, 1] > 0.0)
    assert np.isfinite(bank.belief.weights).all()


# --- in the estimator


def people(n: int, seed: int = 0) -> tuple[list[dict[str, Any]], list[str]]:
    random = np.random.default_rng(seed)
    rows = [{"city": f"c{random.integers(9)}", "size": float(random.normal())} for _ in range(n)]
    labels = []
    for t, row in enumerate(rows):
        sign = 1.0 if t < n // 2 else -1.0  # everything turns into its opposite
        latent = sign * (1.5 * (int(row["city"][1:]) % 2) - 0.75 + row["size"]) + 0.5 * random.normal()
        labels.append("yes" if latent > 0 else "no")
    return rows, labels


def test_hashed_rows_have_a_bank_where_a_budget_is_set() -> None:
    rows, labels = people(4000)
    losses = {}
    for name, budget in (("one", None), ("bank", Budget())):
        model, total = OnlineClassifier(encoder=Hashing(bits=10), budget=budget), 0.0
        for x, y in zip(rows, labels, strict=True):
            total -= np.log(model.predict_proba_one(x).get(y, 0.5))
            model.learn_one(x, y)
        losses[name] = total / len(rows)
    assert len(model.bank_.members) == 8
    assert losses["bank"] < losses["one"] - 0.05  # measured: 0.34 against 0.69
    assert "drifts with probability" in str(model.summary())


def test_a_budget_that_is_too_small_has_no_bank() -> None:
    rows, labels = people(50)
    model = OnlineClassifier(encoder=Hashing(bits=10), budget=Budget(n_bytes=20_000.0))
    model.learn_one(rows[0], labels[0])
    with pytest.raises(InvalidSpec, match="no bank"):
        _ = model.bank_


def test_tables_dicts_and_files_agree(tmp_path: Path) -> None:
    rows, labels = people(300)
    columns = {name: [row[name] for row in rows] for name in ("city", "size")}
    by_dict, by_table = (OnlineClassifier(encoder=Hashing(bits=10), budget=Budget()) for _ in range(2))
    for x, y in zip(rows, labels, strict=True):
        by_dict.learn_one(x, y)
    by_table.partial_fit(columns, labels)
    told = by_dict.predict_proba_one(rows[7])
    assert by_table.predict_proba_one(rows[7])["yes"] == pytest.approx(told["yes"], abs=1e-6)
    bayou.save(by_dict, tmp_path / "m.bayou")
    again = bayou.load(tmp_path / "m.bayou")
    for x, y in zip(*people(100, seed=1), strict=True):
        by_dict.learn_one(x, y)
        again.learn_one(x, y)
    assert again.predict_proba_one(rows[7]) == by_dict.predict_proba_one(rows[7])
    assert again.bank_.n_examples == 400


def test_late_labels_of_hashed_rows_are_learnt_as_they_come() -> None:
    rows, labels = people(400)
    late, at_once = (OnlineClassifier(encoder=Hashing(bits=10), budget=Budget()) for _ in range(2))
    for x, y in zip(rows, labels, strict=True):
        late.learn_late(late.forecast_one(x).id, y)
        at_once.learn_one(x, y)
    assert late.predict_proba_one(rows[3])["yes"] == pytest.approx(at_once.predict_proba_one(rows[3])["yes"], abs=1e-6)


def test_a_third_class_goes_on_with_what_is_known() -> None:
    rows, labels = people(300)
    model = OnlineClassifier(encoder=Hashing(bits=10), budget=Budget())
    for x, y in zip(rows, labels, strict=True):
        model.learn_one(x, y)
    before = model.predict_proba_one(rows[0])
    model.learn_one({"city": "c0", "size": 0.0}, "maybe")
    after = model.predict_proba_one(rows[0])
    assert sum(after.values()) == pytest.approx(1.0)
    assert (after["yes"] > after["no"]) == (before["yes"] > before["no"])


def test_sparse_matrices_have_a_bank_too() -> None:
    X, y = rows_of(3000, 2000, 6, seed=7)
    model = OnlineClassifier(budget=Budget()).partial_fit(X, y)
    assert len(model.bank_.members) == 8
    assert model.coef_.shape == (1, 2000)
