"""Models of sparse and hashed rows as values: weights add up one by one, in whatever units their numbers were told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.sparse

from bayou import (
    FlipProbit,
    Gaussian,
    Hashing,
    Logistic,
    Member,
    MomentMatching,
    OnlineClassifier,
    OnlineCounter,
    OnlineRegressor,
    Poisson,
    Probit,
    Softmax,
    SparseBank,
    SparseDiagonalGaussian,
    SparseLearner,
    TableEncoder,
    TableModel,
    load,
    merge,
    save,
    subtract,
)
from bayou.distributed import InProcess, fit
from bayou.errors import ImproperBelief, InvalidSpec
from tests.distributed.test_hashed_shards import made

RNG = np.random.default_rng(0)
ROWS = scipy.sparse.random_array((1200, 30), density=0.1, rng=RNG, format="csr")
SIGNS = np.where(ROWS @ RNG.normal(size=30) + 0.1 * RNG.normal(size=1200) > 0.0, 1.0, -1.0)
PARTS = [slice(0, 500), slice(500, 1200)]
TABLE = made(3000).drop("count")
HALVES = [TABLE[:1400], TABLE[1400:]]
HASHING = Hashing(bits=12)


def learner(rows: Any, targets: Any, likelihood: Any = None, **options: Any) -> SparseLearner:
    posterior = SparseDiagonalGaussian(0.5, dtype="float64")
    one = SparseLearner(likelihood or Probit(), posterior, MomentMatching(), n_features=31, constant=1.0)
    one.learn_many(rows, targets, **options)
    return one


def by_hand(parts: list[Any], prior: float) -> tuple[Any, Any]:
    """Mean and variance of the product of the parts over the prior, by precisions in plain numpy."""
    precision = sum(1.0 / part.variance.astype(float) - 1.0 / prior for part in parts) + 1.0 / prior
    shift = sum(part.mean.astype(float) / part.variance for part in parts)
    return shift / precision, 1.0 / precision


@pytest.mark.parametrize("likelihood", [Probit(), Softmax(3)])
def test_learners_are_merged_and_taken_apart(likelihood: Any) -> None:
    targets = SIGNS if isinstance(likelihood, Probit) else np.arange(1200) % 3.0
    one, other = (learner(ROWS[part], targets[part], likelihood) for part in PARTS)
    both = merge(one, other)
    for mine, first, second in zip(both.beliefs(), one.beliefs(), other.beliefs(), strict=True):
        mean, variance = by_hand([first, second], 0.5)
        np.testing.assert_allclose(mine.mean, mean, rtol=1e-12)
        np.testing.assert_allclose(mine.variance, variance, rtol=1e-12)
    assert both.n_examples == 1200
    assert both.log_evidence == pytest.approx(one.log_evidence + other.log_evidence)
    rest = subtract(both, other)
    np.testing.assert_allclose(rest.belief.weights, one.belief.weights, rtol=1e-9, atol=1e-12)
    assert rest.n_examples == 500
    with pytest.raises(ImproperBelief, match="no more rows than the whole, 500; got 700"):
        subtract(one, other)


def bank(part: slice, *members: Member, **options: Any) -> SparseBank:
    made_bank = SparseBank(members, 31, 1.0, **options)
    made_bank.learn_many(ROWS[part], SIGNS[part])
    return made_bank


def test_banks_merge_member_by_member_unless_one_drifts() -> None:
    members = [Member(Probit()), Member(FlipProbit(0.1), prior_variance=0.3)]
    parts = [bank(part, *members, switching=(0.0,)) for part in PARTS]
    alone = [[bank(part, member, switching=(0.0,)) for part in PARTS] for member in members]
    both = merge(*parts)
    for m, member in enumerate(members):
        mean, variance = by_hand([one.weights_told() for one in alone[m]], float(member.prior_variance))
        np.testing.assert_allclose(both.belief.weights[:, 0, m], mean, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(both.belief.weights[:, 1, m], variance, rtol=1e-5)
    evidence = np.array([sum(one.log_evidence for one in each) for each in alone])
    shares = np.exp(evidence - evidence.max())
    np.testing.assert_allclose(both.weights, shares / shares.sum(), rtol=1e-6)
    assert both.log_evidence == pytest.approx(np.log(np.exp(evidence - evidence.max()).mean()) + evidence.max())
    rest = subtract(both, parts[1])
    np.testing.assert_allclose(rest.belief.weights, parts[0].belief.weights, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(rest.weights, parts[0].weights, rtol=1e-6)
    both.learn_many(ROWS[:10], SIGNS[:10])
    assert both.n_examples == 1210
    timely = [bank(part, Member(Probit()), Member(Probit(), drift=1e-3)) for part in PARTS]
    for combine in (merge, subtract):
        with pytest.raises(InvalidSpec, match=r"drift=0.001.* drifts.*Chain the shards in time"):
            combine(*timely[::-1])


def hashed(part: pl.DataFrame, **options: Any) -> OnlineClassifier:
    model = OnlineClassifier(encoder=HASHING, **options)
    return model.partial_fit(part.drop("late"), part["late"].to_numpy())


def test_models_in_a_frame_in_common_add_up_as_their_beliefs_do() -> None:
    """Of `fit`, whose frame is that of the same rows; and back again."""
    one, other = (fit(OnlineClassifier(encoder=HASHING), [TABLE], "late", InProcess()).model for _ in range(2))
    both = merge(one, other)
    prior = one._learner_.posterior.prior_variance
    mean, variance = by_hand([one._learner_.belief, other._learner_.belief], prior)
    np.testing.assert_allclose(both._learner_.belief.mean, mean, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(both._learner_.belief.variance, variance, rtol=1e-5)
    for name in ("centre", "deviation"):
        np.testing.assert_array_equal(getattr(both._inputs._frame, name), getattr(one._inputs._frame, name))
    assert both._inputs._frame.weight[0] == 6000
    rest = subtract(both, other)
    np.testing.assert_allclose(rest._learner_.belief.mean, one._learner_.belief.mean, rtol=1e-4, atol=1e-5)
    assert (rest.n_examples_, rest._inputs._frame.weight[0]) == (3000, 3000)


def test_models_in_other_frames_say_nearly_what_one_of_all_rows_says() -> None:
    moved = [HALVES[0], HALVES[1].with_columns(pl.col("x") + 40.0)]  # whose target still goes by the old x
    parts = [hashed(part) for part in moved]
    both = merge(*parts)
    frame, values = both._inputs._frame, pl.concat(moved)["x"].to_numpy()
    np.testing.assert_allclose([frame.mean[0], frame.deviation[0]], [values.mean(), values.std()], rtol=1e-9)
    assert parts[0]._inputs._frame.centre[0] < frame.centre[0] - 10.0  # they were told in units of their own
    alone = [hashed(part) for part in HALVES]
    column = both._inputs.encoder.encode_one(both._inputs.names, {}, {"x": 1.0}, learn=False)[0][0]
    slopes = [
        float(model._learner_.belief.mean[column]) / model._inputs._frame.deviation[0] for model in (both, *alone)
    ]
    assert min(slopes[1:]) - 0.03 < slopes[0] < max(slopes[1:]) + 0.03  # what x tells is known per unit of x
    same = merge(*alone)
    single = hashed(TABLE)
    given = [model.predict_proba(TABLE.drop("late"))[:, 1] for model in (same, single)]
    assert np.abs(given[0] - given[1]).mean() < 0.05
    assert same.n_examples_ == 3000
    assert "a=v7" in same._inputs.names_of(same._inputs.encoder.encode_one(same._inputs.names, {"a": "v7"})[0])
    same.partial_fit(TABLE[:50].drop("late"), TABLE["late"].to_numpy()[:50])
    assert same.n_examples_ == 3050


def test_classes_in_another_order_numbers_of_one_part_and_dicts() -> None:
    kinds = np.where(TABLE["late"].to_numpy(), "late", "early")
    begins = 1400 + int(np.argmax(kinds[1400:] != kinds[0]))  # with the class that came second
    order = [begins, *(row for row in range(1400, 3000) if row != begins)]
    rows = TABLE.drop("late")
    first = OnlineClassifier(encoder=HASHING).partial_fit(rows[:1400], kinds[:1400])
    second = OnlineClassifier(encoder=HASHING)
    for row, kind in zip(rows[order].drop("x").iter_rows(named=True), kinds[order], strict=True):
        second.learn_one(row, kind)
    assert list(first._codes) == list(second._codes)[::-1]
    both = merge(first, second)
    assert list(both._inputs._numbers) == ["x"]
    assert both.score(rows, kinds) > max(0.6, first.score(rows, kinds) - 0.01)
    with pytest.raises(ImproperBelief, match="'x' was never learnt"):
        subtract(second, OnlineClassifier(encoder=HASHING).partial_fit(rows[:20], kinds[:20]))


def test_counts_numbers_and_sparse_matrices() -> None:
    counts, sizes = np.random.default_rng(1).poisson(1.0, 1200), ROWS @ np.ones(30)
    wide = scipy.sparse.hstack([ROWS, scipy.sparse.csr_array((1200, 2000))]).tocsr()
    kinds: list[tuple[Callable[[], Any], Any, Any]] = [
        (lambda: OnlineCounter(likelihood=Poisson()), wide, counts),
        (lambda: OnlineRegressor(likelihood=Gaussian(0.1), posterior=SparseDiagonalGaussian()), wide, sizes),
        (lambda: OnlineClassifier(likelihood=Logistic()), ROWS, SIGNS),  # so few columns that all correlations are kept
    ]
    for new, rows, targets in kinds:
        one, other = (new().partial_fit(rows[part], targets[part]) for part in PARTS)
        both, single = merge(one, other), new().partial_fit(rows, targets)
        assert np.mean(np.abs(both.predict(rows) - single.predict(rows))) < 0.1
        rest = subtract(both, other)
        np.testing.assert_allclose(rest.coef_, one.coef_, atol=1e-3)
        again = both.partial_fit(rows[:50], targets[:50])
        assert (again.n_examples_, again._given_sparse) == (1250, True)


def test_tables_of_hashed_rows_and_their_files(tmp_path: Any) -> None:
    encoder = TableEncoder(hashed=True)
    for place, part in enumerate([TABLE, *HALVES]):
        save(fit(TableModel("late", encoder=encoder, bits=12), [part], engine=InProcess()).model, tmp_path / str(place))
    whole, one, other = (load(tmp_path / str(place)) for place in range(3))
    both = merge(one, other)
    assert both.n_rows == 3000
    told = [model.predict_table(TABLE)["probability_True"].to_numpy() for model in (both, whole)]
    assert np.abs(told[0] - told[1]).mean() < 0.05
    save(both, tmp_path / "both")
    rest = subtract(load(tmp_path / "both"), other)
    assert rest.n_rows == 1400
    told = [model.predict_table(TABLE)["probability_True"].to_numpy() for model in (rest, one, both)]
    assert np.abs(told[0] - told[1]).mean() < 0.003 < 0.1 * np.abs(told[0] - told[2]).mean()


def streamed(hashed: bool) -> TableModel:
    model = TableModel("late", encoder=TableEncoder(hashed=hashed), bits=12)
    model.learn_many(TABLE[:100].select("x", "late"))
    return model


# Made when a test asks for them: what learns compiles, and tests are collected by every process.
STRANGERS: list[tuple[Callable[[], tuple[Any, ...]], str]] = [
    (lambda: (learner(ROWS, SIGNS), learner(ROWS, SIGNS, Logistic())), "same likelihood"),
    (
        lambda: (hashed(TABLE[:50]), hashed(TABLE[:50].with_columns(x=pl.col("a")))),
        "'x' must be of one kind in all models; got numbers and other values",
    ),
    (
        lambda: tuple(OnlineRegressor(encoder=HASHING).partial_fit(TABLE.drop("late")[:50], range(50)) for _ in "ab"),
        "noise must be told",
    ),
    (lambda: (streamed(hashed=True),) * 2, r"drifts.*Chain.*`bayou learn --workers`"),
    (lambda: (streamed(hashed=False),) * 2, r"drifts.*Chain.*`bayou learn --workers`"),
    (
        lambda: tuple(
            OnlineClassifier(likelihood=Logistic()).partial_fit(rows, SIGNS) for rows in (ROWS, ROWS.toarray())
        ),
        "same kind of rows, 'sparse'; got 'in full'",
    ),
]


@pytest.mark.parametrize(("models", "words"), STRANGERS)
def test_models_that_do_not_belong_together_are_refused(models: Callable[[], tuple[Any, ...]], words: str) -> None:
    with pytest.raises(InvalidSpec, match=words):
        merge(*models())
