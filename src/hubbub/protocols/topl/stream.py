"""ToPL in a collection: the first steps find the threshold, then means and sums of clipped values stream."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.event import units_of
from hubbub.core.sketch import Sketch
from hubbub.mechanisms.base import ReportFormat
from hubbub.mechanisms.numeric.square_wave import SquareWave
from hubbub.protocols.ask import Ask
from hubbub.protocols.cohort import CIRCLE, EVERYONE, Arc, Pointer
from hubbub.protocols.driver import Message, Protocol, Reply, ask_all, ask_once
from hubbub.protocols.memory import Memory
from hubbub.protocols.release import MAIN, Release
from hubbub.protocols.statistic import Means
from hubbub.protocols.topl.tail import magnitudes, numbers_of, search_wave, tail_theta
from hubbub.protocols.view import Binned, View

ARITHMETIC = 2
"""The version of what this protocol computes: a collector does not go on with what another one stored."""
SUMS, MEANS = "Sums", "Means"


@dataclass
class _Known:
    """The threshold, what clipping to it loses of the mean, and what was heard of the distribution since."""

    counts: NDArray[np.int64]
    theta: float
    lost: float = 0.0
    step: int = 1
    heard: int = 0


@dataclass
class _Recent:
    """Of the last steps: how many answered, the mean of their values, and its variance."""

    people: deque[float] = field(default_factory=deque)
    means: deque[float] = field(default_factory=deque)
    variances: deque[float] = field(default_factory=deque)


def topl(
    *,
    epsilon: float,
    most: float,
    r: int,
    first: int = 1,
    every: int = 0,
    aside: float = 0.1,
    reach: int = 0,
    memory: Memory | None = None,
) -> Protocol:
    """Means and sums of numbers from 0 to `most`, of which few are large: each step's, and of the last r steps.

    In the first steps everyone is asked for a square wave of the magnitude, from which the threshold comes (`tail`).
    From then on values are clipped to it on the device and reported by the hybrid mechanism. Every report spends
    epsilon, and a device sends one a step: epsilon for each event. The threshold is found anew from an arc of the
    devices that answers with square waves instead, which moves on at every step (parallel composition: nobody answers
    both).

    Parameters
    ----------
    epsilon
        What a report may spend.
    most
        The largest number there may be: what is larger counts as that.
    r
        The steps of the longest range that is summed.
    first
        How many steps only search.
    every
        After how many steps the threshold is found anew; 0: never.
    aside
        The share of the devices that goes on searching, if it is.
    reach
        How many values the longest range has; 0: r times as many as there were in a step that searched.
    memory
        Where to remember.

    Example:
        >>> from hubbub import Random
        >>> from hubbub.protocols.driver import converse
        >>> def answer(ask):
        ...     values = ask.view(np.tile([3.0, 5.0, 10.0], 10_000))
        ...     return ask.mechanism.accumulate(ask.mechanism.randomize(values, Random(seed=ask.step)))
        >>> releases = list(converse(topl(epsilon=2.0, most=1000.0, r=4), answer, steps=4))
        >>> [round(float(release.estimate.value[0])) for release in releases[1:]], list(releases[-1].estimates)
        ([6, 6, 6], ['estimate', 'Sums', 'Means'])
    """
    for name, value, least in (("r", r, 1), ("first", first, 1), ("every", every, 0), ("reach", reach, 0)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise InvalidValue(name, value, f"an integer of at least {least}")
    if not 0 < aside < 1:
        raise InvalidValue("aside", aside, "a share between 0 and 1")
    units = units_of(epsilon)
    wave, view = search_wave(units), magnitudes(most)
    memory = memory or Memory()
    known = memory.keep("known", _Known(np.zeros(wave.sketch_shape, dtype=np.int64), most))
    recent = memory.keep("recent", _Recent(*(deque(maxlen=r) for _ in range(3))))
    pointer = memory.keep("pointer", Pointer())
    while True:
        step, searches = known.step, known.step <= first
        arcs = _arcs(pointer, searches, aside if every else 0.0)
        means = Means(0.0, known.theta)
        parts = ((wave, view), (means.mechanism(units), means.view))
        heard, clipped = yield from _asked(step, arcs, parts)
        if heard is not None:
            known.counts, known.heard = known.counts + heard.counts, known.heard + 1
        lost = known.lost
        if _is_due(step, first, every) and known.heard:
            gathered = int(known.counts.sum())
            _learn(known, wave, view, most, epsilon, reach or max(1, r * gathered // known.heard))
        if searches:
            mean, lost = _searched_mean(heard, wave, view, known.theta), known.lost
        else:
            mean = _clipped_mean(heard, clipped, parts[1][0])
        told = _widened(mean, lost)
        _remember(recent, told)
        known.step += 1
        published = told.n > 0
        yield Release(step=step, estimates=_estimates(told, recent), published=published, spent=1.0, n=float(told.n))


def _is_due(step: int, first: int, every: int) -> bool:
    """Whether the threshold is found, or found anew, after this step."""
    return step == first or (every > 0 and step > first and (step - first) % every == 0)


def _arcs(pointer: Pointer, searches: bool, aside: float) -> tuple[Arc | None, Arc | None]:
    """Who is asked for a square wave, and who for a clipped number."""
    if searches or not aside:
        return (EVERYONE, None) if searches else (None, EVERYONE)
    searching = pointer.take(int(CIRCLE * aside))
    return searching, Arc((searching.start + searching.length) % CIRCLE, CIRCLE - searching.length)


def _asked(
    step: int, arcs: Sequence[Arc | None], parts: Sequence[tuple[ReportFormat, View]]
) -> Generator[Message, Reply, list[Sketch | None]]:
    """Ask the step's parts, each of its arc. What is heard from each; None where nobody was asked."""
    asks = [
        Ask(mechanism=mechanism, step=step, view=view, cohort=arc)
        for arc, (mechanism, view) in zip(arcs, parts, strict=True)
        if arc is not None
    ]
    sketches = [(yield from ask_once(asks[0]))] if len(asks) == 1 else (yield from ask_all(asks))
    heard = iter(sketches)
    return [None if arc is None else next(heard) for arc in arcs]


