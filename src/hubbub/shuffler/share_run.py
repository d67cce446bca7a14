"""One batch of shares at one shuffler: opening the shares, agreeing on the rows, and the steps of the shuffle.

Nothing here is sent or stored. What was done before a kill is done again, and comes out the same.
"""

import hashlib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from hubbub.collection.shuffle_route import LAYER_BYTES, ObliviousRoute
from hubbub.core.errors import InvalidValue
from hubbub.shuffle.dgk import DGKPublic
from hubbub.shuffle.masks import Masks
from hubbub.shuffle.oblivious import (
    NUMBER_BYTES,
    Message,
    ObliviousShuffle,
    Outcome,
    SecretShares,
    ShuffleAborted,
    ShuffleStep,
    fake_shares,
    hands_on,
    shares_bytes,
    steps,
)
from hubbub.shuffle.onion import OnionKey, open_layer
from hubbub.wire.shares import STATED_BYTES
from hubbub.wire.upload import ID_BYTES

IDS = "ids"
"""The topic of the messages in which shufflers tell which shares they can read."""


class OpenedShares(NamedTuple):
    """The shares of a batch that can be read, in the order of their ids, and how many came."""

    ids: list[bytes]
    shares: SecretShares
    received: int

    @property
    def unreadable(self) -> int:
        """How many shares were left out."""
        return self.received - len(self.ids)


def open_shares(
    sealed: Sequence[tuple[bytes, bytes]], private: OnionKey, layer: str, place: int, key: DGKPublic, *, encrypted: bool
) -> OpenedShares:
    """Open the shares of devices, with their ids. What no device sends that follows the rules is left out.

    That is: what is not sealed for this batch and shuffler, has another size, was sent under another id already, is
    not padded with zeros, or, of the last shuffler, is no element of the group of the server's key.
    """
    size, opened, seen = key.ciphertext_bytes, {}, set()
    for report_id, onion in sorted(sealed):
        share = None if onion in seen else open_layer(onion, private, layer, place=place)
        seen.add(onion)
        if share is not None and len(share) == size:
            opened[report_id] = share
    ids, rows = list(opened), list(opened.values())
    if encrypted:
        ciphers = key.from_devices(rows)
        good = [cipher is not None for cipher in ciphers]
        shares = SecretShares(
            np.zeros(sum(good), dtype=np.uint64), [cipher for cipher in ciphers if cipher is not None]
        )
    else:
        padded = np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(-1, size)
        good = [not padding for padding in np.count_nonzero(padded[:, NUMBER_BYTES:], axis=1).tolist()]
        numbers = np.ascontiguousarray(padded[:, :NUMBER_BYTES]).view("<u8").reshape(-1).astype(np.uint64)
        shares = SecretShares(numbers[np.array(good, dtype=bool)])
    return OpenedShares([name for name, fits in zip(ids, good, strict=True) if fits], shares, len(sealed))


class ShareRun:
    """The shuffle of one batch at one shuffler.

    `place`, `route`, `key`: the number of this shuffler, the signed route, and the server's key.
    """

    def __init__(self, place: int, route: ObliviousRoute, key: DGKPublic, seed: bytes, opened: OpenedShares) -> None:
        self._place, self._route, self._key, self._seed = place, route, key, seed
        self.opened = opened
        self.steps = steps(place, len(route.shufflers))
        self.done = 0
        self.rows = 0
        """How many people's reports all shufflers have shares of."""
        self.lists = b""
        """The hash of all lists of ids, which all messages after them carry."""
        self._shares = opened.shares
        self._shuffle: ObliviousShuffle | None = None

    @property
    def other_parties(self) -> list[int]:
        """The other shufflers."""
        return [shuffler for shuffler in range(len(self._route.shufflers)) if shuffler != self._place]

    @property
    def incomplete(self) -> int:
        """How many shares were left out because another shuffler had none of the same report."""
        return len(self.opened.ids) - self.rows

    @property
    def note(self) -> str:
        """What became of the shares, for the status."""
        came = f"{self.opened.received} came, {self.opened.unreadable} unreadable"
        return f"{came}, {self.incomplete} incomplete, {self._route.fakes} fakes"

    @property
    def own_list(self) -> bytes:
        """The ids of the shares that can be read, one after the other."""
        return b"".join(self.opened.ids)

    @property
    def agreed(self) -> bool:
        """Whether the rows are known."""
        return self._shuffle is not None

    def agree(self, lists: Mapping[int, bytes]) -> None:
        """Take the rows of which all shufflers have shares, and add the shares of fakes. Too few are refused."""
        every = {**lists, self._place: self.own_list}
        common = set(self.opened.ids)
        for shuffler, joined in lists.items():
            ids = [joined[at : at + ID_BYTES] for at in range(0, len(joined), ID_BYTES)]
            if len(joined) % ID_BYTES or any(a >= b for a, b in pairwise(ids)):
                raise ShuffleAborted("shuffler", shuffler, "a list of ids in their order, each once")
            common &= set(ids)
        if len(common) < self._route.least:
            raise InvalidValue("batch", "too few reports", f"at least {self._route.least}")  # anyone may see it
        digests = [hashlib.sha256(every[shuffler]).digest() for shuffler in sorted(every)]
        self.lists, self.rows = hashlib.sha256(b"".join(digests)).digest(), len(common)
        complete = np.array([report_id in common for report_id in self.opened.ids], dtype=bool)
        shares = self.opened.shares.permuted(np.flatnonzero(complete))
        self._shares = shares.with_fakes(fake_shares(self._seed, self._route.fakes))
        count = self.rows + self._route.fakes
        self._shuffle = ObliviousShuffle(self._place, len(self._route.shufflers), self._seed, count, self._key)

    def next_step(self, came: set[Message]) -> ShuffleStep | None:
        """The next step, if all messages that it needs came."""
        step = self.steps[self.done] if self.agreed and self.done < len(self.steps) else None
        return step if step is not None and set(step.needs) <= came else None

    def masks_needed(self, step: ShuffleStep) -> int:
        return len(self._shares) if step.does in ("hide", "result") and self._shares.encrypted is not None else 0

    def take(self, step: ShuffleStep, received: Mapping[Message, bytes], masks: Masks | None) -> Outcome:
        """Do the next step."""
        assert self._shuffle is not None
        outcome = self._shuffle.take(step, self._shares, received, masks)
        self._shares, self.done = outcome.shares, self.done + 1
        return outcome

    def most_bytes(self, sender: int, topic: str) -> int | None:
        """The most bytes of a message from another shuffler; None of one that is never due."""
        route, shufflers = self._route, len(self._route.shufflers)
        if topic == IDS:
            return ID_BYTES * (route.room(1) + route.fakes)
        # Before the rows are known: there are no more of them than shares that can be read.
        count = (self.rows if self.agreed else len(self.opened.ids)) + route.fakes
        if topic == "result":
            return shares_bytes(count, self._key) + LAYER_BYTES + STATED_BYTES if self._place == 0 else None
        return ObliviousShuffle(self._place, shufflers, self._seed, count, self._key).most_bytes(sender, topic)


def needs_masks(place: int, route: ObliviousRoute) -> bool:
    """Whether a shuffler will hand ciphertexts on."""
    return hands_on(place, len(route.shufflers))
