"""Files of DGK keys, and keys that share the work on many ciphertexts out to several processes."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.private_file import write_private_file
from hubbub.shuffle.dgk import DGKPrivate, DGKPublic

_PUBLIC = ("modulus", "g", "h", "subgroup_bits")
_PRIVATE = ("p", "v_p")


def write_keys(key: DGKPrivate, private: Path, public: Path) -> None:
    """Write the private and the public key to new files; an existing file is an error.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     key, home = DGKPrivate.generate(2048), Path(folder)
        ...     write_keys(key, home / "private.json", home / "public.json")
        ...     read_private(home / "private.json") == key, read_public(home / "public.json") == key.public
        (True, True)
    """
    public_numbers = {name: hex(getattr(key.public, name)) for name in _PUBLIC}
    secret = public_numbers | {name: hex(getattr(key, name)) for name in _PRIVATE}
    for path, content in ((private, secret), (public, public_numbers)):
        if not write_private_file(path, json.dumps(content).encode()):
            raise InvalidValue("key", str(path), "a file that is not there yet")


def read_public(path: Path) -> DGKPublic:
    """The public half."""
    numbers = _numbers(path, _PUBLIC)
    return DGKPublic(**numbers)


def read_private(path: Path) -> DGKPrivate:
    """The private key, with its public half."""
    numbers = _numbers(path, _PUBLIC + _PRIVATE)
    p, v_p = numbers.pop("p"), numbers.pop("v_p")
    public = DGKPublic(**numbers)
    if public.modulus % p or not 1 < p < public.modulus or (p - 1) % (v_p << 64):
        raise InvalidValue("key", str(path), "a private key whose numbers fit together")
    return DGKPrivate(public, p, v_p)


def _numbers(path: Path, names: tuple[str, ...]) -> dict[str, int]:
    try:
        numbers = json.loads(path.read_text(encoding="ascii"))
        return {name: int(numbers[name], 16) for name in names}
    except (OSError, ValueError, KeyError, TypeError):
        raise InvalidValue("key", str(path), f"a file with {', '.join(names)}") from None


_FEW = 200  # ciphertexts that are not worth a message to another process
_CHUNK = 2000
_worker_key: Any = None


class Workers:
    """Worker processes that each hold a key. They are spawned when there is work, and end with this process."""

    def __init__(self, key: DGKPublic | DGKPrivate, processes: int) -> None:
        self._key, self._processes = key, processes
        context = get_context("spawn")
        self._pool = ProcessPoolExecutor(processes, mp_context=context, initializer=_begin, initargs=(key,))

    def spread(self, method: str, *columns: Sequence[Any] | NDArray[Any]) -> list[Any]:
        """Apply a method of the key to columns, in parallel; returns the rows in their order."""
        count = len(columns[0])
        if count < _FEW or self._processes == 1:
            return list(getattr(self._key, method)(*columns))
        step = min(_CHUNK, -(-count // self._processes))
        parts = [[column[at : at + step] for column in columns] for at in range(0, count, step)]
        answers = self._pool.map(_work, [method] * len(parts), parts)
        return [row for answer in answers for row in answer]

    def close(self) -> None:
        """End the processes."""
        self._pool.shutdown(cancel_futures=True)


@dataclass(frozen=True)
class SpreadPublic(DGKPublic):
    """A public key whose ciphertexts are made by several processes; `spread_public` makes one."""

    workers: Workers | None = None

    def encrypt(self, messages: Iterable[int] | NDArray[np.uint64]) -> list[Any]:
        """As `DGKPublic` does."""
        return self._workers.spread("encrypt", [int(message) for message in messages])

    def add_plain(self, ciphertexts: Sequence[Any], messages: NDArray[np.uint64]) -> list[Any]:
        """As `DGKPublic` does."""
        if len(ciphertexts) != len(messages):
            raise InvalidValue("ciphertexts", f"{len(ciphertexts)} and {len(messages)}", "as many of both")
        return self._workers.spread("add_plain", ciphertexts, messages)

    def rerandomise(self, ciphertexts: Sequence[Any]) -> list[Any]:
        """As `DGKPublic` does."""
        return self._workers.spread("rerandomise", ciphertexts)

    @property
    def _workers(self) -> Workers:
        assert self.workers is not None
        return self.workers


@dataclass(frozen=True, repr=False)
class SpreadPrivate(DGKPrivate):
    """A private key that decrypts in several processes."""

    workers: Workers | None = None

    def messages(self, ciphertexts: Sequence[Any]) -> list[int | None]:
        """As `DGKPrivate` does."""
        assert self.workers is not None
        return self.workers.spread("messages", ciphertexts)


@contextmanager
def spread_public(key: DGKPublic, processes: int = 0) -> Iterator[DGKPublic]:
    """The same key with worker processes, which end with the block; 0 takes one for each core."""
    workers = Workers(key, processes or os.cpu_count() or 1)
    try:
        yield SpreadPublic(key.modulus, key.g, key.h, key.subgroup_bits, workers=workers)
    finally:
        workers.close()


@contextmanager
def spread_private(key: DGKPrivate, processes: int = 0) -> Iterator[DGKPrivate]:
    """The same private key with worker processes, which end with the block; 0 takes one for each core."""
    workers = Workers(key, processes or os.cpu_count() or 1)
    try:
        yield SpreadPrivate(key.public, key.p, key.v_p, workers=workers)
    finally:
        workers.close()


def _begin(key: DGKPublic | DGKPrivate) -> None:
    global _worker_key
    _worker_key = key
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A process whose parent was killed would wait for work for ever."""
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _work(method: str, columns: Sequence[Any]) -> list[Any]:
    return list(getattr(_worker_key, method)(*columns))
