"""Many sites in one pass over the factor of a covariance (`bayou.numerics.factor`): products of matrices.

A block X of q examples sees the belief through P = L X' alone. The prior covariances of its latents are G = P' D P; in
them all sites of the block are found one after the other (`bayou.numerics.block_sites`), as if each had been absorbed.
With their precisions H the factors become those of (C^-1 + X' H X)^-1, row by row; for one site it is Bierman's update:

    y = P_i F      e = 1 + d_i y . P_i      F starts as H, and what it tells of row i leaves it:
    L_i -= y K     d_i /= e                 F -= y' y d_i / e
    K += d_i P_i' L_i, of L as it was       K starts as 0, ends as X C: the directions in which the mean moves

P tells all of y and e before L is touched. L is then passed once, in strips of columns for which K stays in the nearest
cache, four rows at a time, and what each four become is projected on the next block at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayou.contracts import Array, Vector
from bayou.numerics.block_sites import find_steps, sites_of, size_of_sites
from bayou.numerics.jit import kernel, vectorized_kernel
from bayou.numerics.sites import smallest_variance
from bayou.numerics.tiles import DOUBLES, ROWS, exchange, product, spread, tile_width

BLOCKS_FROM = 256  # features
LARGEST, FEWEST = 48, 12  # examples
TILES = 3  # a strip's width: K and the columns of the next X stay in the nearest cache
CHUNK = 32  # rows of P that are summed up before the sums leave their registers


class Rows(NamedTuple):
    """What a pass over the factor needs for each row: P, -y, d P, and what rows of the same four give each other.

    ``kept`` (K), ``ahead`` (columns of the next X) and ``old`` (a row as it was) belong to one strip.
    """

    projections: Array
    taken: Array
    given: Array
    own: Array
    kept: Array
    ahead: Array
    old: Array


@kernel
def width(count: int, like: Array) -> int:
    """So many examples, and as many empty ones as it takes to fill the last tile; 0 if they are too few for a block."""
    tile = tile_width(like)
    return (count + tile - 1) // tile * tile if count >= FEWEST else 0


@kernel
def _aligned(size: int, like: Array) -> Array:
    """So many numbers, from the beginning of a cache line on."""
    buffer = np.empty(size + 64 // like.itemsize, like.dtype)
    start = (-buffer.ctypes.data % 64) // like.itemsize
    return buffer[start : start + size]


@kernel
def room(mean: Array) -> tuple[Array, Vector]:
    """Room for `Rows`, and for `Sites` with what `_coefficients` needs."""
    strip, d = TILES * tile_width(mean), mean.size
    numbers: Vector = _aligned(size_of_sites(LARGEST) + LARGEST * (LARGEST + 2 * CHUNK), np.empty(1))  # type: ignore[assignment]
    return _aligned((3 * d + 2 * strip) * LARGEST + ROWS * (d + ROWS) + tile_width(mean), mean), numbers


@kernel
def _scratch(numbers: Vector, q: int) -> tuple[Vector, Vector]:
    """Two times `CHUNK` rows of q numbers, beyond `Sites` and F."""
    start = size_of_sites(q) + q * q
    return numbers[start : start + CHUNK * q], numbers[start + CHUNK * q : start + 2 * CHUNK * q]


@kernel
def _rows_of(work: Array, d: int) -> Rows:
    """The parts of the first room. A smaller block uses the beginning of each."""
    size, strip, tile = d * LARGEST, TILES * tile_width(work) * LARGEST, tile_width(work)
    kept = 3 * size
    own = kept + 2 * strip
    old = own + ROWS * (d + ROWS)
    return Rows(
        work[:size],
        work[size : 2 * size],
        work[2 * size : kept],
        work[own:old],
        work[kept : kept + strip],
        work[kept + strip : own],
        work[old : old + tile],
    )


@vectorized_kernel
def _latent_means(mean: Array, features: Array, means: Vector) -> None:
    for t in range(features.shape[0]):
        x = features[t]
        total = 0.0
        for j in range(x.size):
            total += np.float64(mean[j]) * x[j]
        means[t] = total


@kernel
def _see(mean: Array, scale: Array, features: Array, q: int, projections: Array, numbers: Vector) -> None:
    """Means and covariances of the latents of a block that has been projected."""
    sites, d = sites_of(numbers, q), scale.size
    rows, others = _scratch(numbers, q)
    _latent_means(mean, features, sites.means)
    for start in range(0, d, CHUNK):
        count = min(CHUNK, d - start)
        for i in range(count):
            weight = np.float64(scale[start + i])
            line, by_scale = rows[i * q : i * q + q], others[i * q : i * q + q]
            along = projections[(start + i) * q : (start + i) * q + q]
            for t in range(line.size):
                value = np.float64(along[t])
                line[t] = value
                by_scale[t] = weight * value
        for t in range(0, q, ROWS):
            for s in range(t // DOUBLES * DOUBLES, q, DOUBLES):  # the upper triangle is all that is needed
                product(sites.covariances, t * q + s, q, start, others, t, 1, q, rows, s, q, count)
    for t in range(q):
        sites.variances[t] = sites.covariances[t * q + t]
        sites.slopes[t], sites.precisions[t] = 0.0, 0.0
        if t >= features.shape[0]:
            sites.means[t] = 0.0


@vectorized_kernel
def _inner_products(
    y: Vector, p: Vector, q: int
) -> tuple[float, float, float, float, float, float, float, float, float, float]:
    y0, y1, y2, y3 = y[:q], y[q : 2 * q], y[2 * q : 3 * q], y[3 * q : 4 * q]
    p0, p1, p2, p3 = p[:q], p[q : 2 * q], p[2 * q : 3 * q], p[3 * q : 4 * q]
    z00 = z10 = z11 = z20 = z21 = z22 = z30 = z31 = z32 = z33 = 0.0
    for t in range(y0.size):
        z00 += y0[t] * p0[t]
        z10 += y1[t] * p0[t]
        z11 += y1[t] * p1[t]
        z20 += y2[t] * p0[t]
        z21 += y2[t] * p1[t]
        z22 += y2[t] * p2[t]
        z30 += y3[t] * p0[t]
        z31 += y3[t] * p1[t]
        z32 += y3[t] * p2[t]
        z33 += y3[t] * p3[t]
    return z00, z10, z11, z20, z21, z22, z30, z31, z32, z33


@vectorized_kernel
def _finish_four(
    start: int,
    count: int,
    n: tuple[float, float, float, float, float, float],
    before: Vector,
    after: Vector,
    q: int,
    y: Vector,
    p: Vector,
    block: Rows,
) -> None:
    """Each row's own y, from those of the four together; then all that the pass over the factor asks for."""
    n10, n20, n21, n30, n31, n32 = n
    own = block.own[start * ROWS : (start + ROWS) * ROWS]
    own[4] = m10 = -n10
    own[8], own[9] = m20, m21 = -n20 - n21 * m10, -n21
    own[12], own[13], own[14] = m30, m31, m32 = -n30 - n31 * m10 - n32 * m20, -n31 - n32 * m21, -n32
    y0, y1, y2, y3 = y[:q], y[q : 2 * q], y[2 * q : 3 * q], y[3 * q : 4 * q]
    for t in range(y0.size):
        a, b, c = y0[t], y1[t], y2[t]
        y1[t] = b + m10 * a
        y2[t] = c + m20 * a + m21 * b
        y3[t] += m30 * a + m31 * b + m32 * c
    for r in range(ROWS):
        of_y, of_p = y[r * q : r * q + q], p[r * q : r * q + q]
        if r < count:
            begin = (start + r) * q
            taken, given = block.taken[begin : begin + q], block.given[begin : begin + q]
            for t in range(of_y.size):
                taken[t] = -of_y[t]
                given[t] = before[r] * of_p[t]
        for t in range(of_y.size):
            of_p[t] = -after[r] * of_y[t]


