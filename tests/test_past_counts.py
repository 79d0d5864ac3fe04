"""Members that see past counts: against learners that are given them as inputs, quadrature, and the last count."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate, stats

import bayou
from bayou import Bank, FullGaussian, Learner, Member, MomentMatching, NegativeBinomial, OnlineCounter, Poisson
from bayou.contracts import Latent, Matrix, ScalarLikelihood, Vector
from bayou.errors import InvalidSpec
from bayou.json_values import decode, encode
from bayou.numerics.jit import COMPILED
from bayou.numerics.rates import BEYOND, bounded_rates, farthest

compiled = pytest.mark.skipif(not COMPILED, reason="too many rows for plain Python")
N_PAST = 2


def counts(n: int = 60, seed: int = 0) -> tuple[Matrix, Vector]:
    random = np.random.default_rng(seed)
    rows = np.column_stack([np.ones(n), random.normal(size=n)])
    return rows, random.poisson(np.exp(2.0 + 0.5 * rows[:, 1])).astype(np.float64)


def bank_of(likelihood: ScalarLikelihood) -> Bank:
    """One member that sees no past counts, and one that does."""
    seeing = Member(likelihood, past=N_PAST, past_variance=0.1, past_mean=1.0)
    return Bank([Member(likelihood), seeing], 2)


@pytest.mark.parametrize("likelihood", [Poisson(), NegativeBinomial(0.2)], ids=repr)
def test_past_counts_are_inputs_by_their_logs(likelihood: ScalarLikelihood) -> None:
    """A learner with the same prior, told the logs of the counts before as inputs, believes the same."""
    rows, targets = counts()
    bank = bank_of(likelihood)
    said = bank.learn_many(rows, targets)
    logs = np.log(1.0 + targets)
    inputs = np.column_stack([rows[2:], logs[1:-1], logs[:-2]])
    prior = FullGaussian(prior_mean=(0.0, 0.0, 1.0, 0.0), prior_variance=(1.0, 1.0, 0.1, 0.1))
    learner = Learner(likelihood, prior, MomentMatching(), 4)
    alone = learner.learn_many(inputs, targets[2:])
    np.testing.assert_allclose(bank.mean_of(1), learner.belief.mean, rtol=1e-8)
    np.testing.assert_allclose(said.latents[1].mean[2:], alone.latent.mean, rtol=1e-8)
    np.testing.assert_allclose(said.latents[1].variance[2:], alone.latent.variance, rtol=1e-8)


def test_who_waits_for_past_counts_says_nothing() -> None:
    """A first count of many thousands would be learnt by the weights of what is no part of it."""
    bank = bank_of(Poisson())
    shares = bank.learn_many([[1.0, 0.3]] * 3, [60_000.0, 61_000.0, 60_500.0]).shares
    np.testing.assert_array_equal(shares[:2], [[1.0, 0.0]] * 2)
    assert shares[2, 1] == pytest.approx(0.5)  # whatever the others gave: it has said nothing that could be wrong
    assert bank.predict_one([1.0, 0.3]).latents[1].mean[0] == pytest.approx(math.log(60_500.0), abs=0.1)


def test_alone_it_learns_from_the_first_count_on() -> None:
    bank = Bank([Member(Poisson(), past=1, past_mean=1.0)], 1)
    bank.learn_one([1.0], 4.0)
    assert bank.mean_of(0)[0] > 0.5


def test_late_counts_are_seen_when_they_have_come() -> None:
    """At once they are what `learn_one` makes of them; late, what was forecast without them is learnt without them."""
    rows, targets = counts(20)
    usual, late = bank_of(Poisson()), bank_of(Poisson())
    usual.learn_many(rows, targets)
    for row, y in zip(rows, targets, strict=True):
        late.learn_late(late.forecast(row), y)
    np.testing.assert_allclose(late.belief.mean, usual.belief.mean, rtol=1e-9)
    np.testing.assert_allclose(late.weights, usual.weights, rtol=1e-9)

    waiting = bank_of(Poisson())
    forecasts = [waiting.forecast(row) for row in rows[:5]]  # before any count was known
    for forecast, y in zip(forecasts, targets, strict=False):
        waiting.learn_late(forecast, y)
    np.testing.assert_array_equal(waiting.mean_of(1), [0.0, 0.0, 1.0, 0.0])
    np.testing.assert_allclose(waiting.belief.past, np.log(1.0 + targets[[4, 3]]))
    waiting.learn_late(waiting.forecast(rows[5]), targets[5])
    assert not np.array_equal(waiting.mean_of(1), [0.0, 0.0, 1.0, 0.0])


def test_what_knows_nothing_adds_nothing_to_a_merger() -> None:
    """The prior mean counts once."""
    rows, targets = counts()
    bank = bank_of(Poisson())
    bank.learn_many(rows, targets)
    fresh = bank_of(Poisson())
    merged = bank.merged([fresh, fresh])
    np.testing.assert_allclose(merged.belief.mean, bank.belief.mean, rtol=1e-9)
    np.testing.assert_allclose(fresh.merged([fresh]).mean_of(1), [0.0, 0.0, 1.0, 0.0])


def test_files_without_a_prior_mean_are_read() -> None:
    written = encode(Member(Poisson(), past=1))
    del written["fields"]["past_mean"]
    assert decode(written) == Member(Poisson(), past=1)
    with pytest.raises(InvalidSpec, match="past_mean"):
        Member(Poisson(), past=1, past_mean=math.nan)


@pytest.mark.parametrize(("mean", "variance"), [(1.0, 0.3), (5.0, 15.0), (3.0, 1e-6), (-2.0, 4.0), (8.0, 0.1)])
def test_moments_of_bounded_rates_are_those_by_quadrature(mean: float, variance: float) -> None:
    bound = 300.0
    latent = Latent(np.array([mean]), np.array([variance]))
    normal, edge = stats.norm(mean, math.sqrt(variance)), math.log(bound)
    for power, found in enumerate(bounded_rates(latent, np.array([bound])), start=1):
        ends = mean - 12.0 * normal.std(), min(mean + 12.0 * normal.std(), edge)
        below = 0.0
        if ends[1] > ends[0]:
            peak = min(mean + power * variance, ends[1])
            below, _ = integrate.quad(
                lambda f, power=power: math.exp(power * f) * normal.pdf(f), *ends, points=[peak], limit=500
            )
        assert found[0] == pytest.approx(below + bound**power * normal.sf(edge), rel=1e-6)


def test_a_rate_beyond_sight_counts_where_it_is_sure() -> None:
    largest = np.full(3, 100.0)
    latent = Latent(np.log([20.0, 300.0, 1e6]), np.array([0.01, 0.01, 0.01]))
    np.testing.assert_allclose(farthest(latent, largest), [100.0, 600.0 * math.exp(-0.1), 100.0 * BEYOND])
    unsure = Latent(np.log([1e6]), np.array([400.0]))
    np.testing.assert_allclose(farthest(unsure, np.array([100.0])), 100.0)


def test_moments_out_of_reach_of_the_bound_are_those_without_one() -> None:
    latent = Latent(np.array([1.0, 3.0]), np.array([0.01, 0.02]))
    for likelihood in (Poisson(2.0), NegativeBinomial(0.3)):
        bounded = likelihood.moments_within_sight(latent, np.full(2, 1e6))
        np.testing.assert_allclose(bounded, likelihood.moments(latent))


# The default bank


def no_change(targets: Vector) -> tuple[Vector, float]:
    """Squared errors of the last count, and the least loss of negative binomials about it, in hindsight."""
    last, now = targets[:-1], targets[1:]
    losses = [
        -stats.nbinom.logpmf(now, r, r / (r + last + extra)).mean()
        for extra in (0.1, 0.3, 1.0)
        for r in np.geomspace(0.1, 1e4, 15)
    ]
    return (now - last) ** 2, min(losses)


def walking(seed: int, base: float, n: int = 2500) -> tuple[Matrix, Vector]:
    """Log rates that walk, and inputs that tell nothing."""
    random = np.random.default_rng(seed)
    log_rate = base + np.cumsum(0.05 * random.normal(size=n))
    return random.normal(size=(n, 3)), random.poisson(np.exp(log_rate)).astype(np.float64)


@compiled
@pytest.mark.parametrize(("seed", "base"), [(0, 3.0), (1, 3.0), (2, 8.0)])
def test_the_last_count_is_no_better_than_the_bank(seed: int, base: float) -> None:
    """But for the first rows, in which it learns how large counts are at all."""
    X, y = walking(seed, base)
    said = OnlineCounter().learn_many(X, y)
    squares, loss = no_change(y)
    assert -said.evidence[1:].mean() < loss + 0.02
    ours = (said.mean - y)[1:] ** 2
    assert ours[20:].mean() < 1.04 * squares[20:].mean()
    inside = (said.cumulative(y) >= 0.05) & (said.cumulative(y - 1.0) < 0.95)
    assert 0.86 <= inside[100:].mean() <= 0.95


@compiled
def test_counts_that_know_nothing_of_the_past_cost_next_to_nothing() -> None:
    """Within 1 % of the loss of the learner whose settings made them."""
    random = np.random.default_rng(3)
    X = random.normal(size=(4000, 4))
    y = random.poisson(np.exp(2.0 + 0.3 * X @ random.normal(size=4))).astype(np.float64)
    ours = OnlineCounter().learn_many(X, y)
    design = np.column_stack([np.full(4000, 6.0), X])
    true = Learner(Poisson(), FullGaussian(prior_variance=0.25), MomentMatching(), 5).learn_many(design, y)
    assert -ours.evidence.mean() < 1.01 * -true.log_probability(y).mean()


def test_a_counter_is_saved_and_continues_with_what_it_has_seen(tmp_path: Path) -> None:
    rows, targets = counts(80, seed=4)
    model = OnlineCounter().partial_fit(rows[:50], targets[:50])
    bayou.save(model, tmp_path / "counter.bayou")
    twin = bayou.load(tmp_path / "counter.bayou")
    for one in (model, twin):
        one.partial_fit(rows[50:], targets[50:])
    np.testing.assert_array_equal(model.bank_.belief.past, twin.bank_.belief.past)
    np.testing.assert_array_equal(model.predict(rows), twin.predict(rows))
    assert len(model.bank_.belief.past) == N_PAST
