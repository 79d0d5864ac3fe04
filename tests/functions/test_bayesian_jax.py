"""Functions of the user's own, filtered: the same numbers as the compiled network, and files that name the code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import bayou
from bayou import (
    DiagonalGaussian,
    FlipProbit,
    FullGaussian,
    FunctionLearner,
    Gaussian,
    LowRankGaussian,
    MomentMatching,
    Network,
    Probit,
    Softmax,
    Variational,
)
from bayou.contracts import Function, Likelihood, Matrix, Posterior, Vector
from bayou.errors import ImproperBelief, ModelFileError

JaxFunction = bayou.JaxFunction
N, HIDDEN = 3, 4


def network(weights: Any, x: Any) -> Any:
    """`Network((4,))` in JAX, for one output or three."""
    layer = weights[: HIDDEN * (N + 1)].reshape(HIDDEN, N + 1)
    active = jnp.tanh(layer[:, 0] + layer[:, 1:] @ x)
    last = weights[HIDDEN * (N + 1) :].reshape(-1, 1 + N + HIDDEN)
    return last[:, 0] + last[:, 1 : 1 + N] @ x + last[:, 1 + N :] @ active


def both(likelihood: Likelihood) -> tuple[Network, Function]:
    compiled = Network((HIDDEN,), n_outputs=likelihood.n_latents)
    mean, variance = compiled.start(N)
    return compiled, JaxFunction(network, mean, variance, n_outputs=likelihood.n_latents)


def stream(likelihood: Likelihood, n: int = 40) -> tuple[Matrix, Vector]:
    random = np.random.default_rng(0)
    rows = random.normal(size=(n, N))
    fields = np.sin(2.0 * rows[:, 0]) + 0.3 * random.normal(size=n)
    if isinstance(likelihood, Gaussian):
        return rows, fields
    if likelihood.n_latents > 1:
        return rows, np.digitize(fields, [-0.5, 0.5]).astype(float)
    return rows, np.where(fields > 0.0, 1.0, -1.0)


@pytest.mark.parametrize("posterior", [FullGaussian(), DiagonalGaussian(), LowRankGaussian(rank=3)], ids=repr)
@pytest.mark.parametrize("likelihood", [Gaussian(0.2), Probit(), FlipProbit(0.1), Softmax(3)], ids=repr)
@pytest.mark.parametrize("n_samples", [0, 4])
def test_a_network_in_jax_is_the_compiled_one(
    likelihood: Likelihood, posterior: Posterior[Any], n_samples: int
) -> None:
    rows, targets = stream(likelihood)
    rule = MomentMatching() if likelihood.n_latents == 1 else Variational()
    ours, theirs = (
        FunctionLearner(function, likelihood, posterior, rule, N, n_samples=n_samples) for function in both(likelihood)
    )
    ours.learn_many(rows, targets)
    theirs.learn_many(rows[:15], targets[:15])
    theirs.learn_many(rows[15:], targets[15:])
    np.testing.assert_allclose(theirs.belief.mean, ours.belief.mean, rtol=1e-7, atol=1e-9)
    assert theirs.log_evidence == pytest.approx(ours.log_evidence, rel=1e-8)
    for one, other in zip(ours.predict_many(rows).latent[:2], theirs.predict_many(rows).latent[:2], strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-6, atol=1e-9)


def test_a_file_names_the_code(tmp_path: Path) -> None:
    likelihood = Probit()
    rows, targets = stream(likelihood)
    learner = FunctionLearner(both(likelihood)[1], likelihood, FullGaussian(), MomentMatching(), N)
    learner.learn_many(rows[:20], targets[:20])
    bayou.save(learner, tmp_path / "model.bayou")
    with pytest.raises(ModelFileError, match="network"):
        bayou.load(tmp_path / "model.bayou")
    loaded = bayou.load(tmp_path / "model.bayou", functions={"network": network})
    for each in (learner, loaded):
        each.learn_many(rows[20:], targets[20:])
    np.testing.assert_array_equal(learner.belief.mean, loaded.belief.mean)


def test_a_function_that_overflows_leaves_the_learner_untouched() -> None:
    def explosive(weights: Any, x: Any) -> Any:
        return jnp.exp(weights[0] * x[0])

    learner = FunctionLearner(
        JaxFunction(explosive, np.ones(1)), Gaussian(), FullGaussian(), MomentMatching(), n_features=1
    )
    learner.learn_many([[0.1], [0.2]], [1.0, 1.2])
    before = learner.belief.mean.copy()
    with pytest.raises(ImproperBelief, match="explosive"):
        learner.learn_many([[0.1], [1e4]], [1.0, 1.0])
    np.testing.assert_array_equal(learner.belief.mean, before)
    assert learner.n_examples == 2
