"""Banks in shards: members that know nothing of time add up one by one, and are weighed as one pass weighs them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, logsumexp
from scipy.stats import multivariate_normal, multivariate_t

from bayou import (
    Bank,
    FlipProbit,
    FullGaussian,
    Gaussian,
    Hashing,
    Logistic,
    Member,
    OnlineClassifier,
    OnlineCounter,
    OnlineRegressor,
    Poisson,
    Probit,
    Softmax,
    Waves,
    load,
    merge,
    save,
    subtract,
)
from bayou.distributed import Fitted, InProcess, fit
from bayou.errors import InvalidSpec, InvalidTarget, ShapeMismatch
from tests.distributed import made

RAW = made.rows()
X = np.column_stack([np.ones(len(RAW)), (RAW - RAW.mean(axis=0)) / RAW.std(axis=0)])
NUMBERS, SIGNS = made.numbers(RAW), np.where(made.labels(RAW), 1.0, -1.0)
NEVER = (0.0,)
NUMBER_MEMBERS = (
    Member(Gaussian(4.0)),
    Member(Gaussian(4.0), prior_variance=10.0),
    Member(Gaussian(3.5), prior_variance=(10.0, 5.0, 1.0, 1.0, 2.0)),
    Member(Gaussian(), prior_variance=10.0, noise_memory=math.inf),
    Member(Gaussian(4.0), prior_variance=10.0, waves=Waves(n_waves=10)),
)


def here(bank: Bank, source: Any, **options: Any) -> Fitted:
    return fit(bank, source, engine=InProcess(), **options)


def learnt(members: Any, rows: Any, targets: Any, switching: Any = NEVER) -> Bank:
    bank = Bank(members, rows.shape[1], switching)
    bank.learn_many(rows, targets)
    return bank


def assert_same(one: Bank, other: Bank) -> None:
    """All that two banks believe, in deviations of the weights and in nats."""
    for m in range(len(one.members)):
        deviations = np.sqrt(np.diagonal(other.covariance_of(m)))
        assert np.abs((one.mean_of(m) - other.mean_of(m)) / deviations).max() < 1e-10
        apart = one.covariance_of(m) - other.covariance_of(m)
        assert np.abs(apart / np.outer(deviations, deviations)).max() < 1e-10
    np.testing.assert_allclose(one.belief.noise, other.belief.noise, rtol=1e-10)
    np.testing.assert_allclose(np.log(one.weights), np.log(other.weights), rtol=1e-10, atol=1e-9)
    assert one.log_evidence == pytest.approx(other.log_evidence, rel=1e-10)


@pytest.mark.parametrize("places", [[], [1500], [3, 40, 2500], list(range(200, 3000, 200))])
def test_gaussian_members_are_those_of_one_pass_whatever_the_shards(places: list[int]) -> None:
    fitted = here(Bank(NUMBER_MEMBERS, 5, NEVER), made.cut(X, NUMBERS, places))
    assert fitted.exact
    assert len(fitted.rounds) == 1
    assert not fitted.note
    whole = learnt(NUMBER_MEMBERS, X, NUMBERS)
    assert_same(fitted.model, whole)
    np.testing.assert_allclose(fitted.model.predict_many(X[:9]).mean, whole.predict_many(X[:9]).mean, rtol=1e-9)
    assert fitted.model.n_examples == fitted.model.n_steps == len(X)


def test_evidence_is_that_of_all_targets_at_once() -> None:
    """A second way that knows no order of rows: targets are jointly normal, or of Student's t."""
    rows, targets = X[:120], NUMBERS[:120]
    members = (Member(Gaussian(4.0)), Member(Gaussian(3.0), prior_variance=10.0), NUMBER_MEMBERS[3])
    covariances = [rows @ rows.T + 4.0 * np.eye(120), 10.0 * rows @ rows.T + 3.0 * np.eye(120)]
    logs = [multivariate_normal(cov=covariance).logpdf(targets) for covariance in covariances]
    # Noise of shape and rate a half, weights in units of it: one degree of freedom.
    logs.append(multivariate_t(shape=10.0 * rows @ rows.T + np.eye(120), df=1.0).logpdf(targets))
    banks = [here(Bank(members, 5, NEVER), (rows, targets), shards=4).model]
    banks.append(merge(*(learnt(members, rows[part], targets[part]) for part in (slice(50), slice(50, 120)))))
    for bank in banks:
        assert bank.log_evidence == pytest.approx(logsumexp(logs) - math.log(3.0), rel=1e-10)
        np.testing.assert_allclose(np.log(bank.weights), logs - logsumexp(logs), rtol=1e-9, atol=1e-10)


