"""Local functions as an estimator: scikit-learn's checks, streams, what comes in, what is kept, and what it is for."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgba
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import bayou
from bayou import SubspaceRegressor
from bayou.contracts import State
from bayou.errors import InvalidFeatures, InvalidSpec, InvalidTarget, ModelFileError, ShapeMismatch
from bayou.estimators.mixture_plots import COLOURS
from bayou.estimators.subspace_regressor import SHAPES
from bayou.numerics.jit import COMPILED
from bayou.papers.xu.functions import Local, Pieces

COMPONENTS = tuple(SHAPES)
STREAMS = tuple(component for component in COMPONENTS if component != "experts")


def two_lines(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two pieces of a line with a jump between, and a column that tells nothing."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(-1.0, 1.0, n), 0.3 * rng.normal(size=n)])
    return X, np.where(X[:, 0] < 0.0, 2.0 + X[:, 0], -1.0 - 3.0 * X[:, 0]) + 0.1 * rng.normal(size=n)


def several(z: np.ndarray) -> np.ndarray:
    """A second target."""
    return np.column_stack([z, 100.0 - 10.0 * z + 0.1 * np.sin(1e3 * z)])


def states(*models: SubspaceRegressor) -> list[Any]:
    """To be compared."""
    told = [model.to_state() for model in models]
    return [(one.config, {name: (part.shape, part.tobytes()) for name, part in one.arrays.items()}) for one in told]


@parametrize_with_checks([SubspaceRegressor(n_clusters=4)])
def test_scikit_learn(estimator: Any, check: Any) -> None:
    """A check of scikit-learn's raises where it is not met."""
    check(estimator)


# --- what is learnt


@pytest.mark.parametrize("component", COMPONENTS)
def test_each_component_learns_two_lines(component: str) -> None:
    """Closer than one line: gates of experts are sharp, and balls are as wide in the column that tells nothing."""
    X, z = two_lines(600)
    new, wanted = two_lines(500, 1)
    model = SubspaceRegressor(component=component).fit(X, z)
    error = np.sqrt(np.mean((model.predict(new) - wanted) ** 2))
    line = np.column_stack([np.ones(600), X])
    other = np.column_stack([np.ones(500), new]) @ np.linalg.lstsq(line, z, rcond=None)[0]
    at_most = {"experts": 0.25, "radial": 0.65, "extended_radial": 0.7}.get(component, 0.5)
    assert error < at_most * np.sqrt(np.mean((other - wanted) ** 2))
    assert model.n_factors_.shape == model.weights_.shape == (model.n_clusters_,)
    low, high = model.predict_interval(new).T
    assert 0.83 < np.mean((wanted > low) & (wanted < high)) < 0.97


def test_moments_quantiles_and_densities_agree() -> None:
    """By sums over the density itself: mass, mean, variance, and what lies below the quantiles."""
    X, z = two_lines(400)
    model = SubspaceRegressor(n_clusters=6).fit(X, z)
    grid, step = np.linspace(-8.0, 8.0, 4001, retstep=True)
    for row in ([0.05, 0.0], [-0.7, 0.3]):
        density = step * np.exp(model.log_density(np.tile(row, (grid.size, 1)), grid))
        mean, deviation = model.predict([row], return_std=True)
        assert density.sum() == pytest.approx(1.0, abs=1e-6)
        assert mean[0] == pytest.approx(density @ grid, abs=1e-6)
        assert deviation[0] ** 2 == pytest.approx(density @ (grid - mean[0]) ** 2, rel=1e-5)
        assert model.predict_var([row])[0] == pytest.approx(deviation[0] ** 2)
        found = model.predict_quantiles([row], [0.1, 0.5, 0.8])[0]
        np.testing.assert_allclose([density[grid <= value].sum() for value in found], [0.1, 0.5, 0.8], atol=0.01)
    np.testing.assert_allclose(model.predict_interval(X[:9], 0.8), model.predict_quantiles(X[:9], [0.1, 0.9]))


