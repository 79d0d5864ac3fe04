"""How many clusters each method counts in a sample, of at most ten: bayou, its peers, and harmony to the letter."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from bayou.contracts import Matrix
from bayou.estimators.harmony_mixture import HarmonyMixture
from bayou.estimators.rival_penalised_clustering import RivalPenalisedClustering
from bayou.papers.xu.literal import broad, fixed_point, online, without_moves
from bayou.papers.xu.world import Sample, standardised

MOST = 10
WORTH = 0.02  # a smaller weight is no cluster
GAMMA = 0.3
OURS, STREAM, SORTED, MATCHING = "bayou", "bayou, a stream", "bayou, a sorted stream", "bayou, matching"
BIC, ICL, DIRICHLET, RIVALS = "EM + BIC", "EM + ICL", "Dirichlet process", "RPCL"
BATCH, ONLINE, FLOW = "(9) as EM", "(9) row by row", "(9) clipped, no moves"
PEERS, LETTER = (BIC, ICL, DIRICHLET, RIVALS), (BATCH, ONLINE, FLOW)
METHODS = (OURS, STREAM, SORTED, MATCHING, *PEERS, *LETTER)


def counts(sample: Sample, seed: int, methods: tuple[str, ...] = METHODS) -> dict[str, int]:
    """By each of the methods."""
    ways: dict[str, Callable[[Sample, int], int]] = {
        OURS: lambda sample, seed: HarmonyMixture(MOST, seed=seed).fit(sample.rows).n_clusters_,
        MATCHING: lambda sample, seed: HarmonyMixture(MOST, 1.0, seed=seed).fit(sample.rows).n_clusters_,
        STREAM: lambda sample, seed: HarmonyMixture(MOST, seed=seed).partial_fit(sample.rows).n_clusters_,
        SORTED: _sorted_stream,
        DIRICHLET: _dirichlet,
        RIVALS: lambda sample, seed: RivalPenalisedClustering(MOST, GAMMA, seed=seed).fit(sample.rows).n_clusters_,
    }
    found = {name: ways[name](sample, seed) for name in methods if name in ways}
    if BIC in methods or ICL in methods:
        found |= zip((BIC, ICL), criteria(standardised(sample.rows), seed), strict=True)
    if any(name in methods for name in LETTER):
        rows, rng = standardised(sample.rows), np.random.default_rng(seed)
        start = broad(rows, MOST, rng)
        found |= {BATCH: fixed_point(rows, start).k, ONLINE: online(rows, start, rng).k}
        found |= {FLOW: without_moves(rows, start).k}
    return found


def _sorted_stream(sample: Sample, seed: int) -> int:
    """One cluster after the other."""
    order = np.argsort(sample.labels, kind="stable")
    return HarmonyMixture(MOST, seed=seed).partial_fit(sample.rows[order]).n_clusters_


def criteria(rows: Matrix, seed: int) -> tuple[int, int]:
    """The numbers of clusters with the best BIC, and with the best ICL: BIC with the entropy of the labels added."""
    from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415  # a peer, not a part
    from sklearn.mixture import GaussianMixture  # noqa: PLC0415  # a peer, not a part

    bic, icl = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for k in range(1, MOST + 1):
            model = GaussianMixture(k, random_state=seed).fit(rows)
            p = model.predict_proba(rows)
            bic.append(float(model.bic(rows)))
            icl.append(bic[-1] - 2.0 * float(np.sum(p * np.log(np.maximum(p, 1e-300)))))
    return int(np.argmin(bic)) + 1, int(np.argmin(icl)) + 1


def _dirichlet(sample: Sample, seed: int) -> int:
    """Components of scikit-learn's variational Dirichlet process that have some weight."""
    from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415  # a peer, not a part
    from sklearn.mixture import BayesianGaussianMixture  # noqa: PLC0415  # a peer, not a part

    model = BayesianGaussianMixture(n_components=MOST, max_iter=500, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(standardised(sample.rows))
    return int(np.sum(model.weights_ > WORTH))
