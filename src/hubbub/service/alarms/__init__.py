"""The collector's half of alarms: it judges each step's estimates, stores the events, and tells listeners."""

import json
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import Any, Literal

import msgspec
import numpy as np
from msgspec import structs

from hubbub.alarms.forged import ForgedTest, round_suspicion
from hubbub.alarms.limits import stderr_at
from hubbub.alarms.plan import AlarmPlan, WatchedQuantity, delays_text, false_alarms_a_day, guarantee_text
from hubbub.alarms.sequential import SequentialTest, Verdict, WatchState
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Sketch
from hubbub.core.spec import Json
from hubbub.mechanisms.base import ReportFormat
from hubbub.protocols.driver import Release
from hubbub.questions.collection import Collection, Schedule
from hubbub.service.base.api import ApiBody, Positive, WebhookBody, encode
from hubbub.service.base.logs import log, log_error
from hubbub.service.store.base import AlarmEventRow, StoreChanges
from hubbub.service.store.sql import Store


class AlarmEvent(ApiBody):
    """An alarm was raised, or cleared.

    Parameters
    ----------
    number
        Counts the events of a collection, from 1 on, through restarts and versions. A receiver knows by the number
        whether it has seen an event.
    collection, alarm, category, question
        The names of the collection, of the alarm, of the watched category (empty where the alarm watches one quantity
        only) and of the question.
    title
        What is watched, in words; of reports that look forged, also what is odd about them.
    state
        "raised" or "cleared".
    direction
        The side of the threshold, or of the baseline, on which the quantity is.
    step, at
        The step whose estimate decided it, and when that step began (Unix seconds).
    since
        The step in which the change is thought to have begun: at or before `step`.
    value, low, high
        The step's own unbiased estimate of the quantity, and its 95% interval, neither of them cut to what is possible.
        Of reports that look forged, all three are the chance that genuine ones look so.
    threshold
        The number given as `above` or `below`; None for an alarm on a change from a baseline.
    baseline
        The baseline that was learnt, for an alarm on a change; otherwise None.
    """

    number: Positive
    collection: str
    alarm: str
    category: str
    question: str
    title: str
    state: Literal["raised", "cleared"]
    direction: Literal["above", "below"]
    step: int
    at: float
    since: int
    value: float
    low: float
    high: float
    threshold: float | None
    baseline: float | None

    def to_json(self) -> dict[str, Json]:
        return dict(msgspec.to_builtins(self))


class WatchedBody(ApiBody):
    """A watched quantity: its state, and the last step's own estimate with its 95% interval."""

    alarm: str
    category: str
    question: str
    title: str
    state: Literal["learning", "quiet", "raised"]
    direction: Literal["above", "below"] | None
    since: int | None
    step: int | None
    value: float | None
    low: float | None
    high: float | None
    threshold: float | None
    baseline: float | None
    clears: float | None


class AlarmBody(ApiBody):
    """An alarm: its definition, its guarantee, how soon it finds a change, and the quantities that it watches."""

    alarm: str
    definition: dict[str, Any]
    false_alarms_a_day: float
    guarantee: str
    delays: str
    watched: list[WatchedBody]


class AlarmsBody(ApiBody):
    """The alarms of a collection, the latest events, oldest first, and the webhooks that events are sent to."""

    false_alarms_a_day: float
    guarantee: str | None
    alarms: list[AlarmBody]
    events: list[AlarmEvent]
    webhooks: list[WebhookBody]


_read_event = msgspec.json.Decoder(AlarmEvent).decode

_Z = NormalDist().inv_cdf(0.975)
"""Standard errors from the value to the ends of its 95% interval."""


