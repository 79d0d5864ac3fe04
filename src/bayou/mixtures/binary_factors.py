"""x = A y + location + N(0, noise I), with bits y_j that are 1 with probability pi_j: sums over what y may be.

    ln p(x, y) = base + sum_j y_j h_j - sum_{i<j} y_i y_j G_ij,    G = A'A / noise
    h_j = ln pi_j / (1 - pi_j) - G_jj / 2 + a_j . r / noise,       r = x - location

With F = lambda L + (1 - lambda) H, where L = sum_t ln sum_y p(x_t, y) and H = sum_t sum_y p(y | x_t) ln p(x_t, y), the
slope of F is that of sum w ln p(x, y) with w = p (1 + (1 - lambda) delta), delta = ln p(x, y) less its mean under p.
Weights below zero are left out, so that sums are always those of a distribution. Up to `ENUMERATED` bits all y are
summed over; beyond, the most probable y that a search finds and those that differ from it in one bit.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Matrix, Vector
from bayou.numerics.jit import kernel

ENUMERATED = 10
LEAST_NOISE = 1e-6  # of the mean variance of a column: less is rounding, or a model that fits every row
LEAST_ODDS = 1e-6  # a bit that is (almost) always the same is pruned, but not before some iterations
RIDGE = 1e-10  # per row: bits that are always equal share their column
HOPELESS = -40.0  # of a log density beside the highest: its weight does not show beside those that sum to one
SWEEPS = 10


class Factors(NamedTuple):
    """The model: A (input, bit), location, probabilities and noise variance."""

    loadings: Matrix
    location: Vector
    probabilities: Vector
    noise: Vector


class Sums(NamedTuple):
    """Over rows: their number, E y, E yy', E yx', x and |x|^2."""

    weight: Vector
    bits: Vector
    pairs: Matrix
    cross: Matrix
    rows: Vector
    squares: Vector


class Tables(NamedTuple):
    """What the energy of bits is made of, for all rows: G, the log odds less half its diagonal, the interaction of each
    set of bits (none, if they are too many to enumerate), and the constant of the base.
    """

    couplings: Matrix
    odds: Vector
    interaction: Vector
    constant: float


def no_sums(n_bits: int, n_columns: int) -> Sums:
    """Of no rows."""
    return Sums(
        np.zeros(1),
        np.zeros(n_bits),
        np.zeros((n_bits, n_bits)),
        np.zeros((n_bits, n_columns)),
        np.zeros(n_columns),
        np.zeros(1),
    )


@kernel
def tables_of(factors: Factors) -> Tables:
    """From the parameters alone."""
    n_columns, m = factors.loadings.shape
    noise = factors.noise[0]
    couplings, odds = np.zeros((m, m)), np.empty(m)
    constant = -0.5 * n_columns * math.log(2.0 * math.pi * noise)
    for j in range(m):
        for i in range(j + 1):
            total = 0.0
            for column in range(n_columns):
                total += factors.loadings[column, i] * factors.loadings[column, j]
            couplings[i, j] = couplings[j, i] = total / noise
        odds[j] = math.log(factors.probabilities[j] / (1.0 - factors.probabilities[j])) - 0.5 * couplings[j, j]
        constant += math.log1p(-factors.probabilities[j])
    interaction = np.zeros(2**m if m <= ENUMERATED else 0)
    for j in range(m if interaction.size else 0):  # states with bit j, by those below
        pull = np.zeros(2**j)
        for i in range(j):
            for s in range(2**i):
                pull[2**i + s] = pull[s] - couplings[i, j]
        for s in range(2**j):
            interaction[2**j + s] = interaction[s] + pull[s]
    return Tables(couplings, odds, interaction, constant)


@kernel
def field_of(factors: Factors, tables: Tables, row: Vector, field: Vector) -> float:
    """Write h of a row; returns its base, the log density of no bits."""
    noise = factors.noise[0]
    square = 0.0
    field[:] = 0.0
    for column in range(row.size):
        rest = row[column] - factors.location[column]
        square += rest * rest
        for j in range(field.size):
            field[j] += factors.loadings[column, j] * rest
    for j in range(field.size):
        field[j] = field[j] / noise + tables.odds[j]
    return float(tables.constant - 0.5 * square / noise)


@kernel
def gain_of_flip(couplings: Matrix, field: Vector, y: Vector, j: int) -> float:
    """How the log density changes if one bit flips."""
    gain = field[j]
    for i in range(y.size):
        if i != j:
            gain -= couplings[i, j] * y[i]
    return float(gain if y[j] == 0.0 else -gain)


@kernel
def climb(couplings: Matrix, field: Vector, y: Vector) -> float:
    """Flip the one or two bits that gain most until nothing gains; returns the log density above that of no bits."""
    m = y.size
    gains = np.empty(m)
    for _ in range(20 * m):
        best, first, second = 1e-9, -1, -1
        for j in range(m):
            gains[j] = gain_of_flip(couplings, field, y, j)
            if gains[j] > best:
                best, first, second = gains[j], j, -1
        for j in range(m):
            for i in range(j):
                sign = 1.0 if y[i] == y[j] else -1.0
                gain = gains[i] + gains[j] - sign * couplings[i, j]
                if gain > best:
                    best, first, second = gain, j, i
        if first < 0:
            break
        y[first] = 1.0 - y[first]
        if second >= 0:
            y[second] = 1.0 - y[second]
    value = 0.0
    for j in range(m):
        if y[j] == 1.0:
            value += field[j]
            for i in range(j):
                value -= couplings[i, j] * y[i]
    return value


@kernel
def search(factors: Factors, couplings: Matrix, field: Vector, y: Vector) -> float:
    """Write bits that no change of one or two makes more probable, the better of two climbs: from the mode of the
    prior, and from where the bits settle if each sees the mean of the others.
    """
    m = y.size
    mean, other = factors.probabilities.copy(), np.empty(m)
    for _ in range(SWEEPS):
        for j in range(m):
            pull = field[j]
            for i in range(m):
                if i != j:
                    pull -= couplings[i, j] * mean[i]
            mean[j] = 0.5 * (1.0 + math.tanh(0.5 * pull))
    for j in range(m):
        y[j] = 1.0 if mean[j] > 0.5 else 0.0
        other[j] = 1.0 if factors.probabilities[j] > 0.5 else 0.0
    value, value_too = climb(couplings, field, y), climb(couplings, field, other)
    if value_too > value:
        y[:] = other
    return float(max(value, value_too))


@kernel
def candidates(factors: Factors, tables: Tables, field: Vector, y: Vector) -> Vector:
    """Log density of each y that is summed over, above that of no bits; ``y`` is written if they lie around one."""
    m = field.size
    if m > ENUMERATED:
        near = np.empty(m + 1)
        near[0] = search(factors, tables.couplings, field, y)
        for j in range(m):
            near[j + 1] = near[0] + gain_of_flip(tables.couplings, field, y, j)
        return near
    logs = np.zeros(2**m)
    for j in range(m):
        for s in range(2**j):
            logs[2**j + s] = logs[s] + field[j]
    for s in range(logs.size):
        logs[s] += tables.interaction[s]
    return logs


@kernel
def weigh(logs: Vector, temperature: float) -> tuple[float, float]:
    """Turn log densities into the weights p (1 + (1 - lambda) delta), those below zero left out; returns ln sum and the
    mean log density under p. ``temperature`` is lambda.
    """
    highest, total, mean = logs.max(), 0.0, 0.0
    for s in range(logs.size):
        below = logs[s] - highest
        if below > HOPELESS:
            density = math.exp(below)
            total += density
            mean += density * below
    mean /= total
    kept = 0.0
    for s in range(logs.size):
        below = logs[s] - highest
        weight = 0.0
        if below > HOPELESS:
            weight = max(math.exp(below) / total * (1.0 + (1.0 - temperature) * (below - mean)), 0.0)
        logs[s] = weight
        kept += weight
    for s in range(logs.size):
        logs[s] /= kept
    return highest + math.log(total), highest + mean


@kernel
def tell(weights: Vector, y: Vector, bits: Vector, pairs: Matrix) -> None:
    """Write E y and E yy' (its lower triangle) under these weights."""
    m = bits.size
    bits[:] = 0.0
    pairs[:] = 0.0
    if m > ENUMERATED:
        for j in range(m):
            bits[j] = y[j] + weights[j + 1] * (1.0 - 2.0 * y[j])
            for i in range(j):
                both = y[i] * y[j] * (1.0 - weights[i + 1] - weights[j + 1])
                pairs[j, i] = both + weights[i + 1] * (1.0 - y[i]) * y[j] + weights[j + 1] * (1.0 - y[j]) * y[i]
            pairs[j, j] = bits[j]
        return
    for state in range(weights.size):
        if weights[state] == 0.0:
            continue
        for j in range(m):
            if (state >> j) & 1:
                bits[j] += weights[state]
                for i in range(j + 1):
                    if (state >> i) & 1:
                        pairs[j, i] += weights[state]


