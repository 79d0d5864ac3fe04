"""Two views as an estimator: scikit-learn's checks, streams in any chunks, both directions, files, pictures."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.cross_decomposition import CCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import bayou
from bayou import BayesianCCA
from bayou.contracts import Matrix
from bayou.errors import InvalidFeatures, InvalidSpec, InvalidTarget, ModelFileError, ShapeMismatch


@parametrize_with_checks([BayesianCCA(), BayesianCCA(half_life=30.0), BayesianCCA(selection="relevance")])
def test_scikit_learn(estimator: Any, check: Any) -> None:
    """A check of scikit-learn\'s raises where it is not met."""
    check(estimator)


def views(n: int = 400, seed: int = 0) -> tuple[Matrix, Matrix]:
    """Six and four columns, which share two variables."""
    rng = np.random.default_rng(seed)
    maps = np.random.default_rng(99)
    both = rng.normal(size=(n, 2))
    X = both @ maps.normal(size=(2, 6)) + rng.normal(size=(n, 6))
    return X + 5.0, (both @ maps.normal(size=(2, 4)) + rng.normal(size=(n, 4))) * [1.0, 100.0, 1e-3, 1.0]


def assert_same(one: BayesianCCA, other: BayesianCCA, rtol: float = 1e-7) -> None:
    X, Y = views(30, 1)
    assert one.n_correlations_ == other.n_correlations_
    for ask in (
        lambda model: model.correlations_,
        lambda model: model.x_loadings_,
        lambda model: model.transform(X, Y)[1],
        lambda model: model.predict_interval(X),
        lambda model: model.inverse_predict(Y, return_std=True)[1],
        lambda model: model.shared(X, Y),
        lambda model: model.score(X, Y),
    ):
        np.testing.assert_allclose(ask(one), ask(other), rtol=rtol, atol=1e-9)


@pytest.mark.parametrize("half_life", [None, 50.0])
@pytest.mark.parametrize("sizes", [[400], [1] * 400, [3, 97, 250, 50]])
def test_any_chunks_give_the_model_of_all_rows(half_life: float | None, sizes: list[int]) -> None:
    X, Y = views()
    whole, chunked = BayesianCCA(half_life=half_life).fit(X, Y), BayesianCCA(half_life=half_life)
    for stop, size in zip(np.cumsum(sizes), sizes, strict=True):
        chunked.partial_fit(X[stop - size : stop], Y[stop - size : stop])
    assert_same(whole, chunked)
    assert chunked.n_examples_ == 400
    assert_same(chunked.fit(X, Y), whole, rtol=1e-12)  # forgets what it was


def named(row: list[float], prefix: str, backwards: bool = False) -> dict[Any, float]:
    items = [((prefix, j) if prefix == "y" else f"{prefix}{j}", value) for j, value in enumerate(row)]
    return dict(items[::-1] if backwards else items)


def test_dicts_in_any_order_of_their_names_give_the_same() -> None:
    X, Y = views(100)
    model = BayesianCCA()
    for i, (x, y) in enumerate(zip(X.tolist(), Y.tolist(), strict=True)):
        model.learn_one(named(x, "x", i % 2 == 1), named(y, "y", i % 3 == 1))
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(6)])
    whole = BayesianCCA().fit(frame, Y)
    np.testing.assert_allclose(model.predict_interval(frame), whole.predict_interval(frame), rtol=1e-8)
    said = model.predict_one(named(X[0].tolist(), "x", backwards=True))
    assert list(said) == [("y", j) for j in range(4)]
    np.testing.assert_allclose(list(said.values()), whole.predict(frame[:1])[0], rtol=1e-8)


def test_dicts_with_a_number() -> None:
    X, Y = views(100)
    model = BayesianCCA()
    for x, y in zip(X.tolist(), Y[:, 0].tolist(), strict=True):
        model.learn_one(named(x, "x"), y)
    whole = BayesianCCA().fit(X, Y[:, 0])
    assert model.predict_one(named(X[3].tolist(), "x")) == pytest.approx(whole.predict(X[3:4])[0], rel=1e-9)
    assert whole.predict(X).shape == (100,)
    assert whole.predict_interval(X).shape == (100, 2)
    assert whole.inverse_predict(Y[:, 0]).shape == (100, 6)


