"""Functions of few inputs as estimators: scikit-learn's checks, streams in any chunks, boxes that grow, pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons
from sklearn.utils import shuffle
from sklearn.utils.estimator_checks import parametrize_with_checks

import bayou
from bayou import (
    CubicSplines,
    DiagonalGaussian,
    FullGaussian,
    FunctionNorm,
    Gaussian,
    GeometricStiffness,
    IncrementalRiskClassifier,
    IncrementalRiskRegressor,
    NormalInverseGamma,
    Poisson,
    Polynomials,
    StudentT,
)
from bayou.contracts import Matrix, Vector
from bayou.errors import InvalidFeatures, InvalidSpec
from bayou.estimators.incremental_risk import GROWTH

ONE_PASS = (
    "The check shuffles weighted and repeated rows differently. One pass learns in the order of the rows, and what a "
    "row teaches depends on what came before."
)
BAYESIAN = NormalInverseGamma(30.0)


@parametrize_with_checks(
    [
        IncrementalRiskRegressor(),
        IncrementalRiskRegressor(posterior=BAYESIAN),
        IncrementalRiskClassifier(),
    ],
    expected_failed_checks=lambda _: {"check_sample_weight_equivalence_on_dense_data": ONE_PASS},
)
def test_scikit_learn(estimator: Any, check: Any) -> None:
    """A check of scikit-learn\'s raises where it is not met."""
    check(estimator)


def bump(x: np.ndarray) -> np.ndarray:
    return x * np.exp(-(x**2))


def stream(n: int, seed: int = 0, low: float = 0.0, high: float = 3.0) -> tuple[Matrix, Vector]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(low, high, n)
    return x[:, None], 450.0 + 10.0 * bump(x) + 0.3 * rng.normal(size=n)


def wave(n: int, seed: int = 0) -> tuple[Matrix, Vector]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, (n, 2)) * [1.0, 50.0]
    return x, np.sin(3.0 * x[:, 0]) * np.cos(0.05 * x[:, 1]) + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("posterior", [None, BAYESIAN, FunctionNorm(GeometricStiffness(0.3, 1.01), learn_noise=True)])
@pytest.mark.parametrize("basis", ["additive", "polynomial", "random", CubicSplines(15, (-0.5, 3.5))], ids=repr)
def test_it_learns_a_curve_with_bands_that_cover(basis: Any, posterior: Any) -> None:
    X, y = stream(1500)
    model = IncrementalRiskRegressor(basis, posterior).fit(X[:1000], y[:1000])
    grid = np.linspace(0.0, 3.0, 200)
    assert np.sqrt(np.mean((model.predict(grid[:, None]) - 450.0 - 10.0 * bump(grid)) ** 2)) < 0.15  # the noise is 0.3
    low, high = model.predict_interval(X[1000:], 0.9).T
    assert abs(np.mean((y[1000:] > low) & (y[1000:] < high)) - 0.9) < 0.05  # 500 rows: standard error 1.3 %


def test_irma_and_its_bayesian_version_differ_in_one_spec() -> None:
    """And hardly in what they have learnt."""
    X, y = stream(500)
    quick, thorough = (IncrementalRiskRegressor(posterior=posterior).fit(X, y) for posterior in (None, BAYESIAN))
    grid = np.linspace(0.0, 3.0, 50)[:, None]
    assert np.abs(quick.predict(grid) - thorough.predict(grid)).max() < 0.4
    assert isinstance(quick.posterior_, FunctionNorm)
    assert isinstance(thorough.posterior_, NormalInverseGamma)


def test_two_inputs() -> None:
    X, y = wave(4000)
    model = IncrementalRiskRegressor("tensor").fit(X[:3500], y[:3500])
    assert np.sqrt(np.mean((model.predict(X[3500:]) - y[3500:]) ** 2)) < 0.12  # the noise is 0.1
    additive = IncrementalRiskRegressor("additive").fit(X[:3500], y[:3500])
    assert np.sqrt(np.mean((additive.predict(X[3500:]) - y[3500:]) ** 2)) > 0.15  # a product is no sum