def test_several_targets_are_told_together() -> None:
    X, z = two_lines(500)
    both, one = SubspaceRegressor().fit(X, several(z)), SubspaceRegressor().fit(X, z)
    mean, deviation = both.predict(X, return_std=True)
    assert mean.shape == deviation.shape == both.predict_var(X).shape == (500, 2)
    assert both.predict_interval(X).shape == (500, 2, 2)
    assert both.predict_quantiles(X, [0.1, 0.5, 0.9]).shape == (500, 2, 3)
    np.testing.assert_allclose(mean[:, 1], 100.0 - 10.0 * mean[:, 0], atol=0.1)
    assert np.sqrt(np.mean((mean[:, 0] - one.predict(X)) ** 2)) < 0.1
    column = SubspaceRegressor().fit(X, z[:, None])
    np.testing.assert_array_equal(column.predict(X)[:, 0], one.predict(X))
    np.testing.assert_array_equal(column.predict_cluster(X), one.predict_cluster(X))
    assert column.log_density(X, z[:, None]).shape == (500,)


def test_units_change_nothing() -> None:
    X, z = two_lines(400)
    plain = SubspaceRegressor().fit(X, z)
    for unit in (1e-120, 1e-3, 1e120):
        other = SubspaceRegressor().fit(X * [unit, 1e3], unit * z)
        both = plain.predict(X, return_std=True), other.predict(X * [unit, 1e3], return_std=True)
        for one, two in zip(*both, strict=True):
            np.testing.assert_allclose(two / unit, one, rtol=1e-5, atol=1e-6)
        told = other.log_density(X * [unit, 1e3], unit * z) + np.log(unit)
        np.testing.assert_allclose(told, plain.log_density(X, z), atol=1e-3)


# --- streams


@pytest.mark.parametrize("component", STREAMS)
def test_any_chunks_and_what_was_saved_give_the_same(component: str, tmp_path: Path) -> None:
    X, z = two_lines(500)
    whole, chunked = (SubspaceRegressor(n_clusters=6, component=component) for _ in range(2))
    whole.partial_fit(X, z)
    for rows in np.array_split(np.arange(500), 23):
        chunked.partial_fit(X[rows], z[rows])
    np.testing.assert_array_equal(chunked.predict(X), whole.predict(X))
    for n in (40, 333):
        model = SubspaceRegressor(n_clusters=6, component=component).partial_fit(X[:n], z[:n])
        bayou.save(model, tmp_path / "model.bayou")
        for other in (bayou.load(tmp_path / "model.bayou"), pickle.loads(pickle.dumps(model))):
            np.testing.assert_array_equal(other.predict_interval(X), model.predict_interval(X))
            other.partial_fit(X[n:], z[n:])
            np.testing.assert_array_equal(other.predict_interval(X), whole.predict_interval(X))
            assert other.n_examples_ == 500


def test_dicts_are_rows(tmp_path: Path) -> None:
    X, z = two_lines(250)
    by_rows = SubspaceRegressor(n_clusters=6).partial_fit(X, several(z))
    by_dicts, by_lists = SubspaceRegressor(n_clusters=6), SubspaceRegressor(n_clusters=6)
    assert by_dicts.predict_one({"a": 0.0, "b": 0.0}) == 0.0
    for (a, b), (u, v) in zip(X.tolist(), several(z).tolist(), strict=True):
        by_dicts.learn_one({"a": a, "b": b}, {"u": u, "v": v})
        by_lists.learn_one([a, b], [u, v])
    x = {"b": X[0, 1], "a": X[0, 0]}
    wanted = by_rows.predict(X[:1])[0]
    bayou.save(by_dicts, tmp_path / "model.bayou")
    for model in (by_dicts, bayou.load(tmp_path / "model.bayou")):
        found = model.predict_one(x)
        assert list(found) == ["u", "v"]
        np.testing.assert_allclose(list(found.values()), wanted)
        np.testing.assert_allclose(model.predict([x]), wanted[None])
        model.learn_one({"b": 0.1, "a": 0.2}, {"v": 1.0, "u": 2.0})
        assert model.n_examples_ == 251
    np.testing.assert_allclose(by_lists.predict_one(X[0]), wanted)


