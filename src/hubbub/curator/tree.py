"""The hierarchy that publishes clipped values: its noise, and the variance of every range."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Ints
from hubbub.kernels.curator import FINE, make_consistent
from hubbub.random.integers import ceil_div
from hubbub.random.noise import MOST_SCALE, laplace_cells, laplace_variance
from hubbub.random.source import Random

_MOST_CELLS = 1 << 20  # a threshold is divided into at most this number of cells


@dataclass(frozen=True, kw_only=True)
class NoiseTree:
    """A tree of sums with discrete Laplace noise on every node, made consistent.

    A value is a number of cells, 0 to `cells`, and is in one node of each layer: changing it moves each of these nodes
    by at most `cells`, so noise of scale t on every node costs exactly layers cells / t.

    `epsilon`: the budget of a value, divided equally among the layers. `fan_out`, `layers`: children of a node; layers
    from the root to the leaves.

    References
    ----------
    T. Wang et al., 2021, section 3.4 and appendix C; Hay et al., 2010.
    """

    epsilon: Fraction
    fan_out: int = 16
    layers: int = 5

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", Fraction(self.epsilon))
        if ceil_div(self.layers, self.epsilon) > MOST_SCALE:
            raise InvalidValue("epsilon", float(self.epsilon), f"at least {self.layers}/{MOST_SCALE}")

    @cached_property
    def cells(self) -> int:
        """The number of cells into which the threshold is divided."""
        cells = _MOST_CELLS
        while ceil_div(cells * self.layers, self.epsilon) > MOST_SCALE:
            cells //= 2
        return cells

    @property
    def scale(self) -> int:
        """The scale of the noise on a node, in cells."""
        return ceil_div(self.cells * self.layers, self.epsilon)

    @property
    def effective_epsilon(self) -> Fraction:
        """The exact cost of publishing a value in the tree."""
        return Fraction(self.cells * self.layers, self.scale)

    @property
    def leaves(self) -> int:
        return int(self.fan_out ** (self.layers - 1))

    @property
    def nodes(self) -> int:
        return int((self.fan_out**self.layers - 1) // (self.fan_out - 1))

    def raw_noise(self, rng: Random) -> Ints:
        """Independent noise of every node, the root first, in parts of a cell (`FINE` of them)."""
        return laplace_cells(self.nodes, self.scale, rng) * FINE

    def noise(self, rng: Random) -> Ints:
        """Consistent noise of every leaf, in parts of a cell."""
        return make_consistent(self.raw_noise(rng), self.fan_out, self.layers).copy()

    def node_variance(self) -> float:
        """The variance of the noise on a node, as a multiple of the squared threshold."""
        return laplace_variance(self.scale) / self.cells**2

    def range_variance(self, first: int, last: int) -> float:
        """The variance of the noise of leaves from `first` up to, without, `last`, in node variances."""
        if not 0 <= first <= last <= self.leaves:
            raise InvalidValue("range", (first, last), f"leaves from 0 to {self.leaves}")
        share, rest = self._inside(first, last, self.layers)
        return share**2 * self._root_variance(self.layers) + rest

    def row_variance(self, first: int, last: int) -> float:
        """The variance of a range of leaves in a sequence of trees; see `range_variance`."""
        leaves, total = self.leaves, 0.0
        whole = range(-(-first // leaves), last // leaves)
        if len(whole) > 0:
            total = len(whole) * self.range_variance(0, leaves)
            ends = [(first, whole.start * leaves), (whole.stop * leaves, last)]
        elif first // leaves == (last - 1) // leaves:
            ends = [(first, last)]
        else:
            ends = [(first, last // leaves * leaves), (last // leaves * leaves, last)]
        for start, stop in ends:
            if start < stop:
                total += self.range_variance(start % leaves, start % leaves + stop - start)
        return total

    def _root_variance(self, height: int) -> float:
        """The variance of the consistent root of a tree."""
        variance = 1.0
        for _ in range(height - 1):
            variance = 1 / (1 + 1 / (self.fan_out * variance))
        return variance

    def _inside(self, first: int, last: int, height: int) -> tuple[float, float]:
        """A range's noise as a share of its node's, and the variance of the rest, which does not depend on the node."""
        width = self.fan_out ** (height - 1)
        if last - first in (0, width):
            return (last - first) / width, 0.0
        child = width // self.fan_out
        weights = weights_squared = rest = 0.0
        start = first
        while start < last:
            place = start // child * child
            stop = min(place + child, last)
            if stop - start == child:  # all whole children at once
                whole = (last - start) // child
                share, more, stop, times = 1.0, 0.0, start + whole * child, whole
            else:
                share, more = self._inside(start - place, stop - place, height - 1)
                times = 1
            weights += times * share
            weights_squared += times * share**2
            rest += more
            start = stop
        own = self._root_variance(height - 1) * (weights_squared - weights**2 / self.fan_out)
        return weights / self.fan_out, own + rest
