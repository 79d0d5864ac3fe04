"""Sparse matrices and rows of libsvm and Vowpal Wabbit's text in shards."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import dump_svmlight_file

from bayou import (
    FullGaussian,
    Gaussian,
    Logistic,
    OnlineClassifier,
    OnlineRegressor,
    SparseEncoder,
    SparseLearner,
    TableModel,
    load,
    merge,
    save,
)
from bayou.distributed import InProcess, fit
from bayou.distributed.sources import ArrayShard
from bayou.errors import InvalidSpec, StreamError
from bayou.numerics.sparse_table import SparseTable, rows_joined
from bayou.streams import open_tables
from tests.cli.made import bayou
from tests.distributed import made

RNG = np.random.default_rng(0)
NARROW = scipy.sparse.random_array((1500, 12), density=0.3, rng=RNG, format="csr")
WIDE = scipy.sparse.hstack([NARROW, scipy.sparse.random_array((1500, 3000), density=0.002, rng=RNG)]).tocsr()
LATENT = NARROW @ RNG.normal(size=12) * 4.0
LATE = LATENT - np.median(LATENT) + RNG.logistic(size=1500) > 0.0
CUTS = [0, 500, 900, 1500]
CLASSIFIER = OnlineClassifier(likelihood=Logistic())


def here(estimator: Any, source: Any, **options: Any) -> Any:
    return fit(estimator, source, engine=InProcess(), **options)


def shards(rows: Any) -> list[ArrayShard]:
    return [ArrayShard((rows[a:b], LATE[a:b])) for a, b in pairwise(CUTS)]


def test_few_columns_are_learnt_in_full_and_as_they_are() -> None:
    model = OnlineRegressor(posterior=FullGaussian(50.0), likelihood=Gaussian(0.5))
    fitted = here(model, (NARROW, LATENT), shards=4)
    features = np.column_stack([np.ones(1500), NARROW.toarray()])  # zero is nothing: no column is moved or scaled
    precision = np.eye(13) / 50.0 + features.T @ features / 0.5
    assert fitted.exact
    np.testing.assert_allclose(
        fitted.model._learner_.belief.mean, np.linalg.solve(precision, features.T @ LATENT / 0.5), rtol=1e-9
    )
    np.testing.assert_allclose(fitted.model.predict(NARROW), LATENT, atol=0.1)
    fitted.model.partial_fit(NARROW[:50], LATENT[:50])
    assert fitted.model._given_sparse


def test_many_columns_are_what_their_posterior_merges() -> None:
    """By a second route: models that were taught apart, whose beliefs the posterior merges."""
    fitted = here(CLASSIFIER, shards(WIDE), rounds=1)
    apart, own = [], fitted.model._learner_
    for a, b in pairwise(CUTS):
        one = SparseLearner(Logistic(), own.posterior, own.rule, 3013, own.constant)
        one.learn_many(WIDE[a:b], np.where(LATE[a:b], 1.0, -1.0))
        apart.append(one.belief)
    together = own.posterior.merge(apart)
    np.testing.assert_allclose(own.belief.weights, together.weights, rtol=1e-5, atol=1e-6)
    assert fitted.rounds[0].bytes_moved < 3 * 24 * 3013
    refined = here(CLASSIFIER, shards(WIDE), rounds=3)
    assert refined.scores["log_loss"] < fitted.scores["log_loss"]
    assert (fitted.model.predict(WIDE) == LATE).mean() > 0.75


def written(folder: Path) -> str:
    """Three files of libsvm, of which the first lacks two of the columns."""
    rows = NARROW.tolil()
    rows[: CUTS[1], 10:] = 0.0
    rows = rows.tocsr()
    rows.eliminate_zeros()
    for part, (a, b) in enumerate(pairwise(CUTS)):
        dump_svmlight_file(rows[a:b], np.where(LATE[a:b], 1, -1), str(folder / f"part-{part}.libsvm"), zero_based=False)
    return str(folder / "part-*.libsvm")


def test_files_of_libsvm_with_few_columns(tmp_path: Path) -> None:
    source = written(tmp_path)
    fitted = here(TableModel("label", encoder=SparseEncoder()), source)
    model, paths = fitted.model, sorted(tmp_path.glob("*.libsvm"))
    rows = rows_joined([table for path in paths for table in open_tables(path).rows])
    assert sorted(map(int, model.layout.names)) == list(range(1, 13))
    dense = model.layout.encode(rows)
    same = here(CLASSIFIER, made.cut(dense, LATE, CUTS[1:-1]))  # the same numbers as an array
    np.testing.assert_allclose(model.estimator.coef_, same.model.coef_, rtol=1e-9, atol=1e-12)
    assert (fitted.rows, fitted.n_shards) == (1500, 3)
    result = bayou("learn", source, "--workers", "1", "-f", tmp_path / "all.bayou")
    assert result.exit_code == 0, result.output
    np.testing.assert_array_equal(load(tmp_path / "all.bayou").estimator.coef_, model.estimator.coef_)
    told = load(tmp_path / "all.bayou").predict_table(rows)
    assert ((told["prediction"] == 1).to_numpy() == LATE).mean() > 0.75
    parts = [here(TableModel("label", encoder=SparseEncoder()), path).model for path in paths]
    both = merge(*parts)
    assert sorted(both.layout.names) == sorted(model.layout.names)
    gap = both.predict_table(rows)["probability_1"] - told["probability_1"]
    assert gap.abs().mean() < 0.05


@pytest.mark.parametrize("counts", [(20, 30), (490, 30), (520, 30), (490, 520), (520, 530)])
def test_names_beyond_the_columns_there_are_share_buckets_in_both(counts: tuple[int, int]) -> None:
    """What the other's layout makes of its rows lies where it says in the joined one, but for names of which only one
    has a column and the other a share.
    """
    first, second = (rows_of(range(500 * k, 500 * k + count)) for k, count in enumerate(counts))
    encoder = SparseEncoder(hashed=False)
    one, other = encoder.begin(first), encoder.begin(second)
    both, places = one.joined(other)
    assert both.names[: len(one.keys)] == one.names[: len(one.keys)]
    assert len(both.names) == len(both.keys) + 32 * both.has_buckets <= 532
    assert both.has_buckets == (len(set(range(counts[0])) | set(range(500, 500 + counts[1]))) > 500)
    moved = np.zeros((len(second), len(both.names)))
    np.add.at(moved.T, places, other.encode(second).T)
    told = both.encode(second)
    np.testing.assert_array_equal(told.sum(axis=1), 1.0)
    np.testing.assert_array_equal(told[: len(other.keys)], moved[: len(other.keys)])


def rows_of(indices: range) -> SparseTable:
    """A row for each index, in which it is 1."""
    n = len(indices)
    return SparseTable("index", np.ones(n), None, np.arange(n + 1), np.array(indices, np.uint64), np.ones(n))


def test_vowpal_wabbits_text_with_hashed_names(tmp_path: Path) -> None:
    words = np.random.default_rng(3).integers(0, 400, size=(1200, 5))
    late = (words % 2).sum(axis=1) >= 3
    for part in range(3):
        lines = [
            f"{1 if is_late else -1} |w " + " ".join(f"word{word}" for word in row)
            for row, is_late in zip(words[part::3], late[part::3], strict=True)
        ]
        (tmp_path / f"part-{part}.vw").write_text("\n".join(lines) + "\n")
    fitted = here(TableModel("label", encoder=SparseEncoder(bits=12)), str(tmp_path / "*.vw"), rounds=2)
    model = fitted.model
    assert model.layout.hashed
    assert not fitted.exact
    assert fitted.rounds[1].scores["log_loss"].value < fitted.rounds[0].scores["log_loss"].value
    rows = next(iter(open_tables(tmp_path / "part-0.vw").rows))
    assert ((model.predict_table(rows)["prediction"] == 1).to_numpy() == late[::3]).mean() > 0.85
    assert any(name.startswith("w^word") for name in model.summary().names)
    save(model, tmp_path / "model.bayou")
    twice = merge(load(tmp_path / "model.bayou"), model)
    assert twice.n_rows == 2400
    twice.learn_many(rows)
    assert twice.n_rows == 2800


def test_what_is_refused() -> None:
    with pytest.raises(StreamError, match="same columns, 3012; got 3002"):
        here(CLASSIFIER, [*shards(WIDE)[:1], ArrayShard((WIDE[:, 10:], LATE))])
    with pytest.raises(InvalidSpec, match="1500; got 9"):
        here(CLASSIFIER, (WIDE, LATE[:9]))
