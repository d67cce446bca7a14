"""PEOS, private encrypted oblivious shuffle (Algorithm 5): the part of a device, of a shuffler, and of the server.

A device divides its report among the shufflers, the last part encrypted to the server. Every shuffler adds its part of
fake reports, which are uniform as long as one of the shufflers draws uniformly, and all of them shuffle obliviously.
The server adds up the shares that they send. A report is a number below 2^64, and every such number is a report.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.random import Random
from hubbub.shuffle.channel import Channel, ShuffleAborted
from hubbub.shuffle.dgk import DGKPrivate, DGKPublic
from hubbub.shuffle.oblivious import oblivious_shuffle
from hubbub.shuffle.shares import SecretShares, split


def divide(reports: NDArray[np.uint64], shufflers: int, key: DGKPublic, rng: Random) -> list[SecretShares]:
    """The shares of a batch of reports for each shuffler, those for the last shuffler encrypted to the server."""
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


class CombinedReports(NamedTuple):
    """The reports of a shuffled batch, and how many rows were dropped: their ciphertext had no message."""

    reports: NDArray[np.uint64]
    dropped: int


def combine(shares: Sequence[SecretShares], key: DGKPrivate) -> CombinedReports:
    """The server's part: the reports, real and fake ones together, in the shuffled order.

    A dishonest device can send a ciphertext without a message. Its row is dropped and counted; the others are released.
    """
    if len({len(part) for part in shares}) != 1:
        raise ShuffleAborted("shares", [len(part) for part in shares], "as many from every shuffler")
    if sum(part.key is not None for part in shares) != 1:
        raise ShuffleAborted("shares", [repr(part) for part in shares], "ciphertexts from exactly one shuffler")
    total, readable = np.zeros(len(shares[0]), dtype=np.uint64), np.ones(len(shares[0]), dtype=bool)
    for part in shares:
        if part.plain is not None:
            total += part.plain
        else:
            messages = key.messages(part.encrypted or ())
            readable = np.array([message is not None for message in messages], dtype=bool)
            total += np.array([message or 0 for message in messages], dtype=np.uint64)
    return CombinedReports(total[readable], int((~readable).sum()))
