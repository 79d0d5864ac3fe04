"""scikit-learn estimators that learn from streams; each also learns dicts, one at a time, as River's do.

OnlineClassifier        two classes or more, which may appear at any time
OnlineRegressor         numbers, with intervals; the noise is learnt
OnlineCounter           counts
NormalisedPerceptron    two classes that a hyperplane divides, by a perceptron
ShiftedPerceptron       two classes with flipped labels, by a perceptron
"""

from bayou.estimators.classifier import OnlineClassifier
from bayou.estimators.counter import OnlineCounter
from bayou.estimators.normalised_perceptron import NormalisedPerceptron
from bayou.estimators.regressor import OnlineRegressor
from bayou.estimators.shifted_perceptron import ShiftedPerceptron

__all__ = ["NormalisedPerceptron", "OnlineClassifier", "OnlineCounter", "OnlineRegressor", "ShiftedPerceptron"]
