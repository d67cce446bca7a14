"""The state files of releases: ToPS streams, and running sums by the factorisation."""

import hashlib
import math
import os
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any

import msgspec
import numpy as np

from hubbub.core.errors import DecodeError, InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.migrations import Format
from hubbub.core.reports import Floats
from hubbub.curator.factorised import FactorisedCounter, FactorisedStream, SumsState
from hubbub.curator.ranges import Segment, range_of
from hubbub.curator.stream import StreamState, ToPSStream
from hubbub.curator.stream_file import StreamFile
from hubbub.curator.tops import ToPS
from hubbub.ledger.file import stored_terms
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
    stored = fields_from_bytes(data)
    counts = np.zeros(tops.candidates, dtype=np.int64)
    places, numbers = stored["counts"]
    counts[places] = numbers
    return StreamState(
        **{
            **stored,
            "memory": np.array(stored["memory"]),
            "history": np.array(stored["history"]),
            "counts": counts,
            "segments": tuple(Segment(*segment) for segment in stored["segments"]),
        }
    )


def fields_to_bytes(content: dict[str, Any]) -> bytes:
    """Numbers, lists and bytes by name, with a checksum before them."""
    body = msgspec.msgpack.encode(content)
    return hashlib.sha256(body).digest() + body


def fields_from_bytes(data: bytes) -> dict[str, Any]:
    """Read the fields that `fields_to_bytes` wrote; anything else is refused."""
    digest, body = data[:_DIGEST], data[_DIGEST:]
    if hashlib.sha256(body).digest() != digest:
        raise DecodeError("state", f"{len(data)} bytes", "a whole state: this one is cut short or damaged")
    content: dict[str, Any] = msgspec.msgpack.decode(body)
    return content


RELEASE_FORMAT = Format("release_format", 1)
"""The version of a release's file."""


@dataclass(frozen=True, eq=False)
class CuratorRelease:
    """What a curator has released, which can be asked for the sum and the mean of any range of positions.

    It has no true value, and asking spends nothing. Positions count from 0; the last one is not in the range. Intervals
    are of the noise, whose variance is exact for every range; they are around the values as clipped. Where an end is
    inside of a block, the error of the prediction there is a guess, and the bias is called heuristic.

    Parameters
    ----------
    segments
        Where each tree that did not follow another one's end began, and the threshold there.
    published
        What stands at each position; NaN where values found a threshold.
    source
        What was released, such as a column's name.
    per_person
        How many values of a person are in it at most; 0 where that is not known.

    Example:
        >>> from hubbub.random.source import Random
        >>> stream = ToPS(epsilon=1.0, bound=10.0, holdout=64, max_range=4096).start(Random(seed=1))
        >>> published = stream.push_many([1.0, 3.0] * 2048)
        >>> release = CuratorRelease(stream.tops, stream.segments, published)
        >>> low, high = release.mean(1024, 4096).interval()
        >>> bool(low[0] < 2.0 < high[0])
        True
    """

    tops: ToPS
    segments: tuple[Segment, ...]
    published: Floats
    source: str = ""
    per_person: int = 0

    @property
    def effective_epsilon(self) -> float:
        """What the release cost: for a value; or for a person, where it is known how many values of each are in it."""
        exact = self.tops.exact_epsilon * max(self.per_person, 1)
        nearest = float(exact)
        return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)

    def sum(self, first: int, last: int) -> Estimate:
        """The sum of the values at positions first to last, without last."""
        if not 0 <= first < last <= self.published.size or np.isnan(self.published[first:last]).any():
            raise InvalidValue("range", f"{first}:{last}", f"positions within {self._stretches()}")
        return range_of(self.tops, self.segments, self.published, first, last)

    def mean(self, first: int, last: int) -> Estimate:
        """The mean of the values at positions first to last, without last."""
        total, n = self.sum(first, last), last - first
        return replace(total, value=total.value / n, variance=total.variance / n**2)

    def _stretches(self) -> str:
        """The positions that were published, in words."""
        known = np.concatenate([[False], ~np.isnan(self.published), [False]])
        ends = np.flatnonzero(known[1:] != known[:-1]).reshape(-1, 2)
        return " or ".join(f"{first}:{last}" for first, last in ends) or "a range, of which none is published yet"


def open_release(path: str | os.PathLike[str]) -> CuratorRelease:
    """The release of a state file, to be asked. The file must not be in use; it stays as it is."""
    terms = stored_terms(path)
    if RELEASE_FORMAT.name not in terms:
        raise InvalidValue("state", os.fspath(path), "the state file of a curator's release, without --local")
    settings: dict[str, Any] = {field.name: terms[field.name] for field in fields(ToPS) if field.name in terms}
    tops = ToPS(**settings)
    with ReleaseFile(path, tops, source=terms.get("source", ""), per_person=terms.get("per_person", 0)) as file:
        return file.released


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
    per_person
        How many values of a person are in the stream at most; 0 where that is not known.
    every, rng
        As for `StreamFile`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        tops: ToPS,
        *,
        source: str = "",
        per_person: int = 0,
        every: int | None = None,
        rng: Random | None = None,
    ) -> None:
        self._tops, self._source, self._per_person = tops, source, per_person
        terms = {**tops.spec(), "source": source, "per_person": per_person}
        super().__init__(path, terms, RELEASE_FORMAT, every=every, rng=rng)

    @property
    def released(self) -> CuratorRelease:
        """All that was released up to now."""
        return CuratorRelease(self._tops, self.stream.segments, self.published, self._source, self._per_person)

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
