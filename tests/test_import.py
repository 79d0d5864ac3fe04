"""`import bayou` costs next to nothing, and its names are true."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import bayou

HEAVY = ["jax", "llvmlite", "matplotlib", "numba", "numpy", "river", "safetensors", "scipy", "sklearn"]


def test_nothing_heavy_is_imported(run_python: Callable[..., str]) -> None:
    loaded = run_python(f"import bayou, sys; print(sorted(set({HEAVY}) & set(sys.modules)))")
    assert loaded.strip() == "[]"


def test_time_beyond_numpy_is_shown(run_python: Callable[..., str]) -> None:
    """Shown, not asserted: a busy machine is no reason to refuse a change."""
    script = "import numpy, time; start = time.perf_counter(); import bayou; print(time.perf_counter() - start)"
    seconds = min(float(run_python(script)) for _ in range(3))
    print(f"import bayou: {1e3 * seconds:.1f} ms beyond numpy; the limit is 200 ms")


def test_names_are_sorted_and_listed() -> None:
    assert bayou.__all__ == sorted(set(bayou.__all__))
    assert set(bayou.__all__) <= set(dir(bayou))
    assert set(bayou.__all__) == set(bayou._HOMES)


@pytest.mark.parametrize("name", bayou.__all__)
def test_every_name_resolves(name: str) -> None:
    assert getattr(bayou, name).__name__ == name


def test_a_star_import_brings_every_name(run_python: Callable[..., str]) -> None:
    assert run_python("from bayou import *; import bayou; print(set(bayou.__all__) - set(dir()))").strip() == "set()"


def test_an_unknown_name_is_named() -> None:
    with pytest.raises(AttributeError, match="module 'bayou' has no attribute 'Gausian'"):
        _ = bayou.Gausian
