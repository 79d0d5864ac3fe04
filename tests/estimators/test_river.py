"""River's own checks of an estimator, through the adapters."""

from __future__ import annotations

from typing import Any

import pytest

river = pytest.importorskip("river", reason="River is an extra: bayou[river]")

from river import checks  # noqa: E402  # after the skip

from bayou.estimators.river import RiverClassifier, RiverRegressor  # noqa: E402
from bayou.posteriors import DiagonalGaussian  # noqa: E402

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
