"""1 and sqrt(2) cos(w . x + b), with w from the spectral density of a kernel and b uniform: random Fourier features.

The mean over many w of two such functions at x and y is the kernel k(x - y) (Rahimi and Recht 2007, "Random features
for large-scale kernel machines"). The mean of cos(w . x + b) over a box of middle m and sides L is

    cos(w . m + b) prod_d sinc(w_d L_d / (2 pi))

so that Gram matrices are sums of two of these, for the sums and the differences of frequencies and phases.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple, final

import numpy as np
from scipy.special import gammaincinv, ndtri

from bayou.contracts import Matrix, Vector
from bayou.errors import InvalidSpec
from bayou.numerics.grams import (
    SLOPE_UNIT,
    Box,
    GramBasis,
    checked_intervals,
    checked_rows,
    positive_numbers,
    whole_number,
)

MOST = 100_000
# Degrees of freedom of the spectral density, a Student's t: those of a Matern kernel are twice its smoothness.
KERNELS = {"gaussian": math.inf, "matern12": 1.0, "matern32": 3.0, "matern52": 5.0}


class Waves(NamedTuple):
    """Per wave its frequency along each input, in turns per unit, and its phase at the lower corner of the box."""

    frequencies: Matrix
    phases: Vector


def uniform(seed: int, n: int) -> Vector:
    """Numbers between 0 and 1 from the bits themselves: a model file must find the same functions in every NumPy."""
    raw = np.random.PCG64(seed).random_raw(n)
    return ((raw >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


@final
@dataclass(frozen=True)
class RandomFourier(GramBasis):
    """Waves in random directions, the more of them the closer to a Gaussian process of that kernel.

    ``length_scale`` is that of the kernel in units of the inputs: one for all, or one each. ``kernel`` is "gaussian",
    "matern12", "matern32" or "matern52", the rougher the smaller the number. There are a constant and ``n_functions``
    waves; of waves that are long beside the box many are nearly combinations of each other, so that there are fewer
    orthonormal functions. As the box grows, the waves stay.

    >>> import numpy as np
    >>> from bayou import RandomFourier
    >>> basis = RandomFourier(n_functions=2000, length_scale=0.5)
    >>> waves = basis.functions(np.array([[0.2], [0.7]]))[:, 1:]
    >>> print(f"{waves[0] @ waves[1] / 2000:.2f}; the kernel is {np.exp(-0.5):.2f}")
    0.63; the kernel is 0.61
    """

    n_functions: int = 100
    length_scale: float | tuple[float, ...] = 1.0
    domain: Box = ((0.0, 1.0),)
    kernel: str = "gaussian"
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "domain", checked_intervals(self.domain))
        object.__setattr__(self, "n_functions", whole_number("n_functions", self.n_functions, 1, MOST))
        object.__setattr__(self, "seed", whole_number("seed", self.seed, 0, 2**63 - 1))
        scales = positive_numbers("length_scale", self.length_scale, len(self.domain))
        object.__setattr__(self, "length_scale", scales)
        if self.kernel not in KERNELS:
            raise InvalidSpec(f"`kernel` must be one of {', '.join(KERNELS)}; got {self.kernel!r}.")

    @property
    def box(self) -> Box:
        return self.domain

    @cached_property
    def _waves(self) -> Waves:
        n, n_inputs = self.n_functions, len(self.domain)
        drawn = uniform(self.seed, n * (n_inputs + 2)).reshape(n, n_inputs + 2)
        degrees = KERNELS[self.kernel]
        normal = ndtri(drawn[:, 2:])
        if degrees < math.inf:
            normal /= np.sqrt(gammaincinv(0.5 * degrees, drawn[:, 1]) * (2.0 / degrees))[:, None]
        frequencies = normal / (2.0 * math.pi * np.asarray(self.length_scale))
        corner = [Fraction(low) for low, _ in self.domain]  # exact: there may be very many turns between 0 and the box
        turns = [sum(Fraction(f) * low for f, low in zip(wave, corner, strict=True)) % 1 for wave in frequencies]
        return Waves(frequencies, drawn[:, 0] + np.array([float(turn) for turn in turns]))

    def functions(self, rows: Matrix) -> Matrix:
        x = checked_rows(rows, self.domain)
        values = np.empty((len(x), 1 + self.n_functions))
        values[:, 0] = 1.0
        turns = (x - np.array(self.domain)[:, 0]) @ self._waves.frequencies.T + self._waves.phases
        np.cos(2.0 * math.pi * turns, out=values[:, 1:])
        values[:, 1:] *= math.sqrt(2.0)
        return values

    @property
    def _sides(self) -> Vector:
        return np.array([high - low for low, high in self.domain])

    @property
    def _middle(self) -> Vector:
        """The phase of each wave in the middle of the box."""
        middle: Vector = self._waves.phases + self._waves.frequencies @ (0.5 * self._sides)
        return middle

    def averages(self) -> Vector:
        inside = np.sinc(self._waves.frequencies * self._sides).prod(axis=1)
        waves: Vector = math.sqrt(2.0) * np.cos(2.0 * math.pi * self._middle) * inside
        return np.concatenate([np.ones(1), waves])

    def _means(self, join: np.ufunc) -> Matrix:
        """The mean of the cosine of the sum, or of the difference, of every two phases."""
        means: Matrix = np.cos(2.0 * math.pi * join.outer(self._middle, self._middle))
        for frequencies, side in zip(self._waves.frequencies.T, self._sides, strict=True):
            means *= np.sinc(join.outer(frequencies, frequencies) * side)
        return means

    def gram(self) -> Matrix:
        averages = self.averages()
        gram = np.empty((averages.size, averages.size))
        gram[0], gram[:, 0] = averages, averages
        gram[1:, 1:] = self._means(np.subtract) + self._means(np.add)
        return gram

    def slopes(self) -> Matrix:
        slopes = np.zeros((1 + self.n_functions, 1 + self.n_functions))
        steps = 2.0 * math.pi * self._waves.frequencies * self._sides
        slopes[1:, 1:] = (self._means(np.subtract) - self._means(np.add)) * (steps @ steps.T) / SLOPE_UNIT
        return slopes

    def extended(self, box: Box) -> tuple[RandomFourier, Matrix]:
        wider = RandomFourier(self.n_functions, self.length_scale, box, self.kernel, self.seed)
        return wider, np.eye(1 + self.n_functions)
