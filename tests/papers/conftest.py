"""The quick claims of both papers, run once for all tests that ask about them."""

from __future__ import annotations

import json

import pytest

from bayou.numerics.jit import COMPILED
from bayou.papers.__main__ import main
from tests.papers.quick import QuickRun


@pytest.fixture(scope="session")
def quick_run(tmp_path_factory: pytest.TempPathFactory) -> QuickRun:
    if not COMPILED:
        pytest.skip("ensembles need compiled kernels")
    folder = tmp_path_factory.mktemp("papers")
    code = main(["run", "--all", "--quick", "--output", str(folder)])
    return QuickRun(code, json.loads((folder / "claims.json").read_text(encoding="utf-8")), folder)
