"""How scores are called, and how their numbers are written, for people."""

from __future__ import annotations

import math

FULL_NAMES = {
    "log_loss": "log loss (nats)",
    "accuracy": "accuracy",
    "ece": "calibration error",
    "brier": "Brier score",
    "auc": "area under the ROC curve",
    "majority_log_loss": "log loss of the class frequencies",
    "majority_accuracy": "accuracy of the majority class",
    "no_change_accuracy": "accuracy of the last label",
    "kappa_temporal": "errors of the last label avoided",
    "rmse": "RMSE",
    "mae": "mean absolute error",
    "nlpd": "negative log density (nats)",
    "coverage": "90 % intervals cover",
    "mean_rmse": "RMSE of the mean so far",
    "no_change_rmse": "RMSE of the last target",
}
SHARES = {"accuracy", "ece", "coverage", "majority_accuracy", "no_change_accuracy", "kappa_temporal"}


def number(name: str, value: float) -> str:
    """A score, in percent where it is a share.

    >>> number("accuracy", 0.8125), number("rmse", 0.123456), number("auc", float("nan"))
    ('81.2%', '0.1235', '-')
    """
    if math.isnan(value):
        return "-"
    return f"{value:.1%}" if name in SHARES else f"{value:.4g}"
