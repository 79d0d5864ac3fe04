"""Wall time of a new process, its kernels compiled by an earlier one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

from benchmarks.report import Result
from benchmarks.timing import Effort

LEARN = (
    "from bayou import FullGaussian, Learner, MomentMatching, Probit; "
    "Learner(Probit(), FullGaussian(), MomentMatching(), 3).learn_one([1.0, 2.0, 3.0], 1.0)"
)
CLASSIFY = "from bayou import OnlineClassifier; OnlineClassifier().learn_one({'a': 1.0}, True)"


def start_up(effort: Effort) -> Iterator[Result]:
    processes = {
        "import bayou": "import numpy, bayou",
        "first Learner.learn_one": LEARN,
        "first OnlineClassifier.learn_one": CLASSIFY,
        "import river.linear_model": "from river import linear_model",
        "import sklearn.linear_model": "import sklearn.linear_model",
    }
    times = _fastest({"numpy": "import numpy", **processes}, rounds=max(effort.rounds // 2, 2))
    for name in processes:
        beyond = times[name] - times["numpy"]
        yield Result("start-up", "beyond numpy", name, figure=beyond, unit="seconds")


def _fastest(programs: dict[str, str], rounds: int) -> dict[str, float]:
    """Seconds; the first round warms the caches."""
    fastest = dict.fromkeys(programs, float("inf"))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    for round_number in range(rounds + 1):
        for name, program in programs.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", program], check=True, env=environment)
            if round_number > 0:
                fastest[name] = min(fastest[name], time.perf_counter() - start)
    return fastest
