"""The examples of the page on theory run, and say what it says."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from bayou.numerics.jit import COMPILED


@pytest.mark.skipif(not COMPILED, reason="integrals over kernels need compiled ones")
def test_the_examples_of_the_page_run(root: Path) -> None:
    result = doctest.testfile(str(root / "docs/theory.md"), module_relative=False)
    assert result.attempted > 10
    assert result.failed == 0
