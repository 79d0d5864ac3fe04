"""Members of a bank: noise that is learnt, waves, past targets, restarts, and who sleeps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import special
from scipy.optimize import minimize
from scipy.stats import t as student

from bayou import Bank, Gaussian, Learner, Logistic, Member, MomentMatching, NormalInverseGamma, Probit, Waves
from bayou.errors import InvalidSpec
from bayou.numerics.jit import COMPILED

MANY = 400 if COMPILED else 40
compiled = pytest.mark.skipif(not COMPILED, reason="takes long in plain Python")


def numbers(n: int = MANY, d: int = 3, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d))
    return rows, rows @ np.arange(1.0, d + 1.0) + 0.5 * rng.normal(size=n)


def signs(n: int, d: int = 3, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d))
    return rows, np.where(2.0 * rows[:, 0] - rows[:, 1] + rng.normal(size=n) > 0.0, 1.0, -1.0)


# Noise


def test_noise_that_is_learnt_is_normal_inverse_gamma() -> None:
    rows, targets = numbers(60 if COMPILED else 12)
    rng = np.random.default_rng(1)
    missing, counts = rng.random(rows.shape) < 0.1, rng.integers(1, 4, len(rows)).astype(float)
    rows[missing] = 0.0
    bank = Bank([Member(Gaussian(), prior_variance=2.0, noise_memory=math.inf)], 3)
    learner = Learner(Gaussian(), NormalInverseGamma(2.0), MomentMatching(), 3)
    said, expected = (model.learn_many(rows, targets, counts, missing) for model in (bank, learner))
    np.testing.assert_allclose(said.mean, expected.mean, rtol=1e-8)
    np.testing.assert_allclose(said.interval(0.9), expected.interval(0.9), rtol=1e-8)
    np.testing.assert_allclose(said.evidence, expected.log_probability(targets), rtol=1e-8)
    np.testing.assert_allclose(bank.belief.noise[0], learner.belief.noise, rtol=1e-10)


def test_noise_is_forgotten_in_its_time() -> None:
    """Of targets that are noise alone, the size found is that of a window with weights that decay."""
    rng, memory = np.random.default_rng(2), 30.0
    targets = rng.normal(size=MANY) * np.where(np.arange(MANY) < MANY // 2, 1.0, 5.0)
    bank = Bank([Member(Gaussian(), prior_variance=1e-12, noise_memory=memory)], 1)
    bank.learn_many(np.ones((MANY, 1)), targets)
    shape, rate = 0.5, 0.5
    for y in targets:
        faded = 0.5 + math.exp(-1.0 / memory) * (shape - 0.5)
        shape, rate = faded + 0.5, rate * faded / shape + 0.5 * y * y
    np.testing.assert_allclose(bank.belief.noise[0], [shape, rate], rtol=1e-6)
    assert math.sqrt(rate / shape) == pytest.approx(5.0, rel=0.4)


@compiled
@pytest.mark.parametrize("degrees", [1.5, 3.0])
def test_noise_with_heavy_tails_finds_what_the_batch_finds(degrees: float) -> None:
    """Weights and scale are those of maximum likelihood, by an optimiser, within three of their standard errors."""
    rng, n, d = np.random.default_rng(3), 4000, 3
    rows, truth, scale = rng.normal(size=(n, d)), np.array([1.0, -2.0, 0.5]), 0.5
    targets = rows @ truth + scale * rng.standard_t(degrees, size=n)

    def loss(values: Any) -> float:
        return -float(student.logpdf(targets, degrees, rows @ values[:d], math.exp(values[d])).sum())

    best = minimize(loss, np.append(truth, math.log(scale))).x
    heavy = Bank([Member(Gaussian(), 0.0, 10.0, noise_memory=math.inf, tails=degrees)], d)
    normal = Bank([Member(Gaussian(), 0.0, 10.0, noise_memory=math.inf)], d)
    said = heavy.learn_many(rows, targets)
    fisher = (degrees + 1.0) / (degrees + 3.0) / scale**2  # of a location, per row
    np.testing.assert_allclose(heavy.belief.mean[:d], best[:d], atol=3.0 / math.sqrt(n * fisher))
    assert math.sqrt(heavy.belief.noise[0, 1] / heavy.belief.noise[0, 0]) == pytest.approx(math.exp(best[d]), rel=0.1)
    assert said.evidence[500:].mean() > normal.learn_many(rows, targets).evidence[500:].mean() + 0.1
    # what is said before each target is close to what who knows everything says: 0.02 nats are 80 in all
    known = student.logpdf(targets, degrees, rows @ best[:d], math.exp(best[d]))
    assert said.evidence[500:].mean() == pytest.approx(known[500:].mean(), abs=0.02)


def test_targets_that_repeat_themselves_leave_noise_for_the_next() -> None:
    """Else the first that differs would be worth an endless surprise."""
    bank = Bank(
        [Member(Gaussian(), 0.0, 1e-12, past=1, past_variance=1e-12, past_mean=1.0, noise_memory=20.0, tails=1.5)], 1
    )
    targets = np.ones(MANY)
    targets[-1] = 2.0
    said = bank.learn_many(np.zeros((MANY, 1)), targets)
    assert np.isfinite(said.evidence).all()
    assert said.evidence[-1] > -20.0
    np.testing.assert_allclose(said.mean[2:-1], 1.0, rtol=1e-6)


def test_predicting_says_what_learning_says_next() -> None:
    rows, targets = numbers()
    bank = Bank([Member(Gaussian(), 1e-2, noise_memory=50.0), Member(Gaussian(), noise_memory=math.inf)], 3)
    bank.learn_many(rows[:-1], targets[:-1])
    now = bank.predict_many(rows[-1:])
    learnt = bank.learn_many(rows[-1:], targets[-1:])
    np.testing.assert_allclose(now.interval(), learnt.interval(), rtol=1e-9)


# Waves


@compiled
def test_waves_find_what_no_line_does() -> None:
    rng = np.random.default_rng(3)
    rows = np.column_stack([np.ones(2000), rng.normal(size=(2000, 2))])
    targets = np.where(rows[:, 1] ** 2 + rows[:, 2] ** 2 > 1.4, 1.0, -1.0)  # a ring
    bank = Bank([Member(Logistic()), Member(Logistic(), waves=Waves(0.5))], 3)
    said = bank.learn_many(rows, targets)
    assert np.mean(np.sign(said.mean[500:]) == targets[500:]) > 0.93  # a line gets 0.51
    assert bank.settings("waves")[Waves(0.5)] > 0.99


@compiled
def test_a_sum_of_curves_takes_fewer_rows_where_the_truth_is_one() -> None:
    """Eight inputs, each with a curve of its own: waves of all eight at once see next to nothing in 2,000 rows."""
    rng = np.random.default_rng(8)
    inputs = rng.normal(size=(2000, 8))
    rows = np.column_stack([np.ones(2000), inputs])
    targets = np.sin(2.0 * inputs).sum(axis=1) + 0.3 * rng.normal(size=2000)
    curves = Waves(0.5, inputs=1)
    bank = Bank([Member(Gaussian(), waves=waves, noise_memory=math.inf) for waves in (Waves(0.5), curves)], 9)
    error = np.sqrt(np.mean((bank.learn_many(rows, targets).mean - targets)[1000:] ** 2))
    assert error < 0.8  # of a deviation of 2; the noise is 0.3
    assert bank.settings("waves")[curves] > 0.99


@pytest.mark.parametrize("inputs", [1, 3])
def test_waves_look_at_as_many_inputs_as_they_are_told(inputs: int) -> None:
    bank = Bank([Member(Probit(), waves=Waves(inputs=inputs)), Member(Probit(), waves=Waves())], 6)
    few, all_of_them = np.count_nonzero(bank.belief.frequency, axis=2)
    assert set(few) == {inputs}
    assert set(all_of_them) == {6}
    assert not bank.belief.frequency[0, :, 0].any()  # the constant
    assert (np.count_nonzero(bank.belief.frequency[0], axis=0)[1:] > 0).all()


@compiled
@pytest.mark.parametrize("shape", ["cosine", "step"])
def test_waves_are_the_same_functions_of_inputs_told_otherwise(shape: str) -> None:
    """Inputs x and z with x = 2 z + 3: after `retell` what is said of z is what was said of x, but for the prior."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(3000, 1))
    targets = np.where(np.sin(2.0 * x[:, 0]) + 0.3 * rng.normal(size=3000) > 0.0, 1.0, -1.0)
    rows, others = (np.column_stack([np.ones(3000), z]) for z in (x, (x - 3.0) / 2.0))
    bank = Bank([Member(Logistic(), waves=Waves(0.5, shape=shape))], 2)
    bank.learn_many(rows, targets)
    before = bank.predict_many(rows[:50]).probability_of_one()
    bank.retell(np.array([1.0, 2.0]), np.array([0.0, 3.0]))
    np.testing.assert_allclose(bank.predict_many(others[:50]).probability_of_one(), before, atol=0.02)


