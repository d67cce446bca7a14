"""ExSub and NetSub online: a device reports its entries as they come, and keeps five integers in between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.core.errors import DecodeError, InvalidValue, SpecMismatch
from hubbub.core.reports import Sketch
from hubbub.mechanisms.ternary.selection import COUNTERS
from hubbub.mechanisms.ternary.signed_sets import SignedSets
from hubbub.mechanisms.ternary.vectors import check_ternary
from hubbub.random.source import Random

_KIND = "online exsub"
_CHUNK = 1 << 22  # entries looked at together


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

    def __getitem__(self, devices: slice | NDArray[Any]) -> OnlineState:
        return OnlineState(self.spec_id, self.counters[devices])

    @property
    def to_come(self) -> NDArray[np.int64]:
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
    sao2-exsub, section 5.3.
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
        signs = entries.astype(np.int8, copy=False)
        counters, answers = state.counters.copy(), np.empty(signs.shape, dtype=np.int8)
        rows = max(1, _CHUNK // max(1, signs.shape[1]))
        for start in range(0, len(signs), rows):
            part = slice(start, start + rows)
            words = rng.uint32(*signs[part].shape)
            answers[part] = self.mechanism._select(signs[part], words, counters[part], rng)
        return OnlineState(state.spec_id, counters), answers

    def skip(self, state: OnlineState, entries: int, rng: Random) -> OnlineState:
        """The state after missed timestamps with a number of entries: they count as zeros, and are not reported."""
        self._check(state, entries)
        rows = max(1, _CHUNK // max(1, len(state)))
        while entries:
            chunk = min(entries, rows)
            state, _ = self.step(state, np.zeros((len(state), chunk), dtype=np.int8), rng)
            entries -= chunk
        return state

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
