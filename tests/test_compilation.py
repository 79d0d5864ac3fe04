"""What one process has compiled the next one finds; what was edited is compiled anew."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import pytest

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="NUMBA_DISABLE_JIT=1: nothing is compiled")

LEARN_AND_COUNT = """
import gc

import numpy as np
from numba.core.dispatcher import Dispatcher

import bayou

grid = [
    (bayou.Probit(), bayou.DiagonalGaussian(), bayou.MomentMatching()),
    (bayou.Logistic(), bayou.SphericalGaussian(), bayou.Variational()),
    LARGER
]
features, targets = np.random.default_rng(0).normal(size=(9, 37)), np.ones(9)
learnt = []
for likelihood, posterior, rule in grid:
    learner = bayou.Learner(likelihood, posterior, rule, 37)
    learner.learn_many(features, targets)
    learner.learn_one(features[0], targets[0])
    learner.predict_one(features[0])
    learnt.append(learner.belief.mean.tobytes().hex())

kernels = [o for o in gc.get_objects() if isinstance(o, Dispatcher) and o.py_func.__module__.startswith("bayou.")]
print("_".join(learnt))
print(sum(sum(kernel.stats.cache_hits.values()) for kernel in kernels))
print(*sorted(f"{kernel.py_func.__module__}.{kernel.__name__}" for kernel in kernels if kernel.stats.cache_misses))
"""

LARGER = """
    (bayou.Gaussian(0.5), bayou.NormalInverseGamma(), bayou.MomentMatching()),
    (bayou.Probit(), bayou.FullGaussian(), bayou.MomentMatching()),
    (bayou.Softmax(3), bayou.DiagonalGaussian(), bayou.MomentMatching()),
"""

CALLEE = """
from bayou.numerics.jit import kernel

@kernel
def planted():
    return {value}
"""

CALLER = """
from bayou.numerics.jit import kernel
from bayou.numerics.planted import planted

@kernel
def twice():
    return 2.0 * planted()
"""

CALL = "from bayou.rules.caller import twice; print(twice(), sum(twice.stats.cache_hits.values()))"


def files_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def package(root: Path, tmp_path: Path) -> Path:
    """A copy of the package with two more kernels: one in `rules`, which calls one in `numerics`."""
    copy = tmp_path / "src"
    shutil.copytree(root / "src", copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "bayou/numerics/planted.py").write_text(CALLEE.format(value=2.0))
    (copy / "bayou/rules/caller.py").write_text(CALLER)
    return copy


def learn_and_count(run_python: Callable[..., str], larger: str, **options: Any) -> tuple[str, int, list[str]]:
    """What was learnt, how many kernels were found on disk, and which were compiled."""
    belief, hits, *compiled = run_python(LEARN_AND_COUNT.replace("LARGER", larger), **options).split()
    return belief, int(hits), compiled


def test_a_second_process_compiles_nothing(package: Path, tmp_path: Path, run_python: Callable[..., str]) -> None:
    cache = tmp_path / "cache"
    options: dict[str, Any] = {"package": package, "NUMBA_CACHE_DIR": str(cache)}
    belief, _, compiled = learn_and_count(run_python, "", **options)
    assert compiled, "the first process compiled nothing: the test does not see the kernels"
    after_first = files_below(cache)

    same_belief, hits, missed = learn_and_count(run_python, "", **options)
    assert missed == []
    assert hits > 0
    assert files_below(cache) == after_first
    assert same_belief == belief  # to the last bit, wherever the kernels come from


def test_nor_does_it_those_of_larger_kernels(run_python: Callable[..., str]) -> None:
    """In the cache of all tests, where others may have compiled them before."""
    belief, *_ = learn_and_count(run_python, LARGER)
    same_belief, hits, missed = learn_and_count(run_python, LARGER)
    assert missed == []
    assert hits > 0
    assert same_belief == belief


def test_an_edited_callee_in_another_file_is_noticed(
    package: Path, tmp_path: Path, run_python: Callable[..., str]
) -> None:
    def call(value: float) -> list[str]:
        (package / "bayou/numerics/planted.py").write_text(CALLEE.format(value=value))
        cache = str(tmp_path / "cache")
        return run_python(CALL, package=package, NUMBA_CACHE_DIR=cache, PYTHONDONTWRITEBYTECODE="1").split()

    assert call(2.0) == ["4.0", "0"]
    assert call(2.0) == ["4.0", "1"]
    assert call(101.0) == ["202.0", "0"]
    assert call(2.0) == ["4.0", "1"]  # kernels of earlier sources are kept for a while


@pytest.mark.parametrize("obstacle", ["a file in the way", "a read-only folder"])
def test_without_a_place_for_the_cache_kernels_are_still_compiled(
    package: Path, tmp_path: Path, run_python: Callable[..., str], obstacle: str
) -> None:
    place = tmp_path / "place"
    if obstacle == "a file in the way":
        place.touch()
    elif os.geteuid() == 0:
        pytest.skip("no folder is read-only to root")
    else:
        place.mkdir(mode=0o500)
    printed = run_python(CALL, package=package, NUMBA_CACHE_DIR=str(place / "cache"), TMPDIR=str(tmp_path))
    assert printed.split() == ["4.0", "0"]