@kernel
def _coefficients(scale: Array, q: int, block: Rows, numbers: Vector) -> None:
    """What the sites do to each row of the factor; the scales become new, in place."""
    d, floor = scale.size, smallest_variance(scale)
    p, y = _scratch(numbers, q)
    precisions, known = sites_of(numbers, q).precisions, numbers[size_of_sites(q) : size_of_sites(q) + q * q]
    for i in range(q * q):
        known[i] = 0.0
    for t in range(q):
        known[t * q + t] = precisions[t]
    before, after = np.zeros(ROWS), np.zeros(ROWS)
    for start in range(0, d, ROWS):
        rows = min(ROWS, d - start)
        for r in range(ROWS):
            before[r] = scale[start + r] if r < rows else 0.0
        line, along = p[: rows * q], block.projections[start * q : (start + rows) * q]
        for t in range(line.size):
            line[t] = along[t]
        for t in range(rows * q, ROWS * q):
            p[t] = 0.0
        for t in range(0, q, DOUBLES):
            product(y, t, q, 0, p, 0, q, 1, known, t, q, q)
        d0, d1, d2, d3 = before[0], before[1], before[2], before[3]
        z00, z10, z11, z20, z21, z22, z30, z31, z32, z33 = _inner_products(y, p, q)
        after[0] = d0 / (1.0 + d0 * z00)
        n10, n20, n30 = z10 * after[0], z20 * after[0], z30 * after[0]
        after[1] = d1 / (1.0 + d1 * (z11 - n10 * z10))
        n21, n31 = (z21 - n20 * z10) * after[1], (z31 - n30 * z10) * after[1]
        after[2] = d2 / (1.0 + d2 * (z22 - n20 * z20 - n21 * (z21 - n20 * z10)))
        n32 = (z32 - n30 * z20 - n31 * (z21 - n20 * z10)) * after[2]
        last = z33 - n30 * z30 - n31 * (z31 - n30 * z10) - n32 * (z32 - n30 * z20 - n31 * (z21 - n20 * z10))
        after[3] = d3 / (1.0 + d3 * last)
        _finish_four(start, rows, (n10, n20, n21, n30, n31, n32), before, after, q, y, p, block)
        for r in range(rows):
            scale[start + r] = max(after[r], floor)
        for t in range(0, q, DOUBLES):
            spread(known, t, q, q, p, 0, q, y, t, q)


