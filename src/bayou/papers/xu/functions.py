"""Fig. 5, functions on local subspaces: where they are the right tool, and where not.

Three worlds. In the first, inputs of ten columns lie in four places, along two directions of each, and the target is
linear in where along them. In the second, a function of one input has four straight pieces, with jumps between. The
third is smooth, over inputs that cover a square evenly: there are no places to find. bayou's functions on subspaces are
compared with those of its other components, which are the special cases that the literature has names for (balls of
inputs: the extended normalised network of radial functions; any covariance: the alternative mixture of experts), with
one linear fit, with a random forest, and with an oracle that knows all but the noise. Errors are root mean squares
against the function without noise, at inputs that were not learnt.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.random import Generator

from bayou.contracts import Matrix, Vector
from bayou.estimators.subspace_regressor import SubspaceRegressor
from bayou.papers.claims import Claim, Effort, Experiment, Findings, Verdict, judge
from bayou.papers.ensembles import Estimate
from bayou.papers.figures import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, Picture, Stroke, points
from bayou.papers.wang2007.world import share

PAPER, ITEM = "xu", "Fig. 5"
N_NEW = 2000


class Regression(NamedTuple):
    """Rows to learn; others with the function there and the target, and what one expects there who knows all."""

    x: Matrix
    z: Vector
    new_x: Matrix
    new_f: Vector
    new_z: Vector
    oracle: Vector


class Local(NamedTuple):
    """Clusters along two directions each, between which the target is linear; ``noise`` is that of the target."""

    n: int = 600
    d: int = 10
    k: int = 4
    m: int = 2
    noise: float = 0.3
    spread: float = 0.5  # of inputs off the subspace
    apart: float = 6.0

    def draw(self, seed: int) -> Regression:
        """One such set."""
        rng = np.random.default_rng([seed, self.d, self.k, self.m, 77])
        centre = self._centres(rng)
        along = np.stack([np.linalg.qr(rng.normal(size=(self.d, self.m)))[0] for _ in range(self.k)])
        variance = rng.uniform(2.0, 4.0, size=(self.k, self.m))
        slope, constant = 1.5 * rng.normal(size=(self.k, self.m)), 2.0 * rng.normal(size=self.k)
        labels = rng.integers(self.k, size=self.n + N_NEW)
        y = rng.normal(size=(labels.size, self.m)) * np.sqrt(variance[labels])
        x = centre[labels] + np.einsum("nij,nj->ni", along[labels], y) + self.spread * rng.normal(size=(len(y), self.d))
        f = constant[labels] + np.sum(slope[labels] * y, axis=1)
        # What is expected of y and of the label by one who knows the rest: y is seen through the spread of inputs.
        joint, mean = np.empty((N_NEW, self.k)), np.empty((N_NEW, self.k))
        for c in range(self.k):
            off = x[self.n :] - centre[c]
            seen, total = off @ along[c], variance[c] + self.spread**2
            rest = np.sum(off**2, axis=1) - np.sum(seen**2, axis=1)
            joint[:, c] = -0.5 * (np.sum(seen**2 / total, axis=1) + rest / self.spread**2 + np.sum(np.log(total)))
            mean[:, c] = constant[c] + seen * (variance[c] / total) @ slope[c]
        p = np.exp(joint - joint.max(axis=1, keepdims=True))
        oracle = np.sum(p * mean, axis=1) / p.sum(axis=1)
        return _parts(x, f, self.noise, self.n, rng, oracle)

    def _centres(self, rng: Generator) -> Matrix:
        while True:
            centre: Matrix = 3.0 * rng.normal(size=(self.k, self.d))
            distance = np.sqrt(np.sum((centre[:, None] - centre) ** 2, axis=2))
            if np.min(distance + 1e9 * np.eye(self.k)) > self.apart:
                return centre


class Pieces(NamedTuple):
    """Four straight pieces of one input, with jumps."""

    n: int = 600
    noise: float = 0.1

    def draw(self, seed: int) -> Regression:
        """One such set."""
        rng = np.random.default_rng([seed, 5])
        x = rng.uniform(-1.0, 1.0, size=self.n + N_NEW)
        start = np.array([-1.0, -0.4, 0.1, 0.6])
        piece = np.searchsorted(start, x) - 1
        f = np.array([0.0, 1.0, -1.0, 0.5])[piece] + np.array([1.0, -2.0, 0.5, 3.0])[piece] * (x - start[piece])
        return _parts(x[:, None], f, self.noise, self.n, rng, f[self.n :])


class Waves(NamedTuple):
    """A smooth function of two inputs that cover a square evenly."""

    n: int = 1000
    noise: float = 0.1

    def draw(self, seed: int) -> Regression:
        """One such set."""
        rng = np.random.default_rng([seed, 9])
        x = rng.uniform(-2.0, 2.0, size=(self.n + N_NEW, 2))
        f = 1.5 * np.sin(2.0 * x[:, 0]) * np.cos(2.0 * x[:, 1])
        return _parts(x, f, self.noise, self.n, rng, f[self.n :])


def _parts(x: Matrix, f: Vector, noise: float, n: int, rng: Generator, oracle: Vector) -> Regression:
    z = f + noise * rng.normal(size=f.size)
    return Regression(x[:n], z[:n], x[n:], f[n:], z[n:], oracle)


LOCAL, PIECES, WAVES = "local", "pieces", "waves"
WORLDS: dict[str, Local | Pieces | Waves] = {LOCAL: Local(), PIECES: Pieces(), WAVES: Waves()}
FIT, PASS = "subspace", "subspace, one pass"
BALLS, CONSTANT, ANY, GATES = "extended radial", "radial, one pass", "alternative experts", "experts"
BALLS_PASS, ANY_PASS = f"{BALLS}, one pass", f"{ANY}, one pass"
LINE, FOREST, ORACLE = "one linear fit", "random forest", "oracle"
COMPONENTS = {
    FIT: "subspace",
    PASS: "subspace",
    ANY: "alternative_experts",
    ANY_PASS: "alternative_experts",
    BALLS: "extended_radial",
    BALLS_PASS: "extended_radial",
    CONSTANT: "radial",
    GATES: "experts",
}
METHODS = (*COMPONENTS, LINE, FOREST, ORACLE)
METHODS_OF = {LOCAL: METHODS, PIECES: METHODS[:-1], WAVES: (FIT, PASS, BALLS, LINE, FOREST)}
PASSES = (PASS, ANY_PASS, BALLS_PASS, CONSTANT)
SLOW = (BALLS,)  # it needs many clusters
QUICK = (LOCAL, PIECES)
BEHIND = (BALLS, BALLS_PASS, CONSTANT, LINE, FOREST)
Values: TypeAlias = dict[tuple[str, str], Vector]  # world, method: an error of each sample
NEAR = {
    method: Claim(PAPER, ITEM, f"error of {method} over the oracle's, {LOCAL}", 1.0, "derived", 0.1)
    for method in (FIT, PASS)
}
AHEAD = Claim(
    PAPER, ITEM, f"beside: share of {len(BEHIND)} methods than which {PASS}, is better by 3 standard errors, {LOCAL}",
    1.0, "derived", 0.0, quick=False,
)  # fmt: skip
TIMES = {FIT: 4.0, PASS: 2.0}
JUMPS = {
    method: Claim(
        PAPER, ITEM, f"share of samples in which {LINE} errs {times:g} times as much as {method}, {PIECES}", 1.0,
        "derived", 0.05,
    )
    for method, times in TIMES.items()
}  # fmt: skip
SHARPER = Claim(
    PAPER, ITEM, f"beside: share of samples in which gates of experts are better than {FIT}, {PIECES}", 1.0,
    "derived", 0.1,
)  # fmt: skip
WRONG = Claim(
    PAPER, ITEM, f"beside: share of samples in which a forest is better than {FIT}, and than {PASS}, {WAVES}", 1.0,
    "derived", 0.05, quick=False,
)  # fmt: skip
COVERED = {
    world: Claim(PAPER, ITEM, f"beside: share of targets in 90 % intervals of {PASS}, {world}", 0.9, "derived", 0.05)
    for world in (LOCAL, PIECES)
}


def errors(sample: Regression, seed: int, methods: tuple[str, ...] = METHODS) -> tuple[dict[str, float], float]:
    """Of each method; and how many targets lie in the intervals of functions on subspaces, in one pass."""
    told: dict[str, Vector] = {ORACLE: sample.oracle}
    inside = math.nan
    for name in methods:
        if name in COMPONENTS:
            model = SubspaceRegressor(component=COMPONENTS[name], seed=seed)
            (model.partial_fit if name in PASSES else model.fit)(sample.x, sample.z)
            told[name] = model.predict(sample.new_x)
            if name == PASS:
                low, high = model.predict_interval(sample.new_x, 0.9).T
                inside = float(np.mean((sample.new_z > low) & (sample.new_z < high)))
        elif name != ORACLE:
            told[name] = _line(sample) if name == LINE else _forest(sample, seed)
    return {name: math.sqrt(float(np.mean((told[name] - sample.new_f) ** 2))) for name in methods}, inside


def _line(sample: Regression) -> Vector:
    full, new = (np.column_stack([np.ones(len(x)), x]) for x in (sample.x, sample.new_x))
    told: Vector = new @ np.linalg.lstsq(full, sample.z, rcond=None)[0]
    return told


def _forest(sample: Regression, seed: int) -> Vector:
    from sklearn.ensemble import RandomForestRegressor  # noqa: PLC0415  # a peer, not a part

    return np.asarray(RandomForestRegressor(random_state=seed).fit(sample.x, sample.z).predict(sample.new_x))


def run(effort: Effort) -> Findings:
    """All methods on the same samples."""
    n_samples = effort.replicas(full=20, quick=1)
    worlds = QUICK if effort.quick else tuple(WORLDS)
    skipped = SLOW if effort.quick else ()
    done = None if effort.watch is None else effort.watch(n_samples * len(worlds))
    values: Values = {}
    inside: dict[str, list[float]] = {world: [] for world in worlds}
    for world in worlds:
        methods = tuple(method for method in METHODS_OF[world] if method not in skipped)
        values |= {(world, method): np.empty(n_samples) for method in methods}
        for replica in range(n_samples):
            seed = 1000 * effort.seed + replica
            found, covered = errors(WORLDS[world].draw(seed), seed, methods)
            for method, error in found.items():
                values[world, method][replica] = error
            inside[world].append(covered)
            if done is not None:
                done()
    verdicts = _of_places(values) + _of_pieces(values)
    verdicts += [judge(claim, None, _mean(np.array(inside[world]))) for world, claim in COVERED.items()]
    if not effort.quick:
        verdicts += [_ahead(values), _wrong(values)]
    return Findings(tuple(verdicts), (picture(values),))


def _of_places(values: Values) -> list[Verdict]:
    return [judge(claim, None, _mean(values[LOCAL, way] / values[LOCAL, ORACLE])) for way, claim in NEAR.items()]


def _of_pieces(values: Values) -> list[Verdict]:
    found = []
    for way, claim in JUMPS.items():
        ratio = values[PIECES, LINE] / values[PIECES, way]
        found.append(judge(claim, None, share((ratio > TIMES[way]).tolist()), note=f"{_mean(ratio).mean:.2f} times"))
    return [*found, judge(SHARPER, None, share((values[PIECES, GATES] < values[PIECES, FIT]).tolist()))]


def _ahead(values: Values) -> Verdict:
    gaps = {method: _mean(values[LOCAL, method] - values[LOCAL, PASS]) for method in BEHIND}
    told = (f"{method} {gap.mean:.3f} ± {gap.standard_error:.2g}" for method, gap in gaps.items())
    ahead = float(np.mean([gap.mean > 3.0 * gap.standard_error for gap in gaps.values()]))
    return judge(AHEAD, None, Estimate(ahead, 0.0), note="errors beyond it: " + ", ".join(told))


def _wrong(values: Values) -> Verdict:
    forest = values[WAVES, FOREST]
    better = forest < np.minimum(values[WAVES, FIT], values[WAVES, PASS])
    ratios = [_mean(values[WAVES, way] / forest).mean for way in (FIT, PASS)]
    note = f"errors are {ratios[0]:.2f} times a forest's, and {ratios[1]:.2f} times in one pass"
    return judge(WRONG, None, share(better.tolist()), note=note)


def _mean(found: Vector) -> Estimate:
    return Estimate(float(np.mean(found)), float(np.std(found)) / math.sqrt(max(len(found) - 1, 1)))


def picture(values: Values) -> Picture:
    """The error of each method in each world."""
    colours = BLUE, BLUE, GREEN, GREEN, ORANGE, ORANGE, PURPLE, INK, GREY, GREY, INK
    series = []
    for place, (method, colour) in enumerate(zip(METHODS, colours, strict=True)):
        kept = [world for world in WORLDS if (world, method) in values]
        if kept:
            told = [_mean(values[world, method]) for world in kept]
            beside = [list(WORLDS).index(world) + 1 + 0.07 * (place - 5) for world in kept]
            stroke: Stroke = "squares" if method in (*PASSES, FOREST, ORACLE) else "discs"
            means, spread = [one.mean for one in told], [one.standard_error for one in told]
            series.append(points(method, beside, means, spread, colour, stroke))
    return Picture(
        "xu-functions",
        "Errors of local functions, and of others",
        "1: four places, along two of ten columns each;  2: four pieces with jumps;  3: smooth",
        "root mean square error",
        tuple(series),
        logarithmic="y",
        xlim=(0.5, 5.2),  # the legend is long
        legend="center right",
    )


EXPERIMENT = Experiment(
    ITEM,
    "functions on local subspaces",
    (*NEAR.values(), *JUMPS.values(), SHARPER, *COVERED.values(), AHEAD, WRONG),
    run,
)
