"""Each density against the distribution of scipy.stats, or scipy.special, that has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from bayou.contracts import ScalarLikelihood
from bayou.likelihoods import (
    FlipProbit,
    Gaussian,
    Logistic,
    NegativeBinomial,
    Ordinal,
    Poisson,
    Probit,
    Step,
    StudentT,
)

LATENTS = np.linspace(-5.0, 5.0, 21)


def of_count(y: float, f: Any) -> Any:
    return stats.nbinom.logpmf(y, 4.0, 1.0 / (1.0 + 0.25 * np.exp(f)))


CASES: list[tuple[ScalarLikelihood, float, Callable[[Any], Any]]] = [
    (Gaussian(0.3), 1.2, lambda f: stats.norm.logpdf(1.2, f, np.sqrt(0.3))),
    (StudentT(2.5, 0.7), 1.2, lambda f: stats.t.logpdf(1.2, 2.5, f, 0.7)),
    (Probit(0.4), -1.0, lambda f: special.log_ndtr(-f / 0.4)),
    (FlipProbit(0.2, 0.4), 1.0, lambda f: np.log(0.2 + 0.6 * special.ndtr(f / 0.4))),
    (Step(), 1.0, lambda f: np.select([f > 0.0, f < 0.0], [0.0, -np.inf], np.log(0.5))),
    (Logistic(), -1.0, lambda f: special.log_expit(-f)),
    (Poisson(3.0), 0.0, lambda f: stats.poisson.logpmf(0, 3.0 * np.exp(f))),
    (Poisson(3.0), 40.0, lambda f: stats.poisson.logpmf(40, 3.0 * np.exp(f))),
    (NegativeBinomial(0.25), 0.0, lambda f: of_count(0.0, f)),
    (NegativeBinomial(0.25), 40.0, lambda f: of_count(40.0, f)),
    (Ordinal((-1.0, 0.5), 0.8), 0.0, lambda f: special.log_ndtr((-1.0 - f) / 0.8)),
    (Ordinal((-1.0, 0.5), 0.8), 1.0, lambda f: np.log(special.ndtr((0.5 - f) / 0.8) - special.ndtr((-1.0 - f) / 0.8))),
    (Ordinal((-1.0, 0.5), 0.8), 2.0, lambda f: special.log_ndtr((f - 0.5) / 0.8)),
]


@pytest.mark.parametrize(("spec", "y", "want"), CASES, ids=lambda value: repr(value) if not callable(value) else "")
def test_density(spec: ScalarLikelihood, y: float, want: Callable[[Any], Any]) -> None:
    got = [spec.log_density(y, float(f), spec.params)[0] for f in LATENTS]
    assert got == pytest.approx(want(LATENTS), rel=1e-8, abs=1e-12)
