"""What is read of a store in SQL, on the reading connection."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from hubbub.collection.names import AnswerName
from hubbub.service.store.base import (
    AlarmEventRow,
    ArchiveRow,
    AskKey,
    AskRow,
    CollectionRow,
    CountRow,
    EraRow,
    RateRow,
    ReleaseRow,
    ShuffledRow,
    SnapshotRow,
)

_ASK = "asks.collection, asks.ask, question, first, step, round, part, spec, opens, closes, final, forgotten, data"
_SHUFFLED = "collection, ask, digest, n, fakes, unreadable, repeated, checks, lost"
_RELEASE = "collection, question, step, time, payload, withheld, number"
_CHUNK = 256
"""How many rows are read at once."""


class SqlReader(ABC):
    """Every question that a collector has for its store."""

    @abstractmethod
    def _read(self, sql: str, *values: object) -> list[Any]:
        """Run one statement on the reading connection."""

    def collections(self) -> list[CollectionRow]:
        """Every version ever served."""
        rows = self._read("SELECT id, name, version, spec FROM collections ORDER BY name, version")
        return [CollectionRow(*row) for row in rows]

    def era(self, collection: str, question: str) -> EraRow | None:
        """The latest conversation of a question."""
        # Only the latest has snapshots; where time went back, it is not the one with the highest step.
        for table in ("snapshots", "eras"):
            rows = self._read(
                _LATEST_ERA.format(table),
                *(collection, question) * 2,
            )
            if rows:
                return EraRow(*rows[0])
        return None

    def running(self, collection: str) -> list[EraRow]:
        """The runs of a collection's studies that are not over."""
        rows = self._read(_RUNNING, collection)
        return [EraRow(*row) for row in rows]

    def has_begun(self, collection: str, question: str, run: int) -> bool:
        """Whether a run of a study was ever begun."""
        place = collection, question, run
        return bool(self._read(_ERA_AT, *place)) or self.was_asked(*place)

    def last_step(self, collection: str, question: str, before: int | None = None) -> int | None:
        """The last step that was ever begun, asked or released, in any era of a question, or the last before one."""
        limit = _LAST_STEP if before is None else before - 1
        last_of = [
            self._read(
                f"SELECT MAX({step}) FROM {table} WHERE collection = ? AND question = ? AND {step} <= ?",  # noqa: S608
                collection,
                question,
                limit,
            )
            for table, step in (("eras", "first"), ("asks", "step"), ("releases", "step"))
        ]
        return max((rows[0][0] for rows in last_of if rows[0][0] is not None), default=None)

    def was_asked(self, collection: str, question: str, step: int) -> bool:
        """Whether a step has an ask or a release, or had one that was deleted."""
        place = collection, question, step
        return bool(self._read(_WAS_ASKED, *place, *place, *place, step))

    def first_unasked(self, collection: str, question: str, step: int, *, lateness: float) -> int:
        """The first step from one on for which no ask was ever open: those that were passed over count as unasked."""
        expired = self._read(
            "SELECT first, last FROM expired_asks WHERE collection = ? AND question = ? ORDER BY first",
            collection,
            question,
        )
        while True:
            before = step
            for first, last in expired:
                step = last + 1 if first <= step <= last else step
            rows = self._read(_OPENED_FROM, collection, question, step, lateness, _CHUNK)
            for (asked,) in rows:
                step += asked == step
            if step == before:
                return step

    def shuffled(self, key: AskKey) -> ShuffledRow | None:
        """The batch that shufflers handed on to an ask."""
        rows = self._read(f"SELECT {_SHUFFLED} FROM shuffled_batches WHERE collection = ? AND ask = ?", *key)  # noqa: S608
        return ShuffledRow(rows[0][0], rows[0][1], bytes(rows[0][2]), *rows[0][3:]) if rows else None

    def shuffled_steps(self, collection: str, question: str, most: int) -> list[tuple[AskRow, ShuffledRow]]:
        """The latest batches that shufflers handed on to the asks of a question, latest first."""
        rows = self._read(
            f"SELECT {_ASK}, {_SHUFFLED} FROM asks JOIN sketches USING (collection, ask) "  # noqa: S608 - constants
            "JOIN shuffled_batches USING (collection, ask) WHERE collection = ? AND question = ? "
            "ORDER BY step DESC, round DESC, part DESC LIMIT ?",
            collection,
            question,
            most,
        )
        made = []
        for row in rows:
            batch = ShuffledRow(row[13], row[14], bytes(row[15]), *row[16:])
            made.append((_ask_row(row[:13]), batch))
        return made

    def spot_checks(self, key: AskKey) -> list[bytes]:
        """The reports of the collector's own that it looks for in the shuffled batch of an ask."""
        rows = self._read("SELECT onion FROM spot_checks WHERE collection = ? AND ask = ?", *key)
        return [bytes(onion) for (onion,) in rows]

    def clock(self) -> str | None:
        """What was last believed of the clock."""
        rows = self._read("SELECT value FROM meta WHERE key = 'clock'")
        return str(rows[0][0]) if rows else None

    def snapshots(self, era: EraRow) -> list[SnapshotRow]:
        """The snapshots of an era, oldest first."""
        rows = self._read(
            "SELECT collection, question, first, step, state FROM snapshots "
            "WHERE collection = ? AND question = ? AND first = ? ORDER BY step",
            *era.key,
        )
        return [SnapshotRow(*row) for row in rows]

    def asks(self, era: EraRow, start: int = 0) -> Iterator[AskRow]:
        """The asks of an era from a step on, in order."""
        after = (start, 0, 0)
        while True:
            rows = self._read(
                f"SELECT {_ASK} FROM asks JOIN sketches USING (collection, ask) "  # noqa: S608 - constants
                "WHERE collection = ? AND question = ? AND first = ? AND (step, round, part) > (?, ?, ?) "
                "ORDER BY step, round, part LIMIT ?",
                *era.key,
                *after,
                _CHUNK,
            )
            if not rows:
                return
            for row in rows:
                yield _ask_row(row)
            after = rows[-1][4:7]

    def find_ask(self, era: EraRow, step: int, spec: str) -> AskRow | None:
        """The latest ask of a step that says this."""
        rows = self._read(
            f"SELECT {_ASK} FROM asks JOIN sketches USING (collection, ask) "  # noqa: S608 - constants
            "WHERE collection = ? AND question = ? AND first = ? AND step = ? AND spec = ? ORDER BY round DESC LIMIT 1",
            *era.key,
            step,
            spec,
        )
        return _ask_row(rows[0]) if rows else None

    def counted(self, era: EraRow, step: int) -> list[CountRow]:
        """What was counted in a step, in order."""
        rows = self._read(
            "SELECT collection, question, first, step, number, ask, candidates, n, support FROM candidate_counts "
            "WHERE collection = ? AND question = ? AND first = ? AND step = ? ORDER BY number",
            *era.key,
            step,
        )
        return [CountRow(*row) for row in rows]

    def knows(self, collection: str, name: AnswerName) -> bool:
        """Whether an ask whose answers are called so was ever published."""
        place = (collection, name.question)
        return bool(self._read(_NAMED, *place, *place, name.run or name.step, name.round, name.part))

    def held(self) -> list[tuple[AskKey, bool]]:
        """The asks whose ids are held, and whether they are final."""
        rows = self._read("SELECT collection, ask, final FROM asks WHERE forgotten = 0")
        return [(AskKey(collection, ask), bool(final)) for collection, ask, final in rows]

    def id_pages(self, key: AskKey) -> Iterator[bytes]:
        """The ids held for an ask, in order: whole pages, and the parts of the last one."""
        start = 0
        while pages := self.some_id_pages(key, range(start, start + _CHUNK)):
            yield from pages
            start += _CHUNK

    def some_id_pages(self, key: AskKey, numbers: Sequence[int]) -> list[bytes]:
        """The whole pages with these numbers, which ascend."""
        pages: list[bytes] = []
        for start in range(0, len(numbers), _CHUNK):
            some = numbers[start : start + _CHUNK]
            if some[-1] - some[0] == len(some) - 1:
                rows = self._read(f"{_SOME_ID_PAGES} page BETWEEN ? AND ? ORDER BY page, part", *key, some[0], some[-1])
            else:
                marks = ", ".join("?" * len(some))
                rows = self._read(f"{_SOME_ID_PAGES} page IN ({marks}) ORDER BY page, part", *key, *some)
            pages += [bytes(ids) for (ids,) in rows]
        return pages

    def count_id_pages(self, key: AskKey) -> int:
        """How many pages of ids an ask has."""
        ((last,),) = self._read("SELECT MAX(page) FROM id_pages WHERE collection = ? AND ask = ?", *key)
        return 0 if last is None else int(last) + 1

    def segments(self, key: AskKey) -> Iterator[bytes]:
        """The ids of an ask that an earlier version of the store has, in segments of any size."""
        number = -1
        while True:
            rows = self._read(
                "SELECT number, ids FROM segments WHERE collection = ? AND ask = ? AND number > ? "
                "ORDER BY number LIMIT ?",
                *key,
                number,
                _CHUNK,
            )
            if not rows:
                return
            for _, ids in rows:
                yield bytes(ids)
            number = rows[-1][0]

    def kept_segments(self, key: AskKey) -> list[bytes]:
        """The single reports to an ask, all at one moment; none once they are in a file."""
        rows = self._read("SELECT data FROM reports WHERE collection = ? AND ask = ? ORDER BY number", *key)
        return [bytes(data) for (data,) in rows]

    def archived(self, key: AskKey) -> ArchiveRow | None:
        """The file with the single reports to an ask."""
        rows = self._read("SELECT collection, ask, name, n FROM archives WHERE collection = ? AND ask = ?", *key)
        return ArchiveRow(*rows[0]) if rows else None

    def archive_names(self) -> list[str]:
        """All files that count."""
        return [name for (name,) in self._read("SELECT name FROM archives")]

    def to_archive(self) -> list[tuple[AskKey, str, int]]:
        """The closed asks whose single reports are not in a file yet, with question and step."""
        rows = self._read(
            "SELECT DISTINCT collection, ask, question, step FROM reports JOIN asks USING (collection, ask) "
            "WHERE final = 1 ORDER BY step"
        )
        return [(AskKey(collection, ask), question, step) for collection, ask, question, step in rows]

    def closed_asks(self, collection: str, question: str, first: int, last: int) -> list[tuple[str, int]]:
        """The closed asks of a question from one step to another, with their steps."""
        rows = self._read(
            "SELECT ask, step FROM asks WHERE collection = ? AND question = ? AND step >= ? AND step <= ? "
            "AND final = 1 ORDER BY step, round, part",
            collection,
            question,
            first,
            last,
        )
        return [(ask, step) for ask, step in rows]

    def closed_parts(self, collection: str, question: str, first: int, last: int) -> list[tuple[str, int, int]]:
        """The closed asks of a question from one step to another, with their steps and parts."""
        rows = self._read(
            "SELECT ask, step, part FROM asks WHERE collection = ? AND question = ? AND step >= ? AND step <= ? "
            "AND final = 1 ORDER BY step, round, part",
            collection,
            question,
            first,
            last,
        )
        return [(ask, step, part) for ask, step, part in rows]

    def release(self, collection: str, question: str, step: int, number: int = 0) -> ReleaseRow | None:
        """One release."""
        rows = self._read(
            f"SELECT {_RELEASE} FROM releases WHERE collection = ? AND question = ? AND step = ? AND number = ?",  # noqa: S608 - constants
            collection,
            question,
            step,
            number,
        )
        return ReleaseRow(*rows[0]) if rows else None

    def releases(self, collection: str, question: str, first: int, last: int, most: int) -> list[ReleaseRow]:
        """The latest releases from one step to another, oldest first, at most so many."""
        rows = self._read(
            f"SELECT {_RELEASE} FROM releases WHERE collection = ? AND question = ? AND step >= ? AND step <= ? "  # noqa: S608 - constants
            "ORDER BY step DESC, number DESC LIMIT ?",
            collection,
            question,
            first,
            last,
            most,
        )
        return [ReleaseRow(*row) for row in reversed(rows)]

    def alarm_states(self, collection: str) -> dict[str, str]:
        """What is known of each watched quantity of a collection, by watch."""
        return dict(self._read("SELECT watch, state FROM alarm_states WHERE collection = ?", collection))

    def alarm_events(self, collection: str, after: int, most: int) -> list[AlarmEventRow]:
        """The events of a collection's alarms with a number above one, oldest first."""
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
        """The number of the last event that each webhook has taken, by its name and the collection's."""
        rows = self._read("SELECT name, collection, delivered FROM webhooks")
        return {(name, collection): int(number) for name, collection, number in rows}

    def counts(self) -> Counter[tuple[str, str]]:
        """The counters, by collection and outcome."""
        rows = self._read("SELECT collection, outcome, count FROM counts")
        return Counter({(collection, outcome): int(count) for collection, outcome, count in rows})

    def rates(self, collection: str, first: int) -> list[RateRow]:
        """What was counted minute by minute from one on; a minute without anything is left out."""
        rows = self._read(
            "SELECT minute, accepted, rejected FROM rates WHERE collection = ? AND minute >= ? ORDER BY minute",
            collection,
            first,
        )
        return [RateRow(*row) for row in rows]


