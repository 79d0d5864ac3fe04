"""The recursion of one pair of canonical variables, of unit variance, whose correlation in n rows is r.

    R = n (s + A_x^2 + A_y^2 + 2 A_x A_y r)     V = 1 / (a + R)     M_x = n (A_x + A_y r) V     K_x = k + n - M_x^2 / V
    phi = (d + 1 + n) / K    E = sum (M^2 phi + d V)    s = 1 / (1 + E)    A = s phi M    a = (k + d / 2) / (k + E / 2)

z | x, y ~ N(A_x x + A_y y, s); the loadings have means M and the variance V in units of the noise, whose precision is
phi; a is their relevance, and d the number of columns, of one view or of both. What the recursion leaves is the bound
of the evidence, which tells whether the pair is worth its parameters.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from bayou.contracts import Mask, Vector
from bayou.numerics.jit import kernel

VAGUE = 1e-3  # both numbers of each Gamma, and the diagonal of each Wishart's inverse scale, in units of the sample's
STROLL = 32  # rounds between two of Newton's steps
MOST_STROLLS = 100
SETTLED = 1e-12  # a round that goes no farther is the last
UNSETTLED = 1e-9  # the most that a correlation may change in the last rounds of all
NEARLY_SETTLED = 1e-3  # from then on Newton's steps are tried
LONGEST = 0.3  # of those, in logarithms
DIFFERENCE = 1e-5
OFF = 1e-10  # a product of loadings this small is on its way to zero

Selection: TypeAlias = Literal["evidence", "relevance"]


@kernel
def advance(state: Vector, r: float, n: float, d_x: float, d_y: float, after: Vector, pair: Vector) -> float:
    """One round of updates of the logarithms of A_x, A_y, s, a; writes them, and M_x, M_y, V, K_x, K_y, R.

    E[z | x, y] = A_x x + A_y y with variance s. Returns how far it went. K = VAGUE + n - M^2 / V, told without taking
    a number from another that is nearly as large.
    """
    A_x, A_y, s, a = math.exp(state[0]), math.exp(state[1]), math.exp(state[2]), math.exp(state[3])
    R = n * (s + A_x * A_x + A_y * A_y + 2.0 * A_x * A_y * r)
    V = 1.0 / (a + R)
    M_x, M_y = n * (A_x + A_y * r) * V, n * (A_y + A_x * r) * V
    free = (1.0 - r) * (1.0 + r)
    K_x = VAGUE + n * V * (a + n * (s + A_y * A_y * free))
    K_y = VAGUE + n * V * (a + n * (s + A_x * A_x * free))
    phi_x, phi_y = (d_x + 1.0 + n) / K_x, (d_y + 1.0 + n) / K_y
    E = M_x * M_x * phi_x + M_y * M_y * phi_y + (d_x + d_y) * V
    after[2] = -math.log1p(E)
    after[0], after[1] = after[2] + math.log(phi_x * M_x), after[2] + math.log(phi_y * M_y)
    after[3] = math.log((VAGUE + 0.5 * (d_x + d_y)) / (VAGUE + 0.5 * E))
    pair[0], pair[1], pair[2], pair[3], pair[4], pair[5] = M_x, M_y, V, K_x, K_y, R
    moved = 0.0
    for i in range(4):
        moved = max(moved, abs(after[i] - state[i]))
    return moved


@kernel
def stroll(state: Vector, r: float, n: float, d_x: float, d_y: float, pair: Vector) -> float:
    """Some rounds; returns how far the last went, or -1 once the pair is off."""
    after, moved = np.empty(4), 0.0
    for _ in range(STROLL):
        moved = advance(state, r, n, d_x, d_y, after, pair)
        state[:] = after
        if pair[0] * pair[1] < OFF:
            return -1.0
    return moved


@kernel
def settle(r: float, n: float, d_x: float, d_y: float, state: Vector, pair: Vector) -> int:
    """The recursion of one pair to its fixed point; returns 1, or 0 if its correlation has not settled.

    How the noise is shared between the views is hardly told by data: along that direction rounds shrink by a factor
    close to 1. So after every few of them Newton's step is tried, and taken if the rounds after it go less far.
    """
    start = math.log(0.5 / math.sqrt(0.5 * (1.0 + r)))
    state[0], state[1], state[2], state[3] = start, start, math.log(0.3), 0.0
    trial, other = np.empty(4), np.empty(6)
    moved, before = stroll(state, r, n, d_x, d_y, pair), 0.0
    for _ in range(MOST_STROLLS):
        if moved < 0.0:
            return settle_off(n, d_x, d_y, state, pair)
        if moved <= SETTLED:
            return 1
        if moved <= NEARLY_SETTLED:
            leap(state, r, n, d_x, d_y, trial)
            ahead = stroll(trial, r, n, d_x, d_y, other)
            if 0.0 <= ahead < moved:
                state[:], pair[:], moved = trial, other, ahead
                continue
        before = correlation_of(pair, n, d_x, d_y)
        moved = stroll(state, r, n, d_x, d_y, pair)
    return 1 if abs(correlation_of(pair, n, d_x, d_y) - before) <= UNSETTLED else 0


@kernel
def correlation_of(pair: Vector, n: float, d_x: float, d_y: float) -> float:
    """M_x M_y over the deviations of both."""
    x, y = pair[0] ** 2 + pair[3] / (d_x + 1.0 + n), pair[1] ** 2 + pair[4] / (d_y + 1.0 + n)
    return float(pair[0] * pair[1] / math.sqrt(x * y))


@kernel
def leap(state: Vector, r: float, n: float, d_x: float, d_y: float, trial: Vector) -> None:
    """Newton's step to where a round would lead nowhere, or some way towards it; slopes by central differences."""
    slopes, near, above, below, unused = np.eye(4), np.empty(4), np.empty(4), np.empty(4), np.empty(6)
    advance(state, r, n, d_x, d_y, above, unused)
    trial[:] = above - state
    for i in range(4):
        near[:] = state
        near[i] = state[i] + DIFFERENCE
        advance(near, r, n, d_x, d_y, above, unused)
        near[i] = state[i] - DIFFERENCE
        advance(near, r, n, d_x, d_y, below, unused)
        for k in range(4):
            slopes[k, i] -= (above[k] - below[k]) / (2.0 * DIFFERENCE)
    for i in range(4):  # elimination, with the largest pivot of each column
        best = i
        for k in range(i + 1, 4):
            if abs(slopes[k, i]) > abs(slopes[best, i]):
                best = k
        for k in range(4):
            slopes[i, k], slopes[best, k] = slopes[best, k], slopes[i, k]
        trial[i], trial[best] = trial[best], trial[i]
        pivot = slopes[i, i] if abs(slopes[i, i]) > 1e-14 else 1.0
        slopes[i, i] = pivot
        for k in range(4):
            if k != i:
                factor = slopes[k, i] / pivot
                trial[k] -= factor * trial[i]
                for c in range(i, 4):
                    slopes[k, c] -= factor * slopes[i, c]
    length = 0.0
    for i in range(4):
        trial[i] /= slopes[i, i]
        length = max(length, abs(trial[i]))
    for i in range(4):
        trial[i] = state[i] + trial[i] * min(1.0, LONGEST / max(length, LONGEST))


