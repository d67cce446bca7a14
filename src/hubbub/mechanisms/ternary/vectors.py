"""Sparse ternary vectors and key-value data in batches, and the rounding of real vectors to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from hubbub.core.domain.base import Values
from hubbub.core.errors import InvalidValue
from hubbub.core.hashing import mix32
from hubbub.core.reports import Array, Floats, Ints, Words
from hubbub.random.integers import GRAIN, to_units
from hubbub.random.source import Random

MOST_DIMENSION = 1 << 24
"""The longest vector: a sketch of two counts an entry is then 256 MiB."""
INDEX_SHIFT = 33
"""An entry is one integer: its position, and below it the chance of +1 in units of 2^-32, from 0 to 2^32."""
_TERNARY = "-1, 0 or 1"
_PAIRED = "numbers from -1 to 1"


class Clipping(NamedTuple):
    """The effect of clipping rows to a number of entries: rows clipped, the share of entries lost, the bias of each
    mean."""

    rows: int
    lost: float
    bias: Floats


class Ternary:
    """A batch of vectors over {-1, 0, 1}, kept as their entries that are not zero.

    A key held with a real value v from -1 to 1 is an entry too. A device rounds it to +1 with probability (1+v)/2 and
    to -1 otherwise, without bias. A key held with the value 0 is therefore still held, unlike a missing key.

    Example:
        >>> batch = Ternary.dense([[0, 1, 0], [-1, 0, 1]])
        >>> len(batch), batch.means().tolist(), batch.frequencies().tolist()
        (2, [-0.5, 0.5, 0.5], [0.5, 0.5, 0.5])
    """

    __slots__ = ("dimension", "entries")

    def __init__(self, entries: Ints, dimension: int) -> None:
        self.entries = entries.view()  # a row each, in order of position, filled up with -1
        self.entries.flags.writeable = False
        self.dimension = dimension

    @staticmethod
    def dense(rows: ArrayLike) -> Ternary:
        """From rows of -1, 0 and 1; a single row is a batch of one.

        Example:
            >>> Ternary.dense(np.array([[0, -1], [0, 0]], dtype=np.int8)).means().tolist()
            [0.0, -0.5]
        """
        array = np.atleast_2d(_array(rows))
        if array.ndim != 2 or array.dtype.kind not in "iuf":
            raise InvalidValue("values", rows, "rows of -1, 0 and 1")
        check_ternary(array)
        _check_dimension(array.shape[1])
        row, key = np.nonzero(array)
        return Ternary(_padded(row, key, np.where(array[row, key] > 0, GRAIN, 0), len(array)), array.shape[1])

    @staticmethod
    def sparse(index: ArrayLike, sign: ArrayLike, *, dimension: int) -> Ternary:
        """From positions and signs, a row each; a position of -1 means none.

        Example:
            >>> Ternary.sparse([[2, 0], [1, -1]], [[1, -1], [1, 0]], dimension=3).means().tolist()
            [-0.5, 0.5, 0.5]
        """
        positions, signs = np.atleast_2d(_array(index)), np.atleast_2d(_array(sign))
        if positions.shape != signs.shape or positions.ndim != 2 or positions.dtype.kind not in "iu":
            raise InvalidValue("index", positions.shape, f"rows of integers, as many as signs: {signs.shape}")
        row, column = np.nonzero(positions != -1)
        chosen = signs[row, column]
        if chosen.dtype.kind not in "iuf" or not ((chosen == 1) | (chosen == -1)).all():
            raise InvalidValue("sign", signs, "-1 or 1 for every position")
        return _gathered(row, positions[row, column], chosen, len(positions), dimension)

    @staticmethod
    def pairs(people: Iterable[Mapping[int, float]], *, dimension: int) -> Ternary:
        """From a mapping of keys to values from -1 to 1 for each person.

        Example:
            >>> Ternary.pairs([{0: 1, 2: -0.5}, {}], dimension=3).means().tolist()
            [0.5, 0.0, -0.25]
        """
        everyone = list(people)
        identities = list(map(id, everyone))
        distinct = dict(zip(identities, everyone, strict=True))  # a population repeats a few rows: read each once
        for person in distinct.values():
            if not isinstance(person, Mapping):
                raise InvalidValue("values", person, "a mapping of keys to values for each person")
        keys = [key for person in distinct.values() for key in person]
        values = [value for person in distinct.values() for value in person.values()]
        row = np.repeat(np.arange(len(distinct)), [len(person) for person in distinct.values()])
        batch = _gathered(row, _array(keys, np.int64), _array(values, np.float64), len(distinct), dimension)
        if len(distinct) == len(everyone):
            return batch
        number = {identity: k for k, identity in enumerate(distinct)}
        return Ternary(batch.entries[[number[identity] for identity in identities]], dimension)

    @staticmethod
    def columns(
        key: ArrayLike, value: ArrayLike, *, dimension: int, person: ArrayLike | None = None, n: int | None = None
    ) -> Ternary:
        """From a column of keys and one of values: of one person, or of n, with a column that says whose they are.

        Example:
            >>> Ternary.columns([0, 1, 1], [1, -1, 1], person=[0, 0, 2], n=4, dimension=2).frequencies().tolist()
            [0.25, 0.5]
        """
        keys, values = _array(key, np.int64), _array(value, np.float64)
        whose = np.zeros(keys.size, dtype=np.int64) if person is None else _array(person, np.int64)
        count = n if n is not None else 1 if person is None else int(whose.max(initial=-1)) + 1
        if whose.dtype.kind not in "iu" or not keys.shape == values.shape == whose.shape == (keys.size,):
            raise InvalidValue("person", whose.shape, f"columns of one length, {keys.shape}")
        if whose.size and not (whose.min() >= 0 and whose.max() < count):
            raise InvalidValue("person", whose, f"integers from 0 to {count - 1}")
        return _gathered(whose, keys, values, count, dimension)

    @staticmethod
    def rounded(rows: ArrayLike, rng: Random) -> Ternary:
        """From rows of real numbers v from -1 to 1. Each becomes its sign with probability |v|, and 0 otherwise:
        unbiased.

        For gradients and the like, where a small number matters little. (For key-value data see `pairs`.)

        Example:
            >>> batch = Ternary.rounded(np.full((10_000, 2), [0.25, -1.0]), Random(seed=1))
            >>> batch.means().round(2).tolist()
            [0.25, -1.0]
        """
        array = np.atleast_2d(_array(rows))
        if array.ndim != 2 or array.dtype.kind not in "iuf":
            raise InvalidValue("rows", rows, "rows of numbers from -1 to 1")
        chance = to_units(np.abs(array).ravel(), 0.0, 1.0, 1).reshape(array.shape)
        nonzero = rng.uint32(*array.shape) < chance
        return Ternary.dense(np.where(nonzero, np.sign(array), 0).astype(np.int8))

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Ternary]:
        return (self[row : row + 1] for row in range(len(self)))

    def __getitem__(self, rows: slice | Array) -> Ternary:
        return Ternary(self.entries[rows], self.dimension)

    def __repr__(self) -> str:
        return f"Ternary(n={len(self)}, dimension={self.dimension})"

    def means(self) -> Floats:
        """The true mean of every position."""
        key, value, _ = self._flat()
        return np.bincount(key, weights=value, minlength=self.dimension) / max(len(self), 1)

    def frequencies(self) -> Floats:
        """The share of rows that hold something at every position."""
        return np.bincount(self._flat()[0], minlength=self.dimension) / max(len(self), 1)

    def clipping(self, sparsity: int) -> Clipping:
        """The effect of clipping: a device with more than `sparsity` entries reports `sparsity` of them, drawn at
        random.

        Example:
            >>> Ternary.dense([[1, 1, 1, 1], [1, 0, 0, 0]]).clipping(2)
            Clipping(rows=1, lost=0.4, bias=array([-0.25, -0.25, -0.25, -0.25]))
        """
        key, value, sizes = self._flat()
        lost = np.maximum(1 - sparsity / np.maximum(sizes, 1), 0.0)
        bias = -np.bincount(key, weights=value * lost, minlength=self.dimension) / max(len(self), 1)
        rows = int(np.count_nonzero((self.entries >= 0).sum(axis=1) > sparsity))
        return Clipping(rows, float(lost.sum() / max(key.size, 1)), bias + 0.0)

    def _flat(self) -> tuple[Ints, Floats, Ints]:
        """The position and the value of every entry, and how many entries its row has."""
        present = self.entries >= 0
        flat = self.entries[present]
        sizes = np.broadcast_to(present.sum(axis=1)[:, None], present.shape)[present]
        return flat >> INDEX_SHIFT, (flat & (2 * GRAIN - 1)) / (GRAIN / 2) - 1, sizes


def as_ternary(values: Values, dimension: int) -> Ternary:
    """Read a batch in any of its forms: rows, a mapping for each person, or a `Ternary`."""
    if isinstance(values, Mapping):
        values = [values]
    if isinstance(values, Sequence) and not isinstance(values, str | bytes):
        if not values:
            return Ternary(np.empty((0, 0), dtype=np.int64), dimension)
        if isinstance(values[0], Mapping):
            return Ternary.pairs(values, dimension=dimension)
    elif not isinstance(values, Ternary | np.ndarray):
        raise InvalidValue("values", values, f"rows of {dimension} entries, or a mapping for each person")
    batch = values if isinstance(values, Ternary) else Ternary.dense(values)
    if batch.dimension != dimension:
        raise InvalidValue("values", f"rows of {batch.dimension} entries", f"rows of {dimension}")
    return batch


def check_ternary(array: Array) -> None:
    """Refuse numbers other than -1, 0 and 1."""
    if array.dtype.kind in "iu":
        odd = (array > 1) | (array < -1) if array.size and (array.max() > 1 or array.min() < -1) else None
    else:
        odd = ~((array == 0) | (array == 1) | (array == -1))  # NaN is none of them
    if odd is not None and odd.any():
        raise InvalidValue("values", array[odd][0].item(), _TERNARY)


def _gathered(row: Ints, key: Array, value: Array, n: int, dimension: int) -> Ternary:
    """A batch from entries in any order, checked."""
    _check_dimension(dimension)
    if key.dtype.kind not in "iu" or key.ndim != 1:
        raise InvalidValue("keys", key, f"integers from 0 to {dimension - 1}")
    outside = (key < 0) | (key >= dimension)
    if outside.any():
        raise InvalidValue("keys", key[outside][0].item(), f"integers from 0 to {dimension - 1}")
    if value.dtype.kind not in "iuf" or value.shape != key.shape:
        raise InvalidValue("values", value, _PAIRED)
    order = np.lexsort((key, row))
    row, key = row[order], key[order].astype(np.int64)
    twice = (row[1:] == row[:-1]) & (key[1:] == key[:-1])
    if twice.any():
        raise InvalidValue("keys", key[1:][twice][0].item(), "keys that differ from each other")
    return Ternary(_padded(row, key, to_units(value[order], -1.0, 1.0, 1), n), dimension)


def _padded(row: Ints, key: Ints, chance: Ints, n: int) -> Ints:
    counts = np.bincount(row, minlength=n)
    entries = np.full((n, int(counts.max(initial=0))), -1, dtype=np.int64)
    starts = np.cumsum(counts) - counts
    entries[row, np.arange(row.size) - starts[row]] = key << INDEX_SHIFT | chance
    return entries


def _array(values: ArrayLike, empty: DTypeLike = np.int64) -> Array:
    try:
        array = np.asarray(values)
    except (ValueError, TypeError):  # rows of different lengths, or no numbers at all
        raise InvalidValue("values", values, "numbers") from None
    return array if array.size else array.astype(empty)


def _check_dimension(dimension: object) -> None:
    if (
        isinstance(dimension, bool)
        or not isinstance(dimension, int | np.integer)
        or not 1 <= dimension <= MOST_DIMENSION
    ):
        raise InvalidValue("dimension", dimension, f"an integer from 1 to {MOST_DIMENSION}")


_CHANCE = 2 * GRAIN - 1
_CLIP = np.uint64(1 << 32)  # sets the hashes that choose entries apart from those that choose signs


def symbols_of_rows(entries: Ints, keys: Words, sparsity: int) -> Ints:
    """The symbols of each row: 2 i for +1 at position i, 2 i + 1 for -1, in order, padded with -1.

    A row's 64 random bits (`keys`) decide everything, however many entries the row has, so that the number of bits
    drawn does not depend on the value. Their hash at a position is uniform over 32 bits: a real value v becomes +1 with
    probability (1+v)/2 exactly. Of more than `sparsity` entries, `sparsity` are drawn at random.
    """
    present = entries >= 0
    index, chance = np.where(present, entries >> INDEX_SHIFT, 0), entries & _CHANCE
    positive = chance == GRAIN
    if (present & ~positive & (chance != 0)).any():
        positive = mix32(keys[:, None], index) < chance
    symbols = np.where(present, 2 * index + ~positive, -1)
    crowded = np.flatnonzero(present.sum(axis=1) > sparsity)
    if crowded.size:
        symbols[crowded] = _subset(symbols[crowded], keys[crowded], sparsity)
    if symbols.shape[1] >= sparsity:
        return np.ascontiguousarray(symbols[:, :sparsity])
    return np.pad(symbols, ((0, 0), (0, sparsity - symbols.shape[1])), constant_values=-1)


def exact_symbols(entries: Ints, sparsity: int) -> Ints:
    """The symbols of rows that need no random rounding; other rows are refused."""
    chance = (entries & _CHANCE)[entries >= 0]
    if ((chance != 0) & (chance != GRAIN)).any() or ((entries >= 0).sum(axis=1) > sparsity).any():
        raise InvalidValue("values", "rows that are rounded or cut", f"-1, 0 and 1, at most {sparsity} of them not 0")
    return symbols_of_rows(entries, np.zeros(len(entries), dtype=np.uint64), sparsity)


def _subset(symbols: Ints, keys: Words, sparsity: int) -> Ints:
    """Rows with `sparsity` of their symbols, drawn at random, in front; the rest is -1."""
    place = symbols.astype(np.uint64) >> np.uint64(1) | _CLIP
    order = np.where(symbols < 0, np.int64(1) << 32, mix32(keys[:, None], place).astype(np.int64))
    last = np.argsort(order, axis=1, kind="stable")[:, sparsity:]
    chosen = symbols.copy()
    np.put_along_axis(chosen, last, np.iinfo(np.int64).max, axis=1)
    chosen.sort(axis=1)
    chosen[:, sparsity:] = -1
    return chosen
