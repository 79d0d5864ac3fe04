"""Sparse rows learn what the same rows told in full do: `DiagonalGaussian` is the second route."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from bayou import (
    DiagonalGaussian,
    FullGaussian,
    Gaussian,
    Learner,
    Logistic,
    MomentMatching,
    Poisson,
    Probit,
    Softmax,
    SparseDiagonalGaussian,
    SparseLearner,
    SparseRows,
    StudentT,
    Variational,
    load,
    save,
    sparse_learner,
)
from bayou.contracts import Likelihood, Rule
from bayou.errors import BayouError, ImproperBelief, InvalidFeatures, InvalidSpec, InvalidTarget, ShapeMismatch
from tests.contracts.grid import RULES, SCALAR, draw_targets, fits

D = 40


def examples(n: int = 60, binary: bool = False, seed: int = 0) -> scipy.sparse.csr_array:
    rng = np.random.default_rng(seed)
    given = scipy.sparse.random_array((n, D), density=0.15, format="csr", rng=rng, data_sampler=rng.standard_normal)
    if binary:
        given.data[:] = 1.0
    return given


def sparse(likelihood: Likelihood, rule: Rule, dtype: str = "float64", constant: float = 0.0) -> SparseLearner:
    posterior = SparseDiagonalGaussian(prior_variance=0.7, prior_mean=0.1, dtype=dtype)
    return SparseLearner(likelihood, posterior, rule, D + (constant != 0.0), constant)


def dense(likelihood: Likelihood, rule: Rule, constant: float = 0.0) -> Learner:
    posterior = DiagonalGaussian(prior_variance=0.7, prior_mean=0.1)
    return Learner(likelihood, posterior, rule, D + (constant != 0.0))


def in_full(rows: scipy.sparse.csr_array, constant: float) -> np.ndarray:
    full = rows.toarray()
    return np.column_stack([full, np.full(len(full), constant)]) if constant else full


POINTS = [
    pytest.param(likelihood, rule, id=f"{type(likelihood).__name__}-{type(rule).__name__}")
    for likelihood in SCALAR
    for rule in RULES
    if fits(likelihood, SparseDiagonalGaussian(), rule)
]


@pytest.mark.parametrize(("likelihood", "rule"), POINTS)
def test_every_likelihood_and_rule_learns_as_from_rows_in_full(likelihood: Likelihood, rule: Rule) -> None:
    rows, targets = examples(), draw_targets(likelihood, 60, np.random.default_rng(1))
    weights = np.tile([1.0, 0.5, 2.5], 20)
    mine, other = sparse(likelihood, rule, constant=2.0), dense(likelihood, rule, constant=2.0)
    said = mine.learn_many(rows, targets, weights)
    expected = other.learn_many(in_full(rows, 2.0), targets, weights)
    np.testing.assert_allclose(said.latent.mean, expected.latent.mean, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(said.latent.variance, expected.latent.variance, rtol=1e-10)
    np.testing.assert_allclose(mine.belief.mean, other.belief.mean, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(mine.belief.variance, other.belief.variance, rtol=1e-10)
    assert mine.log_evidence == pytest.approx(other.log_evidence, rel=1e-10)
    assert mine.n_examples == 60


@pytest.mark.parametrize("rule", [MomentMatching(), Variational()], ids=repr)
def test_softmax_learns_as_from_rows_in_full(rule: Rule) -> None:
    rows, targets = examples(), np.random.default_rng(2).integers(0, 3, 60)
    mine, other = sparse(Softmax(3), rule, constant=1.0), dense(Softmax(3), rule, constant=1.0)
    said, expected = mine.learn_many(rows, targets), other.learn_many(in_full(rows, 1.0), targets)
    np.testing.assert_allclose(said.latent.mean, expected.latent.mean, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(mine.belief.mean, other.belief.mean, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(
        mine.predict_many(rows).latent.variance, other.predict_many(in_full(rows, 1.0)).latent.variance, rtol=1e-9
    )


def test_entries_that_are_all_one_need_no_values() -> None:
    rows, targets = examples(binary=True), np.where(np.arange(60) % 3 == 0, 1.0, -1.0)
    without = SparseRows(rows.indptr, rows.indices, np.zeros(0), D)
    learners = [sparse(Probit(), MomentMatching(), constant=1.0) for _ in range(2)]
    for learner, given in zip(learners, (rows, without), strict=True):
        learner.learn_many(given, targets)
    np.testing.assert_allclose(learners[1].belief.weights, learners[0].belief.weights, rtol=1e-13)


def test_single_precision_is_near() -> None:
    """Single precision has 1e-7 per operation: after 3,000 rows the weights agree to a few millionths."""
    rows, targets = examples(3000), np.where(np.random.default_rng(3).random(3000) < 0.4, 1.0, -1.0)
    near, exact = sparse(Logistic(), MomentMatching(), "float32"), sparse(Logistic(), MomentMatching())
    for learner in (near, exact):
        learner.learn_many(rows, targets)
    deviation = np.sqrt(exact.belief.variance)
    assert np.max(np.abs(near.belief.mean - exact.belief.mean) / deviation) < 1e-3
    np.testing.assert_allclose(near.belief.variance, exact.belief.variance, rtol=1e-4)
    assert near.log_evidence == pytest.approx(exact.log_evidence, rel=1e-6)


def test_parts_of_any_size_and_single_rows_give_the_same_bits() -> None:
    rows, targets = examples(200), np.random.default_rng(4).normal(size=200)
    whole, parts, single = (sparse(Gaussian(0.5), MomentMatching(), "float32", 1.0) for _ in range(3))
    whole.learn_many(rows, targets)
    for start, stop in ((0, 1), (1, 50), (50, 51), (51, 200)):
        parts.learn_many(rows[start:stop], targets[start:stop])
    for n in range(200):
        row = rows[[n]]
        single.learn_one(dict(zip(row.indices.tolist(), row.data.tolist(), strict=True)), targets[n])
    np.testing.assert_array_equal(parts.belief.weights, whole.belief.weights)
    np.testing.assert_array_equal(single.belief.weights, whole.belief.weights)


def test_many_rows_are_learnt_in_parts_and_told_as_one() -> None:
    """More rows than are looked at in one go, with columns that come twice and rows without entries among them."""
    rng = np.random.default_rng(5)
    sizes = rng.integers(0, 5, 20_000)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    columns, values = rng.integers(0, D, starts[-1]), rng.normal(size=starts[-1])
    targets = rng.normal(size=20_000)
    full = scipy.sparse.csr_array((values, columns, starts), shape=(20_000, D)).toarray()
    mine, other = sparse(Gaussian(), MomentMatching()), dense(Gaussian(), MomentMatching())
    said = mine.learn_many(SparseRows(starts, columns, values, D), targets)
    expected = other.learn_many(full, targets)
    np.testing.assert_allclose(said.latent.mean, expected.latent.mean, atol=1e-10)
    np.testing.assert_allclose(mine.belief.variance, other.belief.variance, rtol=1e-9)


def test_what_it_says_of_one_row_is_what_it_says_of_many() -> None:
    rows = examples()
    learner = sparse(Probit(), MomentMatching(), constant=1.5)
    learner.learn_many(rows, np.where(np.arange(60) % 2 == 0, 1.0, -1.0))
    many = learner.predict_many(rows)
    for n in (0, 17, 59):
        one = learner.predict_one(rows[[n]])
        assert (one.mean, one.variance) == (many.mean[n], many.variance[n])
        assert learner.predict_one(rows[[n]].toarray()[0]).mean == one.mean


def test_a_million_weights_cost_what_their_rows_do() -> None:
    """2^26 weights take half a gigabyte; 2^24 prove that nothing else grows with them."""
    learner = SparseLearner(Probit(), SparseDiagonalGaussian(), MomentMatching(), 2**24)
    far = SparseRows(np.array([0, 2]), np.array([0, 2**24 - 1]), np.array([1.0, -1.0]), 2**24)
    learner.learn_many(far, [1.0])
    assert learner.belief.mean[0] == pytest.approx(-learner.belief.mean[-1])
    assert np.count_nonzero(learner.belief.mean) == 2


BAD: list[tuple[Any, Any, type[BayouError], str]] = [
    (SparseRows(np.array([0, 1]), np.array([D]), np.array([1.0]), D), [1.0], InvalidFeatures, f"0 to {D - 1}; got {D}"),
    (SparseRows(np.array([0, 1]), np.array([-1]), np.array([1.0]), D), [1.0], InvalidFeatures, "got -1 in row 0"),
    (SparseRows(np.array([0, 1]), np.array([3]), np.array([np.nan]), D), [1.0], InvalidFeatures, "got nan in row 0"),
    (examples(3)[:, :5], [1.0, 1.0, 1.0], ShapeMismatch, f"must have {D} columns; got 5"),
    (examples(3), [1.0, 1.0], ShapeMismatch, "one value per row, 3"),
    (examples(3), [1.0, 1.0, 0.5], InvalidTarget, r"got 0.5 in row 2"),
]


@pytest.mark.parametrize(("rows", "targets", "error", "message"), BAD)
def test_bad_rows_are_named_and_leave_all_as_it_was(
    rows: Any, targets: Any, error: type[BayouError], message: str
) -> None:
    learner = sparse(Probit(), MomentMatching())
    learner.learn_many(examples(), np.ones(60))
    before = pickle.dumps(learner.to_state())
    with pytest.raises(error, match=message):
        learner.learn_many(rows, targets)
    assert pickle.dumps(learner.to_state()) == before


def test_a_bad_row_among_many_undoes_those_before_it() -> None:
    rows = examples(30_000, seed=6)
    rows.data[-1] = np.nan
    for width in (D, 2**20):  # a belief smaller and one larger than the rows
        given = SparseRows(rows.indptr, rows.indices, rows.data, width)
        learner = SparseLearner(Probit(), SparseDiagonalGaussian(), MomentMatching(), width)
        before = learner.belief.weights.copy()
        with pytest.raises(InvalidFeatures, match="got nan in row 29999"):
            learner.learn_many(given, np.ones(30_000))
        np.testing.assert_array_equal(learner.belief.weights, before)
        assert learner.n_examples == 0
        assert learner.log_evidence == 0.0


@pytest.mark.parametrize("wrong", [2**40, -5])
def test_rows_that_do_not_begin_among_their_entries_are_refused(wrong: int) -> None:
    rows = examples(30_000, seed=6)
    starts = rows.indptr.copy().astype(np.int64)
    starts[20_000] = wrong
    learner = sparse(Probit(), MomentMatching())
    before = learner.belief.weights.copy()
    with pytest.raises(InvalidFeatures, match=r"the entries of row (19999|20000) must begin and end among"):
        learner.learn_many(SparseRows(starts, rows.indices, rows.data, D), np.ones(30_000))
    np.testing.assert_array_equal(learner.belief.weights, before)


def test_a_latent_that_overflows_is_refused() -> None:
    learner = sparse(Gaussian(), MomentMatching())
    before = learner.belief.weights.copy()
    rows = SparseRows(np.array([0, 1, 2]), np.array([0, 1]), np.array([1.0, 1e200]), D)
    with pytest.raises(ImproperBelief, match="row 1 has a latent that is not finite"):
        learner.learn_many(rows, [1.0, 1.0])
    np.testing.assert_array_equal(learner.belief.weights, before)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InvalidSpec, match="for sparse rows"):
        SparseLearner(Probit(), FullGaussian(), MomentMatching(), D)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(InvalidSpec, match="`constant` must be finite"):
        SparseLearner(Probit(), SparseDiagonalGaussian(), MomentMatching(), D, np.inf)
    learner = sparse(Probit(), MomentMatching())
    with pytest.raises(InvalidSpec, match="`threads` must be"):
        learner.learn_many(examples(), np.ones(60), threads=0)
    with pytest.raises(InvalidFeatures, match="no missing entries"):
        learner.predict_many(examples(), np.zeros((60, D), dtype=bool))
    with pytest.raises(InvalidFeatures, match="whole numbers"):
        learner.learn_one({"city": 1.0}, 1.0)


@pytest.mark.parametrize("likelihood", [Gaussian(0.3), Softmax(3)], ids=repr)
def test_threads_add_up_what_shards_learn(likelihood: Likelihood, monkeypatch: pytest.MonkeyPatch) -> None:
    """By hand: each shard from what was known, then what they learnt beyond it, in natural parameters."""
    monkeypatch.setattr(sparse_learner, "LEAST_SHARD", 300)
    rows, rng = examples(900), np.random.default_rng(7)
    targets = rng.normal(size=900) if likelihood.n_latents == 1 else rng.integers(0, 3, 900).astype(float)
    learner = sparse(likelihood, MomentMatching(), constant=1.0)
    learner.learn_many(rows[:300], targets[:300])
    shards = [learner.copy() for _ in range(2)]
    known = learner.copy().belief
    evidence = learner.log_evidence
    said = learner.learn_many(rows[300:], targets[300:], threads=2)
    precision, shift = 1.0 / known.variance, known.mean / known.variance
    parts = (slice(300, 600), slice(600, 900))
    for shard, part in zip(shards, parts, strict=True):
        alone = shard.learn_many(rows[part], targets[part])
        own = slice(part.start - 300, part.stop - 300)
        np.testing.assert_array_equal(said.latent.mean[own], alone.latent.mean)
        precision = precision + 1.0 / shard.belief.variance - 1.0 / known.variance
        shift = shift + shard.belief.mean / shard.belief.variance - known.mean / known.variance
    np.testing.assert_allclose(learner.belief.variance, 1.0 / precision, rtol=1e-12)
    np.testing.assert_allclose(learner.belief.mean, shift / precision, rtol=1e-9, atol=1e-12)
    assert learner.log_evidence == pytest.approx(sum(shard.log_evidence for shard in shards) - evidence, rel=1e-12)
    assert learner.n_examples == 900


def test_few_rows_are_not_cut_into_shards() -> None:
    rows, targets = examples(2000), np.random.default_rng(10).normal(size=2000)
    one, many = sparse(Gaussian(), MomentMatching()), sparse(Gaussian(), MomentMatching())
    one.learn_many(rows, targets)
    many.learn_many(rows, targets, threads=8)
    np.testing.assert_array_equal(many.belief.weights, one.belief.weights)


def test_threads_leave_all_as_it_was_if_a_row_is_bad() -> None:
    rows = examples(3000)
    learner = sparse(Gaussian(), MomentMatching())
    before = learner.belief.weights.copy()
    rows.data[-1] = 1e250
    with pytest.raises(ImproperBelief, match="row 299"):
        learner.learn_many(rows, np.ones(3000), threads=2)
    np.testing.assert_array_equal(learner.belief.weights, before)
    assert learner.n_examples == 0


def test_long_streams_of_one_row_keep_variances_positive() -> None:
    for dtype in ("float32", "float64"):
        learner = sparse(Gaussian(1e-6), MomentMatching(), dtype)
        n = 200_000
        row = SparseRows(np.arange(n + 1) * 3, np.tile([0, 1, 2], n), np.tile([1e3, 1.0, -1e-3], n), D)
        learner.learn_many(row, np.ones(n))
        assert np.all(learner.belief.variance > 0.0)
        assert np.all(np.isfinite(learner.belief.weights))


def test_it_forgets_merges_and_subtracts() -> None:
    posterior = SparseDiagonalGaussian(prior_variance=0.7, dtype="float64")
    rows, targets = examples(), np.random.default_rng(8).normal(size=60)
    learners = [SparseLearner(Gaussian(), posterior, MomentMatching(), D) for _ in range(2)]
    learners[0].learn_many(rows[:30], targets[:30])
    learners[1].learn_many(rows[30:], targets[30:])
    both = posterior.merge([learner.belief for learner in learners])
    without = posterior.subtract(both, learners[1].belief)
    np.testing.assert_allclose(without.weights, learners[0].belief.weights, rtol=1e-9, atol=1e-12)
    learners[0].forget(discount=0.0)
    np.testing.assert_allclose(learners[0].belief.weights, posterior.prior(D).weights, atol=1e-12)


@pytest.mark.parametrize("likelihood", [StudentT(), Softmax(4), Poisson()], ids=repr)
def test_it_is_saved_and_continues_to_the_last_bit(likelihood: Likelihood, tmp_path: Path) -> None:
    rows, targets = examples(), draw_targets(likelihood, 60, np.random.default_rng(9))
    learner = sparse(likelihood, MomentMatching(), "float32", constant=3.0)
    learner.learn_many(rows[:40], targets[:40])
    save(learner, tmp_path / "model.bayou")
    for again in (load(tmp_path / "model.bayou"), pickle.loads(pickle.dumps(learner)), learner.copy()):
        assert repr(again) == repr(learner)
        again.learn_many(rows[40:], targets[40:])
    learner.learn_many(rows[40:], targets[40:])
    np.testing.assert_array_equal(again.belief.weights, learner.belief.weights)
    assert again.log_evidence == learner.log_evidence
