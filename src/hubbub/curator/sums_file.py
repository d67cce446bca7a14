"""The state file of running sums by the factorisation."""

from __future__ import annotations

import os

from hubbub.core.migrations import Format
from hubbub.core.random import Random
from hubbub.curator.factorised import FactorisedCounter, FactorisedStream, SumsState
from hubbub.curator.saved_state import fields_from_bytes, fields_to_bytes
from hubbub.curator.stream_file import StreamFile

FORMAT = Format("sums_format", 1)
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
        super().__init__(path, {**counter.spec(), "theta": self._theta, "source": source}, FORMAT, rng=rng)

    def _begin(self, rng: Random, state: bytes | None) -> FactorisedStream:
        key = Random(seed=rng.bytes(32))  # what a replay draws must not depend on what else is drawn
        stored = None if state is None else SumsState(**fields_from_bytes(state))
        return FactorisedStream(self._counter, self._theta, key, state=stored)

    def _state_of(self, stream: FactorisedStream) -> bytes:
        return fields_to_bytes(stream.state._asdict())
