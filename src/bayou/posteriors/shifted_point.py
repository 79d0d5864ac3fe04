"""w <- norm[w + (rate / d) y (x - T)] where y (w . x) <= 0: the perceptron for noisy labels and inputs off centre.

Barkai, Seung and Sompolinsky 1995, (10)-(13). If labels are flipped with probability p and inputs have a mean U, the
plain perceptron comes to rest at a wrong direction. A shift with <y (x - T)> = 0 takes the noise out of the drift, and
the error falls to p as alpha^(-1/2). Two shifts have it, both learnt from running sums, A of y x and a of y:

    mean          T = A / a                     one for all examples; needs a mean label that is not zero
    projection    T = A (A . x) / |A|^2         steps go at right angles to A; for any mean label, any law of inputs

Three things make it safe. The first 5 d examples are learnt by Hebb's rule, w = A / |A|, which has the right sign: with
the mean shift -w is another attractor. The rate never passes a cap, above which the sign could be forgotten. And where
the answers of late have lost the sign of the mean label (or w . A is not positive), w starts again from A / |A|.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bayou.contracts import Array, Schedule, Vector
from bayou.errors import InvalidSpec
from bayou.numerics.jit import kernel, vectorized_kernel
from bayou.numerics.passes import passes
from bayou.numerics.perceptrons import PerceptronEstimate, count_answer, take_direction, unit_step
from bayou.numerics.points import length_of, marginal, pass_over_signs, scatter
from bayou.numerics.priors import Scales, per_weight
from bayou.numerics.schedules import no_memory, rate, remember

SHIFTS = ("auto", "mean", "projection")
WARMING_UP, MEAN, PROJECTION = 0.0, 1.0, 2.0
WARM_UP = 5.0  # examples per weight that are learnt by Hebb's rule
GAIN = 2.0  # rate * slope * alpha; the error's constant is finite above 1
# The mean shift is taken if the mean label is so many standard errors from zero; if |T - U|^2 is at most that part of
# d, so that it lengthens the steps, and passes on the noise of a, by no more; and if the slope is no less than that, as
# the cap falls with it, and some 2 p / slope^2 examples per weight pass before the error falls. Else it is left.
TAKEN, LEFT = (4.0, 0.25, 0.2), (3.0, 0.5, 0.17)
# Half of what is safe at |U| = 4, q = -1.95: at 2 every run keeps its sign, at 4 some do not.
CAP_OF_PROJECTION = 1.0
LARGEST_MEAN = 4.0  # of w . x in its deviations: beyond, one label is too rare for its threshold to be known
HALF_WIDTH = 0.3  # of the strip around w . x = 0 in which the density of inputs is counted
# What is kept in `state`: sum of labels; the shift in use and the one asked for; slope, cap and flip rate of the last
# review and when the next is due; of late: inputs in the strip, sum of |w . x|, sum of answers, number of answers.
LABELS, SHIFT, ASKED, SLOPE, CAP, FLIPS, REVIEW, NEAR, FIELDS, ANSWERS, N_ANSWERS = range(11)


class ShiftedBelief(NamedTuple):
    """The point and how many examples it has seen; its schedule (zeros: its own) and what that remembers; (mistakes,
    answers) of late and the log probability that its targets were given; the sums of y x and of x; its state.
    """

    mean: Array
    tally: Array
    schedule: Vector
    memory: Vector
    account: Vector
    labelled: Vector
    inputs: Vector
    state: Vector


@kernel
def threshold_of(ratio: float) -> float:
    """q >= 0 with m(q) / g(q) = ratio, up to a largest: m = E sgn(z + q), g its slope, z ~ N(0, 1); by halving."""
    low, high = 0.0, LARGEST_MEAN
    for _ in range(50):
        q = 0.5 * (low + high)
        if math.erf(q / math.sqrt(2.0)) < ratio * math.sqrt(2.0 / math.pi) * math.exp(-0.5 * q * q):
            low = q
        else:
            high = q
    return 0.5 * (low + high)


@vectorized_kernel
def review(belief: ShiftedBelief) -> None:
    """Look again at which shift to use, at how steep the drift is, and at whether the sign is still right."""
    state, d, n = belief.state, belief.mean.size, belief.tally[0]
    label = state[LABELS] / n
    square, along = 0.0, 0.0
    for j in range(d):
        covariance = (belief.labelled[j] - label * belief.inputs[j]) / n
        square += covariance * covariance
        along += belief.mean[j] * belief.labelled[j]
    # Covariances of labels and inputs of unit variance add up to (1 - 2p) g(q) w, and the noise of sampling.
    noise = (1.0 - label * label) / n
    signal = max(square - d * noise, math.sqrt(2.0 * d) * noise, 1e-300)
    q = threshold_of(abs(label) / math.sqrt(signal))
    m, g = math.erf(q / math.sqrt(2.0)), math.sqrt(2.0 / math.pi) * math.exp(-0.5 * q * q)
    state[SLOPE] = g
    if state[FIELDS] > 0.0:  # <y w . x> = (1 - 2p) <|w . x|>, for any law of inputs, once w is right
        told = along / n / length_of(belief.mean) / (state[FIELDS] / state[N_ANSWERS])
        state[FLIPS] = 0.5 - 0.5 * min(max(told, 0.0), 1.0)
    state[REVIEW] = n + d
    if state[ASKED] > 0.0:
        state[SHIFT] = state[ASKED]
    else:
        errors, part, slope = LEFT if state[SHIFT] == MEAN else TAKEN
        clear = label * label * n >= errors * errors and square <= part * d * label * label
        state[SHIFT] = MEAN if clear and g >= slope else PROJECTION
    if state[SHIFT] == MEAN:
        state[CAP] = 0.6 * 2.0 * g * math.sqrt(2.0 / math.pi) * (q / m if m > 0.0 else math.sqrt(0.5 * math.pi))
        lost = state[ANSWERS] * state[LABELS] < 0.0 and state[ANSWERS] * state[ANSWERS] > 9.0 * state[N_ANSWERS]
    else:
        state[CAP] = CAP_OF_PROJECTION
        lost = along <= 0.0
    if lost:
        take_direction(belief.mean, belief.labelled)
        state[NEAR:] = 0.0


@kernel
def watch(state: Vector, latent: float, share: float) -> None:
    """What inputs and answers are like of late, later ones counting for more."""
    forgotten = min(share / max(2.0 * state[N_ANSWERS], 1e-300), 1.0)
    near = share if abs(latent) < HALF_WIDTH else 0.0
    state[NEAR] += near - forgotten * state[NEAR]
    state[FIELDS] += share * abs(latent) - forgotten * state[FIELDS]
    state[ANSWERS] += share * np.sign(latent) - forgotten * state[ANSWERS]
    state[N_ANSWERS] += share - forgotten * state[N_ANSWERS]


@kernel
def own_rate(state: Vector, alpha: float) -> float:
    """GAIN / (slope alpha), up to the cap; the slope is twice the density of w . x at 0, for the right w.

    The mean shift trusts the moments, which tell it for normal inputs long before w is right. The projection serves any
    inputs: it also counts them, and goes by the lesser, as a rate too large costs little, and one too small everything.
    """
    slope = state[SLOPE]
    if state[SHIFT] != MEAN:
        slope = min(slope, (state[NEAR] + 1.0) / ((state[N_ANSWERS] + 2.0) * HALF_WIDTH))
    return float(min(state[CAP], GAIN / (max(slope, 1e-9) * alpha)))


@vectorized_kernel
def step(belief: ShiftedBelief, x: Array, y: float, share: float) -> None:
    """The sums first, then Hebb's rule or, on a mistake, the shifted step."""
    if not share > 0.0:
        return
    d, state = x.size, belief.state
    belief.tally[0] += share
    state[LABELS] += share * y
    latent, square, size = 0.0, 0.0, 0.0
    for j in range(d):
        latent += np.float64(belief.mean[j]) * x[j]
        square += np.float64(belief.mean[j]) * belief.mean[j]
        size += np.float64(x[j]) * x[j]
        belief.labelled[j] += share * y * x[j]
        belief.inputs[j] += share * x[j]
    count_answer(belief.account, y * latent, share)
    if state[SHIFT] == WARMING_UP:
        take_direction(belief.mean, belief.labelled)
        if belief.tally[0] >= WARM_UP * d:
            review(belief)
        return
    if size == 0.0:
        return
    length = math.sqrt(square) if square > 0.0 else 1.0
    watch(state, latent / length, share)
    remember(belief.memory, y * latent <= 0.0, share, d)
    if belief.tally[0] >= state[REVIEW]:
        review(belief)
    if y * latent > 0.0:
        return
    own = belief.schedule[0] == 0.0
    alpha = belief.tally[0] / d
    eta = own_rate(state, alpha) if own else rate(belief.schedule, belief.memory, alpha)
    part = 0.0
    if state[SHIFT] == MEAN:
        part = 1.0 / state[LABELS] if state[LABELS] != 0.0 else 0.0
    else:
        along, across = 0.0, 0.0
        for j in range(d):
            along += belief.labelled[j] * x[j]
            across += belief.labelled[j] * belief.labelled[j]
        part = along / across if 0.0 < across < np.inf else 0.0
    if abs(part) < np.inf:
        unit_step(belief.mean, length * y * share * eta / d, x, part, belief.labelled)


