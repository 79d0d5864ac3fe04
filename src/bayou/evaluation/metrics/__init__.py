"""Scores of predictions, kept in constant memory: ``update`` counts more rows, ``value`` is the score so far.

    classes        Accuracy, BalancedAccuracy, LogLoss, Brier, CalibrationError, Kappa, KappaTemporal, and AUC of two
                   classes: probabilities, a row per example, a column per class; codes, the true columns
    numbers        RMSE, MAE, NegativeLogDensity, CRPS, Coverage, Width, PITHistogram, Deviance (of counts)
    comparisons    McNemar, PairedDifference: two models on the same rows
    wrappers       Windowed, Fading: any of them, of the latest rows

Rows may come in portions of any size: the scores are the same. ``merge`` counts what another has counted, ``weights``
say how much rows count, ``to_state`` and ``from_state`` tell all of a metric as data.
"""

from bayou.evaluation.metrics.classes import (
    Accuracy,
    BalancedAccuracy,
    Brier,
    CalibrationError,
    Kappa,
    KappaTemporal,
    LogLoss,
)
from bayou.evaluation.metrics.comparisons import McNemar, PairedDifference, mcnemar, paired_difference
from bayou.evaluation.metrics.metric import NUMBER_OF_BINS, SMALLEST_PROBABILITY, Mean, Metric
from bayou.evaluation.metrics.numbers import MAE, RMSE, Coverage, Deviance, NegativeLogDensity, PITHistogram, Width
from bayou.evaluation.metrics.ranked_probability import (
    CRPS,
    crps_of_counts,
    crps_of_normal,
    crps_of_normals,
    crps_of_quantiles,
)
from bayou.evaluation.metrics.ranking import AUC
from bayou.evaluation.metrics.windows import Fading, Windowed

__all__ = [
    "AUC",
    "CRPS",
    "MAE",
    "NUMBER_OF_BINS",
    "RMSE",
    "SMALLEST_PROBABILITY",
    "Accuracy",
    "BalancedAccuracy",
    "Brier",
    "CalibrationError",
    "Coverage",
    "Deviance",
    "Fading",
    "Kappa",
    "KappaTemporal",
    "LogLoss",
    "McNemar",
    "Mean",
    "Metric",
    "NegativeLogDensity",
    "PITHistogram",
    "PairedDifference",
    "Width",
    "Windowed",
    "crps_of_counts",
    "crps_of_normal",
    "crps_of_normals",
    "crps_of_quantiles",
    "mcnemar",
    "paired_difference",
]
