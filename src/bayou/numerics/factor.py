"""C = L' diag(scale) L with L unit lower triangular: covariances that stay positive, at the price of a product.

The update for ``C - p C x x' C / (1 + p x' C x)`` is Bierman's: it multiplies scales by positive ratios, so no
rounding makes a variance negative, whatever the ratio of prior to noise. Rows of L go four at a time, and the
projection that the next example needs is taken from each four while they are still in the nearest cache.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from bayou.contracts import Array, Mask, Matrix, Vector
from bayou.errors import ImproperBelief
from bayou.numerics.jit import vectorized_kernel
from bayou.numerics.sites import smallest_variance

ROWS = 4


@vectorized_kernel
def project_four(factor: Array, j: int, x: Array, projection: Array) -> None:
    """Four entries of L x, from j on."""
    row0, row1, row2, row3 = factor[j, :j], factor[j + 1, :j], factor[j + 2, :j], factor[j + 3, :j]
    left = x[:j]
    x0, x1, x2 = x[j], x[j + 1], x[j + 2]
    sum0 = x0
    sum1 = x1 + factor[j + 1, j] * x0
    sum2 = x2 + factor[j + 2, j] * x0 + factor[j + 2, j + 1] * x1
    sum3 = x[j + 3] + factor[j + 3, j] * x0 + factor[j + 3, j + 1] * x1 + factor[j + 3, j + 2] * x2
    for i in range(left.size):
        xi = left[i]
        sum0 += row0[i] * xi
        sum1 += row1[i] * xi
        sum2 += row2[i] * xi
        sum3 += row3[i] * xi
    projection[j] = sum0
    projection[j + 1] = sum1
    projection[j + 2] = sum2
    projection[j + 3] = sum3


@vectorized_kernel
def project_one(factor: Array, j: int, x: Array, projection: Array) -> None:
    """Entry j of L x."""
    row, left = factor[j, :j], x[:j]
    total = x[j]
    for i in range(left.size):
        total += row[i] * left[i]
    projection[j] = total


@vectorized_kernel
def project(factor: Array, x: Array, projection: Array) -> None:
    """projection = L x."""
    n_fours = x.size - x.size % ROWS
    for j in range(0, n_fours, ROWS):
        project_four(factor, j, x, projection)
    for j in range(n_fours, x.size):
        project_one(factor, j, x, projection)


@vectorized_kernel
def marginal(mean: Array, scale: Array, x: Array, projection: Array) -> tuple[float, float]:
    """Mean and variance of w . x, given projection = L x; summed in double precision."""
    latent_mean = 0.0
    latent_variance = 0.0
    for j in range(x.size):
        latent_mean += np.float64(mean[j]) * x[j]
        latent_variance += np.float64(scale[j]) * projection[j] * projection[j]
    return latent_mean, latent_variance


@vectorized_kernel
def downdate(
    factor: Array,
    scale: Array,
    projection: Array,
    precision: float,
    direction: Array,
    next_x: Array,
    next_projection: Array,
    more: int,
) -> float:
    """C -= gain * precision * (C x)(C x)', in place; direction = C x as it was; returns gain.

    If ``more``, next_projection becomes L next_x with the new L.
    """
    n = projection.size
    n_fours = n - n % ROWS
    floor = smallest_variance(scale)
    a = 1.0
    for j in range(0, n_fours, ROWS):
        f0, f1, f2, f3 = projection[j], projection[j + 1], projection[j + 2], projection[j + 3]
        g0, g1, g2, g3 = scale[j] * f0, scale[j + 1] * f1, scale[j + 2] * f2, scale[j + 3] * f3
        a1 = a + precision * f0 * g0
        a2 = a1 + precision * f1 * g1
        a3 = a2 + precision * f2 * g2
        a4 = a3 + precision * f3 * g3
        h0, h1, h2, h3 = -precision * f0 / a, -precision * f1 / a1, -precision * f2 / a2, -precision * f3 / a3
        scale[j] = max(scale[j] * (a / a1), floor)
        scale[j + 1] = max(scale[j + 1] * (a1 / a2), floor)
        scale[j + 2] = max(scale[j + 2] * (a2 / a3), floor)
        scale[j + 3] = max(scale[j + 3] * (a3 / a4), floor)
        a = a4
        row0, row1, row2, row3 = factor[j, :j], factor[j + 1, :j], factor[j + 2, :j], factor[j + 3, :j]
        left = direction[:j]
        for i in range(left.size):
            t0, t1, t2, t3 = row0[i], row1[i], row2[i], row3[i]
            k = left[i]
            row0[i] = t0 + h0 * k
            k += g0 * t0
            row1[i] = t1 + h1 * k
            k += g1 * t1
            row2[i] = t2 + h2 * k
            k += g2 * t2
            row3[i] = t3 + h3 * k
            left[i] = k + g3 * t3
        downdate_corner(factor, j, direction, (h1, h2, h3), (g0, g1, g2, g3))
        if more:
            project_four(factor, j, next_x, next_projection)
    for j in range(n_fours, n):
        f = projection[j]
        g = scale[j] * f
        b = a + precision * f * g
        h = -precision * f / a
        scale[j] = max(scale[j] * (a / b), floor)
        a = b
        row, left = factor[j, :j], direction[:j]
        for i in range(left.size):
            t = row[i]
            row[i] = t + h * left[i]
            left[i] += g * t
        direction[j] = g
        if more:
            project_one(factor, j, next_x, next_projection)
    return 1.0 / a


@vectorized_kernel
def downdate_corner(
    factor: Array,
    j: int,
    direction: Array,
    h: tuple[float, float, float],
    g: tuple[float, float, float, float],
) -> None:
    """The triangle in which the four rows meet: row j + r changes columns j .. j + r - 1."""
    h1, h2, h3 = h
    g0, g1, g2, g3 = g
    row1, row2, row3 = factor[j + 1, j : j + 3], factor[j + 2, j : j + 3], factor[j + 3, j : j + 3]
    t1, t2, t3 = row1[0], row2[0], row3[0]
    k = g0 + g1 * t1
    row1[0] = t1 + h1 * g0
    row2[0] = t2 + h2 * k
    k += g2 * t2
    row3[0] = t3 + h3 * k
    direction[j] = k + g3 * t3
    t2, t3 = row2[1], row3[1]
    k = g1 + g2 * t2
    row2[1] = t2 + h2 * g1
    row3[1] = t3 + h3 * k
    direction[j + 1] = k + g3 * t3
    t3 = row3[2]
    row3[2] = t3 + h3 * g2
    direction[j + 2] = g2 + g3 * t3
    direction[j + 3] = g3


@vectorized_kernel
def scratch(like: Array) -> tuple[Array, Array, Array]:
    """Three vectors as long as this one, each beginning on a cache line."""
    per_line = 64 // like.itemsize
    length = (like.size + per_line - 1) // per_line * per_line
    buffer = np.empty(3 * length + per_line, like.dtype)
    start = (-buffer.ctypes.data % 64) // like.itemsize
    one, two, three = start, start + length, start + 2 * length
    return buffer[one : one + like.size], buffer[two : two + like.size], buffer[three : three + like.size]


@vectorized_kernel
def move(mean: Array, step: float, direction: Array) -> None:
    """mean += step * direction."""
    for j in range(mean.size):
        mean[j] += step * direction[j]


@vectorized_kernel
def scatter(mean: Array, factor: Array, scale: Array, missing: Mask) -> float:
    """Variance that missing features of unit variance give the latent: sum of E w_j^2."""
    total = 0.0
    for j in range(missing.size):
        if missing[j]:
            total += np.float64(mean[j]) * mean[j] + scale[j]
            for i in range(j + 1, missing.size):
                total += np.float64(scale[i]) * factor[i, j] * factor[i, j]
    return total


@vectorized_kernel
def factor_inverse(precision: Matrix, factor: Array, scale: Array) -> None:
    """Write the factors of the inverse of a small precision matrix, which becomes its Cholesky factor."""
    n = precision.shape[0]
    for j in range(n):
        for i in range(j, n):
            total = precision[i, j]
            for m in range(j):
                total -= precision[i, m] * precision[j, m]
            precision[i, j] = np.sqrt(max(total, 1e-300)) if i == j else total / precision[j, j]
    for j in range(n):
        scale[j] = 1.0 / precision[j, j] ** 2
        factor[j, j] = 1.0
        for i in range(j + 1, n):  # column j of the inverse of the factor with its diagonal divided out
            total = 0.0
            for m in range(j, i):
                total += precision[i, m] / precision[m, m] * factor[m, j]
            factor[i, j] = -total


def aligned(shape: tuple[int, ...], dtype: str) -> Array:
    """Zeros that begin on a cache line, which the widest loads prefer."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    buffer = np.zeros(size + 64, dtype=np.uint8)
    start = -buffer.ctypes.data % 64
    return buffer[start : start + size].view(dtype).reshape(shape)


