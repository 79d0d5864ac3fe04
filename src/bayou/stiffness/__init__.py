"""How reluctantly a function changes as examples are learnt, one file per schedule.

GeometricStiffness    by a factor with every example
LearntStiffness       by what the examples tell, nothing to choose
LinearStiffness       in proportion to the evidence seen
"""

from bayou.stiffness.geometric_stiffness import GeometricStiffness
from bayou.stiffness.learnt_stiffness import LearntStiffness
from bayou.stiffness.linear_stiffness import LinearStiffness

__all__ = ["GeometricStiffness", "LearntStiffness", "LinearStiffness"]
