"""What passes between the parts: arrays, specs, what is believed of a latent, a model as data."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.floating[Any]]
Vector: TypeAlias = NDArray[np.float64]
Matrix: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Kernel: TypeAlias = Callable[..., Any]


class Latent(NamedTuple):
    """The belief seen through some examples: what a posterior tells a likelihood.

    ``mean`` and ``variance`` have one entry per example, or one row per example for likelihoods of several latents.
    Where the noise is learnt, ``variance`` is in units of the noise, whose scale is known as ``noise`` with so many
    ``degrees`` of freedom.
    """

    mean: Vector
    variance: Vector
    noise: Vector | float = 1.0
    degrees: Vector | float = np.inf


class State(NamedTuple):
    """All of a model, as data: what `bayou.save` writes. Models have ``to_state()`` and ``from_state(state)``.

    ``config`` holds JSON's types, specs, small arrays, the names of code, and dictionaries and lists of these;
    ``arrays`` are named with dots.
    """

    config: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


class Code(NamedTuple):
    """A function that the user wrote, in the place of the function: a model file knows it by name alone."""

    name: str


class Spec(ABC):
    """A frozen dataclass of hyper-parameters."""
