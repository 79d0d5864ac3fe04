"""What theory predicts of a run before it is made: bounds, learning curves, and how many labels they ask for.

    curves              error against examples per weight, for each kind of perceptron
    dynamics            the same for any likelihood of signs and any rule, from the kernels that learn
    blocks              the same where inputs are not isotropic
    asymptotics         Fisher's information, bounds, and what the smaller families lose
    batch               all examples at once: exact in one dimension, expectation propagation, maximum likelihood
    dichotomies         the perceptron rule under schedules of its rate, and how each of them ends
    off_centre          the same where labels are flipped and inputs are off centre; off_centre_ends: where it ends
    stationary          one weight behind a threshold: where it comes to rest, and how fast
    smooth_dichotomies  many weights behind a threshold: the rate that they need
    planner             the curves in labels, for those who have to pay for them
    averages            expectations over teacher, student and label
    overlaps            the functions that the curves are made of

Everything returned is data; nothing here is used by what learns.
"""

from bayou.theory.asymptotics import (
    Efficiency,
    cramer_rao,
    efficiency,
    efficiency_exponents,
    entropic_error,
    fisher_information,
    latent_information,
    observed_information,
    plug_in_entropic_error,
    sandwich,
)
from bayou.theory.averages import Teacher
from bayou.theory.batch import (
    ExactPosterior,
    SiteApproximation,
    exact_posterior,
    expectation_propagation,
    maximum_likelihood,
)
from bayou.theory.blocks import Inputs
from bayou.theory.curves import LearningCurve, label_error, perceptron_curve
from bayou.theory.dichotomies import (
    AsymptoticLaw,
    DichotomyCurve,
    asymptotic_law,
    dichotomy_curve,
    residual_error,
)
from bayou.theory.dynamics import OrderParameters, order_parameters
from bayou.theory.off_centre import OffCentre, OffCentreCurve, hebb_overlaps, off_centre_curve, off_centre_error
from bayou.theory.off_centre_ends import (
    FixedPoint,
    best_eta0,
    critical_rate,
    linear_slopes,
    off_centre_residual,
    plain_fixed_points,
    shifted_law,
    small_noise_error,
    small_rate_error,
)
from bayou.theory.planner import (
    ASSUMPTIONS,
    PredictedCurve,
    assumptions,
    labels_needed,
    noise_of_flips,
    predicted_curve,
)
from bayou.theory.smooth_dichotomies import (
    Boundary,
    asymptotic_covariance,
    asymptotic_error,
    boundary_by_kernel,
    boundary_by_lines,
)
from bayou.theory.stationary import (
    best_kappa,
    decaying_density,
    decaying_error,
    stationary_density,
    stationary_error,
    tail_rate,
)

__all__ = [
    "ASSUMPTIONS",
    "AsymptoticLaw",
    "Boundary",
    "DichotomyCurve",
    "Efficiency",
    "ExactPosterior",
    "FixedPoint",
    "Inputs",
    "LearningCurve",
    "OffCentre",
    "OffCentreCurve",
    "OrderParameters",
    "PredictedCurve",
    "SiteApproximation",
    "Teacher",
    "assumptions",
    "asymptotic_covariance",
    "asymptotic_error",
    "asymptotic_law",
    "best_eta0",
    "best_kappa",
    "boundary_by_kernel",
    "boundary_by_lines",
    "cramer_rao",
    "critical_rate",
    "decaying_density",
    "decaying_error",
    "dichotomy_curve",
    "efficiency",
    "efficiency_exponents",
    "entropic_error",
    "exact_posterior",
    "expectation_propagation",
    "fisher_information",
    "hebb_overlaps",
    "label_error",
    "labels_needed",
    "latent_information",
    "linear_slopes",
    "maximum_likelihood",
    "noise_of_flips",
    "observed_information",
    "off_centre_curve",
    "off_centre_error",
    "off_centre_residual",
    "order_parameters",
    "perceptron_curve",
    "plain_fixed_points",
    "plug_in_entropic_error",
    "predicted_curve",
    "residual_error",
    "sandwich",
    "shifted_law",
    "small_noise_error",
    "small_rate_error",
    "stationary_density",
    "stationary_error",
    "tail_rate",
]
