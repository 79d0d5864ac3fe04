"""One pass of a network over real numbers: no worse than what is published, and intervals that cover.

The claim is about twenty splits of each set, by ``python -m benchmarks.uci``; here are two of the large sets and ten of
the small ones. With so few, a coverage may be off by more than it is over twenty: its bounds are wider by three
standard errors of a fraction of 0.9.
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from benchmarks.uci import HIGHEST, LOWEST, PUBLISHED, Outcome, main, run_set

LARGE = ("kin8nm", "naval-propulsion-plant", "power-plant")


@pytest.mark.parametrize("name", [name for name, published in PUBLISHED.items() if published is not None])
def test_sets_of_uci(data: Path, name: str) -> None:
    *_, outcome = run_set(data / "regression", name, splits=2 if name in LARGE else 10)
    assert isinstance(outcome, Outcome)
    print(f"{name}: RMSE {outcome.rmse:.4g} of {outcome.published}, {outcome.coverage:.3f} covered")
    assert outcome.published is not None
    assert outcome.rmse <= outcome.published
    slack = 3.0 * math.sqrt(0.09 / (outcome.splits * 0.1 * outcome.rows))
    assert LOWEST - slack <= outcome.coverage <= HIGHEST + slack


def test_the_table(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(data / "regression"), "--splits", "1", "--only", "yacht", "--json", str(tmp_path / "uci.json")])
    said = capsys.readouterr().out
    assert all(word in said for word in ("yacht", "network", "waves"))
    assert (tmp_path / "uci.json").read_text().startswith("[")
