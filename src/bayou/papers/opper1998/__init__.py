"""Opper 1998, "A Bayesian approach to on-line learning": its figures, its asymptotics, and what it got wrong.

The paper draws curves and prints next to no numbers, so most of its claims are the curves themselves: production
learners have to lie on the theory that the paper gives for them.
"""

from bayou.papers.claims import Paper
from bayou.papers.opper1998 import figure_1, figure_2, section_4, section_6, section_8

PAPER = Paper(
    "opper1998",
    'M. Opper, "A Bayesian approach to on-line learning", in On-line Learning in Neural Networks, ed. D. Saad, 1998',
    (figure_1.EXPERIMENT, figure_2.EXPERIMENT, section_4.EXPERIMENT, section_6.EXPERIMENT, section_8.EXPERIMENT),
)
