"""The page on functions says what its examples do, and its picture what the functions themselves say."""

from __future__ import annotations

import doctest
import os
import subprocess
import sys
from pathlib import Path
from runpy import run_path

import numpy as np
import pytest
from numpy.polynomial import legendre

from bayou.numerics.jit import COMPILED


@pytest.mark.skipif(not COMPILED, reason="streams of thousands of rows need compiled kernels")
def test_the_examples_of_the_page_run(root: Path) -> None:
    result = doctest.testfile(str(root / "docs/functions.md"), module_relative=False)
    assert result.attempted > 30
    assert result.failed == 0


def test_how_far_an_example_reaches_is_told_by_the_functions_alone(root: Path) -> None:
    """K(z, x) / K(x, x) of the polynomials up to order 10, by NumPy, whatever was learnt before."""
    script = run_path(str(root / "examples" / "localised_learning.py"))
    (at, _), degrees = script["SURPRISE"], np.arange(11)
    weights = (2.0 * degrees + 1.0)[:, None]
    values = legendre.legvander(2.0 * script["GRID"] / 3.0 - 1.0, 10).T
    here = legendre.legvander(np.array([2.0 * at / 3.0 - 1.0]), 10).T
    kernel = np.sum(weights * values * here, axis=0) / np.sum(weights * here**2)
    elsewhere = np.abs(script["GRID"] - at) > script["NEAR"]
    expected = np.abs(kernel[elsewhere]).max()
    assert expected == pytest.approx(0.37, abs=0.005)
    irma, gradient, _ = script["PANELS"]
    for seed in (0, 1):
        assert script["learn"](irma, seed).ratio == pytest.approx(expected, rel=1e-6)
    assert script["learn"](gradient, 0).ratio > 500.0


def test_the_picture_is_drawn(root: Path, tmp_path: Path) -> None:
    finished = subprocess.run(
        [sys.executable, "-W", "error", str(root / "examples" / "localised_learning.py")],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(root / "src"), "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    assert "IRMA" in finished.stdout
    assert (tmp_path / "out" / "localised_learning.png").read_bytes().startswith(b"\x89PNG")
