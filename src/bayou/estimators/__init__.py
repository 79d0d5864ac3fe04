"""scikit-learn estimators that learn from streams; each also learns dicts, one at a time, as River's do.

OnlineClassifier        two classes or more, which may appear at any time
OnlineRegressor         numbers, with intervals; the noise is learnt
OnlineCounter           counts
NormalisedPerceptron    two classes that a hyperplane divides, by a perceptron
ShiftedPerceptron       two classes with flipped labels, by a perceptron
OnlineNetwork           numbers or classes, by a small network; NetworkRegressor, NetworkClassifier: one or the other
IncrementalRiskRegressor, IncrementalRiskClassifier
                        numbers or classes, by functions of few inputs that change as little as possible
ConformalRegressor, ConformalClassifier
                        any of these with intervals or sets that cover as promised, whatever the stream does
HarmonyMixture          clusters, and how many there are
BayesianCCA             what two views have in common: canonical correlations, as many as there is evidence for
LocalFactorAnalysis     clusters along subspaces, and the dimension of each
SubspaceRegressor       numbers, by local linear functions on subspaces, and how many of both
RivalPenalisedClustering
                        clusters by their centres: units compete, and those that are too many are driven away
BinaryFactorAnalysis    rows as sums of parts that are there or not, and how many there are
Budget                  what an estimator may spend, in time and memory
ThresholdedFunction     two classes by the sign of a function that the user wrote in JAX
TableModel              one column of tables from the others, whatever they hold
"""

from typing import TYPE_CHECKING

from bayou.lazy_names import lazy_names

if TYPE_CHECKING:
    from bayou.estimators.bayesian_cca import BayesianCCA
    from bayou.estimators.binary_factor_analysis import BinaryFactorAnalysis
    from bayou.estimators.classifier import OnlineClassifier
    from bayou.estimators.conformal_classifier import ConformalClassifier
    from bayou.estimators.conformal_regressor import ConformalRegressor
    from bayou.estimators.counter import OnlineCounter
    from bayou.estimators.harmony_mixture import HarmonyMixture
    from bayou.estimators.incremental_risk import IncrementalRiskClassifier, IncrementalRiskRegressor
    from bayou.estimators.local_factor_analysis import LocalFactorAnalysis
    from bayou.estimators.networks import NetworkClassifier, NetworkRegressor
    from bayou.estimators.normalised_perceptron import NormalisedPerceptron
    from bayou.estimators.online_network import OnlineNetwork
    from bayou.estimators.regressor import OnlineRegressor
    from bayou.estimators.rival_penalised_clustering import RivalPenalisedClustering
    from bayou.estimators.shifted_perceptron import ShiftedPerceptron
    from bayou.estimators.standard_members import Budget
    from bayou.estimators.subspace_regressor import SubspaceRegressor
    from bayou.estimators.table_model import TableModel
    from bayou.estimators.thresholded_function import ThresholdedFunction

__all__ = [
    "BayesianCCA",
    "BinaryFactorAnalysis",
    "Budget",
    "ConformalClassifier",
    "ConformalRegressor",
    "HarmonyMixture",
    "IncrementalRiskClassifier",
    "IncrementalRiskRegressor",
    "LocalFactorAnalysis",
    "NetworkClassifier",
    "NetworkRegressor",
    "NormalisedPerceptron",
    "OnlineClassifier",
    "OnlineCounter",
    "OnlineNetwork",
    "OnlineRegressor",
    "RivalPenalisedClustering",
    "ShiftedPerceptron",
    "SubspaceRegressor",
    "TableModel",
    "ThresholdedFunction",
]

# Each brings libraries of its own, which take a while to load: who learns classes need not wait for those of clusters.
_NAMES = {
    "bayesian_cca": "BayesianCCA",
    "binary_factor_analysis": "BinaryFactorAnalysis",
    "classifier": "OnlineClassifier",
    "conformal_classifier": "ConformalClassifier",
    "conformal_regressor": "ConformalRegressor",
    "counter": "OnlineCounter",
    "harmony_mixture": "HarmonyMixture",
    "incremental_risk": "IncrementalRiskClassifier IncrementalRiskRegressor",
    "local_factor_analysis": "LocalFactorAnalysis",
    "networks": "NetworkClassifier NetworkRegressor",
    "normalised_perceptron": "NormalisedPerceptron",
    "online_network": "OnlineNetwork",
    "regressor": "OnlineRegressor",
    "rival_penalised_clustering": "RivalPenalisedClustering",
    "shifted_perceptron": "ShiftedPerceptron",
    "standard_members": "Budget",
    "subspace_regressor": "SubspaceRegressor",
    "table_model": "TableModel",
    "thresholded_function": "ThresholdedFunction",
}
_HOMES, _resolve, __dir__ = lazy_names(__name__, _NAMES)
if not TYPE_CHECKING:  # a type checker knows the names above, and may say when one does not exist
    __getattr__ = _resolve
