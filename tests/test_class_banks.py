"""Banks of classes: against learners alone, other routes to the same numbers, and streams of several classes."""

from __future__ import annotations

import itertools
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bayou
from bayou import Bank, FullGaussian, Learner, Logistic, Member, MomentMatching, Ordinal, Softmax, Waves
from bayou.errors import ImproperBelief, InvalidSpec, InvalidTarget, ShapeMismatch
from bayou.numerics.jit import COMPILED
from bayou.numerics.quick_race import race, race_room, race_slopes

MANY = 300 if COMPILED else 20
compiled = pytest.mark.skipif(not COMPILED, reason="takes long in plain Python")


def stream(n: int = MANY, d: int = 3, k: int = 4, seed: int = 0, turns: float = 0.0) -> tuple[Any, Any]:
    """Classes drawn by a softmax of linear functions of normal features, which turn into others by and by."""
    random = np.random.default_rng(seed)
    rows, first, last = random.normal(size=(n, d)), random.normal(size=(d, k)), random.normal(size=(d, k))
    angle = turns * np.pi / 2.0 * np.arange(n)[:, None] / n
    latent = 2.0 * (np.cos(angle) * (rows @ first) + np.sin(angle) * (rows @ last))
    return rows, np.argmax(latent + random.gumbel(size=(n, k)), axis=1).astype(float)


def bank_of(drifts: Any = (0.0, 1e-4, 1e-2), d: int = 3, k: int = 4, **given: Any) -> Bank:
    return Bank([Member(Softmax(k), drift) for drift in drifts], d, **given)


def all_kinds(k: int = 4) -> list[Member]:
    kind, waves = Softmax(k), Waves(0.5, n_waves=4)
    return [
        Member(kind),
        Member(kind, 1e-3, past=2),
        Member(kind, 1e-2, 10.0, waves=waves),
        Member(kind, 0.0, 0.5, past=1, past_variance=3.0, waves=waves),
        Member(kind, restarts=True),
    ]


# Members


def test_a_member_that_does_not_drift_learns_as_a_learner_does() -> None:
    """But for the race, which a bank runs to five digits."""
    rows, targets = stream()
    random = np.random.default_rng(1)
    missing, counts = random.random(rows.shape) < 0.1, random.integers(1, 4, len(rows)).astype(float)
    rows[missing] = 0.0
    bank = Bank([Member(Softmax(4), prior_variance=0.7)], 3)
    learner = Learner(Softmax(4), FullGaussian(prior_variance=0.7), MomentMatching(), 3)
    said, expected = (model.learn_many(rows, targets, counts, missing) for model in (bank, learner))
    np.testing.assert_allclose(said.probabilities, learner.likelihood.probabilities(expected.latent), atol=2e-4)
    for c, belief in enumerate(learner.beliefs()):
        np.testing.assert_allclose(bank.mean_of(0, c), belief.mean, atol=1e-3)
        np.testing.assert_allclose(bank.covariance_of(0, c), learner.posterior.covariance(belief), atol=1e-3)
    assert bank.log_evidence == pytest.approx(learner.log_evidence, rel=1e-4)
    assert bank.n_examples == learner.n_examples


