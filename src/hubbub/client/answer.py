"""Answering an ask: is it admitted; then freeze the values, debit the price, and make the report."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from hubbub.client.documents import ClientRefusal, PublishedAsk
from hubbub.client.store import DeviceStore, StoredState, frozen_key, read_values, value_bytes
from hubbub.collection import SignedCollection
from hubbub.collection.admits import admits, admits_parts
from hubbub.collection.shuffle_route import ObliviousRoute
from hubbub.collection.terms import ASKS, Terms
from hubbub.core.domain import Code
from hubbub.core.errors import DecodeError
from hubbub.core.event import UNITS_PER_EPSILON
from hubbub.core.spec import spec_id
from hubbub.ledger.clock import TICKS, StepRefused
from hubbub.ledger.promise import BudgetExceeded
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.stateful import Stateful, States
from hubbub.protocols.ask import group_on_circle, place_on_circle
from hubbub.random.source import Random


def admit(collection: SignedCollection, published: PublishedAsk, step: int) -> None:
    """Refuse an ask that the signed terms of its question do not allow, or that is not of this step."""
    terms = collection.terms.get(published.question)
    if terms is None:
        raise ClientRefusal("question", f"there is no question {published.question}")
    if published.ask.step != (step if terms.study is None else 0):
        raise ClientRefusal("step", f"{published.ask.step} is not {step if terms.study is None else 0}")
    reason = admits(
        terms,
        published.ask,
        run=published.run,
        round=published.round,
        part=published.part,
        minimum_arc=collection.minimum_arc,
        fields=collection.fields,
    )
    if reason is None and isinstance(collection.shuffle, ObliviousRoute):
        from hubbub.shuffle.report_numbers import has_numbers  # few devices need it

        reason = None if has_numbers(published.ask.mechanism) else "mechanism"
    if reason is not None:
        raise ClientRefusal(reason, f"not what {published.question} asks")


def admit_round(collection: SignedCollection, parts: Sequence[PublishedAsk], step: int) -> None:
    """Refuse all asks of one round if the terms do not allow one of them, or not all of them together."""
    for published in parts:
        admit(collection, published, step)
    question = parts[0].question
    asks = [published.ask for published in parts]
    reason = admits_parts(collection.terms[question], asks, minimum_arc=collection.minimum_arc)
    if len({published.part for published in parts}) < len(parts):
        reason = "parts"
    if reason is not None:
        raise ClientRefusal(reason, f"{len(asks)} asks of {question} at once")


def part_for(collection: SignedCollection, parts: Sequence[PublishedAsk], device_key: bytes) -> PublishedAsk | None:
    """The part of an admitted round that asks a device; None if none does, or if another group is asked."""
    group, name = collection.terms[parts[0].question].group, collection.name
    if group.of > 1 and group_on_circle(device_key, name, group.of) != group.number:
        return None
    return part_of(parts, place_on_circle(device_key, name))


def part_of(parts: Sequence[PublishedAsk], place: int) -> PublishedAsk | None:
    """The part whose arc holds a place on the circle; None if no arc does. Arcs of an admitted round are disjoint."""
    return next((part for part in parts if bool(part.ask.cohort.holds(np.array([place]))[0])), None)


def run_ends(collection: SignedCollection, question: str, run: int) -> float:
    """When the last round of a study's run closes."""
    return collection.round_times(question, run, 0, collection.terms[question].rounds)[1]


