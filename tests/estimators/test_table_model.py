"""Models of tables: what is predicted, from what, and what happens to rows that are new, late, missing or bad."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from bayou import Budget, FullGaussian, OnlineClassifier, OnlineRegressor, TableEncoder, TableModel, load, save
from bayou.contracts import State
from bayou.errors import BayouError, InvalidFeatures, InvalidSpec, InvalidTarget, StreamError

QUICK = Budget(microseconds=3.0)


def made(n_rows: int = 300, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n_rows))
    city = rng.choice(["u", "v", "w"], n_rows)
    size = 2.0 * a - b + (city == "u") + 0.3 * rng.normal(size=n_rows)
    return pl.DataFrame(
        {
            "a": a,
            "b": b,
            "city": city,
            "size": size,
            "bought": size > 0.0,
            "count": rng.poisson(np.exp(0.4 * a)),
            "grade": np.where(size > 1.0, "high", np.where(size < -1.0, "low", "middle")),
        }
    )


def model(target: str = "bought", **options: Any) -> TableModel:
    left_out = tuple(name for name in ("size", "bought", "count", "grade") if name != target.split(maxsplit=1)[0])
    options.setdefault("encoder", TableEncoder(ignore=left_out))
    return TableModel(target, budget=QUICK, **options)


def same(one: State, other: State) -> bool:
    return repr(one.config) == repr(other.config) and {k: a.tobytes() for k, a in one.arrays.items()} == {
        k: a.tobytes() for k, a in other.arrays.items()
    }


@pytest.mark.parametrize(
    ("target", "task"),
    [
        ("bought", "binary"),
        ("size > 0.5", "binary"),
        ("city == u", "binary"),
        ("city != 'u'", "binary"),
        ("bought = true", "binary"),
        ("grade", "multiclass"),
        ("count", "multiclass"),
        ("size", "regression"),
    ],
)
def test_tasks_are_found(target: str, task: str) -> None:
    found = TableModel(target)
    found.begin(made())
    assert found.task == task


def test_comparisons_are_those_of_polars() -> None:
    table = made().with_columns(pl.when(pl.col("a") > 1.5).then(None).otherwise(pl.col("size")).alias("size"))
    expected = {
        "size > 0.5": table["size"] > 0.5,
        "size<=-1": table["size"] <= -1.0,
        "city == v": table["city"] == "v",
        "city != 'v'": table["city"] != "v",
        "bought == False": ~table["bought"],
        "count >= 2": table["count"] >= 2,
    }
    for target, values in expected.items():
        learnt = TableModel(target, budget=QUICK).learn_many(table)
        assert learnt.targets.tolist() == values.drop_nulls().to_list()
        assert learnt.known.tolist() == values.is_not_null().to_list()


def test_a_column_whose_name_has_a_sign_is_a_column() -> None:
    table = pl.DataFrame({"x": [0.0, 1.0] * 10, "y > 1": [True, False] * 10})
    found = TableModel("y > 1", budget=QUICK)
    found.learn_many(table)
    assert found.target.column == "y > 1"
    assert found.kinds() == {"x": "number"}


def test_it_predicts_what_the_estimator_of_its_features_does() -> None:
    table = made()
    found = model("size")
    found.learn_many(table[:200])
    features = np.column_stack(
        [table["a"], table["b"], *(table["city"] == value for value in table["city"].unique(maintain_order=True))]
    )
    peer = OnlineRegressor(budget=QUICK)
    peer.learn_many(features[:200].astype(float), table["size"][:200].to_numpy())
    said, expected = found.predict(table[200:]), peer.predict_distribution(features[200:].astype(float))
    np.testing.assert_allclose(said.mean, expected.mean, rtol=1e-12)
    np.testing.assert_allclose(said.interval(0.9), expected.interval(0.9), rtol=1e-12)


@pytest.mark.parametrize(("target", "task"), [("size", "regression"), ("bought", "binary"), ("grade", "multiclass")])
def test_a_category_that_comes_late_is_as_one_that_was_known_from_the_start(target: str, task: str) -> None:
    table = made(400)
    early = pl.when(pl.int_range(400) < 150, pl.col("city") == "w").then(pl.lit("v")).otherwise(pl.col("city"))
    table = table.with_columns(early.alias("city"))
    order = list(table["city"].unique(maintain_order=True))
    assert order[-1] == "w"
    late, known = model(target, task=task), model(target, task=task)
    late.begin(table[:100])
    known.begin(table)
    assert len(known.layout.names) == len(late.layout.names) + 1
    for part in (slice(0, 100), slice(100, 250), slice(250, 400)):
        late.learn_many(table[part])
        known.learn_many(table[part])
    assert late.layout.names == known.layout.names
    fresh = made(50, seed=5)
    # A bank chooses priors and waves by the columns that it begins with; what is learnt makes up for it.
    if task == "regression":
        np.testing.assert_allclose(late.predict(fresh).mean, known.predict(fresh).mean, atol=0.02)
        np.testing.assert_allclose(late.predict(fresh).variance, known.predict(fresh).variance, rtol=0.1)
    else:
        np.testing.assert_allclose(late.predict(fresh), known.predict(fresh), atol=0.03)


def test_columns_that_are_added_were_zero_so_far() -> None:
    """One posterior does not depend on how many columns there were: it is the same to rounding."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(120, 3))
    rows[:60, 2] = 0.0
    targets = rows @ [1.0, -1.0, 2.0] + 0.1 * rng.normal(size=120)
    known, widened = (OnlineRegressor(posterior=FullGaussian()) for _ in range(2))
    known.learn_many(rows, targets)
    widened.learn_many(rows[:60, :2].copy(), targets[:60])
    widened.add_columns(["a", "b", "c"])
    widened.learn_many(rows[60:], targets[60:])
    np.testing.assert_allclose(widened.predict(rows), known.predict(rows), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(widened.predict_var(rows), known.predict_var(rows), rtol=1e-10)
    with pytest.raises(InvalidSpec, match="all columns, at least 3"):
        widened.add_columns(["a"])
    named = OnlineRegressor()
    named.learn_one({"a": 1.0}, 2.0)
    with pytest.raises(InvalidSpec, match="without names"):
        named.add_columns(["a", "b"])


def test_missing_values_are_no_crash_and_widen_predictions() -> None:
    table = made(400)
    holes = table.with_columns(
        pl.when(pl.int_range(400) % 7 == 0).then(None).otherwise(pl.col("a")).alias("a"),
        pl.when(pl.int_range(400) % 5 == 0).then(None).otherwise(pl.col("city")).alias("city"),
    )
    found = model("size")
    found.learn_many(holes)
    assert "city is missing" in found.layout.names
    row = table[:1]
    unknown = row.with_columns(pl.lit(None, dtype=pl.Float64).alias("a"))
    assert found.predict(unknown).variance[0] > 1.5 * found.predict(row).variance[0]


def test_rows_without_target_are_left_out() -> None:
    table = made()
    nan = table.with_columns(
        pl.when(pl.int_range(300) % 3 == 0).then(float("nan")).otherwise(pl.col("size")).alias("size")
    )
    null = table.with_columns(pl.when(pl.int_range(300) % 3 == 0).then(None).otherwise(pl.col("size")).alias("size"))
    only = table.filter(pl.int_range(300) % 3 != 0)
    models = [model("size") for _ in range(3)]
    for one in models:
        one.begin(only)
    states = []
    for one, rows in zip(models, (nan, null, only), strict=True):
        learnt = one.learn_many(rows)
        assert learnt.known.sum() == 200
        states.append(one.to_state())
    assert same(states[0], states[2])
    assert same(states[1], states[2])
    nothing = models[2].learn_many(null.filter(pl.col("size").is_null()))
    assert nothing.said is None
    assert same(models[2].to_state(), states[2])


@pytest.mark.parametrize(
    ("target", "options"),
    [
        ("bought", {}),
        ("size", {}),
        ("grade", {}),
        ("count", {"task": "count"}),
        (
            "size",
            {
                "encoder": TableEncoder(
                    ignore=("bought", "count", "grade"), basis="spline:3", interactions=(("a", "city"),)
                )
            },
        ),
        ("bought", {"encoder": TableEncoder(ignore=("size", "count", "grade"), hashed=True), "bits": 10}),
    ],
)
def test_a_model_continues_from_its_file_to_the_bit(tmp_path: Any, target: str, options: dict[str, Any]) -> None:
    table = made()
    one = model(target, **options)
    one.learn_many(table[:150])
    save(one, tmp_path / "model.bayou")
    other = load(tmp_path / "model.bayou")
    assert same(other.to_state(), one.to_state())
    late = table[150:].with_columns(pl.lit("new").alias("city"))
    for each in (one, other):
        each.learn_many(late)
    save(one, tmp_path / "one.bayou")
    save(other, tmp_path / "other.bayou")
    assert (tmp_path / "one.bayou").read_bytes() == (tmp_path / "other.bayou").read_bytes()


def spoilt(name: str, value: Any) -> pl.DataFrame:
    """Rows whose category is new and one of which is bad."""
    rows = made(20, seed=2).with_columns(pl.lit("never seen").alias("city"))
    values = rows[name].to_list()
    return rows.with_columns(pl.Series(name, [*values[:-1], value], strict=False))


BAD = [
    ("size", {}, "a", float("inf"), InvalidFeatures, "'a'.*inf"),
    ("size", {}, "a", 1e150, InvalidFeatures, "'a'"),
    ("size", {}, "size", float("inf"), InvalidTarget, "'size'.*inf"),
    ("size", {}, "size", 1e200, InvalidTarget, "'size'.*1e\\+200"),
    ("count", {"task": "count"}, "count", -1, InvalidTarget, "counts.*-1"),
    ("bought", {"weight": "count"}, "count", -1, InvalidFeatures, "at least 0"),
    (
        "bought",
        {"encoder": TableEncoder(ignore=("size", "count", "grade"), interactions=(("a", "b"),))},
        "a",
        1e139,
        InvalidFeatures,
        "finite",
    ),
]


@pytest.mark.parametrize(("target", "options", "name", "value", "error", "words"), BAD)
@pytest.mark.parametrize("delay", [0, 5])
def test_bad_rows_leave_a_model_as_it_was(
    target: str, options: dict[str, Any], name: str, value: Any, error: type[BayouError], words: str, delay: int
) -> None:
    if delay and "weight" in options:
        pytest.skip("late targets have no weights")
    rows = spoilt(name, value)
    if "interactions" in repr(options):
        rows = rows.with_columns(pl.lit(1e139).alias("b"))
    one = model(target, **options)
    new = one.to_state()
    with pytest.raises(error, match=words):
        one.learn_many(rows, delay)
    assert same(one.to_state(), new)
    one.learn_many(made(), delay)
    learnt = one.to_state()
    with pytest.raises(error, match=words):
        one.learn_many(rows, delay)
    assert same(one.to_state(), learnt)


def test_a_third_class_of_two_and_a_missing_column_leave_a_model_as_it_was() -> None:
    one = model("bought", task="binary")
    table = made().with_columns(pl.col("bought").cast(pl.String))
    one.learn_many(table)
    learnt = one.to_state()
    with pytest.raises(InvalidTarget, match=r"two classes.*'perhaps'"):
        one.learn_many(table[:3].with_columns(pl.lit("perhaps").alias("bought")))
    with pytest.raises(StreamError, match="column 'a'"):
        one.learn_many(table.drop("a"))
    with pytest.raises(StreamError, match=r"target must be a column.*'bought'"):
        one.learn_many(table.drop("bought"))
    with pytest.raises(InvalidSpec, match="delay"):
        one.learn_many(table, -1)
    assert same(one.to_state(), learnt)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("when > 3", "like with like"),
        ("a == x", "like with like"),
        ("city > 3", "like with like"),
        ("bouhgt", "did you mean 'bought'"),
        ("when", "numbers or classes"),
    ],
)
def test_bad_targets_are_refused(target: str, words: str) -> None:
    table = made().with_columns(pl.date(2024, 1, 1).alias("when"))
    with pytest.raises(BayouError, match=words):
        TableModel(target).begin(table)


