"""Two models on the same rows: against scipy, against batches made by hand, and against repetition."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from bayou.errors import InvalidPrediction, InvalidTarget, ModelFileError, ShapeMismatch
from bayou.evaluation import McNemar, PairedDifference, Windowed, mcnemar, paired_difference


def wrong(only_first: int, only_second: int, both: int, neither: int) -> tuple[NDArray[Any], NDArray[Any]]:
    sizes = [only_first, only_second, both, neither]
    order = np.random.default_rng(0).permutation(sum(sizes))
    return np.repeat([True, False, True, False], sizes)[order], np.repeat([False, True, True, False], sizes)[order]


@pytest.mark.parametrize(("first", "second"), [(0, 0), (1, 0), (3, 3), (2, 11), (40, 25), (480, 520)])
def test_few_rows_are_tested_exactly(first: int, second: int) -> None:
    test = mcnemar(*wrong(first, second, 7, 50))
    wanted = stats.binomtest(first, first + second).pvalue if first + second else 1.0
    assert test.p_value == pytest.approx(wanted, rel=1e-9)
    assert (test.only_first, test.only_second, test.both, test.rows) == (first, second, 7, first + second + 57)


@pytest.mark.parametrize(("first", "second"), [(600, 500), (1000, 1001), (700, 900)])
def test_many_rows_are_tested_by_chi_square(first: int, second: int) -> None:
    test = mcnemar(*wrong(first, second, 100, 1000))
    wanted = stats.chi2.sf(max(abs(first - second) - 1, 0) ** 2 / (first + second), 1)
    assert test.p_value == pytest.approx(wanted, rel=1e-9)
    assert test.p_value == pytest.approx(stats.binomtest(first, first + second).pvalue, rel=0.05)


def test_mcnemar_tells_the_difference_and_its_error() -> None:
    first, second = wrong(30, 12, 20, 138)
    test = mcnemar(first, second)
    differences = first.astype(float) - second
    assert test.value == pytest.approx(differences.mean())
    assert test.standard_error == pytest.approx(stats.sem(differences))
    assert math.isnan(McNemar().p_value)


def test_equal_models_are_rarely_found_different() -> None:
    random = np.random.default_rng(0)
    p_values = [mcnemar(random.random(400) < 0.2, random.random(400) < 0.2).p_value for _ in range(1000)]
    assert np.mean(np.array(p_values) < 0.05) <= 0.065
    assert mcnemar(random.random(400) < 0.3, random.random(400) < 0.15).p_value < 0.01


def test_a_window_of_a_comparison() -> None:
    first, second = np.random.default_rng(0).random((2, 300)) < [[0.3], [0.1]]
    latest = Windowed(McNemar, 100)
    latest.update(first, second)
    assert latest.metric.p_value == mcnemar(first[-100:], second[-100:]).p_value


# --- losses


@pytest.mark.parametrize("rows", [2, 17, 63])
def test_few_rows_are_the_paired_t_test(rows: int) -> None:
    first, second = np.random.default_rng(rows).exponential(size=(2, rows))
    test, wanted = paired_difference(first, second), stats.ttest_rel(first, second)
    assert test.value == pytest.approx((first - second).mean())
    assert test.standard_error == pytest.approx(stats.sem(first - second))
    assert test.p_value == pytest.approx(wanted.pvalue, rel=1e-9)


@pytest.mark.parametrize("rows", [64, 100, 1000, 12_345])
@pytest.mark.parametrize("portion", [1, 10, 997])
def test_batches_are_those_made_by_hand(rows: int, portion: int) -> None:
    first, second = np.random.default_rng(rows).exponential(size=(2, rows))
    test = PairedDifference()
    for start in range(0, rows, portion):
        test.update(first[start : start + portion], second[start : start + portion])
    size = 2 ** max(math.floor(math.log2(rows / 32)), 0)
    if rows // size >= 64:
        size *= 2
    assert test.batch_rows == size
    batches = np.split(first - second, np.arange(size, rows, size))
    assert test.n_batches == len(batches) <= 64
    mean = np.mean(first - second)
    scatter = sum(len(batch) * (batch.mean() - mean) ** 2 for batch in batches) / (len(batches) - 1)
    assert test.value == pytest.approx(mean, rel=1e-9)
    assert test.standard_error == pytest.approx(math.sqrt(scatter / rows), rel=1e-9)
    wanted = 2.0 * stats.t.sf(abs(mean) / math.sqrt(scatter / rows), len(batches) - 1)
    assert test.p_value == pytest.approx(wanted, rel=1e-7)


def neighbourly(seed: int, rows: int, memory: float) -> NDArray[Any]:
    """Numbers of mean zero and variance one, each like the one before."""
    random = np.random.default_rng(seed)
    steps, values = math.sqrt(1.0 - memory**2) * random.normal(size=rows), np.empty(rows)
    values[0] = random.normal()
    for row in range(1, rows):
        values[row] = memory * values[row - 1] + steps[row]
    return values


def newey_west(values: NDArray[Any], lags: int) -> float:
    """Bartlett's weights over autocovariances."""
    centred, rows = values - values.mean(), len(values)
    variance = centred @ centred / rows
    for lag in range(1, lags + 1):
        variance += 2.0 * (1.0 - lag / (lags + 1)) * (centred[lag:] @ centred[:-lag]) / rows
    return math.sqrt(variance / rows)


