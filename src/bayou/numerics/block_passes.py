"""The loop over examples in blocks (`bayou.numerics.factor_blocks`), for posteriors that keep a covariance's factor.

A posterior gives two kernels and gets its pass, compiled for it:

    find_sites(belief, numbers, q, kernels, params, targets, weights, record) -> done
        Find the sites of a block one after the other (`bayou.numerics.block_sites`), and record what was known before
        each. False, with the belief as it was, if the block is none to be learnt as one.
    learn_rows(belief, kernels, params, features, missing, targets, weights, record) -> count
        The pass that serves all rows, but not in blocks.

Blocks are compiled apart from the pass, and only for processes in which some belief has enough features.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bayou.contracts import Array, Kernel, Mask, Matrix, Vector
from bayou.numerics import factor_blocks as blocks
from bayou.numerics.factor_blocks import BLOCKS_FROM, FEWEST, LARGEST
from bayou.numerics.jit import Deferred, rebound, vectorized_kernel

# After a block that could not be learnt as one, up to so many are learnt otherwise before the next is tried.
MOST_PATIENCE = 16


class BlockPass(NamedTuple):
    """The pass, and what it needs for blocks."""

    learn: Kernel
    in_blocks: Deferred

    def prepare(self, n_features: int, dtype: str) -> None:
        """Compile what a belief of so many features will need. Without it, nothing is learnt in blocks."""
        if n_features >= BLOCKS_FROM:
            self.in_blocks.prepare(dtype)


def block_pass(
    module: str, find_sites: Kernel, learn_rows: Kernel, belief: type[Any], further: tuple[Array, ...] = ()
) -> BlockPass:
    """Compile the pass for the posterior of that module, whose belief is (mean, factor, scale) and further arrays."""

    def examples(dtype: str) -> tuple[Any, ...]:
        vector, matrix = np.zeros(1, dtype), np.zeros((1, 1), dtype)
        one, two, addresses = np.zeros(1), np.zeros((1, 1)), np.zeros(1, dtype=np.intp)
        given = belief(vector, matrix, vector, *further)
        return given, addresses, one, matrix, np.zeros((1, 1), dtype=np.bool_), one, one, two

    callees = {"find_sites": find_sites, "learn_rows": learn_rows}
    in_blocks = Deferred(vectorized_kernel(rebound(learn_in_blocks, module, **callees)), examples)
    learning = rebound(learn, module, learn_rows=learn_rows, call_in_blocks=in_blocks.caller)
    return BlockPass(vectorized_kernel(learning), in_blocks)


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
    if belief.mean.size >= BLOCKS_FROM and targets.size >= FEWEST and missing.shape[0] == 0:
        done = call_in_blocks(belief, kernels, params, features, missing, targets, weights, record)
        if done >= 0:
            return int(done)
    return int(learn_rows(belief, kernels, params, features, missing, targets, weights, record))


def learn_in_blocks(
    belief: Any,
    kernels: Any,
    params: Vector,
    features: Array,
    missing: Mask,
    targets: Vector,
    weights: Vector,
    record: Matrix,
) -> int:
    """The same for rows without missing features."""
    mean, factor, scale, rows = belief.mean, belief.factor, belief.scale, targets.size
    work, numbers = blocks.room(mean)
    heaviest = 0.0
    for weight in weights:
        heaviest = max(heaviest, weight)
    start, patience, seen = 0, 1, False
    while start < rows:
        stop = min(start + LARGEST, rows)
        q = blocks.width(stop - start, mean) if heaviest <= 1.0 else 0
        if q and not seen:
            blocks.advance(mean, factor, scale, 0, features[start:stop], q, work, numbers)
            seen = True
        if seen and find_sites(
            belief, numbers, q, kernels, params, targets[start:stop], weights[start:stop], record[start:stop]
        ):
            following = features[stop : min(stop + LARGEST, rows)]
            next_q = blocks.width(following.shape[0], mean)
            blocks.advance(mean, factor, scale, q, following, next_q, work, numbers)
            seen, patience = next_q > 0, 1
        else:  # whatever kept this block from being learnt as one is likely to be true of the next
            stop = min(start + LARGEST * patience, rows) if seen else rows
            x, y = features[start:stop], targets[start:stop]
            done = learn_rows(belief, kernels, params, x, missing, y, weights[start:stop], record[start:stop])
            if done < stop - start:
                return int(start + done)
            seen, patience = False, min(2 * patience, MOST_PATIENCE)
        start = stop
    return rows


def _unbound(*_: Any) -> Any:
    """What the templates name is given by `block_pass`."""
    raise NameError("a pass is compiled for a posterior by `block_pass`, not called by itself")


find_sites = learn_rows = call_in_blocks = _unbound
