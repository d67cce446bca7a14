"""Other methods made w-event private: DSAT, PeGaSus, RescueDP and FAST."""

import math
from dataclasses import dataclass, field

import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.reports import Floats
from hubbub.protocols.driver import Protocol
from hubbub.protocols.memory import Memory
from hubbub.protocols.window.division import Division, finite_parts
from hubbub.protocols.window.filters import TINY, Kalman, LastPublication, Pid, dissimilarity, pooled


@dataclass
class _Threshold:
    """The height of the threshold, and the steps of the window's publications."""

    height: float
    steps: list[int] = field(default_factory=list)


def dsat_parts(division: Division, *, beta: float = 0.5, publications: int = 0) -> tuple[int, int]:
    """The parts that a measurement and a publication take."""
    publications = publications or max(1, division.w // 4)
    if not 1 <= publications <= division.w:
        raise InvalidValue("publications", publications, f"an integer from 1 to w = {division.w}")
    measure = division.portion(beta) // division.w
    return measure, (division.total - measure * division.w) // publications


def dsat(
    division: Division,
    *,
    beta: float = 0.5,
    publications: int = 0,
    threshold: float = 0.0,
    tolerance: float = 0.05,
    filtered: bool = True,
    memory: Memory | None = None,
) -> Protocol:
    """At most `publications` (C) in a window, by a threshold that a PID controller adjusts (Algorithm 4, corrected).

    As printed the algorithm overspends: here a measurement takes a w-th of the part for measurements, not a C-th. The
    rate of publications is counted over the steps of the window only. The threshold is a multiple of the error of a
    publication, so that it means the same for every statistic; it starts at `threshold`, 1 unless given. C is a quarter
    of w unless given. Unless `filtered`, a step without a publication releases the last one again, as printed.
    """
    w, memory = division.w, memory or Memory()
    last, pid = memory.keep("last", LastPublication(division, filtered=filtered)), memory.keep("pid", Pid())
    measure, publish = dsat_parts(division, beta=beta, publications=publications)
    publications = publications or max(1, w // 4)
    bar = memory.keep("bar", _Threshold(threshold or 1.0))
    while True:
        measured = yield from division.ask(measure, standing=True)
        bar.steps = [step for step in bar.steps if step > division.step - w]
        fresh = None
        if measured is not None and len(bar.steps) < publications:
            excess = len(bar.steps) / min(division.step, w) - publications / w
            change = pid.feedback(abs(abs(excess) - tolerance) / tolerance) * 0.1
            bar.height = max(0.0, bar.height - change) if excess < 0 else min(20.0, bar.height + change)
            error = division.error(publish, measured.value)
            if last.step == 0 or dissimilarity(measured, last.value) >= bar.height * error:
                bar.steps.append(division.step)
                fresh = yield from division.ask(publish, then=measure)
        yield last.release(fresh, measured)


@dataclass
class _Group:
    """The sums of a group's independent estimates, weighted by their precision, and of the precisions."""

    weighted: Floats
    weight: Floats
    steps: int = 0

    def clear(self) -> None:
        self.weighted, self.weight, self.steps = 0 * self.weighted, 0 * self.weight, 0

    def smooth(self, fresh: Estimate) -> Floats:
        """Add an estimate, and return the weighted mean of all."""
        precision = 1 / np.maximum(fresh.variance, TINY)
        self.weighted, self.weight = self.weighted + precision * fresh.value, self.weight + precision
        self.steps += 1
        return np.asarray(self.weighted / self.weight)


def pegasus_parts(division: Division, *, beta: float = 0.2) -> tuple[int, int]:
    """The parts that the grouper and the perturber take."""
    step_parts = division.total // division.w
    measure = int(step_parts * beta)
    return measure, step_parts - measure


def pegasus(division: Division, *, beta: float = 0.2, tolerance: float = 1.0, memory: Memory | None = None) -> Protocol:
    """Release the mean of the estimates of the current group of steps, which ends when the stream moves away from it.

    PeGaSus promises event-level privacy with a trusted server; this form, with w-event privacy and without a trusted
    server, is ours. Of the w-th of every step, `beta` measures whether the stream is still near the group's mean (the
    grouper), and the rest estimates the values (the perturber). A group ends when the distance is above `tolerance`
    times the error of one estimate.
    """
    if not 0 < beta < 1:
        raise InvalidValue("beta", beta, "a number between 0 and 1")
    memory, size = memory or Memory(), division.question.size
    last = memory.keep("last", LastPublication(division))
    group = memory.keep("group", _Group(np.zeros(size), np.zeros(size)))
    measure, publish = pegasus_parts(division, beta=beta)
    while True:
        measured = yield from division.ask(measure, standing=True)
        fresh = yield from division.ask(publish, standing=True, then=measure)
        if fresh is None:
            yield last.release_value(last.value, measured, published=False)
            continue
        if group.steps and measured is not None:
            error = float(np.mean(fresh.variance))
            if dissimilarity(measured, last.value) > tolerance * error:
                group.clear()
        last.publish(group.smooth(fresh))
        own = fresh if measured is None else pooled([measured, fresh])
        yield last.release_value(last.value, own, published=True)


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
