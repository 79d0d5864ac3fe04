"""Fig. 1: what predictions cost, summed over the examples: gradients and least squares on coefficients, and IRMA.

The figure prints no numbers. They come from the algorithms written out (`written_out`), on sequences of their own. The
paper does not say how its Tikhonov term enters GD and RLS; here it is a decay of each step, and a ridge that is not
forgotten. Beside them, and not in the paper: the same norm with a stiffness that is learnt, and full covariances.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Vector
from bayou.encoders import Polynomials
from bayou.likelihoods import Gaussian
from bayou.papers.buschermoehle2013.sequences import (
    DOMAIN,
    N_EXAMPLES,
    NOISE,
    START,
    Approach,
    Sequences,
    deviation,
    draw_sequences,
    estimate,
    irma,
    median,
    on_polynomials,
    on_powers,
    predictions,
    watched,
)
from bayou.papers.buschermoehle2013.written_out import incremental_risk, normalised_gradient, recursive_least_squares
from bayou.papers.claims import Claim, Effort, Experiment, Findings, Verdict, judge
from bayou.papers.ensembles import Estimate, Student
from bayou.papers.figures import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, Picture, Series, line
from bayou.posteriors import FullGaussian, FunctionNorm, NormalisedGradient, RecursiveLeastSquares
from bayou.stiffness import LearntStiffness

PAPER, ITEM = "buschermoehle2013", "Fig. 1"
ORDER = 6
FORGETTING, TIKHONOV = 0.9, 0.05
BASIS = Polynomials(ORDER, DOMAIN)
LEARNT = LearntStiffness()
WIDTH = DOMAIN[1] - DOMAIN[0]
LATE = 50  # examples, the last, over which predictions are compared with the noise
NOISE_VARIANCE = NOISE**2 / 3.0


def smooth_prior() -> tuple[float, ...]:
    """Variances of the weights that `LearntStiffness` starts from."""
    return tuple((1.0 / (LEARNT.start * BASIS.size * (1.0 + LEARNT.smoothness * BASIS.roughness))).tolist())


APPROACHES: dict[str, Approach] = {
    "GD": on_powers(Student(Gaussian(), NormalisedGradient(decay=TIKHONOV)), ORDER),
    "RLS": on_powers(Student(Gaussian(), RecursiveLeastSquares(FORGETTING, TIKHONOV)), ORDER),
    "IRMA": irma(ORDER),
    "learnt": on_polynomials(Student(Gaussian(), FunctionNorm(LEARNT, BASIS)), BASIS),
    "Bayes": on_polynomials(Student(Gaussian(), FullGaussian(1.0 / (START * WIDTH))), BASIS),
    "smooth Bayes": on_polynomials(Student(Gaussian(), FullGaussian(smooth_prior())), BASIS),
}
GD, RLS, IRMA, WITH_LEARNT, BAYES, SMOOTH = range(len(APPROACHES))
AFTER = f"after {N_EXAMPLES} examples, order {ORDER}"
MORE = f"share of the times 2 ... {N_EXAMPLES} by which"

MEAN = Claim(PAPER, ITEM, f"cumulative loss of IRMA, {AFTER}", resolution=0.01)
SPREAD = Claim(PAPER, ITEM, f"deviation of IRMA's over sequences, {AFTER}")
LATEST = Claim(PAPER, ITEM, f"loss of IRMA over the last {LATE} of {N_EXAMPLES} examples, in units of the noise")
RLS_MEDIAN = Claim(PAPER, ITEM, f"cumulative loss of RLS, median, {AFTER}")
GD_MEAN = Claim(PAPER, ITEM, f"cumulative loss of GD, {AFTER}", resolution=0.05)
LOWEST = Claim(PAPER, ITEM, f"{MORE} IRMA has lost least on average", 1.0, "stated", 0.0)
SECOND = Claim(PAPER, ITEM, f"{MORE} RLS has lost less than GD on average", 1.0, "stated", 0.0)
NO_WORSE = Claim(
    PAPER, ITEM, f"beside: {MORE} LearntStiffness has lost no more than IRMA on average", 1.0, "derived", 0.0
)
NEAR_BAYES = Claim(
    PAPER,
    ITEM,
    f"beside: loss of LearntStiffness / FullGaussian with one prior variance, {AFTER}",
    1.0,
    "derived",
    0.1,
)
NEAR_SMOOTH = Claim(
    PAPER,
    ITEM,
    f"beside: loss of LearntStiffness / FullGaussian with its own prior, {AFTER}",
    1.0,
    "derived",
    0.15,
)


def cumulative(said: NDArray[np.float64], sequences: Sequences) -> NDArray[np.float64]:
    """(1): squared errors, summed over the examples so far."""
    return np.asarray(np.cumsum((said - sequences.y) ** 2, axis=-1))


def run(effort: Effort) -> Findings:
    """The learners on their sequences, the algorithms written out on others."""
    sequences = draw_sequences(effort.replicas(full=500, quick=60), effort.seed)
    done = watched(effort, len(sequences.x))
    lost = cumulative(predictions(list(APPROACHES.values()), sequences, done), sequences)
    others = draw_sequences(effort.replicas(full=4_000, quick=600), [effort.seed, 1])
    expected = {
        IRMA: cumulative(incremental_risk(others, ORDER)[0], others),
        RLS: cumulative(recursive_least_squares(others, ORDER, FORGETTING, TIKHONOV), others),
        GD: cumulative(normalised_gradient(others, ORDER, TIKHONOV), others),
    }
    note = f"theory: written out, {len(others.x):,} sequences"
    quick = effort.quick
    verdicts = [
        judge(MEAN, estimate(expected[IRMA][:, -1]), estimate(lost[IRMA, :, -1]), quick=quick, note=note),
        judge(SPREAD, deviation(expected[IRMA][:, -1]), deviation(lost[IRMA, :, -1]), quick=quick, note=note),
        judge(LATEST, latest(expected[IRMA]), latest(lost[IRMA]), quick=quick, note=note),
        judge(RLS_MEDIAN, median(expected[RLS][:, -1]), median(lost[RLS, :, -1]), quick=quick, note=note),
        judge(GD_MEAN, estimate(expected[GD][:, -1]), estimate(lost[GD, :, -1]), quick=quick, note=note),
        *judge_order(lost),
        judge(NEAR_BAYES, None, ratio(lost[WITH_LEARNT, :, -1], lost[BAYES, :, -1])),
        judge(NEAR_SMOOTH, None, ratio(lost[WITH_LEARNT, :, -1], lost[SMOOTH, :, -1])),
    ]
    return Findings(tuple(verdicts), (picture(lost),))


def latest(lost: NDArray[np.float64]) -> Estimate:
    """What the last examples cost, per example and in units of the noise, which no one can predict."""
    return estimate((lost[:, -1] - lost[:, -1 - LATE]) / (LATE * NOISE_VARIANCE))


def judge_order(lost: NDArray[np.float64]) -> list[Verdict]:
    """Who has lost less than whom; before the first example all are the same."""
    mean = lost.mean(axis=1)[:, 1:]
    shares = {
        LOWEST: mean[IRMA] < np.minimum(mean[GD], mean[RLS]),
        SECOND: mean[RLS] < mean[GD],
        NO_WORSE: mean[WITH_LEARNT] <= mean[IRMA],
    }
    return [judge(claim, None, Estimate(float(np.mean(held)), 0.0)) for claim, held in shares.items()]


def ratio(ours: Vector, others: Vector) -> Estimate:
    """Of means over the same sequences; its standard error, from the differences that it leaves."""
    value = float(ours.mean() / others.mean())
    left = estimate(ours - value * others)
    return Estimate(value, left.standard_error / float(others.mean()))


def picture(lost: NDArray[np.float64]) -> Picture:
    """As in the paper: means, and a deviation to either side; and what is not in it."""
    shown = (
        (GD, "GD", "dashed", GREY),
        (RLS, "RLS", "dashed", ORANGE),
        (IRMA, "IRMA", "solid", INK),
        (WITH_LEARNT, "FunctionNorm, LearntStiffness", "solid", BLUE),
        (BAYES, "FullGaussian, one prior variance", "solid", GREEN),
        (SMOOTH, "FullGaussian, prior of LearntStiffness", "solid", PURPLE),
    )
    count = np.arange(1.0, N_EXAMPLES + 1.0)
    series: list[Series] = []
    for place, name, stroke, colour in shown:
        mean, spread = lost[place].mean(axis=0), lost[place].std(axis=0, ddof=1)
        series.append(line(name, count, mean, stroke, colour))  # type: ignore[arg-type]  # mixed
        if place <= IRMA:  # the others would hide each other
            for sign, side in ((1.0, "above"), (-1.0, "below")):
                value = mean + sign * spread
                drawn = value > 0.0
                label = f"{name}, a deviation {side}"
                series.append(line(label, count[drawn], value[drawn], "dotted", colour, listed=False))
    return Picture(
        "buschermoehle2013-figure-1",
        f"Cumulative loss, order {ORDER}; dotted: a deviation to either side",
        "examples $N_L$",
        "cumulative squared loss $L_C$",
        tuple(series),
        logarithmic="y",
        xlim=(0.0, float(N_EXAMPLES)),
        ylim=(0.01, 1e4),
        legend="center right",
    )


EXPERIMENT = Experiment(
    ITEM,
    "cumulative loss of GD, RLS and IRMA",
    (MEAN, SPREAD, LATEST, RLS_MEDIAN, GD_MEAN, LOWEST, SECOND, NO_WORSE, NEAR_BAYES, NEAR_SMOOTH),
    run,
)
