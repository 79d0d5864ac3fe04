"""De Oliveira and Alamino 2007, "Performance of the Bayesian online algorithm for the perceptron".

Its figure and its table follow from equations of motion, of which one is misprinted; learners lie on the right ones.
"""

from bayou.papers.claims import Paper
from bayou.papers.deoliveira2007 import errata, figure_1, table_1

PAPER = Paper(
    "deoliveira2007",
    'E. A. de Oliveira and R. C. Alamino, "Performance of the Bayesian online algorithm for the perceptron", '
    "IEEE Transactions on Neural Networks 18, 2007",
    (figure_1.EXPERIMENT, table_1.EXPERIMENT, errata.EXPERIMENT),
)
