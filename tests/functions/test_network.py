"""The network and its gradients, against a few lines of NumPy and differences."""

from __future__ import annotations

import numpy as np
import pytest

from bayou import Network
from bayou.contracts import Matrix, Vector
from bayou.errors import InvalidSpec

SHAPES = [Network((5,)), Network((1,), n_outputs=3), Network((4, 3), n_outputs=2), Network((3, 4, 2))]
N_FEATURES = 3


def outputs(network: Network, weights: Vector, x: Vector) -> Vector:
    """Layer by layer, as the equation has it."""
    active, used = x, 0
    for width in network.hidden:
        layer = weights[used : used + width * (active.size + 1)].reshape(width, -1)
        active, used = np.tanh(layer[:, 0] + layer[:, 1:] @ active), used + layer.size
    last = weights[used:].reshape(network.n_outputs, -1)
    return last[:, 0] + last[:, 1 : 1 + x.size] @ x + last[:, 1 + x.size :] @ active


def example(network: Network) -> tuple[Vector, Matrix]:
    random = np.random.default_rng(1)
    return random.normal(size=network.n_weights(N_FEATURES)), random.normal(size=(4, N_FEATURES))


@pytest.mark.parametrize("network", SHAPES, ids=repr)
def test_values_and_gradients(network: Network) -> None:
    weights, rows = example(network)
    values, gradients = network.linearized(weights, rows)
    step = 1e-6
    for row, value, gradient in zip(rows, values, gradients, strict=True):
        np.testing.assert_allclose(value, outputs(network, weights, row), rtol=1e-13)
        for j, unit in enumerate(np.eye(weights.size)):
            ahead, behind = (outputs(network, weights + sign * step * unit, row) for sign in (1.0, -1.0))
            np.testing.assert_allclose(gradient[:, j], (ahead - behind) / (2 * step), atol=1e-8)


@pytest.mark.parametrize("network", SHAPES, ids=repr)
def test_gradient_in_the_features(network: Network) -> None:
    weights, rows = example(network)
    k = network.n_outputs
    values, jacobian, inputs = np.empty(k), np.empty(k * weights.size), np.empty(k * N_FEATURES)
    network.linearize(network.layout(N_FEATURES), weights, rows[0], values, jacobian, inputs)
    step = 1e-6
    for j, unit in enumerate(np.eye(N_FEATURES)):
        ahead, behind = (outputs(network, weights, rows[0] + sign * step * unit) for sign in (1.0, -1.0))
        np.testing.assert_allclose(inputs.reshape(k, -1)[:, j], (ahead - behind) / (2 * step), atol=1e-8)


@pytest.mark.parametrize("network", SHAPES, ids=repr)
def test_starts_at_zero_with_fields_of_unit_size(network: Network) -> None:
    mean, variance = network.start(N_FEATURES)
    assert mean.shape == variance.shape == (network.n_weights(N_FEATURES),)
    assert np.all(variance > 0.0)
    values, _ = network.linearized(mean, np.random.default_rng(0).normal(size=(10, N_FEATURES)))
    assert np.all(values == 0.0)
    wide = Network((400,))
    first = wide.start(20)[0][: 400 * 21].reshape(400, 21)
    # sum of 20 weights of variance 1/20; 400 units: standard error of the variance sqrt(2 / 400) = 0.07
    assert abs(first[:, 1:].sum(axis=1).var() - 1.0) < 0.3


@pytest.mark.parametrize("network", SHAPES, ids=repr)
def test_a_wider_network_keeps_what_the_narrow_one_says(network: Network) -> None:
    weights, rows = example(network)
    wider = Network(network.hidden, network.n_outputs + 2)
    places = network.places(N_FEATURES, wider, N_FEATURES + 1)
    assert np.all(np.diff(places) > 0)  # the order stays: factors of a covariance keep their shape
    more = np.zeros(wider.n_weights(N_FEATURES + 1))
    more[places] = weights
    values, _ = wider.linearized(more, np.column_stack([rows, np.full(len(rows), 7.0)]))
    np.testing.assert_allclose(values[:, : network.n_outputs], network.linearized(weights, rows)[0], rtol=1e-13)


@pytest.mark.parametrize(
    "bad",
    [
        {"hidden": ()},
        {"hidden": (0,)},
        {"hidden": 5},
        {"n_outputs": 0},
        {"output_variance": 0.0},
        {"seed": -1},
        {"hidden": (True,)},
    ],
)
def test_bad_shapes_are_named(bad: dict[str, object]) -> None:
    with pytest.raises(InvalidSpec, match=next(iter(bad))):
        Network(**bad)  # type: ignore[arg-type]
