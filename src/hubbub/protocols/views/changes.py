"""The view of a stream of changes: how a value changed from one interval to the next, at one level of the tree."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.core.domain.base import Values
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.reports import Array
from hubbub.mechanisms.ternary.vectors import MOST_DIMENSION, Ternary
from hubbub.protocols.views.basic import View

Bits = NDArray[np.int8]


@dataclass(frozen=True)
class Changes(View):
    """The residues of one level: the change of each entry of a 0/1 vector since the last node, at first from 0.

    At most `changes` residues are not 0, whatever the value does: the privacy promise rests on this. A device counts
    the changes that it has reported, and treats its value as constant once `changes` of them are used up. Several
    changes of one step are taken in the order of the entries; a category changes as a whole or not at all. Only the
    value at the end of a node matters, not the changes within the node.

    `one`: whether the value is one of `dimension` categories, given by its number: one entry is 1, and none before the
    first. A number out of range means that nothing was recorded, and the last category stays.
    """

    span: int
    steps: int
    dimension: int
    changes: int
    one: bool = False

    def __post_init__(self) -> None:
        for name, high in (("steps", MOST_DIMENSION), ("dimension", MOST_DIMENSION), ("changes", MOST_DIMENSION)):
            check_integer(name, getattr(self, name), 1, high)
        check_integer("span", self.span, 1, self.steps)
        if not isinstance(self.one, bool):
            raise InvalidValue("one", self.one, "true or false")
        if self.entries > MOST_DIMENSION:
            raise InvalidValue("steps", self.steps, f"at most {MOST_DIMENSION // self.dimension * self.span}")

    @property
    def nodes(self) -> int:
        """How many nodes the level has."""
        return self.steps // self.span

    @property
    def entries(self) -> int:
        """How many residues there are: d T_h."""
        return self.dimension * self.nodes

    @property
    def sparsity(self) -> int:
        """How many residues can differ from 0. Of a category it is odd: one residue at first, then two at a time."""
        if self.one:
            return min(self.changes - (self.changes + 1) % 2, 2 * self.nodes - 1, self.entries)
        return min(self.changes, self.entries)

    def bits(self, values: ArrayLike) -> Bits:
        """The 0/1 vectors of a batch of values at one step, a row for each device.

        Values are codes if `one`, and vectors otherwise.
        """
        array = np.asarray(values)
        if self.one:
            if array.ndim != 1 or array.dtype.kind not in "iu":
                raise InvalidValue("values", values, f"codes from 0 to {self.dimension - 1}, one per device")
            # Codes of one byte are compared as bytes, which is several times as fast.
            dtype = array.dtype if self.dimension <= np.iinfo(array.dtype).max else np.int64
            return np.asarray(array[:, None] == np.arange(self.dimension, dtype=dtype)).view(np.int8)
        rows = array[:, None] if array.ndim == 1 and self.dimension == 1 else array
        if rows.ndim != 2 or rows.shape[1] != self.dimension or rows.dtype.kind not in "biuf":
            raise InvalidValue("values", values, f"rows of {self.dimension} entries, 0 or 1, one per device")
        if not ((rows == 0) | (rows == 1)).all():  # NaN is neither
            raise InvalidValue("values", rows[(rows != 0) & (rows != 1)][0].item(), "0 or 1")
        return rows.astype(np.int8)

    def follow(self, reported: Bits, used: NDArray[np.int32], values: Bits) -> tuple[Bits, NDArray[np.int32]]:
        """Change the reported vectors to the present values, as far as the allowed number of changes permits.

        Takes the vectors as reported so far and how many changes that took; returns both after the node.
        """
        differs = values != reported
        if self.one:
            cost = differs.sum(axis=1, dtype=np.int32)
            moves = values.any(axis=1) & (used + cost <= self.changes)  # as a whole, or not at all
            return np.where(moves[:, None], values, reported), used + cost * moves
        if self.dimension == 1:
            differs &= (used < self.changes)[:, None]
            return reported ^ differs, used + differs[:, 0]
        moves = differs & (np.cumsum(differs, axis=1, dtype=np.int32) <= (self.changes - used)[:, None])
        return np.where(moves, values, reported), used + moves.sum(axis=1, dtype=np.int32)

    def __call__(self, values: Values) -> Ternary:
        """The residues of whole histories: a row for each device, with its value at every step as `bits` reads it."""
        histories = np.asarray(values)
        if histories.ndim < 2 or histories.shape[1] != self.steps:
            raise InvalidValue("values", histories.shape, f"a history of {self.steps} steps for each device")
        return Ternary.dense(self.residues(histories[:, self.span - 1 :: self.span]))

    def residues(self, at_nodes: Array) -> Bits:
        """The residues of devices whose values at the ends of the nodes are given, a column for each node."""
        n = len(at_nodes)
        before, used = np.zeros((n, self.dimension), dtype=np.int8), np.zeros(n, dtype=np.int32)
        residues = np.empty((n, self.nodes, self.dimension), dtype=np.int8)
        for node in range(self.nodes):
            after, used = self.follow(before, used, self.bits(at_nodes[:, node]))
            residues[:, node], before = after - before, after
        return residues.reshape(n, self.entries)


def members(sets: Iterable[Sequence[int]], dimension: int) -> Bits:
    """Sets of items, numbered from 0, as 0/1 vectors: a row for each set."""
    batch = list(sets)
    rows = np.zeros((len(batch), dimension), dtype=np.int8)
    for row, items in zip(rows, batch, strict=True):
        for item in items:
            if isinstance(item, bool) or not isinstance(item, int | np.integer) or not 0 <= item < dimension:
                raise InvalidValue("sets", item, f"items from 0 to {dimension - 1}")
            row[item] = 1
    return rows
