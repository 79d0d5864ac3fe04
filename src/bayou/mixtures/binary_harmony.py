"""Binary factors from rows: annealed from matching (lambda = 1, EM) to harmony, with factors that do nothing pruned."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bayou.contracts import Mask, Matrix
from bayou.mixtures.binary_factors import LEAST_NOISE, Factors, Sums, expect, maximise, no_sums

ANNEALED = 30  # iterations over which lambda falls
SETTLED = 100  # iterations at the final lambda, at most
STEADY = 1e-7  # a change of F per row that is none
PRUNED_FROM = 5  # iterations
RARE = 0.02  # a bit that is 0 or 1 less often than this, or moves x by less than the noise, is no factor
FAINT = 0.3


class Fitted(NamedTuple):
    """A model, the sums that it leaves, and F less half the parameters times ln N."""

    factors: Factors
    sums: Sums
    criterion: float


def fit(rows: Matrix, n_factors: int, n_starts: int, temperature: float, random: np.random.Generator) -> Fitted:
    """The best of some starts. Rows have mean zero and mean variance one; ``temperature`` is the final lambda."""
    best = max((_fit_once(rows, n_factors, temperature, random) for _ in range(n_starts)), key=lambda f: f.criterion)
    factors = oriented(best.factors)
    sums = no_sums(*factors.loadings.T.shape)
    expect(factors, rows, temperature, sums)
    return Fitted(factors, sums, best.criterion)


def _fit_once(rows: Matrix, n_factors: int, temperature: float, random: np.random.Generator) -> Fitted:
    factors = _start(rows, n_factors, random)
    before = math.inf
    for iteration in range(ANNEALED + SETTLED):
        now = max(1.0 - iteration / ANNEALED, 0.0) * (1.0 - temperature) + temperature
        sums = no_sums(*factors.loadings.T.shape)
        density, harmony = expect(factors, rows, now, sums)
        maximise(sums, factors)
        if iteration >= PRUNED_FROM and not (keep := worth_keeping(factors)).all():
            factors, sums = pruned(factors, sums, keep)
        elif iteration >= ANNEALED:
            value = now * density + (1.0 - now) * harmony
            if abs(value - before) < STEADY * len(rows):
                break
            before = value
    while not (keep := worth_keeping(factors)).all():
        factors, sums = pruned(factors, sums, keep)
    sums = no_sums(*factors.loadings.T.shape)
    density, harmony = expect(factors, rows, temperature, sums)
    n_columns, m = factors.loadings.shape
    n_parameters = n_columns * m + n_columns + m + 1
    value = temperature * density + (1.0 - temperature) * harmony
    return Fitted(factors, sums, value - 0.5 * n_parameters * math.log(len(rows)))


def _start(rows: Matrix, n_factors: int, random: np.random.Generator) -> Factors:
    """Random directions that together make up the variance, bits that are as often 1 as 0."""
    n_columns = rows.shape[1]
    variance = float(np.mean(np.square(rows)))
    loadings = random.normal(size=(n_columns, n_factors)) * math.sqrt(variance / max(n_factors, 1))
    noise = np.array([max(variance, LEAST_NOISE)])
    return Factors(loadings, -0.5 * loadings.sum(axis=1), np.full(n_factors, 0.5), noise)


def worth_keeping(factors: Factors) -> Mask:
    """All factors but, if any does too little, the one that does least."""
    p, sizes = factors.probabilities, np.sum(np.square(factors.loadings), axis=0)
    idle = (np.minimum(p, 1.0 - p) < RARE) | (sizes < FAINT * factors.noise[0])
    keep = np.ones(p.size, dtype=np.bool_)
    if idle.any():
        keep[np.argmin(np.where(idle, p * (1.0 - p) * sizes, np.inf))] = False
    return keep


def pruned(factors: Factors, sums: Sums, keep: Mask) -> tuple[Factors, Sums]:
    """The model without some factors: what they did is left to the others, the location and the noise."""
    kept = Sums(sums.weight, sums.bits[keep], sums.pairs[np.ix_(keep, keep)], sums.cross[keep], sums.rows, sums.squares)
    less = Factors(
        np.ascontiguousarray(factors.loadings[:, keep]),
        factors.location,
        factors.probabilities[keep],
        factors.noise,
    )
    maximise(kept, less)
    return less, kept


def oriented(factors: Factors) -> Factors:
    """The same model with the largest loading of each factor positive, factors by how much variance they make.

    The bit y_j can be called 1 - y_j: then a_j is -a_j, and the location moves by a_j.
    """
    loadings, p = factors.loadings, factors.probabilities
    if p.size == 0:
        return factors
    largest = loadings[np.argmax(np.abs(loadings), axis=0), np.arange(p.size)]
    flip = largest < 0.0
    order = np.argsort(-p * (1.0 - p) * np.sum(np.square(loadings), axis=0), kind="stable")
    location = factors.location + loadings[:, flip].sum(axis=1)
    turned = np.where(flip, -loadings, loadings)[:, order]
    return Factors(np.ascontiguousarray(turned), location, np.where(flip, 1.0 - p, p)[order], factors.noise)
