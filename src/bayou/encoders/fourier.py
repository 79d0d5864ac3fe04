"""1, sqrt(2) cos(2 pi k x / P), sqrt(2) sin(2 pi k x / P) for k = 1, 2, ...: phases about x = 0, so that growth nests.

They are orthonormal over a whole period P. Over part of one, the mean of each product is a sum of two of

    mean of cos(2 pi n x / P) = cos(2 pi n m / P) sinc(n L / P),   that of sin likewise

with m the middle of the domain and L its length.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from bayou.contracts import Matrix, Vector
from bayou.errors import InvalidSpec
from bayou.numerics.grams import (
    SLOPE_UNIT,
    Box,
    GramBasis,
    Interval,
    Orthonormal,
    check_dense,
    checked_interval,
    checked_rows,
    hull,
    orthonormalised,
    whole_number,
)
from bayou.numerics.jit import kernel

MOST = 100_000
RENEWED = 32  # rotations after which sine and cosine are computed anew, so that rounding does not add up
SAME = 1e-12  # a period and a length that differ by less, in units of either, are the same


@kernel
def waves(turns: Vector, values: Matrix) -> None:
    """Write 1 and the sines and cosines of so many turns, each next pair by a rotation of the last."""
    root = math.sqrt(2.0)
    for n in range(turns.size):
        turn = turns[n] - math.floor(turns[n])
        values[n, 0] = 1.0
        ahead, across = math.cos(2.0 * math.pi * turn), math.sin(2.0 * math.pi * turn)
        cosine, sine = ahead, across
        for k in range(1, values.shape[1] // 2 + 1):
            if k % RENEWED == 0:
                angle = 2.0 * math.pi * (k * turn - math.floor(k * turn))
                cosine, sine = math.cos(angle), math.sin(angle)
            values[n, 2 * k - 1], values[n, 2 * k] = root * cosine, root * sine
            cosine, sine = cosine * ahead - sine * across, sine * ahead + cosine * across


@final
@dataclass(frozen=True)
class Fourier(GramBasis):
    """Sines and cosines of one input, up to ``order`` waves in a period; ``period=None`` is the length of the domain.

    Over a whole period they are orthonormal as they are: nothing is formed but their values. A function that does not
    repeat wants a longer period, of which the domain is a part; waves over a part are nearly combinations of each
    other, so that there are fewer orthonormal functions than waves.

    To grow, the period doubles, and the order with it, until it holds the new box: what was a wave stays one.

    >>> import numpy as np
    >>> from bayou import Fourier
    >>> basis = Fourier(order=2, domain=(0.0, 24.0))
    >>> np.abs(basis.encode(np.array([[6.0]]))).round(2)
    array([[1.  , 0.  , 1.41, 1.41, 0.  ]])
    >>> basis.grown(((0.0, 30.0),))[0]
    Fourier(order=4, domain=(0.0, 48.0), period=None)
    >>> Fourier(order=20, domain=(0.0, 24.0), period=48.0).size  # of 41 waves
    31
    """

    order: int = 10
    domain: Interval = (0.0, 1.0)
    period: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", whole_number("order", self.order, 0, MOST))
        object.__setattr__(self, "domain", checked_interval(self.domain))
        if self.period is not None:
            try:
                period = float(self.period)
            except (TypeError, ValueError):
                period = math.nan
            if not self._length * (1.0 - SAME) <= period < math.inf:
                raise InvalidSpec(f"`period` must be finite, and hold the domain {self.domain}; got {self.period!r}.")
            object.__setattr__(self, "period", period)

    @property
    def _length(self) -> float:
        return self.domain[1] - self.domain[0]

    @property
    def _period(self) -> float:
        return self._length if self.period is None else self.period

    @property
    def _whole(self) -> bool:
        return abs(self._period - self._length) <= SAME * self._period

    @property
    def box(self) -> Box:
        return (self.domain,)

    @cached_property
    def orthonormal(self) -> Orthonormal:
        if self._whole:
            return Orthonormal(np.eye(2 * self.order + 1), self.roughness)
        check_dense(2 * self.order + 1)
        return orthonormalised(self.gram(), self.slopes())

    @property
    def size(self) -> int:
        return 2 * self.order + 1 if self._whole else len(self.orthonormal.transform)

    @property
    def roughness(self) -> Vector:
        return self._frequencies**2 / SLOPE_UNIT if self._whole else self.orthonormal.roughness

    @property
    def means(self) -> Vector:
        return self.averages() if self._whole else self.orthonormal.transform @ self.averages()

    @property
    def _waves(self) -> Vector:
        """How many waves each function has in a period: 0, 1, 1, 2, 2, ..."""
        return np.floor(0.5 * np.arange(1.0, 2.0 * self.order + 2.0))

    @property
    def _frequencies(self) -> Vector:
        """In radians over the domain."""
        frequencies: Vector = 2.0 * math.pi * self._waves * (self._length / self._period)
        return frequencies

    def encode(self, rows: Matrix) -> Matrix:
        values = self.functions(rows)
        return values if self._whole else np.ascontiguousarray(values @ self.orthonormal.transform.T)

    def functions(self, rows: Matrix) -> Matrix:
        x = checked_rows(rows, self.box)[:, 0]
        values = np.empty((len(x), 2 * self.order + 1))
        waves(self._turns(x - self.domain[0]), values)
        return values

    def _turns(self, beyond: Vector | float) -> Vector:
        """Turns of the first wave, so far beyond the lower end; the remainder is exact, however many they are."""
        return np.asarray((math.fmod(self.domain[0], self._period) + beyond) / self._period)

    def _means(self, n: Vector) -> tuple[Vector, Vector]:
        """The means of cos and sin of n waves in a period, over the domain."""
        turn = float(self._turns(0.5 * self._length)) % 1.0
        inside = np.sinc(n * (self._length / self._period))
        return np.cos(2.0 * math.pi * n * turn) * inside, np.sin(2.0 * math.pi * n * turn) * inside

    def averages(self) -> Vector:
        averages = np.zeros(2 * self.order + 1)
        averages[0] = 1.0
        if not self._whole:
            n = np.arange(1.0, self.order + 1.0)
            cosines, sines = self._means(n)
            averages[1::2], averages[2::2] = math.sqrt(2.0) * cosines, math.sqrt(2.0) * sines
        return averages

    def _products(self) -> tuple[Matrix, Matrix]:
        """The means of 2 f_j f_k, of the waves and of the waves a quarter of a period further on: (cos, sin) for
        (cos, sin), and (-sin, cos).
        """
        n = self._waves
        is_sine = np.arange(n.size) % 2 == 0
        is_sine[0] = False
        cos_less, sin_less = self._means(np.subtract.outer(n, n))
        cos_more, sin_more = self._means(np.add.outer(n, n))
        sine_sine, sine_cosine = np.outer(is_sine, is_sine), np.outer(is_sine, ~is_sine)
        cosine_sine, cosine_cosine = sine_cosine.T, np.outer(~is_sine, ~is_sine)
        alike = sine_sine.astype(float) + cosine_cosine
        sign = cosine_cosine.astype(float) - sine_sine
        mixed = sin_more * (sine_cosine | cosine_sine)
        turned = sin_less * (sine_cosine.astype(float) - cosine_sine)
        return cos_less * alike + cos_more * sign + mixed + turned, cos_less * alike - cos_more * sign - mixed + turned

    def gram(self) -> Matrix:
        if self._whole:
            return np.eye(2 * self.order + 1)
        size = np.r_[1.0, np.full(2 * self.order, math.sqrt(2.0))]
        gram: Matrix = 0.5 * self._products()[0] * np.outer(size, size)
        return gram

    def slopes(self) -> Matrix:
        """The slope of cos is -sin, that of sin is cos, times the frequency."""
        if self._whole:
            return np.diag(self.roughness)
        slope = math.sqrt(2.0) * self._frequencies
        slopes: Matrix = 0.5 * self._products()[1] * np.outer(slope, slope) / SLOPE_UNIT
        return slopes

    def coefficients(self, weights: Vector) -> Vector:
        if self._whole:
            return np.array(weights, dtype=np.float64)
        coefficients: Vector = weights @ self.orthonormal.transform
        return coefficients

    def grown(self, box: Box) -> tuple[Fourier, Matrix]:
        wider, matrix = self.extended(hull(self.box, box))
        return (wider, matrix) if self._whole and wider._whole else self._grown(wider, matrix)

    def extended(self, box: Box) -> tuple[Fourier, Matrix]:
        (domain,) = box
        period, factor = self._period, 1
        while period * (1.0 + SAME) < domain[1] - domain[0]:
            period, factor = 2.0 * period, 2 * factor
        if self.order * factor > MOST:
            raise InvalidSpec(f"to hold {domain}, {self!r} would need {self.order * factor} waves; at most {MOST}.")
        if self._whole:
            domain = self.domain if factor == 1 else self._around(domain, period)
        given = None if domain[1] - domain[0] == period else period
        wider = Fourier(self.order * factor, domain, given)
        matrix = np.zeros((2 * self.order + 1, 2 * wider.order + 1))
        matrix[0, 0] = 1.0
        k = np.arange(1, self.order + 1)
        matrix[2 * k - 1, 2 * factor * k - 1] = 1.0
        matrix[2 * k, 2 * factor * k] = 1.0
        return wider, matrix

    def _around(self, domain: Interval, period: float) -> Interval:
        """A whole period that holds a wider domain: beyond the end that has moved, or about both."""
        if domain[0] == self.domain[0]:
            return domain[0], domain[0] + period
        if domain[1] == self.domain[1]:
            return domain[1] - period, domain[1]
        low = domain[0] - 0.5 * (period - (domain[1] - domain[0]))
        return low, low + period