_SOME_ID_PAGES = "SELECT ids FROM id_pages WHERE collection = ? AND ask = ? AND"
# By way of the eras: asks are found by their era first.
_NAMED = """SELECT 1 FROM asks WHERE collection = ? AND question = ?
    AND first IN (SELECT first FROM eras WHERE collection = ? AND question = ?)
    AND step = ? AND round = ? AND part = ?"""
_LATEST_ERA = """SELECT collection, question, first, arithmetic FROM eras WHERE collection = ? AND question = ?
    AND first = (SELECT MAX(first) FROM {} WHERE collection = ? AND question = ?)"""
_RUNNING = (
    "SELECT collection, question, first, arithmetic FROM eras WHERE collection = ? AND running = 1 ORDER BY first"
)
_ERA_AT = "SELECT 1 FROM eras WHERE collection = ? AND question = ? AND first = ?"
_LAST_STEP = (1 << 63) - 1
_OPENED_FROM = """SELECT DISTINCT step FROM asks WHERE collection = ? AND question = ? AND step >= ?
    AND opens < closes + ? ORDER BY step LIMIT ?"""
_WAS_ASKED = """SELECT 1 FROM asks WHERE collection = ? AND question = ? AND step = ?
    UNION ALL SELECT 1 FROM releases WHERE collection = ? AND question = ? AND step = ?
    UNION ALL SELECT 1 FROM expired_asks WHERE collection = ? AND question = ? AND first <= ? AND last >= ? LIMIT 1"""


def _ask_row(row: Sequence[Any]) -> AskRow:
    ask = AskRow(*row)
    return ask._replace(final=bool(ask.final), forgotten=bool(ask.forgotten), sketch=bytes(ask.sketch))