def test_a_dict_that_does_not_fit_is_named_and_changes_nothing() -> None:
    model, x, y = BayesianCCA(), {"a": 1.0, "b": 2.0}, {"c": 1.0}
    with pytest.raises(InvalidFeatures, match="'b' must be a number; got 'red'"):
        model.learn_one(x | {"b": "red"}, y)
    with pytest.raises(InvalidFeatures, match="needs a named value"):
        model.learn_one({}, y)
    model.learn_one(x, y)
    for wrong, other, message in (
        ({"a": 1.0}, y, "`x` must have the names 'a', 'b'; got \\['a'\\]"),
        (x | {"d": 1.0}, y, "`x` must have the names"),
        (x, 3.0, "`y` must be a dict of 'c'; got 3.0"),
        (x, {"c": float("nan")}, "`y` must have finite values"),
        (x, {"c": 1e150}, "below 1e\\+140 in size"),
    ):
        with pytest.raises(InvalidFeatures, match=message):
            model.learn_one(wrong, other)
    assert model._n_rows == 1
    with pytest.raises(NotFittedError, match="has learnt one row"):
        model.predict_one(x)
    by_rows = BayesianCCA().fit(*views(20))
    with pytest.raises(InvalidFeatures, match="rows without names"):
        by_rows.learn_one(x, y)


# --- what it says


def test_directions_are_those_of_scikit_learn() -> None:
    X, Y = views()
    model, theirs = BayesianCCA().fit(X, Y), CCA(n_components=2, max_iter=5000, tol=1e-12).fit(X, Y)
    assert model.n_correlations_ == 2
    for ours, peer in zip(model.transform(X, Y), theirs.transform(X, Y), strict=True):
        assert ours.shape == (400, 2)
        np.testing.assert_allclose(np.var(ours, axis=0), 1.0, rtol=1e-9)
        assert [abs(np.corrcoef(ours[:, j], peer[:, j])[0, 1]) for j in range(2)] == pytest.approx([1.0, 1.0], abs=1e-5)
    np.testing.assert_array_equal(clone(model).fit_transform(X, Y), model.transform(X))
    np.testing.assert_allclose(model.transform(X), (X - model.x_mean_) @ model.x_weights_, atol=1e-12)
    u, v = model.transform(X, Y)
    np.testing.assert_allclose(model.correlations_, np.mean(u * v, axis=0), atol=0.02)
    low, high = model.correlation_interval().T
    assert np.all((low < model.correlations_) & (model.correlations_ < high))


def test_what_rows_share_is_what_was_behind_them() -> None:
    """Up to a map of both variables, and the better the more is seen."""
    rng = np.random.default_rng(3)
    both = rng.normal(size=(2000, 2))
    X = both @ rng.normal(size=(2, 6)) + rng.normal(size=(2000, 6))
    Y = both @ rng.normal(size=(2, 4)) + rng.normal(size=(2000, 4))
    model = BayesianCCA().fit(X, Y)
    errors = []
    for mean, std in (model.shared(X, Y, return_std=True), model.shared(X, return_std=True)):
        left = mean - both @ np.linalg.lstsq(both, mean, rcond=None)[0]
        errors.append(float(np.mean(left**2)))
        assert std.shape == mean.shape
        assert np.all((std > 0.0) & (std < 1.0))
    assert errors[0] < errors[1] < 0.2
    with pytest.raises(InvalidFeatures, match="one view at least"):
        model.shared()


