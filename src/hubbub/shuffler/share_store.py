"""What a shuffler of shares stores of a batch: its secret seed, how far it is, masks, and messages."""

import hashlib
import os
from collections.abc import Mapping
from typing import NamedTuple

from hubbub.shuffle.oblivious import SEED_BYTES, Message
from hubbub.shuffler.store import ShufflerStore


class Turn(NamedTuple):
    """How far a batch is: its seed, the name that its shares are sealed for, and how many steps were done.

    The name is empty until the shares were opened.
    """

    seed: bytes
    layer: str
    steps: int


class ShareStore:
    """The tables of batches of shares in a shuffler's store."""

    def __init__(self, store: ShufflerStore) -> None:
        self._store = store

    def turn(self, batch: str) -> Turn:
        """How far a batch is. Its seed is drawn the first time, and on the disk before anything is made of it."""
        sql = "INSERT OR IGNORE INTO turns VALUES (?, ?, '', 0)"
        self._store.run(sql, batch, os.urandom(SEED_BYTES))
        return Turn(*self._store.run("SELECT seed, layer, steps FROM turns WHERE batch = ?", batch)[0])

    def begin(self, batch: str, layer: str, lists: Mapping[Message, bytes]) -> None:
        """Note that the shares were opened, with the messages that tell the others which of them can be read.

        Nothing is stored of a batch that was dropped meanwhile, as its time is over.
        """
        with self._store.transaction():
            row = self._store.batch(batch)
            if row is not None and row.state == "closed":
                self._store.run("UPDATE batches SET state = 'listed' WHERE name = ?", batch)
                self._store.run("UPDATE turns SET layer = ? WHERE batch = ?", layer, batch)
                self._send(batch, lists)

    def step_done(self, batch: str, steps: int, messages: Mapping[Message, bytes]) -> None:
        """Note that a step is done, in one transaction with the messages that it made."""
        with self._store.transaction():
            if self._store.run("SELECT 1 FROM turns WHERE batch = ?", batch):
                self._store.run("UPDATE turns SET steps = ? WHERE batch = ?", steps, batch)
                self._send(batch, messages)

    def made(self, batch: str, receiver: int, topic: str, body: bytes, note: str) -> None:
        """Store the batch for the collector."""
        with self._store.transaction():
            row = self._store.batch(batch)
            if row is not None and row.state == "listed":
                self._store.run("UPDATE batches SET state = 'made', note = ? WHERE name = ?", note, batch)
                self._send(batch, {(receiver, topic): body})

    # -- messages ---------------------------------------------------------------------------------------------

    def known(self, batch: str, sender: int, topic: str) -> bytes | None:
        """The hash of the message that came from a shuffler under a topic; None if none came."""
        sql = "SELECT digest FROM messages WHERE batch = ? AND sender = ? AND topic = ?"
        rows = self._store.run(sql, batch, sender, topic)
        return rows[0][0] if rows else None

    def receive(self, batch: str, sender: int, topic: str, body: bytes, sealed: bytes) -> None:
        """Store a message, unless the batch is over."""
        digest = hashlib.sha256(body).digest()
        if self._store.run("SELECT 1 FROM turns WHERE batch = ?", batch):
            self._store.run(
                "INSERT OR IGNORE INTO messages VALUES (?, ?, ?, ?, ?)", batch, sender, topic, digest, sealed
            )

    def came(self, batch: str) -> set[Message]:
        """The senders and topics of all messages that came."""
        return {*map(tuple, self._store.run("SELECT sender, topic FROM messages WHERE batch = ?", batch))}

    def sealed(self, batch: str, sender: int, topic: str) -> bytes:
        """A message that came; empty once the batch is over."""
        sql = "SELECT sealed FROM messages WHERE batch = ? AND sender = ? AND topic = ?"
        return bytes(self._store.run(sql, batch, sender, topic)[0][0] or b"")

    def _send(self, batch: str, messages: Mapping[Message, bytes]) -> None:
        for (receiver, topic), body in messages.items():
            self._store.run("INSERT OR IGNORE INTO sending VALUES (?, ?, ?, ?)", batch, receiver, topic, body)

    def receivers(self, batch: str) -> list[int]:
        """Who has messages to get."""
        sql = "SELECT DISTINCT receiver FROM sending WHERE batch = ? ORDER BY receiver"
        return [receiver for (receiver,) in self._store.run(sql, batch)]

    def next_to_send(self, batch: str, receiver: int) -> tuple[str, bytes] | None:
        """A topic and the message that a receiver has to get; None if there is none."""
        sql = "SELECT topic, body FROM sending WHERE batch = ? AND receiver = ? ORDER BY rowid LIMIT 1"
        rows = self._store.run(sql, batch, receiver)
        return (rows[0][0], bytes(rows[0][1])) if rows else None

    def sent(self, batch: str, receiver: int, topic: str) -> None:
        """Forget a message that its receiver has."""
        sql = "DELETE FROM sending WHERE batch = ? AND receiver = ? AND topic = ?"
        self._store.run(sql, batch, receiver, topic)

    # -- masks ------------------------------------------------------------------------------------------------

    def made_masks(self, batch: str) -> int:
        """How many chunks of masks there are."""
        return int(self._store.run("SELECT COUNT(*) FROM masks WHERE batch = ?", batch)[0][0])

    def add_masks(self, batch: str, chunks: Mapping[int, bytes]) -> None:
        """Store chunks of masks, unless the batch is over."""
        with self._store.transaction():
            if self._store.run("SELECT 1 FROM turns WHERE batch = ?", batch):
                for number, made in chunks.items():
                    self._store.run("INSERT OR IGNORE INTO masks VALUES (?, ?, ?)", batch, number, made)

    def masks(self, batch: str) -> dict[int, bytes]:
        """All chunks of masks."""
        return dict(self._store.run("SELECT number, made FROM masks WHERE batch = ?", batch))
