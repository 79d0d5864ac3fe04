"""Buschermoehle, Schoenke, Rosemann and Brockmann 2013, "The incremental risk functional".

A polynomial is learnt from examples, one at a time, so that all of the function changes as little as possible (IRMA):
against gradients and least squares on its coefficients, against batch, and against what bayou makes of it.
"""

from bayou.papers.buschermoehle2013 import figure_1, figure_2, table_1
from bayou.papers.claims import Paper

PAPER = Paper(
    "buschermoehle2013",
    'A. Buschermoehle, J. Schoenke, N. Rosemann and W. Brockmann, "The Incremental Risk Functional: Basics of a Novel '
    'Incremental Learning Approach", IEEE International Conference on Systems, Man, and Cybernetics, 2013',
    (figure_1.EXPERIMENT, figure_2.EXPERIMENT, table_1.EXPERIMENT),
)
