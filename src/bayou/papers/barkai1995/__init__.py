"""Barkai, Seung and Sompolinsky 1995, "On-line learning of dichotomies".

Schedules of the perceptron's rate, a shift that takes the noise of labels out of it, one weight behind a threshold, and
smooth functions behind one; beside the perceptrons the Bayesian learners of the same examples.
"""

from bayou.papers.barkai1995 import figure_1, figure_2, section_2, section_3, section_4, stationary, zero_mean
from bayou.papers.claims import Paper

PAPER = Paper(
    "barkai1995",
    'N. Barkai, H. S. Seung and H. Sompolinsky, "On-line learning of dichotomies", '
    "Advances in Neural Information Processing Systems 7, 1995",
    (
        figure_1.EXPERIMENT,
        section_2.EXPERIMENT,
        figure_2.EXPERIMENT,
        section_3.EXPERIMENT,
        zero_mean.EXPERIMENT,
        stationary.EXPERIMENT,
        section_4.EXPERIMENT,
    ),
)
