"""From raw values to features, one file per encoder.

Standardizer    numbers to mean 0 and variance 1, by running moments
"""

from bayou.encoders.standardizer import Standardizer

__all__ = ["Standardizer"]
