"""psi = 1, and each factor's own functions less their means: a sum of functions of different inputs.

Functions of different inputs are orthogonal over a box if their means are zero. With m the means of a factor's
orthonormal functions psi, the combinations across m have mean zero; that along m, less its mean |m|, has the mean
square 1 - |m|^2, which is zero if the factor has the constant among its functions: then one of them goes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, final

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from bayou.contracts import Basis, Matrix, Vector
from bayou.numerics.grams import (
    Box,
    RememberingBasis,
    checked_factors,
    checked_rows,
    hull,
    parts,
    settled,
)

NO_MEAN = 1e-10  # a mean below is rounding
NO_REST = 1e-8  # where less than this of the constant is not among the functions, all of it is: the rest is rounding


class Centred(NamedTuple):
    """A factor without the constant: V (psi - m). If psi is the constant and functions of mean zero, V only picks."""

    means: Vector
    transform: Matrix | None
    picked: NDArray[np.intp]
    roughness: Vector

    @property
    def size(self) -> int:
        return self.roughness.size

    def of(self, values: Matrix) -> Matrix:
        """V (psi - m), of psi as rows."""
        if self.transform is None:
            return values[:, self.picked]
        return (values - self.means) @ self.transform.T

    def back(self, weights: Vector) -> tuple[Vector, float]:
        """Weights of psi and of the constant, from weights of the centred functions."""
        if self.transform is None:
            scattered = np.zeros(self.means.size)
            scattered[self.picked] = weights
            return scattered, 0.0
        scattered = weights @ self.transform
        return scattered, -float(scattered @ self.means)

    def matrix(self) -> Matrix:
        """V, whole."""
        return np.eye(self.means.size)[self.picked] if self.transform is None else self.transform

    def inverse(self) -> Matrix:
        """What psi - m are in terms of the centred functions: (I - m m') V'."""
        turned = self.matrix().T
        return turned if self.transform is None else turned - np.outer(self.means, self.means @ turned)


def centred(factor: Basis) -> Centred:
    """A factor without the constant."""
    means, roughness = factor.means, factor.roughness
    first = int(np.argmax(np.abs(means)))
    others = np.delete(np.arange(means.size), first)
    if abs(abs(means[first]) - 1.0) < NO_MEAN and np.all(np.abs(means[others]) < NO_MEAN):
        return Centred(means, None, others, roughness[others])
    length = float(np.linalg.norm(means))
    frame = np.linalg.qr(means[:, None], mode="complete")[0].T  # the first along the means, the others across
    across = frame[1:]
    if 1.0 - length**2 > NO_REST:
        across = np.vstack([across, frame[0] / np.sqrt(1.0 - length**2)])
    found, turn = scipy.linalg.eigh(across * roughness @ across.T)
    return Centred(means, settled(turn.T @ across, found), others, np.maximum(found, 0.0))


@final
@dataclass(frozen=True)
class Additive(RememberingBasis):
    """Any bases over different inputs, whose functions add up: one constant, then each factor's others.

    As the user's own functions, 1 and all of every factor's. These say the same thing in several ways if a factor has
    the constant among its functions: learn the orthonormal ones.

    >>> import numpy as np
    >>> from bayou import Additive, Polynomials
    >>> basis = Additive((Polynomials(order=3), Polynomials(order=3), Polynomials(order=3)))
    >>> basis.size
    10
    >>> basis.encode(np.array([[0.5, 0.5, 1.0]])).round(2)
    array([[ 1.  ,  0.  , -1.12,  0.  ,  0.  , -1.12,  0.  ,  1.73,  2.24, 2.65]])
    """

    factors: tuple[Basis, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "factors", checked_factors(self.factors))

    @cached_property
    def _centred(self) -> tuple[Centred, ...]:
        return tuple(centred(factor) for factor in self.factors)

    @property
    def box(self) -> Box:
        return tuple(interval for factor in self.factors for interval in factor.box)

    @property
    def size(self) -> int:
        return 1 + sum(one.size for one in self._centred)

    @property
    def roughness(self) -> Vector:
        return np.concatenate([np.zeros(1), *(one.roughness for one in self._centred)])

    @property
    def means(self) -> Vector:
        means = np.zeros(self.size)
        means[0] = 1.0
        return means

    def encode(self, rows: Matrix) -> Matrix:
        pieces = parts(checked_rows(rows, self.box), self.factors)
        encoded = [factor.encode(piece) for factor, piece in zip(self.factors, pieces, strict=True)]
        ones = np.ones((len(pieces[0]), 1))
        columns = [ones, *(one.of(values) for one, values in zip(self._centred, encoded, strict=True))]
        return np.ascontiguousarray(np.hstack(columns))

    def functions(self, rows: Matrix) -> Matrix:
        pieces = parts(checked_rows(rows, self.box), self.factors)
        values = [factor.functions(piece) for factor, piece in zip(self.factors, pieces, strict=True)]
        return np.hstack([np.ones((len(pieces[0]), 1)), *values])

    def gram(self) -> Matrix:
        """Functions of different inputs meet in their means alone."""
        grams = [factor.gram() for factor in self.factors]
        averages = [gram @ factor.coefficients(factor.means) for gram, factor in zip(grams, self.factors, strict=True)]
        every = np.concatenate([np.ones(1), *averages])
        whole, start = np.outer(every, every), 1
        for gram in grams:
            whole[start : start + len(gram), start : start + len(gram)] = gram
            start += len(gram)
        return whole

    def coefficients(self, weights: Vector) -> Vector:
        told, constant, start = [], float(weights[0]), 1
        for factor, one in zip(self.factors, self._centred, strict=True):
            own, rest = one.back(weights[start : start + one.size])
            told.append(factor.coefficients(own))
            constant, start = constant + rest, start + one.size
        return np.concatenate([np.array([constant]), *told])

    def grown(self, box: Box) -> tuple[Additive, Matrix]:
        intervals = parts(hull(self.box, box), self.factors)
        grown = [factor.grown(piece) for factor, piece in zip(self.factors, intervals, strict=True)]
        wider = Additive(tuple(basis for basis, _ in grown))
        matrix = np.zeros((self.size, wider.size))
        matrix[0, 0] = 1.0
        i, j = 1, 1
        for (_, moved), old, new in zip(grown, self._centred, wider._centred, strict=True):
            turn = old.matrix()
            matrix[i : i + old.size, 0] = turn @ (moved @ new.means - old.means)
            matrix[i : i + old.size, j : j + new.size] = turn @ moved @ new.inverse()
            i, j = i + old.size, j + new.size
        return wider, matrix