def transform(mean: Array, factor: Array, scale: Array, ratio: Vector, shift: Vector) -> None:
    """Mean and factors of ratio * w, with shift . w added to the first weight, in place. O(d^2)."""
    moved = float(shift @ mean)
    mean[...] *= ratio
    mean[0] += moved
    # w = L' e with e of variances scale: the rows of L' change as those of w, then its diagonal is divided out
    upper = factor.T * ratio[:, None]
    upper[0] += shift @ factor.T
    diagonal = np.diag(upper).astype(np.float64)
    factor[...] = (upper / diagonal).T
    scale[...] = scale * diagonal**2


def covariance_of(factor: Array, scale: Array) -> Matrix:
    """C, from its factors."""
    root = np.sqrt(scale, dtype=np.float64)[:, None] * factor
    product: Matrix = root.T @ root
    return product


def variances_of(factor: Array, scale: Array) -> Vector:
    """Diagonal of C."""
    result: Vector = np.einsum("ij,ij,i->j", factor, factor, scale, dtype=np.float64)
    return result


def diffused(factor: Array, scale: Array, bound: Array, diffusion: float) -> tuple[Matrix, Vector]:
    """Factors of C with so much added to each variance, but none pushed above its bound."""
    room = np.clip(bound - variances_of(factor, scale), 0.0, diffusion)
    return factors_of_covariance(covariance_of(factor, scale) + np.diag(room))


