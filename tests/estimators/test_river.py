"""River's own checks of an estimator, through the adapters."""

from __future__ import annotations

from typing import Any

import pytest
from river import checks  # after the skip

from bayou.estimators.river import RiverClassifier, RiverRegressor
from bayou.posteriors import DiagonalGaussian

MODELS = [RiverClassifier(), RiverRegressor(), RiverClassifier(posterior=DiagonalGaussian())]


def checks_of(model: Any) -> list[Any]:
    return [
        pytest.param(model, check, id=f"{type(model).__name__}-{check.__name__}")
        for check in checks.yield_checks(model)
    ]


@pytest.mark.parametrize(("model", "check"), [case for model in MODELS for case in checks_of(model)])
def test_river_checks_pass(model: Any, check: Any) -> None:
    """A check of River's raises where it is not met."""
    check(model.clone())