def test_two_processes_are_one(tmp_path: Any) -> None:
    bank = Bank(NUMBER_MEMBERS, 5, NEVER)
    one = here(bank, (X, NUMBERS), shards=4).model
    other = fit(bank, (X, NUMBERS), engine=2, shards=4).model
    for mine, theirs in zip(one.belief, other.belief, strict=True):
        assert mine.tobytes() == theirs.tobytes()
    assert_same(other, learnt(NUMBER_MEMBERS, X, NUMBERS))
    save(other, tmp_path / "bank.bayou")
    again = load(tmp_path / "bank.bayou")
    again.learn_many(X[:500], NUMBERS[:500])  # it goes on
    assert_same(again, learnt(NUMBER_MEMBERS, np.vstack([X, X[:500]]), np.concatenate([NUMBERS, NUMBERS[:500]])))
    assert bank.n_examples == 0


def test_merged_banks_are_weighed_as_one_that_learnt_all() -> None:
    parts = [learnt(NUMBER_MEMBERS[:4], X[k::3], NUMBERS[k::3]) for k in range(3)]
    whole = learnt(NUMBER_MEMBERS[:4], X, NUMBERS)
    both = merge(*parts)
    assert_same(both, whole)
    apart = np.sum([np.log(part.weights) for part in parts], axis=0)
    assert np.abs(apart - logsumexp(apart) - np.log(whole.weights)).max() > 1.0  # what parts gave does not just add up
    rest = subtract(both, parts[0])
    np.testing.assert_allclose(np.log(rest.weights), np.log(merge(*parts[1:]).weights), rtol=1e-6)
    assert rest.log_evidence == pytest.approx(merge(*parts[1:]).log_evidence, rel=1e-9)


def test_with_switching_members_are_weighed_as_if_none_had_switched() -> None:
    rates = (0.0, 1e-4, 1e-1)
    whole = learnt(NUMBER_MEMBERS, X, NUMBERS)
    fitted = here(Bank(NUMBER_MEMBERS, 5, rates, budget=50.0), (X, NUMBERS), shards=3)
    assert "as if they never changed places" in str(fitted)
    bank = fitted.model
    np.testing.assert_allclose(np.log(bank.weights), np.log(whole.weights), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(bank.switching_weights, 1.0 / 3.0)
    assert (bank.switching, bank.budget) == (rates, 50.0)
    parts = [learnt(NUMBER_MEMBERS, X[k::2], NUMBERS[k::2], rates) for k in range(2)]
    both = merge(*parts)
    np.testing.assert_allclose(np.log(both.weights), np.log(whole.weights), rtol=1e-9, atol=1e-8)
    product = parts[0].switching_weights * parts[1].switching_weights
    np.testing.assert_allclose(both.switching_weights, product / product.sum(), rtol=1e-9)


def test_without_a_chain_that_never_switches_weights_are_multiplied() -> None:
    parts = [learnt(NUMBER_MEMBERS[:2], X[k::2], NUMBERS[k::2], (1e-3,)) for k in range(2)]
    product = parts[0].weights * parts[1].weights
    np.testing.assert_allclose(merge(*parts).weights, product / product.sum(), rtol=1e-9)


def test_evidence_of_two_classes_is_near_that_of_an_integral() -> None:
    """One weight, over which all that was given is integrated by another way."""
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(400, 1))
    signs = np.where(rng.random(400) < expit(1.2 * rows[:, 0]), 1.0, -1.0)
    members = (Member(Logistic(), prior_variance=0.01), Member(Logistic()), Member(Logistic(), prior_variance=50.0))

    def log_joint(w: float, variance: float) -> float:
        prior = -0.5 * w * w / variance - 0.5 * math.log(2.0 * math.pi * variance)
        return float(np.log(expit(signs * w * rows[:, 0])).sum()) + prior

    logs = []
    for member in members:
        variance = float(member.prior_variance)  # type: ignore[arg-type]  # one for all
        best = max(log_joint(w, variance) for w in np.linspace(0.0, 2.0, 201))
        area, _ = quad(lambda w, v=variance, b=best: math.exp(log_joint(w, v) - b), -1.0, 4.0, points=[0.5, 1.2])
        logs.append(best + math.log(area))
    fitted = here(Bank(members, 1, NEVER), (rows, signs), shards=4, rounds=6, tolerance=0.005)
    assert not fitted.exact
    off = np.abs(np.log(fitted.model.weights) - (logs - logsumexp(logs)))
    assert off.max() < 0.05
    assert np.abs(np.log(fitted.one_pass.weights) - (logs - logsumexp(logs))).max() > off.max()
    assert fitted.model.log_evidence == pytest.approx(logsumexp(logs) - math.log(3.0), abs=0.05)


