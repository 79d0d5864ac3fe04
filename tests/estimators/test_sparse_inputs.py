"""Estimators on sparse matrices, tables and dicts of anything: batch fits and dense rows are the second routes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge

from bayou import (
    Budget,
    DiagonalGaussian,
    FullGaussian,
    Hashing,
    LowRankGaussian,
    NormalInverseGamma,
    OnlineClassifier,
    OnlineCounter,
    OnlineRegressor,
    SparseDiagonalGaussian,
    SparseRows,
    load,
    save,
)
from bayou.errors import BayouError, InvalidFeatures, InvalidSpec
from bayou.estimators import choice

CITIES = ["Paris", "London", "Rome", "Oslo"]
EFFECTS = dict(zip(CITIES, (1.5, -1.0, 0.0, -0.5), strict=True))


def wide_rows(n: int = 4000, d: int = 2000, seed: int = 0) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    rng = np.random.default_rng(seed)
    columns = np.minimum((d * rng.random((n, 12)) ** 3).astype(int), d - 1)
    rows = scipy.sparse.csr_array((np.ones(12 * n), columns.ravel(), np.arange(n + 1) * 12), shape=(n, d))
    rows.sum_duplicates()
    return rows, rows @ rng.normal(size=d)


def table(n: int = 3000, seed: int = 0) -> tuple[dict[str, Any], np.ndarray]:
    """Cities, ages and a latent that depends on both; some of either are missing."""
    rng = np.random.default_rng(seed)
    city, age = rng.choice(CITIES, n), rng.normal(40.0, 12.0, n)
    latent = np.array([EFFECTS[c] for c in city]) + (age - 40.0) / 12.0
    cities: list[str | None] = city.tolist()
    for i in range(0, n, 50):
        cities[i] = None
        age[i + 1] = np.nan
    return {"city": cities, "age": age}, latent


def dicts(columns: dict[str, Any]) -> list[dict[str, Any]]:
    return [{name: values[i] for name, values in columns.items()} for i in range(len(columns["city"]))]


def libraries(columns: dict[str, Any]) -> list[Any]:
    pandas, polars, pyarrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    return [
        columns,
        pandas.DataFrame(columns),
        polars.DataFrame(columns).with_columns(polars.col("age").fill_nan(None)),
        pyarrow.table(columns),
        pyarrow.table(columns).to_batches()[0],
    ]


# Sparse matrices


def test_wide_sparse_rows_are_classified_as_well_as_by_a_batch_fit() -> None:
    rows, latent = wide_rows(12_000)
    labels = latent + np.random.default_rng(1).logistic(size=12_000) > 0
    model = OnlineClassifier().fit(rows[:10_000], labels[:10_000])
    batch = LogisticRegression(C=1.0, max_iter=1000).fit(rows[:10_000], labels[:10_000])
    ours, theirs = (m.score(rows[10_000:], labels[10_000:]) for m in (model, batch))
    assert ours > theirs - 0.02  # standard error of a score of 0.8 on 2,000 rows: 0.009
    assert isinstance(model._learner_.posterior, SparseDiagonalGaussian)


def test_wide_sparse_rows_are_regressed_with_intervals_that_cover() -> None:
    rows, latent = wide_rows(12_000)
    targets = 5.0 * latent + 300.0 + 2.0 * np.random.default_rng(2).normal(size=12_000)
    model = OnlineRegressor().fit(rows[:10_000], targets[:10_000])
    batch = Ridge(alpha=1.0).fit(rows[:10_000], targets[:10_000])
    ours, theirs = (np.sqrt(np.mean((m.predict(rows[10_000:]) - targets[10_000:]) ** 2)) for m in (model, batch))
    assert ours < 1.25 * theirs
    low, high = model.predict_interval(rows[10_000:]).T
    # The weights are taken as independent, and are not: what is left of their errors is called noise.
    assert np.mean((low < targets[10_000:]) & (targets[10_000:] < high)) == pytest.approx(0.9, abs=0.04)
    _, deviation = model.predict(rows[10_000:], return_std=True)
    assert np.sqrt(np.mean(deviation**2)) == pytest.approx(ours, rel=0.25)


def test_counts_of_sparse_rows() -> None:
    rows, latent = wide_rows(12_000)
    counts = np.random.default_rng(3).poisson(np.exp(0.3 * latent))
    model = OnlineCounter().fit(rows[:10_000], counts[:10_000])
    batch = PoissonRegressor(alpha=1e-3, max_iter=500).fit(rows[:10_000], counts[:10_000])
    ours, theirs, best = (
        np.corrcoef(m, np.exp(0.3 * latent[10_000:]))[0, 1]
        for m in (model.predict(rows[10_000:]), batch.predict(rows[10_000:]), np.exp(0.3 * latent[10_000:]))
    )
    assert theirs - 0.06 < ours < best


def test_few_sparse_columns_are_learnt_as_rows_in_full_to_the_last_bit(tmp_path: Path) -> None:
    """As they are, that is: zero means that nothing is there, and stays zero."""
    rows, latent = wide_rows(9000, 60)
    labels = np.digitize(latent, [-1.0, 1.0])
    sparse, full = OnlineClassifier(), OnlineClassifier(standardize=False)
    for part in (slice(0, 5000), slice(5000, 9000)):
        said = sparse.learn_many(rows[part], labels[part])
        np.testing.assert_array_equal(said, full.learn_many(rows[part].toarray(), labels[part]))
    np.testing.assert_array_equal(sparse.predict_proba(rows), full.predict_proba(rows.toarray()))
    np.testing.assert_array_equal(sparse.predict_proba(rows.toarray()), full.predict_proba(rows))
    save(sparse, tmp_path / "model.bayou")
    again = load(tmp_path / "model.bayou").partial_fit(rows[:500], labels[:500])
    expected = sparse.partial_fit(rows[:500], labels[:500]).predict_proba(rows)
    np.testing.assert_array_equal(again.predict_proba(rows), expected)


def test_arrow_and_sparse_rows_are_taken() -> None:
    import pyarrow as pa

    rows, latent = wide_rows(500)
    labels = latent > 0
    expected = OnlineClassifier().fit(rows, labels).predict_proba(rows)
    given = SparseRows(rows.indptr, rows.indices, rows.data, 2000)
    arrow = pa.SparseCSRMatrix.from_scipy(scipy.sparse.csr_matrix(rows))
    for form in (given, arrow):
        np.testing.assert_array_equal(OnlineClassifier().fit(form, labels).predict_proba(form), expected)


def test_a_third_class_may_appear_in_sparse_rows() -> None:
    rows, latent = wide_rows()
    labels = np.where(latent > 0, "high", "low").astype(object)
    model = OnlineClassifier().partial_fit(rows[:2000], labels[:2000])
    labels[2000:][np.abs(latent[2000:]) < 0.5] = "middle"
    said = model.learn_many(rows[2000:], labels[2000:])
    assert list(model.classes_) == ["high", "low", "middle"]
    np.testing.assert_allclose(said.sum(axis=1), 1.0)
    assert model.coef_.shape == (3, 2000)
    assert model.intercept_.shape == (3,)
    assert np.mean(model.predict(rows[:2000]) == labels[:2000]) > 0.7


# What is chosen, and why


@pytest.mark.parametrize(
    ("model", "rows", "family", "why"),
    [
        (OnlineClassifier(), np.zeros((3, 400)), FullGaussian, "every correlation between weights: 400 columns"),
        (OnlineClassifier(posterior="auto"), np.zeros((3, 400)), FullGaussian, "at most 1,000"),
        (OnlineRegressor(), np.zeros((3, 400)), NormalInverseGamma, "every correlation"),
        (OnlineClassifier(), np.zeros((3, 1001)), LowRankGaussian, "the 10 strongest correlations: 1,001 columns"),
        (OnlineCounter(), scipy.sparse.csr_array((3, 5000)), SparseDiagonalGaussian, "sparse rows of 5,000 columns"),
        (OnlineClassifier(encoder=Hashing(bits=12)), {"a": ["x", "y", "z"]}, SparseDiagonalGaussian, "4,096 columns"),
    ],
)
def test_it_says_what_it_chose_and_why(model: Any, rows: Any, family: type, why: str) -> None:
    model.partial_fit(rows, [0, 1, 1])
    assert type(model._learner_.posterior) is family
    note = str(model.summary()).splitlines()
    told = [line for line in note if line.startswith("posterior: ")]
    assert len(told) == 1
    assert family.__name__ in told[0]
    assert why in told[0]


@pytest.mark.parametrize("model", [OnlineClassifier(), OnlineClassifier(posterior="auto"), OnlineRegressor()], ids=repr)
def test_few_columns_get_a_bank(model: Any) -> None:
    model.partial_fit(np.zeros((3, 4)), [0, 1, 1])
    assert len(model.bank_.members) > 20
    assert any(line.startswith("bank (") and "4 columns" in line for line in str(model.summary()).splitlines())


def test_a_budget_is_kept() -> None:
    """In bytes at once; in microseconds by who sleeps, once there is something to judge by."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1500, 6))
    labels = (rows[:, 0] + rng.normal(size=1500) > 0.0).astype(int)
    small = OnlineClassifier(budget=Budget(n_bytes=20_000.0)).fit(rows, labels)
    assert small.bank_.belief.covariance.nbytes + small.bank_.belief.mean.nbytes < 20_000
    slow, quick = (OnlineClassifier(budget=Budget(us)).fit(rows, labels).bank_ for us in (1000.0, 3.0))
    assert quick.plan.cost[quick.awake].sum() <= 3.0 < slow.plan.cost[slow.awake].sum()
    assert not OnlineClassifier(budget=Budget(0.1)).fit(rows, labels)._bank
    with pytest.raises(InvalidSpec, match="`budget` must be Budget"):
        OnlineClassifier(budget=3).fit(rows, labels)
    with pytest.raises(InvalidSpec, match="`microseconds` must be a number above 0; got -1"):
        Budget(-1.0)


