"""How 2^64 is shared out among the buckets that a report of Collision or CoCo may name."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core.exact import ceil_div, exp_floor
from hubbub.mechanisms.frequency.choice import TWO_64


class BucketWeights(NamedTuple):
    """The weights of the buckets that are not hit, of 2^64: `each`, and one more for the first `extra` of them."""

    start: int
    each: int
    extra: int

    @staticmethod
    def of(count: int, *, taken: int, rest: int) -> BucketWeights:
        """The weights of `rest` buckets, after `count` hits took `taken` each."""
        start = count * taken
        return BucketWeights(start, *divmod(TWO_64 - start, rest))

    @property
    def least(self) -> int:
        """The smallest weight."""
        return self.each

    @property
    def most(self) -> int:
        """The largest weight."""
        return self.each + (self.extra > 0)


def low_and_high(epsilon: float, sparsity: int, buckets: int) -> tuple[int, int]:
    """Of 2^64, the share 1/Omega rounded up and the share e^eps/Omega rounded down, Omega = s e^eps + t - s.

    s high and t - s low ones never exceed 2^64, and their ratio never e^eps.
    """
    low = ceil_div(TWO_64, sparsity * exp_floor(epsilon) + buckets - sparsity)
    return low, (TWO_64 - (buckets - sparsity) * low) // sparsity


def among_the_rest(
    offset: NDArray[np.uint64], each: NDArray[np.uint64], extra: NDArray[np.uint64]
) -> NDArray[np.int64]:
    """The number of the remaining bucket that an offset into their weights falls in."""
    front = extra * (each + np.uint64(1))
    with np.errstate(over="ignore"):
        behind = extra + (offset - front) // each  # wraps in front, where it is not used
    return np.where(offset < front, offset // (each + np.uint64(1)), behind).astype(np.int64)


def skipping(index: NDArray[np.int64], taken: NDArray[np.int64]) -> NDArray[np.int64]:
    """The index-th bucket that is not taken; each row of `taken` is sorted, filled up with large numbers."""
    for column in taken.T:
        index = index + (index >= column)
    return index


def chance(weight: int) -> Fraction:
    """A share of 2^64 as an exact probability."""
    return Fraction(weight, TWO_64)
