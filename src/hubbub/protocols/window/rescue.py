"""RescueDP and FAST: sample at intervals that feedback adjusts, and filter the estimates."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.protocols.driver import Protocol
from hubbub.protocols.memory import Memory
from hubbub.protocols.window.control import Kalman, Pid
from hubbub.protocols.window.division import Division
from hubbub.protocols.window.finite import finite_parts
from hubbub.protocols.window.last_publication import LastPublication


@dataclass
class _Schedule:
    """The present interval between samples, and the step of the next sample."""

    interval: float = 1.0
    due: int = 1


def rescue_parts(division: Division, *, most: float = 0.1) -> tuple[int, ...]:
    """The numbers of parts that an ask of RescueDP can take, if everyone answers."""
    return tuple(parts for parts in finite_parts(division.total) if parts <= division.portion(most))


def fast_parts(division: Division, *, samples: int = 0) -> tuple[int, ...]:
    """The parts that an ask of FAST takes."""
    samples = samples or max(1, division.w // 4)
    if not 1 <= samples <= division.w:
        raise InvalidValue("samples", samples, f"an integer from 1 to w = {division.w}")
    return (division.total // samples,)


def rescue(
    division: Division,
    *,
    scale: float = 0.2,
    most_share: float = 0.6,
    most: float = 0.1,
    gain: float = 2.0,
    process_variance: float | None = None,
    memory: Memory | None = None,
) -> Protocol:
    """Sample at intervals that widen while little changes, with a budget that grows with the interval (Algorithm 5).

    A sample takes min(scale ln(I + 1), most_share) of what the window has left, at most `most` of the window, where I
    is the interval. The interval grows by gain (1 - (d / error)^2), where d is the distance between the filtered value
    and the last release after PID control, and error the standard error of the fresh estimate.
    """
    memory = memory or Memory()
    kalman, pid = memory.keep("kalman", Kalman(process_variance)), memory.keep("pid", Pid())
    last = memory.keep("last", LastPublication(division))
    schedule = memory.keep("rhythm", _Schedule())
    while True:
        kalman.advance()
        fresh = None
        if division.step >= schedule.due:
            part = min(scale * math.log(schedule.interval + 1), most_share)
            parts = min(int(part * division.left()), division.portion(most))
            fresh = yield from division.ask(division.round_parts(parts, division.total))
        if fresh is None:
            schedule.due = max(schedule.due, division.step + 1)
            yield last.release_value(kalman.value if kalman.begun else last.value, None, published=False)
            continue
        value = kalman.correct(fresh)
        if last.step:
            moved = math.sqrt(float(np.mean((value - last.value) ** 2)))
            distance = pid.feedback(moved, elapsed=division.step - last.step)
            error = math.sqrt(float(np.mean(fresh.variance)))
            longer = schedule.interval + gain * (1 - (distance / error) ** 2)
            schedule.interval = max(1.0, min(longer, float(division.w)))
        schedule.due = division.step + round(schedule.interval)
        last.publish(value)
        yield last.release_value(value, fresh, published=True)


def fast(
    division: Division,
    *,
    samples: int = 0,
    gain: float = 2.0,
    target: float = 1.0,
    process_variance: float | None = None,
    memory: Memory | None = None,
) -> Protocol:
    """At most `samples` in a window, each with an equal part; a PID controller sets the interval, a filter the value.

    FAST promises user-level privacy over a finite stream; this form, with w-event privacy, is ours: samples are counted
    in a sliding window. The interval grows by gain (1 - e^((d - target)/target)), where d is the distance between
    prediction and correction in standard errors, after PID control.
    """
    w = division.w
    (part,) = fast_parts(division, samples=samples)
    samples = samples or max(1, w // 4)
    memory = memory or Memory()
    kalman, pid = memory.keep("kalman", Kalman(process_variance)), memory.keep("pid", Pid())
    last = memory.keep("last", LastPublication(division))
    schedule = memory.keep("rhythm", _Schedule(max(1.0, w / samples)))
    while True:
        kalman.advance()
        prior = kalman.value if kalman.begun else None
        fresh = None
        if division.step >= schedule.due and part <= division.left():
            fresh = yield from division.ask(part)
        if fresh is None:
            yield last.release_value(last.value if prior is None else prior, None, published=False)
            continue
        value = kalman.correct(fresh)
        if prior is not None:
            moved = math.sqrt(float(np.mean((value - prior) ** 2)))
            error = math.sqrt(float(np.mean(kalman.variance)))
            feedback = pid.feedback(moved / error, elapsed=division.step - last.step)
            longer = schedule.interval + gain * (1 - math.exp(min((feedback - target) / target, 5.0)))
            schedule.interval = min(max(1.0, longer), 2.0 * w)
        schedule.due = division.step + round(schedule.interval)
        last.publish(value)
        yield last.release_value(value, fresh, published=True)