def test_what_would_not_fit_in_memory_is_diagonal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "MOST_BYTES", 1000)
    model = OnlineClassifier().fit(np.random.default_rng(0).normal(size=(5, 1200)), [0, 1, 0, 1, 0])
    assert type(model._learner_.posterior) is DiagonalGaussian
    assert "take 211,200 bytes" in str(model.summary())


def test_what_was_given_is_not_explained() -> None:
    model = OnlineClassifier(posterior=DiagonalGaussian()).fit(np.eye(4), [0, 1, 0, 1])
    assert str(model.summary()).splitlines()[-1] == "posterior: DiagonalGaussian"


def test_a_posterior_that_does_not_fit_is_named() -> None:
    with pytest.raises(InvalidSpec, match="`posterior` must be a Posterior, None or 'auto'; got 'full'"):
        OnlineClassifier(posterior="full").fit(np.eye(2), [0, 1])
    with pytest.raises(InvalidSpec, match="such as SparseDiagonalGaussian"):
        OnlineClassifier(posterior=FullGaussian(), encoder=Hashing()).fit({"a": ["x", "y"]}, [0, 1])
    with pytest.raises(InvalidSpec, match="`encoder` must be Hashing"):
        OnlineClassifier(encoder="hash").learn_one({"a": "x"}, 1)  # type: ignore[arg-type]  # on purpose


