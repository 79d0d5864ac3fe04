"""The page on calibration says what its examples do."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from bayou.numerics.jit import COMPILED


@pytest.mark.skipif(not COMPILED, reason="streams of thousands of rows need compiled kernels")
def test_the_examples_of_the_page_run(root: Path) -> None:
    result = doctest.testfile(str(root / "docs/calibration.md"), module_relative=False)
    assert result.attempted > 25
    assert result.failed == 0
