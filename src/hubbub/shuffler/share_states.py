"""Moves a batch of shares through its states: gathering, closed, listed, made, then handed on or dropped.

When a batch is closed, its shares are opened, and the ids of those that can be read are told to the other shufflers.
When all lists are there, the shufflers shuffle, step by step. Each encrypts its result to the collector and gives it to
the first shuffler, who hands all of them on. Every step is stored in one transaction with the messages that it makes,
and a message is sent, the same bytes every time, until its receiver has stored it.
"""

import hashlib
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Executor

from hubbub.client.upload import Unreachable
from hubbub.collection import Clock, SignedCollection
from hubbub.collection.shuffle_route import ObliviousRoute, layer_name
from hubbub.core.errors import DecodeError, HubbubError
from hubbub.service.base.limits import RefusedRequest
from hubbub.shuffle.dgk import DGKPublic
from hubbub.shuffle.keys import with_key
from hubbub.shuffle.masks import CHUNK, mask_chunk, masks_for
from hubbub.shuffle.oblivious import Message, ShuffleAborted, ShuffleStep
from hubbub.shuffle.onion import open_layer, wrap
from hubbub.shuffler.batch_states import PATH, BatchStates, HopTransport, over, post
from hubbub.shuffler.config import ShufflerKeys
from hubbub.shuffler.share_run import IDS, ShareRun, needs_masks, open_shares
from hubbub.shuffler.share_store import ShareStore
from hubbub.shuffler.source import SignedSource
from hubbub.shuffler.store import ENDED, BatchRow, ShufflerStore
from hubbub.wire.batches import SHUFFLED_TYPE
from hubbub.wire.shares import (
    HASH_BYTES,
    MESSAGE_PATH,
    MESSAGE_TYPE,
    SharedBatch,
    ShareMessage,
    ShareStatement,
    StatedResult,
    encode_message,
    encode_shared,
    seal_name,
    sealed_size,
)

RESULT = "result"
AT_A_TIME = 20
"""How many chunks of masks are made before other batches have a turn."""
_NO_LISTS = bytes(HASH_BYTES)


