"""Section 4: thresholded smooth functions, sgn f(x; w), by rule (20), w += eta label grad f at mistakes.

The paper argues for one weight that the error follows the rate: eps ~ eta where it is constant, eps ~ 1 / n with
eta = eta0 / n if eta0 is large enough. Here with a network of two layers and with a quadratic form, of several weights,
where large enough means eta0 lambda_min(B) > 1, B = E[delta(f) grad f grad f'] at the solution. With a smaller eta0
what lies along the eigenvector of lambda_min falls as n^-(eta0 lambda_min). With flipped labels eps - p ~ sqrt(eta).

Each replica is the production pass of `ThresholdedFunction`, all of them side by side; each prediction before learning
is a sample of the error. Needs JAX, and says so where it is missing.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np

from bayou.contracts import Matrix, Vector
from bayou.estimators.thresholds import Rate, Tally, boundary, chosen_rate, next_look, nothing, one_pass
from bayou.functions.jax_function import Shape, double_precision, flattened, jax
from bayou.papers.claims import Claim, Effort, Experiment, Findings, judge
from bayou.papers.ensembles import Estimate
from bayou.papers.figures import BLUE, GREY, ORANGE, PURPLE, Picture, line, points

PAPER = "barkai1995"
THRESHOLD = 0.5
FIRST_RATE = 0.1  # n0 = eta0 / FIRST_RATE
NEAR = 0.1  # deviation of a student's first weights from the teacher's
ENOUGH, TOO_LITTLE = 2.0, 0.5  # eta0 lambda_min(B)
STEADY = (0.02, 0.04, 0.08)
FLIPS = 0.1
ASIDE = 0.2  # how far from the teacher along the eigenvector of lambda_min(B)
CHUNK = 1000
BINS = 10  # per run, of equal length in the logarithm of n + n0


def tanh_network(weights: Any, x: Any) -> Any:
    """Two hidden units whose sum has to pass a threshold: the threshold fixes the scale, as nothing else would."""
    return jax().numpy.tanh(weights @ x).sum() - THRESHOLD


def quadratic_form(weights: Any, x: Any) -> Any:
    """x' A x - 1; the weights are the upper triangle of A, row by row."""
    rows, columns = np.triu_indices(x.size)
    return weights @ (x[rows] * x[columns]) - 1.0


@dataclass(frozen=True)
class Task:
    """A function and its teacher; inputs are standard normal."""

    name: str
    function: Callable[..., Any]
    teacher: tuple[Any, ...]
    n_features: int

    def flat(self) -> tuple[Vector, Shape]:
        """The teacher's weights."""
        return flattened(np.array(self.teacher), self.name)

    def matrix(self) -> Matrix:
        """B, by the share of four million inputs within a narrow slab around the boundary."""
        weights, shape = self.flat()
        rng, width, n = np.random.default_rng(0), 0.02, 200_000
        total = np.zeros((weights.size, weights.size))
        with double_precision() as module:
            tangent = module.value_and_grad(lambda w, x: self.function(shape.unravel(w), x))
            tangents = module.jit(module.vmap(tangent, (None, 0)))
            for _ in range(20):
                values, gradients = (np.asarray(a) for a in tangents(weights, rng.normal(size=(n, self.n_features))))
                inside = gradients[np.abs(values) < width]
                total += inside.T @ inside / (2.0 * width * n)
        return total / 20.0

    def lowest(self) -> tuple[float, Vector]:
        """The smallest eigenvalue of B and its direction."""
        return _lowest(self)


@cache
def _lowest(task: Task) -> tuple[float, Vector]:
    values, vectors = np.linalg.eigh(task.matrix())
    return float(values[0]), vectors[:, 0]


NETWORK = Task("tanh network", tanh_network, ((1.0, 0.5), (-0.7, 1.0)), 2)
FORM = Task("quadratic form", quadratic_form, (1.0, 0.3, -0.2, 0.8, 0.1, 0.6), 3)


