"""Real-valued gradients as sparse ternary vectors, without bias, and estimates scaled back to gradients."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.estimate import Estimate
from hubbub.core.reports import Floats
from hubbub.mechanisms.ternary.vectors import Ternary
from hubbub.random.integers import GRAIN
from hubbub.random.source import Random

_MOST_ENTRIES = 1 << 20  # so that a row's chances add up in 64 bits


@dataclass(frozen=True, kw_only=True)
class Gradients:
    """Rows of real numbers as ternary vectors with at most s entries, times one public scale c.

    A row is first shrunk, its direction kept, until no number exceeds c and the sum of their sizes does not exceed s c
    (`clipped`: the only bias there is). Then entry j becomes its sign with probability |g_j|/c and else 0. One random
    number places a grid of step c over the sizes laid end to end, and a grid point in entry j chooses it, so that at
    most s are chosen. For c X, X the ternary row,

        E[c X_j] = g_j        Var[c X_j] = c |g_j| - g_j^2        over all entries c |g|_1 - |g|_2^2

    and a mechanism that reports X adds c^2 times its own variance, about c^2 d s / eps^2 in all: the larger c, the less
    is clipped, and the more noise there is. The chances are rounded down to multiples of 2^-32.

    Parameters
    ----------
    scale
        c, the same for everyone.
    sparsity
        s, that of the mechanism.

    Example:
        >>> gradients = Gradients(scale=0.5, sparsity=2)
        >>> gradients.clipped([[0.1, -0.2, 0.0], [3.0, 1.0, 0.0]]).round(3).tolist()
        [[0.1, -0.2, 0.0], [0.5, 0.167, 0.0]]
        >>> drawn = gradients.ternary(np.tile([0.1, -0.2, 0.0], (20_000, 1)), Random(seed=1))
        >>> (0.5 * drawn.means()).round(2).tolist()
        [0.1, -0.2, 0.0]
        >>> gradients.variance([[0.1, -0.2, 0.0]]).round(3).tolist()
        [[0.04, 0.06, 0.0]]

    References
    ----------
    S. Wang, Li, Li et al., 2023, sections 1.1 and 2.1: federated gradients, discretised and made sparse.
    """

    scale: float
    sparsity: int

    def __post_init__(self) -> None:
        scale, sparsity = self.scale, self.sparsity
        if isinstance(scale, bool) or not isinstance(scale, int | float) or not 0 < scale < math.inf:
            raise InvalidValue("scale", scale, "a finite number above 0")
        check_integer("sparsity", sparsity, 1, _MOST_ENTRIES)

    def clipped(self, rows: ArrayLike) -> Floats:
        """The rows, each shrunk until it meets both bounds."""
        array = np.atleast_2d(np.asarray(rows, dtype=np.float64))
        if array.ndim != 2 or not np.isfinite(array).all():
            raise InvalidValue("rows", rows, "rows of finite numbers")
        sizes = np.abs(array)
        excess = np.maximum(sizes.max(axis=1, initial=0.0), sizes.sum(axis=1) / self.sparsity) / self.scale
        return np.asarray(array / np.maximum(excess, 1.0)[:, None])

    def variance(self, rows: ArrayLike) -> Floats:
        """What rounding adds to each entry of each row: c |g_j| - g_j^2."""
        clipped = self.clipped(rows)
        return np.asarray(self.scale * np.abs(clipped) - clipped**2)

    def ternary(self, rows: ArrayLike, rng: Random) -> Ternary:
        """The rows, clipped and rounded to ternary vectors: what a device reports on.

        Example:
            >>> Gradients(scale=1.0, sparsity=2).ternary([[0.0, -1.0, 1.0]], Random(seed=1)).means().tolist()
            [0.0, -1.0, 1.0]
        """
        clipped = self.clipped(rows)
        # A rounding error may leave a size a last place above the scale, and a sum above s of them: cut, or shifted.
        chances = np.minimum(np.abs(clipped) / self.scale * GRAIN, GRAIN).astype(np.int64)
        ends = np.minimum(np.cumsum(chances, axis=1), self.sparsity * GRAIN)
        offset = rng.uint32(len(clipped)).astype(np.int64)[:, None]
        # How many grid points lie below each end: one more than below its beginning where the entry is chosen.
        points = (ends + offset) >> 32
        chosen = np.diff(points, axis=1, prepend=0) > 0
        return Ternary.dense(np.where(chosen, np.sign(clipped), 0.0).astype(np.int8))

    def estimate(self, means: Estimate) -> Estimate:
        """The mean gradient from a mechanism's estimate of the ternary means.

        Its variance is the mechanism's, and that of rounding: at most the spread of the ternary values among people,
        or, where the mechanism tells nothing of that, 1 - mean^2.

        Example:
            >>> means = Estimate([0.5], [1e-4], n=100, kind="quantity", spread=np.array([0.25]))
            >>> gradient = Gradients(scale=2.0, sparsity=1).estimate(means)
            >>> gradient.value.tolist(), gradient.variance.round(6).tolist()
            ([1.0], [0.0104])
        """
        if means.kind != "quantity":
            raise InvalidValue("means", means.kind, "means of a ternary mechanism")
        spread = means.spread if means.spread is not None else 1 - np.minimum(means.value**2, 1.0)
        rounding = np.asarray(spread, dtype=np.float64) / max(means.n, 1)
        return Estimate(
            self.scale * means.value,
            self.scale**2 * (means.variance + rounding),
            means.n,
            bias=means.bias,
            kind="quantity",
            labels=means.labels,
        )