def test_latents_walk_and_absorb_as_precisions_say() -> None:
    """Drift, missing inputs and past labels: by precisions and their inverses, to the digits there are."""
    k, d, drift, prior = 3, 2, 0.02, 0.8
    rows, targets = stream(25, d, k)
    missing = np.random.default_rng(2).random(rows.shape) < 0.2
    rows[missing] = 0.0
    bank = Bank([Member(Softmax(k), drift, prior, past=1, past_variance=2.0)], d)
    said = bank.learn_many(rows, targets, missing=missing)
    ceiling = np.array([prior, prior, 2.0])
    means, covariances, room = np.zeros((k, d + 1)), np.stack([np.diag(ceiling)] * k), race_room(k)
    for n, (row, y) in enumerate(zip(rows, targets.astype(int), strict=True)):
        probability, slope, curvature = np.empty(k), np.empty(k), np.empty(k)
        x = np.array([[*row, float(n > 0 and targets[n - 1] == c)] for c in range(k)])
        for covariance in covariances:
            covariance[np.diag_indices(d + 1)] = np.minimum(np.diag(covariance) + drift * ceiling, ceiling)
        variance = np.einsum("ci,cij,cj->c", x, covariances, x)
        gone = missing[n]
        blur = np.array([(means[c, :d] ** 2 + np.diag(covariances[c])[:d])[gone].sum() for c in range(k)])
        race_slopes(y, race((means * x).sum(axis=1), variance + blur, probability, room), slope, curvature, room)
        np.testing.assert_allclose(said.probabilities[n], probability, rtol=1e-9)
        for c in range(k):
            # The target tells of the sum of both parts of the latent: its site on the sum, seen through the blur.
            kept = 1.0 - (variance[c] + blur[c]) * curvature[c]
            site = curvature[c] / kept
            seen = site / (1.0 + site * blur[c])
            shift = np.linalg.inv(covariances[c]) @ means[c]
            towards = means[c] @ x[c] + slope[c] / curvature[c]  # where the site on the sum has its mean
            precision = np.linalg.inv(covariances[c]) + seen * np.outer(x[c], x[c])
            covariances[c] = np.linalg.inv(precision)
            means[c] = covariances[c] @ (shift + seen * towards * x[c])
    for c in range(k):
        np.testing.assert_allclose(bank.mean_of(0, c), means[c], rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(bank.covariance_of(0, c), covariances[c], rtol=1e-8, atol=1e-10)


def test_predictions_are_what_learning_says_and_ahead_of_that_less_sure() -> None:
    rows, targets = stream()
    bank = Bank(all_kinds(), 3)
    bank.learn_many(rows[:-1], targets[:-1])
    now, later = bank.predict_many(rows[-1:]), bank.predict_many(rows[-1:], ahead=1e4)
    learnt = bank.copy().learn_many(rows[-1:], targets[-1:])
    np.testing.assert_allclose(learnt.probabilities, now.probabilities, rtol=1e-9)
    assert bank.copy().learn_many(rows[-1:], targets[-1:], [0.0]).evidence == pytest.approx(learnt.evidence)
    assert learnt.evidence == pytest.approx(now.log_probability(targets[-1:]))
    drifting, fixed = 2, 0
    assert np.ptp(later.of_members[0, drifting]) < np.ptp(now.of_members[0, drifting])
    np.testing.assert_allclose(later.of_members[0, fixed], now.of_members[0, fixed], rtol=1e-9)


def test_what_is_said_is_a_distribution() -> None:
    rows, targets = stream()
    bank = Bank(all_kinds(), 3)
    said = bank.learn_many(rows, targets)
    p = said.probabilities
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_allclose(said.of_members.sum(axis=2), 1.0)
    np.testing.assert_allclose(said.evidence, said.log_probability(targets), rtol=1e-9)
    numbers = np.arange(4.0)
    np.testing.assert_allclose(said.mean, p @ numbers)
    np.testing.assert_allclose(said.variance, p @ numbers**2 - (p @ numbers) ** 2, atol=1e-12)
    np.testing.assert_allclose(said.cumulative(1.5), p[:, :2].sum(axis=1))
    low, high = said.interval(0.8).T
    assert np.all(said.cumulative(low) >= 0.1)
    assert np.all(said.cumulative(low - 1.0) < 0.1)
    assert np.all(said.cumulative(high) >= 0.9)
    assert np.all(said.cumulative(high - 1.0) < 0.9)
    one = bank.predict_one(rows[0])
    assert one.mean == pytest.approx(bank.predict_many(rows[:1]).mean[0])
    np.testing.assert_array_equal(said[3:5].probabilities, p[3:5])


# Weights of members


def test_weights_are_a_sum_over_all_that_may_have_happened() -> None:
    """Two members, five rows: every sequence of members, told out, for every rate of switching."""
    n, rates = 5, (0.0, 0.2)
    rows, targets = stream(n)
    bank, twin = (bank_of((0.0, 0.1), switching=rates) for _ in range(2))
    drawn = []
    for x, y in zip(rows, targets, strict=True):
        drawn.append(0.05 + 0.9 * twin.belief.usual)  # one in ten is anybody of two, the others who was believed
        twin.learn_one(x, y)
    said = bank.learn_many(rows, targets)
    given = said.of_members[np.arange(n), :, targets.astype(int)]
    totals = np.zeros((len(rates), 2))
    for (k, rate), path in itertools.product(enumerate(rates), itertools.product((0, 1), repeat=n + 1)):
        chance = 0.25  # of the rate, and of the first member
        for t, (now, after) in enumerate(itertools.pairwise(path)):
            chance *= rate * drawn[t][after] + (1.0 - rate) * (now == after)
        totals[k, path[-1]] += chance * math.prod(given[t, path[t + 1]] for t in range(n))
    assert bank.log_evidence == pytest.approx(math.log(totals.sum()), rel=1e-12)
    np.testing.assert_allclose(bank.belief.chains, totals / totals.sum(), rtol=1e-10)


@compiled
def test_a_stream_that_turns_is_followed() -> None:
    rows, targets = stream(4000, turns=2.0)
    bank, alone = bank_of((0.0, 1e-3, 1e-2)), bank_of((0.0,))
    bank.learn_many(rows, targets)
    alone.learn_many(rows, targets)
    assert bank.drift_probability > 0.99
    assert bank.log_evidence > alone.log_evidence + 500.0


@compiled
def test_what_bends_is_found() -> None:
    random = np.random.default_rng(3)
    rows = np.column_stack([np.ones(2000), random.normal(size=(2000, 2))])
    targets = np.digitize(np.hypot(rows[:, 1], rows[:, 2]), [0.8, 1.4]).astype(float)  # three rings
    bank = Bank([Member(Softmax(3)), Member(Softmax(3), waves=Waves(0.5))], 3)
    said = bank.learn_many(rows, targets)
    assert np.mean(np.argmax(said.probabilities, axis=1)[500:] == targets[500:]) > 0.85  # planes get 0.4
    assert bank.settings("waves")[Waves(0.5)] > 0.99


@compiled
def test_a_change_of_everything_is_found_where_it_was() -> None:
    rows, targets = stream(4000)
    targets[2000:] = (targets[2000:] + 1.0) % 4.0
    bank = Bank([Member(Softmax(4)), *(Member(Softmax(4), restarts=True) for _ in range(3))], 3)
    bank.learn_many(rows, targets)
    found = bank.change_points()
    assert [change for change in found if 1900 <= change.row <= 2200 and change.probability > 0.9]
    moved = bank.what_changed(since=1800)
    assert {change.latent for change in moved} == {0, 1, 2, 3}
    assert {change.feature for change in moved} == {0, 1, 2}


@compiled
def test_the_hopeless_sleep_in_chunks_of_any_size() -> None:
    rows, targets = stream(1500)
    whole, parts = (Bank(all_kinds(), 3, budget=8.0) for _ in range(2))
    whole.learn_many(rows, targets)
    for start in range(0, len(rows), 137):
        parts.learn_many(rows[start : start + 137], targets[start : start + 137])
    assert not whole.awake.all()
    for one, two in zip(whole.belief, parts.belief, strict=True):
        np.testing.assert_array_equal(one, two)


# Late labels


def test_a_label_that_comes_at_once_is_learnt_as_usual() -> None:
    rows, targets = stream(40 if COMPILED else 8)
    missing = np.random.default_rng(8).random(rows.shape) < 0.1
    rows[missing] = 0.0
    late, usual = Bank(all_kinds(), 3), Bank(all_kinds(), 3)
    usual.learn_many(rows, targets, missing=missing)
    for x, y, mask in zip(rows, targets, missing, strict=True):
        late.learn_late(late.forecast(x, mask), y)
    for one, two in zip(late.belief, usual.belief, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-12)
    assert late.log_evidence == pytest.approx(usual.log_evidence, rel=1e-12)


def test_late_labels_weigh_what_was_said_and_tell_less_of_weights_that_walk() -> None:
    rows, targets = stream(30)
    bank = bank_of((0.0, 0.05))
    bank.learn_many(rows[:15], targets[:15])
    soon = bank.copy()
    forecast = bank.forecast(rows[15])
    said, evidence = forecast.prediction.log_probability(targets[15]), bank.log_evidence
    for x in rows[16:]:
        bank.forecast(x)
    before = [bank.covariance_of(m, 0).copy() for m in range(2)]
    bank.learn_late(forecast, targets[15])
    assert bank.log_evidence - evidence == pytest.approx(said, rel=1e-9)
    soon_before = soon.covariance_of(1, 0).copy()
    soon.learn_late(soon.forecast(rows[15]), targets[15])
    assert np.trace(before[1] - bank.covariance_of(1, 0)) < np.trace(soon_before - soon.covariance_of(1, 0))
    for m, c in itertools.product(range(2), range(4)):
        assert np.linalg.eigvalsh(bank.covariance_of(m, c)).min() > 0.0
    with pytest.raises(InvalidTarget, match="got 4"):
        bank.learn_late(forecast, 4.0)
    with pytest.raises(ShapeMismatch, match="of this bank"):
        bank_of(k=5).learn_late(forecast, 1.0)


# Streams, files, mistakes


def test_parts_of_any_size_single_rows_files_and_pickles_give_the_same_bits(tmp_path: Path) -> None:
    rows, targets = stream(50 if COMPILED else 9)
    whole, parts, singly = (Bank(all_kinds(), 3) for _ in range(3))
    whole.learn_many(rows, targets)
    for start in range(0, len(rows), 7):
        parts.learn_many(rows[start : start + 7], targets[start : start + 7])
        bayou.save(parts, tmp_path / "bank.bayou")
        parts = bayou.load(tmp_path / "bank.bayou")
    for x, y in zip(rows, targets, strict=True):
        singly.learn_row(x, np.zeros((0, 0), dtype=bool), y)
    for other in (parts, singly, pickle.loads(pickle.dumps(whole)), whole.copy()):
        for one, two in zip(whole.belief, other.belief, strict=True):
            np.testing.assert_array_equal(one, two)
        assert other.log_evidence == pytest.approx(whole.log_evidence, rel=1e-12)


def test_more_inputs_leave_what_was_known() -> None:
    rows, targets = stream(40 if COMPILED else 9)
    bank, wider = Bank(all_kinds(), 3), Bank(all_kinds(), 3)
    bank.learn_many(rows, targets)
    wider.learn_many(rows, targets)
    wider.extend(5)
    more = np.column_stack([rows, np.zeros((len(rows), 2))])
    np.testing.assert_allclose(wider.predict_many(more).probabilities, bank.predict_many(rows).probabilities, rtol=1e-9)
    assert wider.what_changed() == []
    wider.learn_many(more, targets)
    assert wider.n_examples == 2 * len(rows)


@compiled
def test_inputs_told_otherwise_leave_what_is_said_but_for_the_prior() -> None:
    rows, targets = stream(MANY)
    rows[:, 0] = 1.0
    bank = Bank([Member(Softmax(4), prior_variance=100.0)], 3)
    bank.learn_many(rows, targets)
    before = bank.predict_many(rows[:20]).probabilities
    scale, shift = np.array([1.0, 2.0, 0.5]), np.array([0.0, 0.3, -0.2])
    told = rows.copy()
    told[:, 1:] = (rows[:, 1:] - shift[1:]) / scale[1:]
    bank.retell(scale, shift)
    np.testing.assert_allclose(bank.predict_many(told[:20]).probabilities, before, atol=0.03)


def test_banks_are_merged_and_parts_are_taken_away() -> None:
    rows, targets = stream(60 if COMPILED else 12)
    half = len(rows) // 2
    first, second, whole = (bank_of((0.0,)) for _ in range(3))
    first.learn_many(rows[:half], targets[:half])
    second.learn_many(rows[half:], targets[half:])
    whole.learn_many(rows, targets)
    merged = first.merged([second])
    assert merged.n_examples == len(rows)
    apart = np.abs(whole.predict_many(rows).probabilities - merged.predict_many(rows).probabilities)
    assert apart.mean() < 0.05  # sites found apart are not those found together, but near
    again = merged.without(second)
    for name in ("mean", "covariance", "chains"):
        np.testing.assert_allclose(getattr(again.belief, name), getattr(first.belief, name), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("rows", "targets", "error"),
    [
        (np.zeros((2, 3)), [1.0, 4.0], InvalidTarget),
        (np.zeros((2, 2)), [1.0, 1.0], ShapeMismatch),
        (np.array([[1.0, 0.0, 0.0], [1e200, 1.0, 1.0]]), [1.0, 1.0], ImproperBelief),
    ],
)
def test_bad_rows_leave_all_as_it_was(rows: Any, targets: Any, error: Any) -> None:
    bank = Bank(all_kinds(), 3)
    bank.learn_many(*stream(9))
    before = [array.copy() for array in bank.belief]
    with pytest.raises(error):
        bank.learn_many(rows, targets)
    for array, saved in zip(bank.belief, before, strict=True):
        np.testing.assert_array_equal(array, saved)


def test_members_of_other_targets_are_refused() -> None:
    for other in (Member(Softmax(4)), Member(Ordinal((-1.0, 1.0))), Member(Logistic())):
        with pytest.raises(InvalidSpec, match="the same targets"):
            Bank([Member(Softmax(3)), other], 2)
    with pytest.raises(InvalidSpec, match="noise"):
        Member(Softmax(3), noise_memory=10.0)


# One class more


def test_a_class_more_leaves_what_was_known_of_the_others() -> None:
    rows, targets = stream(MANY, k=3)
    rows[:, 0] = 2.0  # the constant
    bank = Bank(all_kinds(3), 3, budget=100.0)
    bank.learn_many(rows, targets)
    wider = bank.with_one_class_more(all_kinds(4), 2.0)
    was, now = bank.predict_many(rows[:20]).of_members, wider.predict_many(rows[:20]).of_members
    others = now[:, :, :3] / now[:, :, :3].sum(axis=2, keepdims=True)
    np.testing.assert_allclose(others, was, atol=0.05)
    assert now[:, 0, 3].mean() < 0.1  # it never came
    np.testing.assert_allclose(wider.weights, bank.weights)
    assert (wider.n_examples, wider.log_evidence, wider.n_steps) == (bank.n_examples, bank.log_evidence, bank.n_steps)
    for c in range(3):
        np.testing.assert_array_equal(wider.covariance_of(3, c), bank.covariance_of(3, c))
    wider.learn_many(rows, np.full(len(rows), 3.0))
    assert wider.predict_many(rows).probabilities[:, 3].min() > 0.5


def test_two_classes_become_three() -> None:
    rows, targets = stream(MANY, k=2)
    rows[:, 0] = 2.0
    scalar = [Member(Logistic()), Member(Logistic(), 1e-3, past=2), Member(Logistic(), waves=Waves(0.5, n_waves=4))]
    bank = Bank(scalar, 3)
    said = bank.learn_many(rows, 2.0 * targets - 1.0)
    assert said.shares.shape[1] == 3
    classes = [Member(Softmax(3)), Member(Softmax(3), 1e-3, past=2), Member(Softmax(3), waves=Waves(0.5, n_waves=4))]
    wider = bank.with_one_class_more([*classes, Member(Softmax(3), 0.0, 10.0)], 2.0)
    now = wider.predict_many(rows[:20]).of_members
    then = bank.predict_many(rows[:20])
    for m in range(3):
        second = 0.5 * (1.0 + Logistic().moments(then.latents[m])[0])
        np.testing.assert_allclose(now[:, m, 1] / now[:, m, :2].sum(axis=1), second, atol=0.05)
    assert wider.weights.sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(wider.belief.past, targets[::-1][:2])
