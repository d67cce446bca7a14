"""Queries about the collector itself: alarms, webhooks, counters, and its clock."""

from __future__ import annotations

from collections import Counter

from hubbub.service.store.base import AlarmEventRow, RateRow
from hubbub.service.store.sql_reader import SqlReader


class StatusReader(SqlReader):
    """What a store holds of alarms, webhooks, counters and the clock."""

    def alarm_states(self, collection: str) -> dict[str, str]:
        """The states of a collection's watched quantities, as JSON, by key."""
        return dict(self._read("SELECT watch, state FROM alarm_states WHERE collection = ?", collection))

    def alarm_events(self, collection: str, after: int, most: int) -> list[AlarmEventRow]:
        """The events of a collection's alarms with a number above `after`, oldest first; at most `most`."""
        rows = self._read(
            "SELECT collection, number, event FROM alarm_events WHERE collection = ? AND number > ? "
            "ORDER BY number LIMIT ?",
            collection,
            after,
            most,
        )
        return [AlarmEventRow(*row) for row in rows]

    def last_alarm_event(self, collection: str) -> int:
        """The number of the last event of a collection's alarms; 0 if there was none."""
        ((last,),) = self._read("SELECT MAX(number) FROM alarm_events WHERE collection = ?", collection)
        return int(last or 0)

    def delivered(self) -> dict[tuple[str, str], int]:
        """The number of the last event that each webhook took, by the names of webhook and collection."""
        rows = self._read("SELECT name, collection, delivered FROM webhooks")
        return {(name, collection): int(number) for name, collection, number in rows}

    def counts(self) -> Counter[tuple[str, str]]:
        """How many reports had which outcome, by collection and outcome."""
        rows = self._read("SELECT collection, outcome, count FROM counts")
        return Counter({(collection, outcome): int(count) for collection, outcome, count in rows})

    def rates(self, collection: str, first: int) -> list[RateRow]:
        """The reports of each minute from `first` on; minutes without reports are left out."""
        rows = self._read(
            "SELECT minute, accepted, rejected FROM rates WHERE collection = ? AND minute >= ? ORDER BY minute",
            collection,
            first,
        )
        return [RateRow(*row) for row in rows]

    def clock(self) -> str | None:
        """The last stored record of the collector's clock."""
        return self._meta("clock")

    def calling(self) -> str | None:
        """The questions whose code was running when the store was last changed, or did not return, as JSON."""
        return self._meta("calling")

    def _meta(self, key: str) -> str | None:
        rows = self._read("SELECT value FROM meta WHERE key = ?", key)
        return str(rows[0][0]) if rows else None
