"""Rows: any chunking, weights, units, intervals, weights in raw units, classes that appear."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, make_classification
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler

from bayou.errors import InvalidFeatures, InvalidTarget, ShapeMismatch
from bayou.estimators import OnlineClassifier, OnlineCounter, OnlineRegressor
from bayou.likelihoods import Gaussian, Logistic, NegativeBinomial, Softmax
from bayou.posteriors import DiagonalGaussian, FullGaussian, NormalInverseGamma, SphericalGaussian
from bayou.rules import Linearized


def number_stream(n: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 3)) * [1.0, 100.0, 0.01] + [5.0, -300.0, 0.0]
    return rows, 50.0 + rows @ [2.0, 0.05, 100.0] + 3.0 * rng.normal(size=n)


CHUNKS = [[300], [1] * 300, [7, 93, 200], [150, 150]]


@pytest.mark.parametrize(
    "model",
    [
        OnlineRegressor(),
        OnlineRegressor(likelihood=Gaussian(9.0), posterior=FullGaussian(100.0)),
        OnlineRegressor(standardize=False),
    ],
    ids=repr,
)
def test_a_regressor_learns_alike_in_chunks_of_any_size(model: Any) -> None:
    rows, targets = number_stream()
    results = []
    for sizes in CHUNKS:
        start, fresh = 0, type(model)(**model.get_params(deep=False))
        given = []
        for size in sizes:
            given.append(fresh.learn_many(rows[start : start + size], targets[start : start + size]).mean)
            start += size
        results.append((np.concatenate(given), fresh.predict(rows, return_std=True), fresh.log_evidence_))
    for given, (mean, deviation), evidence in results[1:]:
        np.testing.assert_array_equal(given, results[0][0])
        np.testing.assert_array_equal(mean, results[0][1][0])
        np.testing.assert_array_equal(deviation, results[0][1][1])
        assert evidence == pytest.approx(results[0][2], rel=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_a_classifier_learns_alike_in_chunks_of_any_size(n_classes: int) -> None:
    rows, labels = make_classification(120, 6, n_informative=4, n_redundant=1, n_classes=n_classes, random_state=1)
    results = []
    for sizes in ([120], [1] * 120, [5, 40, 75]):
        model, start = OnlineClassifier(), 0
        for size in sizes:
            model.partial_fit(rows[start : start + size], labels[start : start + size])
            start += size
        results.append(model.predict_proba(rows))
    np.testing.assert_array_equal(results[1], results[0])
    np.testing.assert_array_equal(results[2], results[0])


def test_predictions_are_made_before_the_target_is_used() -> None:
    rows, targets = number_stream(50)
    model, stepwise = OnlineRegressor(), OnlineRegressor()
    given = model.learn_many(rows, targets)
    np.testing.assert_array_equal(
        stepwise.learn_many(rows, targets * np.where(np.arange(50) == 49, 7, 1)).mean, given.mean
    )
    assert given.mean[0] == 0.0  # nothing was known
    assert given.log_probability(targets).sum() == pytest.approx(model.log_evidence_, rel=1e-9)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_units_of_the_target_do_not_matter(scale: float, shift: float) -> None:
    rows, targets = number_stream()
    one, other = OnlineRegressor().fit(rows, targets), OnlineRegressor().fit(rows, scale * (targets + shift))
    mean, deviation = other.predict(rows, return_std=True)
    wanted_mean, wanted_deviation = one.predict(rows, return_std=True)
    # Rounding may tip the scales of which member of a bank sleeps, and when.
    np.testing.assert_allclose(mean, scale * (wanted_mean + shift), rtol=1e-3)
    np.testing.assert_allclose(deviation, scale * wanted_deviation, rtol=1e-3)


def test_a_sorted_stream_is_learnt_too() -> None:
    rows = np.linspace(0.0, 1.0, 60)[:, None]  # each row beyond all that was seen before
    targets = 3.0 * rows[:, 0] + 5.0 + 0.1 * np.cos(40.0 * rows[:, 0])
    model = OnlineRegressor(posterior=NormalInverseGamma(10.0)).fit(rows, targets)  # a bank would see that it repeats
    batch = LinearRegression().fit(rows, targets)
    assert model.coef_[0] == pytest.approx(batch.coef_[0], rel=0.02)
    assert model.intercept_ == pytest.approx(batch.intercept_, rel=0.02)


def test_units_of_the_features_do_not_matter() -> None:
    rows, targets = number_stream()
    one, other = (
        OnlineRegressor().fit(rows, targets),
        OnlineRegressor().fit(rows * [1e-8, 1e8, 1.0] + [0.0, 1e3, 5.0], targets),
    )
    np.testing.assert_allclose(other.predict(rows * [1e-8, 1e8, 1.0] + [0.0, 1e3, 5.0]), one.predict(rows), rtol=1e-6)


def test_weights_are_told_in_raw_units_with_their_intervals() -> None:
    rows, targets = number_stream(3000)
    model = OnlineRegressor().fit(rows, targets)
    batch = LinearRegression().fit(rows, targets)
    np.testing.assert_allclose(model.coef_, batch.coef_, rtol=0.05)  # some members remember the latest rows better
    assert model.intercept_ == pytest.approx(batch.intercept_, abs=3.0)
    np.testing.assert_allclose(model.coef_ @ rows[0] + model.intercept_, model.predict(rows[:1])[0], rtol=1e-3)
    low, high = model.coef_interval(0.99).T
    assert np.all((low < [2.0, 0.05, 100.0]) & (high > [2.0, 0.05, 100.0]))
    design = np.column_stack([np.ones(3000), rows])
    deviation = np.sqrt(9.0 * np.diag(np.linalg.inv(design.T @ design))[1:])
    np.testing.assert_allclose(model.summary().deviation, deviation, rtol=0.25)  # some members hold that it drifts
    assert np.all(model.summary().sign_probability > 0.999)


def test_a_summary_is_a_table_for_people() -> None:
    data = load_breast_cancer(as_frame=True)
    model = OnlineClassifier().fit(data.data, data.target)
    surest = model.summary(coverage=0.9).most_certain(3)
    lines = str(surest).splitlines()
    assert lines[0].split() == ["weight", "mean", "sd", "90%", "interval", "P(sign)"]
    assert lines[4].startswith("bank (")
    assert "weighed by evidence" in lines[4]
    assert "30 columns" in lines[4]
    assert any(line.startswith("drifts with probability") for line in lines)
    plain = str(OnlineClassifier(posterior=FullGaussian()).fit(data.data, data.target).summary())
    assert plain.splitlines()[-1] == "posterior: FullGaussian"
    assert len({len(line) for line in lines[:4]}) == 1
    assert set(surest.names) <= set(data.feature_names)
    assert np.all(np.diff(surest.sign_probability) <= 0.0)
    assert np.all((surest.interval[:, 0] < surest.mean) & (surest.mean < surest.interval[:, 1]))


def test_coefficients_of_two_classes_point_to_the_second() -> None:
    rows, labels = load_breast_cancer(return_X_y=True)
    names = np.where(labels == 1, "benign", "malignant")  # sorted: benign is first
    for order in (slice(None), slice(None, None, -1)):  # whichever appears first
        model = OnlineClassifier().partial_fit(rows[order], names[order])
        assert list(model.classes_) == ["benign", "malignant"]
        assert model.coef_.shape == (1, 30)
        latent = rows @ model.coef_[0] + model.intercept_[0]
        assert np.corrcoef(latent, labels == 0)[0, 1] > 0.7
        low, high = model.coef_interval(0.9).T
        assert np.all((low < model.coef_[0]) & (model.coef_[0] < high))


def test_probabilities_of_many_classes() -> None:
    rows, labels = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(150)
    model = OnlineClassifier()
    given = model.learn_many(rows[order], labels[order], classes=[0, 1, 2])
    np.testing.assert_allclose(given.sum(axis=1), 1.0, atol=1e-9)
    assert log_loss(labels[order], given) < 0.35
    assert model.coef_.shape == (3, 4)
    assert model.coef_interval().shape == (3, 4, 2)
    assert len(model.summary().names) == 12
    np.testing.assert_allclose(np.exp(model.predict_log_proba(rows)), model.predict_proba(rows), atol=1e-7)


def test_classes_may_appear_at_any_time() -> None:
    rows, labels = load_iris(return_X_y=True)
    order = np.random.default_rng(1).permutation(150)
    late = np.concatenate([order[labels[order] == 0][:10], order[labels[order] != 2], order])
    model = OnlineClassifier()
    for row in late:
        model.partial_fit(rows[row : row + 1], labels[row : row + 1])
    assert list(model.classes_) == [0, 1, 2]
    known = OnlineClassifier().partial_fit(rows[late], labels[late], classes=[0, 1, 2])
    assert model.score(rows, labels) > 0.9
    # what was learnt before the third class came was kept: the two disagree little
    assert np.mean(np.abs(model.predict_proba(rows) - known.predict_proba(rows))) < 0.05


def test_one_class_is_a_model_too() -> None:
    model = OnlineClassifier().fit([[1.0], [2.0]], ["only", "only"])
    np.testing.assert_array_equal(model.predict_proba([[3.0]]), [[1.0]])
    assert model.predict([[3.0]]) == ["only"]


def test_weights_are_repetitions() -> None:
    """Of one learner. A bank takes a row that counts more for one row, and not for time that passes."""
    rows, targets = number_stream(40)
    weights = np.random.default_rng(0).integers(0, 4, 40)
    for model, y in (
        (OnlineClassifier(likelihood=Logistic(), standardize=False), targets > 0.0),
        (OnlineCounter(likelihood=NegativeBinomial(), standardize=False), np.arange(40) % 5),
    ):
        weighted, repeated = (type(model)(**model.get_params(deep=False)) for _ in range(2))
        weighted.partial_fit(rows, y, sample_weight=weights.astype(float))
        repeated.partial_fit(np.repeat(rows, weights, axis=0), np.repeat(y, weights))
        np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-9)


def test_counts() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(4000, 2))
    rate = np.exp(1.0 + rows @ [0.5, -0.3])
    model = OnlineCounter().fit(rows, rng.poisson(rate))
    np.testing.assert_allclose(model.coef_, [0.5, -0.3], atol=0.05)
    np.testing.assert_allclose(model.predict(rows), rate, rtol=0.15)
    low, high = model.predict_interval(rows, 0.9).T
    counts = rng.poisson(rate)
    assert 0.88 < np.mean((counts >= low) & (counts <= high)) < 0.99  # counts are coarse: intervals cover at least this
    assert OnlineCounter(likelihood=NegativeBinomial()).fit(rows, counts).predict_quantiles(rows[:3], [0.5]).shape == (
        3,
        1,
    )


@pytest.mark.parametrize("posterior", [FullGaussian(), DiagonalGaussian(), SphericalGaussian()], ids=repr)
def test_settings_reach_the_learner(posterior: Any) -> None:
    rows, labels = make_classification(500, 5, random_state=0)
    model = OnlineClassifier(Logistic(), posterior, Linearized()).fit(rows, labels)
    assert model.score(rows, labels) > 0.8


def test_the_third_class_brings_softmax_whatever_the_likelihood_of_two() -> None:
    rows, labels = load_iris(return_X_y=True)
    model = OnlineClassifier(likelihood=Logistic()).fit(rows, labels)
    assert model._learner_.likelihood == Softmax(3)


@pytest.mark.parametrize("model", [OnlineClassifier(), OnlineRegressor(), OnlineCounter()], ids=repr)
@pytest.mark.parametrize(
    ("rows", "targets", "error", "message"),
    [
        ([[1.0, 2.0]], [0], ValueError, "2 features, but .* is expecting 3"),
        ([[1.0, np.inf, 0.0]], [0], ValueError, "infinity"),
        ([[1.0, 1e200, 0.0]], [0], InvalidFeatures, "below 1e.140 in size; got 1e.200 in row 0, column 1"),
        ([[1.0, 2.0, 0.0]], [0, 1], ShapeMismatch, "`y` must have one .* per row, 1; got 2"),
        ([[1.0, 2.0, 0.0]], [np.nan], ValueError, "y contains NaN"),
        ([["a", "b", "c"]], [0], ValueError, "could not convert string to float"),
    ],
)
def test_bad_rows_are_named_and_leave_the_model(
    model: Any, rows: Any, targets: Any, error: type[Exception], message: str
) -> None:
    model = type(model)().fit(np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) % 2)
    before = model.to_state().arrays
    before = {name: array.copy() for name, array in before.items()}
    with pytest.raises(error, match=message):
        model.partial_fit(rows, targets)
    for name, array in model.to_state().arrays.items():
        np.testing.assert_array_equal(array, before[name])


def test_bad_targets_are_named() -> None:
    rows = np.zeros((3, 1))
    with pytest.raises(InvalidTarget, match=r"got 0.5 in row 1"):
        OnlineCounter().fit(rows, [1, 0.5, 2])
    with pytest.raises(InvalidTarget, match=r"labels of `classes`.*got 7"):
        OnlineClassifier().partial_fit(rows, [0, 1, 7], classes=[0, 1])
    with pytest.raises(InvalidTarget, match=r"below 1e\+140 in size; got 1e\+200"):
        OnlineRegressor().fit(rows, [0.0, 1e200, 1.0])


def test_frames_keep_their_names() -> None:
    frame = pd.DataFrame(number_stream(30)[0], columns=["height", "weight", "age"])
    model = OnlineRegressor().fit(frame, number_stream(30)[1])
    assert model.summary().names == ["height", "weight", "age"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"age": "year"}))


def test_one_pass_is_near_batch_on_breast_cancer() -> None:
    rows, labels = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    train, test = order[:400], order[400:]
    scaler = StandardScaler().fit(rows[train])
    batch = LogisticRegression().fit(scaler.transform(rows[train]), labels[train])
    wanted = log_loss(labels[test], batch.predict_proba(scaler.transform(rows[test])))
    model = OnlineClassifier().fit(rows[train], labels[train])
    assert log_loss(labels[test], model.predict_proba(rows[test])) < wanted + 0.03  # standard error 0.02


def test_intervals_cover_on_diabetes() -> None:
    rows, targets = load_diabetes(return_X_y=True)
    covered = []
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(targets))
        low, high = OnlineRegressor().learn_many(rows[order], targets[order]).interval(0.9).T
        covered.append(np.mean((targets[order] >= low) & (targets[order] <= high)))
    assert 0.85 < np.mean(covered) < 0.95  # standard error 0.014 each
