"""Inputs around centres and labels that are flipped: the worlds of section 3, and how wrong a student is in them.

A centre is told by its coordinates (along, across): its part along the teacher and its part along one direction at
right angles to it, which is the teacher with its weights exchanged in pairs. Teachers have every direction, so a
student that starts at one fixed place starts at random.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bayou.contracts import Matrix, Vector
from bayou.papers.ensembles import Generator, Pupil
from bayou.theory import OffCentre, off_centre_error


@dataclass(frozen=True)
class Centre:
    """A share of the inputs, around a place."""

    along: float
    across: float
    share: float = 1.0


@dataclass(frozen=True)
class Clusters:
    """y = sign(w . x), flipped with probability ``flip_rate``; x normal, of unit variance, around one of the centres.

    With an ``intercept`` rows have a last column of ones, which the teacher does not use.
    """

    n_weights: int  # even
    flip_rate: float
    centres: tuple[Centre, ...]
    intercept: bool = False

    @property
    def n_features(self) -> int:
        """How many columns rows have."""
        return self.n_weights + self.intercept

    @cached_property
    def _parts(self) -> tuple[Vector, Vector, Vector]:
        """Along, across and cumulated share of each centre."""
        numbers = np.array([(centre.along, centre.across, centre.share) for centre in self.centres])
        return numbers[:, 0], numbers[:, 1], np.cumsum(numbers[:, 2])

    def teacher(self, rng: Generator) -> Vector:
        """A unit vector."""
        drawn = rng.standard_normal(self.n_weights)
        return np.asarray(drawn / math.sqrt(drawn @ drawn))

    def examples(self, rng: Generator, teacher: Vector, n: int) -> tuple[Matrix, Vector]:
        """So many rows and targets."""
        along, across, shares = self._parts
        flipped = rng.random(n) < self.flip_rate
        inputs = rng.standard_normal((n, self.n_weights))
        centres = np.outer(along, teacher) + np.outer(across, beside(teacher))
        inputs += centres[0] if len(centres) == 1 else centres[np.searchsorted(shares[:-1], rng.random(n), "right")]
        fields = np.einsum("ij,j->i", inputs, teacher)
        rows = np.column_stack([inputs, np.ones(n)]) if self.intercept else inputs
        return rows, np.where((fields > 0.0) != flipped, 1.0, -1.0)

    def error(self, overlap: float, across: float, intercept: float = 0.0) -> float:
        """The chance that a label is not sign(w . x + intercept), (8): w a unit vector with these overlaps with the
        teacher and the direction beside it.
        """
        missed, R = 0.0, min(max(overlap, -1.0), 1.0)
        lost = math.sqrt((1.0 - R) * (1.0 + R))
        for centre in self.centres:
            field = R * centre.along + across * centre.across + intercept
            # The error depends on R, q and q0 alone: the distance only has to be one at which this q is possible.
            reach = abs(field - R * centre.along) / lost if lost else 0.0
            task = OffCentre(0.0, math.hypot(centre.along, reach), centre.along)
            missed += centre.share * float(off_centre_error(task, R, field))
        return self.flip_rate + (1.0 - 2.0 * self.flip_rate) * missed

    def measure(self, pupil: Pupil, teacher: Vector, rng: Generator) -> tuple[float]:
        """The error of a student's mean."""
        return (self.error_of(pupil.belief.mean, teacher),)

    def error_of(self, weights: Vector, teacher: Vector) -> float:
        """The error of these weights, the last of which is that of the intercept where there is one."""
        w = weights[: self.n_weights]
        scale = 1.0 / math.sqrt(w @ w)
        offset = float(weights[-1]) * scale if self.intercept else 0.0
        return self.error(float(w @ teacher) * scale, float(w @ beside(teacher)) * scale, offset)


def beside(teacher: Vector) -> Vector:
    """A direction at right angles: weights exchanged in pairs, one of each with its sign turned."""
    turned = np.empty_like(teacher)
    turned[0::2], turned[1::2] = -teacher[1::2], teacher[0::2]
    return turned


def random_start(n_weights: int, seed: int = 1995) -> tuple[float, ...]:
    """Weights drawn from N(0, 1), as a student's specification names them."""
    return tuple(np.random.default_rng(seed).standard_normal(n_weights).tolist())
