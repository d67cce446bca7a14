"""The sequential test of one watched quantity: a pure function of a small state, which is stored as JSON."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, NamedTuple

from hubbub.alarms.limits import AlarmLimits
from hubbub.core.spec import Json

Direction = Literal["above", "below"]


@dataclass(frozen=True)
class Evidence:
    """The evidence for a change: the sum of a CUSUM, the step in which it last left 0, and its steps since then."""

    sum: float = 0.0
    since: int = 0
    steps: int = 0

    def add(self, x: float, step: int, limits: AlarmLimits) -> Evidence:
        """The evidence after one more step with the standardised estimate x."""
        previous = self.sum if math.isfinite(limits.h) else 0.0
        total = previous + x - limits.k
        if total <= 0:
            return Evidence()
        return Evidence(total, self.since if previous else step, self.steps + 1 if previous else 1)


class Verdict(NamedTuple):
    """The decision of a step: an alarm is raised or cleared, on which side, and since which step this seems true."""

    state: Literal["raised", "cleared"]
    direction: Direction
    since: int


@dataclass(frozen=True)
class WatchState:
    """The state of a watched quantity.

    Parameters
    ----------
    learnt, weight, total, roots
        The baseline: the number of steps it rests on, and the sums of 1/variance, of value/variance and of 1/stderr.
    above, below, back
        The evidence for a change to each side and, while the alarm is raised, for its end.
    raised, since, clears, event
        While the alarm is raised: its side, the step since which it is true, the value at which it is cleared, and the
        number of the event.
    """

    learnt: int = 0
    weight: float = 0.0
    total: float = 0.0
    roots: float = 0.0
    above: Evidence = field(default=Evidence())
    below: Evidence = field(default=Evidence())
    back: Evidence = field(default=Evidence())
    raised: Direction | None = None
    since: int | None = None
    clears: float | None = None
    event: int = 0
    step: int | None = None
    value: float | None = None
    stderr: float | None = None

    @property
    def baseline(self) -> float | None:
        """The baseline as learnt so far."""
        return self.total / self.weight if self.learnt else None

    def to_json(self) -> dict[str, Json]:
        return asdict(self)

    @staticmethod
    def from_json(fields: dict[str, Any]) -> WatchState:
        """Read a state back."""
        evidence = {side: Evidence(**fields[side]) for side in ("above", "below", "back")}
        return WatchState(**{**fields, **evidence})


@dataclass(frozen=True, kw_only=True)
class SequentialTest:
    """A CUSUM test with a Shewhart limit that raises and clears an alarm.

    The null hypothesis is that the truth is *at* the threshold, or at the baseline; while the alarm is raised, that it
    is at the value where the alarm is cleared.

    Parameters
    ----------
    sides
        The sides on which a change is looked for.
    raises, clears
        The limits of the test for a change to one side, and of the test for its end.
    threshold
        The threshold; None if a baseline is learnt instead.
    ends
        With a threshold: the value at which a raised alarm is cleared. With a baseline: that value's distance from it;
        None for half of the change.
    baseline
        The number of steps from which the baseline is learnt.
    independent
        Whether the errors of steps are independent.
    """

    sides: tuple[Direction, ...]
    raises: AlarmLimits
    clears: AlarmLimits
    threshold: float | None = None
    ends: float | None = None
    baseline: int = 0
    independent: bool = True

    def update(self, state: WatchState, step: int, value: float, stderr: float) -> tuple[WatchState, Verdict | None]:
        """The state after one more step, and the decision if there is one."""
        state = replace(state, step=step, value=value, stderr=stderr)
        if state.raised is not None:
            return self._look_for_end(state, state.raised, step, value, stderr)
        if self.threshold is None and state.learnt < self.baseline:
            return _learn(state, value, stderr), None
        expected = self.expects(state)
        assert expected is not None
        distance = value - expected
        scale = self._scale(state, stderr)
        for side in self.sides:
            x = (distance if side == "above" else -distance) / scale
            evidence = getattr(state, side).add(x, step, self.raises)
            if evidence.sum >= self.raises.h or x >= self.raises.z:
                shift = scale * (self.raises.k + evidence.sum / evidence.steps)
                end = self._end(state, side, shift)
                state = replace(state, above=Evidence(), below=Evidence(), back=Evidence())
                state = replace(state, raised=side, since=evidence.since, clears=end)
                return state, Verdict("raised", side, evidence.since)
            state = replace(state, **{side: evidence})
        return state, None

    def expects(self, state: WatchState) -> float | None:
        """The value of the null hypothesis for the next step; None before the first step of a baseline."""
        if state.raised is not None:
            return state.clears
        return state.baseline if self.threshold is None else self.threshold

    def _look_for_end(
        self, state: WatchState, raised: Direction, step: int, value: float, stderr: float
    ) -> tuple[WatchState, Verdict | None]:
        assert state.clears is not None
        x = (state.clears - value if raised == "above" else value - state.clears) / stderr
        evidence = state.back.add(x, step, self.clears)
        if evidence.sum >= self.clears.h or x >= self.clears.z:
            quiet = replace(state, raised=None, since=None, clears=None, back=Evidence())
            return quiet, Verdict("cleared", raised, evidence.since)
        return replace(state, back=evidence), None

    def _scale(self, state: WatchState, stderr: float) -> float:
        """The standard error that standardises a step, with the error of a learnt baseline where limits leave it out.

        The limits assume that the steps of the baseline were as accurate as this one. A step that is more accurate is
        therefore treated like a step of the baseline.
        """
        if self.threshold is not None:
            return stderr
        if not self.independent:
            return stderr + state.roots / state.weight
        return max(stderr, math.sqrt(state.learnt / state.weight))

    def _end(self, state: WatchState, side: Direction, shift: float) -> float:
        """The value at which an alarm is cleared that was raised by a change of about `shift`."""
        if self.threshold is not None:
            return self.threshold if self.ends is None else self.ends
        assert state.baseline is not None
        distance = shift / 2 if self.ends is None else self.ends
        return state.baseline + (distance if side == "above" else -distance)


def _learn(state: WatchState, value: float, stderr: float) -> WatchState:
    weight = 1 / stderr**2
    return replace(
        state,
        learnt=state.learnt + 1,
        weight=state.weight + weight,
        total=state.total + weight * value,
        roots=state.roots + 1 / stderr,
    )
