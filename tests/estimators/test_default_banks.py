"""What the default of the estimators promises: nothing to set, on streams that stay, drift, change, bend and repeat."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from scipy.special import expit
from scipy.stats import nbinom
from sklearn.linear_model import LogisticRegression

from bayou import (
    Budget,
    FullGaussian,
    Learner,
    Logistic,
    MomentMatching,
    OnlineClassifier,
    OnlineCounter,
    OnlineRegressor,
    Standardizer,
)
from bayou.contracts import Matrix, Vector
from bayou.numerics.jit import COMPILED

compiled = pytest.mark.skipif(not COMPILED, reason="too many rows for plain Python")


def losses(said: Matrix, labels: Vector) -> Vector:
    given: Vector = -np.log(said[np.arange(len(labels)), labels.astype(int)])
    return given


@compiled
@pytest.mark.parametrize(("seed", "n", "d"), [(1, 20_000, 5), (2, 20_000, 20), (3, 50_000, 3)])
def test_a_stream_that_stays_costs_next_to_nothing(seed: int, n: int, d: int) -> None:
    """Within 1 % of the log loss of the learner that has the settings which made it."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    labels = random.uniform(size=n) < expit(X @ random.normal(size=d) + 0.3)
    ours = losses(OnlineClassifier().learn_many(X, labels, classes=[False, True]), labels)
    design, signs = np.column_stack([np.ones(n), X]), np.where(labels, 1.0, -1.0)
    true = Learner(Logistic(), FullGaussian(), MomentMatching(), d + 1).learn_many(design, signs)
    assert ours.mean() < 1.01 * -true.log_probability(signs).mean()


def walking(kind: str, seed: int) -> tuple[Matrix, Vector]:
    random = np.random.default_rng(seed)
    X = random.normal(size=(6000, 4))
    weights = np.tile(random.normal(size=4), (6000, 1))
    if kind == "abrupt":
        weights[3000:] *= -2.0
    else:
        weights += np.cumsum(0.02 * random.normal(size=(6000, 4)), axis=0)
    return X, (X * weights).sum(axis=1) + 0.5 * random.normal(size=6000)


@compiled
@pytest.mark.parametrize("kind", ["drift", "abrupt"])
def test_intervals_cover_in_every_window(kind: str) -> None:
    """90 % of 500 rows, with a standard error of 1.3 %, of all 11 windows after the first 100 rows."""
    for seed in range(2):
        X, y = walking(kind, seed)
        low, high = OnlineRegressor().learn_many(X, y).interval(0.9).T
        inside = ((low <= y) & (y <= high))[100:5600].reshape(11, 500).mean(axis=1)
        assert inside.min() >= 0.86
        assert inside.max() <= 0.94


@compiled
def test_labels_that_repeat_themselves_are_not_won_by_no_change() -> None:
    random = np.random.default_rng(4)
    signs = np.cumprod(np.where(random.uniform(size=8000) < 0.1, -1.0, 1.0))
    labels, X = signs > 0.0, random.normal(size=(8000, 3))
    ours = losses(OnlineClassifier().learn_many(X, labels, classes=[False, True]), labels)
    repeated = np.cumsum(np.concatenate([[0.0], signs[1:] == signs[:-1]]))
    right = (1.0 + repeated) / (2.0 + np.arange(8000))
    no_change = -np.log(np.where(signs[1:] == signs[:-1], right[:-1], 1.0 - right[:-1]))
    assert ours[1:].mean() < no_change.mean() + 0.005


@compiled
def test_what_bends_is_learnt_without_being_asked() -> None:
    """Two rings, which no line tells apart."""
    random = np.random.default_rng(5)
    X = random.normal(size=(4000, 2))
    labels = np.hypot(*X.T) > 1.2
    model = OnlineClassifier()
    said = model.learn_many(X, labels, classes=[False, True])
    assert np.mean((said[2000:, 1] > 0.5) == labels[2000:]) > 0.93
    bends = sum(p for waves, p in model.bank_.settings("waves").items() if waves is not None)
    assert bends > 0.9
    assert f"bends with probability {bends:.2f}" in model.bank_.found()


@compiled
def test_rare_categories_are_learnt_as_common_ones() -> None:
    """Forty categories, a column of ones each, the rarest of few rows in 20,000: as good as a batch of all rows."""
    random = np.random.default_rng(6)
    shares = 1.0 / np.arange(1, 41) ** 1.5
    category = random.choice(40, 20_000, p=shares / shares.sum())
    labels = random.uniform(size=20_000) < expit(random.normal(size=40)[category])
    X = np.eye(40)[category]
    said = losses(OnlineClassifier().learn_many(X, labels, classes=[False, True]), labels)
    batch = LogisticRegression().fit(X, labels)  # which has seen all labels
    assert said.mean() < losses(batch.predict_proba(X), labels).mean() + 0.01


def test_no_count_is_expected_beyond_sight_of_those_that_came() -> None:
    """Of eight inputs and two rows all rates are possible, and their mean is beyond all measure."""
    rng = np.random.default_rng(11)
    rows = rng.normal(size=(60, 8))
    counts = rng.poisson(np.exp(1.0 + 0.4 * rows[:, 0])).astype(np.float64)
    model = OnlineCounter(budget=Budget(n_bytes=20_000.0))
    said = model.learn_many(rows, counts).mean
    largest = np.maximum.accumulate(np.concatenate([[0.0], counts]))
    assert np.all(said <= 10.0 * np.maximum(largest[:-1], 1.0) + 1e-9)
    assert model.predict(1e3 * rows).max() <= 10.0 * largest[-1]
    late = model.forecast_one(1e3 * rows[:1])
    model.learn_late(late.id, 1000)
    assert model.predict(1e3 * rows).max() > 10.0 * largest[-1]