def open_studies(collection: SignedCollection, now: float) -> Iterator[tuple[str, int, int]]:
    """The question, run and round of every study whose round can be asked now.

    The first round is asked from its beginning; a later one once the late answers to the round before have arrived.
    """
    for question, terms in collection.terms.items():
        if terms.study is None or now < terms.study.start:
            continue
        run = int((now - terms.study.start) // terms.study.every) if terms.study.every else 0
        round = int((now - terms.study.start - run * terms.study.every) // terms.study.round_seconds) + 1
        opens, _ = collection.round_times(question, run, 0, round)
        if round <= terms.rounds and now >= opens + (collection.lateness_seconds if round > 1 else 0):
            yield question, run, round


class StudyState(NamedTuple):
    """One run of a study on one device.

    Parameters
    ----------
    fields
        The id of the fields' domains when the run began.
    until
        The tick until which that is counted: the end of the last round.
    declared
        What the asks that were answered declare to spend, together, in units.
    round
        The last round that was answered; 0 before the first.
    values
        The frozen values, as JSON.
    """

    fields: str
    limit: int
    until: int
    values: str
    declared: int = 0
    round: int = 0

    def to_bytes(self) -> bytes:
        """The state to store."""
        return json.dumps(self._asdict()).encode()

    @staticmethod
    def from_bytes(stored: bytes) -> StudyState:
        """Read a state back. What is truncated, or no state of a study, is refused."""
        try:
            content: dict[str, Any] = json.loads(stored)
            state = StudyState(**content)
            json.loads(state.values)
        except (ValueError, TypeError):
            state = None
        counts = () if state is None else (state.limit, state.until, state.declared, state.round)
        if state is None or not isinstance(state.fields, str) or any(type(n) is not int or n < 0 for n in counts):
            raise DecodeError("state", stored, "the state of a study")
        return state


State = TypeVar("State")


class Answerer:
    """Makes the answers of one device to one version of a collection, inside a transaction of its store.

    `update`: what the program computed for this ask from its public model; None where there is no such program.
    """

    def __init__(
        self, collection: SignedCollection, store: DeviceStore, rng: Random, update: Code | None = None
    ) -> None:
        self._collection, self._store, self._rng, self._update = collection, store, rng, update

    def answer(self, published: PublishedAsk, step: int, report_id: bytes) -> bytes | None:
        """The report to an ask, debited; None where the mechanism sends none. `step` is the device's present step."""
        terms = self._collection.terms[published.question]
        try:
            if terms.study is not None:
                return self._in_study(published, terms, step)
            values = published.ask.view.look([self._frozen(terms, step)], self._rng)
            if terms.state:
                return self._from_state(published, step, values, report_id)
            mechanism = _randomizer(published)
            self._spend(published.question, step, mechanism.event().spent)
            return mechanism.randomize(values, self._rng).to_bare()
        except BudgetExceeded as error:
            raise ClientRefusal("budget", str(error)) from error
        except StepRefused as error:
            raise ClientRefusal("step", str(error)) from error

    def _from_state(self, published: PublishedAsk, step: int, values: Any, report_id: bytes) -> bytes | None:
        """One step of a stateful mechanism, from the stored state; the first state is drawn here.

        Where the server must know how many devices take part, reports enrol the device until one is acknowledged. A
        device that cannot pay continues from its state: refusing the ask could reveal its value.
        """
        question, mechanism = published.question, published.ask.mechanism
        assert isinstance(mechanism, Stateful)  # terms.state names it
        account = self._collection.terms[question].account
        key = f"question:{question}" if account == ASKS else account  # questions that share an account share its state
        stream = stream_of(self._collection, mechanism, step)
        stored = self._store.state(key, stream)
        if stored is None:
            self._end_stream(key)
            stored = StoredState(b"")
        read = partial(States.from_bytes, mechanism)
        states = _read_state(read, stored.state) if stored.state else mechanism.enroll(1, self._rng)
        price, refusal = int(mechanism.price(states, step, values)[0]), None
        if price:
            try:
                self._spend(question, step, price)
            except BudgetExceeded as error:
                refusal = error
        states, reports, speaks = mechanism.step(states, step, values, self._rng, np.array([refusal is None]))
        enrols = mechanism.enrols and not stored.enrolled and stored.enrolment is None
        if self._collection.shuffle is not None:  # an enrolment by itself would be in a batch of few
            enrols = enrols and bool(speaks[0])
        reports, speaks = mechanism.with_enrolment(states, reports, speaks, np.array([enrols]))
        if refusal is not None and not speaks[0]:
            raise refusal
        enrolment = report_id if enrols and speaks[0] else stored.enrolment
        self._store.set_state(key, stream, StoredState(states.to_bytes(), stored.enrolled, enrolment))
        return reports.to_bare() if speaks[0] else None

    def _end_stream(self, key: str) -> None:
        """Before the state of a key begins a new stream: what waits for an enrolment in the stream before is dropped.

        It is of a step before the last one of that stream, and too late by now.
        """
        enrolment = self._store.enrolment(key)
        if enrolment is not None and self._collection.shuffle is not None:
            self._store.outbox.drop_followers(enrolment)

    def _in_study(self, published: PublishedAsk, terms: Terms, step: int) -> bytes:
        """One round of a study. The first answer of a run debits the whole run, until its last round has closed.

        A later version of the collection may raise the limit or the end of the study: for a run that has begun, the
        limit and the end that were debited still hold.
        """

        question, run, key = published.question, published.run, f"study:{published.question}"
        latest_run = self._store.stream(key)
        if latest_run is not None and not latest_run.isdecimal():
            raise ClientRefusal("state", f"{latest_run!r} is no run of a study")
        if latest_run is not None and int(latest_run) > run:
            raise ClientRefusal("run", f"{run} is over: {latest_run} has begun")
        stored, mechanism = self._store.state(key, str(run)), _randomizer(published)
        fields = spec_id({field: self._collection.fields[field].spec() for field in terms.fields})
        ends = int(run_ends(self._collection, question, run) * TICKS) - 1
        if stored is None:
            state = StudyState(fields, terms.limit, ends, value_bytes(self._recorded(terms, None)).decode())
        else:
            state = _read_state(StudyState.from_bytes, stored.state)
        declared = state.declared + math.ceil(Fraction(mechanism.epsilon) * UNITS_PER_EPSILON)
        if state.fields != fields:
            raise ClientRefusal("fields", f"those of {question} are not what they were when it began")
        if published.round <= state.round:
            raise ClientRefusal("round", f"{published.round} is over: {state.round} was answered")
        if ends > state.until:  # what was paid no longer counts by then
            raise ClientRefusal("run", f"{run} would end later than it was paid for")
        if declared > state.limit:
            raise ClientRefusal(
                "limit", f"the asks of this run sum to {declared} units, above {state.limit}, which was paid"
            )
        if stored is None:
            self._spend(question, step, terms.limit, until=ends)
        state = state._replace(declared=declared, round=published.round)
        self._store.set_state(key, str(run), StoredState(state.to_bytes()))
        value = read_values(state.values.encode()) if self._update is None else self._update
        values = published.ask.view.look([value], self._rng)
        return mechanism.randomize(values, self._rng).to_bare()

    def _spend(self, question: str, step: int, units: int, until: int | None = None) -> None:
        self._store.book.spend(step, self._collection.terms[question].account, question, units, until=until)

    def _frozen(self, terms: Terms, step: int) -> Any:
        """The values that all asks of a step see: recorded in the step or, for memos and streams, recorded last."""
        last = terms.frozen == "last"
        values = self._recorded(terms, None if last else step)
        frozen = self._store.book.freeze(frozen_key(terms.fields, last=last), step, value_bytes(values))
        assert isinstance(frozen, bytes)
        return read_values(frozen)

    def _recorded(self, terms: Terms, step: int | None) -> Any:
        """The values recorded in a step, or (None) at any time: one field's code, or codes by field of several."""
        codes: dict[str, Any] = {}
        several = len(terms.fields) > 1
        for field in terms.fields:
            recorded = self._store.recorded(field)
            if recorded is not None and (step is None or self._collection.step_at(recorded[0]) == step):
                codes[field] = recorded[1]
            else:
                codes[field] = self._collection.missing(field, several=several)
        return codes if several else codes[terms.fields[0]]


def _randomizer(published: PublishedAsk) -> Mechanism:
    mechanism = published.ask.mechanism
    if not isinstance(mechanism, Mechanism):
        raise ClientRefusal("state", f"{type(mechanism).__name__} needs one")
    return mechanism


def _read_state(read: Callable[[bytes], State], stored: bytes) -> State:
    """Read a stored state. A damaged one is a refusal; a `DecodeError` of anything else is not."""
    try:
        return read(stored)
    except DecodeError as error:
        raise ClientRefusal("state", str(error)) from error


def stream_of(collection: SignedCollection, mechanism: Stateful, step: int) -> str:
    """The stream that a state belongs to: the mechanism's key of the step (a horizon), its spec, and the grid of steps.

    A mechanism without a key has one endless stream, "".
    """
    key, grid = mechanism.state_key(step), (collection.step_seconds, collection.origin)
    return json.dumps([key, mechanism.spec_id, *grid]) if key else ""