def plain(kind: Any, likelihood: Any, variance: float) -> Any:
    """One learner of rows as they are."""
    return kind(likelihood=likelihood, posterior=FullGaussian(variance), fit_intercept=False, standardize=False)


@pytest.mark.parametrize(
    ("kind", "likelihoods", "targets"),
    [
        (OnlineClassifier, (Probit(), Logistic(), FlipProbit(0.05)), SIGNS),
        (OnlineClassifier, (Softmax(3), Softmax(3)), np.digitize(NUMBERS, [4.0, 9.0])),
        (OnlineCounter, (Poisson(), Poisson()), made.counts(RAW)),
    ],
)
def test_other_members_are_refined_as_learners_of_their_own(kind: Any, likelihoods: Any, targets: Any) -> None:
    variances, near = (0.5, 2.0, 1.0), 1e-6
    if isinstance(likelihoods[0], Softmax):
        near = 1e-4  # a bank averages over the latents by another rule than a learner
    members = [Member(one, prior_variance=variance) for one, variance in zip(likelihoods, variances, strict=False)]
    rows, some = X[:1200], targets[:1200]
    fitted = here(Bank(members, 5, NEVER), (rows, some), shards=3, rounds=2, tolerance=1e-6)
    assert not fitted.exact
    assert fitted.rounds[1].log_score > fitted.rounds[0].log_score  # others know more than nothing
    evidence = []
    for m, member in enumerate(members):
        likelihood = None if isinstance(member.likelihood, Softmax) else member.likelihood
        alone = fit(
            plain(kind, likelihood or Logistic(), variances[m]),
            (rows, some),
            engine=InProcess(),
            shards=3,
            rounds=2,
            tolerance=1e-6,
        )
        learner = alone.model._learner_
        for latent, belief in enumerate(learner.beliefs()):
            np.testing.assert_allclose(fitted.model.mean_of(m, latent), belief.mean, rtol=near, atol=near)
            covariance = learner.posterior.covariance(belief)
            np.testing.assert_allclose(fitted.model.covariance_of(m, latent), covariance, rtol=near, atol=near)
        evidence.append(learner.log_evidence)
    np.testing.assert_allclose(
        np.log(fitted.model.weights), evidence - logsumexp(evidence), rtol=near, atol=50.0 * near
    )
    assert set(fitted.scores) & {"log_loss", "rmse"}


def test_heavy_tails_are_refined() -> None:
    outliers = NUMBERS + 60.0 * (np.random.default_rng(3).random(len(X)) < 0.05)
    members = (Member(Gaussian(), prior_variance=10.0, noise_memory=math.inf, tails=3.0),)
    fitted = here(Bank(members, 5, NEVER), (X, outliers), shards=4)
    assert not fitted.exact
    assert fitted.rounds[1].log_score > fitted.rounds[0].log_score
    np.testing.assert_allclose(fitted.model.mean_of(0), np.linalg.lstsq(X, NUMBERS)[0], atol=0.3)


