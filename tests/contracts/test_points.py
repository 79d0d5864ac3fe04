"""What every point estimate must do, found from `__all__`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bayou import posteriors, schedules
from bayou.contracts import Posterior
from bayou.errors import ImproperBelief, InvalidSpec
from bayou.learner import Learner
from bayou.likelihoods import Gaussian, Probit
from bayou.posteriors import (
    NaturalGradient,
    NormalisedGradient,
    OnlineGradient,
    RecursiveLeastSquares,
    Rosenblatt,
    ScheduledPoint,
    ShiftedPoint,
    VariationalPerceptron,
)
from bayou.rules import MomentMatching
from bayou.schedules import AdaptiveRate, PowerLawRate

D = 3
EXAMPLES: list[Posterior[Any]] = [
    OnlineGradient(rate=0.7, offset=3.0, power=0.8, prior_mean=(0.1, 0.0, -0.2)),
    NaturalGradient(),
    NaturalGradient(fisher=((1.0, 0.2, 0.0), (0.2, 0.5, 0.1), (0.0, 0.1, 2.0)), offset=4.0),
    NormalisedGradient(),
    NormalisedGradient(decay=0.02, prior_mean=(0.1, 0.0, -0.2)),
    RecursiveLeastSquares(),
    RecursiveLeastSquares(forgetting=1.0, initial_precision=0.5, prior_mean=(0.1, 0.0, -0.2)),
    Rosenblatt(rate=0.5),
    VariationalPerceptron(),
    VariationalPerceptron(teacher=(1.0, -2.0, 0.5)),
    ScheduledPoint(),
    ScheduledPoint(AdaptiveRate(), normalised=False),
    ScheduledPoint(PowerLawRate(2.0, power=0.5), prior_mean=(0.1, 0.0, -0.2)),
    ShiftedPoint(),
    ShiftedPoint("mean", schedule=PowerLawRate(2.0, largest=0.5)),
]
# Of these only the direction counts, and the average of directions is made one.
DIRECTIONS = [p for p in EXAMPLES if isinstance(p, ShiftedPoint) or getattr(p, "normalised", False)]
# These know more of a shard than how many examples it has seen: see tests/posteriors/test_recursive_least_squares.py.
INFORMED = [p for p in EXAMPLES if isinstance(p, RecursiveLeastSquares)]
everyone = pytest.mark.parametrize("posterior", EXAMPLES, ids=repr)
averaged = pytest.mark.parametrize("posterior", [p for p in EXAMPLES if p not in INFORMED], ids=repr)


def learnt(posterior: Posterior[Any], n: int = 20, seed: int = 0) -> Learner:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, D))
    learner = Learner(Gaussian() if posterior.needs_errors else Probit(), posterior, MomentMatching(), D)
    numbers = features @ [1.0, -2.0, 0.5] + 0.3 * rng.normal(size=n)
    learner.learn_many(features, numbers if posterior.needs_errors else np.sign(numbers))
    return learner


def test_every_point_has_an_example() -> None:
    points = {name for name in posteriors.__all__ if getattr(posteriors, name).is_point}
    assert {type(posterior).__name__ for posterior in EXAMPLES} == points


@everyone
def test_a_spec_is_a_value(posterior: Posterior[Any]) -> None:
    assert eval(repr(posterior), vars(posteriors) | vars(schedules)) == posterior
    assert len({posterior, replace(posterior)}) == 1


@everyone
def test_it_learns(posterior: Posterior[Any]) -> None:
    weights, wanted = learnt(posterior, 300).belief.mean, np.array([1.0, -2.0, 0.5])
    assert weights @ wanted / np.linalg.norm(weights) / np.linalg.norm(wanted) > 0.9


@everyone
def test_a_point_is_sure_of_itself(posterior: Posterior[Any]) -> None:
    belief = learnt(posterior).belief
    np.testing.assert_array_equal(posterior.covariance(belief), np.zeros((D, D)))
    np.testing.assert_array_equal(posterior.variances(belief), np.zeros(D))
    np.testing.assert_array_equal(posterior.sample(belief, 2, seed=0), [belief.mean, belief.mean])
    np.testing.assert_array_equal(posterior.intervals(belief, 0.9), np.column_stack([belief.mean, belief.mean]))
    np.testing.assert_array_equal(posterior.sign_probability(belief), np.ones(D))
    assert posterior.log_density(belief, belief.mean) == np.inf
    assert posterior.log_density(belief, belief.mean + 1.0) == -np.inf


@everyone
def test_forgetting_makes_the_examples_so_far_count_for_less(posterior: Posterior[Any]) -> None:
    learner = learnt(posterior)
    mean = learner.belief.mean.copy()
    learner.forget(discount=0.5)
    assert learner.belief.tally[0] == 10.0
    np.testing.assert_array_equal(learner.belief.mean, mean)
    with pytest.raises(InvalidSpec, match="`diffusion` must be 0 for a point"):
        learner.forget(diffusion=0.1)


@averaged
def test_merged_points_are_their_average_by_examples(posterior: Posterior[Any]) -> None:
    one, other = learnt(posterior, 30, seed=1).belief, learnt(posterior, 10, seed=2).belief
    merged = posterior.merge([one, other])
    average = 0.75 * one.mean + 0.25 * other.mean
    length = np.linalg.norm(average) if posterior in DIRECTIONS else 1.0
    np.testing.assert_allclose(merged.mean, average / length, rtol=1e-12)
    assert merged.tally[0] == 40.0
    left = posterior.subtract(merged, other)
    np.testing.assert_allclose(left.mean, one.mean, rtol=1e-9)
    with pytest.raises(ImproperBelief, match="never learnt"):
        posterior.subtract(other, one)


@everyone
def test_a_transformed_point_is_the_transformed_weights(posterior: Posterior[Any]) -> None:
    belief = learnt(posterior).belief
    scale, shift = np.array([1.0, 3.0, 0.5]), np.array([0.0, 0.3, -0.2])
    wanted = scale * belief.mean + np.array([shift @ belief.mean, 0.0, 0.0])
    posterior.retell(belief, scale, shift)
    np.testing.assert_allclose(belief.mean, wanted, rtol=1e-12)


@everyone
@pytest.mark.parametrize(("field", "value"), [("prior_mean", np.nan), ("dtype", "int8")])
def test_a_bad_spec_is_named(posterior: Posterior[Any], field: str, value: Any) -> None:
    with pytest.raises(InvalidSpec, match=f"`{field}` must.*got"):
        replace(posterior, **{field: value})