@kernel
def settle_off(n: float, d_x: float, d_y: float, state: Vector, pair: Vector) -> int:
    """The same where the loadings are zero."""
    s, a = 0.3, 1.0
    for _ in range(STROLL * MOST_STROLLS):
        V = 1.0 / (a + n * s)
        E = (d_x + d_y) * V
        pair[2], pair[5] = V, n * s
        before = a
        s, a = 1.0 / (1.0 + E), (VAGUE + 0.5 * (d_x + d_y)) / (VAGUE + 0.5 * E)
        if abs(a - before) <= SETTLED * a:
            break
    pair[0], pair[1], pair[3], pair[4] = 0.0, 0.0, VAGUE + n, VAGUE + n
    state[0], state[1], state[2], state[3] = -math.inf, -math.inf, math.log(s), math.log(a)
    return 1 if abs(a - before) <= SETTLED * a else 0


@kernel
def bound(n: float, d_x: float, d_y: float, state: Vector, pair: Vector) -> float:
    """What a pair adds to the variational bound of the log evidence, but for constants."""
    a, log_s, log_a = math.exp(state[3]), state[2], state[3]
    noise = (d_x + 1.0 + n) * math.log(pair[3]) + (d_y + 1.0 + n) * math.log(pair[4])
    loadings = (d_x + d_y) * (math.log(pair[2]) + log_a)
    return float(0.5 * (loadings - noise - pair[5] + n * log_s) + VAGUE * (log_a - a))


