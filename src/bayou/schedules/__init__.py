"""How large the steps of a perceptron are, one file each; alpha is the number of examples per weight.

ConstantRate    the same for ever: follows changes, and stops at an error in proportion to it
PowerLawRate    scale (alpha + offset)^-power, up to a largest
OptimalRate     2 sqrt(2 pi) / alpha, the best for examples that a hyperplane divides
AdaptiveRate    by the mistakes so far: as good, without a clock, and it comes back after a change
"""

from bayou.schedules.adaptive_rate import AdaptiveRate
from bayou.schedules.constant_rate import ConstantRate
from bayou.schedules.optimal_rate import OptimalRate
from bayou.schedules.power_law_rate import PowerLawRate

__all__ = ["AdaptiveRate", "ConstantRate", "OptimalRate", "PowerLawRate"]
