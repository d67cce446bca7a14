"""Oblivious shuffle: r parties permute shares, and no minority of them learns the permutation.

In every round more than half of the parties, the hiders, take over the shares of the others, permute all shares by a
permutation that only the hiders know, and share the result out to all parties. There is a round for every set of
hiders. An adversary who controls less than half of the parties is missing from at least one set: its permutation stays
unknown.

In the encrypted form (section 9.5.1) one party's shares are encrypted to the server, so that even all shufflers
together cannot read a report. The party that divides encrypted shares keeps one part encrypted, rerandomises it, and
gives it to a random party, which holds the encrypted shares from then on.
"""

from __future__ import annotations

import hashlib
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import DecodeError, InvalidValue
from hubbub.core.random import Random
from hubbub.shuffle.channel import Channel, ShuffleAborted, everyone_but
from hubbub.shuffle.dgk import DGKPublic
from hubbub.shuffle.shares import SecretShares, most_bytes

_SEED_BYTES = 32


def hider_sets(parties: int) -> list[tuple[int, ...]]:
    """Every set of more than half of the parties: who permutes together, round by round."""
    if parties < 3:
        raise InvalidValue("parties", parties, "at least 3 shufflers")
    return list(combinations(range(parties), parties // 2 + 1))


def oblivious_shuffle(
    me: int, parties: int, channel: Channel, shares: SecretShares, *, key: DGKPublic | None, rng: Random
) -> SecretShares:
    """Take part in a shuffle; returns the shares that this party holds afterwards, in the common new order.

    Parameters
    ----------
    me, parties
        The number of this party, and how many there are.
    channel
        The connections to the others.
    shares
        The shares of this party, as many as every other party has.
    key
        The server's public key, if one party's shares are encrypted.
    rng
        Draws shares and permutations. Secure, except in tests.
    """
    count = len(shares)
    for number, hiders in enumerate(hider_sets(parties)):
        seekers = [party for party in range(parties) if party not in hiders]
        _expect_round(me, number, hiders, seekers, channel, most_bytes(count, key))
        own: SecretShares | None = shares
        if me in seekers:
            for hider, part in zip(hiders, shares.divided(len(hiders), rng), strict=True):
                channel.send(hider, f"{number}.hide", part.to_bytes())
            own = None
        else:
            for seeker in seekers:
                shares = shares + _received(channel, seeker, f"{number}.hide", count, key)
            shares = shares.permuted(_common_order(me, hiders, channel, number, count, rng))
            parts = shares.divided(parties, rng)
            for party in everyone_but(me, range(parties)):
                channel.send(party, f"{number}.reshare", parts[party].to_bytes())
            own = parts[me]
        for hider in everyone_but(me, hiders):
            part = _received(channel, hider, f"{number}.reshare", count, key)
            own = part if own is None else own + part
        assert own is not None
        shares = own
    return shares


def _expect_round(
    me: int, number: int, hiders: tuple[int, ...], seekers: list[int], channel: Channel, most: int
) -> None:
    """Announce the messages of a round, and their greatest length."""
    for hider in everyone_but(me, hiders):
        channel.expect(hider, f"{number}.reshare", most)
        if me in hiders:
            channel.expect(hider, f"{number}.seed", _SEED_BYTES)
    if me in hiders:
        for seeker in seekers:
            channel.expect(seeker, f"{number}.hide", most)


def _received(channel: Channel, sender: int, topic: str, count: int, key: DGKPublic | None) -> SecretShares:
    try:
        shares = SecretShares.from_bytes(channel.receive(sender, topic), key)
    except DecodeError as error:
        raise ShuffleAborted("party", sender, f"shares that can be read: {error}") from None
    if len(shares) != count:
        raise ShuffleAborted("party", sender, f"{count} shares; it sent {len(shares)}")
    return shares


def _common_order(
    me: int, hiders: tuple[int, ...], channel: Channel, number: int, count: int, rng: Random
) -> NDArray[np.int64]:
    """A permutation that only the hiders know, from a seed of each of them, so that none of them can choose it."""
    mine = rng.uint64(_SEED_BYTES // 8).tobytes()
    for hider in everyone_but(me, hiders):
        channel.send(hider, f"{number}.seed", mine)
    seeds = {me: mine}
    for hider in everyone_but(me, hiders):
        seeds[hider] = channel.receive(hider, f"{number}.seed")
        if len(seeds[hider]) != _SEED_BYTES:
            raise ShuffleAborted("party", hider, f"a seed of {_SEED_BYTES} bytes")
    seed = hashlib.sha256(b"".join(seeds[hider] for hider in hiders)).digest()
    return np.argsort(Random(seed=seed).uint64(count), kind="stable")
