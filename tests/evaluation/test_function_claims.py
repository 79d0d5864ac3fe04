"""One pass of functions of the inputs: as good as the best batch fit of the same functions, with intervals that cover.

Nine tenths of the rows are learnt in one pass in a random order, the others are tests. The batch fit is a ridge whose
penalty is the best for these very tests, of all that were tried: it knows more than anyone may.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.linear_model import Ridge

from bayou import IncrementalRiskRegressor, NormalInverseGamma, OnlineRegressor
from bayou.contracts import Matrix, Posterior, Vector
from benchmarks.uci import read

PENALTIES = 10.0 ** np.arange(-3, 4)
LARGEST = 1.10  # error, over that of the best ridge
LOWEST, HIGHEST = 0.85, 0.95  # of intervals of nominal 90 %
BAYESIAN = NormalInverseGamma(30.0)
ORDERS = 2

both_versions = pytest.mark.parametrize("posterior", [None, BAYESIAN], ids=["IRMA", "Bayesian"])
both_bases = pytest.mark.parametrize("basis", ["additive", "random"])


class Outcome(NamedTuple):
    """The error over that of the best ridge, and what share of the intervals cover."""

    ratio: float
    coverage: float


def error(said: Vector, y: Vector) -> float:
    return float(np.sqrt(np.mean((said - y) ** 2)))


def one_pass(X: Matrix, y: Vector, basis: str, posterior: Posterior[object] | None, seed: int) -> Outcome:
    order = np.random.default_rng(seed).permutation(len(y))
    learnt, tested = np.split(order, [round(0.9 * len(y))])
    model = IncrementalRiskRegressor(basis, posterior).fit(X[learnt], y[learnt])
    low, high = model.predict_interval(X[tested], 0.9).T
    sides = np.array(model.domain_).T
    told, asked = (model.basis_.encode(np.clip(X[rows], *sides)) for rows in (learnt, tested))
    best = min(error(Ridge(penalty).fit(told, y[learnt]).predict(asked), y[tested]) for penalty in PENALTIES)
    ratio = error(model.predict(X[tested]), y[tested]) / best
    return Outcome(ratio, float(np.mean((y[tested] >= low) & (y[tested] <= high))))


def shown(outcome: Outcome) -> Outcome:
    print(f"{outcome.ratio:.3f} of the error of the best ridge, {outcome.coverage:.3f} covered")
    return outcome


def check_claim(X: Matrix, y: Vector, basis: str, posterior: Posterior[object] | None) -> None:
    """In each order by itself."""
    for seed in range(ORDERS):
        ratio, coverage = shown(one_pass(X, y, basis, posterior, seed))
        assert ratio <= LARGEST
        assert LOWEST <= coverage <= HIGHEST  # 500 tests or more: a standard error of 1.3 % or less


@both_versions
@both_bases
@pytest.mark.parametrize("name", ["kin8nm", "power-plant"])
def test_sets_of_uci(data: Path, name: str, basis: str, posterior: Posterior[object] | None) -> None:
    check_claim(*read(data / "regression", name), basis, posterior)


@both_versions
@both_bases
def test_friedmans_function(basis: str, posterior: Posterior[object] | None) -> None:
    """A sum but for one product, of 5 inputs; the noise is 1."""
    X, y = make_friedman1(5000, n_features=5, noise=1.0, random_state=0)
    check_claim(X, y, basis, posterior)


def test_waves_come_to_the_noise_where_sums_cannot() -> None:
    """The claim above is relative to the functions: these here are enough for Friedman's."""
    X, y = make_friedman1(5000, n_features=5, noise=1.0, random_state=0)
    learnt, tested = slice(4500), slice(4500, None)
    errors = {
        basis: error(IncrementalRiskRegressor(basis, BAYESIAN).fit(X[learnt], y[learnt]).predict(X[tested]), y[tested])
        for basis in ("additive", "random")
    }
    assert errors["random"] < 1.1  # 500 tests of unit noise: a standard error of 0.03
    assert errors["additive"] > 1.4


@both_bases
def test_few_rows_for_many_functions_are_for_the_bayesian_version(basis: str) -> None:
    """398 rows of ten inputs, most of their box empty, for 121 and 201 functions: a stiffness that is the same
    everywhere is not what is known of such a function.
    """
    X, y = load_diabetes(return_X_y=True)
    thorough, quick = (
        shown(Outcome(*np.mean([one_pass(X, y, basis, posterior, seed) for seed in range(8)], axis=0)))
        for posterior in (BAYESIAN, None)
    )
    assert thorough.ratio <= LARGEST
    assert LOWEST <= thorough.coverage <= HIGHEST  # 352 tests: a standard error of 1.6 %
    assert quick.ratio > thorough.ratio + 0.05


@both_versions
def test_a_curve_is_known_sooner_than_any_line(posterior: Posterior[object] | None) -> None:
    """The first 200 rows of a stream, each predicted before it is learnt: against the line that `OnlineRegressor` has
    learnt by then, and against the best line of all 200 rows in hindsight.
    """
    losses = []
    for seed in range(10):
        random = np.random.default_rng(seed)
        x = random.uniform(0.0, 6.0, (200, 1))
        y = np.sin(2.0 * x[:, 0]) + 0.2 * random.normal(size=200)
        said = [
            model.learn_many(x, y).mean for model in (IncrementalRiskRegressor(posterior=posterior), OnlineRegressor())
        ]
        hindsight = np.polyval(np.polyfit(x[:, 0], y, 1), x[:, 0])
        losses.append([float(np.sum((each - y) ** 2)) for each in (*said, hindsight)])
    print("curve, line, best line:", np.median(losses, axis=0))  # the line's own has a heavy tail, from its first rows
    for curve, line, best in losses:
        assert curve < 0.3 * best
        assert curve < line