@kernel
def absorb(
    factors: Factors, tables: Tables, row: Vector, temperature: float, sums: Sums, scratch: Matrix
) -> tuple[float, float]:
    """Add what one row tells; returns its L and H."""
    m = sums.bits.size
    field, y, bits, pairs = scratch[0], scratch[1], scratch[2], scratch[3:]
    base = field_of(factors, tables, row, field)
    weights = candidates(factors, tables, field, y)
    log_sum, mean = weigh(weights, temperature)
    tell(weights, y, bits, pairs)
    sums.weight[0] += 1.0
    for j in range(m):
        sums.bits[j] += bits[j]
        for i in range(j + 1):
            sums.pairs[j, i] += pairs[j, i]
        for column in range(row.size):
            sums.cross[j, column] += bits[j] * row[column]
    for column in range(row.size):
        sums.rows[column] += row[column]
        sums.squares[0] += row[column] ** 2
    return base + log_sum, base + mean


@kernel
def expect(factors: Factors, rows: Matrix, temperature: float, sums: Sums) -> tuple[float, float]:
    """Add what rows tell under these parameters; returns L and H."""
    tables, m = tables_of(factors), sums.bits.size
    scratch = np.empty((3 + m, m))
    density, harmony = 0.0, 0.0
    for n in range(rows.shape[0]):
        log_sum, mean = absorb(factors, tables, rows[n], temperature, sums, scratch)
        density += log_sum
        harmony += mean
    return density, harmony