def test_too_many_classes_and_no_values_are_refused() -> None:
    with pytest.raises(InvalidTarget, match="at most 1,000 classes; got 1,500"):
        TableModel("y").begin(pl.DataFrame({"x": range(1500), "y": [f"v{k}" for k in range(1500)]}))
    with pytest.raises(InvalidTarget, match="all are missing"):
        TableModel("y").begin(pl.DataFrame({"x": [1], "y": [None]}))
    with pytest.raises(InvalidSpec, match="task"):
        TableModel("y", task="rank")
    with pytest.raises(InvalidSpec, match="learnt something"):
        TableModel("y").predict(made())


@pytest.mark.parametrize("target", ["size", "bought"])
def test_late_targets_are_learnt_when_they_come(target: str) -> None:
    """The reference keeps a list of its own, and asks the estimator row by row."""
    table, delay = made(60), 7
    found = model(target)
    found.begin(table)
    learnt = [found.learn_many(table[part], delay) for part in (slice(0, 5), slice(5, 33), slice(33, 60))]
    found.learn_waiting()
    features = found.layout.encode(table)
    peer = (OnlineRegressor if target == "size" else OnlineClassifier)(budget=QUICK)
    ids, said = [], []
    for row, values in enumerate(features):
        if row >= delay:
            peer.learn_late(ids[row - delay], table[target][row - delay])
        issued = peer.forecast_one(values)
        ids.append(issued.id)
        said.append(issued.said)
    for row in range(60 - delay, 60):
        peer.learn_late(ids[row], table[target][row])
    fresh = made(20, seed=9)
    inputs = found.layout.encode(fresh)
    if target == "size":
        np.testing.assert_array_equal(found.predict(fresh).mean, peer.predict(inputs))
        means = np.concatenate([part.said.mean for part in learnt if part.said is not None])
        np.testing.assert_array_equal(means, [one.mean for one in said if one is not None])
        assert len(means) == 60 - delay
    else:
        np.testing.assert_array_equal(found.predict(fresh), peer.predict_proba(inputs))
        last = learnt[-1].said[:, learnt[-1].classes.index(True)]
        np.testing.assert_array_equal(last, [one[True] for one in said[33:]])


