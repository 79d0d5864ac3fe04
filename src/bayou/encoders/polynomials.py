"""psi_k = sqrt(2k + 1) P_k(u), the Legendre polynomials, with u from -1 to 1 over the domain.

By the three-term recurrence (k + 1) P_{k+1} = (2k + 1) u P_k - k P_{k-1}, which is stable at any order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from bayou.contracts import Basis, Matrix, Vector
from bayou.errors import InvalidSpec
from bayou.numerics.grams import Box, Interval, checked_interval, checked_rows, hull, whole_number
from bayou.numerics.jit import kernel

MOST = 10_000  # beyond, a recurrence is not what one wants


@kernel
def legendre(u: Vector, values: Matrix) -> None:
    """Write the orthonormal Legendre polynomials at each u, as many as there are columns."""
    size = values.shape[1]
    scale, ahead, back = np.empty(size), np.empty(size), np.empty(size)
    for k in range(size):
        scale[k], ahead[k], back[k] = math.sqrt(2.0 * k + 1.0), (2.0 * k + 1.0) / (k + 1.0), k / (k + 1.0)
    for n in range(u.size):
        before, now = 0.0, 1.0
        for k in range(size):
            values[n, k] = scale[k] * now
            before, now = now, ahead[k] * u[n] * now - back[k] * before


def legendre_at(u: Vector, order: int) -> Matrix:
    """The same, as a new matrix (row, function)."""
    values = np.empty((u.size, order + 1))
    legendre(u, values)
    return values


@final
@dataclass(frozen=True)
class Polynomials(Basis):
    """All polynomials of one input up to an order; as the user's own functions, the powers 1, x, x^2, ...

    They fit smooth functions with few numbers, and say much beyond the data: keep the order low, or smooth. The
    roughness is that of slopes in the weight 1.5 (1 - u^2), in which those of Legendre polynomials are orthogonal.

    A polynomial over a wider box is the same polynomial, but larger by up to r + sqrt(r^2 - 1) to the power of the
    order, where the box is r times as wide about the same middle: so many digits are lost to cancellation.

    >>> import numpy as np
    >>> from bayou import Polynomials
    >>> basis = Polynomials(order=2, domain=(0.0, 10.0))
    >>> basis.encode(np.array([[5.0], [10.0]]))
    array([[ 1.  ,  0.  , -1.12],
           [ 1.  ,  1.73,  2.24]])
    >>> basis.roughness
    array([0., 2., 6.])
    >>> basis.coefficients(np.array([1.0, 1.0, 0.0]))  # 1 + sqrt(3) (x / 5 - 1)
    array([-0.73,  0.35,  0.  ])
    """

    order: int = 6
    domain: Interval = (0.0, 1.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", whole_number("order", self.order, 0, MOST))
        object.__setattr__(self, "domain", checked_interval(self.domain))

    @property
    def box(self) -> Box:
        return (self.domain,)

    @property
    def size(self) -> int:
        return self.order + 1

    @property
    def roughness(self) -> Vector:
        k = np.arange(self.size, dtype=np.float64)
        return k * (k + 1.0)

    @property
    def means(self) -> Vector:
        means = np.zeros(self.size)
        means[0] = 1.0
        return means

    def encode(self, rows: Matrix) -> Matrix:
        low, high = self.domain
        x = checked_rows(rows, self.box)[:, 0]
        return legendre_at(2.0 * ((x - low) / (high - low)) - 1.0, self.order)

    def functions(self, rows: Matrix) -> Matrix:
        self._check_powers(self.order)
        return np.vander(checked_rows(rows, self.box)[:, 0], self.size, increasing=True)

    def gram(self) -> Matrix:
        """The mean of x^m is (low^m + low^(m-1) high + ... + high^m) / (m + 1), with m = j + k."""
        self._check_powers(2 * self.order)
        low, high = self.domain
        sums = np.ones(2 * self.order + 1)
        for m in range(1, sums.size):
            sums[m] = high * sums[m - 1] + low**m
        powers = np.add.outer(np.arange(self.size), np.arange(self.size))
        moments = sums / np.arange(1, sums.size + 1)
        gram: Matrix = moments[powers]
        return gram

    def coefficients(self, weights: Vector) -> Vector:
        """By the recurrence, in powers of x. They are exact in the sense of rounding alone: the larger the order, and
        the farther the domain is from 0 in units of its width, the more they cancel.
        """
        low, high = self.domain
        scale, shift = 2.0 / (high - low), -2.0 * (low / (high - low)) - 1.0
        before, now = np.zeros(self.size), np.eye(1, self.size)[0]
        coefficients = np.zeros(self.size)
        with np.errstate(over="ignore", invalid="ignore"):
            for k in range(self.size):
                coefficients += math.sqrt(2.0 * k + 1.0) * weights[k] * now
                turned = shift * now
                turned[1:] += scale * now[:-1]
                before, now = now, ((2.0 * k + 1.0) * turned - k * before) / (k + 1.0)
        if not np.isfinite(coefficients).all():
            raise InvalidSpec(f"the powers of x must have finite coefficients; those of {self!r} overflow.")
        return coefficients

    def grown(self, box: Box) -> tuple[Polynomials, Matrix]:
        """Exact: the means of products over the new box by Gauss-Legendre points, in units of the boxes."""
        (wider,) = hull(self.box, box)
        low, high = self.domain
        points, weights = np.polynomial.legendre.leggauss(self.size)
        stretch = (wider[1] - wider[0]) / (high - low)
        u = (points + 1.0) * stretch - (2.0 * ((low - wider[0]) / (high - low)) + 1.0)
        old = legendre_at(u, self.order)
        if not np.isfinite(old).all():
            raise InvalidSpec(f"`box` is too wide for polynomials of order {self.order} to be continued; got {box!r}.")
        matrix = np.tril(old.T * (0.5 * weights) @ legendre_at(points, self.order))
        return Polynomials(self.order, wider), matrix

    def _check_powers(self, power: int) -> None:
        farthest = max(abs(end) for end in self.domain)
        if farthest > 1.0 and power * math.log(farthest) > 700.0:
            raise InvalidSpec(f"powers of x up to {power} must be finite over {self.domain!r}; they overflow.")