@vectorized_kernel
def _exchange_row(factor: Array, i: int, start: int, size: int, k: int, q: int, block: Rows) -> None:
    """`exchange` for one row that is not among four, or for the last few columns."""
    row, old, tile = factor[i, start : start + size], block.old[:size], tile_width(factor)
    for j in range(row.size):
        old[j] = row[j]
    for t in range(q):
        kept = block.kept[k + t * tile : k + t * tile + size]
        taken, given = block.taken[i * q + t], block.given[i * q + t]
        for j in range(row.size):
            row[j] += taken * kept[j]
            kept[j] += given * old[j]


@vectorized_kernel
def _project_row(factor: Array, i: int, start: int, size: int, q: int, block: Rows) -> None:
    """Add what some columns of row i contribute to its projections."""
    row, sums = factor[i, start : start + size], block.projections[i * q : i * q + q]
    if start == 0:
        for t in range(sums.size):
            sums[t] = 0.0
    for j in range(row.size):
        ahead = block.ahead[j * q : j * q + q]
        for t in range(sums.size):
            sums[t] += row[j] * ahead[t]


@kernel
def _lay_out(features: Array, start: int, size: int, q: int, ahead: Array) -> None:
    """Some columns of the rows that come next, as columns; empty where there are no more rows."""
    for t in range(q):
        if t < features.shape[0]:
            x = features[t, start : start + size]
            for j in range(x.size):
                ahead[j * q + t] = x[j]
        else:
            for j in range(size):
                ahead[j * q + t] = 0.0


@vectorized_kernel
def _move(mean: Array, start: int, size: int, k: int, q: int, kept: Array, steps: Vector) -> None:
    """Move some weights' mean, once all rows have been kept."""
    tile = tile_width(mean)
    for j in range(size):
        total = 0.0
        for t in range(q):
            total += steps[t] * kept[k + t * tile + j]
        mean[start + j] += total


@kernel
def _sweep(mean: Array, factor: Array, q: int, steps: Vector, following: Array, next_q: int, work: Array) -> None:
    """One pass over the factor: the change that `_coefficients` has found, then the projections of the rows to follow.

    Either is left out if its q is 0.
    """
    block = _rows_of(work, mean.size)
    d, tile = mean.size, tile_width(mean)
    fours, tiled = d - d % ROWS, d - d % tile
    start = 0
    while start < d:
        size = min(TILES * tile, tiled - start) if start < tiled else d - start
        for i in range(size * q if start < tiled else tile * q):
            block.kept[i] = 0.0
        _lay_out(following, start, size, next_q, block.ahead)
        first_single = fours if start < tiled else start
        for i in range(start, first_single, ROWS):
            if q:
                for c in range(start, min(start + size, i + ROWS), tile):  # beyond the diagonal all is zero
                    at, kept = i * d + c, (c - start) * q
                    exchange(
                        factor, at, d, block.own, i * ROWS, block.taken, block.given, i * q, q, block.kept, kept, tile
                    )
            for t in range(0, next_q, tile):
                at = i * next_q + t
                product(block.projections, at, next_q, start, factor, i * d + start, d, 1, block.ahead, t, next_q, size)
        for i in range(first_single, d):
            if q:
                for c in range(start, start + size, tile):
                    _exchange_row(factor, i, c, min(tile, start + size - c), (c - start) * q, q, block)
            if next_q:
                _project_row(factor, i, start, size, next_q, block)
        if q:
            for c in range(start, start + size, tile):
                _move(mean, c, min(tile, start + size - c), (c - start) * q, q, block.kept, steps)
        start += size


@kernel
def advance(
    mean: Array,
    factor: Array,
    scale: Array,
    q: int,
    following: Array,
    next_q: int,
    work: Array,
    numbers: Vector,
) -> None:
    """Move the belief by the sites of a block, in place, and look at the rows to follow; either q may be 0."""
    if q:
        find_steps(q, sites_of(numbers, q))
        _coefficients(scale, q, _rows_of(work, scale.size), numbers)
    _sweep(mean, factor, q, sites_of(numbers, q).steps, following, next_q, work)
    if next_q:
        _see(mean, scale, following, next_q, _rows_of(work, scale.size).projections, numbers)