@dataclass(frozen=True)
class Curve:
    """Disagreement with the noiseless teacher: ``errors[bin, replica]``, and at which n, in the mean."""

    n: Vector
    errors: Matrix
    tally: Tally

    def mean(self) -> Vector:
        """Over replicas."""
        return np.asarray(self.errors.mean(axis=1))

    def standard_error(self) -> Vector:
        """Of the mean."""
        return np.asarray(self.errors.std(axis=1, ddof=1) / math.sqrt(self.errors.shape[1]))

    def exponent(self, offset: float, since: float) -> Estimate:
        """Slope of log error in log(n + offset) beyond some n; its error by leaving out each replica in turn."""
        late = self.n > since
        at, errors = np.log(self.n[late] + offset), self.errors[late]
        n = errors.shape[1]
        slope = at - at.mean()
        slope /= slope @ slope
        left_out = slope @ np.log((errors.sum(axis=1, keepdims=True) - errors) / (n - 1))
        scatter = math.sqrt((n - 1) / n * float(np.sum((left_out - left_out.mean()) ** 2)))
        return Estimate(float(slope @ np.log(errors.mean(axis=1))), scatter)


def clock(eta0: float, power: float = 1.0, offset: float = 0.0) -> Rate:
    """eta = eta0 (n + offset)^-power."""
    return Rate(*(np.array(value) for value in (eta0, power, offset, np.inf, 0.0)))


def simulate(
    task: Task,
    rate: Rate | None,
    n: int,
    n_replicas: int,
    *,
    seed: int = 0,
    flips: float = 0.0,
    flip_rate: float = 0.0,
    start: Vector | None = None,
) -> Curve:
    """Replicas that start near the teacher, or from ``start``; a rate of None is the one that is chosen on the way."""
    weights, shape = task.flat()
    rng = np.random.default_rng(seed)
    first = weights + NEAR * rng.standard_normal((n_replicas, weights.size)) if start is None else start
    fresh = nothing(weights)
    tally = Tally(*(np.broadcast_to(array, (n_replicas, *np.shape(array))) for array in fresh))
    tally = tally._replace(weights=np.broadcast_to(first, (n_replicas, weights.size)))
    given = chosen_rate(np.full(n_replicas, np.nan)) if rate is None else rate
    middles, errors, done, look = [], [], 0, next_look(0)
    with double_precision() as module:
        run = one_pass(task.function, shape, task.n_features, task.name)
        passes = module.jit(module.vmap(run, (0, 0 if rate is None else None, None, 0, 0, 0)))
        values = module.jit(partial(_values, task.function, shape))
        while done < n:
            rows = rng.standard_normal((n_replicas, CHUNK, task.n_features))
            truth = np.where(np.asarray(values(weights, rows)) > 0.0, 1.0, -1.0)
            labels = np.where(rng.random(truth.shape) < flips, -truth, truth)
            tally, (said, *_) = passes(tally, given, flip_rate, rows, labels, np.ones_like(labels))
            middles.append(done + 0.5 * CHUNK)
            errors.append(np.mean(np.asarray(said) * truth <= 0.0, axis=1))
            done += CHUNK
            if rate is None and done >= look:
                given, look = chosen_rate(boundary(tally).lowest), next_look(done)
    offset = float(np.mean(given.offset))
    return _binned(np.array(middles), np.array(errors), offset, Tally(*map(np.asarray, tally)))


def _values(function: Callable[..., Any], shape: Shape, weights: Any, rows: Any) -> Any:
    one = jax().vmap(lambda x: function(shape.unravel(weights), x))
    return jax().vmap(one)(rows)


def _binned(middles: Vector, errors: Matrix, offset: float, tally: Tally) -> Curve:
    edges = np.geomspace(offset + CHUNK, offset + middles[-1] + CHUNK, BINS + 1)[1:-1]
    places = np.digitize(middles + offset, edges)
    used = np.unique(places)
    n = np.array([np.exp(np.log(middles[places == place] + offset).mean()) - offset for place in used])
    return Curve(n, np.array([errors[places == place].mean(axis=0) for place in used]), tally)


def _exponent(
    quantity: str, printed: float, source: Literal["stated", "derived"] = "stated", quick: bool = True
) -> Claim:
    said = f"exponent of {quantity}"
    return Claim(PAPER, "Sec. 4", said, printed, source, tolerance=0.05, resolution=0.05, quick=quick)


FALLS = {
    task: _exponent(f"the error in n + n0, {task.name}, eta0 lambda_min(B) = {ENOUGH:g}", -1.0)
    for task in (NETWORK, FORM)
}
# A rate that is being found needs more examples than a quick run has, and for the network more than a full one.
CHOSEN = _exponent(f"the error in n, {FORM.name}, rate chosen from the data", -1.0, quick=False)
FOLLOWS = _exponent(f"the error in a constant eta, {FORM.name}", 1.0)
NOISY = _exponent(f"eps - p in n + n0, {FORM.name}, p = {FLIPS:g} known", -0.5)
SLOW = _exponent(f"the error in n + n0, {FORM.name}, eta0 lambda_min(B) = {TOO_LITTLE:g}", -TOO_LITTLE, "derived")