@kernel
def maximise(sums: Sums, factors: Factors) -> None:
    """The parameters that these sums ask for: a regression of x on y and 1, by Cholesky, in place."""
    m, n_columns, n = sums.bits.size, sums.rows.size, sums.weight[0]
    lower = np.empty((m + 1, m + 1))
    right = np.empty((m + 1, n_columns))
    for j in range(m + 1):
        for i in range(j + 1):
            total = n if i == m else sums.bits[i] if j == m else sums.pairs[j, i]
            if i == j:
                total += RIDGE * n
            for k in range(i):
                total -= lower[j, k] * lower[i, k]
            if i < j:
                lower[j, i] = total / lower[i, i]
            else:
                lower[j, j] = math.sqrt(max(total, RIDGE * n))
    explained = 0.0
    for j in range(m + 1):
        for column in range(n_columns):
            value = sums.rows[column] if j == m else sums.cross[j, column]
            for k in range(j):
                value -= lower[j, k] * right[k, column]
            right[j, column] = value / lower[j, j]
            explained += right[j, column] ** 2
    for j in range(m, -1, -1):
        for column in range(n_columns):
            value = right[j, column]
            for k in range(j + 1, m + 1):
                value -= lower[k, j] * right[k, column]
            right[j, column] = value / lower[j, j]
            if j < m:
                factors.loadings[column, j] = right[j, column]
            else:
                factors.location[column] = right[j, column]
    for j in range(m):
        factors.probabilities[j] = min(max(sums.bits[j] / n, LEAST_ODDS), 1.0 - LEAST_ODDS)
    factors.noise[0] = max((sums.squares[0] - explained) / (n * n_columns), LEAST_NOISE)


@kernel
def learn(factors: Factors, sums: Sums, rows: Matrix, temperature: float) -> None:
    """Learn rows in order, in place: each is explained by the parameters that the rows before it ask for."""
    m = sums.bits.size
    scratch = np.empty((3 + m, m))
    for n in range(rows.shape[0]):
        absorb(factors, tables_of(factors), rows[n], temperature, sums, scratch)
        maximise(sums, factors)


@kernel
def explain(factors: Factors, rows: Matrix, chances: Matrix, bits: NDArray[np.int64], densities: Vector) -> None:
    """Per row, write the probability of each bit, the most probable bits and the log density."""
    tables, m = tables_of(factors), factors.probabilities.size
    field, y, pairs = np.empty(m), np.empty(m), np.empty((m, m))
    for n in range(rows.shape[0]):
        base = field_of(factors, tables, rows[n], field)
        weights = candidates(factors, tables, field, y)
        best = int(np.argmax(weights))
        for j in range(m):
            bits[n, j] = int(y[j]) if m > ENUMERATED else (best >> j) & 1
        densities[n] = base + weigh(weights, 1.0)[0]
        tell(weights, y, chances[n], pairs)
