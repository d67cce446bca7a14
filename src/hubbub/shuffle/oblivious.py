"""Oblivious shuffle: r shufflers permute secret shares, and no minority of them learns the permutation.

In every round more than half of the shufflers, the hiders, take over the shares of the others, permute all shares by a
permutation that only the hiders know, and share the result out to all. There is a round for every set of hiders. An
adversary who controls less than half of the shufflers is missing from at least one set: its permutation stays unknown.

PEOS, private encrypted oblivious shuffle (Algorithm 5): one share of each report is encrypted to the server, so that
even all shufflers together cannot read a report. The ciphertexts lie with one shuffler, the holder, who has a share in
the clear as well, like all others. A holder that is among the hiders keeps them; otherwise it hands them to a hider.
Handed on, each is multiplied by a mask (`hubbub.shuffle.masks`), whose number the holder adds to its share in the
clear: both what is encrypted and the noise are then new, even to the holder of the private key. The rounds are in such
an order that the ciphertexts are handed on as seldom as can be, and always to the hider with the greatest number. In
T. Wang, 2021, a random shuffler gets them in every round, without new noise; the server could then follow them.

A run of one shuffler is a row of steps. Each step needs some messages, changes the shuffler's shares and makes other
messages. All is a function of a secret seed, the shares and the messages: what is repeated comes out the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from hubbub.core.errors import DecodeError, InvalidValue
from hubbub.core.reports import Ints, Words
from hubbub.random.source import Random
from hubbub.shuffle.dgk import DGKPrivate, DGKPublic
from hubbub.shuffle.masks import Masks, masks_for

SEED_BYTES = 32
NUMBER_BYTES = 8
Message: TypeAlias = tuple[int, str]
"""The number of a sender or a receiver, and a topic."""


class ShuffleAborted(InvalidValue):
    """The batch cannot be shuffled: a shuffler breaks the rules."""


def split(numbers: Words, parts: int, rng: Random) -> list[Words]:
    """Split each number into `parts` shares that add up to it; all shares but one together are uniform noise."""
    if parts < 2:
        raise InvalidValue("parts", parts, "at least 2")
    drawn = list(rng.uint64(parts - 1, len(numbers)))
    return [*drawn, numbers - np.add.reduce(drawn)]


@dataclass(frozen=True, eq=False)
class SecretShares:
    """A shuffler's shares of a batch: a number for each report, and of the holder a ciphertext of another number."""

    plain: Words
    encrypted: Sequence[Any] | None = None

    def __len__(self) -> int:
        return len(self.plain)

    def __repr__(self) -> str:
        return f"SecretShares({len(self)}{'' if self.encrypted is None else ', with ciphertexts'})"

    def with_fakes(self, drawn: Words) -> SecretShares:
        """The shares with those of fake reports after them."""
        # A ciphertext of 0, which is masked before anybody else sees it.
        encrypted = None if self.encrypted is None else [*self.encrypted, *([1] * len(drawn))]
        return SecretShares(np.concatenate([self.plain, drawn]), encrypted)

    def permuted(self, order: Ints) -> SecretShares:
        """The shares in another order."""
        encrypted = None if self.encrypted is None else [self.encrypted[place] for place in order.tolist()]
        return SecretShares(self.plain[order], encrypted)

    def masked(self, key: DGKPublic | None, masks: Masks | None) -> SecretShares:
        """The same shares, of which nobody recognises a ciphertext."""
        if self.encrypted is None or key is None or masks is None:
            return self
        return SecretShares(self.plain + masks.numbers, key.add(self.encrypted, masks.encrypted))

    def to_bytes(self, key: DGKPublic | None) -> bytes:
        """The shares as bytes: the numbers, then the ciphertexts."""
        encrypted = b"" if self.encrypted is None or key is None else key.to_bytes(self.encrypted)
        return self.plain.astype("<u8").tobytes() + encrypted

    @staticmethod
    def from_bytes(data: bytes, count: int, key: DGKPublic | None) -> SecretShares:
        """Read shares back; with a `key` there are ciphertexts, which must be elements of its group."""
        size = shares_bytes(count, key)
        if len(data) != size:
            raise DecodeError("shares", f"{len(data)} bytes", f"{size} bytes")
        plain = np.frombuffer(data, "<u8", count).astype(np.uint64)
        return SecretShares(plain, None if key is None else key.from_bytes(data[NUMBER_BYTES * count :]))


def shares_bytes(count: int, key: DGKPublic | None) -> int:
    """The size of a number of shares; with a `key` there are ciphertexts."""
    return count * (NUMBER_BYTES + (0 if key is None else key.ciphertext_bytes))


