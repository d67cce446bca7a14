"""Queries about protocols: their eras, snapshots, asks, counts and releases, and which steps were ever asked."""

from __future__ import annotations

from collections.abc import Iterator

from hubbub.collection.names import AnswerName
from hubbub.service.store.base import (
    AskKey,
    AskRow,
    ClosedAsk,
    CollectionRow,
    CountRow,
    EraRow,
    ReleaseRow,
    SnapshotRow,
)
from hubbub.service.store.readers import ASK_COLUMNS, CHUNK, SqlReader, ask_row

_RELEASE = "collection, question, step, time, payload, withheld, number"
_LAST_STEP = (1 << 63) - 1
# By way of the eras: the index of asks begins with them.
_NAMED = """SELECT 1 FROM asks WHERE collection = ? AND question = ?
    AND first IN (SELECT first FROM eras WHERE collection = ? AND question = ?)
    AND step = ? AND round = ? AND part = ?"""
_LATEST_ERA = """SELECT collection, question, first, arithmetic FROM eras WHERE collection = ? AND question = ?
    AND first = (SELECT MAX(first) FROM {} WHERE collection = ? AND question = ?)"""
_RUNNING = (
    "SELECT collection, question, first, arithmetic FROM eras WHERE collection = ? AND running = 1 ORDER BY first"
)
_ERA_AT = "SELECT 1 FROM eras WHERE collection = ? AND question = ? AND first = ?"
_OPENED_FROM = """SELECT DISTINCT step FROM asks WHERE collection = ? AND question = ? AND step >= ?
    AND opens < closes + ? ORDER BY step LIMIT ?"""
_WAS_ASKED = """SELECT 1 FROM asks WHERE collection = ? AND question = ? AND step = ?
    UNION ALL SELECT 1 FROM releases WHERE collection = ? AND question = ? AND step = ?
    UNION ALL SELECT 1 FROM expired_asks WHERE collection = ? AND question = ? AND first <= ? AND last >= ? LIMIT 1"""


class ProtocolReader(SqlReader):
    """What a store knows of the protocols of all questions."""

    def collections(self) -> list[CollectionRow]:
        """Every version of every collection that was ever served."""
        rows = self._read("SELECT id, name, version, spec FROM collections ORDER BY name, version")
        return [CollectionRow(*row) for row in rows]

    # -- eras and steps ---------------------------------------------------------------------------------------

    def era(self, collection: str, question: str) -> EraRow | None:
        """The latest era of a question."""
        # Only the latest era has snapshots. If the clock went back, it is not the one with the highest first step.
        for table in ("snapshots", "eras"):
            rows = self._read(_LATEST_ERA.format(table), *(collection, question) * 2)
            if rows:
                return EraRow(*rows[0])
        return None

    def running_studies(self, collection: str) -> list[EraRow]:
        """The runs of a collection's studies that have not ended."""
        return [EraRow(*row) for row in self._read(_RUNNING, collection)]

    def has_begun(self, collection: str, question: str, run: int) -> bool:
        """Whether a run of a study was ever begun."""
        place = collection, question, run
        return bool(self._read(_ERA_AT, *place)) or self.was_asked(*place)

    def last_step(self, collection: str, question: str, before: int | None = None) -> int | None:
        """The last step of a question that was ever begun, asked or released; if given, the last before `before`."""
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
        """The first step, at `step` or later, for which no ask was ever open. Steps passed over count as unasked."""
        expired = self._read(
            "SELECT first, last FROM expired_asks WHERE collection = ? AND question = ? ORDER BY first",
            collection,
            question,
        )
        while True:
            before = step
            for first, last in expired:
                step = last + 1 if first <= step <= last else step
            rows = self._read(_OPENED_FROM, collection, question, step, lateness, CHUNK)
            for (asked,) in rows:
                step += asked == step
            if step == before:
                return step

    def snapshots(self, era: EraRow) -> list[SnapshotRow]:
        """The snapshots of an era, oldest first."""
        rows = self._read(
            "SELECT collection, question, first, step, state FROM snapshots "
            "WHERE collection = ? AND question = ? AND first = ? ORDER BY step",
            *era.key,
        )
        return [SnapshotRow(*row) for row in rows]

    # -- asks, counts and releases ----------------------------------------------------------------------------

    def asks(self, era: EraRow, start: int = 0) -> Iterator[AskRow]:
        """The asks of an era from step `start` on, in order."""
        after = (start, 0, 0)
        while True:
            rows = self._read(
                f"SELECT {ASK_COLUMNS} FROM asks JOIN sketches USING (collection, ask) "  # noqa: S608 - constants
                "WHERE collection = ? AND question = ? AND first = ? AND (step, round, part) > (?, ?, ?) "
                "ORDER BY step, round, part LIMIT ?",
                *era.key,
                *after,
                CHUNK,
            )
            if not rows:
                return
            yield from map(ask_row, rows)
            after = rows[-1][4:7]

    def find_ask(self, era: EraRow, step: int, spec: str) -> AskRow | None:
        """The latest ask of a step with this spec."""
        rows = self._read(
            f"SELECT {ASK_COLUMNS} FROM asks JOIN sketches USING (collection, ask) "  # noqa: S608 - constants
            "WHERE collection = ? AND question = ? AND first = ? AND step = ? AND spec = ? ORDER BY round DESC LIMIT 1",
            *era.key,
            step,
            spec,
        )
        return ask_row(rows[0]) if rows else None

    def knows(self, collection: str, name: AnswerName) -> bool:
        """Whether an ask whose answers carry this name was ever published."""
        place = (collection, name.question)
        return bool(self._read(_NAMED, *place, *place, name.run or name.step, name.round, name.part))

    def closed_asks(self, collection: str, question: str, first: int, last: int) -> list[ClosedAsk]:
        """The closed asks of a question from step `first` to `last`, in order."""
        rows = self._read(
            "SELECT ask, step, part FROM asks WHERE collection = ? AND question = ? AND step >= ? AND step <= ? "
            "AND final = 1 ORDER BY step, round, part",
            collection,
            question,
            first,
            last,
        )
        return [ClosedAsk(AskKey(collection, ask), step, part) for ask, step, part in rows]

    def counted(self, era: EraRow, step: int) -> list[CountRow]:
        """The counts that were made in a step, in order."""
        rows = self._read(
            "SELECT collection, question, first, step, number, ask, candidates, n, support FROM candidate_counts "
            "WHERE collection = ? AND question = ? AND first = ? AND step = ? ORDER BY number",
            *era.key,
            step,
        )
        return [CountRow(*row) for row in rows]

    def release(self, collection: str, question: str, step: int, number: int = 0) -> ReleaseRow | None:
        """One release of a step."""
        rows = self._read(
            f"SELECT {_RELEASE} FROM releases WHERE collection = ? AND question = ? AND step = ? AND number = ?",  # noqa: S608 - constants
            collection,
            question,
            step,
            number,
        )
        return ReleaseRow(*rows[0]) if rows else None

    def releases(self, collection: str, question: str, first: int, last: int, most: int) -> list[ReleaseRow]:
        """The latest releases from step `first` to `last`, oldest first; at most `most`."""
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
