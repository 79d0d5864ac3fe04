"""The angle between two vectors, with its digits also where it is small: an arc cosine would lose half of them."""

from __future__ import annotations

import math
from typing import Any

from bayou.contracts import Array, Mask, Vector
from bayou.numerics.jit import callee, kernel


@kernel
def angle(one: Array, other: Array) -> float:
    """From 0 to pi; a right angle if one of them has no direction.

    2 atan(|a - b| / |a + b|) for the vectors at length 1.
    """
    length_one, length_other = 0.0, 0.0
    for i in range(one.size):
        length_one += one[i] * one[i]
        length_other += other[i] * other[i]
    if length_one == 0.0 or length_other == 0.0:
        return 0.5 * math.pi
    scale_one, scale_other = 1.0 / math.sqrt(length_one), 1.0 / math.sqrt(length_other)
    apart, together = 0.0, 0.0
    for i in range(one.size):
        a, b = one[i] * scale_one, other[i] * scale_other
        apart += (a - b) * (a - b)
        together += (a + b) * (a + b)
    return 2.0 * math.atan2(math.sqrt(apart), math.sqrt(together))


def learn_by_angles(
    belief: Any,
    kernels: Any,
    params: Vector,
    features: Array,
    missing: Mask,
    targets: Vector,
    weights: Vector,
    record: Array,
    teacher: Vector,
    ends: Array,
    angles: Vector,
) -> int:
    """`callee`, a pass that learns, in stretches up to each of the ends; after each, the angle between the means and
    the teacher. Returns how many rows were learnt: all, or those before a row that has no finite latent.
    """
    start: int = 0
    for k in range(ends.size):
        end = ends[k]
        rows, answers = features[start:end], targets[start:end]
        start += callee(belief, kernels, params, rows, missing, answers, weights, record[start:end])
        if start < end:
            return start
        angles[k] = angle(belief.mean, teacher)
    return start
