"""exp and log by lanes: against the mathematical library, for vectors and for the numbers left beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from bayou.numerics.instructions import Writer, written
from bayou.numerics.jit import COMPILED, borrowing_kernel
from bayou.numerics.lane_functions import LEAST, exp, log

pytestmark = pytest.mark.skipif(not COMPILED, reason="there is nothing to write where nothing is compiled")


def of_each(function: Any, plain: Any) -> Any:
    def write(to: Writer, numbers: Any, size: Any) -> None:
        def one(writer: Writer, place: Any, nothing: list[Any]) -> Sequence[Any]:
            writer.store(function(writer, writer.load(numbers, place)), numbers, place)
            return nothing

        to.each(size, 0, one)

    return written(write, plain)


def plain(numbers: Any, size: int) -> None:
    """What is written is what is tested here."""


exp_each, log_each = of_each(exp, plain), of_each(log, plain)


@borrowing_kernel
def exps(numbers: Any) -> None:
    exp_each(numbers, numbers.size)


@borrowing_kernel
def logs(numbers: Any) -> None:
    log_each(numbers, numbers.size)


def applied(kernel: Any, numbers: Any) -> Any:
    own = np.array(numbers, np.float64)
    kernel(own)
    return own


@pytest.mark.parametrize("size", range(9))
def test_sizes_that_are_no_whole_vectors(size: int) -> None:
    numbers = np.linspace(-3.0, 2.0, size)
    np.testing.assert_allclose(applied(exps, numbers), np.exp(numbers), rtol=5e-16)
    np.testing.assert_allclose(applied(logs, np.exp(numbers)), np.log(np.exp(numbers)), rtol=5e-16, atol=1e-16)


def test_exp_is_within_two_roundings() -> None:
    rng = np.random.default_rng(0)
    near, far = rng.uniform(-1.0, 1.0, 20_001), rng.uniform(-690.0, 700.0, 20_002)
    for numbers in (near, far, 1e-9 * near, [0.0, -0.0, 0.5 * np.log(2.0), LEAST, 700.0]):
        np.testing.assert_allclose(applied(exps, numbers), np.exp(numbers), rtol=5e-16)
    assert np.all(applied(exps, [-1e4, -np.inf, -701.0, -1e300]) == np.exp(LEAST))


def test_log_is_within_two_roundings() -> None:
    rng = np.random.default_rng(1)
    near, far = rng.uniform(0.5, 2.0, 20_001), np.exp(rng.uniform(-700.0, 700.0, 20_002))
    for numbers in (near, far, 1.0 + 1e-9 * near, [1.0, np.nextafter(1.0, 0.0), np.sqrt(0.5), np.sqrt(2.0), 1e-307]):
        np.testing.assert_allclose(applied(logs, numbers), np.log(numbers), rtol=5e-16, atol=0.0)