def test_numbers_one_after_the_other() -> None:
    X, z = two_lines(250)
    whole, model = SubspaceRegressor(n_clusters=6).partial_fit(X, z), SubspaceRegressor(n_clusters=6)
    for x, target in zip(X, z.tolist(), strict=True):
        model.learn_one(x, target)
    np.testing.assert_array_equal(model.predict(X), whole.predict(X))
    assert model.predict_one(X[0]) == pytest.approx(whole.predict(X[:1])[0])
    assert isinstance(model.predict_one(X[0]), float)


def test_local_functions_are_read_when_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for all questions, and not for every row that is learnt."""
    X, z = two_lines(200)
    model, times = SubspaceRegressor(n_clusters=6).partial_fit(X[:150], z[:150]), []
    read = model._functions_of
    monkeypatch.setattr(model, "_functions_of", lambda *given: times.append(1) or read(*given))
    for x, target in zip(X[150:], z[150:], strict=True):
        model.learn_one(x, target)
    assert not times
    model.predict(X), model.predict_interval(X), model.n_factors_
    assert times == [1]


@pytest.mark.parametrize("component", STREAMS)
def test_the_first_rows(component: str) -> None:
    """Finite from the first row on; while there are too few for a line, as wide as the targets."""
    X, z = two_lines(60)
    model = SubspaceRegressor(component=component)
    for n in range(1, 25):
        model.learn_one(X[n - 1], z[n - 1])
        if n in (1, 2, 3, 4, 6, 12, 24):
            mean, deviation = model.predict(X, return_std=True)
            assert np.isfinite(mean).all()
            assert np.isfinite(model.predict_interval(X)).all()
            assert np.isfinite(model.log_density(X, z)).all()
            assert np.all(deviation > 0.0)
            if 1 < n < 5:
                assert np.all(deviation >= 0.99 * z[:n].std())
            if n == 1:
                assert mean[0] == pytest.approx(z[0])
                assert np.all(deviation >= 1.0)


def test_experts_of_few_rows_are_not_certain() -> None:
    X, z = two_lines(60)
    for n in (1, 2, 4):
        deviation = SubspaceRegressor(component="experts").fit(X[:n], z[:n]).predict(X, return_std=True)[1]
        assert np.all(deviation >= 0.99 * z[:n].std())


def test_old_rows_are_forgotten() -> None:
    """A line that turns: after it has turned, the new one is what is expected."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 1))
    z = x[:, 0] * np.where(np.arange(3000) < 1500, 1.0, -1.0) + 0.1 * rng.normal(size=3000)
    errors = [
        np.abs(SubspaceRegressor(half_life=half_life).partial_fit(x, z).predict([[1.0]])[0] + 1.0)
        for half_life in (100, None)
    ]
    assert errors[0] < 0.1
    assert errors[1] > 0.4


def test_a_stream_may_follow_a_batch() -> None:
    X, z = two_lines(900)
    model = SubspaceRegressor().fit(X[:400], z[:400]).partial_fit(X[400:], z[400:])
    assert model.n_examples_ == 900
    assert np.mean((model.predict(X) - z) ** 2) < 0.2


# --- what cannot be learnt


