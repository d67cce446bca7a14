"""The state files of releases: ToPS streams, and running sums by the factorisation."""

from __future__ import annotations

import hashlib
import os
from typing import Any

import msgspec
import numpy as np

from hubbub.core.errors import DecodeError
from hubbub.core.migrations import Format
from hubbub.curator.factorised import FactorisedCounter, FactorisedStream, SumsState
from hubbub.curator.ranges import Segment
from hubbub.curator.stream import StreamState, ToPSStream
from hubbub.curator.stream_file import StreamFile
from hubbub.curator.tops import ToPS
from hubbub.random.source import Random

_DIGEST = 32


def state_to_bytes(state: StreamState) -> bytes:
    """The state of a ToPS stream, with a checksum before it."""
    places = np.flatnonzero(state.counts)
    return fields_to_bytes(
        {
            **state._asdict(),
            "memory": state.memory.tolist(),
            "history": state.history.tolist(),
            "counts": [places.tolist(), state.counts[places].tolist()],
            "segments": [list(segment) for segment in state.segments],
        }
    )


def state_from_bytes(tops: ToPS, data: bytes) -> StreamState:
    """Read a state that belongs to these settings."""
    fields = fields_from_bytes(data)
    counts = np.zeros(tops.candidates, dtype=np.int64)
    places, numbers = fields["counts"]
    counts[places] = numbers
    return StreamState(
        **{
            **fields,
            "memory": np.array(fields["memory"]),
            "history": np.array(fields["history"]),
            "counts": counts,
            "segments": tuple(Segment(*segment) for segment in fields["segments"]),
        }
    )


def fields_to_bytes(fields: dict[str, Any]) -> bytes:
    """Numbers, lists and bytes by name, with a checksum before them."""
    body = msgspec.msgpack.encode(fields)
    return hashlib.sha256(body).digest() + body


def fields_from_bytes(data: bytes) -> dict[str, Any]:
    """Read the fields that `fields_to_bytes` wrote; anything else is refused.

    Example:
        >>> fields_from_bytes(fields_to_bytes({"position": 2})[:-1])
        Traceback (most recent call last):
            ...
        hubbub.core.errors.DecodeError: state: got '42 bytes'; allowed: a whole state: this one is cut short or damaged
    """
    digest, body = data[:_DIGEST], data[_DIGEST:]
    if hashlib.sha256(body).digest() != digest:
        raise DecodeError("state", f"{len(data)} bytes", "a whole state: this one is cut short or damaged")
    fields: dict[str, Any] = msgspec.msgpack.decode(body)
    return fields


RELEASE_FORMAT = Format("release_format", 1)
"""The version of a release's file."""


class ReleaseFile(StreamFile[ToPSStream]):
    """A ToPS stream and its state on disk; see `StreamFile`.

    Every time the file is opened, the stream goes on with a new tree, which begins with the block that was open.

    Parameters
    ----------
    path
        The file; a new one can be read by its owner only. It holds sums of true values.
    tops
        The settings; a file that was begun with others is refused.
    source
        What is released, such as a column's name; a file that was begun for another is refused.
    every, rng
        As for `StreamFile`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        tops: ToPS,
        *,
        source: str = "",
        every: int | None = None,
        rng: Random | None = None,
    ) -> None:
        self._tops = tops
        super().__init__(path, {**tops.spec(), "source": source}, RELEASE_FORMAT, every=every, rng=rng)

    def _begin(self, rng: Random, state: bytes | None) -> ToPSStream:
        return ToPSStream(self._tops, rng, state=None if state is None else state_from_bytes(self._tops, state))

    def _state_of(self, stream: ToPSStream) -> bytes:
        return state_to_bytes(stream.state)


SUMS_FORMAT = Format("sums_format", 1)
"""The version of the file of running sums."""


class SumsFile(StreamFile[FactorisedStream]):
    """A stream of running sums and its state on disk; see `StreamFile`.

    The noise of a value is drawn when it comes, so that sums that go on after the file was closed have the same
    variance as those of a stream that was never stopped.

    Parameters
    ----------
    path
        The file; a new one can be read by its owner only. It holds sums of true values.
    counter, theta
        The settings, and the threshold at which values are clipped; a file that was begun with others is refused.
    source
        What is released, such as a column's name; a file that was begun for another is refused.
    rng
        As for `StreamFile`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        counter: FactorisedCounter,
        theta: float,
        *,
        source: str = "",
        rng: Random | None = None,
    ) -> None:
        self._counter, self._theta = counter, counter.start(theta, rng or Random()).theta
        super().__init__(path, {**counter.spec(), "theta": self._theta, "source": source}, SUMS_FORMAT, rng=rng)

    def _begin(self, rng: Random, state: bytes | None) -> FactorisedStream:
        key = Random(seed=rng.bytes(32))  # what a replay draws must not depend on what else is drawn
        stored = None if state is None else SumsState(**fields_from_bytes(state))
        return FactorisedStream(self._counter, self._theta, key, state=stored)

    def _state_of(self, stream: FactorisedStream) -> bytes:
        return fields_to_bytes(stream.state._asdict())
