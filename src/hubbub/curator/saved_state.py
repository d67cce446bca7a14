"""A stream's state as bytes, and back."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import numpy as np

from hubbub.core.errors import DecodeError
from hubbub.curator.ranges import Segment
from hubbub.curator.stream import StreamState
from hubbub.curator.tops import ToPS

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
