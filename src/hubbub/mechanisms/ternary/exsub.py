"""ExSub, exclusive subsets: a report is m positions with a sign each, more often with a true sign among them.

The arithmetic of exclusive subsets: the chance that a random signed set misses a vector, and the best set size.

A set of m of D positions with a fair sign each meets the vector's s entries in J positions, hypergeometric, and misses
all of their signs with probability q = E[2^-J]. Everything about ExSub follows from q, at (D, s, m) and one less.

Online, a device reports the entries of ExSub or NetSub as they come, and keeps five integers in between.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.core.errors import DecodeError, InvalidValue, SpecMismatch
from hubbub.core.reports import Array, Ints, Sketch
from hubbub.mechanisms.ternary.selection import COUNTERS
from hubbub.mechanisms.ternary.signed_sets import SignedSets
from hubbub.mechanisms.ternary.ternary import Quantity
from hubbub.mechanisms.ternary.vectors import check_ternary
from hubbub.mechanisms.weights import search_power
from hubbub.random.source import Random


def miss_chance(positions: int, entries: int, size: int) -> Fraction:
    """The exact chance that a random signed set of `size` positions holds none of the entries."""
    # C(D-s, m-j)/C(D, m) is a quotient of products of s factors, however large m is.
    whole = sum(
        math.comb(entries, j) * math.perm(size, j) * math.perm(positions - size, entries - j) << entries - j
        for j in range(min(entries, size) + 1)
    )
    return Fraction(whole, math.perm(positions, entries) << entries)


def best_size(epsilon: float, positions: int, entries: int, *, of: Quantity = "mean") -> int:
    """The size m of sets with the smallest mean squared error over all positions (Lemma B.1), by bisection.

    The paper's ceil(D/((e^eps+1) s + 2)) is about half of it, and costs 4 to 48% more error.
    """
    low, high = 1, positions - 1
    while low < high:  # the error falls, and then rises
        middle = (low + high) // 2
        if error_of(epsilon, positions, entries, middle, of) <= error_of(epsilon, positions, entries, middle + 1, of):
            high = middle
        else:
            low = middle + 1
    return low


def error_of(epsilon: float, positions: int, entries: int, size: int, of: Quantity) -> float:
    """The squared error over all positions from sets of a size, by floats: what the search compares."""
    gain = 1 - 1 / search_power(epsilon)
    missed = _miss_chance(positions, entries, size)
    held_other = gain * _miss_chance(positions - 1, entries - 1, size - 1)
    none_there = gain * _miss_chance(positions - 1, entries, size - 1)
    true = size / (2 * positions) / (1 - gain * missed)
    both, false = true * (2 - held_other), true * (1 - none_there)
    if of == "mean":
        gap = true * held_other
        return (entries * (both - gap**2) + (positions - entries) * 2 * false) / gap**2
    gap = true * (2 * none_there - held_other)
    return (entries * both * (1 - both) + (positions - entries) * 2 * false * (1 - 2 * false)) / gap**2


def _miss_chance(positions: int, entries: int, size: int) -> float:
    """`miss_chance` in floats: the hypergeometric weights one from the other, each right to a few last places."""
    first = max(0, entries + size - positions)
    j = np.arange(first, min(entries, size), dtype=np.float64)
    steps = np.log((entries - j) * (size - j)) - np.log((j + 1) * (positions - entries - size + j + 1))
    logs = np.concatenate([[0.0], np.cumsum(steps)])
    weights = np.exp(logs - logs.max())
    return float((weights * 0.5 ** np.arange(first, first + weights.size)).sum() / weights.sum())


@dataclass(frozen=True, kw_only=True)
class ExSub(SignedSets):
    """Means of sparse ternary vectors with a small error at any epsilon; entries can be reported as they come.

    A set that holds a true sign has the weight 1, one that misses them all e^-eps (`SignedSets` has the rest). Rates:
    section 5.4 of the paper, with D everywhere. Of means `NetSub` has a smaller error; of frequencies ExSub has.

    Parameters
    ----------
    epsilon
        What one report may spend.
    dimension, sparsity
        The length d of the vectors, and how many entries s of one may differ from 0.
    m
        How many positions a report says, fewer than d + s; 0 chooses the number with the smallest error of the mean.
        For frequencies take `ExSub.best_for("frequency", ...)`: with one entry and a small epsilon, what is best for
        the mean (nearly every position) tells next to nothing of frequencies.
    bits, least
        A set that misses has the weight `least` where others have 2^bits, at least e^-eps of it; 0 chooses them.

    Example:
        >>> from hubbub import Random
        >>> exsub = ExSub(epsilon=2.0, dimension=16, sparsity=2)
        >>> reports = exsub.randomize([{3: 1, 5: -1}] * 20_000, Random(seed=1))
        >>> exsub.estimate(exsub.accumulate(reports)).value.round(1)[[3, 5]].tolist(), exsub.m
        ([1.0, -1.0], 2)

    References
    ----------
    S. Wang, Li, Xin et al., 2023, section 5 (Definition 5.1, Algorithm 3, Proposition 5.2, Lemma B.1).
    """

    key_value: ClassVar[Literal["no", "named", "chosen"]] = "chosen"

    def _choose(self) -> None:
        if self.m == 0:
            self._set("m", best_size(self.epsilon, self.positions, self.sparsity))
        self._integer("m", 1, self.positions - 1)

    @classmethod
    def best_for(cls, of: Quantity, *, epsilon: float, dimension: int, sparsity: int) -> Self:
        if of == "mean":
            return cls(epsilon=epsilon, dimension=dimension, sparsity=sparsity)
        cls(epsilon=epsilon, dimension=dimension, sparsity=sparsity, m=1)  # refuses an invalid setting
        m = best_size(epsilon, dimension + sparsity, sparsity, of="frequency")
        return cls(epsilon=epsilon, dimension=dimension, sparsity=sparsity, m=m)

    def prefers(self, trues: Any, reverses: Any) -> Any:
        return trues > 0

    def share(self, positions: int, entries: int, size: int, *, trues: int = 0, reverses: int = 0) -> Fraction:
        return Fraction(1) if trues else 1 - miss_chance(positions, entries, size)

    def _both(self) -> Fraction:
        # Of two vectors, the opposite ones share the fewest sets: a set that holds a sign of neither must miss every
        # position of theirs, where of two disjoint ones it may hold reversed signs.
        preferred = self.share(self.positions, self.sparsity, self.m)
        d, s, m = self.positions, self.sparsity, self.m
        return 2 * preferred - 1 + Fraction(math.perm(d - m, s), math.perm(d, s))

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=math.log(2), dimension=2, sparsity=1, m=2)
        yield cls(epsilon=1.0, dimension=4, sparsity=2, m=2)
        yield cls(epsilon=1.0, dimension=40, sparsity=4)


_KIND = "online exsub"


@dataclass(frozen=True, eq=False)
class OnlineState:
    """The state of devices between timestamps: five counters each. It reveals values, and never leaves the device.

    Parameters
    ----------
    spec_id
        The mechanism of the state.
    counters
        One row per device: true, reversed signs and signs of zeros still to be reported; entries and zeros to come.

    Example:
        >>> from hubbub import ExSub
        >>> state = OnlineExSub(ExSub(epsilon=1.0, dimension=6, sparsity=2)).start(1, Random(seed=1))
        >>> OnlineState.from_bytes(state.to_bytes()) == state, len(state)
        (True, 1)
    """

    spec_id: str
    counters: NDArray[np.int32]

    def __post_init__(self) -> None:
        self.counters.flags.writeable = False

    def __len__(self) -> int:
        return len(self.counters)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OnlineState):
            return NotImplemented
        return self.spec_id == other.spec_id and np.array_equal(self.counters, other.counters)

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, devices: slice | Array) -> OnlineState:
        return OnlineState(self.spec_id, self.counters[devices])

    @property
    def to_come(self) -> Ints:
        """How many entries are still to come, stubs included."""
        return self.counters[:, 3].astype(np.int64) + self.counters[:, 4]

    def to_bytes(self) -> bytes:
        """The state as a device stores it."""
        return msgspec.msgpack.encode((_KIND, self.spec_id, self.counters.astype("<i4").tobytes()))

    @staticmethod
    def from_bytes(data: bytes) -> OnlineState:
        """Read a state back; anything else is refused."""
        try:
            kind, spec_id, raw = msgspec.msgpack.decode(data, type=tuple[str, str, bytes])
        except (msgspec.DecodeError, UnicodeDecodeError):
            kind, spec_id, raw = "", "", b""
        if kind != _KIND or len(raw) % (4 * len(COUNTERS)):
            raise DecodeError("state", data[:40], "the bytes of an online state")
        counters = np.frombuffer(raw, dtype="<i4").astype(np.int32).reshape(-1, len(COUNTERS))
        signs, falses, to_come = counters[:, :2].sum(axis=1), counters[:, 2], counters[:, 3:]
        if (counters < 0).any() or (signs > to_come[:, 0]).any() or (falses > to_come[:, 1]).any():
            raise DecodeError("state", data[:40], "counters that a device can reach")
        return OnlineState(spec_id, counters)


@dataclass(frozen=True)
class OnlineExSub:
    """ExSub or NetSub, a timestamp at a time: all reported signs together have the distribution of one report.

    The mechanism's `dimension` is the length of the whole stream, d entries a timestamp. How many true and reversed
    signs are reported in all is drawn at the start; each entry is decided as it comes (Algorithm 4, which as printed
    counts down before it compares, and breaks privacy). The stubs, at the end, need not be reported. Entries past
    `sparsity` count as zeros: a device that must not lose them holds its value constant instead. Timestamps that a
    device missed are passed with `skip`; the signs that it does not report there draw estimates toward zero.

    Parameters
    ----------
    mechanism
        The ExSub, or the NetSub, that the server estimates with.

    Example:
        >>> from hubbub import ExSub
        >>> online = OnlineExSub(ExSub(epsilon=2.0, dimension=4, sparsity=1))
        >>> rng, devices = Random(seed=1), 20_000
        >>> state, sketch = online.start(devices, rng), online.enrolled(devices)
        >>> for step in range(2):  # two entries a timestamp: [1, 0], then [0, 0]
        ...     state, signs = online.step(state, np.tile([1 - step, 0], (devices, 1)), rng)
        ...     sketch = sketch + online.count(signs, 2 * step)
        >>> online.mechanism.estimate(sketch).value.round(1).tolist()[0]
        1.0

    References
    ----------
    S. Wang, Li, Xin et al., 2023, section 5.3.
    """

    mechanism: SignedSets

    def start(self, n: int, rng: Random) -> OnlineState:
        """The state of n devices before their first entry: drawn without looking at any value."""
        return OnlineState(self.mechanism.spec_id, self.mechanism.counters(rng.uint64(n), rng))

    def step(self, state: OnlineState, values: ArrayLike, rng: Random) -> tuple[OnlineState, NDArray[np.int8]]:
        """The signs that each device reports of its next entries, 0 for none, and its state after them.

        One row per device, any number of entries; a single row is one device.
        """
        entries = np.atleast_2d(np.asarray(values))
        if entries.ndim != 2 or len(entries) != len(state) or entries.dtype.kind not in "iuf":
            raise InvalidValue("values", np.shape(values), f"{len(state)} rows of -1, 0 and 1, one per device")
        check_ternary(entries)
        self._check(state, entries.shape[1])
        counters = state.counters.copy()
        answers = self.mechanism.next_signs(entries.astype(np.int8, copy=False), counters, rng)
        return OnlineState(state.spec_id, counters), answers

    def skip(self, state: OnlineState, entries: int, rng: Random) -> OnlineState:
        """The state after missed timestamps with a number of entries: they count as zeros, and are not reported."""
        self._check(state, entries)
        counters = state.counters.copy()
        self.mechanism.skip_entries(entries, counters, rng)
        return OnlineState(state.spec_id, counters)

    def enrolled(self, n: int) -> Sketch:
        """The sketch of n devices before their first report: the counts of all timestamps are added to it."""
        return Sketch(self.mechanism.spec_id, n, self.mechanism.empty().counts)

    def count(self, answers: NDArray[np.int8], position: int) -> Sketch:
        """The sketch of the signs reported of the entries from a position on; it adds no devices."""
        width = answers.shape[1]
        if not 0 <= position <= self.mechanism.dimension - width:
            raise InvalidValue("position", position, f"0 to {self.mechanism.dimension - width}, for {width} entries")
        counts = np.zeros(self.mechanism.sketch_shape, dtype=np.int64)
        counts[:, position : position + width] = (answers > 0).sum(axis=0), (answers < 0).sum(axis=0)
        return Sketch(self.mechanism.spec_id, 0, counts)

    def _check(self, state: OnlineState, entries: int) -> None:
        if state.spec_id != self.mechanism.spec_id:
            raise SpecMismatch("spec_id", state.spec_id, f"a state of {self.mechanism.spec_id}")
        left = int(state.to_come.min(initial=self.mechanism.positions)) - self.mechanism.sparsity
        if not 0 <= entries <= left:
            raise InvalidValue("values", entries, f"at most {left} more entries of {self.mechanism.dimension}")
