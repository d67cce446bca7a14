"""The file of a DGK key, and processes that share the work on many ciphertexts."""

import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, TypeVar

from hubbub.core.errors import InvalidValue
from hubbub.core.private_file import write_private_file
from hubbub.shuffle.dgk import DGKPrivate, DGKPublic

_NAMES = ("modulus", "g", "h", "subgroup_bits", "p", "v_p")
_FEW = 200  # ciphertexts that are not worth a process
_CHUNK = 2000
Key = TypeVar("Key", DGKPublic, DGKPrivate)
Result = TypeVar("Result")
_worker_key: Any = None


def write_key(key: DGKPrivate, path: Path) -> None:
    """Write a private key, with its public half, to a new file that only its owner may read.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     key, path = DGKPrivate.generate(2048), Path(folder) / "homomorphic.key"
        ...     write_key(key, path)
        ...     read_key(path) == key
        True
    """
    numbers = {**vars(key.public), "p": key.p, "v_p": key.v_p}
    if not write_private_file(path, json.dumps({name: hex(numbers[name]) for name in _NAMES}).encode() + b"\n"):
        raise InvalidValue("key", str(path), "a file that is not there yet")


def read_key(path: Path) -> DGKPrivate:
    """Read it back."""
    try:
        content = json.loads(path.read_text(encoding="ascii"))
        numbers = {name: int(content[name], 16) for name in _NAMES}
    except (OSError, ValueError, KeyError, TypeError):
        raise InvalidValue("key", str(path), "a file made by `hubbub shuffler homomorphic-key`") from None
    p, v_p = numbers.pop("p"), numbers.pop("v_p")
    public = DGKPublic(**numbers)
    if public.modulus % p or not 1 < p < public.modulus or (p - 1) % (v_p << 64):
        raise InvalidValue("key", str(path), "a private key whose numbers fit together")
    return DGKPrivate(public, p, v_p)


def key_workers(key: DGKPublic | DGKPrivate, processes: int = 0) -> Executor:
    """Processes that each hold a key, for `with_key`; 0 takes one for each core. They end with this process."""
    context = get_context("spawn")
    return ProcessPoolExecutor(processes or os.cpu_count(), mp_context=context, initializer=_begin, initargs=(key,))


def with_key(work: Callable[..., Result], *given: Any) -> Result:
    """In one of the processes: call a function with the key and what is given."""
    return work(_worker_key, *given)


@dataclass(frozen=True, repr=False)
class SpreadPrivate(DGKPrivate):
    """A private key that decrypts in several processes."""

    workers: Executor | None = None

    def messages(self, ciphertexts: Sequence[Any]) -> list[int | None]:
        """As `DGKPrivate` does."""
        if len(ciphertexts) < _FEW or self.workers is None:
            return super().messages(ciphertexts)
        parts = [ciphertexts[at : at + _CHUNK] for at in range(0, len(ciphertexts), _CHUNK)]
        answers = self.workers.map(with_key, [DGKPrivate.messages] * len(parts), parts)
        return [message for answer in answers for message in answer]


@contextmanager
def spread_private(key: DGKPrivate, processes: int = 0) -> Iterator[DGKPrivate]:
    """The same private key with worker processes, which end with the block; 0 takes one for each core."""
    with key_workers(key, processes) as workers:
        yield SpreadPrivate(key.public, key.p, key.v_p, workers=workers)


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
