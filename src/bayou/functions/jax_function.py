"""f(x; w) as the user wrote it in JAX, with its gradient by automatic differentiation, in double precision on the CPU.

JAX is an optional extra and enters here alone, when a function is first used: ``bayou[jax]``. Its switch between single
and double precision belongs to the user: it is thrown for the length of a call, and then put back.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib import import_module
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Code, Function, Matrix, Vector
from bayou.errors import ImproperBelief, InvalidSpec, ShapeMismatch

N_KEPT = 64  # functions whose compiled form is kept


def jax() -> Any:
    """JAX, if it is there."""
    try:
        import jax as module  # noqa: PLC0415  # an extra
    except ImportError as error:
        raise ImportError('functions written in JAX need JAX, which is missing: pip install "bayou[jax]"') from error
    return module


@contextmanager
def double_precision() -> Iterator[Any]:
    """JAX, in double precision and on the CPU for as long as this lasts."""
    module = jax()
    switch = getattr(module, "enable_x64", None)
    if switch is None:  # an older JAX
        switch = import_module("jax.experimental").enable_x64
    with switch(True), module.default_device(module.devices("cpu")[0]):
        yield module


class Shape(NamedTuple):
    """How weights are laid out: the structure that the user gave them, and the shapes of its arrays."""

    tree: Any
    shapes: tuple[tuple[int, ...], ...]

    @property
    def size(self) -> int:
        """How many numbers they are."""
        return sum(int(np.prod(shape)) for shape in self.shapes)

    def unravel(self, flat: Any) -> Any:
        """A flat vector as the user's structure."""
        ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes]).tolist()
        parts = [
            flat[end - int(np.prod(shape)) : end].reshape(shape) for end, shape in zip(ends, self.shapes, strict=True)
        ]
        return jax().tree_util.tree_unflatten(self.tree, parts)


def flattened(start: Any, name: str) -> tuple[Vector, Shape]:
    """Weights in any structure of arrays as one vector, in the order of `jax.flatten_util.ravel_pytree`."""
    leaves, tree = jax().tree_util.tree_flatten(start)
    arrays = [np.asarray(leaf) for leaf in leaves]
    for array in arrays:
        if not np.issubdtype(array.dtype, np.floating):
            raise InvalidSpec(f"`start` of {name!r} must hold floats, or there is no gradient; got {array.dtype}.")
    flat = np.concatenate([array.ravel().astype(np.float64) for array in arrays]) if arrays else np.zeros(0)
    if not flat.size:
        raise InvalidSpec(f"`start` of {name!r} must hold at least one weight; got {start!r}.")
    if not np.isfinite(flat).all():
        raise InvalidSpec(f"`start` of {name!r} must be finite; got {flat[~np.isfinite(flat)][0]}.")
    return flat, Shape(tree, tuple(array.shape for array in arrays))


def name_of(function: Callable[..., Any], name: str | None) -> str:
    """What a function is called: by the user, or else in the code."""
    if not callable(function):
        raise InvalidSpec(f"`function` must be a function of weights and x, written in JAX; got {function!r}.")
    return name if name is not None else str(getattr(function, "__name__", type(function).__name__))


@lru_cache(maxsize=N_KEPT)
def checked(
    function: Callable[..., Any], shape: Shape, n_outputs: int, n_features: int, name: str
) -> Callable[..., Any]:
    """(flat weights, x) -> the n_outputs values, for JAX; raises unless that can be traced and differentiated."""

    def flat_function(weights: Any, x: Any) -> Any:
        return jax().numpy.reshape(function(shape.unravel(weights), x), (n_outputs,))

    with double_precision() as module:
        weights, x = (module.ShapeDtypeStruct((size,), np.float64) for size in (shape.size, n_features))
        try:
            value = module.eval_shape(lambda w, x: function(shape.unravel(w), x), weights, x)
        except Exception as error:  # whatever the user's code does
            raise InvalidSpec(
                f"{name!r} must be a JAX function of the weights, as in `start`, and of a vector x of {n_features} "
                f"features; {type(error).__name__}: {str(error)[:400]}"
            ) from error
        wanted = [(n_outputs,), ()] if n_outputs == 1 else [(n_outputs,)]
        if getattr(value, "shape", None) not in wanted:
            said = " or ".join(map(str, wanted))
            raise ShapeMismatch(f"{name!r} must return an array of shape {said}; got {getattr(value, 'shape', value)}.")
        if not np.issubdtype(value.dtype, np.floating):
            raise InvalidSpec(f"{name!r} must return floats, or there is no gradient; got {value.dtype}.")
        try:
            module.eval_shape(module.jacrev(flat_function), weights, x)
        except Exception as error:  # whatever the user's code does
            said = f"{type(error).__name__}: {str(error)[:400]}"
            raise InvalidSpec(f"{name!r} must be differentiable in its weights; {said}") from error
    return flat_function


@lru_cache(maxsize=N_KEPT)
def _tangents(function: Callable[..., Any], shape: Shape, n_outputs: int, n_features: int, name: str) -> Any:
    """Compiled: (flat weights, rows) -> values (row, latent) and gradients (row, latent, weight)."""
    flat_function = checked(function, shape, n_outputs, n_features, name)

    def tangent(weights: Any, x: Any) -> tuple[Any, Any]:
        values, pull = jax().vjp(lambda w: flat_function(w, x), weights)
        (gradients,) = jax().vmap(pull)(jax().numpy.eye(n_outputs))
        return values, gradients

    return jax().jit(jax().vmap(tangent, in_axes=(None, 0)))


