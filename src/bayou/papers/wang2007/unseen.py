"""Rows that were not seen: their log density by bayou, beside maximum likelihood with all correlations, or with some.

The paper claims that it avoids overfitting. bayou's density is that of a new row under the posterior.
"""

from __future__ import annotations

import math

import numpy as np

from bayou.contracts import Matrix, Vector
from bayou.mixtures.canonical_correlation import canonical_model, log_density
from bayou.mixtures.two_views import moments_of
from bayou.papers.claims import Claim, Effort, Experiment, Findings, judge
from bayou.papers.ensembles import Estimate
from bayou.papers.wang2007.world import COLUMNS, CORRELATIONS, SIZES, draw_views, likeliest, share

PAPER, ITEM = "wang2007", "Unseen rows"
N_UNSEEN = 500
SMALL = SIZES[:3]
OFTEN = {
    n: Claim(
        PAPER, ITEM, f"share of samples of {n} rows after which unseen rows are more probable than by ML", 1.0,
        "derived", 0.05,
    )
    for n in SMALL
}  # fmt: skip
MORE = {
    name: Claim(
        PAPER, ITEM, f"share of the sizes 50, 100, 200 at which unseen rows are more probable than by ML, {name}", 1.0,
        "stated" if name == "all" else "derived", 0.0,
    )
    for name in ("all", "three as is true", "as many as by BIC")
}  # fmt: skip


def likelihood(rows: Matrix, unseen: Matrix, order: int) -> Vector:
    """Log densities by the Gaussian of maximum likelihood with so many correlations."""
    n_x = COLUMNS[0]
    mean = rows.mean(axis=0)
    covariance = np.cov(rows.T, bias=True)
    roots = [np.linalg.cholesky(covariance[part, part]) for part in (slice(None, n_x), slice(n_x, None))]
    white = np.linalg.solve(roots[1], np.linalg.solve(roots[0], covariance[:n_x, n_x:]).T).T
    left, r, right = np.linalg.svd(white, full_matrices=False)
    r[order:] = 0.0
    covariance[:n_x, n_x:] = roots[0] @ (left * r) @ right @ roots[1].T
    covariance[n_x:, :n_x] = covariance[:n_x, n_x:].T
    errors = np.linalg.solve(np.linalg.cholesky(covariance), (unseen - mean).T)
    log_volume = float(np.linalg.slogdet(2.0 * math.pi * covariance)[1])
    return np.asarray(-0.5 * (np.sum(errors**2, axis=0) + log_volume))


def run(effort: Effort) -> Findings:
    """Bayou and maximum likelihood on the same samples."""
    n_samples = effort.replicas(full=200, quick=30)
    done = None if effort.watch is None else effort.watch(n_samples * len(SMALL))
    gains: dict[tuple[str, int], list[float]] = {}
    for n in SMALL:
        for replica in range(n_samples):
            rows, unseen = draw_views(n, 1000 * effort.seed + replica, n_unseen=N_UNSEEN)
            model = canonical_model(moments_of(rows), COLUMNS[0])
            ours = float(np.mean(log_density(model, unseen[:, : COLUMNS[0]], unseen[:, COLUMNS[0] :])))
            by_bic = likeliest(model.pairs.sample_correlation, n, 0.5 * math.log(n))
            for name, order in zip(MORE, (min(COLUMNS), len(CORRELATIONS), by_bic), strict=True):
                gains.setdefault((name, n), []).append(ours - float(np.mean(likelihood(rows, unseen, order))))
            if done is not None:
                done()
    verdicts = [judge(claim, None, share([gain > 0.0 for gain in gains["all", n]])) for n, claim in OFTEN.items()]
    for name, claim in MORE.items():
        means = [float(np.mean(gains[name, n])) for n in SMALL]
        note = "gains per row: " + ", ".join(f"{mean:.3f}" for mean in means)
        verdicts.append(judge(claim, None, Estimate(float(np.mean(np.array(means) > 0.0)), 0.0), note=note))
    return Findings(tuple(verdicts))


EXPERIMENT = Experiment(ITEM, "log density of unseen rows", (*OFTEN.values(), *MORE.values()), run)
