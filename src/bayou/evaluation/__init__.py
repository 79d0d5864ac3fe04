"""Progressive validation: every row is predicted and scored before it is learnt.

    progressive    reports of a model along a stream
    metrics        scores in constant memory, with standard errors: of classes, numbers, pairs of models, windows
    monitor        coverage and calibration in a window, and warnings when they are not what was promised
    promises       what monitors share
    baselines      what can be said without looking at the features
    scores         which metrics and baselines belong to which task
    table_run      one pass over a stream of tables, which can be broken off and taken up
    stream_scores  scores along it
    score_names    how scores are called
    plots          learning curves, reliability, coverage
    report_page    a run as one page of HTML; report_pictures, report_theory: what is drawn on it, what was expected

Pictures need matplotlib, and it is loaded only for them: ``pip install "bayou[plot]"``.
"""

from bayou.evaluation.metrics import (
    AUC,
    CRPS,
    MAE,
    RMSE,
    Accuracy,
    BalancedAccuracy,
    Brier,
    CalibrationError,
    Coverage,
    Deviance,
    Fading,
    Kappa,
    KappaTemporal,
    LogLoss,
    McNemar,
    Metric,
    NegativeLogDensity,
    PairedDifference,
    PITHistogram,
    Width,
    Windowed,
    crps_of_counts,
    crps_of_normal,
    crps_of_normals,
    crps_of_quantiles,
    mcnemar,
    paired_difference,
)
from bayou.evaluation.monitor import CalibrationMonitor, CoverageMonitor
from bayou.evaluation.progressive import Report, progressive
from bayou.evaluation.report_page import report_page
from bayou.evaluation.table_run import TableRun

__all__ = [  # noqa: RUF022  # sorted as Python does, as in all packages
    "AUC",
    "Accuracy",
    "BalancedAccuracy",
    "Brier",
    "CRPS",
    "CalibrationError",
    "CalibrationMonitor",
    "Coverage",
    "CoverageMonitor",
    "Deviance",
    "Fading",
    "Kappa",
    "KappaTemporal",
    "LogLoss",
    "MAE",
    "McNemar",
    "Metric",
    "NegativeLogDensity",
    "PITHistogram",
    "PairedDifference",
    "RMSE",
    "Report",
    "TableRun",
    "Width",
    "Windowed",
    "crps_of_counts",
    "crps_of_normal",
    "crps_of_normals",
    "crps_of_quantiles",
    "mcnemar",
    "paired_difference",
    "progressive",
    "report_page",
]
