"""A ToPS stream: takes values, one or many at a time, and gives private ones."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from hubbub.core.errors import HubbubError, InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.reports import Floats, Ints
from hubbub.curator.ranges import Segment, range_of
from hubbub.kernels.curator import publish_values
from hubbub.random.source import Random

if TYPE_CHECKING:
    from hubbub.curator.tops import ToPS


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


_DRIFT = 2.0  # a threshold that is off by more than this factor begins a new search


class StreamState(NamedTuple):
    """All that a stream knows, but for the noise to come: whoever goes on from it draws that anew.

    Parameters
    ----------
    theta
        The threshold; 0 while it is searched for.
    inside, partial
        Values of the block that is open, and their sum in cells. No noisy sum has them yet.
    memory, history
        The smoother's.
    counts
        Values between candidates, while a threshold is searched for or watched.
    segments
        Where each tree that did not follow another one's end began, and the threshold there.
    """

    position: int
    theta: float
    inside: int
    partial: int
    memory: Floats
    history: Floats
    counts: Ints
    segments: tuple[Segment, ...]


class ToPSStream(UncopiedStream):
    """A stream in motion. `ToPS.start` begins one; `ToPSStream(tops, rng, state=...)` goes on from a saved state.

    A batch is answered as its values would be one by one. The noise is in memory only. A stream that goes on from a
    state begins a new tree, with the block that was open: of what two such streams publish, no noise is the same but
    that of blocks that had ended, which both leave as they are.

    `theta`: a threshold that does not come from the values; else it is searched for.
    """

    def __init__(
        self, tops: ToPS, rng: Random, *, theta: float | None = None, state: StreamState | None = None
    ) -> None:
        super().__init__()
        self.tops = tops
        if state is None:
            history = tops.window if tops.smoother in ("median", "moving") else 1
            state = StreamState(
                0, 0.0, 0, 0, np.zeros(3), np.zeros(history), np.zeros(tops.candidates, dtype=np.int64), ()
            )
        self._rng = Random(seed=rng.bytes(32))
        self._state = state
        self._counts = state.counts.copy()
        self._counted = int(self._counts.sum())
        self._memory, self._history = state.memory.copy(), state.history.copy()
        self._noise: Ints | None = None
        self._place = state.inside  # values of the tree that were taken
        if theta is not None:
            if not 0 < theta < math.inf:
                raise InvalidValue("theta", theta, "a finite number above 0")
            self._use(theta)
        elif state.theta and state.segments[-1].first != state.position - state.inside:
            self._begin_segment(state.theta)

    @property
    def state(self) -> StreamState:
        """All that the stream knows but its noise. It holds sums of true values: keep it secret."""
        return self._state._replace(
            inside=self._place % self.tops.block,
            memory=self._memory.copy(),
            history=self._history.copy(),
            counts=self._counts.copy(),
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
        """Where each tree that did not follow another one's end began, and the threshold there."""
        return self._state.segments

    def push(self, value: float) -> float | None:
        """Take one value and publish one; None while a threshold is searched for."""
        (published,) = self.push_many([value])
        return None if math.isnan(published) else float(published)

    def push_many(self, values: ArrayLike) -> Floats:
        """Take values and publish as many: the same numbers as one by one. NaN while a threshold is searched for."""
        self._check_process()
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

    def range_sum(self, published: Floats, first: int, last: int) -> Estimate:
        """The sum of what stood at positions first to last (without last), with the variance of its noise.

        It estimates the sum of the values as cut at the threshold. Where an end falls inside a block, a guess at the
        square of what the prediction is off by is added, and the bias is called heuristic.
        """
        return range_of(self.tops, self.segments, published, first, last)

    def checked(self, values: ArrayLike) -> Floats:
        """Values that the stream would take, as an array; others are refused by their position."""
        return checked_values(values, self.tops.bound, self.position)

    def _hold_out(self, values: Floats) -> None:
        self._count(values)
        self._move(position=self.position + values.size)
        if self._counted == self.tops.holdout:
            self._use(self.tops.search.choose(self._counts, self._rng))

    def _publishable(self) -> int:
        """How many values can be published before something else is due: a new tree, or a look at the threshold."""
        tops, place = self.tops, self._place
        most = tops.tree_length - place
        if tops.watch:  # looked at where a block ends
            left = max(tops.period - self._counted, 0)
            most = min(most, left + (-(place + left)) % tops.block or tops.block)
        return most

    def _publish(self, values: Floats) -> Floats:
        tops, state = self.tops, self._state
        if self._noise is None:
            self._noise = tops.tree.noise(self._rng)
        published, partial = publish_values(
            values,
            state.theta,
            tops.tree.cells,
            self._noise,
            tops.block,
            self._place,
            state.partial,
            tops.smoother,
            tops.weight,
            self._memory,
            self._history,
        )
        self._place += values.size
        place = self._place
        self._move(position=state.position + values.size, partial=partial)
        if place == tops.tree_length:
            self._end_tree()
        if tops.watch:
            self._watch(values, place)
        return published

    def _watch(self, values: Floats, place: int) -> None:
        watcher, theta = self.tops.watcher, self._state.theta
        assert watcher is not None
        self._count(values)
        if self._counted < self.tops.period or place % self.tops.block:
            return
        fresh_theta = watcher.choose(self._counts, self._rng)
        self._forget_counts()
        if self.tops.follow == "update":
            if fresh_theta != theta:
                self._use(fresh_theta)
        elif not theta / _DRIFT <= fresh_theta <= theta * _DRIFT:
            self._end_tree()
            self._move(theta=0.0)

    def _use(self, theta: float) -> None:
        """Begin a tree with a threshold. Before the first there was nothing to predict from: half of it (u_0)."""
        self._forget_counts()
        self._end_tree()
        if not self.segments:
            self._memory[:] = theta / 2, 0.0, theta / 2
        self._begin_segment(theta)

    def _begin_segment(self, theta: float) -> None:
        """A tree begins with the block that is open."""
        segment = Segment(self.position - self._place, theta)
        self._move(theta=theta, segments=(*self.segments, segment))

    def _end_tree(self) -> None:
        self._noise, self._place = None, 0
        self._move(partial=0)

    def _count(self, values: Floats) -> None:
        self._counts += self.tops.search.count(values)
        self._counted += values.size

    def _forget_counts(self) -> None:
        self._counts[:] = 0
        self._counted = 0

    def _move(self, **changes: Any) -> None:
        self._state = self._state._replace(**changes)


def checked_values(values: ArrayLike, bound: float, position: int) -> Floats:
    """Numbers from 0 to the bound, as an array; the first that is none is refused by its position, from 0."""
    try:
        numbers = np.atleast_1d(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError):
        raise InvalidValue("values", values, "numbers") from None
    if numbers.ndim != 1:
        raise InvalidValue("values", numbers.shape, "a one-dimensional batch of numbers")
    if numbers.size and not (numbers.min() >= 0 and numbers.max() <= bound):  # NaN fails both
        place = int(np.flatnonzero(~((numbers >= 0) & (numbers <= bound)))[0])
        raise InvalidValue(f"position {position + place}", float(numbers[place]), f"a number from 0 to {bound:g}")
    return numbers
