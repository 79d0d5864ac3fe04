"""Progressive validation: every row is predicted and scored before it is learnt.

    progressive    reports of a model along a stream
    metrics        scores in constant memory, with standard errors
    monitor        coverage and calibration in a window, and warnings when they are not what was promised
    promises       what monitors share
    baselines      what can be said without looking at the features
    scores         which metrics and baselines belong to which task
    plots          learning curves, reliability, coverage

Pictures need matplotlib, and it is loaded only for them: ``pip install "bayou[plot]"``.
"""

from bayou.evaluation.monitor import CalibrationMonitor, CoverageMonitor
from bayou.evaluation.progressive import Report, progressive

__all__ = ["CalibrationMonitor", "CoverageMonitor", "Report", "progressive"]
