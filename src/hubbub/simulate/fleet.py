"""The fleet: simulated devices, each with its place on the circle and its ledger, which answer asks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.core.random import Random
from hubbub.core.reports import Reports
from hubbub.core.sketch import Sketch
from hubbub.protocols.ask import Ask
from hubbub.protocols.cohort import CIRCLE, Arc
from hubbub.simulate.devices import Stream
from hubbub.simulate.ledgers import ACCOUNT, Ledgers, Rows

__all__ = ["Fleet", "Traffic"]

CHUNK = 1 << 17


@dataclass
class Traffic:
    """What was said, both ways: messages and bits. A standing ask is published once and needs no further word."""

    reports: int = 0
    report_bits: int = 0
    instructions: int = 0
    instruction_bits: int = 0

    def count(self, ask: Ask, reports: int) -> None:
        """Add the reports of an ask, and the word that asked each of them."""
        self.reports += reports
        self.report_bits += reports * ask.mechanism.report_bits
        if not ask.standing:
            self.instructions += reports
            self.instruction_bits += reports

    def per_device_and_step(self, n: int, steps: int) -> float:
        """Bits both ways, for each device and step.

        Example:
            >>> Traffic(report_bits=10, instruction_bits=10).per_device_and_step(5, 2)
            2.0
        """
        return (self.report_bits + self.instruction_bits) / (n * steps)


class Fleet:
    """Devices that answer asks from a stream of values, each as a client would: once, and if its ledger allows it.

    Devices are in the order of their places on the circle: a stream must not have those that are alike side by side.
    Chunks of devices are randomised and folded one after another, so that a population larger than memory can pass
    through.

    Parameters
    ----------
    stream
        What they hold.
    rng
        Their randomness, and their places.
    ledgers
        What they may spend; without ledgers they answer everything.

    Example:
        >>> from hubbub import GRR
        >>> from hubbub.simulate.devices import ArrayStream
        >>> fleet = Fleet(ArrayStream(np.array([[0, 1, 1, 1]]), domain=2), Random(seed=1))
        >>> fleet.answer(Ask(mechanism=GRR(epsilon=1.0, domain=2), step=1)).n, fleet.traffic.reports
        (4, 4)
    """

    def __init__(self, stream: Stream, rng: Random, *, ledgers: Ledgers | None = None) -> None:
        self.stream, self.rng, self.ledgers = stream, rng, ledgers
        self.places: NDArray[np.uint32] = np.sort(rng.uint32(stream.n))
        self.traffic = Traffic()

    def answer(self, ask: Ask) -> Sketch:
        """Everyone on the arc answers; the sketch of it."""
        sketch = ask.mechanism.empty()
        for who in self.on_arc(ask.cohort):
            for start in range(who.start, who.stop, CHUNK):
                reports = self.reports(ask, slice(start, min(start + CHUNK, who.stop)))
                sketch = sketch + ask.mechanism.accumulate(reports)
        self.traffic.count(ask, sketch.n)
        return sketch

    def reports(
        self, ask: Ask, who: Rows, *, now: int | None = None, account: str = ACCOUNT, question: str = ACCOUNT
    ) -> Reports:
        """What some devices on the arc send: a report of each that can pay for it.

        Parameters
        ----------
        ask
            The ask, which none of them has answered.
        who
            The devices, as a slice or by their numbers.
        now
            The time by their clocks; the ask's step unless given.
        account, question
            What pays, and for what.
        """
        values = self._values(ask.step, who)
        if self.ledgers is not None:
            time = ask.step if now is None else now
            paid = self.ledgers.spend(time, ask.event().spent, who, account=account, question=question)
            values = values if paid.all() else values[paid]
        return ask.mechanism.randomize(ask.view(values), self.rng)

    def on_arc(self, arc: Arc) -> Iterator[slice]:
        """The devices of an arc, in one or two runs."""
        for edges in arc.pieces():
            yield slice(*(self.stream.n if edge == CIRCLE else self._before(edge) for edge in edges))

    def _before(self, edge: int) -> int:
        return int(np.searchsorted(self.places, np.uint32(edge)))

    def _values(self, step: int, who: Rows) -> NDArray[np.generic]:
        if isinstance(who, slice):
            return self.stream.values(step, who.start, who.stop)
        return np.asarray(self.stream.values(step, 0, self.stream.n)[who])
