"""Streams whose noise is in memory: a copy would add the same noise to other values."""

from __future__ import annotations

import os
from typing import NoReturn, SupportsIndex

from hubbub.core.errors import HubbubError


class StreamCopied(HubbubError):
    """A stream was used in a process that was forked from its own: both would add the same noise."""


class UncopiedStream:
    """A stream that is neither copied nor stored, and goes on only in the process that began it.

    Two streams with the same noise would reveal the difference of their values exactly. The `state` of a stream can be
    stored: it has no future noise, and a stream that goes on from it draws fresh noise.
    """

    def __init__(self) -> None:
        self._process = os.getpid()

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise StreamCopied("the stream was begun before a fork; each process goes on from its state instead")

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        name = type(self).__name__
        raise TypeError(f"a {name} is neither copied nor stored: its noise would be added twice; store its state")
