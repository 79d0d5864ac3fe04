"""Families of beliefs about the weights, one file each.

FullGaussian          every correlation between weights                    O(d^2) per example
NormalInverseGamma    the same, and the noise of a regression is learnt    O(d^2)
LowRankGaussian       a diagonal and a few correlated directions           O(d * rank)
DiagonalGaussian      independent weights                                  O(d)
SphericalGaussian     independent weights of one common variance           O(d)
"""

from bayou.posteriors.diagonal_gaussian import DiagonalGaussian
from bayou.posteriors.full_gaussian import FullGaussian
from bayou.posteriors.low_rank_gaussian import LowRankGaussian
from bayou.posteriors.normal_inverse_gamma import NormalInverseGamma
from bayou.posteriors.spherical_gaussian import SphericalGaussian

__all__ = ["DiagonalGaussian", "FullGaussian", "LowRankGaussian", "NormalInverseGamma", "SphericalGaussian"]