def schedule(task: Task, condition: float) -> Rate:
    """eta0 / (n + n0) with eta0 lambda_min(B) as given."""
    eta0 = condition / task.lowest()[0]
    return clock(eta0, 1.0, eta0 / FIRST_RATE)


def steady_exponent(n_replicas: int, seed: int) -> Estimate:
    """Of the error at which constant rates stop, in the rate."""
    logs, variances = [], []
    for eta in STEADY:
        late = simulate(FORM, clock(eta, 0.0), 10_000, n_replicas, seed=seed).errors[-2:].mean(axis=0)
        logs.append(math.log(late.mean()))
        variances.append(late.var(ddof=1) / n_replicas / late.mean() ** 2)
    at = np.log(STEADY) - np.mean(np.log(STEADY))
    slope = at / (at @ at)
    return Estimate(float(slope @ logs), math.sqrt(float(slope**2 @ variances)))


def run(effort: Effort) -> Findings:
    """Both functions, with rates that are large enough, too small, constant and chosen."""
    if find_spec("jax") is None:
        sys.stderr.write('barkai1995, Sec. 4 is left out: it needs JAX, which is missing: pip install "bayou[jax]"\n')
        return Findings(())
    n, n_replicas = 20_000 if effort.quick else 60_000, effort.replicas(full=200, quick=32)
    enough, too_little = schedule(FORM, ENOUGH), schedule(FORM, TOO_LITTLE)
    aside = FORM.flat()[0] + ASIDE * FORM.lowest()[1]
    curves = {
        NETWORK.name: (
            schedule(NETWORK, ENOUGH),
            simulate(NETWORK, schedule(NETWORK, ENOUGH), n, n_replicas, seed=effort.seed),
        ),
        FORM.name: (enough, simulate(FORM, enough, n, n_replicas, seed=effort.seed)),
        f"{FORM.name}, η₀ too small": (
            too_little,
            simulate(FORM, too_little, n, n_replicas, start=aside, seed=effort.seed),
        ),
        f"{FORM.name}, p = {FLIPS:g}": (
            enough,
            simulate(FORM, enough, n, n_replicas, flips=FLIPS, flip_rate=FLIPS, seed=effort.seed),
        ),
    }
    found = [curve.exponent(float(rate.offset), n / 10) for rate, curve in curves.values()]
    claims = (FALLS[NETWORK], FALLS[FORM], SLOW, NOISY)
    verdicts = [judge(claim, None, seen, quick=effort.quick) for claim, seen in zip(claims, found, strict=True)]
    verdicts.append(judge(FOLLOWS, None, steady_exponent(n_replicas, effort.seed), quick=effort.quick))
    if not effort.quick:
        chosen = simulate(FORM, None, n, n_replicas, seed=effort.seed)
        verdicts.append(judge(CHOSEN, None, chosen.exponent(0.0, n / 10)))
    return Findings(tuple(verdicts), (picture(curves, [claim.printed or 0.0 for claim in claims]),))


def picture(curves: dict[str, tuple[Rate, Curve]], exponents: list[float]) -> Picture:
    """The laws of section 4, which the paper tells of without a figure; each through its last point."""
    series = []
    for (name, (rate, curve)), exponent, colour in zip(
        curves.items(), exponents, (BLUE, ORANGE, GREY, PURPLE), strict=True
    ):
        at, mean = curve.n + float(rate.offset), curve.mean()
        series.append(points(name, at, mean, curve.standard_error(), colour))
        law = mean[-1] * (at / at[-1]) ** exponent
        series.append(line(f"{name}: exponent {exponent:g}", at, law, "dashed", colour))
    return Picture(
        "barkai1995-section-4",
        "Thresholded smooth functions",
        "$n + n_0$",
        "error above the noise",
        tuple(series),
        logarithmic=True,
        ylim=(1e-5, 0.2),
    )


EXPERIMENT = Experiment(
    "Sec. 4",
    "thresholded smooth functions",
    (*FALLS.values(), SLOW, NOISY, FOLLOWS, CHOSEN),
    run,
)
