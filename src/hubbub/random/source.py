"""Random numbers, all from one source: an AES-256-CTR keystream."""

from __future__ import annotations

import hashlib
import os
import threading
import weakref

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CTR
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue, RandomnessError
from hubbub.core.reports import Array, Ints, Words

_POOL = 1 << 12  # bytes drawn ahead, so that one report does not cost a cipher call
_ZEROS = memoryview(bytes(1 << 18))  # what is encrypted: 256 KiB stays in the cache, and a view is cut without a copy
_LIVE: weakref.WeakSet[Random] = weakref.WeakSet()


class Random:
    """Cryptographic random numbers, vectorised.

    Without a seed the key comes from the operating system, once per process: a forked child draws a key of its
    own. With a seed the stream is reproducible, for tests and simulations only; a forked child of a seeded
    stream would repeat its parent's draws and is refused (give each process its own `child`).

    Parameters
    ----------
    seed
        An integer, string or bytes. Leave it out on a device.

    Example:
        >>> rng = Random(seed=7)
        >>> rng.below(6, 5).tolist() == Random(seed=7).below(6, 5).tolist()
        True
        >>> bool(rng.below(6, 1000).max() == 5)
        True
    """

    __slots__ = ("__weakref__", "_encryptor", "_lock", "_pool", "_seed", "_stale", "_used")

    def __init__(self, *, seed: int | str | bytes | None = None) -> None:
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int | str | bytes)):
            raise InvalidValue("seed", seed, "an integer, a string, bytes, or nothing")
        self._seed = None if seed is None else _seed_bytes(seed)
        self._stale = False
        self._pool = memoryview(b"")
        self._used = 0
        self._rekey()
        _LIVE.add(self)

    @property
    def secure(self) -> bool:
        """Whether the key came from the operating system.

        Example:
            >>> Random().secure, Random(seed=1).secure
            (True, False)
        """
        return self._seed is None

    def child(self, *names: int | str) -> Random:
        """An independent stream named by `names`: seeded if this one is, else keyed by the system.

        Example:
            >>> a, b = Random(seed=7).child("shard", 0), Random(seed=7).child("shard", 1)
            >>> a.bytes(4) == b.bytes(4), a.secure
            (False, False)
        """
        if self._seed is None:
            return Random()
        tag = b"".join(_seed_bytes(name) for name in names)
        return Random(seed=hashlib.sha256(b"hubbub child" + self._seed + tag).digest())

    def bytes(self, size: int) -> bytes:
        """`size` random bytes."""
        out = np.empty(_size(size), dtype=np.uint8)
        self.fill(out)
        return out.tobytes()

    def fill(self, out: Array) -> None:
        """Overwrite a contiguous array with random bits, in place.

        Example:
            >>> import numpy as np
            >>> block = np.zeros((2, 3), dtype=np.uint16)
            >>> Random(seed=1).fill(block)
            >>> bool(block.any())
            True
        """
        if not out.flags.c_contiguous:
            raise InvalidValue("out", "a strided array", "a C-contiguous array")
        if self._stale:
            self._after_fork()
        if out.size:
            with self._lock:  # two threads must never be handed the same bytes
                self._draw(memoryview(out.reshape(-1).view(np.uint8).data))

    def uint16(self, *shape: int) -> NDArray[np.uint16]:
        """Uniform 16-bit integers."""
        out = np.empty(shape, dtype="<u2")
        self.fill(out)
        return out

    def uint32(self, *shape: int) -> NDArray[np.uint32]:
        """Uniform 32-bit integers."""
        out = np.empty(shape, dtype="<u4")
        self.fill(out)
        return out

    def uint64(self, *shape: int) -> Words:
        """Uniform 64-bit integers."""
        out = np.empty(shape, dtype="<u8")
        self.fill(out)
        return out

    def below(self, bound: int, size: int) -> Ints:
        """Uniform integers in [0, bound), without modulo bias: draws past the last whole multiple are redrawn.

        Example:
            >>> sorted(set(Random(seed=1).below(3, 100).tolist()))
            [0, 1, 2]
        """
        if not 1 <= bound <= 1 << 63:
            raise InvalidValue("bound", bound, "an integer from 1 to 2^63")
        out = self.uint64(_size(size))
        last = (1 << 64) - (1 << 64) % bound - 1
        redraw = np.flatnonzero(out > np.uint64(last))
        while redraw.size:
            out[redraw] = self.uint64(redraw.size)
            redraw = redraw[out[redraw] > np.uint64(last)]
        return (out % np.uint64(bound)).astype(np.int64)

    def permutation(self, size: int) -> Ints:
        """A uniformly random order of 0..size-1.

        Example:
            >>> sorted(Random(seed=1).permutation(5).tolist())
            [0, 1, 2, 3, 4]
        """
        while True:
            keys = self.uint64(_size(size))
            order = np.argsort(keys)
            keys = keys[order]
            if (keys[1:] != keys[:-1]).all():  # a tie would favour the lower index
                return order

    def __getstate__(self) -> None:
        raise RandomnessError("a Random is not copied or pickled: its draws would repeat; use child()")

    def __repr__(self) -> str:
        return "Random()" if self.secure else "Random(seed=...)"

    def _draw(self, view: memoryview) -> None:
        size = len(view)
        ready = min(size, len(self._pool) - self._used)
        view[:ready] = self._pool[self._used : self._used + ready]
        self._used += ready
        if ready == size:
            return
        rest = size - ready
        bulk = rest - rest % _POOL
        for start in range(ready, ready + bulk, len(_ZEROS)):
            piece = view[start : min(start + len(_ZEROS), ready + bulk)]
            self._encryptor.update_into(_ZEROS[: len(piece)], piece)
        if rest > bulk:
            self._pool = memoryview(self._encryptor.update(_ZEROS[:_POOL]))
            self._used = rest - bulk
            view[ready + bulk :] = self._pool[: self._used]

    def _rekey(self) -> None:
        # os.urandom raises where the system has no randomness: there is no fallback.
        key = os.urandom(32) if self._seed is None else hashlib.sha256(b"hubbub key" + self._seed).digest()
        self._lock = threading.Lock()
        self._encryptor = Cipher(AES256(key), CTR(bytes(16))).encryptor()
        self._pool = memoryview(b"")
        self._used = 0

    def _after_fork(self) -> None:
        if self._seed is not None:
            raise RandomnessError("a seeded Random crossed a fork and would repeat its parent's draws; use child()")
        self._rekey()
        self._stale = False


def _seed_bytes(seed: int | str | bytes) -> bytes:
    raw = seed if isinstance(seed, bytes) else str(seed).encode()
    return type(seed).__name__.encode() + len(raw).to_bytes(8, "big") + raw


def _size(size: int) -> int:
    if size < 0:
        raise InvalidValue("size", size, "an integer of at least 0")
    return size


def _mark_stale() -> None:
    for rng in _LIVE:
        rng._stale = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_mark_stale)