def test_late_targets_of_hashed_rows_are_learnt() -> None:
    table = made(300)
    found, soon = (model("bought", encoder=TableEncoder(hashed=True), bits=12) for _ in range(2))
    found.learn_many(table, 5)
    found.learn_waiting()
    soon.learn_many(table)
    fresh = made(50, seed=9)
    # the calibration believes late labels less
    np.testing.assert_allclose(found.predict(fresh), soon.predict(fresh), atol=0.15)
    assert np.mean(np.abs(found.predict(fresh) - soon.predict(fresh))) < 0.05


def test_rows_that_wait_meet_new_categories() -> None:
    """Rows one by one, with targets so late that the first category is long past when the first is learnt."""
    table = made(40)
    found = model("size")
    for row in range(40):
        found.learn_many(table[row : row + 1], 25)
    found.learn_waiting()
    assert found.n_rows == 40
    assert sorted(found.layout.names) == sorted(["a", "b", *(f"city={value}" for value in table["city"].unique())])
    with pytest.raises(InvalidSpec, match="no weights"):
        model("size", weight="count").learn_many(table, 3)


def test_weights_are_those_of_the_estimator() -> None:
    table = made(200).with_columns((1.0 + pl.int_range(200) % 3).alias("weight"))
    found, peer = model("bought", weight="weight"), OnlineClassifier(budget=QUICK)
    found.learn_many(table)
    assert "weight" not in found.kinds()
    inputs = found.layout.encode(table)
    peer.learn_many(inputs, table["bought"].to_numpy(), sample_weight=table["weight"].to_numpy())
    np.testing.assert_array_equal(found.predict(table), peer.predict_proba(inputs))
    peer = OnlineClassifier(budget=QUICK)
    peer.learn_many(inputs, table["bought"].to_numpy())
    assert (found.predict(table) != peer.predict_proba(inputs)).any()


