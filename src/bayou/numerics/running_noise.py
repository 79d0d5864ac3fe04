"""The noise of targets about a model that is still getting better, and how its errors are really spread.

A belief that is linearised anew at every example knows neither its noise nor how much its own uncertainty is worth.
Both are learnt from the errors of predictions that were issued: the noise from the latest quarter of the examples, the
spread and the tails of the errors, in units of what was predicted, from the latest half. Five numbers are kept:

    count       examples seen
    shape, rate of an inverse gamma: the noise variance is rate / shape, relative to that of the likelihood
    absolute    mean of |z|, z an error in units of its predicted deviation
    square      mean of z^2
"""

import math

import numpy as np

from bayou.contracts import Vector
from bayou.numerics.gamma import log_gamma_half_step
from bayou.numerics.jit import kernel

NOISE_MEMORY = 0.25
SPREAD_MEMORY = 0.5
FIRST_MEMORY = 10.0  # examples that count fully before anything is forgotten
FARTHEST = 5.0  # an error counts, and moves the weights, as no more than so many deviations
FEWEST_DEGREES, MOST_DEGREES = 2.05, 1000.0
HALVINGS = 40
ABSOLUTE_OF_NORMAL = math.sqrt(2.0 / math.pi)


def first_noise() -> Vector:
    """Unit noise, known as well as from one example; normal errors."""
    return np.array([0.0, 0.5, 0.5, ABSOLUTE_OF_NORMAL, 1.0])


@kernel
def noise_variance(noise: Vector) -> float:
    """Relative to the likelihood's."""
    return float(noise[2] / noise[1])


@kernel
def tail_degrees(noise: Vector) -> float:
    """Degrees of freedom of the Student t whose mean |z| and mean z^2 are in the ratio that was seen."""
    wanted = math.log(noise[3]) - 0.5 * math.log(noise[4])
    low, high = math.log(FEWEST_DEGREES - 2.0), math.log(MOST_DEGREES - 2.0)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        above_two = math.exp(middle)
        ratio = 0.5 * math.log(above_two / math.pi) - log_gamma_half_step(0.5 * (above_two + 1.0))
        if ratio < wanted:
            low = middle
        else:
            high = middle
    return 2.0 + math.exp(0.5 * (low + high))


@kernel
def predictive_noise(noise: Vector, degrees: float) -> float:
    """The squared scale of a t of so many degrees, whose variance is that of the errors seen; see `Latent.noise`."""
    return float(noise_variance(noise) * noise[4] * (degrees - 2.0) / degrees)


@kernel
def restraint(error: float, spread: float) -> float:
    """What an error is multiplied by before it moves the weights: one, but for errors beyond all expectation."""
    return min(FARTHEST * math.sqrt(spread) / max(abs(error), 1e-300), 1.0)


@kernel
def kept_share(count: float, weight: float) -> float:
    """What is kept of the errors so far when one of so many comes: those of the latest quarter are remembered."""
    return 1.0 - min(weight / (FIRST_MEMORY + NOISE_MEMORY * count), 1.0)


@kernel
def count_error(noise: Vector, error: float, spread: float, weight: float) -> None:
    """Let in the error of a prediction whose variance was ``spread``, noise and all."""
    noise[0] += weight
    kept = kept_share(noise[0], weight)
    square = error * error / spread
    share = noise_variance(noise) * min(square, FARTHEST * FARTHEST)
    noise[1] = kept * noise[1] + 0.5 * weight
    noise[2] = kept * noise[2] + 0.5 * weight * share
    step = min(weight / (FIRST_MEMORY + SPREAD_MEMORY * noise[0]), 1.0)
    noise[3] += step * (min(math.sqrt(square), FARTHEST) - noise[3])
    noise[4] += step * (min(square, FARTHEST * FARTHEST) - noise[4])
