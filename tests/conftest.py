"""What every test can rely on: reproducible examples, fresh Python processes, and workers that share the compiling."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
from xdist.scheduler import LoadFileScheduling

ROOT = Path(__file__).parent.parent

hypothesis.settings.register_profile(
    "bayou",
    deadline=None,  # the first example may wait for a compilation
    derandomize=True,  # the same examples on every machine: a red run can be repeated
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("bayou")


if os.environ.get("NUMBA_DISABLE_JIT") == "1":  # kernels overflow and divide as compiled ones do: without a word
    np.seterr(over="ignore", under="ignore", divide="ignore", invalid="ignore")


@pytest.fixture(scope="session")
def root() -> Path:
    """Where the repository is."""
    return ROOT


@pytest.fixture(scope="session")
def run_python() -> Callable[..., str]:
    """Run a script in a fresh process, with warnings as errors; return what it printed."""

    def run(script: str, *, package: Path = ROOT / "src", cwd: Path = ROOT, **environment: str) -> str:
        finished = subprocess.run(
            [sys.executable, "-W", "error", "-c", script],
            cwd=cwd,
            env=os.environ | {"PYTHONPATH": str(package)} | environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert finished.returncode == 0, finished.stderr
        return finished.stdout

    return run


class FromBothEnds(LoadFileScheduling):
    """Whole files to each worker, to one from the front and to the others from the back of the alphabet.

    Neighbours use the same kernels: the worker that has compiled them goes on with them, and no two compile the same.
    """

    def _assign_work_unit(self, node: Any) -> None:
        if node is not self.nodes[0]:
            self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
        super()._assign_work_unit(node)

    def _split_scope(self, nodeid: str) -> str:
        """The papers are one: the quick run of them all is asked by many of their tests."""
        file = super()._split_scope(nodeid)
        return "tests/papers" if file.startswith("tests/papers/") else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FromBothEnds:
    config.option.loadscopereorder = False
    return FromBothEnds(config, log)
