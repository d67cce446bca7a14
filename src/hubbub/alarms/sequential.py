"""The test of one watched quantity, step by step: a pure function of a small state, which is JSON."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, NamedTuple

from hubbub.alarms.limits import AlarmLimits
from hubbub.core.spec import Json

Direction = Literal["above", "below"]


@dataclass(frozen=True)
class Evidence:
    """What speaks for a change: the sum of a CUSUM, the step in which it last left 0, and how many it has added since.

    Example:
        >>> limits = AlarmLimits(k=0.5, h=4.0, z=9.0)
        >>> Evidence().add(2.0, 7, limits).add(1.5, 8, limits)
        Evidence(sum=2.5, since=7, steps=2)
        >>> Evidence().add(-2.0, 7, limits)
        Evidence(sum=0.0, since=0, steps=0)
    """

    sum: float = 0.0
    since: int = 0
    steps: int = 0

    def add(self, x: float, step: int, limits: AlarmLimits) -> Evidence:
        """With one more step, of which x is the standardised estimate."""
        before = self.sum if math.isfinite(limits.h) else 0.0
        total = before + x - limits.k
        if total <= 0:
            return Evidence()
        return Evidence(total, self.since if before else step, self.steps + 1 if before else 1)


class Verdict(NamedTuple):
    """What a step decided: on which side, and since when that is thought to be so."""

    state: Literal["raised", "cleared"]
    direction: Direction
    since: int


@dataclass(frozen=True)
class WatchState:
    """All that is known of a watched quantity.

    Parameters
    ----------
    learnt, weight, total, roots
        Of the baseline: how many steps it rests on; the sums of 1/variance, of value/variance and of 1/stderr.
    above, below, back
        The evidence for a change to each side, and while the alarm is raised for the end of it.
    raised, since, clears, event
        On which side the alarm is raised, if it is, and since which step; where it then ends; the number of the event
        that told of it.
    step, value, stderr
        The last estimate.

    Example:
        >>> WatchState.from_json(WatchState(learnt=3).to_json()) == WatchState(learnt=3)
        True
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
        """What was learnt so far."""
        return self.total / self.weight if self.learnt else None

    def to_json(self) -> dict[str, Json]:
        """The state as JSON."""
        return asdict(self)

    @staticmethod
    def from_json(told: dict[str, Any]) -> WatchState:
        """Read a state back."""
        evidence = {side: Evidence(**told[side]) for side in ("above", "below", "back")}
        return WatchState(**{**told, **evidence})


@dataclass(frozen=True, kw_only=True)
class SequentialTest:
    """How steps are judged.

    The null hypothesis is that the truth is *at* the threshold, or where the baseline is; while the alarm is raised,
    that it is where the alarm ends.

    Parameters
    ----------
    sides
        Where a change is looked for.
    raises, clears
        The limits of the test for a change to one side, and for its end.
    threshold
        A given one; otherwise it is learnt.
    ends
        With a threshold: where a raised alarm ends. Otherwise how far from the baseline; None is half the way back.
    baseline
        From how many steps the threshold is learnt.
    pools
        Whether the errors of steps are independent.

    Example:
        >>> limits = AlarmLimits(k=0.5, h=8.0, z=4.0)
        >>> test = SequentialTest(sides=("above",), raises=limits, clears=limits, threshold=0.2, ends=0.2)
        >>> state = WatchState()
        >>> for step, share in enumerate([0.19, 0.23, 0.26, 0.26]):
        ...     state, verdict = test.update(state, step, share, stderr=0.01)
        ...     print(verdict)
        None
        None
        Verdict(state='raised', direction='above', since=1)
        None
    """

    sides: tuple[Direction, ...]
    raises: AlarmLimits
    clears: AlarmLimits
    threshold: float | None = None
    ends: float | None = None
    baseline: int = 0
    pools: bool = True

    def update(self, state: WatchState, step: int, value: float, stderr: float) -> tuple[WatchState, Verdict | None]:
        """What is known after one more step, and what that decided."""
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
                return replace(state, raised=side, since=evidence.since, clears=end), Verdict(
                    "raised", side, evidence.since
                )
            state = replace(state, **{side: evidence})
        return state, None

    def expects(self, state: WatchState) -> float | None:
        """What the next step is compared with; None before the first of a baseline."""
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
        """What a distance is measured in: the standard error of the step, and what a learnt threshold adds to it.

        The limits count the error of a baseline as that of so many steps like this one. A step that is more accurate
        than those of the baseline were is judged as one of them.
        """
        if self.threshold is not None:
            return stderr
        if not self.pools:
            return stderr + state.roots / state.weight
        return max(stderr, math.sqrt(state.learnt / state.weight))

    def _end(self, state: WatchState, side: Direction, shift: float) -> float:
        """Where an alarm ends that was raised by a shift of about so much."""
        if self.threshold is not None:
            return self.threshold if self.ends is None else self.ends
        assert state.baseline is not None
        away = shift / 2 if self.ends is None else self.ends
        return state.baseline + (away if side == "above" else -away)


def _learn(state: WatchState, value: float, stderr: float) -> WatchState:
    weight = 1 / stderr**2
    return replace(
        state,
        learnt=state.learnt + 1,
        weight=state.weight + weight,
        total=state.total + weight * value,
        roots=state.roots + 1 / stderr,
    )
