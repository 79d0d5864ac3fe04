"""How one target becomes a site, one file per rule.

MomentMatching    the belief keeps the mean and variance that the exact posterior has      the default
Variational       slope and curvature of E log p, averaged over the belief
Linearized        slope and curvature of log p at the mean: the cheapest
Iterated          the same at the mode of the posterior
"""

from bayou.rules.iterated import Iterated
from bayou.rules.linearized import Linearized
from bayou.rules.moment_matching import MomentMatching
from bayou.rules.variational import Variational

__all__ = ["Iterated", "Linearized", "MomentMatching", "Variational"]
