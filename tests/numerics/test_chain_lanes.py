"""Chains before and after a row: against sums in plain Python, for every number of members beside whole vectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from bayou.numerics.chain_lanes import multiply_chains, switch_chains, weigh_members
from bayou.numerics.jit import borrowing_kernel

RATES = (0.0, 1e-4, 0.1, 1.0)
MEMBERS = (*range(1, 14), 44)
ANYBODY = 0.1
GUARD = 7.25


@borrowing_kernel
def switch(chains: Any, rates: Any, usual: Any, held: Any, anybody: float, known: float) -> None:
    switch_chains(chains, rates, usual, held, chains.shape[0], chains.shape[1], anybody, known)


@borrowing_kernel
def multiply(chains: Any, given: Any, usual: Any, rate: float, least: float) -> None:
    multiply_chains(chains, given, usual, chains.shape[0], chains.shape[1], rate, least)


@borrowing_kernel
def weigh(values: Any, shares: Any, merit: Any, best: float, kept: float) -> float:
    return weigh_members(values, shares, merit, values.size, best, kept)


def chains_of(members: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(members)
    chains, usual = rng.uniform(size=(len(RATES), members)), rng.uniform(size=members)
    return chains / chains.sum(), usual / usual.sum()


@pytest.mark.parametrize("members", MEMBERS)
def test_before_a_row_some_change_places(members: int) -> None:
    chains, usual = chains_of(members)
    before, held = chains.copy(), np.full(members + 1, GUARD)
    switch(chains, np.array(RATES), usual, held[:members], ANYBODY / members, 1.0 - ANYBODY)
    for k, rate in enumerate(RATES):
        total = sum(before[k].tolist())
        for m in range(members):
            drawn = ANYBODY / members + (1.0 - ANYBODY) * float(usual[m])
            assert chains[k, m] == pytest.approx((1.0 - rate) * float(before[k, m]) + rate * total * drawn, rel=1e-13)
        assert chains[k].sum() == pytest.approx(total, rel=1e-13)
    np.testing.assert_array_equal(chains[0], before[0])  # in which none ever changes
    np.testing.assert_allclose(held[:members], [sum(column.tolist()) for column in chains.T], rtol=1e-13)
    assert held[members] == GUARD


@pytest.mark.parametrize("members", MEMBERS)
def test_after_a_row_members_are_multiplied_by_what_they_gave(members: int) -> None:
    chains, usual = chains_of(members)
    given = np.random.default_rng(1).uniform(1e-3, 1.0, size=members)
    before, usual_before, rate = chains.copy(), usual.copy(), 0.01
    multiply(chains, given, usual, rate, 1e-280)
    total = sum(float(before[k, m] * given[m]) for k in range(len(RATES)) for m in range(members))
    for m in range(members):
        np.testing.assert_allclose(chains[:, m], before[:, m] * given[m] / total, rtol=1e-13)
        held = sum(chains[:, m].tolist())
        assert usual[m] == pytest.approx((1.0 - rate) * float(usual_before[m]) + rate * held, rel=1e-13)
    assert chains.sum() == pytest.approx(1.0, rel=1e-13)


@pytest.mark.parametrize("members", MEMBERS)
def test_what_members_gave_is_told_in_units_of_the_best(members: int) -> None:
    rng = np.random.default_rng(members)
    logs, merit, shares = -10.0 * rng.random(members), rng.normal(size=members), rng.random(members)
    logs[-1], shares[::3] = -1e6, 0.0
    shares[0] = 0.5
    best, values, after = float(logs[shares > 0.0].max()), logs.copy(), merit.copy()
    all_gave = weigh(values, shares, after, best, 0.9)
    gave = [math.exp(log - best) if share > 0.0 else 0.0 for log, share in zip(logs, shares, strict=True)]
    assert all_gave == pytest.approx(math.fsum(s * g for s, g in zip(shares, gave, strict=True)), rel=1e-13)
    for m in range(members):
        if shares[m] > 0.0:
            assert values[m] == pytest.approx(gave[m], rel=1e-14, abs=1e-300)
        less = float(logs[m]) - best if shares[m] > 0.0 else 0.0
        assert after[m] == pytest.approx(0.9 * float(merit[m]) + less, rel=1e-14)


@pytest.mark.parametrize("members", [2, 4, 7])
def test_something_is_left_of_those_who_were_wrong_for_long(members: int) -> None:
    chains, usual = chains_of(members)
    given = np.zeros(members)
    given[-1] = 1.0
    for _ in range(5):
        multiply(chains, given, usual, 0.01, 1e-280)
    assert chains[:, :-1].max() == 1e-280
    assert chains[:, -1].sum() == pytest.approx(1.0)
    given[:] = 1.0
    given[-1] = 0.0
    multiply(chains, given, usual, 0.01, 1e-280)  # of all there was, nothing is left but what was left of them
    np.testing.assert_allclose(chains[:, :-1], 1.0 / (len(RATES) * (members - 1)), rtol=1e-12)
    assert np.isfinite(usual).all()
