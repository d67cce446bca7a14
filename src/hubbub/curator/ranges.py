"""Sums over ranges of a published stream, and its steps, each with its interval."""

from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Bias, Estimate
from hubbub.core.reports import Floats
from hubbub.curator.tops import ToPS


class Segment(NamedTuple):
    """A stretch of a stream with one threshold, whose trees follow one another without a break."""

    first: int
    theta: float


def range_of(tops: ToPS, segments: Sequence[Segment], published: Floats, first: int, last: int) -> Estimate:
    """The sum of positions first to last (without last) of a published stream."""
    if not 0 <= first < last <= published.size:
        raise InvalidValue("range", (first, last), f"positions from 0 to {published.size}, at least one")
    if np.isnan(published[first:last]).any():
        raise InvalidValue("range", (first, last), "positions that were published")
    variance, guess = range_error(tops, segments, first, last)
    bias: Bias = "heuristic" if guess else "none"
    value = published[first:last].sum()
    return Estimate(np.array([value]), np.array([variance + guess]), last - first, bias, "quantity")


def range_error(tops: ToPS, segments: Sequence[Segment], first: int, last: int) -> tuple[float, float]:
    """The variance of a range's noise, and a guess at the squared error of predictions where an end is inside a block.

    The guess is that of Eq 7: a prediction is off by a third of the threshold.
    """
    if not segments or first < segments[0].first:
        raise InvalidValue("range", (first, last), "positions that were published")
    variance, guess = 0.0, 0.0
    spanned = segments[bisect_right(segments, first, key=attrgetter("first")) - 1 :]
    for segment, end in zip(spanned, [*(later.first for later in spanned[1:]), last], strict=True):
        start, stop = max(first, segment.first) - segment.first, min(last, end) - segment.first
        if start < stop:
            # A stretch that ended early did so where a block ends.
            low, high = -(-start // tops.block), stop // tops.block
            square = segment.theta**2
            variance += square * tops.tree.row_variance(low, high) * tops.tree.node_variance() if low < high else 0.0
            loose = [low * tops.block - start, stop - high * tops.block] if low <= high else [stop - start]
            guess += sum(square * (values / 3) ** 2 for values in loose)
    return variance, guess


_EVERY = 1024


class Step(NamedTuple):
    """The mean of the values from position `first` on, as published, with its 95% interval."""

    step: int
    first: int
    value: float
    low: float
    high: float


class StepMaker:
    """Gathers published values, and makes a step of each run of `every` values.

    The interval is that of the noise, around the mean of the values as cut at the threshold. Steps of whole blocks have
    no other error. Values that only helped to find a threshold are in no step.

    `every`: values a step; 0 takes 1,024, rounded up to whole blocks. `first`: the position of the first value to come.
    """

    def __init__(self, tops: ToPS, every: int = 0, *, first: int = 0) -> None:
        self._tops, self._every = tops, step_length(tops, every)
        self._first, self._open = first, np.empty(0)

    @property
    def open(self) -> Floats:
        """The published values of the step that is not complete."""
        return self._open

    def take(self, published: Floats, segments: Sequence[Segment]) -> list[Step]:
        """The steps that these values complete; `segments` are the stream's."""
        waiting = np.concatenate([self._open, published])
        steps, done = [], 0
        while True:
            unknown = np.isnan(waiting[done : done + self._every])
            if unknown.any():
                done += int(np.flatnonzero(unknown)[-1]) + 1
            elif waiting.size - done >= self._every:
                steps.append(self._step(waiting[done : done + self._every], self._first + done, segments))
                done += self._every
            else:
                break
        self._open, self._first = waiting[done:].copy(), self._first + done
        return steps

    def _step(self, values: Floats, first: int, segments: Sequence[Segment]) -> Step:
        error = sum(range_error(self._tops, segments, first, first + values.size))
        mean = Estimate(values.mean(keepdims=True), np.array([error]) / values.size**2, values.size, kind="quantity")
        (low,), (high,) = mean.interval()
        step = (first - segments[0].first) // self._every
        return Step(step, first, float(mean.value[0]), float(low), float(high))


def step_length(tops: ToPS, every: int = 0) -> int:
    """Values a step: `every`, or about 1,024 in whole blocks."""
    if isinstance(every, bool) or not isinstance(every, int) or not 0 <= every <= 1 << 40:
        raise InvalidValue("every", every, "an integer of at least 0")
    return every or -(-_EVERY // tops.block) * tops.block
