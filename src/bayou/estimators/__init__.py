"""scikit-learn estimators that learn from streams; each also learns dicts, one at a time, as River's do.

OnlineClassifier    two classes or more, which may appear at any time
OnlineRegressor     numbers, with intervals; the noise is learnt
OnlineCounter       counts
"""

from bayou.estimators.classifier import OnlineClassifier
from bayou.estimators.counter import OnlineCounter
from bayou.estimators.regressor import OnlineRegressor

__all__ = ["OnlineClassifier", "OnlineCounter", "OnlineRegressor"]
