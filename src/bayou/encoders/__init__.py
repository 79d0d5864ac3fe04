"""From raw values to features, one file per encoder.

Standardizer    numbers to mean 0 and variance 1, by running moments

Functions over a box, for latents that are not linear in their inputs (`bayou.contracts.Basis`):

Polynomials     of one input, up to an order
"""

from bayou.encoders.polynomials import Polynomials
from bayou.encoders.standardizer import Standardizer

__all__ = ["Polynomials", "Standardizer"]