def test_wide_regression_learns_the_noise() -> None:
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(1500, 1200))
    targets = 1000.0 + rows[:, :20] @ rng.normal(size=20) + 0.5 * rng.normal(size=1500)
    model = OnlineRegressor().fit(rows[:1200], targets[:1200])
    assert isinstance(model._learner_.posterior, LowRankGaussian)
    low, high = model.predict_interval(rows[1200:]).T
    assert np.mean((low < targets[1200:]) & (targets[1200:] < high)) > 0.85  # standard error 0.017
    assert np.sqrt(np.mean((model.predict(rows[1200:]) - targets[1200:]) ** 2)) < 0.75 * targets[1200:].std()
    assert model.intercept_ == pytest.approx(1000.0, abs=1.0)


# Tables and dicts


def test_every_kind_of_table_and_dicts_give_the_same_model() -> None:
    columns, latent = table()
    labels = latent + np.random.default_rng(5).logistic(size=len(latent)) > 0
    probabilities = []
    for given in libraries(columns):
        model = OnlineClassifier(encoder=Hashing(bits=14)).fit(given, labels)
        probabilities.append(model.predict_proba(given))
    one_by_one = OnlineClassifier(encoder=Hashing(bits=14)).partial_fit(
        {name: values[:0] for name, values in columns.items()}, labels[:0], classes=[False, True]
    )
    for x, label in zip(dicts(columns), labels.tolist(), strict=True):
        one_by_one.learn_one(x, label)
    probabilities.append(one_by_one.predict_proba(columns))
    for other in probabilities[1:]:
        np.testing.assert_allclose(other, probabilities[0], atol=1e-5)
    x = dicts(columns)[7]
    assert one_by_one.predict_proba_one(x)[True] == pytest.approx(probabilities[0][7, 1], abs=1e-5)


