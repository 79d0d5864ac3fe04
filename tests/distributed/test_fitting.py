"""Learning in shards: exact where it says so, refined where it is not, whatever the source."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, gammaln

from bayou import (
    DiagonalGaussian,
    FullGaussian,
    Gaussian,
    Logistic,
    NormalInverseGamma,
    OnlineClassifier,
    OnlineCounter,
    OnlineRegressor,
    Poisson,
    Probit,
    Softmax,
    SphericalGaussian,
    TableEncoder,
    TableModel,
    load,
    save,
)
from bayou.distributed import Fitted, InProcess, Progress, Reading, fit, shards_of
from bayou.errors import InvalidFeatures, InvalidSpec, InvalidTarget, StreamError
from tests.distributed import made

X = made.rows()
NUMBERS, LABELS, COUNTS = made.numbers(X), made.labels(X), made.counts(X)
REGRESSOR = OnlineRegressor(posterior=FullGaussian(50.0), likelihood=Gaussian(4.0))
LEARNT_NOISE = OnlineRegressor(posterior=NormalInverseGamma(10.0))
CLASSIFIER = OnlineClassifier(likelihood=Logistic())


def here(estimator: Any, source: Any, **options: Any) -> Fitted:
    return fit(estimator, source, engine=InProcess(), **options)


def standardised(rows: Any) -> Any:
    """An intercept, and columns of mean 0 and deviation 1."""
    return np.column_stack([np.ones(len(rows)), (rows - rows.mean(axis=0)) / rows.std(axis=0)])


def test_a_gaussian_is_that_of_the_normal_equations() -> None:
    features = standardised(X)
    precision = np.eye(5) / 50.0 + features.T @ features / 4.0
    mean = np.linalg.solve(precision, features.T @ NUMBERS / 4.0)
    fitted = here(REGRESSOR, (X, NUMBERS), shards=7)
    learner = fitted.model._learner_
    np.testing.assert_allclose(learner.belief.mean, mean, rtol=1e-11)
    covariance = learner.posterior.covariance(learner.belief)
    np.testing.assert_allclose(covariance, np.linalg.inv(precision), rtol=1e-10, atol=1e-14)
    spread = features @ (50.0 * np.eye(5)) @ features.T + 4.0 * np.eye(len(X))
    _, log_determinant = np.linalg.slogdet(2.0 * np.pi * spread)
    evidence = -0.5 * (log_determinant + NUMBERS @ np.linalg.solve(spread, NUMBERS))
    assert fitted.model.log_evidence_ == pytest.approx(evidence, rel=1e-10)
    assert fitted.exact
    assert fitted.settled
    assert len(fitted.rounds) == 1
    assert fitted.rows == fitted.model.n_examples_ == len(X)


def test_learnt_noise_is_that_of_the_normal_equations() -> None:
    features, location, scale = standardised(X), NUMBERS.mean(), NUMBERS.std()
    y = (NUMBERS - location) / scale
    precision = np.eye(5) / 10.0 + features.T @ features
    mean = np.linalg.solve(precision, features.T @ y)
    shape, rate = 0.5 + 0.5 * len(y), 0.5 + 0.5 * (y @ y - mean @ precision @ mean)
    fitted = here(LEARNT_NOISE, (X, NUMBERS), shards=5)
    belief = fitted.model._learner_.belief
    np.testing.assert_allclose(belief.mean, mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(belief.noise, [shape, rate], rtol=1e-11)
    evidence = (
        gammaln(shape) - gammaln(0.5) + 0.5 * np.log(0.5) - shape * np.log(rate) - 0.5 * len(y) * np.log(2.0 * np.pi)
    )
    evidence += 0.5 * (np.linalg.slogdet(np.eye(5) / 10.0)[1] - np.linalg.slogdet(precision)[1])
    assert fitted.model.log_evidence_ == pytest.approx(evidence - len(y) * np.log(scale), rel=1e-10)


@settings(max_examples=15)
@given(st.lists(st.integers(min_value=1, max_value=len(X) - 1), max_size=6, unique=True))
def test_any_partition_gives_the_same_gaussian(places: list[int]) -> None:
    whole = here(REGRESSOR, (X, NUMBERS), shards=1).model._learner_
    parts = here(REGRESSOR, made.cut(X, NUMBERS, sorted(places))).model._learner_
    deviations = np.sqrt(whole.posterior.variances(whole.belief))
    assert np.abs(whole.belief.mean - parts.belief.mean).max() / deviations.min() < 1e-10
    np.testing.assert_allclose(
        whole.posterior.covariance(whole.belief), parts.posterior.covariance(parts.belief), rtol=1e-10, atol=1e-15
    )


def test_weights_count_as_rows_do() -> None:
    weights = np.random.default_rng(0).integers(0, 4, len(X)).astype(float)
    repeated = np.repeat(np.arange(len(X)), weights.astype(int))
    one = here(REGRESSOR, (X, NUMBERS, weights), shards=3).model
    other = here(REGRESSOR, (X[repeated], NUMBERS[repeated]), shards=4).model
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-9)


def most_probable(loss: Any, n: int) -> tuple[Any, Any]:
    """By a batch optimiser: weights, and their deviations by the curvature there."""
    found = minimize(loss, np.zeros(n), method="BFGS", options={"gtol": 1e-6})
    step = 1e-4
    curvature = np.array(
        [
            [
                sum(s * t * loss(found.x + step * (s * a + t * b)) for s, t in itertools.product((-1, 1), repeat=2))
                for b in np.eye(n)
            ]
            for a in np.eye(n)
        ]
    ) / (4.0 * step**2)
    return found.x, np.sqrt(np.diag(np.linalg.inv(curvature)))


@pytest.mark.parametrize("kind", ["logistic", "probit", "poisson"])
def test_rounds_lead_to_the_batch_solution(kind: str) -> None:
    """A belief that is nearly Gaussian has its mean near the most probable weights."""
    features, signs = standardised(X), np.where(LABELS, 1.0, -1.0)
    if kind == "poisson":
        features[:, 0] = 6.0  # the intercept's feature
        estimator, targets, prior = OnlineCounter(likelihood=Poisson()), COUNTS, 0.25

        def loss(w: Any) -> float:
            latent = features @ w
            return float(np.sum(np.exp(latent) - COUNTS * latent) + 0.5 * w @ w / prior)
    else:
        features[:, 0] = 3.0
        prior = 1.0
        likelihood = Logistic() if kind == "logistic" else Probit()
        estimator, targets = OnlineClassifier(likelihood=likelihood), LABELS

        def loss(w: Any) -> float:
            margins = signs * (features @ w)
            from scipy.stats import norm

            logs = np.log(expit(margins)) if kind == "logistic" else norm.logcdf(margins)
            return float(-logs.sum() + 0.5 * w @ w / prior)

    mode, deviations = most_probable(loss, 5)
    fitted = here(estimator, (X, targets), shards=6, rounds=6, tolerance=0.01)
    learner = fitted.model._learner_
    spread = np.sqrt(learner.posterior.variances(learner.belief))
    off = np.abs(learner.belief.mean - mode) / deviations
    assert off.max() < 0.25
    np.testing.assert_allclose(spread, deviations, rtol=0.05)
    first = fitted.one_pass._learner_
    assert np.abs(first.belief.mean - mode).max() / deviations.min() > off.max()
    assert not fitted.exact
    assert fitted.settled
    assert fitted.rounds[0].moved is None
    moves = [one.moved.mean for one in fitted.rounds[1:] if one.moved is not None]
    assert moves[-1] <= 0.01 < moves[0]
    assert fitted.refined is not None
    assert fitted.refined.mean > 0.0


@pytest.mark.parametrize("likelihood", [Logistic(), Probit()])
def test_three_rounds_are_as_good_as_one_pass_over_all_rows(likelihood: Any) -> None:
    many = made.rows(12_000, seed=5)
    y, held_out = made.labels(many, seed=6), made.rows(4000, seed=7)
    of_held_out = made.labels(held_out, seed=8)
    losses, spreads = [], []
    for shards in (1, 8):
        model = here(OnlineClassifier(likelihood=likelihood), (many, y), shards=shards, rounds=1 if shards == 1 else 3)
        given = model.model.predict_proba(held_out)[np.arange(4000), of_held_out.astype(int)]
        losses.append(-np.log(given).mean())
        learner = model.model._learner_
        spreads.append(np.sqrt(learner.posterior.variances(learner.belief)))
    assert losses[1] < 1.001 * losses[0]
    np.testing.assert_allclose(spreads[1], spreads[0], rtol=0.05)


def test_shards_that_do_not_agree_are_told() -> None:
    turned = np.concatenate([LABELS[:1500], ~LABELS[1500:]])
    told = [str(here(CLASSIFIER, (X, y), shards=2)) for y in (LABELS, turned)]
    assert "shards do not agree" in told[1]
    assert "shards do not agree" not in told[0]


@pytest.mark.parametrize("posterior", [DiagonalGaussian(), SphericalGaussian()])
def test_beliefs_without_correlations_learn_in_shards(posterior: Any) -> None:
    fitted = here(OnlineClassifier(likelihood=Logistic(), posterior=posterior), (X, LABELS), shards=4)
    assert not fitted.exact
    assert fitted.model.score(X, LABELS) > CLASSIFIER.fit(X, LABELS).score(X, LABELS) - 0.02


def test_three_classes() -> None:
    kinds = np.digitize(NUMBERS, [4.0, 9.0])
    fitted = here(CLASSIFIER, (X, kinds), shards=4)
    assert isinstance(fitted.model._learner_.likelihood, Softmax)
    single = OnlineClassifier(likelihood=Logistic()).partial_fit(X, kinds)
    np.testing.assert_allclose(fitted.model.predict_proba(X), single.predict_proba(X), atol=0.06)


def test_missing_values_are_refined() -> None:
    holes = X.copy()
    holes[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    fitted = here(REGRESSOR, (holes, NUMBERS), shards=4)
    assert not fitted.exact
    assert len(fitted.rounds) > 1
    single = OnlineRegressor(posterior=FullGaussian(50.0), likelihood=Gaussian(4.0)).partial_fit(holes, NUMBERS)
    np.testing.assert_allclose(fitted.model.coef_, single.coef_, atol=0.1)


def test_it_goes_on_learning() -> None:
    fitted = here(CLASSIFIER, (X, LABELS), shards=3).model
    before = fitted.coef_.copy()
    fitted.partial_fit(X[:500], LABELS[:500])
    assert fitted.n_examples_ == len(X) + 500
    assert np.abs(fitted.coef_ - before).max() < 0.2


# --- sources


def table() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    city = rng.choice(["Oslo", "Paris", "Rome"], len(X))
    late = LABELS | (city == "Rome")
    return pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "city": city, "late": late, "size": NUMBERS.round(3)})


def test_files_tables_and_streams_are_one(tmp_path: Path) -> None:
    whole = table()
    parts = [whole[start : start + 1000] for start in range(0, 3000, 1000)]
    parts[0] = parts[0].filter(pl.col("city") != "Rome")  # whose first flight is in the second file
    for number, part in enumerate(parts):
        part.write_parquet(tmp_path / f"part-{number}.parquet")
        part.write_csv(tmp_path / f"part-{number}.csv")
    model = TableModel("late", encoder=TableEncoder(ignore=("size",)))
    streams = [part.to_arrow().to_reader() for part in parts]
    sources = [str(tmp_path / "part-*.parquet"), sorted(tmp_path.glob("*.csv")), parts, streams]
    fitted = [here(model, source) for source in sources]
    for one in fitted:
        assert one.n_shards == 3
        assert one.model.layout.names == ["a", "b", "city=Oslo", "city=Paris", "city=Rome"] or set(
            one.model.layout.names
        ) == {"a", "b", "city=Oslo", "city=Paris", "city=Rome"}
        assert made.belief_bytes(one.model.estimator) == made.belief_bytes(fitted[0].model.estimator)
    save(fitted[0].model, tmp_path / "model.bayou")
    again = load(tmp_path / "model.bayou")
    told = again.predict_table(whole)
    assert (told["prediction"] == whole["late"]).mean() > 0.75
    again.learn_many(whole)
    assert again.n_rows == sum(map(len, parts)) + len(whole)


def test_a_file_without_a_line_of_names(tmp_path: Path) -> None:
    table().drop("late").write_csv(tmp_path / "bare.csv", include_header=False)
    fitted = here(TableModel("size"), tmp_path / "bare.csv", reading=Reading(names=("a", "b", "city", "size")))
    assert fitted.model.task == "regression"
    assert fitted.rows == len(X)


def test_parts_of_a_parquet_file_and_groups_of_files(tmp_path: Path) -> None:
    table().write_parquet(tmp_path / "all.parquet", row_group_size=700)
    assert [len(list(shards_of(tmp_path / "all.parquet", n))) for n in (1, 3)] == [1, 3]
    read = [pl.concat(list(shard.chunks())) for shard in shards_of(tmp_path / "all.parquet", 3)]
    assert pl.concat(read).equals(table())
    for number in range(5):
        table()[600 * number : 600 * number + 600].write_parquet(tmp_path / f"part-{number}.parquet")
    grouped = shards_of(str(tmp_path / "part-*"), 2)
    assert [sum(len(chunk) for chunk in shard.chunks()) for shard in grouped] == [1200, 1800]


def test_plain_estimators_learn_a_column_of_numbers() -> None:
    numbers = table().select("a", "b", "size")
    fitted = here(LEARNT_NOISE, [numbers[:1000], numbers[1000:]], target="size")
    assert fitted.model.feature_names_in_.tolist() == ["a", "b"]
    np.testing.assert_allclose(fitted.model.predict(numbers.to_pandas()[["a", "b"]])[:3].std(), 2.0, atol=3.0)
    rows = (numbers.select("a", "b").to_numpy(), numbers["size"].to_numpy())
    np.testing.assert_allclose(fitted.model.coef_, here(LEARNT_NOISE, rows, shards=3).model.coef_, rtol=1e-9)


def test_rare_values_beyond_the_columns_there_are_share_buckets() -> None:
    rng = np.random.default_rng(0)
    codes = np.concatenate([rng.integers(0, 100, 1500), rng.integers(60, 180, 1500)])
    rows = pl.DataFrame({"code": [f"c{code}" for code in codes], "y": (codes % 7) + rng.normal(size=3000)})
    fitted = here(TableModel("y"), [rows[:1500], rows[1500:]])
    layout = fitted.model.layout
    assert len(layout.categories["code"]) == 128
    assert layout.buckets["code"] == 128
    encoded = layout.encode(rows)
    moments = fitted.model.estimator._frame
    np.testing.assert_allclose(moments.mean, encoded.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(moments.squares, ((encoded - encoded.mean(axis=0)) ** 2).sum(axis=0), atol=1e-9)
    own = np.abs(fitted.model.predict(rows).mean - codes % 7)
    assert own[codes < 100].mean() < 0.5


def test_progress_is_told() -> None:
    told: list[Progress] = []
    here(CLASSIFIER, (X, LABELS), shards=3, rounds=2, progress=told.append)
    assert [one.done for one in told] == [1, 2, 3] * 3
    assert [one.rows for one in told[3:6]] == [1000, 2000, 3000]
    assert told[-1].bytes_moved > told[3].bytes_moved > 0
    assert "3/3 shards" in str(told[-1])
    assert "rows/s" in str(told[-1])
    assert "MB moved" in str(told[-1])


# --- what is refused


@pytest.mark.parametrize(
    ("estimator", "source", "options", "kind", "words"),
    [
        (OnlineClassifier(), (X, LABELS), {}, InvalidSpec, "in the order of time"),
        (OnlineRegressor(), (X, NUMBERS), {}, InvalidSpec, r"NormalInverseGamma\(10.0\)"),
        (
            OnlineClassifier(posterior="auto", likelihood=Logistic()),
            (X, np.zeros(3000)),
            {},
            InvalidTarget,
            "two class",
        ),
        (CLASSIFIER, (X, LABELS[:-1]), {}, InvalidSpec, "one target"),
        (CLASSIFIER, (X,), {}, InvalidSpec, "1 arrays"),
        (CLASSIFIER, 7, {}, InvalidSpec, "`source`"),
        (CLASSIFIER, (X, LABELS), {"rounds": 0}, InvalidSpec, "`rounds`"),
        (CLASSIFIER, (X, LABELS), {"tolerance": -1.0}, InvalidSpec, "`tolerance`"),
        (CLASSIFIER, (X, LABELS), {"shards": 0}, InvalidSpec, "`shards`"),
        (CLASSIFIER, [table(), table()], {}, InvalidSpec, "`target`"),
        (CLASSIFIER, [table(), table()], {"target": "lat"}, StreamError, "did you mean 'late'"),
        (CLASSIFIER, [table(), table()], {"target": "late"}, InvalidFeatures, "TableModel"),
        (CLASSIFIER, "nothing/at/all-*.parquet", {}, StreamError, "nothing/at/all"),
        (TableModel("late"), [table()], {"target": "size"}, InvalidSpec, "a TableModel has a target"),
        (CLASSIFIER, (X, LABELS), {"learner": REGRESSOR}, InvalidSpec, "`learner`"),
        (object(), (X, LABELS), {}, InvalidSpec, "OnlineClassifier"),
        (CLASSIFIER, (np.full((9, 2), 1e200), np.arange(9) % 2), {}, InvalidFeatures, "1e"),
    ],
)
def test_what_cannot_be_learnt_in_shards_is_said(
    estimator: Any, source: Any, options: dict[str, Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        here(estimator, source, **options)


def test_shards_of_other_columns_are_refused() -> None:
    with pytest.raises(StreamError, match="columns"):
        here(CLASSIFIER, [*made.cut(X, LABELS, [1000]), *made.cut(X[:, :2], LABELS, [])])
    with pytest.raises(StreamError, match="city"):
        here(TableModel("late"), [table(), table().drop("city")])


def test_the_model_that_was_given_stays_as_it_was() -> None:
    model = OnlineClassifier(likelihood=Logistic())
    here(model, (X, LABELS), shards=2)
    assert not hasattr(model, "classes_")
    of_tables = TableModel("late", encoder=TableEncoder(ignore=("size",)))
    here(of_tables, [table()])
    assert of_tables.layout is None
