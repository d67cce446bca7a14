"""What shufflers of shares send: messages to each other, and one batch of results to the collector.

A message is a msgpack array [5, collection, version, question, run, step, round, part, sender, receiver, topic, sealed,
signature]. It is encrypted to its receiver, and signed by its sender.

The batch for the collector is a msgpack array [4, collection, version, question, run, step, round, part, statements,
results]. Each shuffler encrypts its result to the collector, and states and signs what it has done: how many shares it
got, how many of them it could not read, how many people's reports all shufflers had shares of, how many fakes there
are, the hash of all their lists of ids, and the hash of its encrypted result. The collector checks that all of them
went by the same lists.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal

import msgspec

from hubbub.collection.names import AnswerName, check_answer_name, check_collection
from hubbub.collection.sealing import sign, verify
from hubbub.collection.shuffle_route import LAYER_BYTES, MOST_SHUFFLERS, ObliviousRoute, batch_name
from hubbub.core.errors import DecodeError
from hubbub.core.spec import canonical
from hubbub.wire.batches import BatchHead
from hubbub.wire.upload import decode_frame

MESSAGE_TYPE = "application/vnd.hubbub.shuffling+msgpack"
MESSAGE_PATH = "/v1/shuffling"
"""The route on which shufflers of shares take messages from each other."""
HASH_BYTES = 32
_encoder = msgspec.msgpack.Encoder()


class ShareMessage(msgspec.Struct, frozen=True):
    """A message from one shuffler to another about a batch. Who does not have the receiver's key cannot read it."""

    collection: str
    version: int
    answer: AnswerName
    sender: int
    receiver: int
    topic: str
    sealed: bytes
    signature: bytes = b""

    @property
    def name(self) -> str:
        """The name of the batch."""
        return batch_name(self.collection, self.version, self.answer)

    @property
    def seal_name(self) -> str:
        """The text that the encryption is bound to."""
        return seal_name(self.name, self.sender, self.receiver, self.topic)

    def signed(self, private: bytes) -> ShareMessage:
        """The message with its sender's signature."""
        return msgspec.structs.replace(self, signature=sign(self._content(), private))

    def is_signed_by(self, public: bytes) -> bool:
        """Whether the signature is that of the holder of a key."""
        return verify(self._content(), self.signature, public)

    def _content(self) -> bytes:
        digest = hashlib.sha256(self.sealed).hexdigest()
        return canonical(["hubbub shuffling 1", self.name, self.sender, self.receiver, self.topic, digest]).encode()


def seal_name(batch: str, sender: int, receiver: int, topic: str) -> str:
    """The text that an encrypted message of a shuffler is bound to. The collector comes after the last shuffler."""
    return f"{batch} from {sender} to {receiver}: {topic}"


class _Message(BatchHead, frozen=True):
    kind: Literal[5]
    sender: int
    receiver: int
    topic: Annotated[str, msgspec.Meta(max_length=20)]
    sealed: bytes
    signature: bytes


_message_decoder = msgspec.msgpack.Decoder(_Message)


def encode_message(message: ShareMessage) -> bytes:
    """Encode a message."""
    head = (message.collection, message.version, *message.answer, message.sender, message.receiver)
    return _encoder.encode(_Message(5, *head, message.topic, message.sealed, message.signature))


def decode_message(data: bytes) -> ShareMessage:
    """Decode a message; its signature is not checked."""
    frame = decode_frame(_message_decoder.decode, data, "message", "message of a shuffler")
    check_collection(frame.collection, frame.version)
    check_answer_name(frame.answer)
    head = (frame.collection, frame.version, frame.answer, frame.sender, frame.receiver)
    return ShareMessage(*head, frame.topic, frame.sealed, frame.signature)


