"""Wang 2007, "Variational Bayesian approach to canonical correlation analysis".

How many canonical correlations two views have, and how well rows that were not seen are expected. The claims are those
of its abstract, put in numbers in a world of our own: three correlations of 0.9, 0.8 and 0.6 between views of 10 and 8
columns. Wang's model, with loadings that are small or large in the units of the columns, is written out.
"""

from bayou.papers.claims import Paper
from bayou.papers.wang2007 import order, recursion, unseen

PAPER = Paper(
    "wang2007",
    'C. Wang, "Variational Bayesian Approach to Canonical Correlation Analysis", IEEE Transactions on Neural Networks '
    "18 (3), 905-910, 2007",
    (order.EXPERIMENT, unseen.EXPERIMENT, recursion.EXPERIMENT),
)
