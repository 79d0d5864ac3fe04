"""The page on banks says what its examples do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bayou.numerics.jit import COMPILED


@pytest.mark.skipif(not COMPILED, reason="streams of thousands of rows need compiled kernels")
def test_the_examples_of_the_page_run(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (root / "docs/banks.md").read_text(), re.DOTALL)
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)
    said = capsys.readouterr().out.splitlines()
    assert len(blocks) == 4
    assert float(said[0]) > 0.85  # of the first block: right after all has turned
    assert any(line.startswith("bends with probability") for line in said)
