"""PEOS, private encrypted oblivious shuffle: the three parties of Algorithm 5, each by itself.

A device divides its report among the shufflers, the last part encrypted to the server. Every shuffler adds its part of
fake reports, which are uniform as long as one of the shufflers draws uniformly, and all of them shuffle obliviously.
The server adds up what they send. A report is a number below 2^64, of which every one is a report.
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
    """What a device sends to each shuffler, of a batch of its reports: shares, the last ones encrypted to the server.

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
    """A shuffler's part: add one's shares of the fake reports, then shuffle; returns what goes to the server."""
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
    if len({len(each) for each in shares}) != 1:
        raise ShuffleAborted("shares", [len(each) for each in shares], "as many from every shuffler")
    if sum(each.key is not None for each in shares) != 1:
        raise ShuffleAborted("shares", [repr(each) for each in shares], "ciphertexts from exactly one shuffler")
    total = np.zeros(len(shares[0]), dtype=np.uint64)
    for each in shares:
        total += key.decrypt(each.encrypted or ()) if each.plain is None else each.plain
    return total
