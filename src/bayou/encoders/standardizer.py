"""z = (x - centre) / deviation, in a frame that is taken from the values seen and changes seldom.

Every row that is learnt counts in the running moments. The frame follows them only when it is retaken, so that rows in
between are scaled alike; what a model has learnt in the old frame can be told in the new one, because the change is
linear. A column gets its frame with the first row that makes it vary, and gives 0 before. A value that is missing (NaN)
gives 0, marked as missing. A column of zeros and ones keeps its unit: in deviations, the ones of a rare category would
be told as huge, and a model would take them for more than they are.

One value may be wrong by any power of ten. In a frame that has counted it, none of n values is further than sqrt(n)
deviations from the mean; so a value is cut, when it is counted and when it is scaled, a little beyond that of those
seen so far. Who comes with a new unit is followed within some rows; who comes alone is forgotten as more is seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bayou.contracts import Array, Mask, Matrix, Spec, Vector
from bayou.errors import InvalidFeatures, ShapeMismatch
from bayou.numerics.finite import count_larger
from bayou.numerics.jit import kernel, vectorized_kernel

# Squares of larger values would overflow.
LARGEST = 1e140
# A deviation this small beside the mean is rounding.
ROUNDING = 1e-12
# Zeros and ones are known by a variance of mean (1 - mean), up to so much of it: rounding.
NEARLY = 1e-9
# A frame is retaken if a centre has moved by, or a deviation changed by, this fraction of the deviation.
CHANGE = 0.05
# Values are cut at this multiple of sqrt(n) deviations; of a few rows hardly, for their deviation is hardly known.
BEYOND, EARLY = 2.0, 1e4
# What is nearer, in the deviation of the frame, is never cut.
NEAR = 18.0


class Frame(NamedTuple):
    """Per column: weight, mean and summed squared deviations of what was seen; centre and deviation in use (or 0)."""

    weight: Vector
    mean: Vector
    squares: Vector
    centre: Vector
    deviation: Vector


@kernel
def deviation_of(frame: Frame, j: int) -> float:
    """Standard deviation of what was seen of a column, 1 of zeros and ones; 0 if it has not varied beyond rounding."""
    if frame.squares[j] <= 0.0:
        return 0.0
    variance, of_zeros_and_ones = frame.squares[j] / frame.weight[j], frame.mean[j] * (1.0 - frame.mean[j])
    if abs(variance - of_zeros_and_ones) <= NEARLY * variance:
        return 1.0
    deviation = math.sqrt(variance)
    return deviation if deviation > ROUNDING * abs(frame.mean[j]) and deviation > 1.0 / LARGEST else 0.0


@kernel
def reach(weight: float) -> float:
    """How many deviations from its centre a value may be, where so much was seen before."""
    return BEYOND * math.sqrt(weight) + EARLY / max(weight * weight, 1e-300)


@kernel
def cut(frame: Frame, j: int, x: float) -> float:
    """A value, not further than that, where there is a frame that was taken from what was seen."""
    if not (frame.deviation[j] > 0.0 and frame.weight[j] > 0.0):
        return x
    near = NEAR * frame.deviation[j]
    if not abs(x - frame.centre[j]) > near:
        return x
    room = max(reach(frame.weight[j]) * math.sqrt(frame.squares[j] / frame.weight[j]), near)
    far = min(room, LARGEST)
    found: float = min(max(x, frame.mean[j] - far), frame.mean[j] + far)
    return found


@kernel
def count_one(frame: Frame, j: int, x: float, weight: float, centred: int) -> None:
    """Let a value of one column into its moments, and take its frame if it has none."""
    if weight <= 0.0 or math.isnan(x):
        return
    if frame.weight[j] == 0.0:
        frame.weight[j], frame.mean[j] = weight, x
    else:
        total = frame.weight[j] + weight
        before = x - frame.mean[j]
        frame.mean[j] += before * (weight / total)
        frame.squares[j] += max(weight * before * (x - frame.mean[j]), 0.0)
        frame.weight[j] = total
    if frame.deviation[j] == 0.0:
        frame.deviation[j] = deviation_of(frame, j)
        if frame.deviation[j] > 0.0:  # a column that was constant for long has not shown how far it goes
            frame.deviation[j] = max(frame.deviation[j], abs(x - frame.mean[j]))
        frame.centre[j] = frame.mean[j] if centred and frame.deviation[j] > 0.0 else 0.0


@kernel
def count(frame: Frame, row: Vector, weight: float, centred: int) -> None:
    """Let a row into the moments (West's update: every term of the sum of squares is a product of equal signs)."""
    if weight <= 0.0:
        return
    for j in range(row.size):
        count_one(frame, j, row[j], weight, centred)


@kernel
def tamed(frame: Frame, row: Vector) -> Vector:
    """A row whose values are cut."""
    tame = row.copy()
    for j in range(row.size):
        if not math.isnan(row[j]):
            tame[j] = cut(frame, j, row[j])
    return tame


@kernel
def count_whole(frame: Frame, values: Vector, weights: Vector) -> None:
    """Let values of the one column there is into the moments, however far they are."""
    for n in range(values.size):
        count_one(frame, 0, values[n], weights[n] if weights.size else 1.0, 1)


@kernel
def scale(frame: Frame, row: Vector, first: int, features: Array, missing: Mask) -> int:
    """Write the scaled row to features[first:]; returns how many values were missing."""
    absent = 0
    for j in range(row.size):
        features[first + j] = 0.0
        missing[first + j] = False
        if frame.deviation[j] > 0.0:
            if math.isnan(row[j]):
                missing[first + j] = True
                absent += 1
            else:
                features[first + j] = (row[j] - frame.centre[j]) / frame.deviation[j]
    return absent


@kernel
def count_and_scale(
    frame: Frame,
    rows: Matrix,
    weights: Vector,
    learn: int,
    centred: int,
    first: int,
    features: Array,
    missing: Mask,
) -> int:
    """Each row in turn: counted, if ``learn``, then scaled; returns how many values were missing.

    A value too large to square stops it at that row, before the row is counted; then it returns -1.
    """
    absent = 0
    centre, deviation = frame.centre, frame.deviation
    for n in range(rows.shape[0]):
        is_wild = False
        for j in range(rows.shape[1]):
            if abs(rows[n, j]) > LARGEST:
                return -1
            is_wild |= abs(rows[n, j] - centre[j]) > NEAR * deviation[j] and deviation[j] > 0.0
        row = tamed(frame, rows[n]) if is_wild else rows[n]
        if learn:
            count(frame, row, weights[n] if n < weights.size else 1.0, centred)
        absent += scale(frame, row, first, features[n], missing[n])
    return absent


@vectorized_kernel
def count_together(frame: Frame, j: int, values: Vector, weights: Vector) -> None:
    """Let values of one column into its moments, all at once: the same up to rounding, in a fraction of the time."""
    total, first = 0.0, 0.0
    for n in range(values.size):
        told = 1.0 if values[n] == values[n] else 0.0
        weight = told * (weights[n] if weights.size else 1.0)
        total += weight
        first += weight * (values[n] if values[n] == values[n] else 0.0)
    if total <= 0.0:
        return
    mean, squares = first / total, 0.0
    for n in range(values.size):
        apart = values[n] - mean if values[n] == values[n] else 0.0
        squares += (weights[n] if weights.size else 1.0) * apart * apart
    apart, known = mean - frame.mean[j], frame.weight[j]
    frame.weight[j] = known + total
    frame.mean[j] += apart * total / (known + total)
    frame.squares[j] += squares + apart * apart * known * total / (known + total)


@vectorized_kernel
def scale_together(frame: Frame, j: int, values: Vector, scaled: Vector) -> float:
    """Values of one column, scaled as they are; returns how far the farthest is.

    NaN stays NaN, without a frame all are 0.
    """
    centre, deviation, farthest = frame.centre[j], frame.deviation[j], 0.0
    per_deviation = 1.0 / deviation if deviation > 0.0 else 0.0
    for n in range(values.size):
        scaled[n] = (values[n] - centre) * per_deviation
        farthest = max(farthest, abs(scaled[n]) if scaled[n] == scaled[n] else 0.0)
    return farthest


@kernel
def _count_and_scale_value(
    frame: Frame,
    j: int,
    values: Vector,
    weights: Vector,
    learn: int,
    centred: int,
    farthest: float,
    scaled: Vector,
    n: int,
) -> None:
    if learn:
        count_one(frame, j, cut(frame, j, values[n]), weights[n] if weights.size else 1.0, centred)
    if math.isnan(values[n]) or not frame.deviation[j] > 0.0:
        scaled[n] = math.nan if math.isnan(values[n]) else 0.0
        return
    z = (cut(frame, j, values[n]) - frame.centre[j]) / frame.deviation[j]
    scaled[n] = min(max(z, -farthest), farthest)


@kernel
def count_and_scale_column(
    frame: Frame, j: int, values: Vector, weights: Vector, learn: int, centred: int, farthest: float, scaled: Vector
) -> None:
    """One column of some rows: counted, if ``learn``, then scaled, none further than so many deviations.

    Before it has a frame, and where some values are so far that they may be cut, each row is taken alone.
    """
    first = 0
    while first < values.size and frame.deviation[j] == 0.0 and learn:
        _count_and_scale_value(frame, j, values, weights, learn, centred, farthest, scaled, first)
        first += 1
    if scale_together(frame, j, values[first:], scaled[first:]) > NEAR:
        for n in range(first, values.size):
            _count_and_scale_value(frame, j, values, weights, learn, centred, farthest, scaled, n)
    elif learn and first < values.size:
        count_together(frame, j, values[first:], weights[first:])


@dataclass(frozen=True)
class Standardizer(Spec):
    """Running standardisation of numbers; with ``centred=False`` they are scaled, but zero stays zero.

    >>> import numpy as np
    >>> from bayou import Standardizer
    >>> encoder = Standardizer()
    >>> frame = encoder.begin(2)
    >>> encoder.learn(frame, np.array([[1.0, 7.0], [3.0, 7.0]]))
    >>> features, missing = encoder.encode(frame, np.array([[3.0, np.nan]]))
    >>> features, missing
    (array([[1., 0.]]), array([[False, False]]))
    """

    centred: bool = True

    def begin(self, n_columns: int) -> Frame:
        """The frame of no rows."""
        return Frame(*(np.zeros(n_columns) for _ in Frame._fields))

    def learn(self, frame: Frame, rows: Matrix, weights: Vector | None = None) -> None:
        """Let rows into the moments, in place."""
        self._run(frame, rows, np.zeros(0) if weights is None else weights, learn=1)

    def encode(self, frame: Frame, rows: Matrix) -> tuple[Matrix, Mask]:
        """Scaled rows, and which of their values are missing."""
        return self._run(frame, rows, np.zeros(0), learn=0)

    def retake(self, frame: Frame, change: float = CHANGE) -> tuple[Vector, Vector] | None:
        """Let the frame follow the moments, in place, if they have moved by much; returns how the scaled values change.

        Much is when a centre has moved by, or a deviation changed by, this fraction of the deviation.

        With the result (ratio, shift): old = ratio * new + shift. None if the frame stays.
        """
        known = frame.deviation > 0.0
        deviation = np.array([deviation_of(frame, j) for j in range(known.size)])
        deviation = np.where(known & (deviation > 0.0), deviation, frame.deviation)
        centre = np.where(known, frame.mean, 0.0) if self.centred else frame.centre
        unit = np.where(known, frame.deviation, 1.0)
        ratio, shift = np.where(known, deviation / unit, 1.0), np.where(known, (centre - frame.centre) / unit, 0.0)
        if not (np.any(np.abs(ratio - 1.0) > change) or np.any(np.abs(shift) > change)):
            return None
        frame.centre[...], frame.deviation[...] = centre, deviation
        return ratio, shift

    def _run(self, frame: Frame, rows: Matrix, weights: Vector, learn: int) -> tuple[Matrix, Mask]:
        rows = np.require(rows, dtype=np.float64, requirements=["C", "W"])
        if rows.ndim != 2 or rows.shape[1] != frame.mean.size:
            raise ShapeMismatch(f"`rows` must have {frame.mean.size} columns; got shape {rows.shape}.")
        check_magnitude(rows)
        features, missing = np.empty_like(rows), np.empty(rows.shape, dtype=np.bool_)
        count_and_scale(frame, rows, weights, learn, int(self.centred), 0, features, missing)
        return features, missing


def check_magnitude(rows: Matrix) -> None:
    """Raise if a value is too large to square; NaN passes, as missing."""
    if count_larger(rows.reshape(-1), LARGEST) > 0.0:
        row, column = np.argwhere(np.abs(rows) > LARGEST)[0]
        raise InvalidFeatures(
            f"features must be finite and below {LARGEST:g} in size; "
            f"got {rows[row, column]} in row {row}, column {column}."
        )
