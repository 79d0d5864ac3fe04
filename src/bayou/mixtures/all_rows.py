"""What harmony learning asks of all rows: sums over them. They may be held here, or be far apart: sums add up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Matrix, Vector
from bayou.mixtures.evidence import Statistics
from bayou.mixtures.gaussians import Gaussians, log_joint
from bayou.mixtures.sums import (
    CANDIDATES,
    STEPS_PER_CHOICE,
    Candidates,
    Sums,
    candidates_of,
    sums_of_candidates,
    weighed_sums,
)


class Cut(NamedTuple):
    """Clusters of which one was cut in two: the cluster that it was before, and all of them now."""

    cluster: int
    clusters: Gaussians


class Gains(NamedTuple):
    """What the points of the cluster that is cut gain by each cut; and how many points each cluster has."""

    gains: Vector
    owned: NDArray[np.int64]


class AllRows(Protocol):
    """Standardised rows, wherever they are."""

    @property
    def shape(self) -> tuple[int, int]:
        """How many there are, and how many columns they have."""

    def drawn(self, places: NDArray[np.int64] | None) -> Matrix:
        """The rows at some places, in that order; None is for all of them."""

    def sums(self, clusters: Gaussians, matching: float, nearest: int, chosen: Gaussians | None = None) -> Sums:
        """See `weighed_sums`; with ``chosen``, of each point's candidates by these clusters alone."""

    def gains(self, clusters: Gaussians, cuts: Sequence[Cut], matching: float) -> Gains:
        """What each cut is worth to the points of its cluster."""


class HeldRows:
    """Rows that are held here."""

    def __init__(self, rows: Matrix) -> None:
        self._rows = rows
        self._chosen: tuple[Gaussians, Candidates] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """How many there are, and how many columns they have."""
        n_rows, n_columns = self._rows.shape
        return n_rows, n_columns

    def drawn(self, places: NDArray[np.int64] | None) -> Matrix:
        """The rows at some places, in that order; None is for all of them."""
        return self._rows if places is None else np.ascontiguousarray(self._rows[places])

    def sums(self, clusters: Gaussians, matching: float, nearest: int, chosen: Gaussians | None = None) -> Sums:
        """Candidates are kept for as long as they are asked for."""
        if chosen is None:
            return weighed_sums(self._rows, clusters, matching, nearest)
        if self._chosen is None or self._chosen[0] is not chosen:
            self._chosen = chosen, candidates_of(self._rows, chosen)
        return sums_of_candidates(self._rows, clusters, self._chosen[1], matching, nearest)

    def gains(self, clusters: Gaussians, cuts: Sequence[Cut], matching: float) -> Gains:
        """By what the points say before and after."""
        owners = np.argmax(log_joint(clusters, self._rows), axis=1)
        owned = np.bincount(owners, minlength=clusters.share.size)
        before: dict[int, float] = {}
        gains = np.zeros(len(cuts))
        for place, (k, after) in enumerate(cuts):
            if owned[k]:
                own = self._rows[owners == k]
                if k not in before:
                    before[k] = _value(own, clusters, matching)
                gains[place] = _value(own, after, matching) - before[k]
        return Gains(gains, owned)


def all_rows(rows: Matrix | AllRows) -> AllRows:
    """Rows as those who ask for sums take them."""
    return HeldRows(rows) if isinstance(rows, np.ndarray) else rows


class Choice:
    """By which clusters candidates are chosen, while clusters move: anew now and then, and where one has vanished."""

    def __init__(self, nearest: int) -> None:
        self._nearest = nearest
        self._chosen: Gaussians | None = None
        self._age = 0

    def now(self, clusters: Gaussians) -> Gaussians | None:
        """None where each point looks at all clusters."""
        k = clusters.share.size
        if not 0 < self._nearest < CANDIDATES < k:
            return None
        if self._chosen is None or self._age == STEPS_PER_CHOICE or self._chosen.share.size != k:
            self._chosen, self._age = clusters, 0
        self._age += 1
        return self._chosen


def joined(one: Sums, other: Sums) -> Sums:
    """Of the points of both."""
    statistics = Statistics(*(a + b for a, b in zip(one.statistics, other.statistics, strict=True)))
    return Sums(statistics, one.log_likelihood + other.log_likelihood, one.harmony + other.harmony)


def _value(rows: Matrix, clusters: Gaussians, matching: float) -> float:
    _, log_likelihood, harmony = weighed_sums(rows, clusters, 1.0)
    return matching * log_likelihood + (1.0 - matching) * harmony
