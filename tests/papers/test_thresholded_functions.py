"""Section 4 of Barkai, Seung and Sompolinsky 1995: the laws of the error, by replicas of the production pass."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bayou.estimators.thresholds import boundary
from bayou.functions import jax_function
from bayou.papers.barkai1995 import section_4
from bayou.papers.barkai1995.section_4 import FORM, NETWORK, Task, clock, schedule, simulate, steady_exponent
from bayou.papers.claims import Effort

both = pytest.mark.parametrize("task", [NETWORK, FORM], ids=lambda task: task.name)


@pytest.mark.slow
@both
def test_the_error_falls_as_one_over_n(task: Task) -> None:
    """Over a decade, 300 replicas: standard errors of 0.02."""
    rate = schedule(task, 2.0)
    found = simulate(task, rate, 40_000, 300, seed=1).exponent(float(rate.offset), 4000.0)
    assert found.standard_error < 0.025
    assert found.mean == pytest.approx(-1.0, abs=0.05)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "within"), [(NETWORK, 0.1), (FORM, 0.05)], ids=lambda given: getattr(given, "name", "")
)
def test_the_error_falls_as_one_over_n_with_the_rate_that_is_chosen(task: Task, within: float) -> None:
    """300 replicas: standard errors of 0.02. The network's lambda_min is still being found: 12 % too large at 20,000
    examples, 7 % at 60,000, so that eta0 grows a little meanwhile.
    """
    found = simulate(task, None, 60_000, 300, seed=1).exponent(0.0, 10_000.0)
    assert found.standard_error < 0.03
    assert found.mean == pytest.approx(-1.0, abs=within)


def test_the_error_is_proportional_to_a_constant_rate() -> None:
    """A standard error of 0.02; a rate that did nothing would have the exponent 0."""
    found = steady_exponent(64, 0)
    assert found.standard_error < 0.04
    assert found.mean == pytest.approx(1.0, abs=0.08)


def test_below_the_condition_the_error_falls_more_slowly() -> None:
    """-1/2 and not -1: a standard error of 0.06."""
    rate = schedule(FORM, 0.5)
    start = FORM.flat()[0] + 0.2 * FORM.lowest()[1]
    found = simulate(FORM, rate, 15_000, 64, start=start).exponent(float(rate.offset), 1500.0)
    assert found.mean == pytest.approx(-0.5, abs=0.15)


@pytest.mark.parametrize("flips", [0.1, 0.2])
def test_flipped_labels_stop_the_plain_rule_alone(flips: float) -> None:
    """Errors without the noise; replicas scatter by 0.01, so that standard errors are 0.002."""
    plain, known, learnt = (
        simulate(FORM, None, 20_000, 32, flips=flips, flip_rate=rate, seed=2) for rate in (0.0, flips, -1.0)
    )
    assert plain.mean()[-1] > 0.15  # and no longer falls
    assert plain.mean()[-1] == pytest.approx(plain.mean()[-4], rel=0.05)
    for curve in (known, learnt):
        assert curve.mean()[-1] < 0.06
        assert curve.mean()[-1] < 0.8 * curve.mean()[-4]
    told = learnt.tally.missed / learnt.tally.size
    assert told.mean() == pytest.approx(flips, abs=0.005)


@both
def test_the_matrix_is_told_by_the_examples(task: Task) -> None:
    """Against a slab around the boundary at the teacher. The mean over 32 replicas has a standard error below 2 %; the
    width of the kernel, and students that wander at a constant rate, add 14 % to the network's smallest eigenvalue.
    """
    found = simulate(task, clock(0.02, 0.0), 20_000, 32)
    np.testing.assert_allclose(
        np.linalg.eigvalsh(found.tally.matrix.mean(axis=0)), np.linalg.eigvalsh(task.matrix()), rtol=0.2
    )
    assert (boundary(found.tally).n_flat == 0).all()


def test_a_matrix_by_an_integral() -> None:
    """x^2 > 1 / w in one dimension: B = 2 phi(1) / 2 at w = 1."""
    line = Task("line", section_4.quadratic_form, (1.0,), 1)
    assert line.lowest()[0] == pytest.approx(math.exp(-0.5) / math.sqrt(2.0 * math.pi), rel=0.01)


def test_without_jax_the_section_is_left_out_aloud(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(section_4, "find_spec", lambda name: None)
    monkeypatch.setattr(jax_function, "jax", None)
    assert section_4.EXPERIMENT.run(Effort(quick=True)).verdicts == ()
    assert "Sec. 4 is left out: it needs JAX" in capsys.readouterr().err