def test_counts() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(0.0, 3.0, (2000, 1))
    rate = np.exp(1.0 + np.sin(2.0 * x[:, 0]))
    model = IncrementalRiskRegressor(likelihood=Poisson()).fit(x, rng.poisson(rate))
    assert np.mean(np.abs(model.predict(x) / rate - 1.0)) < 0.15
    low, high = model.predict_interval(x, 0.9).T
    assert np.all(low >= 0.0)
    assert np.all(high == np.round(high))


def test_outliers_are_for_a_robust_loss() -> None:
    X, y = stream(600)
    wild = y.copy()
    wild[::10] += 50.0
    robust = IncrementalRiskRegressor(
        likelihood=StudentT(3.0, 0.3), posterior=FunctionNorm(prior_mean=0.0), domain=((-0.3, 3.3),)
    ).fit(X, wild - 450.0)
    plain = IncrementalRiskRegressor(domain=((-0.3, 3.3),)).fit(X, wild - 450.0)
    grid = np.linspace(0.0, 3.0, 100)[:, None]
    errors = [np.sqrt(np.mean((model.predict(grid) - 10.0 * bump(grid[:, 0])) ** 2)) for model in (robust, plain)]
    assert errors[0] < 0.5
    assert errors[1] > 3.0


# --- classes


def test_two_moons() -> None:
    X, y = make_moons(2000, noise=0.1, random_state=0)
    X_test, y_test = make_moons(1000, noise=0.1, random_state=1)
    for posterior in (None, FullGaussian(30.0)):
        model = IncrementalRiskClassifier("tensor", posterior).fit(X, y)
        assert model.score(X_test, y_test) > 0.97
        chances = model.predict_proba(X_test)[np.arange(len(y_test)), y_test]
        assert -np.mean(np.log(chances)) < 0.12


def test_classes_that_come_late() -> None:
    X, y = shuffle(*load_iris(return_X_y=True), random_state=0)
    order = np.argsort(y == 2, kind="stable")
    late = IncrementalRiskClassifier()
    for row, label in zip(X[order].tolist(), y[order].tolist(), strict=True):
        late.learn_one(dict(enumerate(row)), label)
    assert late.classes_.tolist() == [0, 1, 2]
    said = [late.predict_one(dict(enumerate(row))) for row in X.tolist()]
    assert np.mean(np.array(said) == y) > 0.8
    whole = IncrementalRiskClassifier().fit(X, y)
    assert whole.score(X, y) > 0.9
    np.testing.assert_allclose(whole.predict_proba(X).sum(axis=1), 1.0)


# --- streams


@pytest.mark.parametrize("posterior", [None, BAYESIAN])
def test_any_chunks_give_the_same(posterior: Any) -> None:
    X, y = stream(700)
    X[400:] *= 1.3  # beyond the box
    whole, chunked = (IncrementalRiskRegressor("additive", posterior) for _ in range(2))
    said = whole.learn_many(X, y)
    means = [chunked.learn_many(X[part], y[part]).mean for part in np.array_split(np.arange(700), 23)]
    np.testing.assert_allclose(np.concatenate(means), said.mean, rtol=1e-9)
    assert whole.domain_ == chunked.domain_
    np.testing.assert_allclose(whole._learner_.belief.mean, chunked._learner_.belief.mean, rtol=1e-7, atol=1e-9)
    assert whole.log_evidence_ == pytest.approx(chunked.log_evidence_, rel=1e-9)


def test_dicts_are_rows() -> None:
    X, y = wave(400)
    by_rows, by_dicts = IncrementalRiskRegressor(), IncrementalRiskRegressor()
    by_rows.learn_many(X, y)
    for row, target in zip(X.tolist(), y.tolist(), strict=True):
        by_dicts.learn_one({"a": row[0], "b": row[1]}, target)
    np.testing.assert_allclose(by_dicts._learner_.belief.mean, by_rows._learner_.belief.mean, rtol=1e-7, atol=1e-9)
    assert by_dicts.predict_one({"b": 3.0, "a": 0.2}) == pytest.approx(by_rows.predict([[0.2, 3.0]])[0], rel=1e-9)
    with pytest.raises(InvalidFeatures, match=r"the inputs must be 'a', 'b'; got 'c' beside them"):
        by_dicts.learn_one({"a": 0.1, "b": 0.2, "c": 0.3}, 1.0)
    with pytest.raises(InvalidFeatures, match="input 'b' must be a number"):
        by_dicts.learn_one({"a": 0.1}, 1.0)
    assert by_dicts.n_examples_ == 400


