"""Watching a stream: simulated devices, a protocol, an alarm, and a ledger for every device."""

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hubbub.alarms.limits import limits_for, stderr_at
from hubbub.alarms.sequential import SequentialTest, WatchState
from hubbub.core.errors import InvalidValue
from hubbub.core.event import UNITS_PER_EPSILON
from hubbub.core.reports import Array, Floats
from hubbub.data.synthetic import sine_process
from hubbub.protocols.driver import Release, converse
from hubbub.protocols.window import Frequencies, Statistic, window_stream
from hubbub.random.source import Random
from hubbub.simulate.devices import ArrayStream, Stream, binary_stream
from hubbub.simulate.fleet import Fleet
from hubbub.simulate.ledgers import Ledgers
from hubbub.watch.moment import Moment, StepTimes


class Stepwise(Stream):
    """A stream whose steps are made as they are asked for: it takes the memory of one.

    `row`: makes the values that the devices hold at a step. `domain`: how many codes there are; None for numbers.
    """

    def __init__(self, row: Callable[[int], Array], *, n: int, steps: int, domain: int | None) -> None:
        self.n, self.steps, self.domain = n, steps, domain
        self._row, self._at = row, 0
        self._held: ArrayStream | None = None

    def values(self, step: int, start: int, stop: int) -> Array:
        return self._now(step).values(1, start, stop)

    def truth(self, step: int) -> Floats:
        return self._now(step).truth(1)

    def _now(self, step: int) -> ArrayStream:
        if self._held is None or step != self._at:
            self._at, self._held = step, ArrayStream(self._row(step)[np.newaxis], self.domain)
        return self._held


@dataclass(frozen=True, eq=False)
class WatchScene:
    """Devices, what they are asked, and which number of the answer is watched.

    Parameters
    ----------
    name, source
        What the number is, and where the devices come from.
    stream, question, weights
        What they hold, what is asked, and the weight of each released value in the number.
    span
        The least and the largest that the number can be.
    above, below
        Where the alarm goes on and off unless said otherwise.
    times
        When its steps are, where that is known.
    """

    name: str
    source: str
    stream: Stream
    question: Statistic
    weights: Floats
    span: tuple[float, float]
    above: float
    below: float
    notes: tuple[str, ...] = ()
    times: StepTimes | None = None

    @property
    def share(self) -> bool:
        """Whether the number is a share; otherwise it is a mean."""
        return isinstance(self.question, Frequencies)

    def truth(self, step: int) -> float:
        """The number at a step, which only a simulation knows."""
        return float(self.weights @ self.stream.truth(step))


def demo_scene(rng: Random, *, steps: int = 200, n: int = 200_000) -> WatchScene:
    """Devices of which a share, drawn anew at each step, holds a 1: a sine of 4% to 8%, which a surge lifts by 12%.

    The surge begins after 40% of the steps, is full from 45% to 65%, and is gone by 70%.
    """
    part = np.arange(steps) / steps
    ramp = np.clip(np.minimum(part - 0.40, 0.70 - part) / 0.05, 0.0, 1.0)
    process = sine_process(steps, amplitude=0.02, b=0.06, height=0.06) + 0.12 * (1 - np.cos(np.pi * ramp)) / 2

    def row(step: int) -> Array:
        return np.asarray(binary_stream(process[step - 1 : step], n, rng.child("step", step)).table[0])

    stream = Stepwise(row, n=n, steps=steps, domain=2)
    name, source = "share of devices that hold a 1", "demo: a sine with a surge"
    return WatchScene(name, source, stream, Frequencies(2), np.array([0.0, 1.0]), (0.0, 1.0), above=0.11, below=0.10)


STEPS_A_FALSE_ALARM = 1000
"""How many steps there are to a false alarm, on average, if the truth is always at the threshold."""


class StreamAlarm:
    """Goes on once the truth is found above a threshold, and off once it is found below another.

    `weights`: what is watched: one weight per value.
    """

    def __init__(self, weights: ArrayLike, *, above: float, below: float) -> None:
        if not below <= above:
            raise InvalidValue("below", below, f"at most above = {above}")
        self.above, self.below = above, below
        self._weights = np.asarray(weights, dtype=np.float64)
        limits = limits_for(1 / STEPS_A_FALSE_ALARM)
        self._test = SequentialTest(sides=("above",), raises=limits, clears=limits, threshold=above, ends=below)
        self._state = WatchState()

    @property
    def on(self) -> bool:
        """Whether it is on."""
        return self._state.raised is not None

    def judge(self, release: Release) -> bool:
        """Judge a release; return whether that turned the alarm on or off. A step without reports changes nothing."""
        own = release.own
        if own is None or not own.n:
            return False
        watched, expected = own.linear(self._weights), self._test.expects(self._state)
        at_null = 0.0 if expected is None else stderr_at(own, self._weights, expected)
        value, stderr = float(watched.value[0]), max(float(watched.stderr[0]), at_null)
        if not (math.isfinite(value) and 0 < stderr < math.inf):
            return False
        self._state, verdict = self._test.update(self._state, release.step, value, stderr)
        return verdict is not None


