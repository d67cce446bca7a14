"""Queries of a store about reports, batches, alarms, webhooks, counters and the clock."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from typing import Any

from hubbub.service.store.base import AlarmEventRow, ArchiveRow, AskKey, AskRow, RateRow, ShuffledRow

CHUNK = 256
"""How many rows a query that may have many returns at once."""

ASK_COLUMNS = (
    "asks.collection, asks.ask, question, first, step, round, part, spec, opens, closes, final, forgotten, data"
)


class SqlReader(ABC):
    """A database that answers queries on a connection for reading."""

    @abstractmethod
    def _read(self, sql: str, *values: object) -> list[Any]:
        """Run one statement on the reading connection."""


def ask_row(columns: Sequence[Any]) -> AskRow:
    """The row of the columns `ASK_COLUMNS`, in the types of `AskRow`."""
    row = AskRow(*columns)
    return row._replace(final=bool(row.final), forgotten=bool(row.forgotten), sketch=bytes(row.sketch))


_SHUFFLED = "collection, ask, digest, n, fakes, unreadable, repeated, checks, lost"
_ASK_WIDTH = len(AskRow._fields)
_SOME_ID_PAGES = "SELECT ids FROM id_pages WHERE collection = ? AND ask = ? AND"


class ReportReader(SqlReader):
    """What a store holds of reports."""

    # -- ids --------------------------------------------------------------------------------------------------

    def asks_with_ids(self, *, without: Container[tuple[str, str]] = ()) -> list[tuple[AskKey, bool]]:
        """The asks whose ids are held, and whether each is final; without those of some questions of collections."""
        rows = self._read("SELECT collection, ask, final, question FROM asks WHERE forgotten = 0")
        return [
            (AskKey(collection, ask), bool(final))
            for collection, ask, final, question in rows
            if (collection, question) not in without
        ]

    def id_pages(self, key: AskKey) -> Iterator[bytes]:
        """The ids held for an ask, in order: the full pages, then the parts of the last page."""
        start = 0
        while pages := self.some_id_pages(key, range(start, start + CHUNK)):
            yield from pages
            start += CHUNK

    def some_id_pages(self, key: AskKey, numbers: Sequence[int]) -> list[bytes]:
        """The pages with these numbers, which must ascend."""
        pages: list[bytes] = []
        for start in range(0, len(numbers), CHUNK):
            chunk = numbers[start : start + CHUNK]
            if chunk[-1] - chunk[0] == len(chunk) - 1:
                between = f"{_SOME_ID_PAGES} page BETWEEN ? AND ? ORDER BY page, part"
                rows = self._read(between, *key, chunk[0], chunk[-1])
            else:
                marks = ", ".join("?" * len(chunk))
                rows = self._read(f"{_SOME_ID_PAGES} page IN ({marks}) ORDER BY page, part", *key, *chunk)
            pages += [bytes(ids) for (ids,) in rows]
        return pages

    def count_id_pages(self, key: AskKey) -> int:
        """How many pages of ids an ask has."""
        ((last,),) = self._read("SELECT MAX(page) FROM id_pages WHERE collection = ? AND ask = ?", *key)
        return 0 if last is None else int(last) + 1

    # -- single reports ---------------------------------------------------------------------------------------

    def kept_segments(self, key: AskKey) -> list[bytes]:
        """The single reports to an ask, in one snapshot; none once they are in a file."""
        rows = self._read("SELECT data FROM reports WHERE collection = ? AND ask = ? ORDER BY number", *key)
        return [bytes(data) for (data,) in rows]

    def archive_of(self, key: AskKey) -> ArchiveRow | None:
        """The file with the single reports to an ask."""
        rows = self._read(
            "SELECT collection, ask, name, n, sha256 FROM archives WHERE collection = ? AND ask = ?", *key
        )
        return ArchiveRow(*rows[0]) if rows else None

    def archive_names(self) -> list[str]:
        """The names of all files of single reports."""
        return [name for (name,) in self._read("SELECT name FROM archives")]

    def asks_to_archive(self) -> list[tuple[AskKey, str, int]]:
        """The closed asks whose single reports are not in a file yet, with question and step."""
        rows = self._read(
            "SELECT DISTINCT collection, ask, question, step FROM reports JOIN asks USING (collection, ask) "
            "WHERE final = 1 ORDER BY step"
        )
        return [(AskKey(collection, ask), question, step) for collection, ask, question, step in rows]

    # -- batches of shufflers ---------------------------------------------------------------------------------

    def shuffled_batch(self, key: AskKey) -> ShuffledRow | None:
        """The batch that shufflers delivered for an ask."""
        rows = self._read(f"SELECT {_SHUFFLED} FROM shuffled_batches WHERE collection = ? AND ask = ?", *key)  # noqa: S608
        return _shuffled_row(rows[0]) if rows else None

    def shuffled_batches(self, collection: str, question: str, most: int) -> list[tuple[AskRow, ShuffledRow]]:
        """The latest batches that shufflers delivered for the asks of a question, latest first."""
        rows = self._read(
            f"SELECT {ASK_COLUMNS}, {_SHUFFLED} FROM asks JOIN sketches USING (collection, ask) "  # noqa: S608 - constants
            "JOIN shuffled_batches USING (collection, ask) WHERE collection = ? AND question = ? "
            "ORDER BY step DESC, round DESC, part DESC LIMIT ?",
            collection,
            question,
            most,
        )
        return [(ask_row(row[:_ASK_WIDTH]), _shuffled_row(row[_ASK_WIDTH:])) for row in rows]

    def spot_checks(self, key: AskKey) -> list[bytes]:
        """The collector's own reports that it looks for in the shuffled batch of an ask."""
        rows = self._read("SELECT onion FROM spot_checks WHERE collection = ? AND ask = ?", *key)
        return [bytes(onion) for (onion,) in rows]


def _shuffled_row(columns: Sequence[object]) -> ShuffledRow:
    row = ShuffledRow(*columns)  # type: ignore[arg-type]
    return row._replace(digest=bytes(row.digest))


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
