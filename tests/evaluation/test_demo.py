"""The demo runs, says what was asked of it, and does without what is not installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def run(root: Path, folder: Path, without: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run the demo in a folder of its own; a module set to None cannot be imported."""
    script = f"import sys, runpy; sys.modules.update({{{without!r}: None}}) if {without!r} else None; "
    script += f"runpy.run_path({str(root / 'examples' / 'demo.py')!r}, run_name='__main__')"
    settings = {"PYTHONPATH": str(root / "src"), "PYTHONUTF8": "1", "COLUMNS": "100"}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        cwd=folder,
        env=os.environ | settings,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_demo_shows_how_good_and_how_sure_the_models_are(root: Path, tmp_path: Path) -> None:
    finished = run(root, tmp_path)
    assert finished.returncode == 0, finished.stderr
    for said in ("569/569", "accuracy", "log loss", "calibration error", "majority class", "P(sign)", "RMSE", "90 %"):
        assert said in finished.stdout
    assert (tmp_path / "out" / "demo-learning-curve.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("module", "extra", "code"), [("rich", "bayou[demo]", 1), ("matplotlib", "bayou[plot]", 0)])
def test_a_missing_extra_is_named_without_a_traceback(
    root: Path, tmp_path: Path, module: str, extra: str, code: int
) -> None:
    finished = run(root, tmp_path, without=module)
    assert finished.returncode == code
    assert extra in finished.stdout + finished.stderr
    assert "Traceback" not in finished.stderr
