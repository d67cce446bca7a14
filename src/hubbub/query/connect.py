"""`hubbub.connect`: a table here, or one that a collector has."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from hubbub.core.errors import InvalidValue
from hubbub.query.answer import QueryAnswer


class AskableTable(Protocol):
    """What can be asked, wherever it is."""

    def sql(self, text: str, *, level: float = 0.95, explain: bool = False) -> QueryAnswer:
        """The answer of a query."""


def connect(
    where: str | Path, *, token: str | None = None, collection: str | None = None, question: str | None = None
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

    Example:
        >>> connect("nowhere.duckdb")
        Traceback (most recent call last):
            ...
        hubbub.core.errors.InvalidValue: store: got 'nowhere.duckdb'; allowed: a DuckDB file, or a folder of ...
        >>> connect("http://127.0.0.1:8000", token="secret", collection="shop", question="visits").path
        '/v1/collections/shop/questions/visits/sql'
    """
    if str(where).lower().startswith(("http://", "https://")):
        from hubbub.query.remote import RemoteTable

        return RemoteTable(str(where), token=token, collection=collection, question=question)
    if token is not None or collection is not None or question is not None:
        raise InvalidValue("where", str(where), "a collector's address, as a token or a question is given")
    from hubbub.query.engine import QueryEngine
    from hubbub.query.stored_table import StoredTable

    return QueryEngine(StoredTable(where))
