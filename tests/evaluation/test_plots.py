"""Pictures are written, for every kind of scores, and a missing matplotlib is explained."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes

from bayou import OnlineClassifier, OnlineCounter, OnlineRegressor
from bayou.evaluation import Report, plots, progressive


def written(path: Path) -> bool:
    return path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size > 10_000


@pytest.fixture(scope="module")
def classes() -> list[Report[Any]]:
    return list(progressive(OnlineClassifier(), *load_breast_cancer(return_X_y=True)))


@pytest.fixture(scope="module")
def numbers() -> list[Report[Any]]:
    return list(progressive(OnlineRegressor(), *load_diabetes(return_X_y=True)))


@pytest.fixture(scope="module")
def counts() -> list[Report[Any]]:
    X = np.random.default_rng(0).normal(size=(30, 1))
    return list(progressive(OnlineCounter(), X, np.arange(30) % 4, every=10))


@pytest.mark.parametrize("kind", ["classes", "numbers", "counts"])
def test_learning_curves_and_overviews(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    reports = request.getfixturevalue(kind)
    for name in ("learning_curve", "overview"):
        getattr(plots, name)(reports, tmp_path / "new" / f"{name}.png")
        assert written(tmp_path / "new" / f"{name}.png")


def test_reliability(classes: list[Report[Any]], tmp_path: Path) -> None:
    plots.reliability(classes[-1], tmp_path / "picture.png")
    assert written(tmp_path / "picture.png")


def test_intervals(numbers: list[Report[Any]], tmp_path: Path) -> None:
    plots.intervals(numbers[-1], tmp_path / "picture.png")
    assert written(tmp_path / "picture.png")


def test_a_single_report_can_be_drawn(classes: list[Report[Any]], tmp_path: Path) -> None:
    plots.overview(classes[-1:], tmp_path / "picture.png")
    assert written(tmp_path / "picture.png")


def test_settings_of_the_user_stay_as_they_were(classes: list[Report[Any]], tmp_path: Path) -> None:
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    plots.overview(classes, tmp_path / "picture.png")
    assert dict(mpl.rcParams) == before


def test_without_matplotlib_the_extra_is_named(
    classes: list[Report[Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "bayou\[plot\]"'):
        plots.overview(classes, tmp_path / "picture.png")
    assert not (tmp_path / "picture.png").exists()
