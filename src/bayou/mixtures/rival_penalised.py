"""Rival penalised competitive learning (Xu, Krzyzak and Oja 1993), one row after the other.

    winner c = argmin_l (n_l / sum n) |x - m_l|^2,  rival r = the next best
    m_c += rate (x - m_c),  m_r -= gamma rate (x - m_r),  n_c += 1

A unit that shares a cluster with another is its rival again and again, and is driven out of the data: what is left are
the clusters. The factor n_l, which lets units that won often win less, keeps any from having it all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Mask, Matrix, Vector
from bayou.numerics.jit import kernel

PRESENTATIONS = 16_000  # rows that `train` shows in all, unless it is told how often to show each
WORTH = 0.02  # a unit that wins a smaller share stands for no cluster
FARTHEST = 1e100  # a unit driven out this far, in units of the spread of the data, is driven no farther
LEAST = 1e-300  # a count that is forgotten to nothing still has a place in the order


class Units(NamedTuple):
    """Centres, and how often each won."""

    centres: Matrix
    counts: Vector


@kernel
def winner_and_rival(units: Units, row: Vector) -> tuple[int, int]:
    """The unit that is nearest, by distance and by how seldom it won, and the next; -1 where there is none."""
    least, second, winner, rival = np.inf, np.inf, -1, -1
    for unit in range(units.counts.size):
        square = 0.0
        for j in range(row.size):
            square += (row[j] - units.centres[unit, j]) ** 2
        square *= units.counts[unit]  # their sum is the same for all
        if square < least:
            second, rival = least, winner
            least, winner = square, unit
        elif square < second:
            second, rival = square, unit
    return winner, rival


@kernel
def compete(
    units: Units,
    rows: Matrix,
    order: NDArray[np.int64],
    first_rate: float,
    last_rate: float,
    gamma: float,
    memory: float,
) -> None:
    """Learn rows in this order, in place, at a rate that goes linearly from the first to (just before) the last.

    Counts are forgotten over so many rows; with an infinite memory they are kept.
    """
    kept = 1.0 - 1.0 / memory
    for step in range(order.size):
        row = rows[order[step]]
        rate = first_rate + (last_rate - first_rate) * step / order.size
        winner, rival = winner_and_rival(units, row)
        for unit in range(units.counts.size):
            units.counts[unit] = max(units.counts[unit] * kept, LEAST)
        units.counts[winner] += 1.0
        for j in range(row.size):
            units.centres[winner, j] += rate * (row[j] - units.centres[winner, j])
        if rival >= 0:
            for j in range(row.size):
                if abs(units.centres[rival, j]) < FARTHEST:
                    units.centres[rival, j] -= gamma * rate * (row[j] - units.centres[rival, j])


@kernel
def square_distances(centres: Matrix, rows: Matrix) -> Matrix:
    """Of each row from each centre."""
    squares = np.zeros((rows.shape[0], centres.shape[0]))
    for n in range(rows.shape[0]):
        for unit in range(centres.shape[0]):
            for j in range(rows.shape[1]):
                squares[n, unit] += (rows[n, j] - centres[unit, j]) ** 2
    return squares


def worth_keeping(counts: Vector) -> Mask:
    """Which units won more than a fiftieth of the rows; where units are many, half of an equal share is enough."""
    kept: Mask = counts > min(WORTH, 0.5 / counts.size) * counts.sum()
    return kept


def train(
    rows: Matrix, n_units: int, gamma: float, rate: float, epochs: int | None, random: np.random.Generator
) -> Units:
    """Units that were shown all rows, so many times in random order, at a rate that falls linearly to zero.

    They start from rows that differ. Their counts in the end are the rows that each is nearest to.
    """
    order = random.permutation(len(rows))
    distinct = np.sort(np.unique(rows[order], axis=0, return_index=True)[1])[:n_units]
    units = Units(rows[order[distinct]].copy(), np.ones(len(distinct)))
    n_epochs = max(1, round(PRESENTATIONS / len(rows))) if epochs is None else epochs
    for epoch in range(n_epochs):
        rates = rate * (1.0 - epoch / n_epochs), rate * (1.0 - (epoch + 1) / n_epochs)
        compete(units, rows, random.permutation(len(rows)), *rates, gamma, np.inf)
    nearest = np.argmin(square_distances(units.centres, rows), axis=1)
    units.counts[:] = np.bincount(nearest, minlength=len(distinct))
    return units
