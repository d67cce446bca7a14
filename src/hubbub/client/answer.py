"""Answering an ask: freeze the values, debit the price, and make the report."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any, TypeVar

import numpy as np

from hubbub.client.admit import run_ends
from hubbub.client.documents import ClientRefusal, PublishedAsk
from hubbub.client.store import DeviceStore, StoredState, frozen_key, read_values, value_bytes
from hubbub.collection import Collection
from hubbub.collection.terms import ASKS, Terms
from hubbub.core.errors import DecodeError
from hubbub.core.event import UNITS_PER_EPSILON
from hubbub.core.random import Random
from hubbub.core.spec import spec_id
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.stateful import Stateful, States
from hubbub.privacy.budget import BudgetExceeded
from hubbub.privacy.device_clock import TICKS, StepRefused

State = TypeVar("State")


class Answerer:
    """Makes the answers of one device to one version of a collection, inside a transaction of its store.

    Parameters
    ----------
    collection
        The collection in force.
    store
        Where values, states and debits are stored.
    rng
        The device's randomness.
    """

    def __init__(self, collection: Collection, store: DeviceStore, rng: Random) -> None:
        self._collection, self._store, self._rng = collection, store, rng

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
        stored = self._store.state(key, stream) or StoredState(b"")
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
        reports, speaks = mechanism.with_enrolment(states, reports, speaks, np.array([enrols]))
        if refusal is not None and not speaks[0]:
            raise refusal
        enrolment = report_id if enrols and speaks[0] else stored.enrolment
        self._store.set_state(key, stream, StoredState(states.to_bytes(), stored.enrolled, enrolment))
        return reports.to_bare() if speaks[0] else None

    def _in_study(self, published: PublishedAsk, terms: Terms, step: int) -> bytes:
        """One round of a study. The first answer of a run debits the whole run, until its last round has closed.

        A later version of the collection may raise the limit or the end of the study: for a run that has begun, the
        limit and the end that were debited still hold.
        """
        from hubbub.client.study_state import StudyState  # a device that takes part in no study has no need of it

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
        values = published.ask.view.look([read_values(state.values.encode())], self._rng)
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


def stream_of(collection: Collection, mechanism: Stateful, step: int) -> str:
    """The stream that a state belongs to: the mechanism's key of the step (a horizon), its spec, and the grid of steps.

    A mechanism without a key has one endless stream, "".
    """
    key, grid = mechanism.state_key(step), (collection.step_seconds, collection.origin)
    return json.dumps([key, mechanism.spec_id, *grid]) if key else ""
