"""The precision of what is known of a function, as one number that grows: five numbers are kept.

start         at first
smoothness    how much stiffer rough functions are at first: start * (1 + smoothness * roughness)
grown         what examples have added, to all functions alike
kind          how it grows: `BY_FACTOR`, `BY_EVIDENCE` or `BY_PROJECTION`
rate          the factor, or what a unit of evidence adds
"""

from __future__ import annotations

import numpy as np

from bayou.contracts import Vector
from bayou.numerics.jit import kernel

BY_FACTOR, BY_EVIDENCE, BY_PROJECTION = 0.0, 1.0, 2.0
LARGEST = 1e200  # beyond, nothing moves any more


def by_factor(start: float, growth: float) -> Vector:
    """The stiffness that grows by a factor per example."""
    return np.array([start, 0.0, 0.0, BY_FACTOR, growth])


def by_evidence(start: float, rate: float) -> Vector:
    """The stiffness that grows with the precision of the sites."""
    return np.array([start, 0.0, 0.0, BY_EVIDENCE, rate])


def by_projection(start: float, smoothness: float) -> Vector:
    """The stiffness that keeps the trace of the covariance."""
    return np.array([start, smoothness, 0.0, BY_PROJECTION, 0.0])


@kernel
def stiffen(numbers: Vector, share: float, precision: float, loss: float, width: float) -> None:
    """One more example, or a share of it, whose site has this precision.

    ``loss`` is what the exact update takes from the trace of the covariance, ``width`` the trace of its square: what a
    unit of stiffness would take.
    """
    kind, grown = numbers[3], numbers[2]
    if kind == BY_FACTOR:
        grown = (numbers[0] + grown) * numbers[4] ** share - numbers[0]
    elif kind == BY_EVIDENCE:
        grown += numbers[4] * precision
    elif width > 0.0:
        grown += loss / width
    numbers[2] = min(max(grown, 0.0), LARGEST)