@pytest.mark.parametrize("n", [0, 30, 150])
def test_what_cannot_be_learnt_changes_nothing(n: int) -> None:
    """Neither before the first row, nor among those that are learnt as a batch, nor of a stream."""
    X, z = two_lines(200)
    model, named = SubspaceRegressor(), SubspaceRegressor()
    if n:
        model.partial_fit(X[:n], z[:n])
    for (a, b), target in zip(X[:n].tolist(), several(z).tolist(), strict=False):
        named.learn_one({"a": a, "b": b}, dict(zip("uv", target, strict=True)))
    before, columns = states(model, named), vars(model).keys()
    bad = z[:2].copy()
    bad[1] = np.nan
    for rows, targets, kind, message in (
        ([[np.nan, 0.0]], [1.0], ValueError, "NaN"),
        ([["high", 1.0]], [1.0], ValueError, "could not convert"),
        (X[:2], bad, InvalidTarget, "must be finite.* row 1"),
        (X[:2], z[:3], ShapeMismatch, "one target per row"),
        (X[:2], z[:2, None, None], ShapeMismatch, "one target per row"),
        (X[:2], np.zeros((2, 0)), ShapeMismatch, "one target per row"),
        (X[:2], ["high", "low"], InvalidTarget, "must be numbers"),
        (X[:2], None, InvalidTarget, "y is None"),
        (X[:2], [1e200, 0.0], ValueError, "below 1e\\+140"),
    ):
        for learn in (model.partial_fit, model.fit):
            with pytest.raises(kind, match=message):
                learn(rows, targets)
    for x, y, kind, message in (
        ({"a": 1.0, "b": "high"}, {"u": 1.0, "v": 1.0}, InvalidFeatures, "'b' must be a number"),
        ({"a": 1.0, "b": None}, {"u": 1.0, "v": 1.0}, InvalidFeatures, "'b' must be there"),
        ({"a": 1.0, "b": 1.0}, {"u": "high", "v": 1.0}, InvalidFeatures, "'u' must be a number"),
        ({"a": 1.0, "b": 1.0}, {"u": np.nan, "v": 1.0}, InvalidFeatures, "finite"),
        ({"a": 1.0, "b": 1.0}, {}, InvalidFeatures, "`y` must"),
        ({"a": 1.0, "b": 1.0}, np.nan, InvalidTarget, "must be finite"),
        ({"a": 1.0, "b": 1.0}, [[1.0]], ShapeMismatch, "one target per row"),
    ):
        with pytest.raises(kind, match=message):
            named.learn_one(x, y)
    if n:
        for rows, targets, kind, message in (
            (np.zeros((2, 3)), [0.0, 1.0], ValueError, "3 features"),
            (X[:2], several(z[:2]), ShapeMismatch, "must have 1 targets, as before; got 2"),
        ):
            with pytest.raises(kind, match=message):
                model.partial_fit(rows, targets)
        for x, y, kind, message in (
            ({"a": 1.0, "b": 1.0}, 1.0, InvalidTarget, r"must be a dict of \['u', 'v'\], as before"),
            ({"a": 1.0, "b": 1.0}, {"u": 1.0}, InvalidFeatures, "must have the names 'u', 'v'"),
            ({"a": 1.0}, {"u": 1.0, "v": 1.0}, InvalidFeatures, "names that came first"),
            ([1.0, 1.0], {"u": 1.0, "v": 1.0}, InvalidFeatures, "has learnt dicts"),
        ):
            with pytest.raises(kind, match=message):
                named.learn_one(x, y)
        with pytest.raises(InvalidFeatures, match="has learnt rows without names; got a dict"):
            model.learn_one({"a": 1.0, "b": 1.0}, 1.0)
        with pytest.raises(InvalidFeatures, match="`y` must be a number"):
            model.learn_one(X[0], {"u": 1.0})
        with pytest.raises(ShapeMismatch, match="must have 1 targets"):
            pickle.loads(pickle.dumps(model)).log_density(X[:2], several(z[:2]))
    assert states(model, named) == before
    assert vars(model).keys() == columns
    assert hasattr(model, "_width") == bool(n)


