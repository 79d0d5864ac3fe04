"""Functions that are products of functions of one input each: matrices are Kronecker products, and are never formed.

The functions of the last input run fastest.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property, reduce

import numpy as np

from bayou.contracts import Basis, Matrix, Vector
from bayou.errors import InvalidSpec
from bayou.numerics.grams import (
    N_MATCHED,
    Box,
    Orthonormal,
    RememberingBasis,
    check_dense,
    checked_rows,
    hull,
    matched,
    orthonormalised,
    scattered,
)
from bayou.numerics.lattices import shift

MOST_PRODUCTS = 1_000_000


def check_number(counts: Sequence[int], name: str) -> None:
    """Raise if there are too many products."""
    if np.prod([float(count) for count in counts]) > MOST_PRODUCTS:
        said = " x ".join(map(str, counts))
        raise InvalidSpec(f"`{name}` must make at most {MOST_PRODUCTS} functions in all; got {said}.")


def row_products(factors: Sequence[Matrix]) -> Matrix:
    """Per row, every product of a value from each factor: (row, product)."""
    products = factors[0]
    for factor in factors[1:]:
        shape = (len(products), products.shape[1] * factor.shape[1])
        products = (products[:, :, None] * factor[:, None, :]).reshape(shape)
    return np.ascontiguousarray(products)


def outer_sums(vectors: Sequence[Vector]) -> Vector:
    """Every sum of a value from each vector."""
    return reduce(lambda one, other: np.add.outer(one, other).ravel(), vectors)


def kronecker(matrices: Sequence[Matrix]) -> Matrix:
    """The Kronecker product of matrices, or of vectors."""
    product: Matrix = matrices[0]
    for matrix in matrices[1:]:
        product = np.kron(product, matrix).astype(np.float64, copy=False)
    return product


def transformed(vector: Vector, matrices: Sequence[Matrix]) -> Vector:
    """A vector times the Kronecker product of matrices, one input after the other."""
    values = vector.reshape([len(matrix) for matrix in matrices])
    for matrix in matrices:  # each turn puts the next input first, and the new one last
        values = np.tensordot(values, matrix, axes=(0, 0))
    return values.ravel()


class LatticeBasis(RememberingBasis):
    """A basis of products of functions of one input each, which are made orthonormal input by input."""

    domain: Box

    @property
    def box(self) -> Box:
        return self.domain

    @property
    @abstractmethod
    def counts(self) -> tuple[int, ...]:
        """How many functions there are along each input."""

    @abstractmethod
    def along(self, axis: int, x: Vector, table: Matrix | None) -> Matrix:
        """The functions along one input; if there is a table, times it."""

    @abstractmethod
    def gram_along(self, axis: int) -> Matrix:
        """The mean of products along one input."""

    @abstractmethod
    def slopes_along(self, axis: int) -> Matrix:
        """The mean of products of slopes / 6, in units of the side of the box."""

    @abstractmethod
    def averages_along(self, axis: int) -> Vector:
        """The mean of each function along one input."""

    @abstractmethod
    def extended(self, box: Box) -> tuple[LatticeBasis, tuple[int, ...]]:
        """The lattice that holds a wider box, and how many functions along each input come before the first."""

    @cached_property
    def orthonormals(self) -> tuple[Orthonormal, ...]:
        """Per input, the orthonormal functions in terms of those on the lattice."""
        check_dense(max(self.counts))
        axes = range(len(self.domain))
        return tuple(orthonormalised(self.gram_along(axis), self.slopes_along(axis)) for axis in axes)

    @cached_property
    def _tables(self) -> tuple[Matrix, ...]:
        return tuple(np.ascontiguousarray(one.transform.T) for one in self.orthonormals)

    @property
    def size(self) -> int:
        return int(np.prod([len(one.transform) for one in self.orthonormals]))

    @property
    def roughness(self) -> Vector:
        return outer_sums([one.roughness for one in self.orthonormals])

    @property
    def means(self) -> Vector:
        axes = enumerate(self.orthonormals)
        return kronecker([one.transform @ self.averages_along(axis) for axis, one in axes])

    def encode(self, rows: Matrix) -> Matrix:
        x = checked_rows(rows, self.domain)
        return row_products([self.along(axis, x[:, axis], table) for axis, table in enumerate(self._tables)])

    def functions(self, rows: Matrix) -> Matrix:
        x = checked_rows(rows, self.domain)
        return row_products([self.along(axis, x[:, axis], None) for axis in range(len(self.domain))])

    def gram(self) -> Matrix:
        return kronecker([self.gram_along(axis) for axis in range(len(self.domain))])

    def coefficients(self, weights: Vector) -> Vector:
        return transformed(weights, [one.transform for one in self.orthonormals])

    def grown(self, box: Box) -> tuple[Basis, Matrix]:
        wider, before = self.extended(hull(self.domain, box))
        matrices = []
        for axis, (old, new) in enumerate(zip(self.orthonormals, wider.orthonormals, strict=True)):
            if len(new.transform) == wider.counts[axis]:
                moved = shift(self.counts[axis], before[axis], wider.counts[axis])
                matrices.append(old.transform @ moved @ wider.gram_along(axis) @ new.transform.T)
            else:
                x = scattered(self.domain[axis : axis + 1], N_MATCHED * len(new.transform))[:, 0]
                values = [basis.along(axis, x, basis._tables[axis]) for basis in (self, wider)]
                matrices.append(matched(*values))
        return wider, kronecker(matrices)