def test_either_view_tells_the_other_better_than_least_squares_and_intervals_cover() -> None:
    """30 samples of 40 rows, 500 unseen rows each: errors differ by more than 3 standard errors of the difference."""
    X_new, Y_new = views(500, 1000)
    found = []
    for seed in range(30):
        X, Y = views(40, seed)
        model = BayesianCCA().fit(X, Y)
        for said, interval, given, seen, wanted, new in (
            (model.predict(X_new), model.predict_interval(X_new, 0.8), X, Y, Y_new, X_new),
            (model.inverse_predict(Y_new), model.inverse_predict_interval(Y_new, 0.8), Y, X, X_new, Y_new),
        ):
            assert interval.shape == (*wanted.shape, 2)
            squares = LinearRegression().fit(given, seen).predict(new)
            errors = [float(np.mean(((one - wanted) / wanted.std(axis=0)) ** 2)) for one in (said, squares)]
            found.append((*errors, np.mean((interval[..., 0] < wanted) & (wanted < interval[..., 1]))))
    ours, theirs, covers = np.transpose(found)
    assert np.mean(theirs - ours) > 3.0 * np.std(theirs - ours) / np.sqrt(len(ours))
    assert np.mean(covers) == pytest.approx(0.8, abs=0.03)


def test_deviations_are_those_of_errors() -> None:
    """Of 2,000 rows and four columns: a standard error of 2 %."""
    (X, Y), (X_new, Y_new) = views(400), views(2000, 2)
    mean, std = BayesianCCA().fit(X, Y).predict(X_new, return_std=True)
    assert np.mean(((Y_new - mean) / std) ** 2) == pytest.approx(1.0, abs=0.06)


def test_far_from_all_rows_less_is_known() -> None:
    X, Y = views(50)
    model = BayesianCCA().fit(X, Y)
    _, std = model.predict(np.vstack([X[:1], X[:1] + 1000.0]), return_std=True)
    assert np.all(std[1] > 5.0 * std[0])


def test_views_without_anything_in_common() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(200, 5)), rng.normal(size=(200, 3))
    model = BayesianCCA().fit(X, Y)
    assert model.n_correlations_ == 0
    assert np.all(model.evidence_ <= 0.0)
    assert model.order_probabilities_[0] > 0.5
    assert model.order_probabilities_.sum() == pytest.approx(1.0)
    assert model.transform(X, Y)[1].shape == (200, 0)
    assert model.get_feature_names_out().tolist() == []
    np.testing.assert_allclose(model.predict(X), np.tile(Y.mean(axis=0), (200, 1)), atol=0.2)
    assert model.correlation_interval().shape == (0, 2)


