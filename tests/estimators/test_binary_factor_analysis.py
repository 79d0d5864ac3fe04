"""Binary factors as a scikit-learn transformer: rows, dicts, streams, extremes and files."""

from __future__ import annotations

import itertools
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import bayou
from bayou.contracts import State
from bayou.errors import InvalidFeatures, InvalidSpec, ModelFileError, ShapeMismatch
from bayou.estimators import BinaryFactorAnalysis
from bayou.numerics.jit import COMPILED

LOADINGS = np.random.default_rng(100).normal(size=(3, 6))
CHANCES = np.array([0.3, 0.5, 0.6])
needs_speed = pytest.mark.skipif(not COMPILED, reason="fits need compiled kernels")


def draw(n: int, seed: int = 0, deviation: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    bits = (random.random((n, 3)) < CHANCES).astype(int)
    return bits @ LOADINGS + 5.0 + deviation * random.normal(size=(n, 6)), bits


def as_dicts(rows: np.ndarray) -> list[dict[str, float]]:
    return [{f"x{j}": float(value) for j, value in enumerate(row)} for row in rows]


def model_of(**params: Any) -> BinaryFactorAnalysis:
    return BinaryFactorAnalysis(**({"n_factors": 4, "n_starts": 1} | params))


@parametrize_with_checks([BinaryFactorAnalysis(), BinaryFactorAnalysis(12, harmony=0.5, n_starts=1)])
def test_scikit_learn_checks_pass(estimator: Any, check: Any) -> None:
    """A check of scikit-learn\'s raises where it is not met."""
    check(estimator)


@needs_speed
def test_it_finds_the_factors_their_bits_and_the_noise() -> None:
    rows, bits = draw(1000)
    model = BinaryFactorAnalysis().fit(rows)
    assert model.n_factors_ == 3
    distances = [
        np.minimum(np.linalg.norm(model.components_ - a, axis=1), np.linalg.norm(model.components_ + a, axis=1))
        for a in LOADINGS
    ]
    order = np.argmin(distances, axis=1)
    assert sorted(order) == [0, 1, 2]
    assert np.min(distances, axis=1).max() < 0.1  # an entry has a standard error of about 0.3 / sqrt(250)
    signs = np.sign(np.sum(model.components_[order] * LOADINGS, axis=1))
    found = np.where(signs > 0.0, model.predict(rows)[:, order], 1 - model.predict(rows)[:, order])
    assert np.mean(found == bits) > 0.99
    chances = np.where(signs > 0.0, model.probabilities_[order], 1.0 - model.probabilities_[order])
    np.testing.assert_allclose(chances, CHANCES, atol=0.05)  # three standard errors of a share of 1000
    assert model.noise_variance_ == pytest.approx(0.09, rel=0.08)
    wanted = model.location_ + model.components_[signs[np.argsort(order)] < 0.0].sum(axis=0)
    np.testing.assert_allclose(wanted, 5.0, atol=0.1)
    again = model.inverse_transform(model.predict(rows))
    assert np.mean((rows - again) ** 2) == pytest.approx(0.09, rel=0.08)


def test_densities_and_chances_are_those_of_the_mixture_that_the_model_is() -> None:
    rows, _ = draw(150, deviation=1.0)
    model = model_of(harmony=0.5).fit(rows)
    assert model.n_factors_ > 0
    states = np.array(list(itertools.product((0, 1), repeat=model.n_factors_)))
    prior = np.prod(np.where(states == 1, model.probabilities_, 1.0 - model.probabilities_), axis=1)
    logs = np.column_stack(
        [multivariate_normal.logpdf(rows, mean, model.noise_variance_) for mean in model.inverse_transform(states)]
    ) + np.log(prior)
    np.testing.assert_allclose(model.score_samples(rows), logsumexp(logs, axis=1), rtol=1e-9)
    assert model.score(rows) == pytest.approx(logsumexp(logs, axis=1).mean(), rel=1e-9)
    p = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
    np.testing.assert_allclose(model.transform(rows), p @ states, atol=1e-9)
    np.testing.assert_array_equal(model.predict(rows), states[np.argmax(p, axis=1)])


def test_what_is_drawn_has_the_moments_of_the_model() -> None:
    """A sample of 40,000: means within five standard errors."""
    model = model_of().fit(draw(150)[0])
    rows, bits = model.sample(40_000, seed=1)
    a, p = model.components_, model.probabilities_
    covariance = a.T @ np.diag(p * (1.0 - p)) @ a + model.noise_variance_ * np.eye(6)
    mean = model.location_ + p @ a
    errors = np.sqrt(np.diag(covariance) / 40_000)
    assert np.all(np.abs(rows.mean(axis=0) - mean) < 5.0 * errors)
    np.testing.assert_allclose(np.cov(rows.T), covariance, atol=0.05 * np.abs(covariance).max())
    assert np.all(np.abs(bits.mean(axis=0) - p) < 5.0 * np.sqrt(p * (1.0 - p) / 40_000))
    np.testing.assert_allclose(np.var(rows - model.inverse_transform(bits)), model.noise_variance_, rtol=0.03)
    with pytest.raises(InvalidSpec, match="`n_samples` must be at least 1; got 0"):
        model.sample(0)


@needs_speed
@pytest.mark.parametrize("factor", [1e-120, 1e-3, 1e120])
def test_factors_are_the_same_in_any_unit_and_anywhere(factor: float) -> None:
    rows, _ = draw(300)
    one, two = model_of().fit(rows), model_of().fit(factor * (rows + 1000.0))
    np.testing.assert_allclose(two.components_ / factor, one.components_, atol=1e-7)
    np.testing.assert_allclose(two.transform(factor * (rows + 1000.0)), one.transform(rows), atol=1e-6)
    assert two.score(factor * (rows + 1000.0)) == pytest.approx(one.score(rows) - 6.0 * math.log(factor), rel=1e-6)


@needs_speed
def test_chunks_of_any_size_are_learnt_alike_and_dicts_as_rows() -> None:
    rows, _ = draw(430)
    at_once = model_of().partial_fit(rows)
    for sizes in ([1] * 430, [3, 40, 200, 187]):
        model, start = model_of(), 0
        for size in sizes:
            model.partial_fit(rows[start : start + size])
            start += size
        np.testing.assert_array_equal(model.components_, at_once.components_)
    by_dict = model_of()
    assert by_dict.transform_one(as_dicts(rows)[0]) == {}
    for x in as_dicts(rows):
        by_dict.learn_one(x)
    np.testing.assert_array_equal(by_dict.components_, at_once.components_)
    told = by_dict.transform_one(as_dicts(rows)[0])
    assert list(told) == at_once.get_feature_names_out().tolist()
    np.testing.assert_array_equal(list(told.values()), at_once.transform(rows[:1])[0])
    assert by_dict.n_examples_ == 430


@needs_speed
def test_a_stream_comes_as_close_as_a_fit_in_constant_memory() -> None:
    rows, _ = draw(4000, deviation=0.5)
    later, _ = draw(2000, seed=1, deviation=0.5)
    stream = BinaryFactorAnalysis()
    sizes = set()
    for start in range(0, 4000, 500):
        stream.partial_fit(rows[start : start + 500])
        sizes.add(sum(array.nbytes for array in stream.to_state().arrays.values()))
    assert len(sizes) == 1
    assert stream.n_factors_ == 3
    early, whole = BinaryFactorAnalysis().fit(rows[:200]), BinaryFactorAnalysis().fit(rows)
    assert stream.score(later) == pytest.approx(whole.score(later), abs=0.005)
    assert stream.score(later) > early.score(later) + 0.02


@needs_speed
def test_a_factor_that_a_stream_has_no_more_use_for_is_pruned() -> None:
    """The first rows have three factors; in those that follow the first is always off."""
    rows, bits = draw(200)
    model = BinaryFactorAnalysis().partial_fit(rows)
    assert model.n_factors_ == 3
    rest, bits = draw(12_000, seed=2)
    model.partial_fit(rest - bits[:, :1] * LOADINGS[:1])
    assert model.n_factors_ == 2


def test_a_short_fit_goes_on_as_a_stream_would() -> None:
    rows, _ = draw(100)
    fitted, streamed = model_of().fit(rows[:32]).partial_fit(rows[32:]), model_of().partial_fit(rows)
    np.testing.assert_array_equal(fitted.components_, streamed.components_)


def test_rows_that_do_not_vary_have_no_factors() -> None:
    model = model_of().fit(np.full((10, 3), 7.0))
    assert model.n_factors_ == 0
    assert model.transform([[7.0, 7.0, 7.0]]).shape == (1, 0)
    np.testing.assert_allclose(model.inverse_transform(np.zeros((2, 0))), 7.0)
    np.testing.assert_allclose(model.sample(5)[0], 7.0, atol=0.01)
    assert model.transform_one([7.0, 7.0, 7.0]) == {}


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_factors": 0}, "`n_factors` must be a whole number, at least 1; got 0"),
        ({"n_starts": 1.5}, "`n_starts` must be a whole number, at least 1; got 1.5"),
        ({"harmony": 1.1}, "`harmony` must lie between 0 and 1; got 1.1"),
        ({"harmony": math.nan}, "`harmony` must lie between 0 and 1"),
        ({"seed": None}, "`seed` must be a whole number, at least 0; got None"),
    ],
)
def test_what_cannot_be_is_named(params: dict[str, Any], message: str) -> None:
    for learn in ("fit", "partial_fit"):
        with pytest.raises(InvalidSpec, match=message):
            getattr(BinaryFactorAnalysis(**params), learn)([[0.0, 1.0], [1.0, 0.0]])