@kernel
def gain(r: float, n: float, d_x: float, d_y: float) -> float:
    """How much a pair raises the bound."""
    state, pair = np.empty(4), np.empty(6)
    settle(r, n, d_x, d_y, state, pair)
    with_it = bound(n, d_x, d_y, state, pair)
    settle_off(n, d_x, d_y, state, pair)
    return with_it - bound(n, d_x, d_y, state, pair)


class Pairs(NamedTuple):
    """What is known of each pair of canonical variables, the most correlated first; variables have unit variance.

    Loadings are ``x_loading`` and ``y_loading`` with the variance ``spread`` in units of the noise; the noise has the
    inverse scale ``x_noise`` and ``y_noise``. Given both, z is ``x_share`` and ``y_share`` of them, +- its variance.
    ``probability`` is that of there being so many pairs at least.
    """

    sample_correlation: Vector
    correlation: Vector
    evidence: Vector
    probability: Vector
    retained: Mask
    converged: Mask
    x_loading: Vector
    y_loading: Vector
    spread: Vector
    x_noise: Vector
    y_noise: Vector
    relevance: Vector
    x_share: Vector
    y_share: Vector
    variance: Vector


def solve_pairs(
    r: Vector, n: float, d_x: int, d_y: int, least: float = 0.1, selection: Selection = "evidence"
) -> Pairs:
    """The recursion of each pair, given its correlation in the sample, and which pairs are retained."""
    size = len(r)
    states, numbers = np.empty((size, 4)), np.empty((size, 6))
    converged, evidence = np.empty(size, dtype=np.bool_), np.empty(size)
    for j in range(size):
        converged[j] = settle(float(r[j]), float(n), float(d_x), float(d_y), states[j], numbers[j]) > 0
        evidence[j] = gain(float(r[j]), float(n), float(d_x - j), float(d_y - j))
    M_x, M_y, V, K_x, K_y, _ = numbers.T
    correlation = np.array([correlation_of(pair, n, float(d_x), float(d_y)) for pair in numbers])
    relevant = np.logical_and.accumulate(correlation > least)  # the most correlated first, without gaps
    retained, probability = relevant, relevant.astype(np.float64)
    if selection == "evidence":
        retained = np.logical_and.accumulate(relevant & (evidence > 0.0))
        probability[relevant] = at_least(evidence[relevant])
    return Pairs(
        r, correlation, evidence,
        probability, retained, converged, M_x, M_y, V, K_x, K_y,
        np.exp(states[:, 3]), np.exp(states[:, 0]), np.exp(states[:, 1]), np.exp(states[:, 2]),
    )  # fmt: skip


def at_least(gains: Vector) -> Vector:
    """The probability of each number of pairs or more, 1, 2, ..., if all numbers were as probable before."""
    total = np.concatenate([[0.0], np.cumsum(gains)])
    weights = np.exp(total - total.max())
    return np.asarray(np.cumsum(weights[::-1])[::-1][1:] / weights.sum())
