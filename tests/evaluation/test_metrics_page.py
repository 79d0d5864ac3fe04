"""The page on metrics says what its examples do, and names every metric."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from bayou.evaluation import metrics

NAMED = [name for name in metrics.__all__ if not name.isupper() or name in ("AUC", "CRPS", "MAE", "RMSE")]


def test_the_examples_of_the_page_run(root: Path) -> None:
    result = doctest.testfile(str(root / "docs/metrics.md"), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert result.attempted > 20
    assert result.failed == 0


@pytest.mark.parametrize("name", [name for name in NAMED if name not in ("Mean", "crps_of_quantiles")])
def test_every_metric_is_on_the_page(root: Path, name: str) -> None:
    assert f"`{name}" in (root / "docs/metrics.md").read_text()