def test_what_was_said_is_told_as_a_table() -> None:
    table = made()
    classes, numbers = model("grade"), model("size")
    said = classes.told_table(classes.learn_many(table))
    assert said.columns == ["prediction", "probability_high", "probability_low", "probability_middle", "target"]
    np.testing.assert_allclose(said[:, 1:4].to_numpy()[50:].sum(axis=1), 1.0)
    assert said["target"].to_list() == table["grade"].to_list()
    numbers.learn_many(table)
    told = numbers.predict_table(table, 0.5)
    assert told.columns == ["prediction", "low", "high"]
    inside = ((told["low"] < table["size"]) & (table["size"] < told["high"])).mean()
    assert 0.35 < inside < 0.65
    with pytest.raises(InvalidTarget, match=r"must be one of.*'best'"):
        classes.said_of(table[:2].with_columns(pl.lit("best").alias("grade")))


@pytest.mark.parametrize("weight", [-1.0, 1e10, np.inf, np.nan])
def test_weights_of_rows_are_such_that_others_count_too(weight: float) -> None:
    model = TableModel("y", "regression", weight="w")
    table = pl.DataFrame({"x": [1.0, 2.0, 3.0], "y": [1.0, 2.5, 2.0], "w": [1.0, 1.0, weight]})
    with pytest.raises(InvalidFeatures, match=r"weights in 'w' must be finite, at least 0 and at most 1e\+09"):
        model.learn_many(table)
    assert not model.begun