def test_weights_of_rows_count_as_rows_do() -> None:
    counts = np.random.default_rng(5).integers(0, 4, len(X))
    repeated = np.repeat(np.arange(len(X)), counts)
    one = here(Bank(NUMBER_MEMBERS, 5, NEVER), (X, NUMBERS, counts.astype(float)), shards=3).model
    other = learnt(NUMBER_MEMBERS, X[repeated], NUMBERS[repeated])
    assert_same(one, other)
    members = [Member(Probit()), Member(FlipProbit(0.1))]
    one, other = (here(Bank(members, 5, NEVER), (X, SIGNS, *w), shards=3).model for w in ((np.ones(len(X)),), ()))
    np.testing.assert_array_equal(one.belief.mean, other.belief.mean)
    assert one.log_evidence == pytest.approx(other.log_evidence, rel=1e-12)


def test_of_whom_nothing_is_left_in_a_part_nothing_is() -> None:
    rng = np.random.default_rng(6)
    members = [Member(Gaussian(1e-4)), Member(Gaussian(100.0)), Member(Gaussian(1.0))]
    targets = X @ [1.0, 0.5, 0.0, -1.0, 0.0]
    quiet, loud = (targets + noise * rng.normal(size=len(X)) for noise in (0.01, 10.0))
    loud_parts = [learnt(members, X[k::2], loud[k::2]) for k in range(2)]
    np.testing.assert_allclose(merge(*loud_parts).weights, learnt(members, X, loud).weights, atol=1e-12)
    # Here each part is certain of another: no evidence is left that could be compared, and what is left is multiplied.
    torn = merge(learnt(members, X, quiet), learnt(members, X, loud))
    assert torn.weights.sum() == pytest.approx(1.0)
    assert np.isfinite(torn.log_evidence)


def test_missing_values_and_tables() -> None:
    import polars as pl

    holes = X.copy()
    holes[np.random.default_rng(0).random(X.shape) < 0.05] = np.nan
    assert not here(Bank(NUMBER_MEMBERS, 5, NEVER), (holes, NUMBERS), shards=3).exact
    columns = pl.DataFrame({**{f"x{j}": X[:, j] for j in range(5)}, "y": NUMBERS})
    fitted = here(Bank(NUMBER_MEMBERS, 5, NEVER), [columns[:900], columns[900:]], target="y")
    assert_same(fitted.model, learnt(NUMBER_MEMBERS, X, NUMBERS))


TIMELY = {
    "drifts": Member(Gaussian(4.0), drift=1e-3),
    "begins anew": Member(Gaussian(4.0), restarts=True),
    "forgets the noise": Member(Gaussian(), noise_memory=200.0),
    "sees past targets": Member(Gaussian(4.0), past=2),
}


@pytest.mark.parametrize("why", list(TIMELY))
def test_members_that_know_of_time_are_named_and_so_is_the_way(why: str) -> None:
    member = TIMELY[why]
    with pytest.raises(InvalidSpec, match=f"{why}.*Chain the shards in time.*in the order of time") as error:
        here(Bank([Member(Gaussian(4.0)), member], 5), (X, NUMBERS))
    assert repr(member) in str(error.value)


@pytest.mark.parametrize(
    ("estimator", "targets"),
    [(OnlineRegressor(), NUMBERS), (OnlineClassifier(), SIGNS), (OnlineCounter(), made.counts(RAW))],
)
def test_estimators_whose_bank_drifts_say_who(estimator: Any, targets: Any) -> None:
    with pytest.raises(InvalidSpec, match=r"Member\(.*drift=1e-05.* drifts, .*Chain the shards in time"):
        fit(estimator, (X, targets), engine=InProcess())


def test_what_a_bank_cannot_take_is_said() -> None:
    bank = Bank([Member(Probit())], 5)
    with pytest.raises(ShapeMismatch, match="5 columns, as the bank has features; got 4"):
        here(bank, (RAW, SIGNS))
    with pytest.raises(InvalidTarget, match=r"labels must be of \[-1.0, 1.0\]"):
        here(bank, (X, SIGNS > 0.0))
    with pytest.raises(InvalidSpec, match="`learner` is for a TableModel"):
        here(bank, (X, SIGNS), learner=OnlineClassifier(encoder=Hashing()))
