"""Fig. 2: labels flipped with p = 0.2, inputs off centre, N = 250: the plain perceptron, the shifted one, and Bayes.

|U| = 4 and U . W0 = -1.95, so that one teacher's label in forty is +1, and who always answers -1 errs by 0.2154. The
plain rule comes to rest at a wrong direction, 0.3122. The shifted rule comes to 0.2 as alpha^-1/2, its constant being
that of a T that is learnt. Both start at random, and have the rate min(0.25, 2 / (g(q0) alpha)): without the bound the
shifted rule would forget its sign.

Beside them, not in the paper, is what a sign that is flipped at a known rate, or at one of several rates that the
evidence chooses from, learns by a full Gaussian belief from as many examples. It has an intercept whose prior lets the
threshold lie some two deviations from the middle of the inputs; without one, weights of equal size would all but
exclude that U . W0 is as large as it is here.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np

from bayou.contracts import Matrix, Vector
from bayou.likelihoods import FlipProbit, Step
from bayou.papers.barkai1995.figure_1 import estimate
from bayou.papers.barkai1995.worlds import Centre, Clusters, beside, random_start
from bayou.papers.claims import Claim, Effort, Experiment, Findings, Verdict, judge
from bayou.papers.ensembles import Ensemble, Estimate, Generator, Pupil, Student, times_of
from bayou.papers.figures import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, Picture, Series, line, points
from bayou.posteriors import FullGaussian, ScheduledPoint, ShiftedPoint
from bayou.schedules import PowerLawRate
from bayou.theory import OffCentre, OffCentreCurve, off_centre_curve, plain_fixed_points, shifted_law

PAPER, ITEM = "barkai1995", "Fig. 2"
N_WEIGHTS = 250
TASK = OffCentre(flip_rate=0.2, distance=4.0, field=-1.95)
CENTRES = (Centre(TASK.field, TASK.across),)
WORLD = Clusters(N_WEIGHTS, TASK.flip_rate, CENTRES)
STEEPNESS = math.sqrt(2.0 / math.pi) * math.exp(-0.5 * TASK.field**2)  # g(q0)
LARGEST = 0.25  # of the rate; above 0.391 the sign is forgotten
SOON = (5.0, 7.0, 10.0, 15.0, 20.0)
ALPHAS = (*SOON, 35.0, 50.0, 100.0, 200.0, 500.0)
FOUND = 0.25  # an error below it belongs to a run that is on its way to 0.2: the plain rule is at 0.31, -W0 at 0.8

START = random_start(N_WEIGHTS)
RATE = PowerLawRate(2.0 / STEEPNESS, largest=LARGEST)
PERCEPTRONS = {
    "plain": Student(Step(), ScheduledPoint(RATE, prior_mean=START)),
    "mean shift": Student(Step(), ShiftedPoint("mean", RATE, prior_mean=START)),
    "mean shift, own rate": Student(Step(), ShiftedPoint("mean", prior_mean=START)),
    "projection, own rate": Student(Step(), ShiftedPoint("projection", prior_mean=START)),
}
SHIFTED = tuple(name for name in PERCEPTRONS if name != "plain")

# Bayes
BAYES_WORLD = Clusters(N_WEIGHTS, TASK.flip_rate, CENTRES, intercept=True)
BAYES_ALPHAS = ALPHAS[:-1]
KNOWN = 0.2
FLIP_RATES = (0.1, KNOWN, 0.3, 0.4)
WIDE, PINNED = 4.0 * N_WEIGHTS, 1e-30  # variances of the intercept
EQUAL = 1e-4  # errors so close are one


def bayesian(flip_rate: float, intercept: float = WIDE) -> Student:
    """A full belief, with this variance of the intercept."""
    return Student(FlipProbit(flip_rate), FullGaussian(prior_variance=(1.0,) * N_WEIGHTS + (intercept,)))


BAYESIANS = [*(bayesian(rate) for rate in FLIP_RATES), bayesian(KNOWN, PINNED)]
NO_INTERCEPT = len(FLIP_RATES)


def evidence_and_weights(pupil: Pupil, teacher: Vector, rng: Generator) -> tuple[float, ...]:
    """The log evidence; overlaps with the teacher and beside it; intercept and weights."""
    w = pupil.belief.mean[:N_WEIGHTS]
    overlaps = float(w @ teacher), float(w @ beside(teacher))
    return pupil.log_evidence, *overlaps, float(pupil.belief.mean[-1]), *w.tolist()


def mixed_errors(values: Matrix) -> Vector:
    """Of the mean of students, mixed by their evidence; ``values[replica, student, time]`` are as measured above."""
    logs = values[..., 0] - values[..., 0].max(axis=1, keepdims=True)
    shares = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
    mixed = np.einsum("rst,rstq->rtq", shares, values[..., 1:])
    lengths = np.linalg.norm(mixed[..., 3:], axis=-1)
    told = mixed[..., :3] / lengths[..., None]
    errors = [BAYES_WORLD.error(*row) for row in told.reshape(-1, 3).tolist()]
    return np.asarray(np.reshape(errors, lengths.shape))


# Claims


def told_rate(alpha: float) -> float:
    """That of the simulation, for the theory."""
    return min(LARGEST, 2.0 / (STEEPNESS * alpha))


GRID = tuple(np.geomspace(5.0, 1e5, 100).tolist())
FAR = (1e5, 1e7)


@cache
def curve(rule: str) -> OffCentreCurve:
    """The plain or the learned rule, of infinitely many weights, at every alpha that is asked about."""
    return off_centre_curve(TASK, told_rate, sorted({*GRID, *ALPHAS, *FAR}), rule=rule)


def theory(rule: str, alpha: float) -> float:
    """Its error at one of these alphas."""
    return float(curve(rule).error[curve(rule).alpha.tolist().index(alpha)])


LAW = shifted_law(TASK, 2.0, 1.0)
FIXED_POINT = Claim(PAPER, ITEM, "error at which the plain rule stops, eta to 0 (printed: about)", 0.32, "stated", 0.01)
PLAIN = {
    alpha: Claim(
        PAPER,
        ITEM,
        f"error of the plain rule, N = {N_WEIGHTS}, alpha = {alpha:g}",
        resolution=0.01,
        quick=alpha <= 200.0,
    )
    for alpha in (50.0, 100.0, 200.0, 500.0)
}
EXPONENT = Claim(
    PAPER, ITEM, "exponent of eps - p, shifted rule, T learnt, from alpha = 1e5 to 1e7", -0.5, "stated", 0.002
)
CONSTANT = Claim(
    PAPER,
    "(18)",
    "(eps - p) alpha^(1/2), T learnt, alpha = 1e+07",
    math.sqrt(2.0 * TASK.flip_rate / math.pi),
    "stated",
    5e-4,
)
TOLD = Claim(
    PAPER,
    "(18)",
    "(eps - p) alpha^(1/2), T as (13) tells it, alpha = 1e+07, as printed",
    math.sqrt(2.0 * TASK.flip_rate / math.pi),
    "stated",
    5e-4,
    erratum="lacks the factor 1 - 2p if T is told; it is right if T is learnt, whose own noise is then as large",
)
TOLD_CORRECTED = Claim(
    PAPER,
    "(18)",
    "(eps - p) alpha^(1/2), T as (13) tells it, alpha = 1e+07, corrected",
    TASK.kept * math.sqrt(2.0 * TASK.flip_rate / math.pi),
    "derived",
    5e-4,
)
LEARNED = {
    alpha: Claim(
        PAPER,
        ITEM,
        f"eps - p, mean shift, N = {N_WEIGHTS}, alpha = {alpha:g}",
        resolution=0.05,
        quick=False,
    )
    for alpha in (50.0, 200.0, 500.0)
}
ALL_FOUND = {
    name: Claim(
        PAPER,
        ITEM,
        f"share of runs from random starts that find the teacher, {name}, N = {N_WEIGHTS}",
        1.0,
        "stated",
        0.0,
    )
    for name in SHIFTED
}


def _bayes_claim(who: str, since: float) -> Claim:
    words = f"share of the alphas above {since:g} at which {who} errs no more than any shifted rule, N = {N_WEIGHTS}"
    return Claim(PAPER, ITEM, words, 1.0, "derived", 0.0)


BAYES_KNOWN = _bayes_claim(f"FlipProbit({KNOWN:g})", 5.0)
BAYES_MIXED = _bayes_claim("FlipProbit, its rate mixed by evidence,", 5.0)
BAYES_BARE = Claim(
    PAPER,
    ITEM,
    f"share of the alphas from 35 on at which FlipProbit({KNOWN:g}) without intercept errs no more, N = {N_WEIGHTS}",
    1.0,
    "derived",
    0.0,
    quick=False,
)


def run(effort: Effort) -> Findings:
    """Perceptrons on the same examples; Bayesians on others, and not as far."""
    alphas = tuple(alpha for alpha in ALPHAS if not effort.quick or alpha <= 200.0)
    measured = effort.ensemble(
        list(PERCEPTRONS.values()), WORLD, times_of(alphas, N_WEIGHTS), full=100, quick=6, measure=WORLD.measure
    )
    bayes_alphas = SOON if effort.quick else BAYES_ALPHAS
    beliefs = effort.ensemble(
        BAYESIANS, BAYES_WORLD, times_of(bayes_alphas, N_WEIGHTS), full=6, quick=2, measure=evidence_and_weights
    )
    errors = {
        "known": mixed_errors(beliefs.values[:, [FLIP_RATES.index(KNOWN)]]),
        "mixed": mixed_errors(beliefs.values[:, : len(FLIP_RATES)]),
        "bare": mixed_errors(beliefs.values[:, [NO_INTERCEPT]]),
    }
    verdicts = [*theory_alone(), *simulated(measured, effort), *judge_bayes(measured, errors, bayes_alphas, effort)]
    return Findings(tuple(verdicts), pictures(measured, errors, alphas, bayes_alphas))


def theory_alone() -> list[Verdict]:
    """Where both rules end."""
    (end,) = [point.error for point in plain_fixed_points(TASK) if point.stable]
    low, high = (theory("learned", alpha) - TASK.flip_rate for alpha in FAR)
    exponent = math.log(high / low) / math.log(FAR[1] / FAR[0])
    near = (0.5, 0.5 * TASK.field)  # on the right side
    told = float(off_centre_curve(TASK, told_rate, [1e7], rule="shifted", start=near).error[0]) - TASK.flip_rate
    return [
        judge(FIXED_POINT, end),
        judge(EXPONENT, exponent),
        judge(CONSTANT, high * math.sqrt(FAR[1])),
        judge(TOLD, told * math.sqrt(1e7)),
        judge(TOLD_CORRECTED, told * math.sqrt(1e7)),
    ]


def simulated(measured: Ensemble, effort: Effort) -> list[Verdict]:
    """The perceptrons beside the equations of the plane of W0 and U."""
    verdicts = []
    names = list(PERCEPTRONS)
    for alpha, claim in PLAIN.items():
        if alpha * N_WEIGHTS in measured.times:
            found = measured.at(round(alpha * N_WEIGHTS))
            verdicts.append(judge(claim, theory("plain", alpha), found, quick=effort.quick))
    if not effort.quick:
        for alpha, claim in LEARNED.items():
            found = measured.at(round(alpha * N_WEIGHTS), names.index("mean shift"))
            excess = Estimate(found.mean - TASK.flip_rate, found.standard_error)
            verdicts.append(judge(claim, theory("learned", alpha) - TASK.flip_rate, excess))
    last = measured.values[:, :, -1, 0]
    for name, claim in ALL_FOUND.items():
        successes = last[:, names.index(name)] < FOUND
        note = f"{successes.sum()} of {successes.size} runs, alpha = {measured.times[-1] / N_WEIGHTS:g}"
        verdicts.append(judge(claim, None, Estimate(float(successes.mean()), 0.0), note=note))
    return verdicts


def judge_bayes(
    measured: Ensemble, errors: dict[str, Vector], alphas: tuple[float, ...], effort: Effort
) -> list[Verdict]:
    """Beside the best shifted rule at each alpha above 5."""
    places = [measured.times.index(round(alpha * N_WEIGHTS)) for alpha in alphas]
    shifted = [list(PERCEPTRONS).index(name) for name in SHIFTED]
    best = measured.mean[shifted][:, places, 0].min(axis=0)
    sizes = np.array(alphas)
    verdicts = []
    for claim, who, counted in (
        (BAYES_KNOWN, "known", sizes > 5.0),
        (BAYES_MIXED, "mixed", sizes > 5.0),
        (BAYES_BARE, "bare", sizes >= 35.0),
    ):
        if claim.quick or not effort.quick:
            above = errors[who].mean(axis=0) - best
            share = float(np.mean(above[counted] <= EQUAL))
            note = f"at most {max(above[counted].max(), 0.0):.1g} above; without a limit to alpha {above.max():.1g}"
            verdicts.append(judge(claim, None, Estimate(share, 0.0), note=note))
    return verdicts


# Pictures


def pictures(
    measured: Ensemble, errors: dict[str, Vector], alphas: tuple[float, ...], bayes_alphas: tuple[float, ...]
) -> tuple[Picture, Picture]:
    """Errors against alpha^-1/2, in which (18) is the dashed line; and eps - p on logarithmic axes, with all powers."""
    grid = curve("plain").alpha
    plain, shifted = curve("plain").error, curve("learned").error
    (end,) = [point.error for point in plain_fixed_points(TASK) if point.stable]

    def series(floor: float, power: float) -> tuple[Series, ...]:
        x, above = grid**power, TASK.flip_rate - floor
        shown = (
            line("(18), as printed", x, above + LAW(grid), "dashed", GREY),
            line("plain rule, N → ∞", x, plain - floor, "solid", ORANGE),
            line(f"where it ends: 0.2 + {end - TASK.flip_rate:.4f}", x, np.full_like(x, end - floor), "dotted", ORANGE),
            line("mean shift, N → ∞", x, shifted - floor, "solid", INK),
            *_points(measured, errors, alphas, bayes_alphas, floor, power),
        )
        return tuple(_from_left(each) for each in shown)

    return (
        Picture(
            "barkai1995-figure-2",
            "Output noise: N = 250, p = 0.2, |U| = 4, q₀ = -1.95",
            "$α^{-1/2}$",
            "generalisation error $ε_g$",
            series(0.0, -0.5),
            xlim=(0.0, 0.46),
            ylim=(0.195, 0.48),
        ),
        Picture(
            "barkai1995-figure-2-excess",
            "Output noise: what is left above p = 0.2",
            "α",
            "$ε_g - p$",
            series(TASK.flip_rate, 1.0),
            logarithmic=True,
            xlim=(4.0, 2000.0),
            ylim=(0.003, 4.0),
        ),
    )


def _from_left(series: Series) -> Series:
    """The same points in the order of x."""
    order = np.argsort(series.x)
    bars = None if series.standard_error is None else series.standard_error[order]
    return replace(series, x=series.x[order], y=series.y[order], standard_error=bars)


def _points(
    measured: Ensemble,
    errors: dict[str, Vector],
    alphas: tuple[float, ...],
    bayes_alphas: tuple[float, ...],
    floor: float,
    power: float,
) -> list[Series]:
    series = []
    x = np.array(alphas) ** power
    for name, colour in zip(PERCEPTRONS, (ORANGE, INK, None, PURPLE), strict=True):
        if colour is not None:  # the shift with its own rate lies on that with the rate told
            place = list(PERCEPTRONS).index(name)
            mean, bars = measured.mean[place, :, 0] - floor, measured.standard_error[place, :, 0]
            series.append(points(f"{name}, {len(measured.values)} runs", x, mean, bars, colour))
    for who, label, colour, stroke in (
        ("known", f"FlipProbit({KNOWN:g}) × FullGaussian", BLUE, "discs"),
        ("mixed", "the same, flip rate by evidence", GREEN, "squares"),
    ):
        found = [estimate(column) for column in errors[who].T]
        mean, bars = np.array([each.mean for each in found]) - floor, np.array([each.standard_error for each in found])
        x = np.array(bayes_alphas) ** power
        series.append(points(label, x, mean, bars, colour, stroke))  # type: ignore[arg-type]  # of a table of mixed types
    return series


EXPERIMENT = Experiment(
    ITEM,
    "labels flipped, inputs off centre",
    (
        FIXED_POINT,
        *PLAIN.values(),
        EXPONENT,
        CONSTANT,
        TOLD,
        TOLD_CORRECTED,
        *LEARNED.values(),
        *ALL_FOUND.values(),
        BAYES_KNOWN,
        BAYES_MIXED,
        BAYES_BARE,
    ),
    run,
)