def whiten(factor: Array, scale: Array, weights: Vector) -> Vector:
    """Independent standard normals, if the weights (less their mean) are drawn with covariance C."""
    rotated = scipy.linalg.solve_triangular(factor.astype(np.float64), weights, lower=True, trans=1, unit_diagonal=True)
    result: Vector = rotated / np.sqrt(scale, dtype=np.float64)
    return result


def precision_of(factor: Array, scale: Array) -> Matrix:
    """C inverse, from the factors of C."""
    inverse = scipy.linalg.solve_triangular(
        factor.astype(np.float64), np.eye(scale.size), lower=True, unit_diagonal=True
    )
    root = inverse / np.sqrt(scale, dtype=np.float64)
    product: Matrix = root @ root.T
    return product


def factors_of_covariance(covariance: Matrix) -> tuple[Matrix, Vector]:
    """L and scale with C = L' diag(scale) L."""
    flipped = _cholesky(covariance[::-1, ::-1])
    upper = flipped[::-1, ::-1]
    root = np.diag(upper)
    return np.ascontiguousarray((upper / root).T), root**2


def factors_of_precision(precision: Matrix) -> tuple[Matrix, Vector]:
    """L and scale with C inverse given."""
    lower = _cholesky(precision)
    root = np.diag(lower)
    inverse = scipy.linalg.solve_triangular(lower / root, np.eye(root.size), lower=True, unit_diagonal=True)
    return np.ascontiguousarray(np.tril(inverse)), 1.0 / root**2


def _cholesky(matrix: Matrix) -> Matrix:
    """Cholesky factor; where rounding alone spoils positivity, of the nearest matrix that has one."""
    size = np.sqrt(np.abs(np.diag(matrix)))
    size[size == 0.0] = 1.0
    scaled = matrix / np.outer(size, size)
    try:
        lower: Matrix = scipy.linalg.cholesky(scaled, lower=True)
    except scipy.linalg.LinAlgError:
        values, vectors = scipy.linalg.eigh(scaled)
        rounding = values.size * np.finfo(np.float64).eps * values[-1]
        if not values[0] > -1e3 * rounding:
            raise ImproperBelief(
                f"a belief must have a positive definite precision; its smallest eigenvalue is {values[0]:.3g} "
                f"of {values[-1]:.3g}. Was something taken out that was never learnt?"
            ) from None
        root = np.sqrt(np.maximum(values, rounding))[:, None] * vectors.T
        lower = scipy.linalg.qr(root, mode="r")[0][: values.size].T
        lower = lower * np.sign(np.diag(lower))
    result: Matrix = size[:, None] * lower
    return result
