"""Xu, "Bayesian Ying Yang learning", the appendix: harmony learning, and how many clusters and factors follow from it.

What is exact is checked to the last digits. What it is claimed to do, find the number of clusters and of factors while
it learns, is tried on data of which all is known, with the algorithms as they are printed and with bayou's. What is not
in the paper begins with "beside".
"""

from bayou.papers.claims import Paper
from bayou.papers.xu import factors, functions, identities, kappa, resolution, selection, smoothing

PAPER = Paper(
    "xu",
    'L. Xu, "Bayesian Ying Yang learning", Scholarpedia 2 (3), 1809, 2007, with its appendix',
    (
        identities.EXPERIMENT,
        resolution.EXPERIMENT,
        selection.EXPERIMENT,
        factors.EXPERIMENT,
        smoothing.EXPERIMENT,
        functions.EXPERIMENT,
        kappa.EXPERIMENT,
    ),
)