@needs_speed
def test_rows_that_cannot_be_learnt_change_nothing() -> None:
    rows, _ = draw(230)
    fresh = model_of()
    with pytest.raises(InvalidFeatures, match=r"times the spread of the first rows"):
        fresh.partial_fit(np.concatenate([rows[:20], np.full((1, 6), 1e130)]))
    assert not fresh._begun()
    for n in (20, 230):
        model = model_of().partial_fit(rows[:n])
        before = model.to_state()
        with pytest.raises(InvalidFeatures, match=r"got 1e\+130 in row"):
            model.partial_fit(np.concatenate([rows[:5], np.full((1, 6), 1e130)]))
        after = model.to_state()
        assert after.config == before.config
        for name, array in after.arrays.items():
            np.testing.assert_array_equal(array, before.arrays[name])
    with pytest.raises(ShapeMismatch, match="`X` must have a column for each of the"):
        model.inverse_transform(np.zeros((2, 9)))
    with pytest.raises(InvalidFeatures, match="`X` must be finite; got nan"):
        model.inverse_transform(np.full((2, model.n_factors_), np.nan))


@needs_speed
@pytest.mark.parametrize("how", ["fit", "stream", "few rows", "dicts", "nothing"])
def test_a_file_and_a_pickle_go_on_to_the_last_bit(how: str, tmp_path: Path) -> None:
    rows, _ = draw(260)
    model = model_of()
    if how == "dicts":
        for x in as_dicts(rows[:70]):
            model.learn_one(x)
    elif how != "nothing":
        getattr(model, "fit" if how == "fit" else "partial_fit")(rows[: 10 if how == "few rows" else 260])
    bayou.save(model, tmp_path / "model.bayou")
    for other in (bayou.load(tmp_path / "model.bayou"), pickle.loads(pickle.dumps(model))):
        again = clone(model) if how == "nothing" else pickle.loads(pickle.dumps(model))
        assert other.get_params() == model.get_params()
        for one in (again, other):
            for x, row in zip(as_dicts(rows[:60]), rows, strict=False):
                one.learn_one(x if how == "dicts" else row)
        np.testing.assert_array_equal(other.components_, again.components_)
        assert other.n_examples_ == again.n_examples_


