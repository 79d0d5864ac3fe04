"""One example per call: arrays against the kernel alone, dicts against River."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from river import linear_model, preprocessing

from bayou import DiagonalGaussian, FullGaussian, Gaussian, Learner, MomentMatching, OnlineClassifier, Probit
from bayou.contracts import Likelihood, Matrix, Posterior, Vector
from benchmarks.dense import ours, stream
from benchmarks.report import Result, against
from benchmarks.timing import Contender, Effort, microseconds_per_example


def arrays(effort: Effort) -> Iterator[Result]:
    rows, signs, targets = stream(effort.examples(20_000), 10)
    yield beyond_the_kernel("bayou Probit x diagonal", Probit(), DiagonalGaussian(), rows, signs, effort)
    yield beyond_the_kernel("bayou Gaussian x full", Gaussian(), FullGaussian(), rows, targets, effort)


def beyond_the_kernel(
    name: str, likelihood: Likelihood, posterior: Posterior, rows: Matrix, targets: Vector, effort: Effort
) -> Result:
    """What a call of `learn_one` costs more than an example in `learn_many`."""

    def prepare() -> Callable[[], object]:
        learner = Learner(likelihood, posterior, MomentMatching(), rows.shape[1])
        examples = list(zip(list(rows), targets.tolist(), strict=True))
        return lambda: learn_each(learner, examples)

    calls, kernel = Contender("call", len(rows), prepare), ours("kernel", likelihood, posterior, rows, targets)
    times = microseconds_per_example([calls, kernel], effort)
    beyond = times["call"] - times["kernel"]
    return Result("arrays", f"{rows.shape[1]} features", name, times["call"], beyond, "microseconds", goal=2.0)


def dicts(effort: Effort) -> Iterator[Result]:
    for n_keys in (10, 40):
        plain, scaled = "bayou diagonal", "bayou full, standardised"
        models: dict[str, Callable[[], Any]] = {
            plain: lambda: OnlineClassifier(posterior=DiagonalGaussian(), standardize=False),
            "River LogisticRegression": linear_model.LogisticRegression,
        }
        scaling: dict[str, Callable[[], Any]] = {
            scaled: lambda: OnlineClassifier(posterior=FullGaussian()),
            "bayou diagonal, standardised": lambda: OnlineClassifier(posterior=DiagonalGaussian()),
            "River StandardScaler | LogisticRegression": lambda: (
                preprocessing.StandardScaler() | linear_model.LogisticRegression()
            ),
        }
        for contenders, ours_is in ((models, plain), (scaling, scaled)):
            times = microseconds_per_example(
                [on_dicts(name, make, n_keys, effort) for name, make in contenders.items()], effort
            )
            goals = {"River LogisticRegression": 3.0}
            yield from against("dicts", f"{n_keys} keys", times, ours_is, goals)


def on_dicts(name: str, make: Callable[[], Any], n_keys: int, effort: Effort) -> Contender:
    count = effort.examples(4000)
    rows, signs, _ = stream(count, n_keys)
    names = [f"feature_{j}" for j in range(n_keys)]

    def prepare() -> Callable[[], object]:
        model = make()
        examples = [
            (dict(zip(names, row, strict=True)), y)
            for row, y in zip(rows.tolist(), (signs > 0.0).tolist(), strict=True)
        ]
        for example in examples[:10]:  # both classes are known, buffers are made
            model.learn_one(*example)
        return lambda: learn_each(model, examples)

    return Contender(name, count, prepare)


def learn_each(model: Any, examples: list[tuple[Any, Any]]) -> None:
    learn = model.learn_one
    for x, y in examples:
        learn(x, y)
