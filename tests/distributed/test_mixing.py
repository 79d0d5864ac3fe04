"""A mixture from shards is the batch fit of all rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from bayou import HarmonyMixture, LocalFactorAnalysis, load, save
from bayou.distributed import InProcess, LocalProcesses, fit_mixture, merge
from bayou.errors import InvalidFeatures, InvalidSpec, StreamError
from tests.distributed import made


def clustered(n: int, k: int = 4, d: int = 3, seed: int = 0) -> Any:
    """Some lie near each other."""
    rng = np.random.default_rng(seed)
    centres = 4.0 * rng.normal(size=(k, d))
    return centres[rng.integers(k, size=n)] + rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) * [1.0, 100.0, 0.01]


ROWS = clustered(6500)


def assert_same(model: HarmonyMixture, whole: HarmonyMixture) -> None:
    assert model.n_clusters_ == whole.n_clusters_
    spread = whole.covariances_.diagonal(axis1=1, axis2=2).max(axis=0)
    np.testing.assert_allclose(model.weights_, whole.weights_, rtol=1e-10)
    assert (np.abs(model.means_ - whole.means_) / np.sqrt(spread)).max() < 1e-10
    apart = np.abs(model.covariances_ - whole.covariances_) / np.sqrt(np.outer(spread, spread))
    assert apart.max() < 1e-10
    assert model.n_examples_ == whole.n_examples_
    np.testing.assert_array_equal(model.order_history_, whole.order_history_)


@pytest.mark.parametrize(
    ("options", "n"),
    [
        ({}, 6500),
        ({"matching": 1.0, "covariance_type": "diag"}, 6500),
        ({"covariance_type": "spherical"}, 5200),
        ({}, 700),  # so few go to one place
    ],
)
def test_shards_are_the_batch_fit(options: dict[str, Any], n: int) -> None:
    rows = ROWS[:n]
    fitted = fit_mixture(HarmonyMixture(**options), rows, engine=InProcess(), shards=5)
    assert_same(fitted.model, HarmonyMixture(**options).fit(rows))
    assert fitted.n_shards == 5
    assert fitted.rows == n
    assert fitted.looks >= 2
    assert f"{fitted.looks:,} looks" in str(fitted)


def test_few_of_many_clusters() -> None:
    """Each point looks at its candidates alone, which are chosen by the same clusters everywhere."""
    rows = np.random.default_rng(4).normal(size=(5600, 2))
    rows[:, 0] += 9.0 * (np.arange(5600) % 4)
    rows[:, 1] += 9.0 * (np.arange(5600) // 4 % 3)
    model = HarmonyMixture(n_clusters=14, n_nearest=2)
    fitted = fit_mixture(model, rows, engine=InProcess(), shards=3).model
    assert fitted.n_clusters_ == 12
    assert_same(fitted, HarmonyMixture(n_clusters=14, n_nearest=2).fit(rows))


def test_tables_and_files(tmp_path: Path) -> None:
    table = pl.DataFrame({"a": ROWS[:, 0], "name": ["x"] * len(ROWS), "b": ROWS[:, 1], "c": ROWS[:, 2]})
    for part in range(3):
        table[2200 * part : 2200 * part + 2200].write_parquet(tmp_path / f"part-{part}.parquet")
    source = str(tmp_path / "part-*.parquet")
    told: list[Any] = []
    fitted = fit_mixture(HarmonyMixture(), source, columns=["a", "b", "c"], engine=InProcess(), progress=told.append)
    assert_same(fitted.model, HarmonyMixture().fit(ROWS))
    assert fitted.model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert told[-1].stage == f"look {fitted.looks - 1}"
    save(fitted.model, tmp_path / "mixture.bayou")
    again = load(tmp_path / "mixture.bayou")
    again.partial_fit(table.select("a", "b", "c").to_pandas()[:600])
    assert again.n_examples_ == len(ROWS) + 600
    with pytest.raises(InvalidFeatures, match="must be numbers"):
        fit_mixture(HarmonyMixture(), source, engine=InProcess())
    with pytest.raises(StreamError, match="must have a column 'd'"):
        fit_mixture(HarmonyMixture(), source, columns=["d"], engine=InProcess())


def test_the_same_bits_on_processes_and_when_one_dies(tmp_path: Path) -> None:
    shards = made.cut(ROWS, np.zeros(len(ROWS)), [1000, 4000])
    here = fit_mixture(HarmonyMixture(), shards, engine=InProcess()).model
    there = fit_mixture(HarmonyMixture(), made.deadly(shards, 1, tmp_path), engine=LocalProcesses(2)).model
    assert not list(tmp_path.glob("life-*"))
    for name in ("means_", "covariances_", "weights_"):
        np.testing.assert_array_equal(getattr(here, name), getattr(there, name))


def test_what_is_refused() -> None:
    with pytest.raises(InvalidSpec, match="must be a HarmonyMixture"):
        fit_mixture(LocalFactorAnalysis(), ROWS, engine=InProcess())  # type: ignore[arg-type]
    holes = ROWS.copy()
    holes[17, 1] = np.nan
    with pytest.raises(InvalidFeatures, match="no missing values"):
        fit_mixture(HarmonyMixture(), holes, engine=InProcess(), shards=2)
    parts = [*made.cut(ROWS, ROWS[:, 0], [3000]), *made.cut(ROWS[:, :2], ROWS[:, 0], [])]
    with pytest.raises(StreamError, match="same columns"):
        fit_mixture(HarmonyMixture(), parts, engine=InProcess())
    with pytest.raises(InvalidSpec, match="models that add up"):
        merge(HarmonyMixture().fit(ROWS[:500]), HarmonyMixture().fit(ROWS[500:1000]))