def test_a_hashed_table_is_learnt_as_one_hot_columns_would_be() -> None:
    """Of three columns of categories and one standardised number, by a batch fit on what they stand for."""
    columns, latent = table(8000, seed=1)
    labels = latent + np.random.default_rng(6).logistic(size=len(latent)) > 0
    model = OnlineClassifier(encoder=Hashing(bits=18)).fit(columns, labels)
    age = np.nan_to_num((columns["age"] - 40.0) / 12.0)
    full = np.column_stack([[c == city for c in columns["city"]] for city in CITIES] + [age])
    batch = LogisticRegression(C=1.0).fit(full, labels)
    theirs = batch.predict_proba(full)[:, 1]
    assert np.max(np.abs(model.predict_proba(columns)[:, 1] - theirs)[100:]) < 0.06


def test_the_strongest_weights_have_names() -> None:
    columns, latent = table(4000, seed=2)
    model = OnlineRegressor(encoder=Hashing(bits=16)).fit(columns, latent)
    told = model.inspect(3)
    assert told.names[0] == "age"
    assert set(told.names) <= {"age", *(f"city={city}" for city in CITIES)}
    assert "hashing: " in str(told)
    assert "share theirs" in str(told)


def test_numbers_are_told_anew_when_their_scale_is_found() -> None:
    """A number of mean 1e6 and deviation 1e-2, whose first rows tell little of either."""
    rng = np.random.default_rng(7)
    x = 1e6 + 0.01 * rng.normal(size=3000)
    targets = (x - 1e6) * 300.0 + 0.1 * rng.normal(size=3000)
    model = OnlineRegressor(encoder=Hashing(bits=10)).fit({"x": x}, targets)
    error = model.predict({"x": x[1000:]}) - targets[1000:]
    assert np.sqrt(np.mean(error**2)) < 0.12


def test_interactions_let_categories_act_together() -> None:
    rng = np.random.default_rng(8)
    a, b = rng.choice(["0", "1"], 4000), rng.choice(["0", "1"], 4000)
    labels = a != b
    plain = OnlineClassifier(encoder=Hashing(bits=12)).fit({"a": a.tolist(), "b": b.tolist()}, labels)
    crossed = OnlineClassifier(encoder=Hashing(bits=12, interactions=(("a", "b"),)))
    crossed.fit({"a": a.tolist(), "b": b.tolist()}, labels)
    given = {"a": ["0", "0", "1", "1"], "b": ["0", "1", "0", "1"]}
    assert np.all(np.abs(plain.predict_proba(given)[:, 1] - 0.5) < 0.2)
    assert np.all((crossed.predict_proba(given)[:, 1] > 0.9) == [False, True, True, False])


