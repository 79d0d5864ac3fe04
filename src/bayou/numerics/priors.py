"""Prior means and variances, given once for all weights or one per weight."""

from __future__ import annotations

import numpy as np

from bayou.contracts import Vector
from bayou.errors import InvalidSpec, ShapeMismatch

Scales = float | tuple[float, ...]
DTYPES = ("float64", "float32")


def check_prior(prior_mean: Scales, prior_variance: Scales, dtype: str) -> None:
    """Raise unless these make a proper prior."""
    if not np.all(np.isfinite(prior_mean)):
        raise InvalidSpec(f"`prior_mean` must be finite; got {prior_mean!r}.")
    if not (np.all(np.isfinite(prior_variance)) and np.all(np.asarray(prior_variance) > 0.0)):
        raise InvalidSpec(f"`prior_variance` must be positive and finite; got {prior_variance!r}.")
    if isinstance(prior_mean, list) or isinstance(prior_variance, list):
        raise InvalidSpec("`prior_mean` and `prior_variance` must be numbers or tuples of numbers; got a list.")
    if dtype not in DTYPES:
        raise InvalidSpec(f"`dtype` must be one of {', '.join(DTYPES)}; got {dtype!r}.")


def per_weight(name: str, value: Scales, n_features: int) -> Vector:
    """One value per weight."""
    values = np.asarray(value, dtype=np.float64)
    if values.ndim == 0:
        return np.full(n_features, float(values))
    if values.shape != (n_features,):
        raise ShapeMismatch(f"`{name}` must have one value per feature, {n_features}; got {values.size}.")
    return values.copy()


def check_forgetting(discount: float, diffusion: float) -> None:
    """Raise unless these say how to forget."""
    if not 0.0 <= discount <= 1.0:
        raise InvalidSpec(f"`discount` must be between 0 and 1; got {discount!r}.")
    if not (diffusion >= 0.0 and np.isfinite(diffusion)):
        raise InvalidSpec(f"`diffusion` must be finite and not negative; got {diffusion!r}.")