class Watch:
    """Runs a protocol over a scene. Iterating over it yields one Moment for each step.

    Every device has a ledger, and a window that would be exceeded stops the run with `BudgetExceeded`.

    Parameters
    ----------
    method, epsilon, w
        As in `window_stream`: epsilon in any w consecutive steps.
    steps
        How many steps to watch; all that the scene has unless given.
    above, below
        Where the alarm goes on and off; the scene's unless given. `below` is `above` if only that is given.
    options
        Options of the method, as in `window_stream`.
    """

    def __init__(
        self,
        scene: WatchScene,
        *,
        method: str,
        epsilon: float,
        w: int,
        rng: Random,
        steps: int | None = None,
        above: float | None = None,
        below: float | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.scene, self.method, self.epsilon, self.w = scene, method, epsilon, w
        self.share, self.span, self.times = scene.share, scene.span, scene.times
        self._protocol = window_stream(method, scene.question, epsilon=epsilon, w=w, **(options or {}))
        available = scene.stream.steps
        wanted = available if steps is None else steps
        if wanted is None or wanted < 1 or (available is not None and wanted > available):
            allowed = "a number of steps from 1" + ("" if available is None else f" to {available}")
            raise InvalidValue("steps", wanted, allowed)
        if w > wanted:
            raise InvalidValue("w", w, f"at most the {wanted} steps there are")
        self.steps = wanted
        if scene.stream.n < w:
            raise InvalidValue("devices", scene.stream.n, f"at least w = {w} devices, so that each step can ask one")
        usual = (scene.above, scene.below) if above is None else (above, above)
        for field, bound in (("above", above), ("below", below)):
            if bound is not None and not scene.span[0] <= bound <= scene.span[1]:
                raise InvalidValue(field, bound, f"a number from {scene.span[0]:g} to {scene.span[1]:g}")
        self.alarm = StreamAlarm(scene.weights, above=usual[0], below=usual[1] if below is None else below)
        self.thresholds: tuple[float, ...] = (self.alarm.above, self.alarm.below)
        self.ledgers = Ledgers.of_window(scene.stream.n, epsilon=epsilon, w=w, strict=True)
        self.fleet = Fleet(scene.stream, rng, ledgers=self.ledgers)
        self.moments: list[Moment] = []
        self._window: deque[float] = deque(maxlen=w)
        self._most = 0

    def __iter__(self) -> Iterator[Moment]:
        for release in converse(self._protocol, self.fleet.answer, steps=self.steps):
            moment = self._moment(release)
            self.moments.append(moment)
            yield moment

    @property
    def most_spent(self) -> float:
        """The most that any device has spent in any window, by its ledger."""
        return self._most / UNITS_PER_EPSILON

    @property
    def published(self) -> int:
        """How many releases were published, not approximated."""
        return sum(moment.published for moment in self.moments)

    @property
    def known(self) -> int:
        """How many releases have an interval."""
        return sum(not math.isnan(moment.low) for moment in self.moments)

    @property
    def covered(self) -> int:
        """How many 95% intervals held the truth, of those that are known."""
        return sum(moment.low <= moment.truth <= moment.high for moment in self.moments)

    @property
    def changes(self) -> list[Moment]:
        """When the alarm went on or off."""
        return [moment for moment in self.moments if moment.changed]

    def _moment(self, release: Release) -> Moment:
        self._window.append(release.spent)
        # A ledger only falls as steps leave the window, so the largest is seen right after a step's asks.
        self._most = max(self._most, self.ledgers.most)
        changed, watched = self.alarm.judge(release), release.estimate.linear(self.scene.weights)
        value = float(watched.value[0]) if release.estimate.n else math.nan  # before the first report
        low, high = (float(end[0]) if math.isfinite(end[0]) else math.nan for end in watched.interval(0.95))
        return Moment(
            step=release.step,
            value=value,
            low=low,
            high=high,
            published=release.published,
            spent=sum(self._window) * self.epsilon,
            n=release.n,
            alarm=self.alarm.on,
            changed=changed,
            truth=self.scene.truth(release.step),
            bits=self.fleet.traffic.per_device_and_step(self.scene.stream.n, 1),
            time=None if self.times is None else self.times.begins(release.step),
        )