def test_text_is_split_into_words() -> None:
    rng = np.random.default_rng(9)
    words = ["good", "bad", "film", "the", "a"]
    texts = [" ".join(rng.choice(words, 6)) for _ in range(3000)]
    labels = [text.count("good") > text.count("bad") for text in texts]
    model = OnlineClassifier(encoder=Hashing(bits=12, text=("review",))).fit({"review": texts}, labels)
    assert model.predict_proba_one({"review": "A good, GOOD film!"})[True] > 0.95
    assert model.predict_proba_one({"review": "bad"})[True] < 0.2
    assert set(model.inspect(2).names) == {"review:good", "review:bad"}


def test_it_is_saved_and_continues_to_the_last_bit(tmp_path: Path) -> None:
    columns, latent = table()
    for model in (
        OnlineClassifier(encoder=Hashing(bits=12, signed=True)).partial_fit(columns, latent > 0),
        OnlineRegressor(encoder=Hashing(bits=12)).partial_fit(columns, latent),
    ):
        save(model, tmp_path / "model.bayou")
        again = load(tmp_path / "model.bayou")
        more, latents = table(500, seed=3)
        targets = latents > 0 if isinstance(model, OnlineClassifier) else latents
        for either in (model, again):
            either.partial_fit(more, targets)
        np.testing.assert_array_equal(again._learner_.belief.weights, model._learner_.belief.weights)
        assert str(again.summary()) == str(model.summary())
    rows, latent = wide_rows(300)
    sparse = OnlineClassifier().fit(rows, latent > 0)
    save(sparse, tmp_path / "sparse.bayou")
    np.testing.assert_array_equal(load(tmp_path / "sparse.bayou").predict_proba(rows), sparse.predict_proba(rows))


# Bad input


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"city": [1.0, 2.0], "age": [1.0, 2.0]}, "column 'city' held categories before; got numbers"),
        ({"city": ["a", "b"], "age": ["young", "old"]}, "column 'age' held numbers before"),
        ({"city": ["a", "b"], "age": [1.0, np.inf]}, "finite"),
        ({"city": ["a", "b"], "age": [1.0]}, "of one length"),
        ([[1.0, 2.0]], "a table must be a DataFrame"),
    ],
)
def test_a_table_that_breaks_with_the_past_is_refused(given: Any, message: str) -> None:
    columns, latent = table(200)
    model = OnlineClassifier(encoder=Hashing(bits=10)).fit(columns, latent > 0)
    before = model._learner_.belief.weights.copy()
    with pytest.raises(BayouError, match=message):
        model.partial_fit(given, [True, False])
    np.testing.assert_array_equal(model._learner_.belief.weights, before)
    assert model.n_examples_ == 200


@pytest.mark.parametrize("value", [[1], object(), {"a": 1}, 1e300, 1j])
def test_a_dict_that_cannot_be_encoded_is_refused(value: Any) -> None:
    model = OnlineClassifier(encoder=Hashing(bits=10))
    for _ in range(2):  # before anything was learnt, and after
        with pytest.raises(InvalidFeatures, match="'age'"):
            model.learn_one({"city": "Paris", "age": value}, "yes")
        assert model._begun() is False or model.n_examples_ == 1
        if not model._begun():
            model.learn_one({"city": "Paris", "age": 3.0}, "yes")


def test_dicts_need_an_encoder_where_sparse_rows_were_learnt() -> None:
    rows, latent = wide_rows(50)
    model = OnlineClassifier().fit(rows, latent > 0)
    with pytest.raises(InvalidFeatures, match="knows columns, not names"):
        model.learn_one({"a": 1.0}, True)


def test_bad_sparse_rows_leave_all_as_it_was() -> None:
    rows, latent = wide_rows(300)
    model = OnlineClassifier().fit(rows, latent > 0)
    before = model._learner_.belief.weights.copy()
    bad = rows[:20].copy()
    bad.data[5] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(bad, latent[:20] > 0)
    outside = SparseRows(np.array([0, 1]), np.array([2000]), np.array([1.0]), 2000)
    with pytest.raises(InvalidFeatures, match="from 0 to 1999; got 2000 in row 0"):
        model.partial_fit(outside, [True])
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(rows[:20, :50], latent[:20] > 0)
    np.testing.assert_array_equal(model._learner_.belief.weights, before)
