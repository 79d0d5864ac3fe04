"""p(y | f): one file each, its equation first."""

from bayou.likelihoods.boltzmann_step import BoltzmannStep
from bayou.likelihoods.flip_probit import FlipProbit
from bayou.likelihoods.gaussian import Gaussian
from bayou.likelihoods.logistic import Logistic
from bayou.likelihoods.negative_binomial import NegativeBinomial
from bayou.likelihoods.ordinal import Ordinal
from bayou.likelihoods.poisson import Poisson
from bayou.likelihoods.probit import Probit
from bayou.likelihoods.softmax import Softmax
from bayou.likelihoods.step import Step
from bayou.likelihoods.student_t import StudentT

__all__ = [
    "BoltzmannStep",
    "FlipProbit",
    "Gaussian",
    "Logistic",
    "NegativeBinomial",
    "Ordinal",
    "Poisson",
    "Probit",
    "Softmax",
    "Step",
    "StudentT",
]
