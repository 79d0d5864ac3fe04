"""bayesianbandits: its Bayesian logistic regression of two classes, which keeps every correlation of its weights.

It is told the numbers in running units, as the other linear peers are, and it predicts with the mean of its weights.
Labels may come late: a row is learnt when its label is known.
"""

from __future__ import annotations

import pickle
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from bayou.contracts import Matrix
from benchmarks.streams.contenders import Clock, Contender, Predicted
from benchmarks.streams.linear import Way, has_two_classes, loss, told_rows, without
from benchmarks.streams.stream import Stream

MODELS = ("BayesianGLM", "EmpiricalBayesGLM")
FORGET = "Forgetting"
RULES = (f"Exponential{FORGET}", f"Stabilized{FORGET}")
FORGOTTEN = (0.001, 0.003, 0.01, 0.03, 0.1)  # shares of what is known, per row; from the slowest to the fastest


class Setting(NamedTuple):
    """A model and how it forgets; one of empirical Bayes finds the scale of its prior itself."""

    model: str
    rule: str = ""
    rate: float = 1.0

    def make(self) -> Any:
        import bayesianbandits  # noqa: PLC0415 (it may be absent)

        forgetting = getattr(bayesianbandits, self.rule)(self.rate) if self.rule else None
        return getattr(bayesianbandits, self.model)(forgetting=forgetting)

    def __str__(self) -> str:
        """Short, for a table."""
        model, rule = self.model.replace("EmpiricalBayes", "EB ").replace("Bayesian", ""), self.rule.replace(FORGET, "")
        return f"{model}, {rule.lower()} {self.rate:g}" if rule else model


def by_model(make: Callable[[], Any]) -> Way:
    """A row per call: it is predicted, and learnt when its label is known."""

    def way(stream: Stream) -> Predicted:
        model, waiting, second = make(), deque[tuple[Matrix, Any]](), np.empty(len(stream))
        with warnings.catch_warnings(), Clock() as clock:
            warnings.simplefilter("ignore", ConvergenceWarning)  # its iterations are few by default
            for t, (row, label) in enumerate(told_rows(stream, 1)):
                if len(waiting) > stream.delay:
                    model.partial_fit(*waiting.popleft())
                with_constant = np.append(row, [[1.0]], axis=1)
                second[t] = model.predict(with_constant)[0]
                waiting.append((with_constant, label))
        return Predicted(np.column_stack([1.0 - second, second]), clock.seconds, len(pickle.dumps(model)))

    return way


def by_laplace(stream: Stream) -> Predicted:
    """With its defaults."""
    return by_model(Setting("BayesianGLM").make)(stream)


def by_variational(stream: Stream) -> Predicted:
    """R-VGA in place of Laplace's approximation, else with its defaults."""

    def make() -> Any:
        from bayesianbandits import BayesianGLM, RVGAApproximator  # noqa: PLC0415

        return BayesianGLM(approximator=RVGAApproximator())

    return by_model(make)(stream)


def by_best_setting(stream: Stream) -> Predicted:
    """Of models, rules and rates of forgetting those whose log loss is least, which only hindsight can tell.

    Of each rule rates are tried from the slowest on, as long as they gain. The cost is that of one run.
    """
    found: list[tuple[float, Predicted]] = []
    for model in MODELS:
        found.append(_tried(Setting(model), stream))
        least = found[-1][0]
        for rule in RULES:
            found += _faster_and_faster(model, rule, least, stream)
    return min(found, key=lambda one: one[0])[1]


def _faster_and_faster(model: str, rule: str, least: float, stream: Stream) -> Iterator[tuple[float, Predicted]]:
    """Those that gain. A rate at which it breaks down, as it has forgotten what it knew of a weight, is the last."""
    for share in FORGOTTEN:
        try:
            tried = _tried(Setting(model, rule, 1.0 - share), stream)
        except np.linalg.LinAlgError:
            return
        if tried[0] >= least:
            return
        least = tried[0]
        yield tried


def _tried(setting: Setting, stream: Stream) -> tuple[float, Predicted]:
    run = by_model(setting.make)(stream)._replace(note=f" ({setting})")
    return loss(stream, run), run


def bandits(most_rows: int | None) -> list[Contender]:
    ways = {
        "BayesianGLM": by_laplace,
        "BayesianGLM, R-VGA": by_variational,
        "best in hindsight": by_best_setting,
    }
    missing = without("bayesianbandits")
    return [
        Contender(f"bayesianbandits {name}", way, most_rows=most_rows, missing=missing, takes=has_two_classes)
        for name, way in ways.items()
    ]
