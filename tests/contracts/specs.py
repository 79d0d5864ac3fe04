"""Examples of every scalar likelihood, by name of its class, and how to draw a target from each when f is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bayou import likelihoods
from bayou.contracts import ScalarLikelihood, Vector
from bayou.likelihoods import (
    BoltzmannStep,
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

SPECS: dict[str, list[ScalarLikelihood]] = {
    "BoltzmannStep": [BoltzmannStep(), BoltzmannStep(inverse_temperature=5.0), BoltzmannStep(0.1)],
    "FlipProbit": [FlipProbit(), FlipProbit(flip_rate=0.0, noise_scale=0.5), FlipProbit(flip_rate=1e-9)],
    "Gaussian": [Gaussian(), Gaussian(noise_variance=0.05)],
    "Logistic": [Logistic(), Logistic(noise_scale=0.2), Logistic(noise_scale=3.0)],
    "NegativeBinomial": [NegativeBinomial(), NegativeBinomial(dispersion=0.05)],
    "Ordinal": [Ordinal(), Ordinal(cutpoints=(-0.5, 0.0, 0.1, 3.0), noise_scale=0.7), Ordinal(cutpoints=(0.5,))],
    "Poisson": [Poisson(), Poisson(exposure=30.0)],
    "Probit": [Probit(), Probit(noise_scale=0.3)],
    "Step": [Step()],
    "StudentT": [StudentT(), StudentT(degrees=1.5, noise_scale=0.5), StudentT(degrees=60.0)],
}

# Targets at which the kernels are tried: likely, unlikely and extreme ones.
TARGETS: dict[str, list[float]] = {
    "BoltzmannStep": [-1.0, 1.0],
    "FlipProbit": [-1.0, 1.0],
    "Gaussian": [0.4, -7.0],
    "Logistic": [-1.0, 1.0],
    "NegativeBinomial": [0.0, 3.0, 500.0],
    "Ordinal": [0.0, 1.0],
    "Poisson": [0.0, 3.0, 500.0],
    "Probit": [-1.0, 1.0],
    "Step": [-1.0, 1.0],
    "StudentT": [0.4, -7.0],
}

Sampler = Callable[[Any, Vector, np.random.Generator], Vector]

SAMPLERS: dict[str, Sampler] = {
    "BoltzmannStep": lambda spec, f, rng: np.sign(f * spec.inverse_temperature + rng.logistic(size=f.size)),
    "FlipProbit": lambda spec, f, rng: (
        np.where(rng.random(f.size) < spec.flip_rate, -1.0, 1.0)
        * np.sign(f + spec.noise_scale * rng.normal(size=f.size))
    ),
    "Gaussian": lambda spec, f, rng: f + np.sqrt(spec.noise_variance) * rng.normal(size=f.size),
    "Logistic": lambda spec, f, rng: np.sign(f + spec.noise_scale * rng.logistic(size=f.size)),
    "NegativeBinomial": lambda spec, f, rng: rng.poisson(
        np.exp(f) * rng.gamma(1.0 / spec.dispersion, spec.dispersion, size=f.size)
    ).astype(float),
    "Ordinal": lambda spec, f, rng: np.searchsorted(
        spec.cutpoints, f + spec.noise_scale * rng.normal(size=f.size)
    ).astype(float),
    "Poisson": lambda spec, f, rng: rng.poisson(spec.exposure * np.exp(f)).astype(float),
    "Probit": lambda spec, f, rng: np.sign(f + spec.noise_scale * rng.normal(size=f.size)),
    "Step": lambda spec, f, rng: np.sign(f),
    "StudentT": lambda spec, f, rng: f + spec.noise_scale * rng.standard_t(spec.degrees, size=f.size),
}

SCALAR_NAMES = [name for name in likelihoods.__all__ if issubclass(getattr(likelihoods, name), ScalarLikelihood)]
EXAMPLES = [spec for name in SCALAR_NAMES for spec in SPECS.get(name, [])]
CASES = [(spec, y) for spec in EXAMPLES for y in TARGETS[type(spec).__name__]]
