"""w += eta/2 (label / (1 - 2p) - sgn f) grad f: one pass over a stream, compiled by JAX, and what it notes on the way.

Barkai, Seung and Sompolinsky 1995, (20), for labels without noise (p = 0): a mistake moves the weights by eta label
grad f, a right answer does not. With a share p of labels flipped at random, the mean of label / (1 - 2p) is that of the
label before the flip, so that the mean step is the same as without noise.

Near the solution the mean step is -eta B (w - w0), where B = E[delta(f) grad f grad f']. With eta = eta0 / n a part of
w - w0 along an eigenvector of B shrinks as n^-(eta0 lambda): the error, which is linear in w - w0, falls as 1 / n if
eta0 lambda_min(B) > 1, and more slowly if not. B is told by the examples near the boundary, with a kernel in the place
of the delta:

    B = E[K(f / h) / h grad f grad f'],    h = WIDTH E|f| n^(-1/9)

K is of fourth order (its second moment is zero), so that the error of a finite width is of order h^4. A plain kernel
would give a direction in which the boundary does not move at all, such as the scale of f where f does not fix it, an
eigenvalue of order h^2. All means are over the past with weights that grow as its cube: the beginning, when the weights
were elsewhere, is forgotten.

The share of flipped labels is told by mistakes, each weighed by |f|:

    p = E[|f| mistake] / E|f|

Where the student is right but for the noise this is p; an error of d in the weights adds only d^2, for the inputs on
which it matters lie within d of the boundary, and have |f| of order d. The plain error rate is off by d, and steps that
trust it may never find the solution.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Schedule, Vector
from bayou.errors import InvalidSpec
from bayou.functions.jax_function import Shape, checked, jax

MEMORY = 4.0  # means weigh the past by its (MEMORY - 1)th power
WORTH = (2.0 * MEMORY - 1.0) / MEMORY**2  # so many equally weighed examples is one worth in such a mean
WIDTH = 2.0
REACH = 0.1  # the first steps change f, at the example, by so much of its mean size
SEARCH = 1000.0  # examples per weight after which they become smaller, as one over the square root of all examples
MARGIN = 2.0  # eta0 lambda_min(B) where the rate is chosen: the best for a hyperplane, and far enough from 1
ENOUGH = 10.0  # examples near the boundary, per weight, from which B can be told
FLAT = 1e-3  # of the largest eigenvalue: below, the boundary moves too little to matter, or not at all
# A direction counts if the gradient along it is as large on the boundary as around it: both means are then alike, up to
# the integral of |K|, 1.24. That of the scale of f vanishes on the boundary, and its mean with K as fast as h^4.
AT_LEAST = 0.3
LARGEST_FLIP_RATE = 0.45
CAUTION, CERTAINTY = 1.0, 4.0  # standard errors below and above the share of flipped labels


class Tally(NamedTuple):
    """The weights, and running means of what was seen."""

    weights: Any
    matrix: Any  # B
    around: Any  # the same with the absolute value of the kernel
    total: Any  # weight of all examples
    near: Any  # share of examples within the kernel
    size: Any  # |f|
    power: Any  # f^2
    slope: Any  # |grad f|^2
    wrong: Any  # mistakes
    missed: Any  # |f| of mistakes, 0 elsewhere
    floor: Any  # the least share of flipped labels that was ever certain


class Rate(NamedTuple):
    """eta = min(largest, scale (n + offset)^-power); if ``reach`` is not 0, no more than that allows."""

    scale: Any
    power: Any
    offset: Any
    largest: Any
    reach: Any


def nothing(start: Vector) -> Tally:
    """Before any example."""
    zeros = {name: np.zeros(()) for name in Tally._fields}
    matrices = {name: np.zeros((start.size, start.size)) for name in ("matrix", "around")}
    return Tally(**zeros)._replace(weights=start.copy(), floor=np.ones(()), **matrices)


def kernel(u: Any) -> Any:
    """Of fourth order, on [-1, 1]."""
    numpy = jax().numpy
    return numpy.where(numpy.abs(u) < 1.0, 15.0 / 32.0 * (1.0 - u**2) * (3.0 - 7.0 * u**2), 0.0)


def flip_bound(tally: Tally, standard_errors: float, numpy: Any = np) -> Any:
    """The share of flipped labels, so many standard errors up or down (Wilson's bounds, which hold for few too)."""
    size = numpy.maximum(tally.size, 1e-300)
    rate = numpy.clip(tally.missed / size, 0.0, 1.0)
    # Weighing by |f| costs examples: what is left is worth so many equally weighed ones.
    worth = numpy.maximum(WORTH * tally.total * size**2 / numpy.maximum(tally.power, 1e-300), 1e-300)
    spread = standard_errors**2 / worth
    half = numpy.sign(standard_errors) * numpy.sqrt(spread * (rate * (1.0 - rate) + 0.25 * spread))
    return (rate + 0.5 * spread + half) / (1.0 + spread)


def flip_rate(tally: Tally, numpy: Any = np) -> Any:
    """The share of flipped labels that steps are to believe in: cautiously, for too little is safe, too much is not.

    It is never above the lowest that was ever certain, so that a student that strays does not blame the labels.
    """
    return numpy.clip(numpy.minimum(flip_bound(tally, -CAUTION, numpy), tally.floor), 0.0, LARGEST_FLIP_RATE)


def present_rate(tally: Tally, rate: Rate, numpy: Any = np) -> Any:
    """eta, for the last of the examples in the tally."""
    seen = numpy.where(tally.total > 0.0, tally.total, 1.0)
    ease = numpy.minimum(1.0, numpy.sqrt(SEARCH * tally.weights.shape[-1] / seen))
    # A function that is 0 everywhere at first has no size of its own: any step sets it.
    size = numpy.where(tally.size > 0.0, rate.reach * tally.size, 1.0)
    within = ease * size / numpy.maximum(tally.slope, 1e-300)
    eta = numpy.minimum(rate.largest, rate.scale * (seen + rate.offset) ** -rate.power)
    return numpy.where(rate.reach > 0.0, numpy.minimum(eta, within), eta)


def _one_step(tangent: Callable[..., Any], tally: Tally, rate: Rate, p: Any, example: Any) -> tuple[Tally, Any]:
    numpy = jax().numpy
    x, label, weight = example
    value, gradient = tangent(tally.weights, x)
    finite = numpy.isfinite(value) & numpy.all(numpy.isfinite(gradient))
    counts = finite & (weight > 0.0)
    total = tally.total + weight
    share = MEMORY * weight / (total + (MEMORY - 1.0) * weight)
    mistake = value * label <= 0.0

    seen, size = numpy.where(total > 0.0, total, 1.0), numpy.abs(value)
    mean_size = tally.size + share * (size - tally.size)
    width = numpy.maximum(WIDTH * mean_size * seen ** (-1.0 / 9.0), 1e-300)
    bump, square = kernel(value / width) / width, gradient[:, None] * gradient[None, :]
    noted = tally._replace(
        matrix=tally.matrix + share * (bump * square - tally.matrix),
        around=tally.around + share * (numpy.abs(bump) * square - tally.around),
        total=total,
        near=tally.near + share * ((size < width) - tally.near),
        size=mean_size,
        power=tally.power + share * (value**2 - tally.power),
        slope=tally.slope + share * (gradient @ gradient - tally.slope),
        wrong=tally.wrong + share * (mistake - tally.wrong),
        missed=tally.missed + share * (mistake * size - tally.missed),
    )
    noted = noted._replace(floor=numpy.minimum(tally.floor, flip_bound(noted, CERTAINTY, numpy)))
    eta = present_rate(noted, rate, numpy)
    trusted = numpy.where(p < 0.0, flip_rate(tally, numpy), p)
    push = 0.5 * label * (1.0 / (1.0 - 2.0 * trusted) + numpy.where(mistake, 1.0, -1.0))
    noted = noted._replace(weights=tally.weights + eta * weight * push * gradient)
    after = Tally(*(numpy.where(counts, new, old) for new, old in zip(noted, tally, strict=True)))
    return after, (value, tally.wrong, tally.total, finite)


@lru_cache(maxsize=64)
def one_pass(function: Callable[..., Any], shape: Shape, n_features: int, name: str) -> Callable[..., Any]:
    """(tally, rate, flip rate or -1 to learn it, rows, labels, weights) -> (tally, what was said of each row).

    Said are f, the error rate and the weight of examples before, and whether f and its gradient are finite. Rows of
    weight 0 change nothing. It is pure, for JAX to compile and to vectorise.
    """
    flat_function = checked(function, shape, 1, n_features, name)

    def tangent(weights: Any, x: Any) -> Any:
        return jax().value_and_grad(lambda w: flat_function(w, x)[0])(weights)

    def run(tally: Tally, rate: Rate, p: Any, rows: Any, labels: Any, weights: Any) -> Any:
        def step(tally: Tally, example: Any) -> Any:
            return _one_step(tangent, tally, rate, p, example)

        return jax().lax.scan(step, tally, (rows, labels, weights))

    return run


class Boundary(NamedTuple):
    """What B says: its smallest eigenvalue that matters, and how many others are flat; NaN before enough is known."""

    lowest: NDArray[np.float64]
    n_flat: NDArray[np.int64]
    n_near: NDArray[np.float64]  # equally weighed examples that it was told by, per weight


def boundary(tally: Tally) -> Boundary:
    """Read B; all replicas at once, if the tally has a leading axis of them."""
    matrix = np.asarray(tally.matrix)
    size = matrix.shape[-1]
    n_near = np.asarray(tally.near * WORTH * tally.total) / size
    values, vectors = np.linalg.eigh(matrix)
    around = np.einsum("...ji,...jk,...ki->...i", vectors, np.asarray(tally.around), vectors)
    matters = (values > FLAT * values[..., -1:]) & (values > AT_LEAST * around) & (values > 0.0)
    lowest = np.min(np.where(matters, values, np.inf), axis=-1)
    known = (n_near >= ENOUGH) & np.isfinite(lowest)
    return Boundary(np.where(known, lowest, np.nan), size - matters.sum(axis=-1), n_near)


def chosen_rate(lowest: Any) -> Rate:
    """eta = MARGIN / (lambda_min n), or all that the reach allows while that is more or lambda_min is not known."""
    known = np.isfinite(lowest)
    scale = np.where(known, MARGIN / np.where(known, lowest, 1.0), np.inf)
    zero, one = np.zeros_like(scale), np.ones_like(scale)
    return Rate(scale, one, zero, one * np.inf, REACH * one)


def given_rate(schedule: Schedule | float | None, n_weights: int) -> Rate:
    """A schedule in terms of examples, not of examples per weight."""
    if schedule is None:
        return chosen_rate(np.array(np.nan))
    if isinstance(schedule, Schedule):
        scale, power, offset, largest, by_mistakes = schedule.numbers.tolist()
        if by_mistakes:
            raise InvalidSpec(f"`schedule` must go by the clock: mistakes tell a hyperplane's; got {schedule}.")
        values = scale * n_weights ** (power - 1.0), power, offset * n_weights, largest / n_weights, 0.0
    elif isinstance(schedule, (int, float)) and 0.0 < schedule < math.inf:
        values = float(schedule), 0.0, 0.0, math.inf, 0.0
    else:
        raise InvalidSpec(f"`schedule` must be None, a positive rate or a Schedule; got {schedule!r}.")
    return Rate(*(np.array(value) for value in values))


def check_flip_rate(given: Any) -> None:
    """Raise unless it is a rate or the word."""
    if given != "learn" and not (isinstance(given, (int, float)) and 0.0 <= given <= LARGEST_FLIP_RATE):
        raise InvalidSpec(f"`flip_rate` must be from 0 to {LARGEST_FLIP_RATE}, or 'learn'; got {given!r}.")


def next_look(n_rows: int) -> int:
    """After how many rows B is read again: ever more, so that reading it costs next to nothing."""
    return max(16, n_rows + max(16, n_rows // 4))
