"""The fleet: simulated devices, each with a place on the circle, a ledger and stored states, that answer asks."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.collection.terms import ALL_DEVICES, Group
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Bools, Ints, Reports, Sketch
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.stateful import Stateful, States
from hubbub.protocols.ask import CIRCLE, Arc, Ask
from hubbub.protocols.driver import Count, CountResult
from hubbub.random.source import Random
from hubbub.simulate.devices import Stream
from hubbub.simulate.ledgers import ACCOUNT, Ledgers, Rows, StudyPayments

CHUNK = 1 << 17

Present = Callable[[int], Bools]
"""Whether each of the devices is present at a step."""

Wire = Callable[[Ask, Iterator[Reports]], Iterator[Reports]]
"""What arrives of the reports to an ask: an adversary may add some, leave some out, or change them."""


@dataclass
class Traffic:
    """The messages and bits in both directions. A standing ask is published once and needs no further instruction."""

    reports: int = 0
    report_bits: int = 0
    instructions: int = 0
    instruction_bits: int = 0

    def count(self, ask: Ask, reports: int) -> None:
        """Add the reports of an ask, and the instruction to each device that reports."""
        self.reports += reports
        self.report_bits += reports * ask.mechanism.report_bits
        if not ask.standing:
            self.instructions += reports
            self.instruction_bits += reports

    def per_device_and_step(self, n: int, steps: int) -> float:
        """Bits in both directions, for each device and step."""
        return (self.report_bits + self.instruction_bits) / (n * steps)


class Fleet:
    """Devices that answer asks from a stream of values as clients would: once, and only if the ledger allows it.

    Devices are in the order of their places on the circle, so that similar devices must not be side by side in the
    stream. Chunks of devices are randomised and folded one after another: a population may be larger than memory. For a
    `Stateful` mechanism the fleet keeps the states of the devices; for any other, devices make fresh reports.

    Parameters
    ----------
    rng
        The randomness of the devices, and of their places.
    ledgers
        The ledgers of the devices; without ledgers they answer everything.
    first
        The step of the collection that is step 1 of the asks; 1 if asks have the collection's own steps.
    present
        Which devices are present at a step of the stream; all of them unless given.
    group
        The group of devices that is asked; each device is in one, by a second place that has no order.
    study
        How devices pay for a study. If given, all asks are of that study, and about the values at step 1.
    enrol_apart
        Whether devices that have nothing to report yet enrol with a report of their own. Where reports are shuffled
        they do not: it would be in a batch of few.
    wire
        What arrives of the reports to an ask; all of them, and no others, unless given.
    """

    def __init__(
        self,
        stream: Stream,
        rng: Random,
        *,
        ledgers: Ledgers | None = None,
        first: int = 0,
        present: Present | None = None,
        group: Group = ALL_DEVICES,
        study: StudyPayments | None = None,
        enrol_apart: bool = True,
        wire: Wire | None = None,
    ) -> None:
        self.stream, self.rng, self.ledgers = stream, rng, ledgers
        self.places: NDArray[np.uint32] = np.sort(rng.uint32(stream.n))
        self.traffic = Traffic()
        self._first, self._present, self._study, self._enrol_apart = first, present, study, enrol_apart
        self._members, self._wire = self.in_group(group), wire
        self._kept_reports: dict[str, list[Reports]] = {}
        self._states: dict[tuple[str, str, int], tuple[str, States, Bools]] = {}

    def answer(self, ask: Ask, *, now: int | None = None, account: str = ACCOUNT, question: str = ACCOUNT) -> Sketch:
        """The sketch of the reports of all devices on the arc; parameters as of `reports`."""
        sketch, batches = ask.mechanism.empty(), []
        sent = (
            reports
            for devices in self.on_arc(ask.cohort)
            for reports in self.reports(ask, devices, now=now, account=account, question=question)
        )
        for reports in sent if self._wire is None else self._wire(ask, sent):
            sketch = sketch + ask.mechanism.accumulate(reports)
            if ask.kept:
                batches.append(reports)
        if ask.kept:
            self._kept_reports[ask.ask_id] = batches
        self.traffic.count(ask, sketch.n)
        return sketch

    def count(self, count: Count) -> CountResult:
        """The support of candidates among the reports kept of an ask, the last time that it was asked."""
        batches = self._kept_reports.get(count.ask.ask_id)
        if batches is None:
            raise InvalidValue("ask", count.ask.ask_id, "an ask that was answered")
        return count.among(lambda: batches)

    def reports(
        self, ask: Ask, devices: Rows, *, now: int | None = None, account: str = ACCOUNT, question: str = ACCOUNT
    ) -> Iterator[Reports]:
        """The reports of some devices, in batches: of those that are present, can pay, and have something to report.

        Parameters
        ----------
        ask
            The ask, which none of the devices has answered.
        devices
            The devices, as a slice or by their numbers in ascending order.
        now
            The time by the devices' clocks; the collection's step unless given.
        account, question
            The account that pays, and the question that is paid for.
        """
        step = self._first + ask.step - 1
        payment = (step if now is None else now, account, question)
        if self._present is not None or self._members is not None:
            present = np.ones(self.stream.n, dtype=bool) if self._present is None else self._present(ask.step)
            present = present if self._members is None else present & self._members
            devices = np.intersect1d(np.flatnonzero(present), np.arange(self.stream.n)[devices], assume_unique=True)
        for chunk in _chunks(devices):
            if isinstance(ask.mechanism, Stateful):
                yield self._step(ask, ask.mechanism, step, chunk, payment)
            else:
                assert isinstance(ask.mechanism, Mechanism)
                paid = self._pay(ask.event().spent, chunk, payment)
                values = self._values(ask, chunk)
                yield ask.mechanism.randomize(ask.view.look(values if paid.all() else values[paid], self.rng), self.rng)

    def on_arc(self, arc: Arc) -> Iterator[slice]:
        """The devices of an arc, as one or two slices."""
        for edges in arc.pieces():
            yield slice(*(self.stream.n if edge == CIRCLE else self._before(edge) for edge in edges))

    def _step(self, ask: Ask, mechanism: Stateful, step: int, devices: Rows, payment: tuple[int, str, str]) -> Reports:
        """Let the devices of one chunk take a step with their stored states."""
        rows = np.arange(devices.start, devices.stop) if isinstance(devices, slice) else devices
        number = int(rows[0]) // CHUNK
        start, size = number * CHUNK, min(CHUNK, self.stream.n - number * CHUNK)
        place = (payment[2], mechanism.spec_id, number)
        key, chunk_states, enrolling = self._states.get(place, (None, None, None))
        if chunk_states is None or enrolling is None or key != mechanism.state_key(step):
            chunk_states, enrolling = mechanism.enroll(size, self.rng), np.zeros(size, dtype=bool)
        states = chunk_states if rows.size == size else chunk_states.take(rows - start)
        values = ask.view.look(self._values(ask, devices), self.rng)
        price = mechanism.price(states, step, values)
        new = price > 0
        new[new] = self._pay(price[new], rows[new], payment)
        states, reports, speaks = mechanism.step(states, step, values, self.rng, new)
        chunk_states = states if rows.size == size else _replace_rows(chunk_states, rows - start, states)
        enrolling[rows - start] |= new
        new = enrolling[rows - start] & (speaks | self._enrol_apart)
        enrolling[rows[new] - start] = False
        self._states[place] = mechanism.state_key(step), chunk_states, enrolling
        return mechanism.with_enrolment(states, reports, speaks, new)[0]

    def _pay(self, units: int | Ints, devices: Rows, payment: tuple[int, str, str]) -> Bools:
        now, account, question = payment
        if self._study is not None:
            return self._study.pay(now, units, devices, account=account, question=question)
        if self.ledgers is None:
            return np.ones(devices.stop - devices.start if isinstance(devices, slice) else devices.size, dtype=bool)
        return self.ledgers.spend(now, units, devices, account=account, question=question)

    def _values(self, ask: Ask, devices: Rows) -> Any:
        step = ask.step if self._study is None else 1
        if isinstance(devices, slice):
            return self.stream.values(step, devices.start, devices.stop)
        start, stop = (int(devices[0]), int(devices[-1]) + 1) if devices.size else (0, 0)
        return self.stream.values(step, start, stop)[devices - start]

    def in_group(self, group: Group) -> Bools | None:
        """Which devices are in a group; None where all are. Fleets of one seed have the same groups."""
        if group.of == 1:
            return None
        places = self.rng.child("groups").uint32(self.stream.n).astype(np.uint64)
        return np.asarray(places * np.uint64(group.of) >> np.uint64(32) == group.number)

    def _before(self, edge: int) -> int:
        return int(np.searchsorted(self.places, np.uint32(edge)))


def _chunks(devices: Rows) -> Iterator[Rows]:
    """The same devices, in parts that do not cross a multiple of CHUNK."""
    if isinstance(devices, slice):
        first, stop = devices.start, devices.stop
    else:
        first, stop = devices.min(initial=0), devices.max(initial=-1) + 1
    for start in range(first - first % CHUNK, stop, CHUNK):
        if isinstance(devices, slice):
            yield slice(max(start, first), min(start + CHUNK, stop))
        else:
            rows = devices[np.searchsorted(devices, start) : np.searchsorted(devices, start + CHUNK)]
            if rows.size:
                yield rows


def _replace_rows(states: States, rows: Ints, new: States) -> States:
    """The states, with those of some rows replaced by new ones."""
    others = np.delete(np.arange(len(states)), rows)
    order = np.argsort(np.concatenate([others, rows]))
    return States.concat([states.take(others), new]).take(order)
