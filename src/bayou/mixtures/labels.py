"""Whose each point is: Yang's probabilities, and the weights of harmony that follow from them.

    p = q(l | x),   w = p (1 + (1 - matching) delta),   delta = log q(x, l) - its mean under p

with weights below zero left out. Sums may be cut off: then a point is of its ``nearest`` clusters alone, by q(x, l).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bayou.contracts import Matrix, Vector
from bayou.numerics.jit import kernel

LOWEST = -1e300  # in the place of log 0: times 0 it is 0


class Labels(NamedTuple):
    """What Yang tells: probabilities, weights, log likelihood and harmony."""

    probability: Matrix
    weight: Matrix
    log_likelihood: float
    harmony: float


def yang(joint: Matrix, matching: float, nearest: int = 0) -> Labels:
    """Whose each point is, from log q(x, l); with ``nearest`` above 0, of so many clusters at most."""
    if 0 < nearest < joint.shape[1]:
        least = np.partition(joint, -nearest, axis=1)[:, -nearest]
        joint = np.where(joint >= least[:, None], joint, LOWEST)
    top = joint.max(axis=1, keepdims=True)
    probability = np.exp(joint - top)
    total = probability.sum(axis=1, keepdims=True)
    probability /= total
    with np.errstate(invalid="ignore"):
        expected = np.where(probability > 0.0, probability * joint, 0.0)
    harmony = expected.sum(axis=1, keepdims=True)
    log_likelihood = float(np.sum(np.log(total) + top))
    if matching == 1.0:
        return Labels(probability, probability, log_likelihood, float(harmony.sum()))
    weight = probability * np.maximum(1.0 + (1.0 - matching) * (np.maximum(joint, LOWEST) - harmony), 0.0)
    weight /= weight.sum(axis=1, keepdims=True)
    return Labels(probability, weight, log_likelihood, float(harmony.sum()))


@kernel
def keep_nearest(joint: Vector, nearest: int) -> None:
    """Leave out all but so many clusters."""
    left = joint.copy()
    least = np.inf
    for _ in range(nearest):
        best = int(np.argmax(left))
        least = left[best]
        left[best] = -np.inf
    for c in range(joint.size):
        if joint[c] < least:
            joint[c] = LOWEST


@kernel
def weigh(joint: Vector, matching: float, weight: Vector) -> tuple[float, float]:
    """The weights of one point, and its log likelihood and harmony."""
    top = joint[0]
    for c in range(1, joint.size):
        top = max(top, joint[c])
    total = 0.0
    for c in range(joint.size):
        weight[c] = math.exp(joint[c] - top)
        total += weight[c]
    harmony = 0.0
    for c in range(joint.size):
        weight[c] /= total
        if weight[c] > 0.0:
            harmony += weight[c] * joint[c]
    log_likelihood = top + math.log(total)
    if matching < 1.0:
        total = 0.0
        for c in range(joint.size):
            weight[c] *= max(1.0 + (1.0 - matching) * (joint[c] - harmony), 0.0)
            total += weight[c]
        for c in range(joint.size):
            weight[c] /= total
    return log_likelihood, harmony
