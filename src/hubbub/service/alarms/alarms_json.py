"""The alarms of a collection as the API shows them."""

from __future__ import annotations

from hubbub.alarms.words import delays_text, false_alarms_a_day, guarantee_text
from hubbub.collection import Collection
from hubbub.core.spec import Json
from hubbub.service.alarms.alarms import Alarms


def alarms_json(alarms: Alarms, collection: Collection) -> dict[str, Json]:
    """Each alarm's definition, guarantee and current state, and the latest events, oldest first."""
    name, seconds = collection.name, collection.step_seconds
    watches = [watch for watch, _ in alarms.states(name)]
    status = alarms.status(name)
    entries: list[Json] = []
    for alarm, definition in alarms.plans[name].alarms.items():
        own = [watch for watch in watches if watch.alarm == alarm]
        watched: list[Json] = [dict(state) for state in status if state["alarm"] == alarm]
        entries.append(
            {
                "alarm": alarm,
                "definition": definition.spec(),
                "false_alarms_a_day": false_alarms_a_day(own, seconds),
                "guarantee": guarantee_text(own, seconds),
                "delays": delays_text(own[0]),
                "watched": watched,
            }
        )
    return {
        "false_alarms_a_day": false_alarms_a_day(watches, seconds),
        "guarantee": guarantee_text(watches, seconds) if watches else None,
        "alarms": entries,
        "events": [event.to_json() for event in alarms.last_events(name)],
    }
