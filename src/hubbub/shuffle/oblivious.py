"""Oblivious shuffle: r parties permute secret shares, and no minority of them learns the permutation.

In every round more than half of the parties, the hiders, take over the shares of the others, permute all shares by a
permutation that only the hiders know, and share the result out to all parties. There is a round for every set of
hiders. An adversary who controls less than half of the parties is missing from at least one set: its permutation stays
unknown.

In the encrypted form (section 9.5.1) one party's shares are encrypted to the server, so that even all shufflers
together cannot read a report. The party that divides encrypted shares keeps one part encrypted, rerandomises it, and
gives it to a random party, which holds the encrypted shares from then on.

PEOS, private encrypted oblivious shuffle (Algorithm 5): the part of a device, of a shuffler, and of the server.

A device divides its report among the shufflers, the last part encrypted to the server. Every shuffler adds its part of
fake reports, which are uniform as long as one of the shufflers draws uniformly, and all of them shuffle obliviously.
The server adds up the shares that they send. A report is a number below 2^64, and every such number is a report.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import DecodeError, InvalidValue
from hubbub.random.source import Random
from hubbub.shuffle.channel import Channel, ShuffleAborted, everyone_but
from hubbub.shuffle.dgk import DGKPrivate, DGKPublic

Numbers = NDArray[np.uint64]


def split(numbers: Numbers, parts: int, rng: Random) -> list[Numbers]:
    """Split each number into `parts` shares that add up to it; all shares but one together are uniform noise."""
    if parts < 2:
        raise InvalidValue("parts", parts, "at least 2")
    drawn = list(rng.uint64(parts - 1, len(numbers)))
    return [*drawn, numbers - np.add.reduce(drawn)]


def most_bytes(count: int, key: DGKPublic | None) -> int:
    """The greatest length of a number of shares, in bytes."""
    return 1 + count * (8 if key is None else key.ciphertext_bytes)


@dataclass(frozen=True, eq=False)
class SecretShares:
    """A party's shares of a batch: a number for each report, in the clear or encrypted to the server."""

    plain: Numbers | None = None
    encrypted: Sequence[Any] | None = None
    key: DGKPublic | None = None

    def __post_init__(self) -> None:
        if (self.plain is None) == (self.encrypted is None) or (self.encrypted is None) != (self.key is None):
            raise InvalidValue("shares", self, "numbers in the clear, or ciphertexts with their key")

    def __len__(self) -> int:
        return len(self.plain if self.plain is not None else self.encrypted or ())

    def __repr__(self) -> str:
        return f"SecretShares({len(self)} {'in the clear' if self.key is None else 'encrypted'})"

    def __add__(self, other: SecretShares) -> SecretShares:
        if len(self) != len(other):
            raise DecodeError("shares", f"{len(other)} shares", f"{len(self)}, as many as there are reports")
        if self.plain is not None and other.plain is not None:
            return SecretShares(self.plain + other.plain)
        some, others = (self, other) if self.key is not None else (other, self)
        assert some.key is not None
        assert some.encrypted is not None
        if others.plain is not None:
            return SecretShares(encrypted=some.key.add_plain(some.encrypted, others.plain), key=some.key)
        assert others.encrypted is not None
        return SecretShares(encrypted=some.key.add(some.encrypted, others.encrypted), key=some.key)

    def permuted(self, order: NDArray[np.int64]) -> SecretShares:
        """The shares in another order."""
        if self.plain is not None:
            return SecretShares(self.plain[order])
        assert self.encrypted is not None
        return SecretShares(encrypted=[self.encrypted[place] for place in order.tolist()], key=self.key)

    def divided(self, parts: int, rng: Random) -> list[SecretShares]:
        """Split the shares into `parts` parts; of ciphertexts, one part at random stays encrypted, with fresh noise."""
        if self.plain is not None:
            return [SecretShares(part) for part in split(self.plain, parts, rng)]
        assert self.key is not None
        assert self.encrypted is not None
        drawn = list(rng.uint64(parts - 1, len(self)))
        rest = self.key.rerandomise(self.key.add_plain(self.encrypted, -np.add.reduce(drawn)))
        divided = [SecretShares(part) for part in drawn]
        divided.insert(int(rng.below(parts, 1)[0]), SecretShares(encrypted=rest, key=self.key))
        return divided

    def to_bytes(self) -> bytes:
        """The shares as bytes: one byte for their kind, then the numbers."""
        if self.plain is not None:
            return b"p" + self.plain.astype("<u8").tobytes()
        assert self.key is not None
        assert self.encrypted is not None
        return b"e" + self.key.to_bytes(self.encrypted)

    @staticmethod
    def from_bytes(data: bytes, key: DGKPublic | None, *, devices: bool = False) -> SecretShares:
        """Read shares back; ciphertexts only where there is a key.

        Of `devices`, each of which sent one share, only a bad share is lost; a party that sends a bad one is refused.
        """
        if data[:1] == b"p":
            if (len(data) - 1) % 8:
                raise DecodeError("shares", f"{len(data) - 1} bytes", "8 bytes each")
            return SecretShares(np.frombuffer(data, "<u8", offset=1).astype(np.uint64))
        if data[:1] != b"e" or key is None:
            raise DecodeError("shares", data[:1], "numbers in the clear" + (" or ciphertexts" if key else ""))
        return SecretShares(encrypted=(key.from_devices if devices else key.from_bytes)(data[1:]), key=key)


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
