"""The scores of a portion of rows of two classes, by one pass over them instead of one for each."""

from __future__ import annotations

import numpy as np

from bayou.contracts import Matrix, Vector
from bayou.evaluation.metrics import (
    AUC,
    SMALLEST_PROBABILITY,
    Accuracy,
    Brier,
    CalibrationError,
    KappaTemporal,
    LogLoss,
    Mean,
    Metric,
)
from bayou.evaluation.metrics.metric import Codes, check_classes
from bayou.evaluation.metrics.ranking import FINEST, LEAST_PROBABILITY
from bayou.numerics.two_class_scores import (
    BOTH_WRONG,
    BRIER,
    LOSS,
    N_SUMS,
    RIGHT,
    SAME,
    USUAL_LOSS,
    USUAL_RIGHT,
    score_two_classes,
)

_LEAST = np.array([SMALLEST_PROBABILITY, LEAST_PROBABILITY])


def two_class_scores(given: Matrix, codes: Codes, last: int, counts: Vector) -> dict[str, Metric]:
    """What `ClassStream` scores, of these rows alone; ``counts``, one more than came of each class, are counted on.

    ``last`` is the code of the row before, -1 if there was none.
    """
    check_classes(given, codes)
    sums, first, error, area = np.zeros(N_SUMS), np.zeros(3), CalibrationError(), AUC()
    bins, places = np.zeros((error.bins, 5)), np.empty(codes.size, np.int64)
    rows = np.ascontiguousarray(given), np.ascontiguousarray(codes, np.int64)
    score_two_classes(*rows, last, counts, _LEAST, 2.0**FINEST, sums, first, bins, places)
    error.rows, error.predicted, error.observed, error.squares, error.variance = np.ascontiguousarray(bins.T)
    error.squared_weights = codes.size
    area.count_places(places, codes)
    kappa = KappaTemporal()
    kappa.rows = kappa.squared_weights = codes.size
    right, same = int(sums[RIGHT]), int(sums[SAME])
    kappa.of_model, kappa.of_last, kappa.of_both = codes.size - right, codes.size - same, int(sums[BOTH_WRONG])
    return {
        "log_loss": _mean(LogLoss(), codes.size, sums[LOSS : LOSS + 2], first[0]),
        "accuracy": _share(right, codes.size),
        "ece": error,
        "brier": _mean(Brier(), codes.size, sums[BRIER : BRIER + 2], first[1]),
        "auc": area,
        "majority_log_loss": _mean(LogLoss(), codes.size, sums[USUAL_LOSS : USUAL_LOSS + 2], first[2]),
        "majority_accuracy": _share(int(sums[USUAL_RIGHT]), codes.size),
        "no_change_accuracy": _share(same, codes.size),
        "kappa_temporal": kappa,
    }


def _mean(metric: Mean, rows: int, sums: Vector, first: float) -> Mean:
    """A mean of rows by sums of what each is beyond the first, and of its squares."""
    beyond, squares = sums.tolist()
    metric.add_moments(rows, float(first) + beyond / rows, max(squares - beyond * beyond / rows, 0.0))
    return metric


def _share(count: int, rows: int) -> Accuracy:
    accuracy = Accuracy()
    accuracy.add_moments(rows, count / rows, count * (1.0 - count / rows))
    return accuracy