def test_experts_are_not_of_a_stream() -> None:
    X, z = two_lines(150)
    model = SubspaceRegressor(component="experts")
    for learn in (lambda: model.partial_fit(X, z), lambda: model.learn_one(X[0], z[0])):
        with pytest.raises(InvalidSpec, match="must be another than 'experts' for a stream"):
            learn()
    assert not hasattr(model, "_width")
    model.fit(X, z).set_params(component="subspace")
    with pytest.raises(InvalidSpec, match="`component` must stay what it was"):
        model.partial_fit(X, z)
    streaming = SubspaceRegressor().partial_fit(X, z).set_params(component="radial")
    with pytest.raises(InvalidSpec, match="`component` must stay what it was"):
        streaming.partial_fit(X, z)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"n_clusters": 0}, "`n_clusters` must be a whole number, at least 1; got 0"),
        ({"n_factors": -1}, "`n_factors` must be a whole number, at least 0; got -1"),
        ({"n_factors": 1.5}, "`n_factors` must be a whole number, at least 0; got 1.5"),
        ({"component": "forest"}, "`component` must be one of subspace, experts, .* got 'forest'"),
        ({"matching": 1.5}, "`matching` must be between 0 and 1; got 1.5"),
        ({"half_life": 0.5}, "`half_life` must be None or at least 1 row; got 0.5"),
    ],
)
def test_bad_settings_are_named(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        SubspaceRegressor(**bad).fit(np.zeros((3, 2)), np.zeros(3))


def test_bad_questions() -> None:
    X, z = two_lines(120)
    with pytest.raises(NotFittedError):
        SubspaceRegressor().predict(X)
    with pytest.raises(NotFittedError):
        _ = SubspaceRegressor().n_factors_
    model = SubspaceRegressor().fit(X, z)
    with pytest.raises(InvalidSpec, match="`coverage` must lie between 0 and 1"):
        model.predict_interval(X, 1.0)
    with pytest.raises(InvalidSpec, match="`alpha` must be probabilities"):
        model.predict_quantiles(X, [0.5, 1.0])
    with pytest.raises(InvalidFeatures, match="times the spread"):
        model.predict([[1e120, 0.0]])
    assert np.isfinite(model.predict([[1e90, 0.0], [-1e90, 1e90]])).all()
    with pytest.raises(InvalidSpec, match="one input and one target; there are 2 and 1"):
        model.plot()


@pytest.mark.parametrize("component", COMPONENTS)
def test_awkward_rows(component: str) -> None:
    """Identical ones, copies of a column, constants, targets without noise."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2))
    z = x @ [1.0, -2.0]
    for X, y in (
        (np.ones((120, 2)), np.ones(120)),
        (np.repeat([[0.0, 0.0], [1.0, 1.0]], 60, axis=0), np.repeat([0.0, 1.0], 60)),
        (x[:, [0, 1, 0]], z),
        (np.column_stack([x, np.full(200, 7.0)]), z),
        (x, np.full(200, 7.0)),
    ):
        for learn in ("fit", "partial_fit")[: 1 + (component in STREAMS)]:
            model = getattr(SubspaceRegressor(n_clusters=5, component=component), learn)(X, y)
            mean, deviation = model.predict(X, return_std=True)
            assert np.isfinite(deviation).all()
            assert np.isfinite(model.log_density(X, y)).all()
            assert np.sqrt(np.mean((mean - y) ** 2)) < (1.9 if component == "radial" else 0.02)


# --- as data


@pytest.mark.parametrize("component", COMPONENTS)
@pytest.mark.parametrize("targets", ["one", "several"])
def test_files_of_every_component(component: str, targets: str, tmp_path: Path) -> None:
    X, z = two_lines(200)
    y = z if targets == "one" else several(z)
    frame = pd.DataFrame(X, columns=["u", "v"])
    model = SubspaceRegressor(n_clusters=5, component=component).fit(frame, y)
    bayou.save(model, tmp_path / "model.bayou")
    loaded = bayou.load(tmp_path / "model.bayou")
    assert loaded.feature_names_in_.tolist() == ["u", "v"]
    for other in (loaded, pickle.loads(pickle.dumps(model))):
        for ask in ("predict", "predict_interval", "predict_cluster"):
            np.testing.assert_array_equal(getattr(other, ask)(frame), getattr(model, ask)(frame))
        np.testing.assert_array_equal(other.log_density(frame, y), model.log_density(frame, y))
        np.testing.assert_array_equal(other.n_factors_, model.n_factors_)
        assert states(other) == states(model)
    bayou.save(SubspaceRegressor(component=component), tmp_path / "empty.bayou")
    assert not hasattr(bayou.load(tmp_path / "empty.bayou"), "_width")


def test_a_state_that_does_not_fit_is_refused() -> None:
    X, z = two_lines(150)
    config, arrays = SubspaceRegressor(n_clusters=5).partial_fit(X, several(z)).to_state()
    changes = [
        State({**config, "width": 0}, arrays),
        State({**config, "width": 4}, arrays),
        State({**config, "names": ["a"]}, arrays),
        State({**config, "target_names": ["u"]}, arrays),
        State({**config, "one_target": True}, arrays),
        State({**config, "prior": [1.0, -1.0, 1.0]}, arrays),
        State({**config, "shape": [4, 2]}, arrays),
        State(config, {**arrays, "scale": np.zeros(4)}),
        State(config, {**arrays, "early": np.zeros((0, 3))}),
        State(config, {**arrays, "sums.n": np.full(arrays["sums.n"].size, -1.0)}),
        State(config, {**arrays, "sums.s1": np.full_like(arrays["sums.s1"], np.nan)}),
    ]
    config, arrays = SubspaceRegressor(n_clusters=5, component="experts").fit(X, z).to_state()
    changes += [
        State(config, {name: part for name, part in arrays.items() if name != "experts.gate"}),
        State(config, {**arrays, "experts.gate": arrays["experts.gate"][:, :1]}),
        State(config, {**arrays, "experts.gate": arrays["experts.gate"][:0]}),
        State(config, {**arrays, "experts.slope": np.full_like(arrays["experts.slope"], np.nan)}),
        State(config, {**arrays, "experts.noise": -arrays["experts.noise"]}),
    ]
    for change in changes:
        with pytest.raises(ModelFileError):
            SubspaceRegressor.from_state(change)


# --- the picture, and what it is for


def test_a_picture() -> None:
    sample = Pieces().draw(0)
    model = SubspaceRegressor(component="experts").fit(pd.DataFrame(sample.x, columns=["speed"]), sample.z)
    (axes,) = model.plot(pd.DataFrame(sample.x, columns=["speed"]), sample.z).axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("speed", "target")
    (line,) = axes.lines
    assert line.get_color() == COLOURS[0]
    x, y = line.get_data()
    np.testing.assert_allclose(y, model.predict(pd.DataFrame({"speed": x})), atol=1e-9)
    assert (x[0], x[-1]) == (sample.x.min(), sample.x.max())
    band, rows = axes.collections[1], axes.collections[0]
    np.testing.assert_allclose(band.get_facecolor()[0, :3], to_rgba(COLOURS[0])[:3])
    assert len(rows.get_offsets()) == len(sample.x)
    alone = SubspaceRegressor().fit(sample.x, sample.z).plot().axes[0]
    assert len(alone.collections) == 1


def rms(found: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.sqrt(np.mean((found - wanted) ** 2)))


@pytest.mark.skipif(not COMPILED, reason="thousands of rows need compiled kernels")
@pytest.mark.parametrize("learn", ["fit", "partial_fit"])
def test_local_functions_are_found_and_intervals_cover(learn: str) -> None:
    """Three samples: within 10 % of the oracle, and 90 % intervals cover 85 to 95 %; standard error below 1 %."""
    covered = []
    for seed in range(3):
        sample = Local().draw(500 + seed)
        model = getattr(SubspaceRegressor(), learn)(sample.x, sample.z)
        assert rms(model.predict(sample.new_x), sample.new_f) < 1.1 * rms(sample.oracle, sample.new_f)
        assert model.n_factors_.tolist() == [2] * 4
        low, high = model.predict_interval(sample.new_x).T
        covered.append(np.mean((sample.new_z > low) & (sample.new_z < high)))
    assert 0.85 < np.mean(covered) < 0.95


@pytest.mark.skipif(not COMPILED, reason="thousands of rows need compiled kernels")
@pytest.mark.parametrize(("learn", "times"), [("fit", 4.0), ("partial_fit", 2.0)])
def test_pieces_are_found_and_intervals_cover(learn: str, times: float) -> None:
    """Three samples: a line's error is so many times as large on average."""
    ratios, covered = [], []
    for seed in range(3):
        sample = Pieces().draw(500 + seed)
        model = getattr(SubspaceRegressor(), learn)(sample.x, sample.z)
        line = np.polyval(np.polyfit(sample.x[:, 0], sample.z, 1), sample.new_x[:, 0])
        ratios.append(rms(line, sample.new_f) / rms(model.predict(sample.new_x), sample.new_f))
        low, high = model.predict_interval(sample.new_x).T
        covered.append(np.mean((sample.new_z > low) & (sample.new_z < high)))
    assert np.mean(ratios) > times
    assert 0.85 < np.mean(covered) < 0.95