class Alarms:
    """The states of all watched quantities, the events that follow from releases, and the listeners.

    Each release is judged once, in the tick that makes it. The new states and the events are committed in the
    transaction of the release: even if the collector is killed, no step is judged twice and no event is lost. States
    and events belong to the name of a collection, and go on through its versions and eras.

    `collections`, `store`: the collections that are served, and the store.
    """

    def __init__(self, collections: Sequence[Collection], store: Store, plans: Mapping[str, AlarmPlan]) -> None:
        by_name = {collection.name: collection for collection in collections}
        for name in plans:
            if name not in by_name:
                raise InvalidValue("alarms", name, f"the alarms of {', '.join(by_name)}")
        self.plans = {name: plans.get(name, AlarmPlan()) for name in by_name}
        self._store = store
        self._listeners: list[Callable[[AlarmEvent], None]] = []
        self._watches: dict[str, dict[str, list[WatchedQuantity]]] = {}
        self._states: dict[tuple[str, str], WatchState] = {}
        self._numbers = {name: store.last_alarm_event(name) for name in by_name}
        self._removed: list[tuple[str, str, int]] = []
        """Watches that were removed or redefined: collection, key, and the event that raised it (0 if none did)."""
        for name, collection in by_name.items():
            self._restore(name, self.plans[name].watches(collection))

    def _restore(self, name: str, watches: Sequence[WatchedQuantity]) -> None:
        """Read the stored states. The state of a watch with another definition is not used."""
        by_question = self._watches[name] = {}
        stored = self._store.alarm_states(name)
        for watch in watches:
            by_question.setdefault(watch.question, []).append(watch)
            entry = json.loads(stored.pop(watch.key, "null"))
            state = WatchState()
            if entry is not None:
                stored_state = WatchState.from_json(entry["state"])
                if entry["of"] == watch.fingerprint:
                    state = stored_state
                elif stored_state.raised is not None:
                    self._removed.append((name, watch.key, stored_state.event))
            self._states[name, watch.key] = state
        for key, text in stored.items():
            stored_state = WatchState.from_json(json.loads(text)["state"])
            self._removed.append((name, key, stored_state.event if stored_state.raised is not None else 0))

    def reload(self) -> None:
        """Read all states again: another process may have judged releases."""
        self._removed = []
        self._numbers = {name: self._store.last_alarm_event(name) for name in self._watches}
        for name, by_question in self._watches.items():
            self._restore(name, [watch for watches in by_question.values() for watch in watches])

    # -- in the collector's thread ----------------------------------------------------------------------------

    def clear_removed(self, changes: StoreChanges) -> None:
        """Delete the states of watches that were removed or redefined, with a "cleared" event for each raised one."""
        for name, key, number in self._removed:
            if (name, key) not in self._states:
                changes.alarm_states[name, key] = None
            for row in self._store.alarm_events(name, number - 1, 1) if number else ():
                cleared = structs.replace(_read_event(row.event), state="cleared", number=self._next_number(name))
                self._add_event(cleared, changes)
        for name, key, _ in self._removed:
            if (name, key) in self._states:
                self._set_state(name, self._watch(name, key), self._states[name, key], changes)
        self._removed = []

    def judge(self, collection: Collection, question: str, release: Release, changes: StoreChanges) -> None:
        """Judge a step's own estimate. A step with too few reports to be shown changes nothing.

        An error here is logged, and stops neither the release nor the collector.
        """
        try:
            self._judge_release(collection, question, release, changes)
        except Exception as error:
            place = {"collection": collection.name, "question": question, "step": release.step}
            log_error("alarms failed", error, **place)

    def _judge_release(self, collection: Collection, question: str, release: Release, changes: StoreChanges) -> None:
        every = self._watches.get(collection.name, {}).get(question, [])
        watches = [(watch, watch.test) for watch in every if isinstance(watch.test, SequentialTest)]
        own = release.own
        if not watches or own is None or own.n < collection.minimum_batch:
            return
        weights = np.array([watch.weights for watch, _ in watches])
        if weights.shape[1] != len(own) or (own.bias != "none" and release.lost is None):
            return
        sums = own.linear(weights)
        # Missing reports of a standing stream bias its estimates: the bias counts as if it were standard error.
        bias = np.abs(weights @ np.array(release.lost.bias)) if release.lost is not None else np.zeros(len(weights))
        for row, (watch, test) in enumerate(watches):
            state = self._states[collection.name, watch.key]
            expected = test.expects(state)
            at_null = 0.0 if expected is None else stderr_at(own, weights[row], expected)
            value, stderr = float(sums.value[row]), max(float(sums.stderr[row]), at_null) + float(bias[row])
            if math.isfinite(value) and 0 < stderr < math.inf:
                self._follow(collection, watch, *test.update(state, release.step, value, stderr), changes)

    def judge_reports(
        self,
        collection: Collection,
        question: str,
        step: int,
        answered: Sequence[tuple[ReportFormat, Sketch]],
        changes: StoreChanges,
    ) -> None:
        """Judge whether the reports to a round, which is over, look forged. Too few reports change nothing.

        An error here is logged, and stops neither the round nor the collector.
        """
        try:
            for watch in self._watches.get(collection.name, {}).get(question, []):
                if isinstance(watch.test, ForgedTest):
                    enough = [part for part in answered if part[1].people >= collection.minimum_batch]
                    found = round_suspicion(enough)
                    if found is not None:
                        state = self._states[collection.name, watch.key]
                        state, verdict = watch.test.update(state, step, found.p_value)
                        self._follow(collection, watch, state, verdict, changes, found.oddity)
        except Exception as error:
            log_error("alarms failed", error, collection=collection.name, question=question, step=step)

    def screened(self, collection: str, question: str) -> bool:
        """Whether an alarm watches the looks of a question's reports, so that sketches need a screen."""
        watches = self._watches.get(collection, {}).get(question, [])
        return any(isinstance(watch.test, ForgedTest) for watch in watches)

    def _follow(
        self,
        collection: Collection,
        watch: WatchedQuantity,
        state: WatchState,
        verdict: Verdict | None,
        changes: StoreChanges,
        detail: str = "",
    ) -> None:
        if verdict is not None:
            event = self._event(collection, watch, state, verdict)
            if detail and verdict.state == "raised":
                event = structs.replace(event, title=f"{event.title}: {detail}")
            self._add_event(event, changes)
            state = replace(state, event=event.number)
        self._set_state(collection.name, watch, state, changes)

    def _event(self, collection: Collection, watch: WatchedQuantity, state: WatchState, verdict: Verdict) -> AlarmEvent:
        assert state.step is not None
        assert state.value is not None
        assert state.stderr is not None
        return AlarmEvent(
            number=self._next_number(collection.name),
            collection=collection.name,
            alarm=watch.alarm,
            category=watch.category,
            question=watch.question,
            title=watch.title,
            state=verdict.state,
            direction=verdict.direction,
            step=state.step,
            at=Schedule(collection, watch.question).opens(state.step),
            since=verdict.since,
            value=state.value,
            low=state.value - _Z * state.stderr,
            high=state.value + _Z * state.stderr,
            threshold=watch.threshold,
            baseline=state.baseline,
        )

    def _next_number(self, name: str) -> int:
        self._numbers[name] += 1
        return self._numbers[name]

    def _set_state(self, name: str, watch: WatchedQuantity, state: WatchState, changes: StoreChanges) -> None:
        self._states[name, watch.key] = state
        changes.alarm_states[name, watch.key] = json.dumps({"of": watch.fingerprint, "state": state.to_json()})

    def _add_event(self, event: AlarmEvent, changes: StoreChanges) -> None:
        changes.alarm_events.append(AlarmEventRow(event.collection, event.number, encode(event).decode()))

    def committed(self, changes: StoreChanges) -> None:
        """Log the events that are stored now, and call the listeners."""
        for row in changes.alarm_events:
            event = _read_event(row.event)
            log(f"alarm {event.state}", level=logging.WARNING, **_logged(event))
            for listener in self._listeners:
                try:
                    listener(event)
                except Exception as error:  # what is committed stays committed
                    log_error("listener failed", error)

    # -- for others -------------------------------------------------------------------------------------------

    def listen(self, callback: Callable[[AlarmEvent], None]) -> None:
        """Call `callback` with every event from now on, once it is stored. It runs in the collector's thread."""
        self._listeners.append(callback)

    def events(self, name: str, *, after: int = 0, most: int = 100) -> list[AlarmEvent]:
        """The stored events of a collection with a number above `after`, oldest first; at most `most`."""
        return [_read_event(row.event) for row in self._store.alarm_events(name, after, most)]

    def last_events(self, name: str, most: int = 20) -> list[AlarmEvent]:
        """The latest stored events of a collection, oldest first."""
        return self.events(name, after=max(self._store.last_alarm_event(name) - most, 0), most=most)

    def status(self, name: str) -> list[WatchedBody]:
        """Every watched quantity of a collection, as the API shows it."""
        return [_status(watch, state) for watch, state in self.states(name)]

    def states(self, name: str) -> list[tuple[WatchedQuantity, WatchState]]:
        """Every watched quantity of a collection, with its state."""
        watches = [watch for of_question in self._watches[name].values() for watch in of_question]
        return [(watch, self._states[name, watch.key]) for watch in watches]

    def _watch(self, name: str, key: str) -> WatchedQuantity:
        return next(watch for watch, _ in self.states(name) if watch.key == key)


