"""The alarms of the served collections: each step's own estimates are judged, and what follows is stored with them."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist

import numpy as np

from hubbub.alarms.errors import stderr_at
from hubbub.alarms.plan import AlarmPlan
from hubbub.alarms.sequential import Verdict, WatchState
from hubbub.alarms.watch import WatchedQuantity
from hubbub.collection import Collection
from hubbub.core.errors import InvalidValue
from hubbub.core.spec import Json
from hubbub.protocols.release import Release
from hubbub.service.alarms.event import AlarmEvent
from hubbub.service.logs import log
from hubbub.service.schedule import Schedule
from hubbub.service.store.base import AlarmEventRow, StoreChanges
from hubbub.service.store.sql import Store

_REACH = NormalDist().inv_cdf(0.975)


class Alarms:
    """What the alarms of some collections know, and who is told.

    A release is heard once, in the tick that makes it. What the alarms then know, and the events that follow, are
    committed in the transaction of the release: whatever happens to the collector, no step is judged twice and no event
    is lost. They are a collection's by name, and go on through its versions and eras.

    Parameters
    ----------
    collections, store
        What is served, and where the state is.
    plans
        The alarms of each collection, by its name.

    Example:
        >>> from hubbub.authoring.toml import EXAMPLE, load_collection
        >>> from hubbub.service.store import open_store
        >>> plan = AlarmPlan.from_spec({"dark": {"question": "popular", "weights": {"dark": 1}, "above": 0.5}})
        >>> alarms = Alarms([load_collection(EXAMPLE)], open_store("sqlite:///:memory:"), {"themes": plan})
        >>> [(watch.key, state.raised) for watch, state in alarms.states("themes")]
        [('dark', None)]
    """

    def __init__(self, collections: Sequence[Collection], store: Store, plans: Mapping[str, AlarmPlan]) -> None:
        named = {collection.name: collection for collection in collections}
        for name in plans:
            if name not in named:
                raise InvalidValue("alarms", name, f"the alarms of {', '.join(named)}")
        self.plans = {name: plans.get(name, AlarmPlan()) for name in named}
        self._store = store
        self._listeners: list[Callable[[AlarmEvent], None]] = []
        self._watches: dict[str, dict[str, list[WatchedQuantity]]] = {}
        self._states: dict[tuple[str, str], WatchState] = {}
        self._numbers = {name: store.last_alarm_event(name) for name in named}
        self._over: list[tuple[str, str, int]] = []
        """The watches that are no more, with the number of the event that raised each, if it is raised."""
        for name, collection in named.items():
            self._restore(name, self.plans[name].watches(collection))

    def _restore(self, name: str, watches: Sequence[WatchedQuantity]) -> None:
        """Go on from what is stored; what was known of another quantity, or by another definition, is over."""
        by_question = self._watches[name] = {}
        stored = self._store.alarm_states(name)
        for watch in watches:
            by_question.setdefault(watch.question, []).append(watch)
            told = json.loads(stored.pop(watch.key, "null"))
            state = WatchState()
            if told is not None:
                before = WatchState.from_json(told["state"])
                if told["of"] == watch.fingerprint:
                    state = before
                elif before.raised is not None:
                    self._over.append((name, watch.key, before.event))
            self._states[name, watch.key] = state
        for key, text in stored.items():
            before = WatchState.from_json(json.loads(text)["state"])
            self._over.append((name, key, before.event if before.raised is not None else 0))

    # -- in the collector's thread ----------------------------------------------------------------------------

    def end_others(self, changes: StoreChanges) -> None:
        """Clear what was raised by a definition that is gone, and let go of it: who was told is told again."""
        for name, key, number in self._over:
            if (name, key) not in self._states:
                changes.alarm_states[name, key] = None
            for row in self._store.alarm_events(name, number - 1, 1) if number else ():
                raised = AlarmEvent.from_json(json.loads(row.event))
                self._tell(replace(raised, state="cleared", number=self._next(name)), changes)
        for name, key, _ in self._over:
            if (name, key) in self._states:
                self._keep(name, self._watch(name, key), self._states[name, key], changes)
        self._over = []

    def hear(self, collection: Collection, question: str, release: Release, changes: StoreChanges) -> None:
        """Judge what a step heard by itself; a step that heard nothing, or too little to be shown, changes nothing.

        Whatever goes wrong here is logged, and stops neither the release nor the collector.
        """
        try:
            self._hear(collection, question, release, changes)
        except Exception as error:
            place = {"collection": collection.name, "question": question, "step": release.step}
            log("alarms failed", level=logging.ERROR, **place, error=f"{type(error).__name__}: {error}")

    def _hear(self, collection: Collection, question: str, release: Release, changes: StoreChanges) -> None:
        watches = self._watches.get(collection.name, {}).get(question)
        own = release.own
        if not watches or own is None or own.n < collection.minimum_batch:
            return
        rows = np.array([watch.weights for watch in watches])
        if rows.shape[1] != len(own) or (own.bias != "none" and release.lost is None):
            return
        sums = own.linear(rows)
        # What is missing of a standing stream draws its estimates: counted as if it were error.
        drawn = np.abs(rows @ np.array(release.lost.bias)) if release.lost is not None else np.zeros(len(rows))
        for row, watch in enumerate(watches):
            expected = watch.test.expects(self._states[collection.name, watch.key])
            at_null = 0.0 if expected is None else stderr_at(own, rows[row], expected)
            value, stderr = float(sums.value[row]), max(float(sums.stderr[row]), at_null) + float(drawn[row])
            if math.isfinite(value) and 0 < stderr < math.inf:
                self._judge(collection, watch, release.step, value, stderr, changes)

    def _judge(
        self,
        collection: Collection,
        watch: WatchedQuantity,
        step: int,
        value: float,
        stderr: float,
        changes: StoreChanges,
    ) -> None:
        name = collection.name
        state, verdict = watch.test.hear(self._states[name, watch.key], step, value, stderr)
        if verdict is not None:
            event = self._event(collection, watch, state, verdict)
            self._tell(event, changes)
            state = replace(state, event=event.number)
        self._keep(name, watch, state, changes)

    def _event(self, collection: Collection, watch: WatchedQuantity, state: WatchState, verdict: Verdict) -> AlarmEvent:
        assert state.step is not None
        assert state.value is not None
        assert state.stderr is not None
        return AlarmEvent(
            number=self._next(collection.name),
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
            low=state.value - _REACH * state.stderr,
            high=state.value + _REACH * state.stderr,
            threshold=watch.test.threshold,
            baseline=state.baseline,
        )

    def _next(self, name: str) -> int:
        self._numbers[name] += 1
        return self._numbers[name]

    def _keep(self, name: str, watch: WatchedQuantity, state: WatchState, changes: StoreChanges) -> None:
        self._states[name, watch.key] = state
        changes.alarm_states[name, watch.key] = json.dumps({"of": watch.fingerprint, "state": state.to_json()})

    def _tell(self, event: AlarmEvent, changes: StoreChanges) -> None:
        changes.alarm_events.append(AlarmEventRow(event.collection, event.number, json.dumps(event.to_json())))

    def committed(self, changes: StoreChanges) -> None:
        """Tell the listeners of events that are stored now."""
        for row in changes.alarm_events:
            event = AlarmEvent.from_json(json.loads(row.event))
            log(f"alarm {event.state}", level=logging.WARNING, **_logged(event))
            for listener in self._listeners:
                try:
                    listener(event)
                except Exception as error:  # what is committed stands, whoever fails to hear of it
                    log("listener failed", level=logging.ERROR, error=type(error).__name__)

    # -- for others -------------------------------------------------------------------------------------------

    def listen(self, callback: Callable[[AlarmEvent], None]) -> None:
        """Call this with every event from now on, once it is stored; in the collector's thread: it must not wait."""
        self._listeners.append(callback)

    def events(self, name: str, *, after: int = 0, most: int = 100) -> list[AlarmEvent]:
        """The stored events of a collection with a number above one, oldest first."""
        return [AlarmEvent.from_json(json.loads(row.event)) for row in self._store.alarm_events(name, after, most)]

    def last_events(self, name: str, most: int = 20) -> list[AlarmEvent]:
        """The latest stored events of a collection, oldest first."""
        return self.events(name, after=max(self._store.last_alarm_event(name) - most, 0), most=most)

    def status(self, name: str) -> list[dict[str, Json]]:
        """Every watched quantity of a collection: what it is, its state now, and its last estimate."""
        return [_status(watch, state) for watch, state in self.states(name)]

    def states(self, name: str) -> list[tuple[WatchedQuantity, WatchState]]:
        """Every watched quantity of a collection, with what is known of it."""
        watches = [watch for some in self._watches[name].values() for watch in some]
        return [(watch, self._states[name, watch.key]) for watch in watches]

    def _watch(self, name: str, key: str) -> WatchedQuantity:
        return next(watch for watch, _ in self.states(name) if watch.key == key)


def _status(watch: WatchedQuantity, state: WatchState) -> dict[str, Json]:
    value, reach = state.value, None if state.stderr is None else _REACH * state.stderr
    learning = state.learnt < watch.test.baseline
    return {
        "alarm": watch.alarm,
        "category": watch.category,
        "question": watch.question,
        "title": watch.title,
        "state": "raised" if state.raised is not None else "learning" if learning else "quiet",
        "direction": state.raised,
        "since": state.since,
        "step": state.step,
        "value": value,
        "low": None if value is None or reach is None else value - reach,
        "high": None if value is None or reach is None else value + reach,
        "threshold": watch.test.threshold,
        "baseline": state.baseline,
        "clears": state.clears,
    }


def _logged(event: AlarmEvent) -> dict[str, object]:
    names = ("collection", "alarm", "category", "question", "direction", "step", "since", "value", "number")
    return {name: getattr(event, name) for name in names}