def test_a_state_that_does_not_fit_is_refused() -> None:
    model = model_of().fit(draw(60)[0])
    config, arrays = model.to_state()
    m = model.n_factors_
    assert m > 0
    for change in (
        State({**config, "n_found": m + 1}, arrays),
        State({**config, "n_rows": 61}, arrays),
        State({**config, "spread": math.inf}, arrays),
        State(config, {**arrays, "factors.probabilities": np.ones(m)}),
        State(config, {**arrays, "factors.noise": np.zeros(1)}),
        State(config, {**arrays, "sums.weight": np.zeros(1)}),
        State(config, {**arrays, "sums.pairs": np.zeros((m, m + 1))}),
        State(config, {**arrays, "sums.bits": np.full(m, np.inf)}),
    ):
        with pytest.raises(ModelFileError):
            BinaryFactorAnalysis.from_state(change)


def test_a_picture_of_bits() -> None:
    random = np.random.default_rng(0)
    rows = (random.random((80, 2)) < 0.5) @ np.array([[3.0, 1.0], [-1.0, 2.0]]) + 0.2 * random.normal(size=(80, 2))
    model = model_of(n_factors=3).fit(rows)
    (axes,) = model.plot(rows).axes
    assert len(axes.texts) == 2 * model.n_factors_
    marks = np.column_stack(axes.lines[0].get_data())
    np.testing.assert_allclose(marks, model.inverse_transform(np.unique(model.predict(rows), axis=0)))
    wide = draw(20)[0]
    (axes,) = model_of().fit(wide).plot(wide, (5, 1)).axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x5", "x1")
    with pytest.raises(InvalidFeatures, match="needs two inputs; this BinaryFactorAnalysis has 1"):
        model_of().fit(wide[:, :1]).plot(wide[:, :1])
