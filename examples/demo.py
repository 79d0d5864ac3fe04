"""bayou at work: two real data sets, learnt as streams in one pass, and how good and how sure the models were."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bayou import OnlineClassifier, OnlineRegressor
from bayou.evaluation import Report, progressive
from bayou.evaluation.metrics import RMSE, Accuracy, CalibrationError, LogLoss, Metric

try:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.table import Table
except ImportError:
    sys.exit('The demo prints with rich, which is missing: pip install "bayou[demo]", or run `make demo-python`.')

PICTURE = Path("out/demo-learning-curve.png")
SEED = 0
FOLDS = 5
WARM_UP = 50  # rows of the regression that are learnt but not scored: 10 weights and the noise start from nothing
SLOW = 2.0  # seconds of work: more than this to make ready means that something was compiled

console = Console(highlight=False)


def make_ready() -> None:
    """Let the kernels be compiled before any time is taken."""
    started, worked = time.perf_counter(), time.process_time()
    with console.status("compiling, once: the kernels are kept on disk for later runs"):
        rows = np.arange(8.0).reshape(4, 2)
        OnlineClassifier().fit(rows, [0, 1, 0, 1]).predict_proba(rows)
        OnlineRegressor().fit(rows, [0.0, 1.0, 2.0, 4.0]).predict_interval(rows)
    if time.process_time() - worked > SLOW:
        took = time.perf_counter() - started
        console.print(f"compiling, once: {took:.0f} s; the kernels are kept on disk for later runs\n")


def shuffled(data: Any) -> tuple[Any, Any, list[str]]:
    order = np.random.default_rng(SEED).permutation(len(data.target))
    return data.data[order], data.target[order], [str(name) for name in data.feature_names]


def learn(model: Any, X: Any, y: Any, what: str, **options: Any) -> list[Report[Any]]:
    """One pass with a progress bar."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("rows"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(what, total=len(y))
        done = lambda rows: bar.update(task, completed=rows)  # noqa: E731
        return list(progressive(model, X, y, chunk=50, progress=done, **options))


def print_speed(kind: type[Any], X: Any, y: Any) -> None:
    """All rows in one call, by the processor's clock: the best of a few runs."""
    times = []
    for _ in range(5):
        started = time.process_time()
        kind().learn_many(X, y)
        times.append(time.process_time() - started)
    console.print(f"Time to predict and learn one row: {1e6 * min(times) / len(y):.1f} µs\n")


def shown(metric: Metric, percent: bool = False, digits: int = 3) -> str:
    """A score and its standard error."""
    if percent:
        return f"{metric.value:.1%} ± {metric.standard_error:.1%}"
    return f"{metric.value:.{digits}f} ± {metric.standard_error:.{digits}f}"


def table(title: str, *columns: str) -> Table:
    result = Table(title=title, title_justify="left", title_style="bold")
    for number, column in enumerate(columns):
        result.add_column(column, justify="right" if number else "left", no_wrap=True)
    return result


def classify() -> list[Report[Any]]:
    X, y, names = shuffled(load_breast_cancer())
    model = OnlineClassifier()
    reports = learn(model, X, y, "breast cancer: is a tumour benign?")
    total = reports[-1].total

    batch = make_pipeline(StandardScaler(), LogisticRegression())
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED)
    probabilities = cross_val_predict(batch, X, y, cv=folds, method="predict_proba")
    scores = Accuracy(), LogLoss(), CalibrationError()
    for metric in scores:
        metric.update(probabilities, y)
    accuracy, log_loss, calibration = scores

    scored = table(
        f"{len(y)} rows x {X.shape[1]} features, each row predicted before it was learnt",
        "score ± standard error", "bayou, one pass", f"batch, {FOLDS} folds", "majority class",
    )  # fmt: skip
    scored.add_row("accuracy", shown(total.accuracy, True), shown(accuracy, True), shown(total.majority_accuracy, True))
    scored.add_row("log loss (nats)", shown(total.log_loss), shown(log_loss), shown(total.majority_log_loss))
    scored.add_row("calibration error", shown(total.calibration_error), shown(calibration), "")
    scored.add_row("  by chance alone", f"{total.calibration_error.noise:.3f}", f"{calibration.noise:.3f}", "")
    console.print(scored)
    console.print("Batch is scikit-learn's logistic regression, which has seen 80 % of the rows")
    console.print("whenever it predicts one; bayou has seen the rows before, at first none.")
    print_speed(OnlineClassifier, X, y)

    surest = model.summary()._replace(names=names).most_certain(10)
    weights = table("The ten surest weights (towards benign)", "feature", "mean", "sd", "90 % interval", "P(sign)")
    for name, mean, deviation, (low, high), probability in zip(*surest[:5], strict=True):
        weights.add_row(name, f"{mean:.3g}", f"{deviation:.2g}", f"[{low:.3g}, {high:.3g}]", f"{probability:.4f}")
    console.print(weights)
    console.print()
    return reports


def regress() -> None:
    X, y, _ = shuffled(load_diabetes())
    reports = learn(OnlineRegressor(), X, y, "diabetes: progression after a year", warm_up=WARM_UP)
    total = reports[-1].total
    folds = KFold(FOLDS, shuffle=True, random_state=SEED)
    batch = RMSE()
    batch.update(cross_val_predict(LinearRegression(), X, y, cv=folds), y)

    scored = table(
        f"{len(y)} rows x {X.shape[1]} features, scored from row {WARM_UP + 1} on",
        "score ± standard error", "bayou, one pass", f"batch, {FOLDS} folds", "mean so far",
    )  # fmt: skip
    scored.add_row("RMSE", *(shown(metric, digits=1) for metric in (total.rmse, batch, total.mean_rmse)))
    scored.add_row("90 % intervals cover", shown(total.coverage, True), "", "")
    scored.add_row("  and are wide", shown(total.width, digits=1), "", "")
    console.print(scored)
    print_speed(OnlineRegressor, X, y)


def draw(reports: list[Report[Any]]) -> None:
    from bayou.evaluation import plots  # noqa: PLC0415  # matplotlib is an extra

    try:
        plots.overview(reports, PICTURE)
    except ImportError as error:
        console.print(f"No picture: {error}", markup=False)
    else:
        console.print(f"Learning curve and reliability: {PICTURE}")


def main() -> None:
    make_ready()
    reports = classify()
    regress()
    draw(reports)


if __name__ == "__main__":
    main()