# --- the box


def test_the_first_rows_say_where_the_box_is() -> None:
    X, y = stream(200)
    model = IncrementalRiskRegressor().fit(X, y)
    ((low, high),) = model.domain_
    assert -0.5 < low < X.min()
    assert X.max() < high < 3.5
    given = IncrementalRiskRegressor(domain=((-1.0, 4.0),)).fit(X, y)
    assert given.domain_ == ((-1.0, 4.0),)


@pytest.mark.parametrize("posterior", [None, BAYESIAN])
@pytest.mark.parametrize("basis", ["additive", "polynomial", "random"])
def test_a_box_that_grows_keeps_what_was_learnt(basis: str, posterior: Any) -> None:
    X, y = stream(1000)
    model = IncrementalRiskRegressor(basis, posterior).fit(X, y)
    grid = np.linspace(0.1, 2.9, 50)[:, None]
    before, spread = model.predict(grid, return_std=True)
    ((low, _),) = model.domain_
    model._make_room(np.array([3.8]))
    assert model.domain_[0][1] >= 3.8 + GROWTH * (3.8 - low)
    # A polynomial that stayed what it was would run away on new ground: it gives way, within the noise.
    assert np.abs(model.predict(grid) - before).max() < (1.0 if basis == "polynomial" else 0.2) * spread.max()
    more, targets = stream(1000, seed=1, high=3.8)
    model.learn_many(more, targets)
    wide = np.linspace(0.1, 3.7, 50)
    error = np.sqrt(np.mean((model.predict(wide[:, None]) - 450.0 - 10.0 * bump(wide)) ** 2))
    assert error < (0.7 if basis == "polynomial" and posterior is None else 0.25)  # the noise is 0.3


def test_the_bayesian_version_grows_as_if_it_had_known_the_box() -> None:
    """The same rows over the wider box from the start, with the same prior: the same function, where data are."""
    X, y = stream(600)
    domain, wider = ((-0.2, 3.2),), ((-0.2, 3.2 + 3.4),)
    prior = FullGaussian(30.0)
    grown = IncrementalRiskRegressor(CubicSplines(10, domain[0]), prior, Gaussian(0.09)).fit(X, y - 450.0)
    grown._grow(wider)
    known = IncrementalRiskRegressor(CubicSplines(20, wider[0]), prior, Gaussian(0.09)).fit(X, y - 450.0)
    assert grown.basis_.size == known.basis_.size
    everywhere = np.linspace(*wider[0], 100)[:, None]
    mean, deviation = known.predict(everywhere, return_std=True)
    got, spread = grown.predict(everywhere, return_std=True)
    np.testing.assert_allclose(got, mean, atol=1e-5)
    np.testing.assert_allclose(spread, deviation, rtol=1e-5)


def test_predictions_beyond_the_box_are_those_at_its_edge() -> None:
    model = IncrementalRiskRegressor().fit(*stream(300))
    ((low, high),) = model.domain_
    np.testing.assert_array_equal(model.predict([[low - 5.0], [high + 1e9]]), model.predict([[low], [high]]))


def test_a_row_too_far_away_is_refused() -> None:
    X, y = stream(1000)
    model = IncrementalRiskRegressor().fit(X, y)
    before = model.predict(X[:5])
    with pytest.raises((InvalidFeatures, InvalidSpec), match=r"Give a `domain`|cells"):
        model.learn_many([[1e9]], [450.0])
    np.testing.assert_array_equal(model.predict(X[:5]), before)
    assert model.n_examples_ == 1000


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (
            {"basis": "wavelets"},
            "`basis` must be a Basis or one of additive, polynomial, random, tensor; got 'wavelets'",
        ),
        ({"domain": ((0.0, 1.0), (0.0, 1.0))}, "an interval for each input, 1; got 2"),
        ({"domain": 3.0}, "`domain` must be an interval"),
        ({"domain": ((3.0, 0.0),)}, "low < high"),
        ({"posterior": DiagonalGaussian()}, "`posterior` must be a FunctionNorm, a FullGaussian or"),
        ({"basis": Polynomials(3, (0.0, 1.0)), "posterior": "soft"}, "`posterior` must be a FunctionNorm"),
    ],
)
def test_bad_settings_are_named(bad: dict[str, Any], message: str) -> None:
    X, y = stream(20)
    with pytest.raises(InvalidSpec, match=message):
        IncrementalRiskRegressor(**bad).fit(X, y)


