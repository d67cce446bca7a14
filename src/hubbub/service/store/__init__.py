"""Where the collector's state is: SQLite by default, PostgreSQL by its URL."""

from __future__ import annotations

from hubbub.core.errors import InvalidValue
from hubbub.service.store.base import Store

__all__ = ["Store", "open_store"]


def open_store(url: str) -> Store:
    """The store that a URL names: sqlite:///path, or postgresql://...

    Example:
        >>> open_store("sqlite:///:memory:").collections()
        []
        >>> open_store("mysql://host")
        Traceback (most recent call last):
            ...
        hubbub.core.errors.InvalidValue: store: got 'mysql://...'; allowed: sqlite:///path or postgresql://...
    """
    scheme, _, rest = url.partition("://")
    if scheme == "sqlite" and rest.startswith("/") and len(rest) > 1:
        from hubbub.service.store.sqlite import SqliteStore

        return SqliteStore(rest[1:])
    if scheme in ("postgresql", "postgres"):
        from hubbub.service.store.postgres import PostgresStore

        return PostgresStore(url)
    raise InvalidValue("store", f"{scheme}://...", "sqlite:///path or postgresql://...")