def test_rows_that_are_like_their_neighbours_are_allowed_for() -> None:
    rows, memory = 3000, 0.8
    tests = [paired_difference(neighbourly(seed, rows, memory), np.zeros(rows)) for seed in range(150)]
    errors = np.array([test.standard_error for test in tests])
    theory = math.sqrt((1.0 + memory) / (1.0 - memory) / rows)
    assert errors.mean() == pytest.approx(theory, rel=0.08)
    assert np.std([test.value for test in tests]) == pytest.approx(theory, rel=0.15)
    naive = stats.sem(neighbourly(0, rows, memory))
    assert naive < 0.4 * errors.mean()
    assert np.mean([test.p_value < 0.05 for test in tests]) < 0.11
    peers = np.array([newey_west(neighbourly(seed, rows, memory), 48) for seed in range(20)])
    assert errors[:20].mean() == pytest.approx(peers.mean(), rel=0.1)


def test_merged_batches_still_tell_the_error() -> None:
    values = np.concatenate([neighbourly(seed, 1500, 0.7) for seed in range(4)])
    whole, merged = paired_difference(values, np.zeros(6000)), PairedDifference()
    for start, stop in ((0, 100), (100, 2000), (2000, 2050), (2050, 6000)):
        merged.merge(paired_difference(values[start:stop], np.zeros(stop - start)))
        assert merged.n_batches <= 64
    assert merged.rows == 6000
    assert merged.value == pytest.approx(whole.value, rel=1e-9)
    assert merged.standard_error == pytest.approx(whole.standard_error, rel=0.35)


def test_no_difference_and_nothing_counted() -> None:
    assert paired_difference([1.0, 2.0], [1.0, 2.0]).p_value == 1.0
    assert paired_difference([2.0, 3.0], [1.0, 2.0]).p_value == 0.0
    for test in (PairedDifference(), paired_difference([1.0], [2.0])):
        assert math.isnan(test.standard_error)
        assert math.isnan(test.p_value)


def test_what_cannot_be_compared_is_refused() -> None:
    test = PairedDifference()
    with pytest.raises(InvalidPrediction, match=r"must be finite; got inf and 1\.0 in row 1"):
        test.update([1.0, math.inf], [1.0, 1.0])
    with pytest.raises(ShapeMismatch, match=r"got \(2,\), \(3,\)"):
        test.update([1.0, 2.0], [1.0, 1.0, 1.0])
    assert test.rows == 0
    with pytest.raises(InvalidTarget, match="`wrong_second` must be true or false; got 2"):
        mcnemar(np.array([0, 1]), np.array([0, 2]))
    state = paired_difference([1.0, 2.0], [0.0, 0.0]).to_state()
    state.arrays["sizes"] = np.zeros(1)
    with pytest.raises(ModelFileError, match="a sum and a size each; got 2, 1"):
        PairedDifference.from_state(state)