def _searched_mean(heard: Sketch | None, wave: SquareWave, view: Binned, theta: float) -> Estimate:
    """The mean of the numbers clipped to theta, from their magnitudes; the interval is of the unbiased estimate."""
    if heard is None or not heard.n:
        return _unknown()
    return wave.distribution(heard).linear(np.minimum(numbers_of(view), theta))


def _clipped_mean(searched: Sketch | None, clipped: Sketch | None, hybrid: Any) -> Estimate:
    """The mean of everyone who answered, from those who reported a clipped number."""
    if clipped is None or not clipped.n:
        return _unknown()
    everyone = clipped.n + (searched.n if searched is not None else 0)
    mean: Estimate = hybrid.estimate(clipped)
    return replace(mean.of_population(everyone), n=everyone)


def _unknown() -> Estimate:
    return Estimate(np.zeros(1), np.full(1, np.inf), 0, "heuristic", "quantity")


def _learn(known: _Known, wave: SquareWave, view: Binned, most: float, epsilon: float, longest: int) -> None:
    """Find the threshold for ranges of at most so many values, from all that was heard since the last search."""
    gathered = int(known.counts.sum())
    if not gathered:
        return
    sketch = Sketch(wave.spec_id, gathered, known.counts)
    known.theta, known.lost = tail_theta(wave, view, sketch, most=most, epsilon=epsilon, r=longest)
    known.counts, known.heard = np.zeros_like(known.counts), 0


def _widened(mean: Estimate, lost: float) -> Estimate:
    """With what clipping is thought to take from the mean: a clipped mean is not the mean."""
    return replace(mean, variance=mean.variance + lost**2, bias="heuristic", spread=None, bounds=None)


def _remember(recent: _Recent, told: Estimate) -> None:
    recent.people.append(float(told.n))
    recent.means.append(float(told.value[0]))
    recent.variances.append(float(told.variance[0]) if told.n else 0.0)


def _estimates(told: Estimate, recent: _Recent) -> Mapping[str, Estimate]:
    """The step's mean; and the sums and means of the step and of the last steps together."""
    people, means, variances = (np.array(part) for part in (recent.people, recent.means, recent.variances))
    if not told.n or not people.sum():
        return {MAIN: told}
    labels = ("this step", f"the last {len(people)} steps")
    total, error = people @ means, people**2 @ variances
    n = int(people.sum())
    sums = np.array([people[-1] * means[-1], total]), np.array([people[-1] ** 2 * variances[-1], error])
    averages = np.array([means[-1], total / n]), np.array([variances[-1], error / n**2])
    return {
        MAIN: told,
        SUMS: Estimate(*sums, n, "heuristic", "quantity", labels),
        MEANS: Estimate(*averages, n, "heuristic", "quantity", labels),
    }