def test_a_batch_in_the_order_of_its_classes_is_learnt() -> None:
    """In a stream it would have changed for good; rows of a batch come in any order."""
    random = np.random.default_rng(7)
    labels = np.repeat([0, 1], 200)
    X = random.normal(size=(400, 2)) + 1.5 * labels[:, None]
    model = OnlineClassifier().fit(X, labels)
    assert model.score(X, labels) > LogisticRegression().fit(X, labels).score(X, labels) - 0.02
    again = OnlineClassifier().fit(X, labels)
    np.testing.assert_array_equal(model.predict_proba(X), again.predict_proba(X))


def test_a_sparse_batch_is_learnt_as_a_dense_one() -> None:
    """Rows are drawn in the same order, whatever form they have."""
    random = np.random.default_rng(9)
    X = np.where(random.uniform(size=(200, 5)) < 0.4, random.normal(size=(200, 5)), 0.0)
    labels = X[:, 0] + 0.5 * random.normal(size=200) > 0.0
    sparse = OnlineClassifier().fit(scipy.sparse.csr_array(X), labels)
    dense = OnlineClassifier(standardize=False).fit(X, labels)
    np.testing.assert_allclose(sparse.predict_proba(X), dense.predict_proba(X), rtol=1e-9)


def test_zeros_and_ones_keep_their_unit() -> None:
    """One row in a hundred has a one: in deviations it would be told as ten."""
    standardizer = Standardizer()
    frame = standardizer.begin(2)
    rows = np.column_stack([np.arange(1000) % 100 == 0, np.arange(1000) % 100]).astype(float)
    standardizer.learn(frame, rows)
    standardizer.retake(frame)
    told, _ = standardizer.encode(frame, rows)
    assert np.ptp(told[:, 0]) == pytest.approx(1.0)
    assert told[:, 0].mean() == pytest.approx(0.0, abs=1e-12)
    assert told[:, 1].std() == pytest.approx(1.0)


@compiled
@pytest.mark.slow
def test_memory_does_not_grow_with_a_million_rows() -> None:
    """Bytes are those that were printed after the first thousand rows, whatever comes."""
    random = np.random.default_rng(8)
    model = OnlineClassifier(budget=Budget(microseconds=2.0))
    sizes = set()
    for start in range(0, 1_000_000, 50_000):
        X = random.normal(size=(50_000, 2)) * (1.0 + start / 1e5)  # it changes all the time
        labels = X[:, 0] + random.normal(size=50_000) > np.sin(start / 2e5)
        model.partial_fit(X, labels, classes=[False, True])
        sizes.add((model.bank_.nbytes, sum(array.nbytes for array in model.to_state().arrays.values())))
    assert len(sizes) == 1
    assert f"{model.bank_.nbytes:,} bytes" in str(model.summary())


def stays_and_jumps(random: np.random.Generator, n: int) -> Vector:
    levels: Vector = np.repeat(random.normal(size=n // 50), 50) + 0.05 * random.normal(size=n)
    return levels


NUMBERS = {
    "walks": lambda random, n: np.cumsum(random.normal(size=n)),
    "walks far from zero": lambda random, n: 1e6 + np.cumsum(random.normal(size=n)),
    "walks by jumps": lambda random, n: np.cumsum(random.standard_t(2, size=n)),
    "stays and jumps": stays_and_jumps,
    "stays exactly and jumps": lambda random, n: np.repeat(random.normal(size=n // 50), 50),
    "jumps from where it is": lambda random, n: np.cumsum((random.uniform(size=n) < 0.01) * random.normal(size=n)),
    "grows or shrinks by a share": lambda random, n: 100.0 * np.exp(np.cumsum(0.05 * random.normal(size=n))),
}


@compiled
@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize("seed", [11, 12])
def test_the_last_number_is_no_better_than_the_bank(kind: str, seed: int) -> None:
    """Of numbers that inputs tell nothing about, after 100 rows: within 1.5 %, which learning costs."""
    random, n = np.random.default_rng(seed), 4000
    X, y = random.normal(size=(n, 4)), NUMBERS[kind](random, n)
    said = OnlineRegressor().learn_many(X, y)
    ours, last = said.mean[100:] - y[100:], y[99:-1] - y[100:]
    assert np.sqrt(np.mean(ours**2) / np.mean(last**2)) < 1.015


@compiled
def test_the_last_large_count_is_no_better_than_the_bank() -> None:
    """Tens of thousands that walk by 5 % a row: as good as the negative binomial about the last that is best."""
    random, n = np.random.default_rng(13), 3000
    X, rates = random.normal(size=(n, 3)), 3e4 * np.exp(np.sin(np.cumsum(0.05 * random.normal(size=n))))
    y = random.poisson(rates).astype(np.float64)
    said = OnlineCounter().learn_many(X, y)
    dispersions = np.geomspace(5e-4, 0.01, 12)
    best = max(nbinom.logpmf(y[100:], 1.0 / a, 1.0 / (1.0 + a * y[99:-1])).mean() for a in dispersions)
    assert said.evidence[100:].mean() > best - 0.01
