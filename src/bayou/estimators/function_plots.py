"""Pictures of a function that was learnt, over its box: where it runs, and how surely."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from scipy.special import ndtri, stdtrit

from bayou.contracts import Matrix, Vector
from bayou.errors import InvalidFeatures, InvalidSpec

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bayou.estimators.incremental_risk import IncrementalRiskEstimator

BLUE, ORANGE, GREY, INK = "#0072B2", "#D55E00", "#767676", "#222222"
ALONG_ONE, ALONG_TWO = 400, 80


def plot_function(
    model: IncrementalRiskEstimator, inputs: int | tuple[int, int] | None, at: Any, coverage: float, data: Any
) -> Figure:
    """The picture: a line with bands along one input, two maps along two."""
    box = model.domain_
    chosen = _chosen(inputs, len(box))
    values = np.array([0.5 * (low + high) for low, high in box])
    if at is not None:
        given = np.asarray(at, dtype=np.float64)
        if given.shape != values.shape:
            raise InvalidFeatures(f"`at` must have a value for each input, {len(box)}; got {at!r}.")
        values = given
    drawn = None if data is None else (np.asarray(data[0], dtype=np.float64), np.asarray(data[1]))
    names = [model._input_names()[column] for column in chosen]
    with_data = drawn if drawn is None or drawn[0].shape[1] == len(chosen) else None  # elsewhere they would mislead
    if len(chosen) == 1:
        return _line(model, chosen[0], values, coverage, names[0], with_data)
    return _maps(model, chosen, values, coverage, names, with_data)


def _chosen(inputs: int | tuple[int, int] | None, n_inputs: int) -> tuple[int, ...]:
    if inputs is None:
        if n_inputs > 2:
            raise InvalidSpec(f"`inputs` must name one or two of the {n_inputs} inputs to draw along; got None.")
        return tuple(range(n_inputs))
    chosen = (inputs,) if isinstance(inputs, (int, np.integer)) else tuple(inputs)
    proper = len(chosen) in {1, 2} and len(set(chosen)) == len(chosen)
    if not proper or not all(0 <= column < n_inputs for column in chosen):
        raise InvalidSpec(f"`inputs` must be one or two different columns below {n_inputs}; got {inputs!r}.")
    return chosen


def _line(
    model: IncrementalRiskEstimator, column: int, values: Vector, coverage: float, name: str, data: Any
) -> Figure:
    low, high = model.domain_[column]
    x = np.linspace(low, high, ALONG_ONE)
    rows = np.tile(values, (len(x), 1))
    rows[:, column] = x
    middle, sure, whole, label = _levels(model, rows, coverage)
    figure = Figure(figsize=(7.0, 4.2), layout="constrained")
    axes = figure.add_subplot()
    if whole is not None:
        axes.fill_between(x, *whole.T, color=BLUE, alpha=0.12, lw=0, label=f"{coverage:.0%} of targets")
    axes.fill_between(x, *sure.T, color=BLUE, alpha=0.35, lw=0, label=f"{coverage:.0%} for the function")
    axes.plot(x, middle, color=BLUE, lw=2, label="function")
    if data is not None:
        axes.plot(data[0][:, 0], _as_numbers(model, data[1]), ".", color=INK, ms=3.5, alpha=0.5, label="data", zorder=0)
    _dress(axes, name, label)
    axes.legend(frameon=False)
    return figure


def _maps(
    model: IncrementalRiskEstimator,
    chosen: tuple[int, ...],
    values: Vector,
    coverage: float,
    names: list[str],
    data: Any,
) -> Figure:
    sides = [np.linspace(*model.domain_[column], ALONG_TWO) for column in chosen]
    across, up = np.meshgrid(*sides)
    rows = np.tile(values, (across.size, 1))
    rows[:, chosen[0]], rows[:, chosen[1]] = across.ravel(), up.ravel()
    middle, sure, _, label = _levels(model, rows, coverage)
    figure = Figure(figsize=(10.0, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    width = sure[:, 1] - sure[:, 0]
    panels = ((left, middle, "viridis", label), (right, width, "magma_r", f"width of the {coverage:.0%} band"))
    for axes, level, colours, title in panels:
        drawn = axes.contourf(across, up, level.reshape(across.shape), 20, cmap=colours)
        figure.colorbar(drawn, ax=axes)
        _dress(axes, *names)
        axes.set_title(title, loc="left")
    if data is not None:
        right.plot(data[0][:, 0], data[0][:, 1], ".", color=GREY, ms=2, alpha=0.6)
        right.set_xlim(sides[0][0], sides[0][-1])
        right.set_ylim(sides[1][0], sides[1][-1])
    return figure


def _levels(
    model: IncrementalRiskEstimator, rows: Matrix, coverage: float
) -> tuple[Vector, Matrix, Matrix | None, str]:
    """What is expected, the band for that if noise is left out, the band for targets of numbers, and a name."""
    if not 0.0 < coverage < 1.0:
        raise InvalidSpec(f"`coverage` must lie between 0 and 1; got {coverage!r}.")
    prediction, likelihood = model._predict_rows(rows), model._learner_.likelihood
    latent = prediction.latent
    if latent.mean.ndim > 1:
        raise InvalidSpec(f"a function can be drawn of two classes; there are {latent.mean.shape[1]}.")
    degrees = np.broadcast_to(latent.degrees, latent.mean.shape)
    quantile = np.where(np.isinf(degrees), ndtri(0.5 + 0.5 * coverage), stdtrit(degrees, 0.5 + 0.5 * coverage))
    reach = quantile * np.sqrt(latent.variance * latent.noise)
    ends = [
        likelihood.moments(latent._replace(mean=f, variance=np.zeros_like(f)))[0]
        for f in (latent.mean - reach, latent.mean + reach)
    ]
    sure = np.column_stack(ends)
    if not hasattr(model, "classes_"):
        return prediction.mean, sure, prediction.interval(coverage), "y"
    second = 1.0 if model._class_order[-1] == len(model._class_order) - 1 else -1.0  # which class +1 stands for
    chances = np.sort(0.5 * (1.0 + second * sure), axis=1)
    return 0.5 * (1.0 + second * prediction.mean), chances, None, f"probability of {model.classes_[-1]}"


def _as_numbers(model: IncrementalRiskEstimator, y: Any) -> Vector:
    """Targets as heights: numbers as they are, classes as 0 and 1."""
    if not hasattr(model, "classes_"):
        return np.asarray(y, dtype=np.float64)
    return np.asarray(y == model.classes_[-1], dtype=np.float64)


def _dress(axes: Axes, across: str, up: str) -> None:
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