@compiled
def test_steps_find_edges_in_fewer_rows_than_cosines() -> None:
    rng = np.random.default_rng(9)
    inputs = rng.normal(size=(3000, 4))
    rows = np.column_stack([np.ones(3000), inputs])
    targets = np.sign(inputs - [-0.6, -0.2, 0.3, 0.7]).sum(axis=1) + 0.3 * rng.normal(size=3000)
    every = [Waves(scale, inputs=1, shape=shape) for shape in ("cosine", "step") for scale in (0.1, 0.25, 0.5, 1.0)]
    bank = Bank([Member(Gaussian(), waves=waves, noise_memory=math.inf) for waves in every], 5)
    bank.learn_many(rows, targets)
    believed = bank.settings("waves")
    assert sum(believed[waves] for waves in every if waves.shape == "step") > 0.99
    rows[:, 1:] = 1e6 * inputs  # far beyond all edges
    assert np.isfinite(bank.predict_many(rows[:10]).mean).all()


@pytest.mark.parametrize("shape", ["cosine", "step"])
@pytest.mark.parametrize("scale", [0.25, 1.0, 4.0])
def test_a_function_of_waves_has_the_variance_that_was_asked_for(shape: str, scale: float) -> None:
    """Of cosines anywhere, of steps far out; as 2,000 phases have it, with a standard error of 0.05 at most."""
    waves = Waves(scale, n_waves=2000, amplitude=3.0, inputs=1, shape=shape)
    bank = Bank([Member(Probit(), prior_variance=(1e-30,) * 3, waves=waves)], 3)
    row = [[1.0, 1e5, -2e5]] if shape == "step" else [[1.0, 0.3, -0.7]]
    assert bank.predict_many(row).latents[0].variance[0] == pytest.approx(3.0, abs=0.15)


