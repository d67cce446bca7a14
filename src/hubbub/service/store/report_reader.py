"""Queries about reports: their ids, the single reports that are kept, and the batches of shufflers."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from hubbub.service.store.base import ArchiveRow, AskKey, AskRow, ShuffledRow
from hubbub.service.store.sql_reader import ASK_COLUMNS, CHUNK, SqlReader, ask_row

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

    def segments(self, key: AskKey) -> Iterator[bytes]:
        """The ids of an ask that an earlier version of the store holds in segments of any size."""
        number = -1
        while True:
            rows = self._read(
                "SELECT number, ids FROM segments WHERE collection = ? AND ask = ? AND number > ? "
                "ORDER BY number LIMIT ?",
                *key,
                number,
                CHUNK,
            )
            if not rows:
                return
            for _, ids in rows:
                yield bytes(ids)
            number = rows[-1][0]

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
