"""Watching a stream: simulated devices, a protocol, an alarm, and a ledger for every device."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator

from hubbub.core.errors import InvalidValue
from hubbub.core.event import UNITS_PER_EPSILON
from hubbub.core.random import Random
from hubbub.demo.moment import Moment
from hubbub.demo.stream_alarm import StreamAlarm
from hubbub.demo.watch_scenes import WatchScene
from hubbub.protocols.driver import converse
from hubbub.protocols.release import Release
from hubbub.protocols.window import window_stream
from hubbub.simulate.fleet import Fleet
from hubbub.simulate.ledgers import Ledgers


class Watch:
    """Runs a protocol over a scene. Iterating over it yields one Moment for each step.

    Every device has a ledger, and a window that would be exceeded stops the run with `BudgetExceeded`.

    Parameters
    ----------
    scene
        What is watched.
    method, epsilon, w
        As in `window_stream`: epsilon in any w consecutive steps.
    steps
        How many steps to watch; all that the scene has unless given.
    above, below
        Where the alarm goes on and off; the scene's unless given. `below` is `above` if only that is given.
    rng
        The devices' randomness.
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
    ) -> None:
        self.scene, self.method, self.epsilon, self.w = scene, method, epsilon, w
        self.share, self.span, self.times = scene.share, scene.span, scene.times
        self._protocol = window_stream(method, scene.question, epsilon=epsilon, w=w)
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