class ShareStates:
    """Moves the batches of one shuffler of shares.

    `collector`, `connect`: the transport to the collector, and what makes one from the address of another shuffler.
    `workers`: makes processes that hold a key, in which masks are made; None makes masks in this process.
    """

    def __init__(
        self,
        states: BatchStates,
        store: ShufflerStore,
        source: SignedSource,
        keys: ShufflerKeys,
        collector: HopTransport,
        connect: Callable[[str], HopTransport],
        route: ObliviousRoute,
        workers: Callable[[DGKPublic], Executor] | None,
    ) -> None:
        self._states, self._store, self._source, self._keys = states, store, source, keys
        self._collector, self._connect, self.route = collector, connect, route
        self._place = route.place_of(keys.encryption.public, keys.signing.public)
        self._key = DGKPublic.of(route.homomorphic_key)
        self._table, self._runs = ShareStore(store), dict[str, ShareRun]()
        self._executor = workers(self._key) if workers is not None and needs_masks(self._place, route) else None
        self._at_work = threading.Lock()  # one batch at a time: they are large

    def close(self) -> None:
        """End the processes."""
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)

    # -- messages of other shufflers ---------------------------------------------------------------------------

    def receive(self, message: ShareMessage, body: bytes) -> None:
        """Store a message of another shuffler. The same bytes again are acknowledged again; others are refused."""
        known, me = len(self.route.shufflers), self._place
        if not 0 <= message.sender < known or message.sender == me or message.receiver != me:
            raise DecodeError("sender", message.sender, "another shuffler, that sends to this one")
        if not message.is_signed_by(bytes.fromhex(self.route.shufflers[message.sender].signing_key)):
            raise DecodeError("signature", f"of shuffler {message.sender}", "its signature of this message")
        before = self._table.known(message.name, message.sender, message.topic)
        if before is not None:
            if before != hashlib.sha256(body).digest():
                raise RefusedRequest("replay", message.name)
            return
        run, batch = self._runs.get(message.name), self._store.batch(message.name)
        if batch is None or batch.state in ("gathering", "closed") or (batch.state == "listed" and run is None):
            raise RefusedRequest("too_early", message.name)  # it is sent again
        most = run.most_bytes(message.sender, message.topic) if run is not None and batch.state == "listed" else None
        if most is None or not sealed_size(0) <= len(message.sealed) <= sealed_size(most):
            raise RefusedRequest("late" if batch.state in ENDED else "malformed", message.name)
        with self._store.transaction():
            self._table.receive(message.name, message.sender, message.topic, body, message.sealed)

    # -- work that is due -------------------------------------------------------------------------------------

    def make_masks(self, name: str, count: int) -> bool:
        """Make some of the masks of a batch that are still missing; returns whether there were any."""
        seed, made = self._table.turn(name).seed, self._table.made_masks(name)
        missing = range(made, min(-(-count // CHUNK), made + AT_A_TIME))
        if self._executor is None:
            chunks = [mask_chunk(self._key, seed, number) for number in missing]
        else:
            every = [mask_chunk] * len(missing), [seed] * len(missing), missing
            chunks = list(self._executor.map(with_key, *every))
        self._table.add_masks(name, dict(zip(missing, chunks, strict=True)))
        return bool(missing)

    def needs_masks(self, batch: BatchRow) -> bool:
        """Whether masks of a batch that still gathers are missing."""
        if batch.state != "gathering" or not needs_masks(self._place, self.route):
            return False
        return self._table.made_masks(batch.name) * CHUNK < batch.size + self.route.fakes

    def receivers(self, name: str) -> list[int]:
        """Who has messages to get; the collector comes after the last shuffler."""
        return self._table.receivers(name)

    def hand_on(self, name: str, collection: SignedCollection) -> None:
        """Do all that can be done with a batch, or drop it; `Unreachable` if it has to be tried again."""
        try:
            batch = self._store.batch(name)
            if batch is not None and batch.state == "closed":
                layer = layer_name(name, self._source.ask(batch.answer, collection))
                with self._at_work:
                    self._open(batch, layer)
                batch = self._store.batch(name)
            if batch is not None and batch.state == "listed":
                with self._at_work:
                    self._go_on(batch)
        except Unreachable:
            raise
        except HubbubError as error:
            self._states.drop(name, str(error))
        for known in list(self._runs):
            row = self._store.batch(known)
            if row is None or row.state != "listed":
                self._runs.pop(known, None)

    def send(self, name: str, receiver: int, collection: SignedCollection, clock: Clock) -> None:
        """Send all messages that one receiver has to get; `Unreachable` if that has to be tried again."""
        to_collector = receiver == len(self.route.shufflers)
        transport = self._collector if to_collector else self._connect(self.route.shufflers[receiver].url)
        path, kind = (PATH, SHUFFLED_TYPE) if to_collector else (MESSAGE_PATH, MESSAGE_TYPE)
        try:
            while (message := self._table.next_to_send(name, receiver)) is not None:
                batch = self._store.batch(name)
                if batch is None:
                    return
                topic, body = message
                post(transport, path, kind, body, over(batch, collection) - clock.now())
                self._table.sent(name, receiver, topic)
                if to_collector:
                    self._states.end(name, "handed", batch.note)
        except Unreachable:
            raise
        except HubbubError as error:
            self._states.drop(name, str(error))

    # -- one batch --------------------------------------------------------------------------------------------

    def _open(self, batch: BatchRow, layer: str) -> None:
        """Open the shares, and tell the others which of them can be read."""
        run = self._runs[batch.name] = self._opened(batch, layer)
        lists = {
            (other, IDS): self._message(batch, other, IDS, _NO_LISTS + run.own_list) for other in run.other_parties
        }
        self._table.begin(batch.name, layer, lists)

    def _opened(self, batch: BatchRow, layer: str) -> ShareRun:
        encrypted = self._place + 1 == len(self.route.shufflers)
        reports, private = self._store.reports(batch.name), self._keys.encryption
        opened = open_shares(reports, private, layer, self._place, self._key, encrypted=encrypted)
        return ShareRun(self._place, self.route, self._key, self._table.turn(batch.name).seed, opened)

    def _go_on(self, batch: BatchRow) -> None:
        """Do the steps whose messages are there."""
        turn, came = self._table.turn(batch.name), self._table.came(batch.name)
        run = self._runs.get(batch.name)
        if run is None:  # after a restart
            run = self._runs[batch.name] = self._opened(batch, turn.layer)
        if not run.agreed:
            if not {(other, IDS) for other in run.other_parties} <= came:
                return
            run.agree({other: self._content(batch, other, IDS, _NO_LISTS) for other in run.other_parties})
        while (step := run.next_step(came)) is not None:
            repeated = run.done < turn.steps  # it was stored before the restart, and so were its messages
            messages = self._take(batch, run, step)
            if repeated:
                continue
            if step.does == RESULT:
                self._state_result(batch, run, messages[len(self.route.shufflers), RESULT])
            else:
                sealed = {to: self._message(batch, *to, run.lists + body) for to, body in messages.items()}
                self._table.step_done(batch.name, run.done, sealed)
        if run.done == len(run.steps):
            self._finish(batch, run)

    def _take(self, batch: BatchRow, run: ShareRun, step: ShuffleStep) -> Mapping[Message, bytes]:
        """Do a step; returns its messages."""
        received = {(sender, topic): self._content(batch, sender, topic, run.lists) for sender, topic in step.needs}
        count, masks = run.masks_needed(step), None
        if count:
            while self.make_masks(batch.name, count):
                pass
            masks = masks_for(self._key, self._table.turn(batch.name).seed, count, self._table.masks(batch.name))
        return run.take(step, received, masks).messages

    def _state_result(self, batch: BatchRow, run: ShareRun, body: bytes) -> None:
        """Encrypt the result to the collector, and give it to the first shuffler with a signed statement."""
        name = seal_name(batch.name, self._place, len(self.route.shufflers), RESULT)
        sealed = wrap(run.lists + body, [bytes.fromhex(self.route.collector_key)], name)
        opened, digest = run.opened, hashlib.sha256(sealed).digest()
        stated = ShareStatement(opened.received, opened.unreadable, run.rows, self.route.fakes, run.lists, digest)
        result = StatedResult(stated.signed(batch.name, self._place, self._keys.signing.private), sealed).encode()
        with self._store.transaction():
            if self._place:
                message = self._message(batch, 0, RESULT, run.lists + result)
                self._table.step_done(batch.name, run.done, {(0, RESULT): message})
            else:
                self._table.step_done(batch.name, run.done, {})
                self._table.receive(batch.name, 0, RESULT, result, result)
            self._store.count("unreadable", opened.unreadable)
            self._store.count("incomplete", run.incomplete)
            self._store.count("fakes", self.route.fakes)

    def _finish(self, batch: BatchRow, run: ShareRun) -> None:
        """End the batch once the others have all messages; the first shuffler makes one batch of all results."""
        if self._place:
            if not self._table.receivers(batch.name):
                self._states.end(batch.name, "handed", run.note)
            return
        if {(other, RESULT) for other in run.other_parties} <= self._table.came(batch.name):
            every = [self._table.sealed(batch.name, 0, RESULT)]
            every += [self._content(batch, other, RESULT, run.lists) for other in run.other_parties]
            results = [StatedResult.decode(result) for result in every]
            body = encode_shared(SharedBatch(self._source.name, batch.version, batch.answer, results))
            self._table.made(batch.name, len(self.route.shufflers), RESULT, body, run.note)

    def _message(self, batch: BatchRow, receiver: int, topic: str, content: bytes) -> bytes:
        """A signed message that the receiver alone can read."""
        head = (self._source.name, batch.version, batch.answer, self._place, receiver, topic)
        key = bytes.fromhex(self.route.shufflers[receiver].encryption_key)
        sealed = wrap(content, [key], seal_name(batch.name, self._place, receiver, topic))
        return encode_message(ShareMessage(*head, sealed).signed(self._keys.signing.private))

    def _content(self, batch: BatchRow, sender: int, topic: str, lists: bytes) -> bytes:
        """The content of a message that came, which must be about the same lists of ids."""
        sealed = self._table.sealed(batch.name, sender, topic)
        name = seal_name(batch.name, sender, self._place, topic)
        content = open_layer(sealed, self._keys.encryption, name, place=0)
        if content is None:
            raise ShuffleAborted("shuffler", sender, "messages that this shuffler can read")
        if content[:HASH_BYTES] != lists:
            raise ShuffleAborted("shuffler", sender, "the same lists of ids as this one has")
        return content[HASH_BYTES:]
