"""Sparse rows from scipy and Arrow, checked; scipy's own arithmetic is the second route."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

from bayou import SparseRows
from bayou.errors import BayouError, InvalidFeatures, ShapeMismatch
from bayou.numerics.sparse_rows import checked, in_full, in_order, is_sparse, sparse_rows


def matrix(n: int = 30, d: int = 50, seed: int = 0) -> scipy.sparse.csr_array:
    return scipy.sparse.random_array((n, d), density=0.2, format="csr", rng=np.random.default_rng(seed))


def rows(starts: Any, columns: Any, values: Any, n_columns: int = 5) -> SparseRows:
    return SparseRows(np.asarray(starts), np.asarray(columns), np.asarray(values, dtype=float), n_columns)


def test_rows_in_another_order() -> None:
    """Empty rows, and rows whose entries are all 1, among them."""
    given = matrix()
    given.data[given.indptr[3] : given.indptr[4]] = 0.0
    given.eliminate_zeros()
    order = np.random.default_rng(1).permutation(30)
    np.testing.assert_array_equal(in_full(in_order(sparse_rows(given), order)), given.toarray()[order])
    ones = SparseRows(given.indptr, given.indices, np.zeros(0), 50)
    np.testing.assert_array_equal(in_full(in_order(ones, order)), (given.toarray() != 0.0)[order])


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil"])
def test_every_form_of_scipy_is_read(form: str) -> None:
    given = matrix()
    read, large = checked(sparse_rows(given.asformat(form)), 50, np.float64)
    np.testing.assert_array_equal(in_full(read), given.toarray())
    assert not large
    assert read.shape == given.shape


def test_arrow_is_read() -> None:
    import pyarrow as pa

    given = matrix()
    arrow = pa.SparseCSRMatrix.from_scipy(scipy.sparse.csr_matrix(given))
    np.testing.assert_array_equal(in_full(checked(sparse_rows(arrow), 50, np.float64)[0]), given.toarray())
    pairs = [
        [{"column": int(j), "value": float(given[n, j])} for j in np.flatnonzero(given[[n]].toarray()[0])]
        for n in range(30)
    ]
    lists = pa.array(pairs)
    assert is_sparse(lists)
    np.testing.assert_array_equal(in_full(checked(sparse_rows(lists, 50), 50, np.float64)[0]), given.toarray())
    ones = pa.chunked_array([pa.array([[1, 3], []]), pa.array([[0]], type=pa.list_(pa.int64()))])
    np.testing.assert_array_equal(
        in_full(checked(sparse_rows(ones, 4), 4, np.float32)[0]), [[0, 1, 0, 1], [0, 0, 0, 0], [1, 0, 0, 0]]
    )
    with pytest.raises(InvalidFeatures, match="`n_columns` must be given"):
        sparse_rows(lists)
    with pytest.raises(InvalidFeatures, match="1 that are null"):
        sparse_rows(pa.array([[1], None]), 4)
    with pytest.raises(InvalidFeatures, match="without nulls"):
        sparse_rows(pa.array([[1, None]]), 4)


def test_rows_told_in_full_are_read() -> None:
    given = matrix().toarray()
    np.testing.assert_array_equal(in_full(checked(sparse_rows(given), 50, np.float64)[0]), given)
    assert not is_sparse(given)


def test_columns_that_come_twice_are_summed_in_any_order() -> None:
    rng = np.random.default_rng(1)
    starts = np.concatenate([[0], np.cumsum(rng.integers(0, 60, 40))])
    columns, values = rng.integers(0, 30, starts[-1]), rng.normal(size=starts[-1])
    expected = scipy.sparse.csr_array((values, columns, starts), shape=(40, 30)).toarray()
    tidy, _ = checked(rows(starts, columns, values, 30), 30, np.float64)
    for n in range(40):
        own = tidy.columns[tidy.starts[n] : tidy.starts[n + 1]]
        assert np.all(np.diff(own) > 0)
    np.testing.assert_allclose(in_full(tidy), expected, atol=1e-14)
    ones, _ = checked(SparseRows(starts, columns, np.zeros(0), 30), 30, np.float32)
    counts = scipy.sparse.csr_array((np.ones(starts[-1]), columns, starts), shape=(40, 30)).toarray()
    np.testing.assert_array_equal(in_full(ones), counts)


def test_unsorted_columns_that_come_once_stay_as_they_are() -> None:
    tidy, _ = checked(rows([0, 3, 3], [4, 0, 2], [1.0, 2.0, 3.0]), 5, np.float64)
    np.testing.assert_array_equal(tidy.columns, [4, 0, 2])
    np.testing.assert_array_equal(in_full(tidy), [[2, 0, 3, 0, 1], [0, 0, 0, 0, 0]])


def test_a_slice_is_those_rows() -> None:
    given = sparse_rows(matrix())
    full = in_full(checked(given, 50, np.float64)[0])
    for part in (slice(0, 10), slice(7, 23), slice(20, 400), slice(5, 5)):
        np.testing.assert_array_equal(in_full(checked(given[part], 50, np.float64)[0]), full[part])
    with pytest.raises(IndexError):
        given[::2]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (rows([0, 1, 2], [0, 5], [1, 1]), "from 0 to 4; got 5 in row 1"),
        (rows([0, 1, 2], [0, -1], [1, 1]), "from 0 to 4; got -1 in row 1"),
        (rows([0, 1, 2], [0, 2**40], [1, 1]), "from 0 to 4; got 1099511627776 in row 1"),
        (rows([0, 1, 2], [0, 1], [1, np.nan]), "must be finite; got nan in row 1, column 1"),
        (rows([0, 1, 2], [0, 1], [1, -np.inf]), "must be finite; got -inf in row 1"),
        (rows([0, 2, 1], [0, 1], [1, 1]), "entries of row 1 must begin and end"),
        (rows([0, 1, 3], [0, 1], [1, 1]), "entries of row 1 must begin and end"),
        (rows([-1, 1, 2], [0, 1], [1, 1]), "entries of row 0 must begin and end"),
        (rows([0, 1, 2], [0, 1], [1]), "a value per column, 2; got 1"),
        (rows([0, 1, 2], [0.0, 1.0], [1, 1]), "columns must be whole numbers; got float64"),
        (rows([0, 1, 2], [0, 1], [1, 1], 6), "must have 5 columns; got 6"),
        (SparseRows(np.array([0, 1]), np.array([0]), np.array([1j]), 5), "real numbers; got complex128"),
    ],
)
def test_what_is_wrong_is_named(given: SparseRows, message: str) -> None:
    with pytest.raises(BayouError, match=message):
        checked(given, 5, np.float64)


def test_single_precision_refuses_what_it_cannot_hold() -> None:
    with pytest.raises(InvalidFeatures, match=r"got 1e\+300 in row 0"):
        checked(rows([0, 1], [0], [1e300]), 5, np.float32)


def test_more_axes_are_refused() -> None:
    with pytest.raises(ShapeMismatch, match="got shape"):
        sparse_rows(np.zeros((2, 2, 2)))