@pytest.mark.parametrize("shape", ["cosine", "step"])
def test_a_missing_input_leaves_of_waves_what_is_expected(shape: str) -> None:
    """E of a wave over the missing x ~ N(0, 1), by sampling: its standard error is below 0.002."""
    bank = Bank([Member(Probit(), waves=Waves(1.0, n_waves=5, shape=shape))], 2)
    bank.belief.mean[...] = np.linspace(-1.0, 1.0, 7)
    bank.belief.mean[:2] = 0.0
    row, missing = np.array([[0.7, 0.0]]), np.array([[False, True]])
    drawn = np.column_stack([np.full(200_000, 0.7), np.random.default_rng(5).normal(size=200_000)])
    angles = drawn @ bank.belief.frequency[0].T + bank.belief.phase[0]
    drawn = np.cos(angles) if shape == "cosine" else special.erf(angles / math.sqrt(2.0))
    expected = np.mean(bank.plan.amplitude[0] * drawn @ bank.belief.mean[2:])
    assert bank.predict_many(row, missing).latents[0].mean[0] == pytest.approx(expected, abs=0.01)


# Past targets and changes


@compiled
def test_labels_that_repeat_themselves_are_seen() -> None:
    rng = np.random.default_rng(6)
    labels = np.cumprod(np.where(rng.random(1500) < 0.05, -1.0, 1.0))  # one in twenty differs from the last
    rows = rng.normal(size=(1500, 2))
    bank = Bank([Member(Logistic()), Member(Logistic(), past=2)], 2)
    said = bank.learn_many(rows, labels)
    assert np.mean(np.sign(said.mean[200:]) == labels[200:]) > 0.92  # to repeat the last gets 0.95 ± 0.006
    assert bank.settings("past")[2] > 0.99


