"""Families of beliefs about the weights, one file each.

FullGaussian             every correlation between weights                    O(d^2) per example
NormalInverseGamma       the same, and the noise of a regression is learnt    O(d^2)
LowRankGaussian          a diagonal and a few correlated directions           O(d * rank)
DiagonalGaussian         independent weights                                  O(d)
SparseDiagonalGaussian   the same, for rows of which most entries are zero    O(entries)
SphericalGaussian        independent weights of one common variance           O(d)
FunctionNorm             a function that changes as little as it can          O(d)
BinaryWeights            independent weights that are -1 or +1                O(d)

Points, which move without knowing how sure they are: what the others are compared with.

OnlineGradient           along the gradient, by a schedule                    O(d)
NaturalGradient          in the metric of the Fisher information              O(d^2)
NormalisedGradient       meets each target, by the least change of weights    O(d)
RecursiveLeastSquares    least squares over the recent past                   O(d^3)
Rosenblatt               the perceptron                                       O(d)
ScheduledPoint           the perceptron of unit length, by a schedule         O(d)
ShiftedPoint             the same, for noisy labels and inputs off centre     O(d)
VariationalPerceptron    the most overlap with a teacher per example          O(d)
"""

from bayou.posteriors.binary_weights import BinaryWeights
from bayou.posteriors.diagonal_gaussian import DiagonalGaussian
from bayou.posteriors.full_gaussian import FullGaussian
from bayou.posteriors.function_norm import FunctionNorm
from bayou.posteriors.low_rank_gaussian import LowRankGaussian
from bayou.posteriors.natural_gradient import NaturalGradient
from bayou.posteriors.normal_inverse_gamma import NormalInverseGamma
from bayou.posteriors.normalised_gradient import NormalisedGradient
from bayou.posteriors.online_gradient import OnlineGradient
from bayou.posteriors.recursive_least_squares import RecursiveLeastSquares
from bayou.posteriors.rosenblatt import Rosenblatt
from bayou.posteriors.scheduled_point import ScheduledPoint
from bayou.posteriors.shifted_point import ShiftedPoint
from bayou.posteriors.sparse_diagonal_gaussian import SparseDiagonalGaussian
from bayou.posteriors.spherical_gaussian import SphericalGaussian
from bayou.posteriors.variational_perceptron import VariationalPerceptron

__all__ = [
    "BinaryWeights",
    "DiagonalGaussian",
    "FullGaussian",
    "FunctionNorm",
    "LowRankGaussian",
    "NaturalGradient",
    "NormalInverseGamma",
    "NormalisedGradient",
    "OnlineGradient",
    "RecursiveLeastSquares",
    "Rosenblatt",
    "ScheduledPoint",
    "ShiftedPoint",
    "SparseDiagonalGaussian",
    "SphericalGaussian",
    "VariationalPerceptron",
]
