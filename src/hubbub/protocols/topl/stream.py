"""The protocol of ToPL in a collection: a search of the threshold, then means and sums of clipped values."""

from collections import deque
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.event import units_of
from hubbub.core.reports import Ints, Sketch
from hubbub.mechanisms.base import ReportFormat
from hubbub.mechanisms.numeric.square_wave import SquareWave
from hubbub.protocols.ask import CIRCLE, EVERYONE, Arc, Ask, Pointer
from hubbub.protocols.driver import MAIN, Message, Protocol, Release, Reply, ask_all, ask_once
from hubbub.protocols.memory import Memory
from hubbub.protocols.statistic import Means
from hubbub.protocols.topl.threshold import clipped_away, magnitudes, numbers_of, search_wave, tail_theta
from hubbub.protocols.views.basic import Binned, View

ARITHMETIC = 1
"""The version of the protocol: it rises with every change of what is asked, released or remembered."""
SUMS, MEANS, ABOVE, LOST = "Sums", "Means", "Above the threshold", "Lost by clipping"


@dataclass
class _Known:
    """The threshold, how much of the mean clipping loses, and the counts of square wave reports since the last search.

    `heard` is the number of steps that these reports are from. `above` and `hidden` are the estimates of `clipped_away`
    for this threshold.
    """

    counts: Ints
    theta: float
    lost: float = 0.0
    step: int = 1
    heard: int = 0
    above: Estimate | None = None
    hidden: Estimate | None = None


@dataclass
class _Recent:
    """For each of the last steps: how many devices answered, the mean of their values, and its variance.

    That of drawing one of several groups is not in it: it is the same group at every step.
    """

    people: deque[float] = field(default_factory=deque)
    means: deque[float] = field(default_factory=deque)
    variances: deque[float] = field(default_factory=deque)


@dataclass
class _Group:
    """For each of the last steps, the variance of the values among the devices of the group that is asked."""

    spreads: deque[float] = field(default_factory=deque)


