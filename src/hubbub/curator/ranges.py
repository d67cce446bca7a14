"""Sums over ranges of a published stream, with their variances."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Bias, Estimate

if TYPE_CHECKING:
    from hubbub.curator.tops import ToPS


class Segment(NamedTuple):
    """A stretch of a stream with one threshold, whose trees follow one another without a break."""

    first: int
    theta: float


def range_of(
    tops: ToPS, segments: Sequence[Segment], published: NDArray[np.float64], first: int, last: int
) -> Estimate:
    """The sum of positions first to last (without last) of a published stream."""
    if not 0 <= first < last <= published.size:
        raise InvalidValue("range", (first, last), f"positions from 0 to {published.size}, at least one")
    if np.isnan(published[first:last]).any():
        raise InvalidValue("range", (first, last), "positions that were published")
    variance, guess = range_error(tops, segments, first, last)
    bias: Bias = "heuristic" if guess else "none"
    value = published[first:last].sum()
    return Estimate(np.array([value]), np.array([variance + guess]), last - first, bias, "quantity")


def range_error(tops: ToPS, segments: Sequence[Segment], first: int, last: int) -> tuple[float, float]:
    """The variance of a range's noise, and a guess at the squared error of predictions where an end is inside a block.

    The guess is that of Eq 7: a prediction is off by a third of the threshold.
    """
    if not segments or first < segments[0].first:
        raise InvalidValue("range", (first, last), "positions that were published")
    variance, guess = 0.0, 0.0
    spanned = segments[bisect_right(segments, first, key=attrgetter("first")) - 1 :]
    for segment, end in zip(spanned, [*(later.first for later in spanned[1:]), last], strict=True):
        start, stop = max(first, segment.first) - segment.first, min(last, end) - segment.first
        if start < stop:
            # A stretch that ended early did so where a block ends.
            low, high = -(-start // tops.block), stop // tops.block
            square = segment.theta**2
            variance += square * tops.tree.row_variance(low, high) * tops.tree.node_variance() if low < high else 0.0
            loose = [low * tops.block - start, stop - high * tops.block] if low <= high else [stop - start]
            guess += sum(square * (values / 3) ** 2 for values in loose)
    return variance, guess
