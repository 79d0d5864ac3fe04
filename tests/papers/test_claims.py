"""When a claim holds: each way of failing, and the errata that are to fail."""

from __future__ import annotations

import pytest

from bayou.papers.claims import Claim, judge
from bayou.papers.ensembles import Estimate

STATED = Claim("paper", "Table I", "factor", 0.88, "stated", tolerance=0.005)
CURVE = Claim("paper", "Fig. 2", "error", resolution=0.01)


@pytest.mark.parametrize(("theory", "holds"), [(0.8849, True), (0.8751, True), (0.8851, False), (0.8749, False)])
def test_theory_has_to_round_to_what_is_printed(theory: float, holds: bool) -> None:
    assert judge(STATED, theory).holds is holds


@pytest.mark.parametrize(("simulation", "holds"), [(1.029, True), (0.971, True), (1.031, False), (0.969, False)])
def test_simulation_has_to_lie_within_three_standard_errors(simulation: float, holds: bool) -> None:
    assert judge(CURVE, 1.0, Estimate(simulation, 0.01)).holds is holds


def test_a_limit_may_be_off_for_few_weights() -> None:
    limit = Claim("paper", "Fig. 1", "error", finite_size=0.02)
    allowed = judge(limit, 0.5, Estimate(0.512, 0.001), note="seen")
    assert allowed.holds
    assert allowed.note == "seen; 12.0 standard errors off, within what a finite size explains"
    assert judge(limit, 0.5, Estimate(0.502, 0.001)).note == ""
    assert not judge(limit, 0.5, Estimate(0.514, 0.001)).holds


def test_a_theory_that_was_sampled_has_a_standard_error_too() -> None:
    simulation = Estimate(1.04, 0.01)
    assert not judge(CURVE, Estimate(1.0, 0.0), simulation).holds
    assert judge(CURVE, Estimate(1.0, 0.01), simulation).holds


def test_a_simulation_that_knows_too_little_does_not_count_but_in_a_quick_run() -> None:
    simulation = Estimate(1.0, 0.02)
    full, quick = judge(CURVE, 1.0, simulation), judge(CURVE, 1.0, simulation, quick=True)
    assert not full.holds
    assert "too few replicas" in full.note
    assert quick.holds


def test_without_theory_the_printed_number_stands_in_its_place() -> None:
    assert judge(STATED, None, Estimate(0.89, 0.004)).holds
    assert not judge(STATED, None, Estimate(0.90, 0.004)).holds


def test_nothing_holds_that_was_compared_with_nothing() -> None:
    assert not judge(CURVE).holds
    assert not judge(CURVE, 1.0).holds
    assert not judge(CURVE, None, Estimate(1.0, 0.01)).holds


def test_numbers_that_are_none_do_not_hold() -> None:
    assert not judge(STATED, float("nan")).holds
    assert not judge(CURVE, 1.0, Estimate(float("nan"), 0.01)).holds
    assert not judge(CURVE, 1.0, Estimate(1.0, float("nan")), quick=True).holds


def test_an_erratum_is_expected_to_fail_and_says_why() -> None:
    wrong = Claim("paper", "(22)", "factor", 0.88, "stated", tolerance=0.005, erratum="a factor is missing")
    failed = judge(wrong, 3.0)
    assert (failed.holds, failed.expected) == (False, True)
    assert failed.note.startswith("a factor is missing; paper and theory differ by 2.12")
    assert not judge(wrong, 0.88).expected


def test_a_verdict_as_data() -> None:
    assert judge(STATED, 0.883, Estimate(0.882, 0.01), note="seen").as_dict() == {
        "paper": "paper",
        "item": "Table I",
        "quantity": "factor",
        "printed": 0.88,
        "theory": 0.883,
        "simulation": 0.882,
        "standard_error": 0.01,
        "tolerance": 0.005,
        "holds": True,
        "note": "seen",
    }
