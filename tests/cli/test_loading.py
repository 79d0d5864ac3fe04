"""What a command only seems to need is not loaded, and is there for whoever does need it."""

from __future__ import annotations

import subprocess
import sys

import pytest

ASKED = """
import gc, sys
from bayou.cli.loading import loading
with loading():
    import sklearn.base
    from bayou.cli.learn import run
"""


def _said(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", ASKED + code], check=False, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_command_loads_neither_scipy_stats_nor_pandas() -> None:
    assert _said("print([name for name in ('scipy.stats', 'pandas') if name in sys.modules], gc.isenabled())") == (
        "[] True"
    )


def test_scikit_learn_finds_what_was_left_out_when_it_asks() -> None:
    pytest.importorskip("pandas")
    code = """
from sklearn.utils import fixes
import numpy as np
print(int(np.ravel(fixes._mode(np.array([3, 1, 3]))[0])[0]))
version = fixes.pd.__version__
import pandas, scipy.stats
print(version == pandas.__version__, fixes.pd.DataFrame is pandas.DataFrame)
print(type(sys.modules['pandas']).__name__, scipy.stats.norm.cdf(0.0))
"""
    assert _said(code).split("\n") == ["3", "True True", "module 0.5"]


def test_a_name_that_is_imported_meanwhile_is_found() -> None:
    code = """
for name in [name for name in sys.modules if name.startswith(('sklearn', 'scipy.stats'))]:
    del sys.modules[name]
with loading():
    from scipy.stats import chi2
    assert chi2.cdf(0.0, 1) == 0.0
print(type(sys.modules['scipy.stats']).__name__)
"""
    assert _said(code) == "module"
