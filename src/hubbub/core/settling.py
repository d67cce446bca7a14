"""Rounding a device's vector: real values become signs, and entries beyond the allowed number are left out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.grid import GRAIN
from hubbub.core.hashing import hash32
from hubbub.core.ternary import INDEX_SHIFT

_CHANCE = 2 * GRAIN - 1
_CLIP = np.uint64(1 << 32)  # sets the hashes that choose entries apart from those that choose signs


def settle(entries: NDArray[np.int64], keys: NDArray[np.uint64], sparsity: int) -> NDArray[np.int64]:
    """The symbols of each row: 2 i for +1 at position i, 2 i + 1 for -1, in order, padded with -1.

    A row's 64 random bits (`keys`) decide everything, however many entries the row has, so that the number of bits
    drawn does not depend on the value. Their hash at a position is uniform over 32 bits: a real value v becomes +1 with
    probability (1+v)/2 exactly. Of more than `sparsity` entries, `sparsity` are drawn at random.
    """
    present = entries >= 0
    index, chance = np.where(present, entries >> INDEX_SHIFT, 0), entries & _CHANCE
    positive = chance == GRAIN
    if (present & ~positive & (chance != 0)).any():
        positive = hash32(keys[:, None], index) < chance
    symbols = np.where(present, 2 * index + ~positive, -1)
    crowded = np.flatnonzero(present.sum(axis=1) > sparsity)
    if crowded.size:
        symbols[crowded] = _subset(symbols[crowded], keys[crowded], sparsity)
    if symbols.shape[1] >= sparsity:
        return np.ascontiguousarray(symbols[:, :sparsity])
    return np.pad(symbols, ((0, 0), (0, sparsity - symbols.shape[1])), constant_values=-1)


def settled(entries: NDArray[np.int64], sparsity: int) -> NDArray[np.int64]:
    """The symbols of rows that need no random rounding; other rows are refused."""
    chance = (entries & _CHANCE)[entries >= 0]
    if ((chance != 0) & (chance != GRAIN)).any() or ((entries >= 0).sum(axis=1) > sparsity).any():
        raise InvalidValue("values", "rows that are rounded or cut", f"-1, 0 and 1, at most {sparsity} of them not 0")
    return settle(entries, np.zeros(len(entries), dtype=np.uint64), sparsity)


def _subset(symbols: NDArray[np.int64], keys: NDArray[np.uint64], sparsity: int) -> NDArray[np.int64]:
    """Rows with `sparsity` of their symbols, drawn at random, in front; the rest is -1."""
    place = symbols.astype(np.uint64) >> np.uint64(1) | _CLIP
    order = np.where(symbols < 0, np.int64(1) << 32, hash32(keys[:, None], place).astype(np.int64))
    last = np.argsort(order, axis=1, kind="stable")[:, sparsity:]
    chosen = symbols.copy()
    np.put_along_axis(chosen, last, np.iinfo(np.int64).max, axis=1)
    chosen.sort(axis=1)
    chosen[:, sparsity:] = -1
    return chosen