def hider_sets(shufflers: int) -> list[tuple[int, ...]]:
    """Every set of more than half of the shufflers: who permutes together, round by round."""
    if shufflers < 3:
        raise InvalidValue("shufflers", shufflers, "at least 3")
    every = combinations(range(shufflers), shufflers // 2 + 1)
    return sorted(every, key=lambda hiders: hiders[::-1], reverse=True)  # their greatest numbers never increase


def holders(shufflers: int) -> list[int]:
    """Who has the ciphertexts: at first, and after the hiding of every round."""
    return [shufflers - 1, *(hiders[-1] for hiders in hider_sets(shufflers))]


def hands_on(me: int, shufflers: int) -> bool:
    """Whether a shuffler ever hands ciphertexts on, which it does once, and needs masks for."""
    return me in holders(shufflers)


class ShuffleStep(NamedTuple):
    """One step of a shuffler: what it does, in which round, and the messages that it needs."""

    does: Literal["seeds", "hide", "permute", "collect", "result"]
    round: int
    needs: tuple[Message, ...]

    @property
    def topic(self) -> str:
        """The topic of the messages that the step makes."""
        topics = {"seeds": "seeds", "hide": f"hide {self.round}", "permute": f"share {self.round}", "result": "result"}
        return topics.get(self.does, "")


def steps(me: int, shufflers: int) -> list[ShuffleStep]:
    """The steps of a shuffler, in their order."""
    others = [party for party in range(shufflers) if party != me]
    every = [ShuffleStep("seeds", 0, ())]
    for number, hiders in enumerate(hider_sets(shufflers)):
        if me in hiders:
            seeds = tuple((hider, "seeds") for hider in hiders if hider != me)
            hidden = tuple((seeker, f"hide {number}") for seeker in others if seeker not in hiders)
            every.append(ShuffleStep("permute", number, (*seeds, *hidden)))
        else:
            every.append(ShuffleStep("hide", number, ()))
        every.append(
            ShuffleStep("collect", number, tuple((hider, f"share {number}") for hider in hiders if hider != me))
        )
    return [*every, ShuffleStep("result", 0, ())]


class Outcome(NamedTuple):
    """What a step leaves: the shuffler's shares, and the messages that it sends. The result is for the server."""

    shares: SecretShares
    messages: dict[Message, bytes]


@dataclass(frozen=True, repr=False)
class ObliviousShuffle:
    """The part of one shuffler in the shuffle of one batch: pure functions, which repeat themselves.

    Parameters
    ----------
    me, shufflers
        The number of this shuffler, and how many there are.
    seed
        The secret of this shuffler and batch, of which all that it draws is made.
    count
        How many reports there are, fakes among them.
    key
        The server's key. None shuffles numbers alone, without ciphertexts, for simulations.
    """

    me: int
    shufflers: int
    seed: bytes
    count: int
    key: DGKPublic | None

    def take(
        self, step: ShuffleStep, shares: SecretShares, received: Mapping[Message, bytes], masks: Masks | None
    ) -> Outcome:
        """Do a step. `received` has all messages that it needs; `masks` are made now where they are not given."""
        if len(shares) != self.count:
            raise InvalidValue("shares", len(shares), f"{self.count}, as many as there are reports")
        if step.does == "seeds":
            return Outcome(shares, {(party, step.topic): self._seeds_for(party) for party in self._other_parties()})
        if step.does == "hide":
            return self._hide(step, shares, masks)
        if step.does == "permute":
            return self._permute(step, shares, received)
        if step.does == "collect":
            plain = shares.plain + self._sum(step, received)
            return Outcome(SecretShares(plain, shares.encrypted), {})
        body = self._masked(shares, masks).to_bytes(self.key)
        return Outcome(SecretShares(np.zeros(self.count, dtype=np.uint64)), {(self.shufflers, step.topic): body})

    def most_bytes(self, sender: int, topic: str) -> int | None:
        """The size of a message to this shuffler; None of one that is never due."""
        if topic == "seeds":
            return SEED_BYTES * len(self._rounds_with(sender))
        due = [step for step in steps(self.me, self.shufflers) if (sender, topic) in step.needs]
        return shares_bytes(self.count, self._key_in(due[0], sender)) if due else None

    def _hide(self, step: ShuffleStep, shares: SecretShares, masks: Masks | None) -> Outcome:
        """A seeker's shares, divided among the hiders; ciphertexts go to the one with the greatest number."""
        hiders = hider_sets(self.shufflers)[step.round]
        masked = self._masked(shares, masks)
        parts = [SecretShares(part) for part in split(masked.plain, len(hiders), self._rng(step))]
        parts[-1] = SecretShares(parts[-1].plain, masked.encrypted)
        messages = {(hider, step.topic): part.to_bytes(self.key) for hider, part in zip(hiders, parts, strict=True)}
        return Outcome(SecretShares(np.zeros(self.count, dtype=np.uint64)), messages)

    def _permute(self, step: ShuffleStep, shares: SecretShares, received: Mapping[Message, bytes]) -> Outcome:
        """All shares that the hiders have, in the common order, divided among all shufflers."""
        for sender, topic in step.needs:
            if topic != "seeds":
                came = self._read(step, sender, received[sender, topic])
                encrypted = shares.encrypted if came.encrypted is None else came.encrypted
                shares = SecretShares(shares.plain + came.plain, encrypted)
        shares = shares.permuted(self._common_order(step, received))
        parts = split(shares.plain, self.shufflers, self._rng(step))
        messages = {(party, step.topic): SecretShares(parts[party]).to_bytes(None) for party in self._other_parties()}
        return Outcome(SecretShares(parts[self.me], shares.encrypted), messages)

    def _sum(self, step: ShuffleStep, received: Mapping[Message, bytes]) -> Words:
        total = np.zeros(self.count, dtype=np.uint64)
        for sender, topic in step.needs:
            total += self._read(step, sender, received[sender, topic]).plain
        return total

    def _masked(self, shares: SecretShares, masks: Masks | None) -> SecretShares:
        if shares.encrypted is None or self.key is None:
            return shares
        return shares.masked(self.key, masks or masks_for(self.key, self.seed, self.count))

    def _key_in(self, step: ShuffleStep, sender: int) -> DGKPublic | None:
        """The key, if a message has ciphertexts that this shuffler needs for a step."""
        if step.does != "permute":
            return None
        before, after = holders(self.shufflers)[step.round : step.round + 2]
        return self.key if (sender, self.me) == (before, after) else None

    def _read(self, step: ShuffleStep, sender: int, body: bytes) -> SecretShares:
        try:
            return SecretShares.from_bytes(body, self.count, self._key_in(step, sender))
        except DecodeError as error:
            raise ShuffleAborted("shuffler", sender, f"shares that can be read: {error}") from None

    def _common_order(self, step: ShuffleStep, received: Mapping[Message, bytes]) -> Ints:
        """A permutation that only the hiders know, from a seed of each of them, so that none of them can choose it."""
        parts = []
        for hider in hider_sets(self.shufflers)[step.round]:
            shared = self._rounds_with(hider)
            seeds = received[hider, "seeds"] if hider != self.me else b"".join(map(self._own_seed, shared))
            if len(seeds) != SEED_BYTES * len(shared):
                raise ShuffleAborted("shuffler", hider, f"{len(shared)} seeds of {SEED_BYTES} bytes")
            at = SEED_BYTES * shared.index(step.round)
            parts.append(seeds[at : at + SEED_BYTES])
        seed = hashlib.sha256(b"".join(parts)).digest()
        return np.argsort(Random(seed=seed).uint64(self.count), kind="stable")

    def _seeds_for(self, party: int) -> bytes:
        return b"".join(self._own_seed(number) for number in self._rounds_with(party))

    def _own_seed(self, number: int) -> bytes:
        return Random(seed=self.seed).child("order", number).bytes(SEED_BYTES)

    def _rounds_with(self, party: int) -> list[int]:
        """The rounds in which this shuffler and another both hide."""
        return [number for number, hiders in enumerate(hider_sets(self.shufflers)) if {self.me, party} <= {*hiders}]

    def _other_parties(self) -> Iterator[int]:
        return (party for party in range(self.shufflers) if party != self.me)

    def _rng(self, step: ShuffleStep) -> Random:
        return Random(seed=self.seed).child(step.does, step.round)


def fake_shares(seed: bytes, fakes: int) -> Words:
    """A shuffler's shares of the fake reports of a batch, which are uniform if one shuffler draws uniformly."""
    return Random(seed=seed).child("fakes").uint64(fakes)


class CombinedReports(NamedTuple):
    """The reports of a shuffled batch, and how many rows were dropped: their ciphertext had no message."""

    reports: Words
    dropped: int


def combine(results: Sequence[bytes], count: int, key: DGKPrivate) -> CombinedReports:
    """The server's part: the reports, real and fake ones together, in the shuffled order.

    A dishonest device can send a ciphertext without a message. Its row is dropped and counted; the others are released.

    `count`: how many reports there are, fakes among them.
    """
    last = holders(len(results))[-1]
    total, readable = np.zeros(count, dtype=np.uint64), np.ones(count, dtype=bool)
    for shuffler, result in enumerate(results):
        try:
            shares = SecretShares.from_bytes(result, count, key.public if shuffler == last else None)
        except DecodeError as error:
            raise ShuffleAborted("shuffler", shuffler, f"shares that can be read: {error}") from None
        total += shares.plain
        if shares.encrypted is not None:
            messages = key.messages(shares.encrypted)
            readable = np.array([message is not None for message in messages], dtype=bool)
            total += np.array([message or 0 for message in messages], dtype=np.uint64)
    return CombinedReports(total[readable], int((~readable).sum()))