def _status(watch: WatchedQuantity, state: WatchState) -> WatchedBody:
    value, reach = state.value, None if state.stderr is None else _Z * state.stderr
    learning = state.learnt < watch.test.baseline
    return WatchedBody(
        alarm=watch.alarm,
        category=watch.category,
        question=watch.question,
        title=watch.title,
        state="raised" if state.raised is not None else "learning" if learning else "quiet",
        direction=state.raised,
        since=state.since,
        step=state.step,
        value=value,
        low=None if value is None or reach is None else value - reach,
        high=None if value is None or reach is None else value + reach,
        threshold=watch.threshold,
        baseline=state.baseline,
        clears=state.clears,
    )


def _logged(event: AlarmEvent) -> dict[str, object]:
    names = ("collection", "alarm", "category", "question", "direction", "step", "since", "value", "number")
    return {name: getattr(event, name) for name in names}


def alarms_body(alarms: Alarms, collection: Collection, webhooks: Sequence[WebhookBody] = ()) -> AlarmsBody:
    """Each alarm's definition, guarantee and current state, and the latest events, oldest first."""
    name, seconds = collection.name, collection.step_seconds
    watches = [watch for watch, _ in alarms.states(name)]
    status = alarms.status(name)
    entries = []
    for alarm, definition in alarms.plans[name].alarms.items():
        own = [watch for watch in watches if watch.alarm == alarm]
        entry = AlarmBody(
            alarm=alarm,
            definition=definition.spec(),
            false_alarms_a_day=false_alarms_a_day(own, seconds),
            guarantee=guarantee_text(own, seconds),
            delays=delays_text(own[0]),
            watched=[watched for watched in status if watched.alarm == alarm],
        )
        entries.append(entry)
    return AlarmsBody(
        false_alarms_a_day=false_alarms_a_day(watches, seconds),
        guarantee=guarantee_text(watches, seconds) if watches else None,
        alarms=entries,
        events=alarms.last_events(name),
        webhooks=list(webhooks),
    )
