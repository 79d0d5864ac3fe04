"""psi_jk = psi_j psi_k: all products of functions of different inputs. Roughness adds up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from bayou.contracts import Basis, Matrix, Vector
from bayou.numerics.grams import Box, checked_factors, checked_rows, hull, parts
from bayou.numerics.tensors import kronecker, outer_sums, row_products


@final
@dataclass(frozen=True)
class TensorProduct(Basis):
    """Any bases over different inputs, the first of them over the first inputs; the last runs fastest.

    >>> import numpy as np
    >>> from bayou import Fourier, Polynomials, TensorProduct
    >>> basis = TensorProduct((Fourier(order=3, domain=(0.0, 24.0)), Polynomials(order=2)))  # hour, and something else
    >>> basis.size, basis.encode(np.array([[12.0, 0.5]])).shape
    (21, (1, 21))
    """

    factors: tuple[Basis, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "factors", checked_factors(self.factors))

    @property
    def box(self) -> Box:
        return tuple(interval for factor in self.factors for interval in factor.box)

    @property
    def size(self) -> int:
        return int(np.prod([factor.size for factor in self.factors]))

    @property
    def roughness(self) -> Vector:
        return outer_sums([factor.roughness for factor in self.factors])

    @property
    def means(self) -> Vector:
        return kronecker([factor.means for factor in self.factors])

    def encode(self, rows: Matrix) -> Matrix:
        pieces = parts(checked_rows(rows, self.box), self.factors)
        return row_products([factor.encode(piece) for factor, piece in zip(self.factors, pieces, strict=True)])

    def functions(self, rows: Matrix) -> Matrix:
        pieces = parts(checked_rows(rows, self.box), self.factors)
        return row_products([factor.functions(piece) for factor, piece in zip(self.factors, pieces, strict=True)])

    def gram(self) -> Matrix:
        return kronecker([factor.gram() for factor in self.factors])

    def coefficients(self, weights: Vector) -> Vector:
        values = weights.reshape([factor.size for factor in self.factors])
        for axis, factor in enumerate(self.factors):
            values = np.apply_along_axis(factor.coefficients, axis, values)
        return values.ravel()

    def grown(self, box: Box) -> tuple[TensorProduct, Matrix]:
        intervals = parts(hull(self.box, box), self.factors)
        wider = [factor.grown(piece) for factor, piece in zip(self.factors, intervals, strict=True)]
        return TensorProduct(tuple(basis for basis, _ in wider)), kronecker([matrix for _, matrix in wider])