def topl(
    *,
    epsilon: float,
    most: float,
    r: int,
    first: int = 1,
    every: int = 0,
    aside: float = 0.1,
    reach: int = 0,
    groups: int = 1,
    memory: Memory | None = None,
) -> Protocol:
    """Means and sums of numbers from 0 to `most`, few of which are large: of each step, and of the last r steps.

    In the first steps every device reports the magnitude of its number by a square wave; the threshold is estimated
    from these reports. From then on devices clip their values to the threshold and report by the hybrid
    mechanism. A device sends one report in a step, which spends epsilon: epsilon for each event. To update the
    threshold, an arc of the devices goes on reporting square waves instead, and moves on at every step (parallel
    composition: nobody answers both).

    Next to the means, a release has the share of the people that is estimated to be above the threshold, and how much
    of the mean clipping their numbers hides: the interval of the mean allows for the extrapolated tail only.

    Parameters
    ----------
    most
        The largest number; larger values count as `most`.
    r
        How many steps the longest range has.
    every
        The number of steps after which the threshold is updated; 0 means never.
    aside
        The share of the devices that goes on searching, if the threshold is updated.
    reach
        How many values the longest range has; 0 means r times the number of reports in a step of the search.
    groups
        How many equal groups devices are in, of which one, always the same, is asked: estimates are of all devices.
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
    group = None if groups == 1 else memory.keep("group", _Group(deque(maxlen=r)))
    pointer = memory.keep("pointer", Pointer())
    while True:
        step, searching = known.step, known.step <= first
        arcs = _arcs(pointer, searching, aside if every else 0.0)
        means = Means(0.0, known.theta)
        parts = ((wave, view), (means.mechanism(units), means.view))
        waves, clipped = yield from _ask_parts(step, arcs, parts)
        if waves is not None:
            known.counts, known.heard = known.counts + waves.counts, known.heard + 1
        lost, clipping = known.lost, clipping_of(memory)
        if _is_due(step, first, every) and known.heard:
            reports = int(known.counts.sum())
            longest = reach or max(1, r * reports // known.heard)
            drawn = (groups, sum(part.people for part in (waves, clipped) if part is not None))
            _update_threshold(known, wave, view, most, epsilon, longest, drawn)
        if searching:
            mean, lost, clipping = _searched_mean(waves, wave, view, known.theta), known.lost, clipping_of(memory)
        else:
            mean = _clipped_mean(waves, clipped, parts[1][0])
        _remember(recent, _widened(mean, lost))
        if group is not None:
            group.spreads.append(0.0 if mean.spread is None else float(mean.spread))
        known.step += 1
        estimates = {**_estimates(_widened(mean.of_groups(groups), lost), recent, group, groups), **clipping}
        yield Release(step=step, estimates=estimates, published=mean.n > 0, spent=1.0, n=float(mean.n * groups))


def _is_due(step: int, first: int, every: int) -> bool:
    """Whether the threshold is estimated after this step."""
    return step == first or (every > 0 and step > first and (step - first) % every == 0)


def _arcs(pointer: Pointer, searching: bool, aside: float) -> tuple[Arc | None, Arc | None]:
    """The arc that is asked for a square wave, and the arc that is asked for a clipped number."""
    if searching or not aside:
        return (EVERYONE, None) if searching else (None, EVERYONE)
    arc = pointer.take(int(CIRCLE * aside))
    return arc, Arc((arc.start + arc.length) % CIRCLE, CIRCLE - arc.length)


def _ask_parts(
    step: int, arcs: Sequence[Arc | None], parts: Sequence[tuple[ReportFormat, View]]
) -> Generator[Message, Reply, list[Sketch | None]]:
    """Ask each part of the step of its arc. Returns the sketch of each part; None where nobody was asked."""
    asks = [
        Ask(mechanism=mechanism, step=step, view=view, cohort=arc)
        for arc, (mechanism, view) in zip(arcs, parts, strict=True)
        if arc is not None
    ]
    sketches = iter([(yield from ask_once(asks[0]))] if len(asks) == 1 else (yield from ask_all(asks)))
    return [None if arc is None else next(sketches) for arc in arcs]


def _searched_mean(waves: Sketch | None, wave: SquareWave, view: Binned, theta: float) -> Estimate:
    """The mean of the numbers clipped to theta, from square waves of their magnitudes."""
    if waves is None or not waves.n:
        return _unknown()
    numbers = np.minimum(numbers_of(view), theta)
    distribution = wave.distribution(waves)
    mean, square = distribution.linear(numbers), float(distribution.value @ numbers**2)
    return replace(mean, kind="quantity", spread=max(square - float(mean.value[0]) ** 2, 0.0))


def _clipped_mean(waves: Sketch | None, clipped: Sketch | None, hybrid: Any) -> Estimate:
    """The mean of everyone who answered, estimated from the devices that reported a clipped number."""
    if clipped is None or not clipped.n:
        return _unknown()
    everyone = clipped.n + (waves.n if waves is not None else 0)
    mean: Estimate = hybrid.estimate(clipped)
    return replace(mean.of_population(everyone), n=everyone)


def _unknown() -> Estimate:
    return Estimate(np.zeros(1), np.full(1, np.inf), 0, "heuristic", "quantity")


def _update_threshold(
    known: _Known,
    wave: SquareWave,
    view: Binned,
    most: float,
    epsilon: float,
    longest: int,
    drawn: tuple[int, int],
) -> None:
    """Estimate the threshold for ranges of at most `longest` values, from the square waves since the last time.

    `drawn` is how many groups of devices there are, and how many people the group has that is asked.
    """
    reports = int(known.counts.sum())
    if not reports:
        return
    sketch = Sketch(wave.spec_id, reports, known.counts)
    known.theta, known.lost = tail_theta(wave, view, sketch, most=most, epsilon=epsilon, r=longest)
    known.above, known.hidden = clipped_away(wave, view, sketch, known.theta, *drawn)
    known.counts, known.heard = np.zeros_like(known.counts), 0


def clipping_of(memory: Memory) -> dict[str, Estimate]:
    """The share of people above the threshold, and what clipping their numbers hides; nothing before the search."""
    known = memory["known"]
    return {name: estimate for name, estimate in ((ABOVE, known.above), (LOST, known.hidden)) if estimate is not None}


def _widened(mean: Estimate, lost: float) -> Estimate:
    """The estimate with the squared bias of clipping added to its variance."""
    return replace(mean, variance=mean.variance + lost**2, bias="heuristic", spread=None, bounds=None)


def _remember(recent: _Recent, mean: Estimate) -> None:
    recent.people.append(float(mean.n))
    recent.means.append(float(mean.value[0]))
    recent.variances.append(float(mean.variance[0]) if mean.n else 0.0)


def _estimates(mean: Estimate, recent: _Recent, group: _Group | None, groups: int) -> Mapping[str, Estimate]:
    """The mean of the step; and the sums and means of the step and of the last steps together.

    One of several groups stands for all devices, the same at every step. Each device is in it with probability
    1/groups, so that a sum over them has the sampling variance (groups - 1) sum_i x_i^2, in which x_i is the value of
    device i, or of a mean the value less the mean. Of several steps it is at most the square of the sum of the steps'
    standard errors, whatever the same devices have in them.
    """
    people, means, variances = (np.array(part) for part in (recent.people, recent.means, recent.variances))
    if not mean.n or not people.sum():
        return {MAIN: mean}
    labels = ("this step", f"the last {len(people)} steps")
    total, error = people @ means, people**2 @ variances
    n = int(people.sum())

    def drawn(about: float, first: int) -> float:
        if group is None:
            return 0.0
        errors = np.sqrt(people * (np.array(group.spreads) + (means - about) ** 2))
        return (1 - 1 / groups) * float(errors[first:].sum()) ** 2

    sums = (
        groups * np.array([people[-1] * means[-1], total]),
        groups**2 * np.array([people[-1] ** 2 * variances[-1] + drawn(0.0, -1), error + drawn(0.0, 0)]),
    )
    averages = (
        np.array([means[-1], total / n]),
        np.array([float(mean.variance[0]), (error + drawn(total / n, 0)) / n**2]),
    )
    return {
        MAIN: mean,
        SUMS: Estimate(*sums, n, "heuristic", "quantity", labels),
        MEANS: Estimate(*averages, n, "heuristic", "quantity", labels),
    }
