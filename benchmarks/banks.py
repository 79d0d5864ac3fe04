"""Members of a bank in one pass, beside one learner of the same likelihood."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from bayou import Bank, FullGaussian, Gaussian, Logistic, Member, Probit
from bayou.contracts import Likelihood, Matrix, Vector
from benchmarks.dense import ours, stream
from benchmarks.report import Result
from benchmarks.timing import Contender, Effort, microseconds_per_example

MEMBERS, GOAL = 8, 8.0
DRIFTS = (0.0, 1e-6, 1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2)


def banks(effort: Effort) -> Iterator[Result]:
    """All of one kind, then of eight rates of drift, the fastest of which has forgotten all but some hundred rows."""
    n_features = 10
    rows, signs, targets = stream(effort.examples(20_000), n_features)
    for likelihood in (Logistic(), Probit(), Gaussian()):
        wanted = targets if isinstance(likelihood, Gaussian) else signs
        name = type(likelihood).__name__
        one, alike, drifting = f"bayou {name} x full", f"{MEMBERS} members alike", f"{MEMBERS} rates of drift"
        times = microseconds_per_example(
            [
                ours(one, likelihood, FullGaussian(), rows, wanted),
                bank(alike, likelihood, [0.0] * MEMBERS, rows, wanted),
                bank(drifting, likelihood, DRIFTS, rows, wanted),
            ],
            effort,
        )
        setting = f"{n_features} features, {name}"
        yield Result("banks", setting, one, times[one])
        for other in (alike, drifting):
            yield Result("banks", setting, other, times[other], times[other] / times[one], "learners", goal=GOAL)


def bank(name: str, likelihood: Likelihood, drifts: Sequence[float], rows: Matrix, targets: Vector) -> Contender:
    def prepare() -> Callable[[], object]:
        model = Bank([Member(likelihood, drift) for drift in drifts], rows.shape[1])
        return lambda: model.learn_many(rows, targets)

    return Contender(name, len(rows), prepare)