@compiled
def test_a_change_is_found_where_it_was() -> None:
    rows, targets = signs(4000)
    targets[2000:] *= -1.0
    members = [Member(Probit(), drift) for drift in (0.0, 1e-4)] + [Member(Probit(), restarts=True) for _ in range(4)]
    bank = Bank(members, 3, budget=100.0)
    said = bank.learn_many(rows, targets)
    (change,) = bank.change_points()
    assert 2000 <= change.row <= 2000 + 128
    assert change.probability > 0.5
    assert bank.drift_probability > 0.5
    assert np.mean(np.sign(said.mean[2200:]) == targets[2200:]) > 0.83
    moved = bank.what_changed(since=1900)
    assert {moved[0].feature, moved[1].feature} == {0, 1}
    assert abs(moved[0].deviations) > 4.0


@compiled
def test_a_stream_that_stays_has_no_changes() -> None:
    rows, targets = signs(6000, seed=1)
    members = [Member(Probit(), drift) for drift in (0.0, 1e-4)] + [Member(Probit(), restarts=True) for _ in range(4)]
    bank = Bank(members, 3, budget=100.0)
    bank.learn_many(rows, targets)
    assert bank.change_points() == []
    assert all(abs(change.deviations) < 4.0 for change in bank.what_changed(since=3000))


# Who sleeps


@compiled
def test_the_hopeless_sleep_and_wake_when_all_changes() -> None:
    rows, targets = signs(6000, seed=2)
    targets[4000:] *= -1.0
    drifts = (0.0, 1e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-2, 1e-1)
    bank = Bank([Member(Probit(), drift) for drift in drifts], 3, budget=100.0)
    free = Bank([Member(Probit(), drift) for drift in drifts], 3)
    bank.learn_many(rows[:4000], targets[:4000])
    assert bank.awake[0]
    assert bank.awake.sum() >= 6  # the best few
    assert not bank.awake[-1]
    bank.learn_many(rows[4000:4256], targets[4000:4256])
    assert bank.awake[-1]
    bank.learn_many(rows[4256:], targets[4256:])
    free.learn_many(rows, targets)
    assert bank.log_evidence > free.log_evidence - 30.0  # of about -2,300


@compiled
def test_sleep_does_not_depend_on_chunks() -> None:
    rows, targets = signs(1500, seed=3)
    members = [Member(Probit(), drift) for drift in (0.0, 1e-2, 1e-1)] + [Member(Probit(), restarts=True)] * 2
    whole, parts = (Bank(members, 3, budget=1.0) for _ in range(2))
    whole.learn_many(rows, targets)
    for start in range(0, 1500, 77):
        parts.learn_many(rows[start : start + 77], targets[start : start + 77])
    for one, two in zip(whole.belief, parts.belief, strict=True):
        np.testing.assert_array_equal(one, two)
    assert not whole.awake.all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Waves(scale=0.0), "`scale` must be positive"),
        (lambda: Waves(n_waves=0), "`n_waves` must be a whole number, at least 1"),
        (lambda: Waves(inputs=0), "`inputs` must be a whole number, at least 1"),
        (lambda: Waves(shape="square"), "`shape` must be one of 'cosine', 'step'; got 'square'"),
        (lambda: Member(Probit(), waves=3), "`waves` must be Waves"),  # type: ignore[arg-type]  # on purpose
        (lambda: Member(Probit(), past=-1), "`past` must be a whole number from 0 to 64"),
        (lambda: Member(Probit(), noise_memory=10.0), "noise is learnt in units of it"),
        (lambda: Member(Gaussian(), noise_memory=0.0), "at least 1, or None"),
        (lambda: Bank([Member(Probit(), waves=Waves(n_waves=n)) for n in (3, 4)], 2), "same `n_waves`"),
        (lambda: Bank([Member(Probit())], 2, budget=-1.0), "microseconds above 0"),
    ],
)
def test_what_does_not_fit_is_refused(make: Any, message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        make()
