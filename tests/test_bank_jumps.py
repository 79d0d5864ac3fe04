"""Rows that are jumps, and rates that jitter: against recursions written out, and what made the targets."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm, poisson
from scipy.stats import t as student

from bayou import Bank, Gaussian, Member, NegativeBinomial, Poisson
from bayou.contracts import Vector
from bayou.errors import InvalidSpec
from bayou.numerics.jit import COMPILED

compiled = pytest.mark.skipif(not COMPILED, reason="too many rows for plain Python")


def last(memory: float, tails: float = math.inf, jumps: bool = False) -> Member:
    same = {"past": 1, "past_variance": 1e-12, "past_mean": 1.0}
    return Member(Gaussian(), 0.0, 1e-12, noise_memory=memory, tails=tails, jumps=jumps, **same)  # type: ignore[arg-type]


def jumping(n: int, seed: int, alone: float = 0.98, again: float = 0.6) -> Vector:
    """A walk of small steps, with large ones alone or in runs."""
    random = np.random.default_rng(seed)
    jumps = np.zeros(n, dtype=bool)
    for i in range(1, n):
        jumps[i] = random.uniform() < (again if jumps[i - 1] else 1.0 - alone)
    y: Vector = np.cumsum(np.where(jumps, 20.0, 0.5) * random.normal(size=n))
    return y


def test_jumps_are_those_of_a_chain_of_two_states() -> None:
    """What is given to targets, shares and chances: by the joint probability of each row and the one before."""
    y = jumping(400, seed=1)
    bank = Bank([last(50.0, tails=3.0), last(math.inf, jumps=True)], 1, switching=[0.0])
    said = bank.learn_many(np.ones((400, 1)), y)
    counts, before = np.array([[50.0, 0.5], [2.0, 0.5]]), np.array([1.0, 0.0])  # from and to: none, and jump
    shape, rate = 0.5, 0.5  # of the noise of jumps
    for i, value in enumerate(y):
        joint = before[:, None] * counts / counts.sum(axis=1, keepdims=True)
        if i == 0:  # both are as probable before anything has come
            joint = 0.5 * counts / counts.sum(axis=1, keepdims=True)
        latent = said.latents[0]
        spread = math.sqrt(latent.noise[i] * (1.0 + latent.variance[i]))
        error = value - latent.mean[i]
        given = np.array(
            [
                student.pdf(error / spread, latent.degrees[i]) / spread,
                student.pdf(error / math.sqrt(rate / shape), 2.0 * shape) / math.sqrt(rate / shape),
            ]
        )
        np.testing.assert_allclose(said.shares[i], joint.sum(axis=0), rtol=1e-9)
        assert said.evidence is not None
        assert said.evidence[i] == pytest.approx(math.log(joint.sum(axis=0) @ given), rel=1e-9, abs=1e-9)
        joint *= given
        after = joint.sum(axis=0) / joint.sum()
        known = before if i else np.array([1.0, 0.0])  # of the row before there is nothing to know
        told = known[:, None] * counts / counts.sum(axis=1, keepdims=True)
        counts += told / told.sum(axis=0) * after
        shape, rate, before = shape + 0.5 * after[1], rate + 0.5 * after[1] * error**2, after
        near = latent.noise[min(i + 1, 399)]  # of who is believed if it was no jump
        rate = max(rate, shape * min(16.0 * near, 1.0))


@compiled
def test_chances_and_sizes_of_jumps_are_found() -> None:
    n = 20_000
    y = jumping(n, seed=2)
    bank = Bank([last(math.inf), last(math.inf, jumps=True)], 1, switching=[0.0])
    said = bank.learn_many(np.ones((n, 1)), y)
    after_none, none, after_jump, no_more, _ = bank.belief.jumps[1]
    assert after_none / (after_none + none) == pytest.approx(0.02, rel=0.15)
    assert after_jump / (after_jump + no_more) == pytest.approx(0.6, rel=0.1)
    np.testing.assert_allclose(np.sqrt(bank.belief.noise[:, 1] / bank.belief.noise[:, 0]), [0.5, 20.0], rtol=0.1)
    steps, weights, true = np.diff(y), np.log([1.0, 1e-300]), 0.0  # by a filter that has the settings that made it
    move = np.log([[0.98, 0.02], [0.4, 0.6]])
    for step in steps:
        weights = logsumexp(weights[:, None] + move, axis=0) + norm.logpdf(step, scale=[0.5, 20.0])
        true += logsumexp(weights)
        weights -= logsumexp(weights)
    assert said.evidence is not None
    assert said.evidence[1:].sum() > true - 40.0


@compiled
def test_who_foresees_many_rows_foresees_jumps_as_often_as_they_come() -> None:
    bank = Bank([last(math.inf), last(math.inf, jumps=True)], 1, switching=[0.0])
    bank.learn_many(np.ones((3001, 1)), np.append(jumping(3000, seed=3), 50.0))  # the latest was one
    none, jump = (bank.belief.jumps[1, at] / bank.belief.jumps[1, at : at + 2].sum() for at in (0, 2))
    chain = np.array([[1.0 - none, none], [1.0 - jump, jump]])
    for ahead in (0, 1, 7):
        wanted = np.linalg.matrix_power(chain, ahead + 1)[1]
        np.testing.assert_allclose(bank.predict_one([1.0], ahead=ahead).shares[0], wanted, rtol=1e-6)


MEMBERS = {
    "jumps": [last(20.0, tails=3.0), last(200.0), last(math.inf, jumps=True), Member(Gaussian(), noise_memory=50.0)],
    "jitter": [
        Member(Poisson(), past=1, past_mean=1.0, noise_memory=50.0),
        Member(Poisson(), noise_memory=math.inf),
        Member(NegativeBinomial(0.1)),
    ],
}


@pytest.mark.parametrize("kind", MEMBERS)
def test_at_once_late_in_chunks_and_from_a_file_is_the_same(kind: str) -> None:
    random = np.random.default_rng(4)
    X, y = np.ones((120, 1)), jumping(120, seed=5, alone=0.9)
    if kind == "jitter":
        y = random.poisson(np.exp(1.0 + 0.5 * random.normal(size=120))).astype(float)
    banks = [Bank(MEMBERS[kind], 1) for _ in range(3)]
    banks[0].learn_many(X, y)
    for i in range(120):
        banks[1].learn_late(banks[1].forecast(X[i]), y[i])
        banks[2].learn_one(X[i], y[i])
        banks[2] = Bank.from_state(banks[2].to_state())
    for other in banks[1:]:
        for name, array in banks[0].belief._asdict().items():
            np.testing.assert_allclose(getattr(other.belief, name), array, rtol=1e-9, atol=1e-12, err_msg=name)


@compiled
@pytest.mark.parametrize("size", [0.05, 0.3])
def test_the_jitter_of_rates_is_found(size: float) -> None:
    """Counts about a rate whose log has noise, and what the learner has that knows how large that is."""
    random, n = np.random.default_rng(6), 8000
    y = random.poisson(np.exp(5.0 + size * random.normal(size=n))).astype(float)
    bank = Bank([Member(Poisson(), prior_variance=36.0, noise_memory=math.inf)], 1)
    said = bank.learn_many(np.ones((n, 1)), y)
    shape, rate = bank.belief.noise[0]
    assert math.sqrt(rate / shape) == pytest.approx(size, rel=0.05)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    rates = np.exp(5.0 + size * nodes)
    true = logsumexp(poisson.logpmf(y[:, None], rates), b=weights / weights.sum(), axis=1)
    assert said.evidence is not None
    assert said.evidence[50:].mean() > true[50:].mean() - 0.003


def test_what_jumps_and_jitters_is_checked() -> None:
    with pytest.raises(InvalidSpec, match="`jumps` must be True or False"):
        Member(Gaussian(), jumps=1)  # type: ignore[arg-type]
    with pytest.raises(InvalidSpec, match="`jumps` are of members that learn their noise"):
        Member(Gaussian(), jumps=True)
    with pytest.raises(InvalidSpec, match="`tails` and `jumps` are of noise of numbers"):
        Member(Poisson(), noise_memory=50.0, jumps=True)
