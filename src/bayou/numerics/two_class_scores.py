"""All scores of what was said of two classes, of a portion of rows, in one pass."""

from __future__ import annotations

import math
from typing import Any

from bayou.contracts import Matrix, Vector
from bayou.numerics.jit import kernel

# Sums over rows: -log of what was given to the class that came, the Brier score, -log of its share so far, each beside
# that of its square, all less the first row's; then how often each of these was right, and model and last label wrong.
LOSS, BRIER, USUAL_LOSS, RIGHT, USUAL_RIGHT, SAME, BOTH_WRONG = 0, 2, 4, 6, 7, 8, 9
N_SUMS = 10


@kernel
def score_two_classes(
    given: Matrix,
    codes: Any,
    last: int,
    counts: Vector,
    least: Vector,
    fineness: float,
    sums: Vector,
    first: Vector,
    bins: Matrix,
    places: Any,
) -> None:
    """Add up the scores of rows of which this was given to both classes, and of which this one came.

    ``counts`` are how often the classes came before, each once more, and are counted on. ``least`` are the smallest
    probabilities that a log is taken of: of losses, and of log odds, whose ``places`` are noted. ``bins`` (b, 5) are of
    equal width over the probability of the second class: rows, sums of it, of what came, of squares and of variances.
    """
    for n in range(codes.size):
        code, second = codes[n], given[n, 1]
        all_before = counts[0] + counts[1]
        loss = -math.log(max(given[n, code], least[0]))
        usual = -math.log(max(counts[code] / all_before, least[0]))
        brier = (second - code) ** 2
        if n == 0:
            first[0], first[1], first[2] = loss, brier, usual
        loss, brier, usual = loss - first[0], brier - first[1], usual - first[2]
        sums[LOSS] += loss
        sums[LOSS + 1] += loss * loss
        sums[BRIER] += brier
        sums[BRIER + 1] += brier * brier
        sums[USUAL_LOSS] += usual
        sums[USUAL_LOSS + 1] += usual * usual
        right = int(second > given[n, 0]) == code
        sums[RIGHT] += right
        sums[USUAL_RIGHT] += int(counts[1] > counts[0]) == code
        sums[SAME] += code == last
        sums[BOTH_WRONG] += (not right) and code != last
        which = min(int(second * bins.shape[0]), bins.shape[0] - 1)
        bins[which, 0] += 1.0
        bins[which, 1] += second
        bins[which, 2] += code
        bins[which, 3] += (second - code) ** 2
        bins[which, 4] += second * (1.0 - second)
        bounded = min(max(second, least[1]), 1.0 - least[1])
        places[n] = math.floor(math.log(bounded / (1.0 - bounded)) * fineness)
        counts[code] += 1.0
        last = code