def test_what_comes_late_counts_more_with_a_half_life() -> None:
    """The views share one variable, then another; the model that forgets nothing knows both."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(2000, 3)), rng.normal(size=(2000, 2))
    Y[:1000, 0] += 2.0 * X[:1000, 0]
    Y[1000:, 0] -= 2.0 * X[1000:, 1]
    late, all_rows = BayesianCCA(half_life=100.0).fit(X, Y), BayesianCCA().fit(X, Y)
    slope = late.predict([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])[:, 0]
    np.testing.assert_allclose(slope[:2] - slope[2], [0.0, -2.0], atol=0.25)
    slope = all_rows.predict([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])[:, 0]
    np.testing.assert_allclose(slope[:2] - slope[2], [1.0, -1.0], atol=0.2)


def test_how_pairs_are_retained_can_be_changed_afterwards() -> None:
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(60, 8)), rng.normal(size=(60, 6))
    model = BayesianCCA().fit(X, Y)
    assert model.n_correlations_ == 0
    assert model.set_params(selection="relevance").n_correlations_ >= 1
    assert model.set_params(min_correlation=0.99).n_correlations_ == 0


def test_it_goes_into_pipelines_and_searches() -> None:
    X, Y = views()
    pipeline = make_pipeline(StandardScaler(), BayesianCCA())
    np.testing.assert_allclose(pipeline.fit(X, Y).predict(X), BayesianCCA().fit(X, Y).predict(X), rtol=1e-7)
    assert pipeline.transform(X).shape == (400, 2)
    search = GridSearchCV(BayesianCCA(), {"min_correlation": [0.1, 0.95]}).fit(X, Y)
    assert search.best_params_ == {"min_correlation": 0.1}
    before = make_pipeline(BayesianCCA(), LinearRegression()).fit(X, Y)
    assert before.predict(X).shape == Y.shape


# --- what is refused


def test_what_is_wrong_is_named() -> None:
    X, Y = views(20)
    for params, message in (
        ({"min_correlation": 1.0}, "`min_correlation` must lie in"),
        ({"selection": "all"}, "`selection` must be"),
        ({"half_life": 0.5}, "`half_life` must be"),
    ):
        with pytest.raises(InvalidSpec, match=message):
            BayesianCCA(**params).fit(X, Y)  # type: ignore[arg-type]
    model = BayesianCCA().fit(X, Y)
    with pytest.raises(InvalidTarget, match="requires y to be passed"):
        model.partial_fit(X, None)  # type: ignore[arg-type]
    with pytest.raises(ShapeMismatch, match="`y` must have 4 columns, as before; got 3"):
        model.partial_fit(X, Y[:, :3])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.partial_fit(X, Y[:5])
    with pytest.raises(ShapeMismatch, match="a row for each of X, 20; got 5"):
        model.score(X, Y[:5])
    with pytest.raises(InvalidFeatures, match="below 1e\\+140"):
        model.partial_fit(X * 1e145, Y)
    with pytest.raises(InvalidSpec, match="`coverage` must lie between 0 and 1"):
        model.predict_interval(X, 1.0)
    assert_same(model, BayesianCCA().fit(X, Y), rtol=1e-12)
    with pytest.raises(NotFittedError, match="has learnt nothing yet"):
        BayesianCCA().predict(X)


# --- as data


def test_it_is_pickled_and_saved_and_continues(tmp_path: Path) -> None:
    X, Y = views()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = BayesianCCA(half_life=300.0).fit(frame[:200], Y[:200])
    bayou.save(model, tmp_path / "model.bayou")
    others = [bayou.load(tmp_path / "model.bayou"), pickle.loads(pickle.dumps(model))]
    said = model.partial_fit(frame[200:], Y[200:]).predict(frame)
    for other in others:
        assert other.get_params() == model.get_params()
        np.testing.assert_array_equal(other.partial_fit(frame[200:], Y[200:]).predict(frame), said)
        assert other.feature_names_in_.tolist() == list("abcdef")
    bayou.save(BayesianCCA(), tmp_path / "new.bayou")
    with pytest.raises(NotFittedError):
        bayou.load(tmp_path / "new.bayou").predict(X)
    assert (tmp_path / "model.bayou").stat().st_size < 3000  # and no rows


def test_names_of_dicts_are_kept(tmp_path: Path) -> None:
    model = BayesianCCA()
    for i in range(30):
        model.learn_one({("a", 1): float(i % 7), "b": float(i % 5)}, float(i % 7 + i % 3))
    bayou.save(model, tmp_path / "model.bayou")
    x = {("a", 1): 3.0, "b": 2.0}
    assert bayou.load(tmp_path / "model.bayou").predict_one(x) == model.predict_one(x)


def test_a_state_that_does_not_fit_is_refused() -> None:
    state = BayesianCCA().fit(*views(20)).to_state()
    for name, array in (("moments.mean", np.zeros(9)), ("moments.scatter", np.full((10, 10), np.nan))):
        with pytest.raises(ModelFileError, match="moments"):
            BayesianCCA.from_state(state._replace(arrays={**state.arrays, name: array}))


# --- pictures


def test_pictures() -> None:
    X, Y = views()
    model = BayesianCCA().fit(X, Y)
    left, right = model.plot(X, Y).axes
    assert left.get_title(loc="left") == "2 of 4 correlations retained"
    assert any(np.allclose(line.get_ydata(), 0.1) for line in left.lines)  # the threshold
    assert any(np.array_equal(line.get_ydata(), model.correlations_) for line in left.lines)
    (points,) = right.lines
    assert np.corrcoef(points.get_xdata(), points.get_ydata())[0, 1] == pytest.approx(
        model.model_.pairs.sample_correlation[0], abs=1e-9
    )
    assert len(model.plot().axes) == 1
    with pytest.raises(InvalidFeatures, match="of both views, or of none"):
        model.plot(X)
