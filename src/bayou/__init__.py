"""Bayesian online updates: learn from a stream in one pass, without a learning rate, and say how sure you are.

Names are resolved when they are first used, so that ``import bayou`` costs next to nothing.
"""

from typing import TYPE_CHECKING

from bayou.lazy_names import lazy_names

if TYPE_CHECKING:
    from bayou.bank import Bank
    from bayou.contracts import SparseRows
    from bayou.distributed import merge, subtract
    from bayou.encoders import (
        Additive,
        CubicSplines,
        Fourier,
        Hashing,
        PiecewiseLinear,
        Polynomials,
        RadialFunctions,
        RandomFourier,
        SparseEncoder,
        Standardizer,
        TableEncoder,
        TensorProduct,
        UserFunctions,
    )
    from bayou.estimators import (
        BayesianCCA,
        BinaryFactorAnalysis,
        Budget,
        ConformalClassifier,
        ConformalRegressor,
        HarmonyMixture,
        IncrementalRiskClassifier,
        IncrementalRiskRegressor,
        LocalFactorAnalysis,
        NetworkClassifier,
        NetworkRegressor,
        NormalisedPerceptron,
        OnlineClassifier,
        OnlineCounter,
        OnlineNetwork,
        OnlineRegressor,
        RivalPenalisedClustering,
        ShiftedPerceptron,
        SubspaceRegressor,
        TableModel,
        ThresholdedFunction,
    )
    from bayou.function_learner import FunctionLearner
    from bayou.functions import JaxFunction, Network
    from bayou.learner import Learner
    from bayou.likelihoods import (
        BoltzmannStep,
        FlipProbit,
        Gaussian,
        Logistic,
        NegativeBinomial,
        Ordinal,
        Poisson,
        Probit,
        Softmax,
        Step,
        StudentT,
    )
    from bayou.members import Member, Waves
    from bayou.mixed_prediction import MixedPrediction
    from bayou.modelfile import load, save
    from bayou.posteriors import (
        BinaryWeights,
        DiagonalGaussian,
        FullGaussian,
        FunctionNorm,
        LowRankGaussian,
        NaturalGradient,
        NormalInverseGamma,
        NormalisedGradient,
        OnlineGradient,
        RecursiveLeastSquares,
        Rosenblatt,
        ScheduledPoint,
        ShiftedPoint,
        SparseDiagonalGaussian,
        SphericalGaussian,
        VariationalPerceptron,
    )
    from bayou.prediction import Prediction
    from bayou.risk_learner import IncrementalRiskLearner
    from bayou.rules import Iterated, Linearized, MomentMatching, Variational
    from bayou.schedules import AdaptiveRate, ConstantRate, OptimalRate, PowerLawRate
    from bayou.sparse_bank import SparseBank
    from bayou.sparse_class_bank import SparseClassBank
    from bayou.sparse_learner import SparseLearner
    from bayou.stiffness import GeometricStiffness, LearntStiffness, LinearStiffness
    from bayou.streams import (
        Skipped,
        column_types,
        open_source,
        read_arrow,
        read_csv,
        read_ipc,
        read_json_lines,
        read_libsvm,
        read_parquet,
        read_vw,
    )

__version__ = "0.1.0"

