"""`hubbub.connect`: a table here, or one that a collector has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote, unquote, urlsplit

import numpy as np

from hubbub.core.bounded_http import AnswerTooLong, HttpPeer
from hubbub.core.errors import HubbubError, InvalidValue, needs
from hubbub.core.reports import Reports
from hubbub.protocols.ranges.hierarchy import LevelReports
from hubbub.query.answer import QueryAnswer, answer_from_json
from hubbub.query.errors import QueryError
from hubbub.query.sandbox import lock, open_database
from hubbub.query.schema import BLOCK, Level, PrivateTable
from hubbub.query.store_format import DESCRIPTION, PEOPLE, read_description, read_level, reports_name

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from hubbub.query.public_tables import PublicTables

LARGEST = 64 << 20
"""An answer of more bytes is not read."""


class CollectorAway(HubbubError, ConnectionError):
    """A collector that does not answer now."""


class RemoteTable:
    """A collector's table: queries are sent, answers with their intervals come back.

    Parameters
    ----------
    url
        The collector's address, perhaps with the path of a question.
    token
        What results are read with.
    collection, question
        Which table, where the address does not say.
    first, last
        The first and the last step that queries are of: numbers, dates such as 2026-01-31, or times. If neither is
        given, those that WHERE names, or else the latest with reports.
    timeout
        Seconds for a whole query, to the last byte of its answer.

    Example:
        >>> RemoteTable("https://example.org/v1/collections/shop/questions/visits", token="secret").path
        '/v1/collections/shop/questions/visits/sql'
        >>> RemoteTable("https://example.org", token=None)
        Traceback (most recent call last):
            ...
        hubbub.core.errors.InvalidValue: question: got (None, None); allowed: the names of a collection and ...
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None,
        collection: str | None = None,
        question: str | None = None,
        first: int | str | None = None,
        last: int | str | None = None,
        timeout: float = 120.0,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidValue("url", url, "the address of a collector: http:// or https://")
        root, marker, rest = parts.path.partition("/v1/collections/")
        if marker:
            names = [unquote(name) for name in rest.strip("/").split("/")]
            if len(names) not in (3, 4) or names[1] != "questions" or names[3:] not in ([], ["sql"]):
                raise InvalidValue("url", url, "an address that ends in /v1/collections/NAME/questions/NAME")
            collection, question = collection or names[0], question or names[2]
        if not collection or not question:
            raise InvalidValue(
                "question", (collection, question), "the names of a collection and of its table question"
            )
        if token is not None and (not token.isascii() or not token.isprintable()):
            raise InvalidValue("token", "one with other signs", "printable ASCII")
        base = (root if marker else parts.path).rstrip("/")
        collection_name, question_name = (quote(name, safe="") for name in (collection, question))
        self.path = f"{base}/v1/collections/{collection_name}/questions/{question_name}/sql"
        self._first, self._last = first, last
        self._peer, self._token = HttpPeer(parts, seconds=timeout, most_bytes=LARGEST), token

    def sql(
        self, text: str, *, level: float = 0.95, explain: bool = False, tables: PublicTables | None = None
    ) -> QueryAnswer:
        """The answer of a query; what the collector refuses is the same error as of a table here."""
        asked: dict[str, object] = {"sql": text, "level": level, "explain": explain}
        asked |= {name: step for name, step in (("from", self._first), ("to", self._last)) if step is not None}
        if tables:
            asked["tables"] = {
                name: {column: list(values) for column, values in columns.items()} for name, columns in tables.items()
            }
        body = json.dumps(asked, default=str).encode()
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        status, answer = self._post(body, headers)
        if status == 200:
            return answer_from_json(answer)
        raise _refusal(status, answer)

    def _post(self, body: bytes, headers: dict[str, str]) -> tuple[int, object]:
        try:
            response = self._peer.request("POST", self.path, headers, body)
        except AnswerTooLong:
            raise InvalidValue("answer", "a longer one", f"at most {LARGEST:,} bytes: ask LIMIT") from None
        except (OSError, HTTPException, ValueError) as error:
            raise CollectorAway(f"the collector does not answer: {error or type(error).__name__}") from None
        try:
            return response.status, json.loads(response.body)
        except ValueError:
            return response.status, None


def _refusal(status: int, answer: object) -> Exception:
    """What the collector says of a query that it does not answer."""
    if status in (401, 403):
        return InvalidValue("token", "one that is not taken", "the collector's")
    document = answer if isinstance(answer, dict) else {}
    problem = document.get("problem") or document.get("detail") or document.get("title")
    if isinstance(problem, str) and status in (400, 422):
        line, column = (
            document.get(name) if isinstance(document.get(name), int) else None for name in ("line", "column")
        )
        return QueryError(problem, str(document.get("instead") or ""), line=line, column=column)
    if status == 429 or status >= 500:
        return CollectorAway(f"the collector answers {status}")
    return InvalidValue("url", status, f"a collector's table: {problem or 'it answers otherwise'}")


