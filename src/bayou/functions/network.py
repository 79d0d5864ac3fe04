"""f_k(x; w) = b_k + s_k . x + v_k . tanh(B a + c), a = x or the layer before: a network with a linear path past it.

The linear path is what a linear model would be; the hidden units bend it. Weights come layer by layer, unit by unit: a
unit's bias, then its weights; an output's bias, its weights of the features, then those of the last hidden layer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Function, Matrix, Vector
from bayou.errors import InvalidSpec
from bayou.numerics.jit import vectorized_kernel
from bayou.numerics.validation import require_positive

# tanh of a standard normal has variance 0.39: with this factor the hidden units and the linear path vary about alike.
BEND = 3.0


@vectorized_kernel
def linearize(layout: Vector, weights: Vector, x: Vector, values: Vector, jacobian: Vector, inputs: Vector) -> float:
    """Values and gradients; see `bayou.contracts.Function`."""
    d, k, depth = int(layout[0]), int(layout[1]), int(layout[2])
    size = weights.size
    total = 0
    for layer in range(depth):
        total += int(layout[3 + layer])
    active, slope = np.empty(total), np.empty(total)
    at = 0  # where the weights of this layer begin
    begin = 0  # where its units begin
    fan, before = d, x
    for layer in range(depth):
        width = int(layout[3 + layer])
        for h in range(width):
            unit = weights[at + h * (fan + 1) : at + (h + 1) * (fan + 1)]
            entry = unit[1:]
            field = unit[0]
            for j in range(fan):
                field += entry[j] * before[j]
            active[begin + h] = math.tanh(field)
        at += width * (fan + 1)
        fan, before = width, active[begin : begin + width]
        begin += width
    for c in range(k):
        gradient = jacobian[c * size : (c + 1) * size]
        for j in range(size):
            gradient[j] = 0.0
        first = at + c * (1 + d + fan)
        bias, path, bend = weights[first], weights[first + 1 : first + 1 + d], weights[first + 1 + d :][:fan]
        gradient[first] = 1.0
        value = bias
        for j in range(d):
            value += path[j] * x[j]
            gradient[first + 1 + j] = x[j]
        for h in range(fan):
            value += bend[h] * before[h]
            gradient[first + 1 + d + h] = before[h]
            slope[begin - fan + h] = bend[h] * (1.0 - before[h] * before[h])
        values[c] = value
        end, top = at, begin
        for behind in range(depth):
            layer = depth - 1 - behind
            width = int(layout[3 + layer])
            inner = int(layout[2 + layer]) if layer > 0 else d
            low = top - width
            source = active[low - inner : low] if layer > 0 else x
            start = end - width * (inner + 1)
            for h in range(width):
                part = gradient[start + h * (inner + 1) : start + (h + 1) * (inner + 1)]
                part[0] = slope[low + h]
                entry = part[1:]
                for j in range(inner):
                    entry[j] = slope[low + h] * source[j]
            if layer > 0:
                for j in range(inner):
                    summed = 0.0
                    for h in range(width):
                        summed += slope[low + h] * weights[start + h * (inner + 1) + 1 + j]
                    slope[low - inner + j] = summed * (1.0 - source[j] * source[j])
            elif inputs.size:
                for j in range(d):
                    summed = path[j]
                    for h in range(width):
                        summed += slope[low + h] * weights[start + h * (inner + 1) + 1 + j]
                    inputs[c * d + j] = summed
            end, top = start, low
    return 0.0


@final
@dataclass(frozen=True)
class Network(Function):
    """A small network of tanh units, with a linear path from the features to each output.

    ``hidden`` is the width of each hidden layer. Features should be of about unit size. Before any example the outputs
    are zero, give or take ``output_variance`` for each of their two parts, and each hidden unit looks in a direction of
    its own, drawn by ``seed``.

    >>> from bayou import Network
    >>> Network(hidden=(20,)).n_weights(n_features=2)
    83
    """

    hidden: tuple[int, ...] = (50,)
    n_outputs: int = 1
    output_variance: float = 1.0
    seed: int = 0

    linearize = staticmethod(linearize)

    def __post_init__(self) -> None:
        if not (isinstance(self.hidden, tuple) and self.hidden and all(_is_count(width) for width in self.hidden)):
            raise InvalidSpec(f"`hidden` must be a tuple of whole numbers, each at least 1; got {self.hidden!r}.")
        if not _is_count(self.n_outputs):
            raise InvalidSpec(f"`n_outputs` must be a whole number, at least 1; got {self.n_outputs!r}.")
        require_positive(self, "output_variance")
        if not (isinstance(self.seed, int) and self.seed >= 0):
            raise InvalidSpec(f"`seed` must be a whole number, not negative; got {self.seed!r}.")

    def n_weights(self, n_features: int) -> int:
        """How many weights there are."""
        return sum(count * fan for count, fan in self._blocks(n_features))

    def start(self, n_features: int) -> tuple[Vector, Vector]:
        """Hidden units in random directions with fields of about unit size; outputs zero."""
        random = np.random.default_rng(self.seed)
        *layers, outputs = self._blocks(n_features)
        means, variances = [], []
        for width, size in layers:
            variance = np.full(size, 1.0 / (size - 1))
            variance[0] = 1.0
            means.append((random.standard_normal((width, size)) * np.sqrt(variance)).ravel())
            variances.append(np.tile(variance, width))
        count, size = outputs
        variance = np.full(size, 1.0 / n_features)
        variance[0] = 1.0
        variance[1 + n_features :] = BEND / self.hidden[-1]
        variances.append(self.output_variance * np.tile(variance, count))
        return np.concatenate([*means, np.zeros(count * size)]), np.concatenate(variances)

    def linearized(self, weights: Vector, rows: Matrix) -> tuple[Matrix, NDArray[np.float64]]:
        """Values (row, latent) and gradients in the weights (row, latent, weight)."""
        n, layout = len(rows), self.layout(rows.shape[1])
        values, jacobian = np.empty((n, self.n_outputs)), np.empty((n, self.n_outputs * weights.size))
        for row in range(n):
            linearize(layout, weights, rows[row], values[row], jacobian[row], np.zeros(0))
        return values, jacobian.reshape(n, self.n_outputs, weights.size)

    def layout(self, n_features: int) -> Vector:
        """The numbers that the kernel reads: features, outputs, layers, their widths."""
        return np.array([n_features, self.n_outputs, len(self.hidden), *self.hidden], dtype=np.float64)

    def places(self, n_features: int, wider: Network, n_wider: int) -> NDArray[np.intp]:
        """Where the weights stand in a network of more outputs or features: their order stays what it was."""
        kept = []
        start = 0
        inner = (n_features, *self.hidden)
        for (count, size), (count_wider, size_wider), fan in zip(
            self._blocks(n_features), wider._blocks(n_wider), (*inner[:-1], n_features), strict=True
        ):
            block = start + np.arange(count_wider * size_wider).reshape(count_wider, size_wider)
            columns = np.r_[: 1 + fan, size_wider - (size - 1 - fan) : size_wider]
            kept.append(block[:count, columns].ravel())
            start += block.size
        return np.concatenate(kept)

    def _blocks(self, n_features: int) -> list[tuple[int, int]]:
        """Units, and weights of each, layer by layer."""
        fans = (n_features, *self.hidden)
        hidden = [(width, 1 + fan) for width, fan in zip(self.hidden, fans, strict=False)]
        return [*hidden, (self.n_outputs, 1 + n_features + self.hidden[-1])]


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
