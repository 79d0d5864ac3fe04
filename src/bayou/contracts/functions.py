"""Functions of the inputs and of the weights, and how reluctantly they change."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayou.contracts.data import Kernel, Matrix, Spec, Vector


class Schedule(Spec):
    """How large the steps of a perceptron are, by the examples per weight seen so far or by its own mistakes."""

    @property
    @abstractmethod
    def numbers(self) -> Vector:
        """What the belief keeps of it, and `bayou.numerics.schedules.rate` reads."""


class Stiffness(Spec):
    """How reluctantly a function changes, as examples are learnt: the precision of what is known of it."""

    @abstractmethod
    def numbers(self, n_functions: int) -> Vector:
        """What the belief keeps of it, and `bayou.numerics.stiffness` reads."""


class Basis(Spec):
    """Functions over a box: a latent that is not linear in its inputs, but linear in the weights of these.

    They are learnt through combinations of them that are orthonormal over the box: the mean of psi_j psi_k, with all of
    the box alike, is 1 if j = k, else 0. So the squared length of the weights is the mean square of the function, and
    moving a weight changes the function by as much as moving any other.
    """

    @property
    @abstractmethod
    def box(self) -> tuple[tuple[float, float], ...]:
        """Per input, the least and the largest value that it takes."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many orthonormal functions there are: the number of features."""

    @abstractmethod
    def encode(self, rows: Matrix) -> Matrix:
        """The orthonormal functions at some inputs, which must lie in the box: (row, function)."""

    @property
    @abstractmethod
    def roughness(self) -> Vector:
        """Per orthonormal function the mean of |slope|^2 / 6, each input in units of its side of the box: 2 for a line.

        Slopes of different functions are orthogonal too, so this tells all of it.
        """

    @property
    @abstractmethod
    def means(self) -> Vector:
        """The mean of each orthonormal function over the box."""

    @abstractmethod
    def functions(self, rows: Matrix) -> Matrix:
        """The functions that the user named, as they are: (row, function)."""

    @abstractmethod
    def gram(self) -> Matrix:
        """The mean of phi_j phi_k over the box, of the functions as they are."""

    def gram_band(self) -> Matrix:
        """The same, a row per function j: its product with itself, then with the functions j + 1, j + 2, ... as far as
        any two overlap, and zeros beyond the last function. Narrow for functions that are local.
        """
        gram = self.gram()
        n = len(gram)
        band = np.zeros((n, n))
        for j in range(n):
            band[j, : n - j] = gram[j, j:]
        return band

    @abstractmethod
    def coefficients(self, weights: Vector) -> Vector:
        """Weights of the orthonormal functions, told as weights of the functions as they are."""

    @abstractmethod
    def grown(self, box: tuple[tuple[float, float], ...]) -> tuple[Basis, Matrix]:
        """A basis over a box that holds this one and the other, and what the old functions are in it.

        In the old box, the old orthonormal functions are the matrix times the new ones: what was learnt can be told in
        the new ones as it is.
        """


class Growth(NamedTuple):
    """What becomes of features whose functions get a wider box: in the old box, old = forward @ new, new = back @ old.

    ``share`` is what the old box is of the new one.
    """

    forward: Matrix
    back: Matrix
    share: float


class Function(Spec):
    """f(x; w): a latent, or several, that are not linear in the weights. A learner sees it through its tangent at the
    mean of the weights, in which it is linear again, with the gradient in place of the features.

    What is compiled has the kernel ``linearize(layout, weights, features, values, jacobian, inputs)``: it writes the
    value of each latent, its gradient in the weights (a row per latent, one after the other), and, unless ``inputs`` is
    empty, its gradient in the features. What is not (``linearize`` is None) has `linearized` alone.
    """

    linearize: ClassVar[Kernel | None] = None
    n_outputs: int = 1

    @abstractmethod
    def n_weights(self, n_features: int) -> int:
        """How many weights there are."""

    @abstractmethod
    def start(self, n_features: int) -> tuple[Vector, Vector]:
        """Mean and variance of each weight before any example. The mean must break what symmetry there is."""

    @abstractmethod
    def linearized(self, weights: Vector, rows: Matrix) -> tuple[Matrix, NDArray[np.float64]]:
        """Values (row, latent) and gradients in the weights (row, latent, weight)."""

    def layout(self, n_features: int) -> Vector:
        """The numbers that the kernel reads."""
        return np.array([float(n_features)])