class StoredTable(PrivateTable):
    """A table that `build_table` has made. It is opened for reading alone, and nothing else can be read through it.

    `path`: a DuckDB file, or a folder of Parquet files.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._connection, description = _folder(self.path) if self.path.is_dir() else _file(self.path)
        self.schema, self._sizes, self._n = read_description(description)
        self._read: tuple[int, dict[Level, LevelReports]] = (-1, {})

    @property
    def n(self) -> int:
        return self._n

    def connection(self) -> DuckDBPyConnection:
        return self._connection

    def level_sizes(self) -> Mapping[Level, int]:
        return self._sizes

    def reports(self, level: Level, rows: range) -> LevelReports | None:
        block = rows.start // BLOCK
        if self._read[0] != block:
            self._read = block, self._groups(block, rows.start)
        return self._read[1].get(level)

    def _groups(self, block: int, start: int) -> dict[Level, LevelReports]:
        name = reports_name(block)
        if self.path.is_dir():
            where = str((self.path / f"{name}.parquet").absolute()).replace("'", "''")
            name = f"read_parquet('{where}')"
        rows = self._connection.execute(f"SELECT level, places, reports FROM {name}").fetchall()  # noqa: S608 # our name
        return {
            read_level(level): LevelReports(
                np.frombuffer(places, dtype="<u4").astype(np.int64) + start, Reports.from_bytes(reports)
            )
            for level, places, reports in rows
        }


def _file(path: Path) -> tuple[DuckDBPyConnection, str]:
    with needs("sql"):
        import duckdb

    if not path.is_file():
        raise InvalidValue("store", str(path), "a DuckDB file, or a folder of Parquet files, that hubbub has made")
    try:
        connection = open_database(str(path), read_only=True)
        rows = connection.execute("SELECT description FROM hubbub").fetchall()
    except duckdb.Error as error:
        raise InvalidValue("store", str(path), f"a table that hubbub has made: {str(error).splitlines()[0]}") from None
    if not rows:
        raise InvalidValue("store", str(path), "a table that was made to its end")
    return lock(connection), str(rows[0][0])


def _folder(path: Path) -> tuple[DuckDBPyConnection, str]:
    try:
        description = (path / DESCRIPTION).read_text(encoding="utf-8")
    except OSError:
        raise InvalidValue("store", str(path), f"a folder with {DESCRIPTION} in it") from None
    connection = open_database()
    where = str((path / PEOPLE).absolute()).replace("'", "''")
    connection.execute(f"CREATE VIEW people AS SELECT * FROM read_parquet('{where}')")  # noqa: S608 # the operator's path
    return lock(connection, [str(path.absolute())]), description


class AskableTable(Protocol):
    """What can be asked, wherever it is."""

    def sql(
        self, text: str, *, level: float = 0.95, explain: bool = False, tables: PublicTables | None = None
    ) -> QueryAnswer:
        """The answer of a query, which may join public tables."""


def connect(
    where: str | Path,
    *,
    token: str | None = None,
    collection: str | None = None,
    question: str | None = None,
    first: int | str | None = None,
    last: int | str | None = None,
) -> AskableTable:
    """Open a table.

    Parameters
    ----------
    where
        A DuckDB file or a folder of Parquet files that `build_table` has made, or a collector's address, which may end
        in the question: http://collector/v1/collections/shop/questions/visits.
    token
        What a collector's results are read with.
    collection, question
        Which of a collector's tables, where the address does not say.
    first, last
        Of a collector: the first and the last step that queries are of: numbers, dates such as 2026-01-31, or times.
        If neither is given, those that WHERE names, or else the latest with reports.

    Example:
        >>> connect("nowhere.duckdb")
        Traceback (most recent call last):
            ...
        hubbub.core.errors.InvalidValue: store: got 'nowhere.duckdb'; allowed: a DuckDB file, or a folder of ...
        >>> connect("http://127.0.0.1:8000", token="secret", collection="shop", question="visits").path
        '/v1/collections/shop/questions/visits/sql'
    """
    if str(where).lower().startswith(("http://", "https://")):
        return RemoteTable(str(where), token=token, collection=collection, question=question, first=first, last=last)
    if any(given is not None for given in (token, collection, question, first, last)):
        raise InvalidValue("where", str(where), "a collector's address, as a token, a question or a step is given")
    from hubbub.query.engine import QueryEngine

    return QueryEngine(StoredTable(where))
