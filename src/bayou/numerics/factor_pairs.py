"""Two sites in one pass over the factor of a covariance (`bayou.numerics.factor`), and two projections after it.

From some hundred features on, the factor no longer lies in the nearest caches, and fetching it is most of the time of
an example. The second example of a pair needs no factor of its own time: what the first site does to its projection
follows from the first site's coefficients alone. So both sites are known before the factor is touched.
"""

from __future__ import annotations

import numpy as np

from bayou.contracts import Array
from bayou.numerics.factor import ROWS, downdate_corner, project_four, project_one
from bayou.numerics.jit import kernel, vectorized_kernel
from bayou.numerics.sites import smallest_variance


@kernel
def coefficients(
    scale: Array, projection: Array, precision: float, move: Array, keep: Array, later: Array
) -> tuple[float, float]:
    """A site's part of Bierman's update that is O(d): the scales become new, in place, and so does a later projection.

    Row j of the factor will change by move[j] times the sum of keep[i] row[i] over i < j. Returns the gain
    1 / (1 + precision * variance), and the covariance of the latents of this example and the later one.
    """
    floor = smallest_variance(scale)
    total, per_total = 1.0, 1.0
    shared = 0.0
    for j in range(projection.size):
        along = np.float64(projection[j])
        kept = scale[j] * along
        moved = -precision * along * per_total
        before = total
        total += precision * along * kept
        per_total = 1.0 / total
        scale[j] = max(scale[j] * (before * per_total), floor)
        move[j], keep[j] = moved, kept
        other = np.float64(later[j])
        later[j] = other + moved * shared
        shared += kept * other
    return per_total, shared


@vectorized_kernel
def _project_two_fours(factor: Array, j: int, x: Array, y: Array, of_x: Array, of_y: Array) -> None:
    row0, row1, row2, row3 = factor[j, :j], factor[j + 1, :j], factor[j + 2, :j], factor[j + 3, :j]
    left, right = x[:j], y[:j]
    row1_end, row2_end, row3_end = factor[j + 1, j : j + 3], factor[j + 2, j : j + 3], factor[j + 3, j : j + 3]
    c10, c20, c30, c21, c31, c32 = row1_end[0], row2_end[0], row3_end[0], row2_end[1], row3_end[1], row3_end[2]
    x0, x1, x2, y0, y1, y2 = x[j], x[j + 1], x[j + 2], y[j], y[j + 1], y[j + 2]
    a0, b0 = x0, y0
    a1, b1 = x1 + c10 * x0, y1 + c10 * y0
    a2, b2 = x2 + c20 * x0 + c21 * x1, y2 + c20 * y0 + c21 * y1
    a3, b3 = x[j + 3] + c30 * x0 + c31 * x1 + c32 * x2, y[j + 3] + c30 * y0 + c31 * y1 + c32 * y2
    for i in range(left.size):
        xi, yi = left[i], right[i]
        a0 += row0[i] * xi
        a1 += row1[i] * xi
        a2 += row2[i] * xi
        a3 += row3[i] * xi
        b0 += row0[i] * yi
        b1 += row1[i] * yi
        b2 += row2[i] * yi
        b3 += row3[i] * yi
    of_x[j], of_x[j + 1], of_x[j + 2], of_x[j + 3] = a0, a1, a2, a3
    of_y[j], of_y[j + 1], of_y[j + 2], of_y[j + 3] = b0, b1, b2, b3


@vectorized_kernel
def project_pair(factor: Array, x: Array, y: Array, of_x: Array, of_y: Array) -> None:
    """of_x = L x, of_y = L y."""
    n_fours = x.size - x.size % ROWS
    for j in range(0, n_fours, ROWS):
        _project_two_fours(factor, j, x, y, of_x, of_y)
    for j in range(n_fours, x.size):
        project_one(factor, j, x, of_x)
        project_one(factor, j, y, of_y)


@vectorized_kernel
def downdate_pair(
    factor: Array,
    first: tuple[Array, Array, Array],
    second: tuple[Array, Array, Array],
    next_x: Array,
    next_y: Array,
    of_x: Array,
    of_y: Array,
    ahead: int,
) -> None:
    """Change the factor by two sites, each given as its coefficients (move, keep) and room for its direction C x.

    Then of_x = L next_x if ``ahead`` is at least 1, and of_y = L next_y if it is 2, with the new L.
    """
    move, keep, direction = first
    move_too, keep_too, direction_too = second
    n = direction.size
    n_fours = n - n % ROWS
    for j in range(0, n_fours, ROWS):
        h0, h1, h2, h3 = move[j], move[j + 1], move[j + 2], move[j + 3]
        g0, g1, g2, g3 = keep[j], keep[j + 1], keep[j + 2], keep[j + 3]
        p0, p1, p2, p3 = move_too[j], move_too[j + 1], move_too[j + 2], move_too[j + 3]
        q0, q1, q2, q3 = keep_too[j], keep_too[j + 1], keep_too[j + 2], keep_too[j + 3]
        row0, row1, row2, row3 = factor[j, :j], factor[j + 1, :j], factor[j + 2, :j], factor[j + 3, :j]
        left, right = direction[:j], direction_too[:j]
        for i in range(left.size):
            t0, t1, t2, t3 = row0[i], row1[i], row2[i], row3[i]
            k, m = left[i], right[i]
            u = t0 + h0 * k
            k += g0 * t0
            row0[i] = u + p0 * m
            m += q0 * u
            u = t1 + h1 * k
            k += g1 * t1
            row1[i] = u + p1 * m
            m += q1 * u
            u = t2 + h2 * k
            k += g2 * t2
            row2[i] = u + p2 * m
            m += q2 * u
            u = t3 + h3 * k
            left[i] = k + g3 * t3
            row3[i] = u + p3 * m
            right[i] = m + q3 * u
        downdate_corner(factor, j, direction, (h1, h2, h3), (g0, g1, g2, g3))
        downdate_corner(factor, j, direction_too, (p1, p2, p3), (q0, q1, q2, q3))
        if ahead == 2:
            _project_two_fours(factor, j, next_x, next_y, of_x, of_y)
        elif ahead == 1:
            project_four(factor, j, next_x, of_x)
    for j in range(n_fours, n):
        h, g, p, q = move[j], keep[j], move_too[j], keep_too[j]
        row, left, right = factor[j, :j], direction[:j], direction_too[:j]
        for i in range(left.size):
            t = row[i]
            u = t + h * left[i]
            left[i] += g * t
            row[i] = u + p * right[i]
            right[i] += q * u
        direction[j], direction_too[j] = g, q
        if ahead >= 1:
            project_one(factor, j, next_x, of_x)
        if ahead == 2:
            project_one(factor, j, next_y, of_y)
