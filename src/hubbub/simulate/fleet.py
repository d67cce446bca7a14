"""The fleet: simulated devices, each with its place on the circle, its ledger and what it remembers, answer asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.random import Random
from hubbub.core.reports import Reports
from hubbub.core.sketch import Sketch
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.stateful import Stateful, States
from hubbub.protocols.ask import Ask
from hubbub.protocols.cohort import CIRCLE, Arc
from hubbub.protocols.count import Count, CountResult
from hubbub.simulate.devices import Stream
from hubbub.simulate.ledgers import ACCOUNT, Ledgers, Rows, StudyPayments

CHUNK = 1 << 17

Present = Callable[[int], NDArray[np.bool_]]
"""Which of all devices are there at a step."""


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
    through. To a `Stateful` mechanism devices bring what they remember; to any other they make a fresh report.

    Parameters
    ----------
    stream
        What they hold.
    rng
        Their randomness, and their places.
    ledgers
        What they may spend; without ledgers they answer everything.
    first
        The step of the collection that the asks' step 1 is; 1 where asks name the collection's own steps.
    present
        Which devices are there at a step of the stream; all of them unless given.
    study
        How devices pay for a study. Then all asks are of that study, and about what devices hold at step 1.

    Example:
        >>> from hubbub import GRR, BasicRappor
        >>> from hubbub.simulate.devices import ArrayStream
        >>> fleet = Fleet(ArrayStream(np.array([[0, 1, 1, 1]]), domain=2), Random(seed=1))
        >>> fleet.answer(Ask(mechanism=GRR(epsilon=1.0, domain=2), step=1)).n, fleet.traffic.reports
        (4, 4)
        >>> stream = ArrayStream(np.array([[0, 1, 1, 1], [0, 0, 1, 1]]), domain=2)
        >>> fleet = Fleet(stream, Random(seed=1), ledgers=Ledgers.of_window(4, epsilon=5.0, w=0))
        >>> rappor = BasicRappor(epsilon=2.0, domain=2)
        >>> [fleet.answer(Ask(mechanism=rappor, step=step)).n for step in (1, 2)]  # who cannot pay goes on as before
        [4, 4]
    """

    def __init__(
        self,
        stream: Stream,
        rng: Random,
        *,
        ledgers: Ledgers | None = None,
        first: int = 0,
        present: Present | None = None,
        study: StudyPayments | None = None,
    ) -> None:
        self.stream, self.rng, self.ledgers = stream, rng, ledgers
        self.places: NDArray[np.uint32] = np.sort(rng.uint32(stream.n))
        self.traffic = Traffic()
        self._first, self._present, self._study = first, present, study
        self._kept: dict[str, list[Reports]] = {}
        self._remembered: dict[tuple[str, str, int], tuple[str, States]] = {}

    def answer(self, ask: Ask, *, now: int | None = None, account: str = ACCOUNT, question: str = ACCOUNT) -> Sketch:
        """Everyone on the arc who is there answers, as of `reports`; the sketch of it."""
        sketch, kept = ask.mechanism.empty(), []
        for who in self.on_arc(ask.cohort):
            for reports in self.reports(ask, who, now=now, account=account, question=question):
                sketch = sketch + ask.mechanism.accumulate(reports)
                if ask.kept:
                    kept.append(reports)
        if ask.kept:
            self._kept[ask.ask_id] = kept
        self.traffic.count(ask, sketch.n)
        return sketch

    def count(self, count: Count) -> CountResult:
        """The support of candidates among the reports kept of the latest ask that equals the one named.

        Example:
            >>> from hubbub import OLH
            >>> from hubbub.simulate.devices import ArrayStream
            >>> fleet = Fleet(ArrayStream(np.zeros((1, 500), dtype=int), domain=9), Random(seed=1))
            >>> ask = Ask(mechanism=OLH(epsilon=4.0, domain=9), step=1, kept=True)
            >>> _ = fleet.answer(ask)
            >>> counted = fleet.count(Count(ask, (0, 8)))
            >>> counted.n, bool(counted.support[0] > counted.support[1])
            (500, True)
        """
        batches = self._kept.get(count.ask.ask_id)
        if batches is None:
            raise InvalidValue("ask", count.ask.ask_id, "an ask that was answered")
        return count.among(lambda: batches)

    def reports(
        self, ask: Ask, who: Rows, *, now: int | None = None, account: str = ACCOUNT, question: str = ACCOUNT
    ) -> Iterator[Reports]:
        """What some devices send, in batches: a report of each that is there, can pay, and has something to say.

        Parameters
        ----------
        ask
            The ask, which none of them has answered.
        who
            The devices, as a slice or by their numbers in ascending order.
        now
            The time by their clocks; the collection's step unless given.
        account, question
            What pays, and for what.
        """
        step = self._first + ask.step - 1
        payment = (step if now is None else now, account, question)
        if self._present is not None:
            there = np.flatnonzero(self._present(ask.step))
            who = np.intersect1d(there, np.arange(self.stream.n)[who], assume_unique=True)
        for chunk in _chunks(who):
            if isinstance(ask.mechanism, Stateful):
                yield self._step(ask, ask.mechanism, step, chunk, payment)
            else:
                assert isinstance(ask.mechanism, Mechanism)
                paid = self._pay(ask.event().spent, chunk, payment)
                values = self._values(ask, chunk)
                yield ask.mechanism.randomize(ask.view.look(values if paid.all() else values[paid], self.rng), self.rng)

    def on_arc(self, arc: Arc) -> Iterator[slice]:
        """The devices of an arc, in one or two runs."""
        for edges in arc.pieces():
            yield slice(*(self.stream.n if edge == CIRCLE else self._before(edge) for edge in edges))

    def _step(self, ask: Ask, mechanism: Stateful, step: int, who: Rows, payment: tuple[int, str, str]) -> Reports:
        """Devices of one chunk take a step with what they remember."""
        rows = np.arange(who.start, who.stop) if isinstance(who, slice) else who
        number = int(rows[0]) // CHUNK
        start, size = number * CHUNK, min(CHUNK, self.stream.n - number * CHUNK)
        place = (payment[2], mechanism.spec_id, number)
        key, states = self._remembered.get(place, (None, None))
        if states is None or key != mechanism.state_key(step):
            states = mechanism.enroll(size, self.rng)
        own = states if rows.size == size else states.take(rows - start)
        seen = ask.view.look(self._values(ask, who), self.rng)
        price = mechanism.price(own, step, seen)
        new = price > 0
        new[new] = self._pay(price[new], rows[new], payment)
        own, reports, speaks = mechanism.step(own, step, seen, self.rng, new)
        states = own if rows.size == size else _put(states, rows - start, own)
        self._remembered[place] = mechanism.state_key(step), states
        return mechanism.with_enrolment(own, reports, speaks, new)[0]

    def _pay(self, units: int | NDArray[np.int64], who: Rows, payment: tuple[int, str, str]) -> NDArray[np.bool_]:
        now, account, question = payment
        if self._study is not None:
            return self._study.pay(now, units, who, account=account, question=question)
        if self.ledgers is None:
            return np.ones(who.stop - who.start if isinstance(who, slice) else who.size, dtype=bool)
        return self.ledgers.spend(now, units, who, account=account, question=question)

    def _values(self, ask: Ask, who: Rows) -> Any:
        step = ask.step if self._study is None else 1
        if isinstance(who, slice):
            return self.stream.values(step, who.start, who.stop)
        start, stop = (int(who[0]), int(who[-1]) + 1) if who.size else (0, 0)
        return self.stream.values(step, start, stop)[who - start]

    def _before(self, edge: int) -> int:
        return int(np.searchsorted(self.places, np.uint32(edge)))


def _chunks(who: Rows) -> Iterator[Rows]:
    """The same devices, in parts that do not cross a multiple of CHUNK."""
    first, last = (who.start, who.stop) if isinstance(who, slice) else (who.min(initial=0), who.max(initial=-1) + 1)
    for start in range(first - first % CHUNK, last, CHUNK):
        if isinstance(who, slice):
            yield slice(max(start, first), min(start + CHUNK, last))
        else:
            rows = who[np.searchsorted(who, start) : np.searchsorted(who, start + CHUNK)]
            if rows.size:
                yield rows


def _put(states: States, rows: NDArray[np.int64], stepped: States) -> States:
    """The states, with those of some rows replaced."""
    others = np.delete(np.arange(len(states)), rows)
    order = np.argsort(np.concatenate([others, rows]))
    return States.concat([states.take(others), stepped]).take(order)
