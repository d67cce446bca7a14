"""A ToPS stream: takes values, one or many at a time, and gives private ones."""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.random import Random
from hubbub.curator.ranges import Segment, range_of
from hubbub.kernels.published import publish_values

if TYPE_CHECKING:
    from hubbub.curator.tops import ToPS

__all__ = ["StreamState", "ToPSStream", "checked_values"]

_DRIFT = 2.0  # a threshold that is off by more than this factor begins a new search


class StreamState(NamedTuple):
    """All that a stream knows: with it and the values to come, everything it will publish is settled.

    Parameters
    ----------
    key, tree_key
        What the next noise is made of, and the noise of the tree in use.
    position
        How many values the stream took.
    theta
        The threshold; 0 while it is searched for.
    place, partial
        Values of the tree that were published, and the sum of the open block in cells.
    memory, history
        The smoother's.
    counts
        Values between candidates, while a threshold is searched for or watched.
    segments
        Where each threshold began to be used, and which it was.
    """

    key: bytes
    tree_key: bytes
    position: int
    theta: float
    place: int
    partial: int
    memory: NDArray[np.float64]
    history: NDArray[np.float64]
    counts: NDArray[np.int64]
    segments: tuple[Segment, ...]


class ToPSStream:
    """A stream in motion. `ToPS.start` begins one; `ToPSStream(tops, state=...)` goes on from a saved state.

    All noise is drawn from a chain of keys, so that a state and the values that follow settle what is published: a
    stream that is resumed publishes what it would have published, and a batch what single values would have.

    Parameters
    ----------
    tops
        The settings.
    key
        32 secret bytes, from a secure source.
    theta
        A threshold that does not come from the values; else it is searched for.
    state
        As `state` gave it; a new stream if None.

    Example:
        >>> from hubbub import Random
        >>> from hubbub.curator.tops import ToPS
        >>> stream = ToPS(epsilon=1.0, bound=10.0, holdout=2, max_range=16).start(Random(seed=1))
        >>> stream.push(3.0), stream.push(4.0), isinstance(stream.push(5.0), float)
        (None, None, True)
        >>> stream.push(11.0)
        Traceback (most recent call last):
            ...
        hubbub.core.errors.InvalidValue: value 3: got 11.0; allowed: a number from 0 to 10
        >>> stream.position
        3
    """

    def __init__(
        self, tops: ToPS, key: bytes = b"", *, theta: float | None = None, state: StreamState | None = None
    ) -> None:
        self.tops = tops
        if state is None:
            if len(key) != 32:
                raise InvalidValue("key", f"{len(key)} bytes", "32 bytes")
            history = tops.window if tops.smoother in ("median", "moving") else 1
            state = StreamState(
                key, b"", 0, 0.0, 0, 0, np.zeros(3), np.zeros(history), np.zeros(tops.candidates, np.int64), ()
            )
        self._state = state
        self._counts = state.counts.copy()
        self._counted = int(self._counts.sum())
        self._memory, self._history = state.memory.copy(), state.history.copy()
        self._noise: NDArray[np.int64] | None = None
        if theta is not None:
            if not 0 < theta < math.inf:
                raise InvalidValue("theta", theta, "a finite number above 0")
            self._use(theta)

    @property
    def state(self) -> StreamState:
        """All that the stream knows. It holds sums of true values and the key of the noise: keep it secret."""
        return self._state._replace(
            memory=self._memory.copy(), history=self._history.copy(), counts=self._counts.copy()
        )

    @property
    def theta(self) -> float | None:
        """The threshold in use; None while it is searched for."""
        return self._state.theta or None

    @property
    def position(self) -> int:
        """How many values the stream took."""
        return self._state.position

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Where each threshold began to be used, and which it was."""
        return self._state.segments

    def push(self, value: float) -> float | None:
        """Take one value and publish one; None while a threshold is searched for."""
        (published,) = self.push_many([value])
        return None if math.isnan(published) else float(published)

    def push_many(self, values: ArrayLike) -> NDArray[np.float64]:
        """Take values and publish as many: the same numbers as one by one. NaN while a threshold is searched for."""
        numbers = self.checked(values)
        published = np.full(numbers.size, np.nan)
        done = 0
        while done < numbers.size:
            if self._state.theta:
                part = numbers[done : done + self._publishable()]
                published[done : done + part.size] = self._publish(part)
            else:
                part = numbers[done : done + self.tops.holdout - self._counted]
                self._hold_out(part)
            done += part.size
        return published

    def range_sum(self, published: NDArray[np.float64], first: int, last: int) -> Estimate:
        """The sum of what stood at positions first to last (without last), with the variance of its noise.

        It estimates the sum of the values as cut at the threshold. Where an end falls inside a block, a guess at the
        square of what the prediction is off by is added, and the bias is called heuristic.
        """
        return range_of(self.tops, self.segments, published, first, last)

    def checked(self, values: ArrayLike) -> NDArray[np.float64]:
        """Values that the stream would take, as an array; others are refused by their position."""
        return checked_values(values, self.tops.bound, self.position)

    def _hold_out(self, values: NDArray[np.float64]) -> None:
        self._count(values)
        self._move(position=self.position + values.size)
        if self._counted == self.tops.holdout:
            self._use(self.tops.search.choose(self._counts, self._draw()))

    def _publishable(self) -> int:
        """How many values can be published before something else is due: a new tree, or a look at the threshold."""
        state, tops = self._state, self.tops
        most = tops.tree_length - state.place % tops.tree_length
        if tops.watch:  # looked at where a block ends
            left = tops.period - self._counted
            most = min(most, max(left, 0) + (-(state.place + max(left, 0))) % tops.block or tops.block)
        return most

    def _publish(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        tops, state = self.tops, self._state
        if state.place == 0 and not state.tree_key:
            self._move(tree_key=self._next_key())
        noise = self._tree_noise()
        published, partial = publish_values(
            values,
            state.theta,
            tops.tree.cells,
            noise,
            tops.block,
            state.place,
            state.partial,
            tops.smoother,
            tops.weight,
            self._memory,
            self._history,
        )
        place = state.place + values.size
        self._move(position=state.position + values.size, place=place, partial=partial)
        if place == tops.tree_length:
            self._end_tree()
        if tops.watch:
            self._watch(values, place)
        return published

    def _watch(self, values: NDArray[np.float64], place: int) -> None:
        watcher, theta = self.tops.watcher, self._state.theta
        assert watcher is not None
        self._count(values)
        if self._counted < self.tops.period or place % self.tops.block:
            return
        found = watcher.choose(self._counts, self._draw())
        self._forget_counts()
        if self.tops.follow == "update":
            if found != theta:
                self._use(found)
        elif not theta / _DRIFT <= found <= theta * _DRIFT:
            self._end_tree()
            self._move(theta=0.0)

    def _use(self, theta: float) -> None:
        """Begin a tree with a threshold. Before the first there was nothing to predict from: half of it (u_0)."""
        self._forget_counts()
        self._end_tree()
        if not self.segments:
            self._memory[:] = theta / 2, 0.0, theta / 2
        self._move(theta=theta, segments=(*self.segments, Segment(self.position, theta)))

    def _end_tree(self) -> None:
        self._noise = None
        self._move(tree_key=b"", place=0, partial=0)

    def _tree_noise(self) -> NDArray[np.int64]:
        if self._noise is None:
            self._noise = self.tops.tree.noise(Random(seed=self._state.tree_key))
        return self._noise

    def _draw(self) -> Random:
        return Random(seed=self._next_key())

    def _next_key(self) -> bytes:
        """A key for one use; the chain goes on, and cannot be followed back."""
        key = self._state.key
        self._move(key=hashlib.sha256(b"next" + key).digest())
        return hashlib.sha256(b"use" + key).digest()

    def _count(self, values: NDArray[np.float64]) -> None:
        self._counts += self.tops.search.count(values)
        self._counted += values.size

    def _forget_counts(self) -> None:
        self._counts[:] = 0
        self._counted = 0

    def _move(self, **changes: Any) -> None:
        self._state = self._state._replace(**changes)


def checked_values(values: ArrayLike, bound: float, position: int) -> NDArray[np.float64]:
    """Numbers from 0 to the bound, as an array; the first that is none is refused by its place in the stream.

    Example:
        >>> checked_values([1.0, float("nan")], 10.0, 700)
        Traceback (most recent call last):
            ...
        hubbub.core.errors.InvalidValue: value 701: got nan; allowed: a number from 0 to 10
    """
    try:
        numbers = np.atleast_1d(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError):
        raise InvalidValue("values", values, "numbers") from None
    if numbers.ndim != 1:
        raise InvalidValue("values", numbers.shape, "a one-dimensional batch of numbers")
    if numbers.size and not (numbers.min() >= 0 and numbers.max() <= bound):  # NaN fails both
        place = int(np.flatnonzero(~((numbers >= 0) & (numbers <= bound)))[0])
        raise InvalidValue(f"value {position + place}", float(numbers[place]), f"a number from 0 to {bound:g}")
    return numbers
