"""Banks: against learners alone, sums over all that may have happened, quadrature, and streams that change."""

from __future__ import annotations

import itertools
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp, ndtr, ndtri

import bayou
from bayou import Bank, FlipProbit, FullGaussian, Gaussian, Learner, Member, MomentMatching, Poisson, Probit
from bayou.bank import SWITCHING
from bayou.contracts import Latent, ScalarLikelihood
from bayou.errors import BayouError, ImproperBelief, InvalidFeatures, InvalidSpec, InvalidTarget, ShapeMismatch
from bayou.numerics.jit import COMPILED
from tests.contracts.grid import SCALAR, draw_targets

DRIFTS = (0.0, 1e-4, 1e-2)
MANY = 400 if COMPILED else 40


def stream(n: int = MANY, d: int = 3, seed: int = 0, change: int | None = None) -> tuple[Any, Any]:
    """Signs of a linear function of normal features, which may change its sign at some row."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d))
    weights = 2.0 * rng.normal(size=d)
    latent = rows @ weights + rng.normal(size=n)
    if change is not None:
        latent[change:] *= -1.0
    return rows, np.where(latent > 0.0, 1.0, -1.0)


def bank_of(drifts: Any = DRIFTS, d: int = 3, **given: Any) -> Bank:
    return Bank([Member(Probit(), drift) for drift in drifts], d, **given)


# One member


def test_a_row_that_counts_more_takes_no_more_time() -> None:
    """Nothing is said twice to the chains, and no weight walks twice: who forgets is not praised for repetition."""
    rows, targets = stream(MANY)
    plain, heavy = bank_of(), bank_of()
    plain.learn_many(rows, targets)
    heavy.learn_many(rows, targets, np.full(len(rows), 4.0))
    assert heavy.n_steps == plain.n_steps
    assert heavy.weights[0] > plain.weights[0]  # what stays is the surer, the more is known
    first = bank_of()
    said = first.learn_many(rows[:1], targets[:1], [3.0])
    values = said.latents
    gave = np.array([ndtr(targets[0] * one.mean / np.sqrt(1.0 + one.variance))[0] for one in values])
    np.testing.assert_allclose(first.belief.chains[0] / first.belief.chains[0].sum(), gave**3 / np.sum(gave**3))


@pytest.mark.parametrize("likelihood", SCALAR, ids=repr)
def test_a_member_that_does_not_drift_learns_as_a_learner_does(likelihood: ScalarLikelihood) -> None:
    rows, _ = stream(60 if COMPILED else 12)
    rng = np.random.default_rng(1)
    targets = draw_targets(likelihood, len(rows), rng)
    missing, counts = rng.random(rows.shape) < 0.1, rng.integers(1, 4, len(rows)).astype(float)
    rows[missing] = 0.0
    bank, learner = (
        Bank([Member(likelihood, prior_variance=0.7)], 3),
        Learner(likelihood, FullGaussian(prior_variance=0.7), MomentMatching(), 3),
    )
    said, expected = (model.learn_many(rows, targets, counts, missing) for model in (bank, learner))
    np.testing.assert_allclose(bank.mean_of(0), learner.belief.mean, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(bank.covariance_of(0), learner.posterior.covariance(learner.belief), atol=1e-9)
    np.testing.assert_allclose(said.latents[0].mean, expected.latent.mean, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(said.latents[0].variance, expected.latent.variance, rtol=1e-7, atol=1e-9)
    assert bank.n_examples == learner.n_examples
    if likelihood.normalised:
        np.testing.assert_allclose(said.log_probability(targets), expected.log_probability(targets), rtol=1e-7)


def test_a_member_that_drifts_is_a_kalman_filter_of_weights_that_walk() -> None:
    """One weight, Gaussian noise: against the joint normal of all steps of the walk and all targets."""
    rng, n, drift, prior = np.random.default_rng(2), 12, 0.03, 100.0
    x, y = rng.normal(size=n), rng.normal(size=n)
    bank = Bank([Member(Gaussian(noise_variance=0.5), drift, prior_variance=prior)], 1)
    bank.belief.covariance[...] = 1.0  # far below the ceiling, which then plays no part
    said = bank.learn_many(x[:, None], y)
    walk = 1.0 + drift * prior * (1.0 + np.minimum.outer(np.arange(n), np.arange(n)))  # covariance of the weight
    of_targets = walk * np.outer(x, x) + 0.5 * np.eye(n)
    for t in range(n):
        past = of_targets[:t, :t]
        gain = np.linalg.solve(past, of_targets[:t, t]) if t else np.zeros(0)
        assert said.mean[t] == pytest.approx(gain @ y[:t], abs=1e-10)
        assert said.variance[t] == pytest.approx(of_targets[t, t] - gain @ of_targets[:t, t], rel=1e-10)


def test_what_is_known_never_falls_below_the_prior() -> None:
    rows, signs = stream()
    rows[:, 2] = 0.0  # a feature that never says anything
    bank = bank_of((0.1,))
    bank.learn_many(rows, signs)
    assert bank.covariance_of(0)[2, 2] == 1.0
    assert np.all(np.diagonal(bank.covariance_of(0)) <= 1.0 + 1e-12)
    ahead = bank.predict_many(rows[:1], ahead=1e9).latents[0].variance[0]
    assert ahead <= rows[0] @ rows[0] + 1e-9


def test_predictions_ahead_are_wider_and_those_at_once_are_what_learning_says() -> None:
    rows, signs = stream()
    bank = bank_of()
    bank.learn_many(rows[:-1], signs[:-1])
    now, later = bank.predict_many(rows[-1:]), bank.predict_many(rows[-1:], ahead=50)
    learnt = bank.copy().learn_many(rows[-1:], signs[-1:])
    assert learnt.mean == pytest.approx(now.mean, rel=1e-12)
    assert learnt.variance == pytest.approx(now.variance, rel=1e-12)
    for member, drift in enumerate(DRIFTS):
        wider = later.latents[member].variance[0] - now.latents[member].variance[0]
        assert wider == pytest.approx(0.0, abs=1e-12) if drift == 0.0 else wider > 0.0


# Late labels


def test_a_label_that_comes_at_once_is_learnt_as_usual() -> None:
    rows, signs = stream(40 if COMPILED else 15)
    missing = np.random.default_rng(8).random(rows.shape) < 0.1
    rows[missing] = 0.0
    late, usual = bank_of(), bank_of()
    usual.learn_many(rows, signs, missing=missing)
    for x, y, mask in zip(rows, signs, missing, strict=True):
        late.learn_late(late.forecast(x, mask), y)
    for one, two in zip(late.belief, usual.belief, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-12, atol=1e-15)
    assert late.log_evidence == pytest.approx(usual.log_evidence, rel=1e-12)
    assert (late.n_examples, late.n_steps) == (usual.n_examples, usual.n_steps) == (len(rows), len(rows))


def test_late_labels_of_weights_that_stay_say_as_much_as_early_ones() -> None:
    """Of Gaussian targets without drift the order does not matter: what is known in the end is the same."""
    rng = np.random.default_rng(9)
    rows, targets = rng.normal(size=(30, 2)), rng.normal(size=30)
    late, usual = (Bank([Member(Gaussian(0.5))], 2) for _ in range(2))
    usual.learn_many(rows, targets)
    forecasts = [late.forecast(x) for x in rows]
    for n in rng.permutation(30):
        late.learn_late(forecasts[n], targets[n])
    np.testing.assert_allclose(late.belief.mean, usual.belief.mean, rtol=1e-10)
    np.testing.assert_allclose(late.belief.covariance, usual.belief.covariance, rtol=1e-10)


def test_a_late_label_tells_less_of_weights_that_walk() -> None:
    """One weight and nothing else in between: against the joint normal of the weight then and now."""
    drift, prior, lag = 0.02, 1.0, 10
    known = []
    for waits in (0, lag):
        bank = Bank([Member(Gaussian(0.3), drift, prior)], 1)
        bank.belief.covariance[...] = 0.1
        forecast = bank.forecast([1.0])
        for _ in range(waits):
            bank.forecast([1.0])
        bank.learn_late(forecast, 2.0)
        known.append(bank)
    early, late = known
    then, now = 0.1 + drift * prior, 0.1 + (1 + lag) * drift * prior
    assert early.covariance_of(0)[0, 0] == pytest.approx(then - then**2 / (then + 0.3), rel=1e-12)
    assert late.covariance_of(0)[0, 0] == pytest.approx(now - then**2 / (then + 0.3), rel=1e-12)
    assert late.mean_of(0)[0] == pytest.approx(2.0 * then / (then + 0.3), rel=1e-12)  # the best guess stays


def test_labels_that_are_very_late_leave_covariances_positive() -> None:
    rows, signs = stream(120 if COMPILED else 30)
    bank, waiting = bank_of((1e-3, 0.1)), []
    for n, (x, y) in enumerate(zip(rows, signs, strict=True)):
        waiting.append((bank.forecast(x), y))
        if n >= 20:
            bank.learn_late(*waiting.pop(0))
    for covariance in map(bank.covariance_of, range(len(bank.members))):
        assert np.linalg.eigvalsh(covariance).min() > 0.0


def draws(usual: Any) -> Any:
    """Who is drawn anew: one in ten is anybody, the others are who was believed of late."""
    return 0.1 / usual.size + 0.9 * usual


def moved(chains: Any, usual: Any, steps: int) -> Any:
    """Chains of the usual rates after so many rows whose targets are not known."""
    drawn = chains.sum(axis=1, keepdims=True) * draws(usual)
    return drawn + (1.0 - np.array(SWITCHING)[:, None]) ** steps * (chains - drawn)


def given_by_members(forecast: Any, y: float) -> Any:
    return np.exp([Probit().log_probability(np.array([y]), latent)[0] for latent in forecast.prediction.latents])


def test_members_are_weighed_by_what_they_said_when_they_were_asked() -> None:
    rows, signs = stream(30)
    bank = bank_of()
    bank.learn_many(rows[:20], signs[:20])
    forecasts = [bank.forecast(x) for x in rows[20:]]
    chains, usual, evidence = bank.belief.chains.copy(), bank.belief.usual.copy(), bank.log_evidence
    said = forecasts[0].prediction.log_probability(signs[20])
    bank.learn_late(forecasts[0], signs[20])
    expected = moved(chains, usual, 1) * given_by_members(forecasts[0], signs[20])
    np.testing.assert_allclose(bank.belief.chains, expected / expected.sum(), rtol=1e-9)
    assert bank.log_evidence - evidence == pytest.approx(said, rel=1e-9)
    # The second was foreseen two rows after the latest label that was known then: so much have chains moved.
    before, usual_before = bank.belief.chains.copy(), bank.belief.usual.copy()
    foreseen = moved(chains, usual, 2) * given_by_members(forecasts[1], signs[21])
    of_chains = before.sum(axis=1) * foreseen.sum(axis=1) / chains.sum(axis=1)
    bank.learn_late(forecasts[1], signs[21])
    within = moved(before, usual_before, 1) * given_by_members(forecasts[1], signs[21])
    expected = within / within.sum(axis=1, keepdims=True) * of_chains[:, None]
    np.testing.assert_allclose(bank.belief.chains, expected / expected.sum(), rtol=1e-9)
    with pytest.raises(InvalidTarget, match="got 3"):
        bank.learn_late(forecasts[2], 3.0)
    with pytest.raises(ShapeMismatch, match="of this bank"):
        bank_of((0.0,)).learn_late(forecasts[2], 1.0)


# Weights


def test_weights_are_a_sum_over_all_that_may_have_happened() -> None:
    """Two members, five rows: every sequence of members, told out, for every rate of switching."""
    n, rates = 5, (0.0, 0.2)
    rows, signs = stream(n)
    bank, twin = (bank_of((0.0, 0.1), switching=rates) for _ in range(2))
    drawn = []
    for x, y in zip(rows, signs, strict=True):
        drawn.append(draws(twin.belief.usual))
        weights = 63.0 / 64.0 * twin.belief.usual if len(drawn) == 1 else None
        twin.learn_one(x, y)
        if weights is not None:  # what is believed of late remembers 64 targets at first
            np.testing.assert_allclose(twin.belief.usual, weights + twin.weights / 64.0, rtol=1e-12)
    said = bank.learn_many(rows, signs)
    given = np.stack([Probit().log_probability(signs, latent) for latent in said.latents], axis=1)
    totals = np.zeros((len(rates), 2))
    for (k, rate), path in itertools.product(enumerate(rates), itertools.product((0, 1), repeat=n + 1)):
        chance = 0.25  # of the rate, and of the first member
        for t, (now, after) in enumerate(itertools.pairwise(path)):
            chance *= rate * drawn[t][after] + (1.0 - rate) * (now == after)
        totals[k, path[-1]] += chance * math.exp(sum(given[t, path[t + 1]] for t in range(n)))
    assert bank.log_evidence == pytest.approx(math.log(totals.sum()), rel=1e-12)
    np.testing.assert_allclose(bank.belief.chains, totals / totals.sum(), rtol=1e-10)
    assert bank.weights.sum() == pytest.approx(1.0)
    assert said.log_probability(signs).sum() == pytest.approx(bank.log_evidence, rel=1e-12)


def test_a_stream_that_stays_is_left_to_those_that_do_not_drift() -> None:
    rows, signs = stream(1500, d=5)
    bank, alone = bank_of((0.0, 1e-3, 1e-1), 5), bank_of((0.0,), 5)
    bank.learn_many(rows, signs)
    alone.learn_many(rows, signs)
    assert np.argmax(bank.weights) == 0
    assert bank.log_evidence > alone.log_evidence - math.log(3 * 5)  # what it costs not to know, at most


@pytest.mark.skipif(not COMPILED, reason="takes long in plain Python")
def test_a_stream_that_changes_is_followed() -> None:
    rows, signs = stream(4000, d=5, change=2000)
    bank, alone = bank_of((0.0, 1e-3, 1e-1), 5), bank_of((0.0,), 5)
    said = bank.learn_many(rows, signs)
    expected = alone.learn_many(rows, signs)
    after = slice(2200, 4000)
    right, wrong = (np.mean(np.sign(given.mean[after]) == signs[after]) for given in (said, expected))
    assert right > 0.85  # whose standard error is 0.008
    assert wrong < right - 0.03
    assert bank.log_evidence > alone.log_evidence + 100.0


@pytest.mark.skipif(not COMPILED, reason="takes long in plain Python")
def test_the_rate_of_flipped_labels_is_found() -> None:
    rows, signs = stream(4000, d=4, seed=3)
    flipped = np.random.default_rng(4).random(len(signs)) < 0.1
    signs[flipped] *= -1.0
    rates = (0.0, 0.02, 0.05, 0.1, 0.2)
    bank = Bank([Member(FlipProbit(rate) if rate else Probit()) for rate in rates], 4)
    bank.learn_many(rows, signs)
    assert bank.weights @ rates == pytest.approx(0.1, abs=0.02)  # 0.005 is the standard error of the share itself
    found = bank.settings("flip_rate")
    assert found[0.1] == pytest.approx(bank.weights[3])
    assert found[None] == pytest.approx(bank.weights[0])
    assert bank.settings("drift") == {0.0: pytest.approx(1.0)}
    with pytest.raises(InvalidSpec, match="setting of some member; got 'flips'"):
        bank.settings("flips")


# Mixtures of predictions


def test_quantiles_and_probabilities_are_those_of_the_mixture() -> None:
    rng = np.random.default_rng(5)
    rows, targets = rng.normal(size=(80, 2)), rng.normal(size=80)
    noises = (0.1, 2.0)
    bank = Bank([Member(Gaussian(noise)) for noise in noises], 2, switching=(0.05,))
    bank.learn_many(rows, targets)
    said = bank.predict_many(rows[:6])
    latents, shares = said.latents, said.shares
    deviations = [np.sqrt(latent.variance + noise) for latent, noise in zip(latents, noises, strict=True)]
    for p in (0.05, 0.5, 0.9):
        found = said.quantiles([p])[:, 0]
        below = [ndtr((found - latent.mean) / sd) for latent, sd in zip(latents, deviations, strict=True)]
        np.testing.assert_allclose(sum(shares[:, m] * below[m] for m in (0, 1)), p, atol=1e-9)
    grid = np.linspace(-15.0, 15.0, 60_001)
    density = np.exp([said.log_probability(np.full(6, y)) for y in grid[::20]])
    mean = np.trapezoid(grid[::20, None] * density, grid[::20], axis=0)
    np.testing.assert_allclose(said.mean, mean, atol=1e-6)
    spread = np.trapezoid((grid[::20, None] - mean) ** 2 * density, grid[::20], axis=0)
    np.testing.assert_allclose(said.variance, spread, rtol=1e-5)
    low, high = said.interval(0.9).T
    np.testing.assert_allclose(low, said.quantiles([0.05])[:, 0], rtol=1e-12)
    assert np.all(high > low)


@pytest.mark.parametrize("likelihoods", [(Probit(), FlipProbit(0.1)), (Poisson(), Poisson(exposure=4.0))], ids=repr)
def test_quantiles_of_whole_targets_are_the_least_that_suffice(likelihoods: Any) -> None:
    rows, signs = stream(60 if COMPILED else 10)
    targets = signs if isinstance(likelihoods[0], Probit) else np.random.default_rng(6).poisson(3.0, len(rows)) * 1.0
    bank = Bank([Member(likelihood) for likelihood in likelihoods], 3)
    bank.learn_many(rows, targets)
    said = bank.predict_many(rows[:8])
    for p in (0.02, 0.4, 0.97):
        found = said.quantiles([p])[:, 0]
        np.testing.assert_array_equal(found, np.round(found))
        assert np.all(said.cumulative(found) >= p)
        lower = found > likelihoods[0].target_range[0]
        assert np.all(said.cumulative(found - 1.0)[lower] < p)


def test_one_example_is_told_as_numbers() -> None:
    rows, signs = stream()
    bank = bank_of()
    said = bank.learn_many(rows[:5], signs[:5])
    single, many = bank.predict_one(rows[6]), bank.predict_many(rows[6:7])
    assert single.mean == many.mean[0]
    assert single.variance == many.variance[0]
    assert single.log_probability(1.0) == many.log_probability([1.0])[0]
    assert single.quantiles([0.1, 0.9]).shape == (2,)
    assert said.mean.shape == (5,)
    assert "MixedPrediction(mean=" in repr(single)


# Streams, files, mistakes


def test_parts_of_any_size_and_single_rows_give_the_same_bits() -> None:
    rows, signs = stream(50 if COMPILED else 20)
    whole, parts, singly = bank_of(), bank_of(), bank_of()
    whole.learn_many(rows, signs)
    for start in range(0, len(rows), 7):
        parts.learn_many(rows[start : start + 7], signs[start : start + 7])
    for x, y in zip(rows, signs, strict=True):
        singly.learn_one(x, y)
    for other in (parts, singly):
        for one, two in zip(whole.belief, other.belief, strict=True):
            np.testing.assert_array_equal(one, two)
        assert other.log_evidence == pytest.approx(whole.log_evidence, rel=1e-12)


def test_it_is_saved_and_continues_to_the_last_bit(tmp_path: Path) -> None:
    rows, signs = stream(60 if COMPILED else 20)
    bank = Bank([Member(Probit(), 1e-3, (0.5, 1.0, 2.0)), Member(FlipProbit(0.05), 1e-2)], 3, switching=(0.0, 0.01))
    bank.learn_many(rows[:30], signs[:30])
    bayou.save(bank, tmp_path / "bank.bayou")
    twins = [bayou.load(tmp_path / "bank.bayou"), pickle.loads(pickle.dumps(bank)), bank.copy()]
    bank.learn_many(rows[30:], signs[30:])
    for twin in twins:
        twin.learn_many(rows[30:], signs[30:])
        for one, two in zip(bank.belief, twin.belief, strict=True):
            np.testing.assert_array_equal(one, two)
        assert (twin.log_evidence, twin.n_examples) == (bank.log_evidence, bank.n_examples)
        assert repr(twin) == repr(bank)


def test_banks_are_merged_and_parts_are_taken_away() -> None:
    """Of Gaussian targets without drift it is what one bank learns of all rows."""
    rng = np.random.default_rng(10)
    rows, targets = rng.normal(size=(60, 2)), rng.normal(size=60)

    def learnt(part: slice) -> Bank:
        bank = Bank([Member(Gaussian(noise), prior_variance=(1.0, 3.0)) for noise in (0.3, 1.0)], 2, switching=(0.0,))
        bank.learn_many(rows[part], targets[part])
        return bank

    whole, first, second = learnt(slice(60)), learnt(slice(25)), learnt(slice(25, 60))
    merged = first.merged([second])
    np.testing.assert_allclose(merged.belief.mean, whole.belief.mean, rtol=1e-9)
    np.testing.assert_allclose(merged.belief.covariance, whole.belief.covariance, rtol=1e-9)
    assert (merged.n_examples, merged.n_steps) == (60, 60)
    again = merged.without(second)
    for name in ("mean", "covariance", "chains"):
        np.testing.assert_allclose(getattr(again.belief, name), getattr(first.belief, name), rtol=1e-7)
    assert again.log_evidence == pytest.approx(first.log_evidence)
    assert again.n_examples == 25
    again.learn_many(rows[25:], targets[25:])  # it goes on
    np.testing.assert_allclose(again.belief.mean, whole.belief.mean, rtol=1e-7)
    with pytest.raises(ImproperBelief, match="none of the whole"):
        learnt(slice(2)).without(whole)
    with pytest.raises(InvalidSpec, match="the same members"):
        first.merged([bank_of(d=2)])


@pytest.mark.skipif(not COMPILED, reason="takes long in plain Python")
def test_a_long_stream_keeps_its_memory_and_its_covariances_positive() -> None:
    bank = bank_of((0.0, 1e-6, 1e-2), 4)
    size = bank.nbytes
    rng = np.random.default_rng(7)
    for _ in range(20):
        rows = rng.normal(size=(10_000, 4))
        rows[:, 3] = rows[:, 2]  # two that cannot be told apart
        bank.learn_many(rows, np.where(rows[:, 0] + rows[:, 2] + rng.normal(size=len(rows)) > 0.0, 1.0, -1.0))
    assert bank.nbytes == size
    for covariance in map(bank.covariance_of, range(len(bank.members))):
        np.testing.assert_array_equal(covariance, covariance.T)
        assert np.linalg.eigvalsh(covariance).min() > 0.0
    assert bank.weights[0] > 0.5


BAD: list[tuple[Any, Any, type[BayouError], str]] = [
    (np.zeros((2, 2)), [1.0, 1.0], ShapeMismatch, "3 columns"),
    (np.zeros((2, 3)), [1.0], ShapeMismatch, "one value per row, 2"),
    (np.zeros((2, 3)), [1.0, 0.5], InvalidTarget, "got 0.5 in row 1"),
    (np.full((2, 3), np.nan), [1.0, 1.0], InvalidFeatures, "finite; got nan in row 0"),
    (np.array([[1.0, 0.0, 0.0], [1e200, 1.0, 1.0]]), [1.0, 1.0], ImproperBelief, "row 1 has a latent"),
]


@pytest.mark.parametrize(("rows", "targets", "error", "message"), BAD)
def test_bad_rows_are_named_and_leave_all_as_it_was(
    rows: Any, targets: Any, error: type[BayouError], message: str
) -> None:
    bank = bank_of()
    bank.learn_many(*stream(10))
    before = pickle.dumps(bank)
    with pytest.raises(error, match=message):
        bank.learn_many(rows, targets)
    assert pickle.dumps(bank) == before


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Bank([], 2), "one or more of Member"),
        (lambda: Bank([Member(Probit()), Member(Gaussian())], 2), "same targets"),
        (lambda: Bank([Member(Probit())], 0), "at least 1; got 0"),
        (lambda: Bank([Member(Probit())], 2, switching=(1.5,)), "rates from 0 to 1"),
        (lambda: Member(Probit(), drift=-1.0), "from 0 to 1; got -1"),
        (lambda: Member(object()), "single latent, or Softmax"),  # type: ignore[arg-type]  # on purpose
        (lambda: bank_of().predict_many(np.zeros((1, 3)), ahead=-1.0), "at least 0; got -1"),
    ],
)
def test_what_does_not_fit_is_refused(make: Any, message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        make()


def test_members_of_no_weight_do_not_spoil_the_mixture() -> None:
    latent = Latent(np.array([50.0]), np.array([1e-4]))
    record = np.array([[[50.0, 1e-4, 1.0, np.inf, 0.0], [-50.0, 1e-4, 1.0, np.inf, 0.0]]])
    said = bayou.MixedPrediction([Probit(), Probit()], record, np.array([[1.0, 1e-300]]))
    assert said.log_probability([-1.0])[0] == pytest.approx(
        logsumexp([Probit().log_probability(np.array([-1.0]), latent)[0], math.log(1e-300)]), rel=1e-9
    )


@pytest.mark.parametrize("log_mean", [37.0, 60.0])
def test_quantiles_of_counts_beyond_all_whole_numbers_are_found(log_mean: float) -> None:
    """Beyond 2^53 neighbours are far apart; the log of such a count is normal, but for its last digits."""
    record = np.array([[[log_mean, 0.04, 1.0, np.inf, 0.0], [log_mean, 0.04, 1.0, np.inf, 0.0]]])
    said = bayou.MixedPrediction([Poisson(), Poisson()], record, np.array([[0.5, 0.5]]))
    found = said.interval(0.9)[0]
    np.testing.assert_allclose(np.log(found), log_mean + 0.2 * ndtri([0.05, 0.95]), atol=1e-3)
