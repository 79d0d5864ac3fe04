"""Models as values: what two know together, what one knows without another, and which do not belong together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

from bayou import (
    Bank,
    BayesianCCA,
    DiagonalGaussian,
    FullGaussian,
    Gaussian,
    Learner,
    Linearized,
    Logistic,
    LowRankGaussian,
    Member,
    MomentMatching,
    NormalInverseGamma,
    OnlineClassifier,
    OnlineCounter,
    OnlineRegressor,
    Poisson,
    Probit,
    TableEncoder,
    TableModel,
    merge,
    subtract,
)
from bayou.distributed import InProcess, fit
from bayou.distributed.naturals import check_family
from bayou.errors import ImproperBelief, InvalidSpec
from tests.distributed import made

X = made.rows()
NUMBERS, LABELS, COUNTS = made.numbers(X), made.labels(X), made.counts(X)
THIRDS = [slice(0, 1000), slice(1000, 2000), slice(2000, 3000)]


def regressor() -> OnlineRegressor:
    return OnlineRegressor(posterior=FullGaussian(50.0), likelihood=Gaussian(4.0))


def learnt_noise() -> OnlineRegressor:
    return OnlineRegressor(posterior=NormalInverseGamma(10.0))


def classifier() -> OnlineClassifier:
    return OnlineClassifier(likelihood=Logistic())


def learner(rows: Any, targets: Any, likelihood: Any = None) -> Learner:
    one = Learner(likelihood or Gaussian(4.0), FullGaussian(50.0), MomentMatching(), rows.shape[1])
    one.learn_many(rows, targets)
    return one


def test_learners_are_merged_and_taken_apart_exactly() -> None:
    parts = [learner(X[third], NUMBERS[third]) for third in THIRDS]
    whole, both = learner(X, NUMBERS), merge(*parts)
    np.testing.assert_allclose(both.belief.mean, whole.belief.mean, rtol=1e-10)
    np.testing.assert_allclose(
        both.posterior.covariance(both.belief), whole.posterior.covariance(whole.belief), rtol=1e-9, atol=1e-14
    )
    assert both.log_evidence == pytest.approx(whole.log_evidence, rel=1e-11)
    assert both.n_examples == whole.n_examples == len(X)
    rest = subtract(whole, merge(*parts[1:]))
    np.testing.assert_allclose(rest.belief.mean, parts[0].belief.mean, rtol=1e-8)
    assert rest.log_evidence == pytest.approx(parts[0].log_evidence, rel=1e-9)
    assert rest.n_examples == 1000


@pytest.mark.parametrize(("make", "targets"), [(regressor, NUMBERS), (learnt_noise, NUMBERS)])
def test_estimators_in_other_frames_are_merged_as_if_one_had_learnt_all(make: Any, targets: Any) -> None:
    """Parts of one frame and parts that found their own differ by what their priors are worth, which is little."""
    shifted = X.copy()
    shifted[:, 2] = np.repeat([-1.0, 0.5, 4.0], 1000)  # stands still in every part, elsewhere in each
    moved = targets + 2.0 * shifted[:, 2]
    parts = [make().partial_fit(shifted[third], moved[third]) for third in THIRDS]
    assert len({tuple(part._frame.centre) for part in parts}) == 3
    both = merge(*parts)
    exact = fit(make(), (shifted, moved), engine=InProcess(), shards=2).model
    deviations = exact.summary().deviation
    assert np.abs(both.coef_ - exact.coef_).max() < 0.15 * deviations.max()
    assert both.coef_[2] == pytest.approx(2.0, abs=4.0 * deviations[2])
    np.testing.assert_allclose(both.summary().deviation, deviations, rtol=0.02)
    np.testing.assert_allclose(both.predict(shifted), exact.predict(shifted), atol=0.05)
    np.testing.assert_allclose(both._frame.mean, shifted.mean(axis=0), rtol=1e-10)
    assert both.n_examples_ == 3000
    rest = subtract(both, parts[2])
    np.testing.assert_allclose(rest.predict(shifted[:2000]), merge(*parts[:2]).predict(shifted[:2000]), atol=0.02)
    both.partial_fit(shifted, moved)
    assert both.n_examples_ == 6000


def as_streamed(rows: Any) -> Any:
    """Rows as a stream tells them: before a column has varied, it is told at the centre that it is then given."""
    told = rows.copy()
    for j in range(rows.shape[1]):
        first = int(np.argmax(rows[:, j] != rows[0, j]))
        told[:first, j] = rows[: first + 1, j].mean()
    return told


def test_collinear_columns_are_surer_in_streams_by_the_rows_before_they_varied() -> None:
    """Categories that add up to one leave a direction to the prior, but for the first rows of each stream.

    Merging is exact: what it adds up is what the normal equations of rows as they were told give.
    """
    rng = np.random.default_rng(0)
    category = rng.integers(0, 3, 2000)
    rows = np.column_stack([rng.normal(size=2000), np.eye(3)[category]])
    targets = rows @ [1.0, 0.0, 1.0, 2.0] + 0.5 * rng.normal(size=2000)
    halves = [slice(0, 1000), slice(1000, 2000)]

    def new() -> OnlineRegressor:
        return OnlineRegressor(posterior=FullGaussian(10.0), likelihood=Gaussian(0.25))

    def by_normal_equations(told: Any, model: Any) -> Any:
        frame = model._frame
        features = np.column_stack([np.ones(len(told)), (told - frame.centre) / frame.deviation])
        covariance = np.linalg.inv(np.eye(5) / 10.0 + features.T @ features / 0.25)
        return np.sqrt(np.diag(covariance))[1:] / frame.deviation

    parts = [new().partial_fit(rows[half], targets[half]) for half in halves]
    for part, half in zip(parts, halves, strict=True):
        expected = by_normal_equations(as_streamed(rows[half]), part)
        np.testing.assert_allclose(part.summary().deviation, expected, rtol=1e-8)
    both = merge(*parts)
    expected = by_normal_equations(np.vstack([as_streamed(rows[half]) for half in halves]), both)
    np.testing.assert_allclose(both.summary().deviation, expected, rtol=1e-8)
    assert both.summary().deviation[1:].max() < 0.8
    # In frames that were there before the first row nothing is left but the prior, also where these were others.
    alone = [fit(new(), (rows[half], targets[half]), engine=InProcess(), shards=2).model for half in halves]
    for model in (merge(*alone), fit(new(), (rows, targets), engine=InProcess(), shards=4).model):
        np.testing.assert_allclose(model.summary().deviation, by_normal_equations(rows, model), rtol=1e-8)
        np.testing.assert_allclose(model.summary().deviation[1:], np.sqrt(10.0 / 3.0), rtol=1e-3)


def test_a_frame_in_common_makes_merging_exact() -> None:
    whole = fit(learnt_noise(), (X, NUMBERS), engine=InProcess(), shards=4).model
    half = fit(learnt_noise(), (X, NUMBERS), engine=InProcess(), shards=1).model
    twice = merge(whole, half)
    assert twice.n_examples_ == 6000
    doubled = fit(learnt_noise(), (np.tile(X, (2, 1)), np.tile(NUMBERS, 2)), engine=InProcess(), shards=3).model
    np.testing.assert_allclose(twice._learner_.belief.mean, doubled._learner_.belief.mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(twice._learner_.belief.noise, doubled._learner_.belief.noise, rtol=1e-10)
    assert twice.log_evidence_ == pytest.approx(doubled.log_evidence_, rel=1e-10)
    once = subtract(twice, half)
    np.testing.assert_allclose(once._learner_.belief.mean, half._learner_.belief.mean, rtol=1e-8, atol=1e-11)
    np.testing.assert_allclose(once._frame.mean, half._frame.mean, rtol=1e-9)


@pytest.mark.parametrize(
    ("make", "targets"),
    [
        (classifier, LABELS),
        (lambda: OnlineClassifier(likelihood=Probit()), np.where(LABELS, "b", "a")),
        (classifier, np.digitize(NUMBERS, [4.0, 9.0])),
        (lambda: OnlineCounter(likelihood=Poisson()), COUNTS),
        (lambda: OnlineClassifier(likelihood=Logistic(), posterior=DiagonalGaussian()), LABELS),
    ],
)
def test_other_likelihoods_are_merged_nearly(make: Any, targets: Any) -> None:
    first = 1000 + int(np.argmax(targets[THIRDS[1]] != targets[0]))  # so that classes are met in another order
    order = [first, *(row for row in range(1000, 2000) if row != first)]
    second = X[order], targets[order]
    parts = [make().partial_fit(X[THIRDS[0]], targets[THIRDS[0]]), make().partial_fit(*second)]
    both = merge(*parts)
    rows, answers = X[THIRDS[2]], targets[THIRDS[2]]
    single = make().partial_fit(X[:2000], targets[:2000])
    if hasattr(both, "predict_proba"):
        gap = np.abs(both.predict_proba(rows) - single.predict_proba(rows))
        assert gap.mean() < 0.03
        assert both.score(rows, answers) > single.score(rows, answers) - 0.02
        assert both.classes_.tolist() == single.classes_.tolist()
    else:
        np.testing.assert_allclose(both.predict(rows), single.predict(rows), rtol=0.1)
    rest = subtract(both, parts[1])
    np.testing.assert_allclose(rest.coef_, parts[0].coef_, atol=0.05)


def test_dicts_are_merged_by_their_names() -> None:
    models = [regressor(), regressor()]
    for n in range(300):
        models[0].learn_one({"a": X[n, 0], "b": X[n, 1]}, NUMBERS[n])
        models[1].learn_one({"c": X[n, 2], "b": X[n + 300, 1], "a": X[n + 300, 0]}, NUMBERS[n + 300])
    both = merge(*models)
    assert sorted(both._names) == ["a", "b", "c"]
    assert both.coef_[list(both._names).index("b")] == pytest.approx(-1.0, abs=0.2)
    assert both.predict_one({"a": 0.0, "b": 5.0, "c": -1.0}) == pytest.approx(4.5, abs=1.0)
    both.learn_one({"a": 1.0}, 3.0)
    with pytest.raises(ImproperBelief, match="'c' was never learnt"):
        subtract(models[0], models[1])


def table(third: slice, cities: list[str]) -> pl.DataFrame:
    city = np.random.default_rng(third.start).choice(cities, 1000)
    size = NUMBERS[third] + 5.0 * (city == "Rome")
    return pl.DataFrame({"a": X[third, 0], "b": X[third, 1], "city": city, "size": size.round(4)})


def test_tables_are_merged_by_what_their_columns_hold() -> None:
    tables = [table(THIRDS[0], ["Oslo", "Paris"]), table(THIRDS[1], ["Rome", "Paris"])]
    fitted = [fit(TableModel("size"), [one], engine=InProcess()).model for one in tables]
    both = merge(*fitted)
    assert both.n_rows == 2000
    assert set(both.layout.names) == {"a", "b", "city=Oslo", "city=Paris", "city=Rome"}
    exact = fit(TableModel("size"), tables, engine=InProcess()).model
    for one in tables:
        told = [model.predict(one) for model in (both, exact)]
        np.testing.assert_allclose(told[0].mean, told[1].mean, atol=0.02)
        np.testing.assert_allclose(told[0].variance, told[1].variance, rtol=0.01)
    rest = subtract(both, fitted[1])
    assert rest.n_rows == 1000
    np.testing.assert_allclose(rest.predict(tables[0]).mean, fitted[0].predict(tables[0]).mean, atol=1e-3)
    with pytest.raises(ImproperBelief, match="never learnt"):
        subtract(fitted[0], fitted[1])
    both.learn_many(table(THIRDS[2], ["Lima"]))
    assert both.n_rows == 3000


def bank(rows: Any, targets: Any, *members: Member) -> Bank:
    made_bank = Bank(list(members), rows.shape[1])
    made_bank.learn_many(rows, targets)
    return made_bank


def test_banks_merge_member_by_member_unless_one_drifts() -> None:
    members = [Member(Gaussian(4.0)), Member(Gaussian(4.0), prior_variance=10.0)]
    parts = [bank(X[third], NUMBERS[third], *members) for third in THIRDS]
    whole, both = bank(X, NUMBERS, *members), merge(*parts)
    np.testing.assert_allclose(both.belief.mean, whole.belief.mean, rtol=1e-8)
    np.testing.assert_allclose(subtract(both, parts[0]).belief.mean, merge(*parts[1:]).belief.mean, rtol=1e-7)
    for wrong in (Member(Gaussian(4.0), drift=1e-3), Member(Gaussian(), noise_memory=200.0)):
        one, other = (bank(X[third], NUMBERS[third], wrong) for third in THIRDS[:2])
        for combine in (merge, subtract):
            with pytest.raises(InvalidSpec, match="in the order of time"):
                combine(one, other)


def begun(make: Any, targets: Any, n_columns: int = 4) -> Any:
    return make().partial_fit(X[:200, :n_columns], targets[:200])


def of_dicts() -> OnlineRegressor:
    model = regressor()
    model.learn_one({"a": 1.0}, 2.0)
    return model


def of_probit() -> OnlineClassifier:
    return OnlineClassifier(likelihood=Probit())


# Made when a test asks for them: what learns compiles, and tests are collected by every process.
STRANGERS: list[tuple[Callable[[], tuple[Any, ...]], str]] = [
    (lambda: (), "got none"),
    (
        lambda: (begun(regressor, NUMBERS), begun(classifier, LABELS)),
        "of one kind, OnlineRegressor; got OnlineClassifier",
    ),
    (lambda: (begun(regressor, NUMBERS), begun(learnt_noise, NUMBERS)), "same likelihood|same posterior"),
    (lambda: (begun(regressor, NUMBERS), begun(regressor, NUMBERS, 3)), "same number of columns, 4; got 3"),
    (lambda: (begun(classifier, LABELS), begun(classifier, LABELS.astype(int) + 1)), "same classes"),
    (lambda: (begun(classifier, LABELS), begun(of_probit, LABELS)), "same likelihood"),
    (lambda: (regressor(), regressor()), "must have learnt something"),
    (lambda: (begun(OnlineClassifier, LABELS), begun(OnlineClassifier, LABELS)), "in the order of time"),
    (lambda: (learner(X, NUMBERS), learner(X[:, :2], NUMBERS)), "same n_features, 4; got 2"),
    (lambda: (learner(X, NUMBERS), learner(X, NUMBERS, Gaussian(1.0))), "same likelihood"),
    (lambda: (begun(regressor, NUMBERS), of_dicts()), "same kind of rows, 'in full'; got 'dicts'"),
    (lambda: (of_dicts(), begun(regressor, NUMBERS)), "same kind of rows, 'dicts'; got 'in full'"),
    (lambda: (1, 2), "got int"),
    (lambda: (TableModel("y"), TableModel("y")), "must have learnt something"),
]


@pytest.mark.parametrize(("models", "words"), STRANGERS)
def test_models_that_do_not_belong_together_are_refused(models: Callable[[], tuple[Any, ...]], words: str) -> None:
    with pytest.raises(InvalidSpec, match=words):
        merge(*models())


def test_tables_that_do_not_belong_together_are_refused() -> None:
    first = table(THIRDS[0], ["Oslo", "Paris"])
    one = fit(TableModel("size"), [first], engine=InProcess()).model
    others = {
        "same target": fit(TableModel("size > 3"), [first], engine=InProcess()).model,
        "same encoder of tables": fit(
            TableModel("size", encoder=TableEncoder(ignore=("a",))), [first], engine=InProcess()
        ).model,
        "kinds of columns": fit(TableModel("size"), [first.rename({"a": "x"})], engine=InProcess()).model,
    }
    for words, other in others.items():
        with pytest.raises(InvalidSpec, match=words):
            merge(one, other)


def test_families_that_do_not_add_up_are_refused() -> None:
    with pytest.raises(InvalidSpec, match="adds up exactly: FullGaussian"):
        check_family(LowRankGaussian(2))


def test_what_was_never_learnt_cannot_be_taken_away() -> None:
    small, large = learner(X[:100], NUMBERS[:100]), learner(X, NUMBERS)
    with pytest.raises(ImproperBelief, match="no more rows than the whole, 100; got 3,000"):
        subtract(small, large)
    foreign = learner(50.0 * X[:100], NUMBERS[:100])
    before = large.belief.mean.copy()
    with pytest.raises(ImproperBelief, match="never learnt"):
        subtract(learner(X[:100], NUMBERS[:100]), foreign)
    np.testing.assert_array_equal(large.belief.mean, before)


def test_rules_must_be_the_same() -> None:
    other = Learner(Gaussian(4.0), FullGaussian(50.0), Linearized(), 4)
    with pytest.raises(InvalidSpec, match="same rule"):
        merge(learner(X, NUMBERS), other)


def test_two_views_are_merged_exactly() -> None:
    views = np.column_stack([NUMBERS, X[:, 0] + NUMBERS])
    whole = BayesianCCA().fit(X, views)
    parts = [BayesianCCA().fit(X[third], views[third]) for third in THIRDS]
    both = merge(*parts)
    assert both.n_examples_ == 3000
    np.testing.assert_allclose(both.correlations_, whole.correlations_, rtol=1e-10)
    rest = subtract(both, parts[0])
    np.testing.assert_allclose(rest.correlations_, BayesianCCA().fit(X[1000:], views[1000:]).correlations_, rtol=1e-8)
    np.testing.assert_allclose(rest.x_mean_, X[1000:].mean(axis=0), rtol=1e-10)
    with pytest.raises(InvalidSpec, match="columns of both views"):
        merge(whole, BayesianCCA().fit(X[:, :3], views))
    with pytest.raises(InvalidSpec, match="forgets"):
        merge(*(BayesianCCA(half_life=50.0).fit(X[third], views[third]) for third in THIRDS))
    with pytest.raises(ImproperBelief, match="nothing would be left"):
        subtract(whole, whole)
    with pytest.raises(ImproperBelief, match="never learnt"):
        subtract(whole, BayesianCCA().fit(9.0 * X[:2000], views[:2000]))