@vectorized_kernel
def absorb(belief: ShiftedBelief, x: Array, slope: float, precision: float, variance: float) -> None:
    """Learn an example whose sign is that of the slope."""
    step(belief, x, np.sign(slope), abs(np.sign(slope)))


@vectorized_kernel
def latent_belief(belief: ShiftedBelief, c: int) -> ShiftedBelief:
    """The point of one latent."""
    return ShiftedBelief(
        belief.mean[c],
        belief.tally[c],
        belief.schedule[c],
        belief.memory[c],
        belief.account[c],
        belief.labelled[c],
        belief.inputs[c],
        belief.state[c],
    )


_passes = passes(__name__, marginal, scatter, absorb, latent_belief)


@dataclass(frozen=True)
class ShiftedPoint(PerceptronEstimate[ShiftedBelief]):
    """The shifted perceptron. Inputs must have about unit variance, and none may be constant: its shift is itself.

    ``shift`` is "mean", "projection", or "auto", which takes the mean shift while the mean label is clearly not zero
    and the projection otherwise. Without a ``schedule`` the rate is 2 / (slope alpha), up to a cap, with the slope and
    the cap that the examples tell.

    >>> import numpy as np
    >>> from bayou import Learner, MomentMatching, ShiftedPoint, Step
    >>> rng = np.random.default_rng(0)
    >>> inputs = rng.normal(size=(5000, 3)) + [1.0, 2.0, 0.0]
    >>> labels = np.sign(inputs @ [0.6, 0.0, 0.8]) * np.where(rng.random(5000) < 0.2, -1.0, 1.0)
    >>> learner = Learner(Step(), ShiftedPoint(), MomentMatching(), n_features=3)
    >>> _ = learner.learn_many(inputs, labels)
    >>> learner.belief.mean.round(1)
    array([0.6, 0. , 0.8])
    >>> learner.posterior.shift_of(learner.belief)
    'projection'
    """

    shift: str = "auto"
    schedule: Schedule | None = None
    prior_mean: Scales = 0.0
    dtype: str = "float64"

    needs_signs = True
    asks_evidence = True
    predict = staticmethod(_passes.predict)
    learn = staticmethod(pass_over_signs(__name__, step))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.shift not in SHIFTS:
            raise InvalidSpec(f"`shift` must be one of {', '.join(SHIFTS)}; got {self.shift!r}.")
        if not (self.schedule is None or isinstance(self.schedule, Schedule)):
            raise InvalidSpec(f"`schedule` must be a Schedule, or None for its own; got {self.schedule!r}.")

    def prior(self, n_features: int) -> ShiftedBelief:
        """The point before any example."""
        mean = per_weight("prior_mean", self.prior_mean, n_features).astype(self.dtype)
        state = np.zeros(11)
        state[ASKED], state[FLIPS] = SHIFTS.index(self.shift), 0.5
        numbers = np.zeros(5) if self.schedule is None else self.schedule.numbers
        sums = np.zeros(n_features), np.zeros(n_features)
        return ShiftedBelief(mean, np.zeros(1), numbers, no_memory(), np.zeros(3), *sums, state)

    def absorb(self, belief: ShiftedBelief, features: Vector, slope: float, precision: float) -> None:
        """Learn an example whose sign is that of the slope, in place."""
        absorb(belief, np.ascontiguousarray(features, dtype=self.dtype), slope, precision, 0.0)

    def shift_of(self, belief: ShiftedBelief) -> str:
        """Which shift is in use: "none" while it warms up by Hebb's rule, "mean" or "projection"."""
        return ("none", *SHIFTS[1:])[int(belief.state[SHIFT])]

    def flip_rate(self, belief: ShiftedBelief) -> float:
        """How often labels are flipped, if the point has come close to the truth; 1/2 before anything is known."""
        return float(belief.state[FLIPS])

    def forget(self, belief: ShiftedBelief, discount: float = 1.0, diffusion: float = 0.0) -> None:
        """Let the examples so far count for less; the shift stays, and moves faster with those to come."""
        super().forget(belief, discount, diffusion)
        for array in (belief.labelled, belief.inputs, belief.state[LABELS:SHIFT], belief.state[NEAR:]):
            array *= discount
        belief.state[REVIEW] = 0.0

    def transform(self, belief: ShiftedBelief, scale: Vector, shift: Vector) -> None:
        """Make it the point ``scale * w``, with ``shift . w`` added to the first weight, in place; inputs are told so
        that w . x stays.
        """
        super().transform(belief, scale, shift)
        for total in (belief.labelled, belief.inputs):
            first = total[0] / (scale[0] + shift[0])
            total[...] = (total - shift * first) / scale
            total[0] = first

    def _average(self, parts: Sequence[tuple[float, ShiftedBelief]]) -> ShiftedBelief:
        """The sums are those of all parts; what follows from them is reviewed at the next example."""
        merged = super()._average(parts)
        for share, part in parts:
            for array, value in ((merged.labelled, part.labelled), (merged.inputs, part.inputs)):
                array += share * value
            merged.state[LABELS] += share * part.state[LABELS]
            merged.state[NEAR:] += share * part.state[NEAR:]
        for place in (NEAR, FIELDS, N_ANSWERS):
            merged.state[place] = max(merged.state[place], 0.0)
        warm = [part.state for _, part in parts if part.state[SHIFT] != WARMING_UP]
        if warm:
            merged.state[SHIFT : FLIPS + 1] = warm[0][SHIFT : FLIPS + 1]
        return merged
