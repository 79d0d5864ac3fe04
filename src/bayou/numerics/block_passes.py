"""The loop over examples in blocks (`bayou.numerics.factor_blocks`), for posteriors that keep a covariance's factor.

A posterior gives two kernels and gets its pass, compiled for it:

    find_sites(belief, numbers, q, kernels, params, targets, weights, record) -> done
        Find the sites of a block one after the other (`bayou.numerics.block_sites`), and record what was known before
        each. False, with the belief as it was, if the block is none to be learnt as one.
    learn_rows(belief, kernels, params, features, missing, targets, weights, record) -> count
        The pass that serves all rows, but not in blocks.
"""

from __future__ import annotations

from typing import Any

from bayou.contracts import Array, Kernel, Mask, Matrix, Vector
from bayou.numerics import factor_blocks as blocks
from bayou.numerics.jit import rebound, vectorized_kernel

# After a block that could not be learnt as one, up to so many are learnt otherwise before the next is tried.
MOST_PATIENCE = 16


def block_pass(module: str, find_sites: Kernel, learn_rows: Kernel) -> Kernel:
    """Compile the pass for the posterior of that module."""
    return vectorized_kernel(rebound(learn, module, find_sites=find_sites, learn_rows=learn_rows))


def learn(
    belief: Any,
    kernels: Any,
    params: Vector,
    features: Array,
    missing: Mask,
    targets: Vector,
    weights: Vector,
    record: Matrix,
) -> int:
    """The pass of `bayou.numerics.passes`; in blocks, where there is something to gain and no digit to lose."""
    mean, factor, scale, rows = belief.mean, belief.factor, belief.scale, targets.size
    largest = blocks.largest(mean, rows)
    for weight in weights:
        if weight > 1.0:
            largest = 0
    if missing.shape[0] > 0:
        largest = 0
    work, numbers = mean, targets  # of no use, unless there are blocks
    if largest:
        work, numbers = blocks.room(mean, largest)
    start, patience, seen = 0, 1, False
    while start < rows:
        stop = min(start + largest, rows)
        q = blocks.width(stop - start, mean)
        if q and not seen:
            seen = blocks.advance(mean, factor, scale, 0, features[start:stop], q, work, numbers)
        if seen and find_sites(
            belief, numbers, q, kernels, params, targets[start:stop], weights[start:stop], record[start:stop]
        ):
            following = features[stop : min(stop + largest, rows)]
            next_q = blocks.width(following.shape[0], mean)
            blocks.advance(mean, factor, scale, q, following, next_q, work, numbers)
            seen, patience = next_q > 0, 1
        else:  # whatever kept this block from being learnt as one is likely to be true of the next
            stop = min(start + largest * patience, rows) if seen else rows
            x, absent, y, counts, told = features, missing, targets, weights, record
            if stop - start < rows:  # a slice costs as much as a short row
                x, absent, y = features[start:stop], missing[start:stop], targets[start:stop]
                counts, told = weights[start:stop], record[start:stop]
            done = learn_rows(belief, kernels, params, x, absent, y, counts, told)
            if done < stop - start:
                return int(start + done)
            seen, patience = False, min(2 * patience, MOST_PATIENCE)
        start = stop
    return rows


def _unbound(*_: Any) -> Any:
    """What the template names is given by `block_pass`."""
    raise NameError("a pass is compiled for a posterior by `block_pass`, not called by itself")


find_sites = learn_rows = _unbound
