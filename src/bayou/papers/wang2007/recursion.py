"""The recursion of pairs: what it comes to is what matrices come to, in whatever coordinates a view is told."""

from __future__ import annotations

import numpy as np

from bayou.contracts import Matrix
from bayou.mixtures.canonical_correlation import CanonicalModel, canonical_model, log_density
from bayou.mixtures.two_views import moments_of
from bayou.papers.claims import Claim, Effort, Experiment, Findings, judge
from bayou.papers.ensembles import Estimate
from bayou.papers.wang2007.world import COLUMNS, draw_views
from bayou.papers.wang2007.written_out import VAGUE, Solution, shared_scale

PAPER, ITEM = "wang2007", "Recursion"
N = 100
ROUNDS = 2_000
SAME = Claim(
    PAPER, ITEM, f"largest difference of a correlation by pairs and by matrices of 18 columns, {N} rows", 0.0,
    "derived", 1e-6,
)  # fmt: skip
EQUIVARIANT = Claim(
    PAPER, ITEM, f"largest change of a correlation if each view goes through a matrix, {N} rows", 0.0, "derived", 1e-9
)
DENSITY = Claim(
    PAPER, ITEM, f"largest change of a log density, but for the volume of the matrices, {N} rows", 0.0, "derived", 1e-7
)


def by_matrices(rows: Matrix, model: CanonicalModel) -> Solution:
    """The same model in the coordinates of the columns, from where the pairs start."""
    n_x, size = COLUMNS[0], min(COLUMNS)
    moments = moments_of(rows)
    start = 0.5 / np.sqrt(0.5 * (1.0 + model.pairs.sample_correlation))
    starts = start[:, None] * model.x.weights[:, :size].T, start[:, None] * model.y.weights[:, :size].T
    parts = slice(None, n_x), slice(n_x, None)
    priors = tuple(VAGUE / moments.weight * moments.scatter[part, part] for part in parts)
    return shared_scale(moments.scatter, moments.weight, n_x, starts, (priors[0], priors[1]), ROUNDS)


def run(effort: Effort) -> Findings:
    """On a few samples, the largest of all differences."""
    n_x, n_y = COLUMNS
    apart, turned, moved = [], [], []
    for replica in range(effort.replicas(full=10, quick=3)):
        rows, unseen = draw_views(N, 1000 * effort.seed + replica, n_unseen=50)
        model = canonical_model(moments_of(rows), n_x)
        matrices = by_matrices(rows, model).correlations()
        apart.append(float(np.max(np.abs(matrices - model.pairs.correlation))))
        rng = np.random.default_rng([effort.seed, replica])
        maps = [rng.normal(size=(d, d)) * np.logspace(-3.0, 3.0, d) for d in (n_x, n_y)]
        shift = rng.normal(size=n_x + n_y)
        told = [np.hstack([some[:, :n_x] @ maps[0], some[:, n_x:] @ maps[1]]) + shift for some in (rows, unseen)]
        other = canonical_model(moments_of(told[0]), n_x)
        turned.append(float(np.max(np.abs(other.pairs.correlation - model.pairs.correlation))))
        volume = sum(float(np.linalg.slogdet(one)[1]) for one in maps)
        before = log_density(model, unseen[:, :n_x], unseen[:, n_x:])
        after = log_density(other, told[1][:, :n_x], told[1][:, n_x:])
        moved.append(float(np.max(np.abs(after + volume - before))))
    found = ((SAME, apart), (EQUIVARIANT, turned), (DENSITY, moved))
    return Findings(tuple(judge(claim, None, Estimate(max(values), 0.0)) for claim, values in found))


EXPERIMENT = Experiment(ITEM, "pairs, matrices and maps of the columns", (SAME, EQUIVARIANT, DENSITY), run)