__all__ = [
    "AdaptiveRate",
    "Additive",
    "Bank",
    "BayesianCCA",
    "BinaryFactorAnalysis",
    "BinaryWeights",
    "BoltzmannStep",
    "Budget",
    "Calibration",
    "ConformalClassifier",
    "ConformalRegressor",
    "ConstantRate",
    "CubicSplines",
    "DiagonalGaussian",
    "FlipProbit",
    "Fourier",
    "FullGaussian",
    "FunctionLearner",
    "FunctionNorm",
    "Gaussian",
    "GeometricStiffness",
    "HarmonyMixture",
    "Hashing",
    "IncrementalRiskClassifier",
    "IncrementalRiskLearner",
    "IncrementalRiskRegressor",
    "Iterated",
    "JaxFunction",
    "Learner",
    "LearntStiffness",
    "LinearStiffness",
    "Linearized",
    "LocalFactorAnalysis",
    "Logistic",
    "LowRankGaussian",
    "Member",
    "MixedPrediction",
    "MomentMatching",
    "NaturalGradient",
    "NegativeBinomial",
    "Network",
    "NetworkClassifier",
    "NetworkRegressor",
    "NormalInverseGamma",
    "NormalisedGradient",
    "NormalisedPerceptron",
    "OnlineClassifier",
    "OnlineCounter",
    "OnlineGradient",
    "OnlineNetwork",
    "OnlineRegressor",
    "OptimalRate",
    "Ordinal",
    "PiecewiseLinear",
    "Poisson",
    "Polynomials",
    "PowerLawRate",
    "Prediction",
    "Probit",
    "RadialFunctions",
    "RandomFourier",
    "RecursiveLeastSquares",
    "RivalPenalisedClustering",
    "Rosenblatt",
    "ScheduledPoint",
    "ShiftedPerceptron",
    "ShiftedPoint",
    "Skipped",
    "Softmax",
    "SparseBank",
    "SparseClassBank",
    "SparseDiagonalGaussian",
    "SparseEncoder",
    "SparseLearner",
    "SparseRows",
    "SphericalGaussian",
    "Standardizer",
    "Step",
    "StudentT",
    "SubspaceRegressor",
    "TableEncoder",
    "TableModel",
    "TensorProduct",
    "ThresholdedFunction",
    "UserFunctions",
    "Variational",
    "VariationalPerceptron",
    "Waves",
    "column_types",
    "load",
    "merge",
    "open_source",
    "read_arrow",
    "read_csv",
    "read_ipc",
    "read_json_lines",
    "read_libsvm",
    "read_parquet",
    "read_vw",
    "save",
    "subtract",
]

_NAMES = {
    "bank": "Bank",
    "calibration": "Calibration",
    "contracts": "SparseRows",
    "distributed": "merge subtract",
    "encoders": "Additive CubicSplines Fourier Hashing PiecewiseLinear Polynomials RadialFunctions RandomFourier "
    "SparseEncoder Standardizer TableEncoder TensorProduct UserFunctions",
    "estimators": "BayesianCCA BinaryFactorAnalysis Budget ConformalClassifier ConformalRegressor HarmonyMixture "
    "IncrementalRiskClassifier IncrementalRiskRegressor LocalFactorAnalysis NetworkClassifier NetworkRegressor "
    "NormalisedPerceptron OnlineClassifier OnlineCounter OnlineNetwork OnlineRegressor RivalPenalisedClustering "
    "ShiftedPerceptron SubspaceRegressor TableModel ThresholdedFunction",
    "function_learner": "FunctionLearner",
    "functions": "JaxFunction Network",
    "learner": "Learner",
    "likelihoods": "BoltzmannStep FlipProbit Gaussian Logistic NegativeBinomial Ordinal Poisson Probit Softmax Step "
    "StudentT",
    "members": "Member Waves",
    "mixed_prediction": "MixedPrediction",
    "modelfile": "load save",
    "posteriors": "BinaryWeights DiagonalGaussian FullGaussian FunctionNorm LowRankGaussian NaturalGradient "
    "NormalInverseGamma NormalisedGradient OnlineGradient RecursiveLeastSquares Rosenblatt ScheduledPoint "
    "ShiftedPoint SparseDiagonalGaussian SphericalGaussian VariationalPerceptron",
    "prediction": "Prediction",
    "risk_learner": "IncrementalRiskLearner",
    "rules": "Iterated Linearized MomentMatching Variational",
    "schedules": "AdaptiveRate ConstantRate OptimalRate PowerLawRate",
    "sparse_bank": "SparseBank",
    "sparse_class_bank": "SparseClassBank",
    "sparse_learner": "SparseLearner",
    "stiffness": "GeometricStiffness LearntStiffness LinearStiffness",
    "streams": "Skipped column_types open_source read_arrow read_csv read_ipc read_json_lines read_libsvm read_parquet "
    "read_vw",
}
_HOMES, _resolve, __dir__ = lazy_names(__name__, _NAMES)
if not TYPE_CHECKING:  # a type checker knows the names above, and may say when one does not exist
    __getattr__ = _resolve