def test_missing_values_are_named() -> None:
    model = IncrementalRiskRegressor().fit(*stream(20))
    with pytest.raises(ValueError, match="NaN"):
        model.predict([[np.nan]])
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit([[np.nan]], [1.0])
    assert model.n_examples_ == 20


# --- as data, and as pictures


@pytest.mark.parametrize("n", [40, 700])
@pytest.mark.parametrize("posterior", [None, BAYESIAN])
def test_a_loaded_model_continues_to_the_last_bit(tmp_path: Path, posterior: Any, n: int) -> None:
    X, y = wave(1000)
    model = IncrementalRiskRegressor("additive", posterior)
    model.learn_many(X[:n], y[:n])
    bayou.save(model, tmp_path / "model.bayou")
    loaded = bayou.load(tmp_path / "model.bayou")
    X[n:] *= 1.2
    for one in (model, loaded):
        one.learn_many(X[n:], y[n:])
    np.testing.assert_array_equal(model.predict(X), loaded.predict(X))
    assert model.log_evidence_ == loaded.log_evidence_


def test_there_is_no_weight_per_input() -> None:
    model = IncrementalRiskRegressor().fit(*stream(20))
    with pytest.raises(AttributeError, match="no weight per input"):
        _ = model.coef_
    with pytest.raises(AttributeError, match="no weight per input"):
        model.summary()


def test_pictures_of_one_input_and_of_two() -> None:
    X, y = stream(300)
    model = IncrementalRiskRegressor().fit(X, y)
    figure = model.plot_function(data=(X, y))
    (axes,) = figure.axes
    line = next(line for line in axes.lines if line.get_label() == "function")
    np.testing.assert_allclose(line.get_ydata(), model.predict(line.get_xdata()[:, None]))
    assert len(axes.collections) == 2  # the band of the function, and that of targets
    X, y = wave(500)
    model = IncrementalRiskRegressor("tensor").fit(X, y)
    assert len(model.plot_function(data=(X, y)).axes) == 4  # two maps, two scales
    assert len(model.plot_function(1, at=[0.5, 0.0]).axes) == 1
    for inputs in (2, (0, 0), (0, 1, 1)):
        with pytest.raises(InvalidSpec, match="`inputs` must be one or two different columns below 2"):
            model.plot_function(inputs)
    with pytest.raises(InvalidFeatures, match="`at` must have a value for each input, 2"):
        model.plot_function(0, at=[1.0])
    with pytest.raises(InvalidSpec, match="`coverage` must lie between 0 and 1"):
        model.plot_function(coverage=1.0)


def test_pictures_of_classes_and_of_counts() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(0.0, 3.0, (500, 1))
    labels = np.where(np.sin(2.0 * x[:, 0]) > 0.0, "high", "low")
    model = IncrementalRiskClassifier().fit(x, labels)
    (axes,) = model.plot_function(data=(x, labels)).axes
    line = next(line for line in axes.lines if line.get_label() == "function")
    np.testing.assert_allclose(line.get_ydata(), model.predict_proba(line.get_xdata()[:, None])[:, 1], atol=1e-9)
    assert axes.get_ylabel() == "probability of low"
    counter = IncrementalRiskRegressor(likelihood=Poisson()).fit(x, rng.poisson(3.0, 500))
    assert len(counter.plot_function().axes) == 1
    three = IncrementalRiskClassifier().fit(x, np.floor(x[:, 0]).astype(int))
    with pytest.raises(InvalidSpec, match="drawn of two classes; there are 3"):
        three.plot_function()
