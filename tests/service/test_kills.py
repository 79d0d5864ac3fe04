"""kill -9 under load; `python -m tests.service.kills 100` for a hundred."""

import pytest

from tests.service.kills import run


def test_three_kills_lose_nothing(tmp_path):
    examples, _, replayed = run(3, tmp_path / "store.db", seed=1, senders=2)
    assert examples > 300
    assert replayed > 0


@pytest.mark.soak
def test_more_kills_lose_nothing(tmp_path):
    examples, _, replayed = run(15, tmp_path / "store.db", seed=2)
    assert examples > 1500
    assert replayed > 0
