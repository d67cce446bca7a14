"""PEOS, private encrypted oblivious shuffle (Algorithm 5): the part of a device, of a shuffler, and of the server.

A device divides its report among the shufflers, the last part encrypted to the server. Every shuffler adds its part of
fake reports, which are uniform as long as one of the shufflers draws uniformly, and all of them shuffle obliviously.
The server adds up the shares that they send. A report is a number below 2^64, and every such number is a report.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.random import Random
from hubbub.shuffle.channel import Channel, ShuffleAborted
from hubbub.shuffle.dgk import DGKPrivate, DGKPublic
from hubbub.shuffle.oblivious import oblivious_shuffle
from hubbub.shuffle.shares import SecretShares, split


def divide(reports: NDArray[np.uint64], shufflers: int, key: DGKPublic, rng: Random) -> list[SecretShares]:
    """The shares of a batch of reports for each shuffler, those for the last shuffler encrypted to the server.

    Example:
        >>> key = DGKPrivate.generate(2048)
        >>> divided = divide(np.uint64([7]), 3, key.public, Random(seed=1))
        >>> combine(divided, key).tolist()
        [7]
    """
    *plain, last = split(reports, shufflers, rng)
    return [*(SecretShares(part) for part in plain), SecretShares(encrypted=key.encrypt(last), key=key)]


def shuffle_with_fakes(
    me: int, shufflers: int, channel: Channel, shares: SecretShares, *, fakes: int, key: DGKPublic, rng: Random
) -> SecretShares:
    """A shuffler's part: add its shares of the fake reports, then shuffle; returns the shares for the server."""
    if fakes < 0:
        raise InvalidValue("fakes", fakes, "at least 0")
    if (shares.key is not None) != (me == shufflers - 1):
        raise ShuffleAborted("shares", shares, "ciphertexts for the last shuffler, and for no other")
    drawn = rng.uint64(fakes)
    if shares.plain is not None:
        joined = SecretShares(np.concatenate([shares.plain, drawn]))
    else:
        joined = SecretShares(encrypted=[*(shares.encrypted or ()), *key.encrypt(drawn)], key=key)
    return oblivious_shuffle(me, shufflers, channel, joined, key=key, rng=rng)


def combine(shares: Sequence[SecretShares], key: DGKPrivate) -> NDArray[np.uint64]:
    """The server's part: the reports, real and fake ones together, in the shuffled order.

    Example:
        >>> key = DGKPrivate.generate(2048)
        >>> encrypted = SecretShares(encrypted=key.public.encrypt([2]), key=key.public)
        >>> combine([SecretShares(np.uint64([1])), encrypted], key).tolist()
        [3]
    """
    if len({len(part) for part in shares}) != 1:
        raise ShuffleAborted("shares", [len(part) for part in shares], "as many from every shuffler")
    if sum(part.key is not None for part in shares) != 1:
        raise ShuffleAborted("shares", [repr(part) for part in shares], "ciphertexts from exactly one shuffler")
    total = np.zeros(len(shares[0]), dtype=np.uint64)
    for part in shares:
        total += key.decrypt(part.encrypted or ()) if part.plain is None else part.plain
    return total