def padded(rows: Matrix, n: int) -> Matrix:
    """So many rows, the last of them again and again where there were fewer: what is compiled wants few lengths."""
    return np.concatenate([rows, np.repeat(rows[-1:], n - len(rows), axis=0)]) if n > len(rows) else rows


@final
@dataclass(frozen=True, init=False, repr=False, eq=False)
class JaxFunction(Function):
    """A differentiable function that the user wrote: ``function(weights, x)``.

    ``start`` is where the weights begin, as an array or as any structure of arrays that JAX knows (dicts, lists,
    tuples); the function is given weights of the same structure, and one row of features. It returns one number, or a
    vector of ``n_outputs``. ``prior_variance`` is that of each weight: one for all, or a structure like that of
    ``start``. A model file keeps all but the code, which it knows by ``name``.

    >>> import numpy as np
    >>> from bayou.functions import JaxFunction
    >>> def bump(w, x):
    ...     return w["height"] / (1.0 + ((x - w["place"]) ** 2).sum())
    >>> bump_of = JaxFunction(bump, {"height": np.array(1.0), "place": np.zeros(2)})
    >>> values, gradients = bump_of.linearized(*bump_of.start(2)[:1], np.array([[1.0, 0.0]]))
    >>> values, gradients
    (array([[0.5]]), array([[[0.5, 0.5, 0. ]]]))
    """

    function: Callable[..., Any]
    initial: Any
    prior_variance: Any
    n_outputs: int
    name: str

    def __init__(
        self,
        function: Callable[..., Any],
        start: Any,
        prior_variance: Any = 1.0,
        n_outputs: int = 1,
        name: str | None = None,
    ) -> None:
        said = name_of(function, name)
        if n_outputs < 1 or int(n_outputs) != n_outputs:
            raise InvalidSpec(f"`n_outputs` must be a whole number, at least 1; got {n_outputs!r}.")
        values = (function, start, prior_variance, int(n_outputs), said)
        for field, value in zip(("function", "initial", "prior_variance", "n_outputs", "name"), values, strict=True):
            object.__setattr__(self, field, value)
        if not np.all((self._flat.variance > 0.0) & (self._flat.variance < np.inf)):
            raise InvalidSpec(f"`prior_variance` must be positive and finite; got {prior_variance!r}.")

    def arguments(self) -> dict[str, Any]:
        """What it was made with, as data but for the code."""
        plain = jax().tree_util.tree_map(lambda leaf: np.asarray(leaf, dtype=np.float64), self.initial)
        variance = self.prior_variance
        if not isinstance(variance, (int, float)):
            variance = jax().tree_util.tree_map(lambda leaf: np.asarray(leaf, dtype=np.float64), variance)
        return {
            "function": Code(self.name),
            "start": plain,
            "prior_variance": variance,
            "n_outputs": self.n_outputs,
            "name": self.name,
        }

    def n_weights(self, n_features: int) -> int:
        """How many weights there are, whatever the number of features."""
        return self._flat.mean.size

    def start(self, n_features: int) -> tuple[Vector, Vector]:
        """Mean and variance of each weight before any example; raises unless the function takes so many features."""
        checked(self.function, self._flat.shape, self.n_outputs, n_features, self.name)
        return self._flat.mean.copy(), self._flat.variance.copy()

    def linearized(self, weights: Vector, rows: Matrix) -> tuple[Matrix, NDArray[np.float64]]:
        """Values (row, latent) and gradients in the weights (row, latent, weight)."""
        n, size = len(rows), self._flat.mean.size
        if weights.shape != (size,):
            raise ShapeMismatch(f"{self.name!r} has {size} weights; got an array of shape {weights.shape}.")
        if not n:
            return np.zeros((0, self.n_outputs)), np.zeros((0, self.n_outputs, size))
        tangents = _tangents(self.function, self._flat.shape, self.n_outputs, rows.shape[1], self.name)
        with double_precision():
            found = tangents(weights, padded(rows, 1 << (n - 1).bit_length()))
            values, gradients = (np.array(array[:n]) for array in found)
        finite = np.isfinite(values).all(axis=1) & np.isfinite(gradients).all(axis=(1, 2))
        if not finite.all():
            row = int(np.argmin(finite))
            raise ImproperBelief(f"{self.name!r} and its gradient must be finite; got {values[row]} in row {row}.")
        return values, gradients

    @cached_property
    def _flat(self) -> _Flat:
        mean, shape = flattened(self.initial, self.name)
        if isinstance(self.prior_variance, (int, float)):
            return _Flat(mean, np.full(mean.size, float(self.prior_variance)), shape)
        variance, too = flattened(self.prior_variance, self.name)
        if too != shape:
            raise InvalidSpec(f"`prior_variance` must be a number or like `start`; got {self.prior_variance!r}.")
        return _Flat(mean, variance, shape)

    def _key(self) -> Hashable:
        mean, variance, shape = self._flat
        return self.function, self.n_outputs, self.name, shape, mean.tobytes(), variance.tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JaxFunction) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"JaxFunction({self.name}, {self._flat.mean.size} weights, n_outputs={self.n_outputs})"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_flat"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)


class _Flat(NamedTuple):
    """Where the weights begin, as vectors."""

    mean: Vector
    variance: Vector
    shape: Shape
