"""RescueDP and FAST: sample at intervals that feedback adjusts, and filter what comes back."""

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
from hubbub.protocols.window.last import Last


@dataclass
class _Rhythm:
    """How far apart samples are now, and the step of the next."""

    interval: float = 1.0
    due: int = 1


def rescue_parts(division: Division, *, most: float = 0.1) -> tuple[int, ...]:
    """What its asks can take, where everyone answers them.

    Example:
        >>> from hubbub.protocols.window import BudgetDivision, Frequencies
        >>> len(rescue_parts(BudgetDivision(Frequencies(2), epsilon=1.0, w=20)))
        74
    """
    return tuple(parts for parts in finite_parts(division.total) if parts <= division.portion(most))


def fast_parts(division: Division, *, samples: int = 0) -> tuple[int, ...]:
    """What its asks take.

    Example:
        >>> from hubbub.protocols.window import BudgetDivision, Frequencies
        >>> fast_parts(BudgetDivision(Frequencies(2), epsilon=1.0, w=20))
        (200000000000,)
    """
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
    """Sample with a part of what is left that grows with the interval, which widens while little changes (Algorithm 5).

    The part is min(scale ln(I + 1), most_share) of what the window has left, at most `most` of the window. The interval
    grows by gain (1 - (d / error)^2), d being the controlled distance between the filtered value and the last release
    and error the standard error of the fresh estimate.

    Example:
        >>> from hubbub.protocols.window import Frequencies, PopulationDivision
        >>> round(next(rescue(PopulationDivision(Frequencies(2), epsilon=1.0, w=4))).cohort.share, 3)
        0.1
    """
    memory = memory or Memory()
    kalman, pid = memory.keep("kalman", Kalman(process_variance)), memory.keep("pid", Pid())
    last = memory.keep("last", Last(division))
    rhythm = memory.keep("rhythm", _Rhythm())
    while True:
        kalman.advance()
        fresh = None
        if division.step >= rhythm.due:
            part = min(scale * math.log(rhythm.interval + 1), most_share)
            parts = min(int(part * division.left()), division.portion(most))
            fresh = yield from division.ask(division.round_parts(parts, division.total))
        if fresh is None:
            rhythm.due = max(rhythm.due, division.step + 1)
            yield last.say(kalman.value if kalman.begun else last.value, None, published=False)
            continue
        value = kalman.correct(fresh)
        if last.step:
            moved = math.sqrt(float(np.mean((value - last.value) ** 2)))
            distance = pid.feedback(moved, elapsed=division.step - last.step)
            error = math.sqrt(float(np.mean(fresh.variance)))
            longer = rhythm.interval + gain * (1 - (distance / error) ** 2)
            rhythm.interval = max(1.0, min(longer, float(division.w)))
        rhythm.due = division.step + round(rhythm.interval)
        last.publish(value)
        yield last.say(value, fresh, published=True)


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

    FAST promises user-level privacy over a finite stream; this is its form for w-event privacy, ours: the samples are
    counted over a window, which recycles what they took. The interval grows by gain (1 - e^((d - target)/target)), d
    being the controlled distance between prediction and correction in standard errors.

    Example:
        >>> from hubbub.protocols.window import Frequencies, PopulationDivision
        >>> next(fast(PopulationDivision(Frequencies(2), epsilon=1.0, w=4), samples=2)).cohort.share
        0.5
    """
    w = division.w
    (part,) = fast_parts(division, samples=samples)
    samples = samples or max(1, w // 4)
    memory = memory or Memory()
    kalman, pid = memory.keep("kalman", Kalman(process_variance)), memory.keep("pid", Pid())
    last = memory.keep("last", Last(division))
    rhythm = memory.keep("rhythm", _Rhythm(max(1.0, w / samples)))
    while True:
        kalman.advance()
        prior = kalman.value if kalman.begun else None
        fresh = None
        if division.step >= rhythm.due and part <= division.left():
            fresh = yield from division.ask(part)
        if fresh is None:
            yield last.say(last.value if prior is None else prior, None, published=False)
            continue
        value = kalman.correct(fresh)
        if prior is not None:
            moved = math.sqrt(float(np.mean((value - prior) ** 2)))
            error = math.sqrt(float(np.mean(kalman.variance)))
            feedback = pid.feedback(moved / error, elapsed=division.step - last.step)
            longer = rhythm.interval + gain * (1 - math.exp(min((feedback - target) / target, 5.0)))
            rhythm.interval = min(max(1.0, longer), 2.0 * w)
        rhythm.due = division.step + round(rhythm.interval)
        last.publish(value)
        yield last.say(value, fresh, published=True)