class ShareStatement(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """What one shuffler states, and signs, about a batch."""

    received: int
    unreadable: int
    rows: int
    """How many people's reports all shufflers had a share of."""
    fakes: int
    lists: bytes
    """The hash of the lists of ids of all shufflers."""
    digest: bytes
    """SHA-256 of the encrypted result."""
    signature: bytes = b""

    def signed(self, batch: str, place: int, private: bytes) -> ShareStatement:
        """The statement with the signature of the shuffler at this place."""
        return msgspec.structs.replace(self, signature=sign(self._content(batch, place), private))

    def is_signed_by(self, batch: str, place: int, public: bytes) -> bool:
        """Whether the signature is that of the holder of a key."""
        return verify(self._content(batch, place), self.signature, public)

    def _content(self, batch: str, place: int) -> bytes:
        numbers = [self.received, self.unreadable, self.rows, self.fakes]
        return canonical(["hubbub shared 1", batch, place, *numbers, self.lists.hex(), self.digest.hex()]).encode()


class StatedResult(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """The result of one shuffler, encrypted to the collector, and its statement."""

    statement: ShareStatement
    sealed: bytes

    def encode(self) -> bytes:
        """The bytes that are sent to the first shuffler."""
        return _encoder.encode(self)

    @staticmethod
    def decode(data: bytes) -> StatedResult:
        """Read them back; nothing is checked."""
        return decode_frame(_result_decoder.decode, data, "result", "result of a shuffler")


_result_decoder = msgspec.msgpack.Decoder(StatedResult)
STATED_BYTES = 256
"""More than a statement adds to a result."""


class SharedBatch(msgspec.Struct, frozen=True):
    """The results of all shufflers, in their order."""

    collection: str
    version: int
    answer: AnswerName
    results: list[StatedResult]

    @property
    def name(self) -> str:
        return batch_name(self.collection, self.version, self.answer)

    @property
    def rows(self) -> int:
        """How many people's reports there are."""
        return self.results[0].statement.rows

    @property
    def incomplete(self) -> int:
        """How many reports were left out: the most that a shuffler got a share of, and that another could not use."""
        return max(result.statement.received for result in self.results) - self.rows


class _Shared(BatchHead, frozen=True):
    kind: Literal[4]
    results: Annotated[list[StatedResult], msgspec.Meta(min_length=1, max_length=MOST_SHUFFLERS)]


_shared_decoder = msgspec.msgpack.Decoder(_Shared)


def encode_shared(batch: SharedBatch) -> bytes:
    """Encode a batch."""
    return _encoder.encode(_Shared(4, batch.collection, batch.version, *batch.answer, batch.results))


class _Kind(msgspec.Struct, array_like=True, frozen=True):
    kind: int


_kind_decoder = msgspec.msgpack.Decoder(_Kind)


def is_shared(data: bytes) -> bool:
    """Whether a batch says that it is one of shares."""
    return decode_frame(_kind_decoder.decode, data, "batch", "batch").kind == 4


def decode_shared(data: bytes) -> SharedBatch:
    """Decode a batch; its signatures are checked by `check_shared`."""
    frame = decode_frame(_shared_decoder.decode, data, "batch", "batch of shares")
    check_collection(frame.collection, frame.version)
    check_answer_name(frame.answer)
    return SharedBatch(frame.collection, frame.version, frame.answer, frame.results)


def check_shared(batch: SharedBatch, route: ObliviousRoute) -> None:
    """Refuse a batch whose statements do not show that all shufflers went by the same lists and the signed rules."""
    if len(batch.results) != len(route.shufflers):
        raise DecodeError("results", len(batch.results), f"{len(route.shufflers)}, one of each shuffler")
    first = batch.results[0].statement
    for place, result in enumerate(batch.results):
        statement = result.statement
        if not statement.is_signed_by(batch.name, place, bytes.fromhex(route.shufflers[place].signing_key)):
            raise DecodeError("signature", f"of shuffler {place}", "its signature of this statement")
        if statement.digest != hashlib.sha256(result.sealed).digest():
            raise DecodeError("result", f"of shuffler {place}", "the very result that it stated")
        if statement.fakes != route.fakes:
            raise DecodeError("fakes", statement.fakes, f"{route.fakes}, as is signed")
        if not 0 <= statement.rows <= statement.received - statement.unreadable <= statement.received:
            raise DecodeError("statement", f"of shuffler {place}", "numbers that fit together")
        if (statement.rows, statement.lists) != (first.rows, first.lists):
            raise DecodeError("lists", f"of shuffler {place}", "the same reports as the others shuffle")


def sealed_size(size: int) -> int:
    """The size of an encrypted message of a shuffler."""
    return HASH_BYTES + size + LAYER_BYTES
