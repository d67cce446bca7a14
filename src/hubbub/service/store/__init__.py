"""The store of a collector's state: SQLite by default, or PostgreSQL."""

from pathlib import Path

from hubbub.core.errors import InvalidValue
from hubbub.service.store.sql import Store

__all__ = ["Store", "open_store", "sqlite_path"]


def open_store(url: str) -> Store:
    """The store that a URL names: sqlite:///path, or postgresql://..."""
    path = sqlite_path(url)
    if path is not None:
        from hubbub.service.store.sqlite import SqliteStore

        return SqliteStore(path)
    from hubbub.service.store.postgres import PostgresStore

    return PostgresStore(url)


def sqlite_path(url: str) -> Path | None:
    """The file of the SQLite store that a URL names; None for PostgreSQL."""
    scheme, _, rest = url.partition("://")
    if scheme == "sqlite" and rest.startswith("/") and len(rest) > 1:
        return Path(rest[1:])
    if scheme in ("postgresql", "postgres"):
        return None
    raise InvalidValue("store", f"{scheme}://...", "sqlite:///path or postgresql://...")
