"""DSAT_w: publish if the stream has moved past a threshold, which is adjusted to keep publications at a set rate."""

from __future__ import annotations

from dataclasses import dataclass, field

from hubbub.core.errors import InvalidValue
from hubbub.protocols.driver import Protocol
from hubbub.protocols.memory import Memory
from hubbub.protocols.window.control import Pid
from hubbub.protocols.window.division import Division
from hubbub.protocols.window.last_publication import LastPublication, dissimilarity


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
