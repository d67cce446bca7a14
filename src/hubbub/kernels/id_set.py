"""A set of 128-bit ids that tells which of the ids added to it were there before."""

import os

import numpy as np

from hubbub.core.reports import Bools, Words
from hubbub.kernels.compile import inline, kernel, readonly

_FIRST = 1 << 12  # slots


class IdSet:
    """Ids that were seen, in a hash table at most half full; whoever chooses ids does not know its key.

    Example:
        >>> ids = IdSet()
        >>> ids.add(np.array([[1, 2], [1, 3], [1, 2]], dtype=np.uint64)).tolist()
        [False, False, True]
        >>> ids.add(np.array([[1, 3], [0, 0]], dtype=np.uint64)).tolist()
        [True, False]
    """

    def __init__(self) -> None:
        self._key = np.frombuffer(os.urandom(24), dtype=np.uint64) | np.uint64(1)
        self._slots = np.zeros((_FIRST, 2), dtype=np.uint64)
        self._used = np.zeros(_FIRST, dtype=np.uint8)
        self._number = 0

    def __len__(self) -> int:
        return self._number

    def add(self, ids: Words) -> Bools:
        """Add ids of two words each. Returns which of them were there, or stood earlier among them."""
        while 2 * (self._number + len(ids)) > len(self._used):
            slots, used = self._slots, self._used
            self._slots = np.zeros((2 * len(used), 2), dtype=np.uint64)
            self._used = np.zeros(2 * len(used), dtype=np.uint8)
            _add(
                readonly(slots[used > 0], np.uint64), self._key, self._slots, self._used, np.zeros(len(used), np.bool_)
            )
        repeated = np.zeros(len(ids), dtype=np.bool_)
        self._number += _add(readonly(ids, np.uint64), self._key, self._slots, self._used, repeated)
        return repeated


@inline
def _place(first, second, key):
    mixed = (first ^ (first >> np.uint64(32))) * key[0] + (second ^ (second >> np.uint64(32))) * key[1]
    mixed = (mixed ^ (mixed >> np.uint64(29))) * key[2]
    return mixed ^ (mixed >> np.uint64(32))


@kernel
def _add(ids, key, slots, used, repeated):
    last = np.uint64(len(used) - 1)
    added = np.int64(0)
    for row in range(len(ids)):
        first, second = ids[row, 0], ids[row, 1]
        at = _place(first, second, key) & last
        while used[at] and (slots[at, 0] != first or slots[at, 1] != second):
            at = (at + np.uint64(1)) & last
        if used[at]:
            repeated[row] = True
        else:
            used[at], slots[at, 0], slots[at, 1] = 1, first, second
            added += 1
    return added
