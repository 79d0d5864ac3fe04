"""Hashed tables in shards: weights add up one by one, and only those that were touched are sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from bayou import (
    Budget,
    Hashing,
    OnlineClassifier,
    OnlineCounter,
    OnlineRegressor,
    Poisson,
    TableEncoder,
    TableModel,
    load,
    save,
)
from bayou.distributed import InProcess, LocalProcesses, fit
from bayou.distributed.hashed_shards import HashedReader, Touched, added, begun, look
from bayou.distributed.sources import TableShard
from bayou.errors import InvalidFeatures, InvalidSpec, StreamError


def made(n: int, seed: int = 0) -> pl.DataFrame:
    """Three columns of a hundred values each, and a number."""
    rng, weights = np.random.default_rng(seed), 0.8 * np.random.default_rng(99).normal(size=(3, 100))
    values, x = rng.integers(0, 100, size=(n, 3)), 5.0 + 3.0 * rng.normal(size=n)
    latent = sum(weights[j, values[:, j]] for j in range(3)) + 0.3 * (x - 5.0)
    columns: dict[str, Any] = {name: [f"v{value}" for value in values[:, j]] for j, name in enumerate("abc")}
    late = latent + rng.logistic(size=n) > 0.0
    return pl.DataFrame({**columns, "x": x, "late": late, "count": rng.poisson(np.exp(0.3 * latent))})


TABLE, UNSEEN = made(12_000).drop("count"), made(6000, seed=1).drop("count")
MODEL = OnlineClassifier(encoder=Hashing(bits=14))


def parts(n: int, table: pl.DataFrame = TABLE) -> list[pl.DataFrame]:
    size = len(table) // n
    return [table[size * k : size * (k + 1)] for k in range(n)]


def log_loss(model: Any) -> float:
    given, late = model.predict_proba(UNSEEN.drop("late"))[:, 1], UNSEEN["late"].to_numpy()
    return float(-np.log(np.where(late, given, 1.0 - given)).mean())


def test_rounds_come_to_what_one_pass_gives() -> None:
    one = log_loss(OnlineClassifier(encoder=Hashing(bits=14)).partial_fit(TABLE.drop("late"), TABLE["late"].to_numpy()))
    fitted = fit(MODEL, parts(16), target="late", engine=InProcess(), rounds=4, tolerance=1e-9)
    assert log_loss(fitted.model) < min(1.001 * one, log_loss(fitted.one_pass))
    moves = [one.moved.mean for one in fitted.rounds if one.moved is not None]
    assert moves == sorted(moves, reverse=True)
    assert not fitted.exact
    assert fitted.rows == fitted.model.n_examples_ == len(TABLE)
    assert fitted.scores["log_loss"] == pytest.approx(one, rel=0.03)


def test_many_rounds_do_not_go_astray() -> None:
    """Whole steps would: by the eighth round log losses would be above 1."""
    losses = [
        one.scores["log_loss"].value
        for one in fit(MODEL, parts(24), target="late", engine=InProcess(), rounds=8).rounds
    ]
    assert max(losses[1:]) < 1.01 * min(losses)


def test_one_round_is_what_the_posterior_merges() -> None:
    """By a second route: beliefs of learners that were taught apart, in a common frame, merged as beliefs."""
    fitted = fit(MODEL, parts(3), target="late", engine=InProcess(), rounds=1)
    looked = look(HashedReader(False, (), "late"), TableShard(TABLE))
    beliefs = []
    for part in parts(3):
        model = begun(MODEL, looked)
        model._inputs.standardize = False  # its frame stays
        model._learn_known(
            model._rows(part.drop("late"), reset=False), part["late"].to_numpy(), np.zeros(0), tell=False
        )
        beliefs.append(model._learner_.belief)
    together = model._learner_.posterior.merge(beliefs)
    own = fitted.model._learner_.belief
    np.testing.assert_allclose(own.mean, together.mean, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(own.variance, together.variance, rtol=1e-5)
    touched = int((own.variance < own.variance.max()).sum())
    assert fitted.rounds[0].bytes_moved <= 3 * 24 * touched < 8 * 2**14 * 3


def test_what_is_told_adds_up() -> None:
    one = Touched(np.array([1, 4]), np.array([1.0, 2.0]), np.array([0.5, 0.5]))
    other = Touched(np.array([0, 4, 9]), np.array([3.0, 4.0, 5.0]), np.array([1.0, 2.0, 3.0]))
    both = added(one, other)
    assert both.places.tolist() == [0, 1, 4, 9]
    assert both.precision.tolist() == [3.0, 1.0, 6.0, 5.0]
    assert both.shift.tolist() == [1.0, 0.5, 2.5, 3.0]


def test_the_frame_of_numbers_is_that_of_all_rows() -> None:
    model = fit(MODEL, parts(4), target="late", engine=InProcess(), rounds=1).model
    frame = model._inputs._frame
    assert frame.centre[0] == pytest.approx(TABLE["x"].mean(), rel=1e-12)
    assert frame.deviation[0] == pytest.approx(TABLE["x"].to_numpy().std(), rel=1e-12)
    assert frame.weight[0] == len(TABLE)
    assert any(name.startswith(("a=", "b=", "c=")) for name in model.inspect(5).names)
    model.partial_fit(TABLE.drop("late")[:100], TABLE["late"].to_numpy()[:100])
    assert model.n_examples_ == len(TABLE) + 100


def test_the_same_bits_on_processes() -> None:
    some = TABLE[:3000]
    here, there = (
        fit(MODEL, parts(3, some), target="late", engine=engine, rounds=2).model
        for engine in (InProcess(), LocalProcesses(2))
    )
    assert here._learner_.belief.weights.tobytes() == there._learner_.belief.weights.tobytes()


def test_tables_that_are_hashed(tmp_path: Path) -> None:
    for number, part in enumerate(parts(3)):
        part.write_parquet(tmp_path / f"part-{number}.parquet")
    source = str(tmp_path / "part-*.parquet")
    fitted = fit(TableModel("late", encoder=TableEncoder(hashed=True), bits=14), source, engine=InProcess())
    assert fitted.n_shards == 3
    save(fitted.model, tmp_path / "model.bayou")
    told = load(tmp_path / "model.bayou").predict_table(UNSEEN)
    assert (told["prediction"] == UNSEEN["late"]).mean() > 0.7


def test_three_classes_and_counts() -> None:
    table = made(6000)
    kinds = table.with_columns(kind=(pl.col("x") > 3.0).cast(pl.Int8) + (pl.col("x") > 6.0).cast(pl.Int8)).drop("count")
    model = fit(MODEL, parts(3, kinds), target="kind", engine=InProcess()).model
    assert (model.predict(kinds.drop("kind")) == kinds["kind"].to_numpy()).mean() > 0.6
    counter = OnlineCounter(likelihood=Poisson(), encoder=Hashing(bits=14))
    fitted = fit(counter, parts(3, table.drop("late")), target="count", engine=InProcess())
    assert 0.85 < fitted.scores["coverage"] <= 1.0


@pytest.mark.parametrize(
    ("estimator", "source", "kind", "words"),
    [
        (OnlineClassifier(encoder=Hashing(bits=14), budget=Budget()), parts(2), InvalidSpec, "in the order of time"),
        (OnlineRegressor(encoder=Hashing(bits=14)), [made(500)], InvalidSpec, "noise must be told"),
        (MODEL, (np.zeros((9, 2)), np.arange(9) % 2), InvalidSpec, "must be tables"),
        (MODEL, [TABLE.drop("late")], StreamError, "must be a column"),
        (MODEL, [TABLE, TABLE.with_columns(a=pl.lit(1.0))], InvalidFeatures, "must be of one kind"),
    ],
)
def test_what_is_refused(estimator: Any, source: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        fit(estimator, source, target="late", engine=InProcess())
