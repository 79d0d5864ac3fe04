"""Functions written in JAX: values and gradients to the last digits, and errors that say what is wrong."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import bayou
from bayou import FullGaussian, FunctionLearner, Gaussian, JaxFunction, Learner, MomentMatching, Network
from bayou.errors import ImproperBelief, InvalidSpec, ModelFileError, ShapeMismatch
from bayou.functions import jax_function

jnp = jax.numpy

START = {"hidden": np.array([[0.5, -1.0], [1.5, 0.3], [0.2, 0.1]]), "out": [np.array([1.0, -2.0, 0.5]), np.array(0.1)]}
ROWS = np.random.default_rng(0).normal(size=(5, 2))


def network(w: Any, x: Any) -> Any:
    return w["out"][0] @ jnp.tanh(w["hidden"] @ x) + w["out"][1]


def two_outputs(w: Any, x: Any) -> Any:
    return jnp.array([jnp.exp(w @ x), w[0] * x[1]])


def linear(w: Any, x: Any) -> Any:
    return w @ x


def by_hand(flat: np.ndarray, x: np.ndarray) -> tuple[float, np.ndarray]:
    """The same network, and its gradient, in NumPy."""
    hidden, out, bias = flat[:6].reshape(3, 2), flat[6:9], flat[9]
    active = np.tanh(hidden @ x)
    gradient = np.concatenate([np.outer(out * (1.0 - active**2), x).ravel(), active, [1.0]])
    return float(out @ active + bias), gradient


def test_values_and_gradients_are_those_of_the_formula_in_double_precision() -> None:
    function = JaxFunction(network, START)
    mean, variance = function.start(2)
    assert function.n_weights(2) == mean.size == 10
    assert variance.tolist() == [1.0] * 10
    values, gradients = function.linearized(mean, ROWS)
    assert values.dtype == gradients.dtype == np.float64
    for row, value, gradient in zip(ROWS, values, gradients, strict=True):
        expected, slope = by_hand(mean, row)
        np.testing.assert_allclose(value, [expected], rtol=1e-14)
        np.testing.assert_allclose(gradient, [slope], rtol=1e-13)


def test_the_order_of_the_weights_is_that_of_ravel_pytree() -> None:
    from jax.flatten_util import ravel_pytree

    np.testing.assert_allclose(JaxFunction(network, START).start(2)[0], ravel_pytree(START)[0], rtol=1e-6)


def test_several_outputs() -> None:
    function = JaxFunction(two_outputs, np.array([0.3, -0.2]), n_outputs=2)
    mean, _ = function.start(2)
    values, gradients = function.linearized(mean, ROWS)
    growth = np.exp(ROWS @ mean)
    np.testing.assert_allclose(values, np.column_stack([growth, 0.3 * ROWS[:, 1]]), rtol=1e-14)
    np.testing.assert_allclose(gradients[:, 0], growth[:, None] * ROWS, rtol=1e-14)
    np.testing.assert_allclose(gradients[:, 1], np.column_stack([ROWS[:, 1], np.zeros(5)]), rtol=1e-14)


def test_the_switch_of_precision_stays_the_users() -> None:
    assert not jax.config.jax_enable_x64
    JaxFunction(linear, np.ones(2)).linearized(np.ones(2), ROWS)
    assert not jax.config.jax_enable_x64
    assert jnp.ones(1).dtype == np.float32


def test_lengths_are_padded_so_that_few_are_compiled() -> None:
    lengths = []

    def watched(w: Any, x: Any) -> Any:
        lengths.append(1)  # once per trace
        return w @ x

    function = JaxFunction(watched, np.ones(2))
    function.linearized(np.ones(2), ROWS)
    traced = len(lengths)
    for n in (6, 7, 8):
        values, _ = function.linearized(np.ones(2), np.ones((n, 2)))
        assert values.tolist() == [[2.0]] * n
    assert len(lengths) == traced
    assert function.linearized(np.ones(2), np.zeros((0, 2)))[1].shape == (0, 1, 2)


def test_prior_variances_may_differ() -> None:
    given = {"hidden": np.full((3, 2), 0.5), "out": [np.ones(3), np.array(9.0)]}
    assert JaxFunction(network, START, prior_variance=given).start(2)[1].tolist() == [0.5] * 6 + [1.0] * 3 + [9.0]
    with pytest.raises(InvalidSpec, match="`prior_variance` must be a number or like `start`"):
        JaxFunction(network, START, prior_variance=np.ones(10))


def returns_a_matrix(w: Any, x: Any) -> Any:
    return jnp.outer(w, x)


def returns_whole_numbers(w: Any, x: Any) -> Any:
    return (w @ x > 0.0).astype(int)


def asks_python(w: Any, x: Any) -> Any:
    return w @ x if w[0] > 0.0 else 0.0


def calls_back(w: Any, x: Any) -> Any:
    return jax.pure_callback(np.sum, jax.ShapeDtypeStruct((), w.dtype), w * x)


@pytest.mark.parametrize(
    ("function", "error", "said"),
    [
        (
            returns_a_matrix,
            ShapeMismatch,
            r"'returns_a_matrix' must return an array of shape \(1,\) or \(\); got \(2, 2\)",
        ),
        (returns_whole_numbers, InvalidSpec, "must return floats, or there is no gradient; got int"),
        (asks_python, InvalidSpec, "must be a JAX function of the weights.*TracerBool"),
        (calls_back, InvalidSpec, "must be differentiable in its weights"),
    ],
)
def test_a_function_that_does_not_fit_is_refused(function: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        JaxFunction(function, np.ones(2)).start(2)


def test_other_mistakes_are_named() -> None:
    with pytest.raises(InvalidSpec, match="must hold floats, or there is no gradient; got int64"):
        JaxFunction(linear, np.array([1, 2]))
    with pytest.raises(InvalidSpec, match="must hold at least one weight"):
        JaxFunction(linear, {})
    with pytest.raises(InvalidSpec, match="must be finite; got nan"):
        JaxFunction(linear, np.array([math.nan]))
    with pytest.raises(InvalidSpec, match="`function` must be a function"):
        JaxFunction("linear", np.ones(2))  # type: ignore[arg-type]
    with pytest.raises(InvalidSpec, match="`prior_variance` must be positive"):
        JaxFunction(linear, np.ones(2), prior_variance=-1.0)
    with pytest.raises(InvalidSpec, match="`n_outputs` must be a whole number"):
        JaxFunction(linear, np.ones(2), n_outputs=0)
    with pytest.raises(ShapeMismatch, match="has 2 weights; got an array of shape"):
        JaxFunction(linear, np.ones(2)).linearized(np.ones(3), ROWS)
    with pytest.raises(ImproperBelief, match=r"must be finite; got .inf.* in row 1"):
        JaxFunction(two_outputs, np.ones(2), n_outputs=2).linearized(np.ones(2), np.array([[0.0, 0.0], [1e3, 0.0]]))


def test_without_jax_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "jax", None)
    with pytest.raises(ImportError, match=r'pip install "bayou\[jax\]"'):
        jax_function.jax()


def test_bayou_and_its_estimators_do_not_import_jax(run_python: Callable[..., str]) -> None:
    script = "import sys, bayou, bayou.estimators, bayou.functions, bayou.modelfile; print('jax' in sys.modules)"
    assert run_python(script).strip() == "False"


def test_specs_are_values() -> None:
    one, same = JaxFunction(network, START), JaxFunction(network, {**START})
    assert one == same
    assert hash(one) == hash(same)
    assert one != JaxFunction(network, START, prior_variance=2.0)
    assert pickle.loads(pickle.dumps(one)) == one
    assert repr(one) == "JaxFunction(network, 10 weights, n_outputs=1)"


def test_a_learner_of_a_linear_function_is_the_linear_learner() -> None:
    parts = Gaussian(0.5), FullGaussian(), MomentMatching()
    targets = ROWS @ [1.0, -2.0]
    plain, learner = Learner(*parts, 2), FunctionLearner(JaxFunction(linear, np.zeros(2)), *parts, 2)
    for model in (plain, learner):
        model.learn_many(ROWS, targets)
    np.testing.assert_allclose(learner.belief.mean, plain.belief.mean, rtol=1e-12)
    assert learner.log_evidence == pytest.approx(plain.log_evidence, rel=1e-12)


def test_a_learner_of_a_network_is_that_of_the_compiled_network() -> None:
    """Two ways to the same gradients: automatic, and as written in the kernel."""
    compiled = Network(hidden=(3,))
    mean, variance = compiled.start(2)

    def same(w: Any, x: Any) -> Any:
        units, last = w[:9].reshape(3, 3), w[9:]
        return last[0] + last[1:3] @ x + last[3:] @ jnp.tanh(units[:, 0] + units[:, 1:] @ x)

    written = JaxFunction(same, mean, prior_variance=variance)
    parts = Gaussian(0.1), FullGaussian(), MomentMatching()
    rows = np.random.default_rng(1).normal(size=(50, 2))
    learners = [FunctionLearner(function, *parts, 2) for function in (compiled, written)]
    for learner in learners:
        learner.learn_many(rows, np.sin(rows[:, 0]) * rows[:, 1])
    np.testing.assert_allclose(learners[0].belief.mean, learners[1].belief.mean, rtol=1e-8, atol=1e-10)


def test_a_model_file_has_the_name_and_asks_for_the_code(tmp_path: Path) -> None:
    learner = FunctionLearner(JaxFunction(network, START), Gaussian(0.1), FullGaussian(), MomentMatching(), 2)
    learner.learn_many(ROWS, ROWS[:, 0])
    path = tmp_path / "learner.bayou"
    bayou.save(learner, path)
    with pytest.raises(ModelFileError, match=r"knows a function by the name 'network'.*functions="):
        bayou.load(path)
    loaded = bayou.load(path, functions={"network": network})
    for model in (learner, loaded):
        model.learn_many(ROWS, ROWS[:, 1])
    assert loaded.belief.mean.tobytes() == learner.belief.mean.tobytes()
    assert loaded.function == learner.function
