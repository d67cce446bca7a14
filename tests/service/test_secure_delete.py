"""What retention deletes is in no file of a SQLite store any more; nobody waits for a lock for ever."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from hubbub.service.store import sqlite
from hubbub.service.store.base import AskKey, AskRow, EraRow, Expiry, IdPage, StoreChanges, StoreFailed
from hubbub.service.store.sqlite import SqliteStore

ERA = EraRow("c" * 32, "q", 5)
IDS, REPORT, SKETCH, LATER = (word * 50 for word in (b"--ids--", b"--report--", b"--sketch--", b"--later--"))


def filled(store: SqliteStore) -> AskKey:
    ask = AskRow("c" * 32, "a" * 32, "q", 5, 5, 1, 0, "{}", 1.5, 2.5, False, False, SKETCH)
    store.commit(
        StoreChanges(eras=[ERA], asks=[ask], id_pages=[IdPage(*ask.key, 0, 0, IDS)], reports=[(ask.key, 1, REPORT)])
    )
    store.commit(StoreChanges(sketches={ask.key: LATER}, finals=[ask.key]))
    return ask.key


def found(folder: Path, secret: bytes) -> bool:
    return any(secret in path.read_bytes() for path in folder.iterdir())


def test_what_is_deleted_is_in_no_file(tmp_path: Path):
    store = SqliteStore(tmp_path / "store.db")
    key = filled(store)
    assert all(found(tmp_path, secret) for secret in (IDS, REPORT, SKETCH, LATER))
    store.commit(StoreChanges(forgotten=[key]))
    assert not found(tmp_path, IDS)
    assert found(tmp_path, REPORT)
    store.commit(StoreChanges(expired=[Expiry("c" * 32, "q", 6)]))
    assert not any(found(tmp_path, secret) for secret in (IDS, REPORT, SKETCH, LATER))
    store.close()


def test_while_someone_reads_it_waits_for_the_next_commit_after(tmp_path: Path):
    """And nobody waits for the reader."""
    store = SqliteStore(tmp_path / "store.db")
    filled(store)
    reader = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT COUNT(*) FROM reports").fetchall()
    store.commit(StoreChanges(expired=[Expiry("c" * 32, "q", 6)]))
    assert found(tmp_path, REPORT)
    reader.close()
    counted = StoreChanges()
    counted.counts["", "malformed"] += 1
    store.commit(counted)
    assert not any(found(tmp_path, secret) for secret in (IDS, REPORT, SKETCH, LATER))
    assert store._write("PRAGMA busy_timeout") == [(10_000,)]
    store.close()


def count() -> StoreChanges:
    changes = StoreChanges()
    changes.counts["", "malformed"] += 1
    return changes


def test_a_database_that_someone_locks_is_not_waited_for_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sqlite, "_PATIENCE", 0.1)
    store = SqliteStore(tmp_path / "store.db")
    other = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreFailed, match="locked"):
        store.commit(count())
    other.close()
    store.commit(count())
    assert store.counts() == {("", "malformed"): 1}
    store.close()


def test_a_row_that_someone_locks_in_postgresql(postgres: Callable[[], str], monkeypatch: pytest.MonkeyPatch):
    import psycopg

    from hubbub.service.store import postgres as module

    monkeypatch.setitem(module._SETTINGS, "lock_timeout", "100ms")
    url = postgres()
    store = module.PostgresStore(url)
    with psycopg.connect(url) as other:
        other.execute("SELECT * FROM meta FOR UPDATE")
        with pytest.raises(StoreFailed, match="lock timeout"):
            store.commit(count())
    store.commit(count())
    assert store.counts() == {("", "malformed"): 1}
    store.close()


def test_a_statement_that_does_not_end_in_postgresql(postgres: Callable[[], str]):
    from hubbub.service.store.postgres import PostgresStore

    store = PostgresStore(postgres())
    for query in (store._read, store._write):
        assert query("SHOW statement_timeout") == [("1min",)]
        query("SELECT set_config('statement_timeout', '200ms', false)")  # now: to open a store may take longer
    with pytest.raises(StoreFailed, match="statement timeout"):
        store._read("SELECT pg_sleep(60)")
    with pytest.raises(StoreFailed, match="statement timeout"), store._transaction():
        store._write("SELECT pg_sleep(60)")
    store._read("SELECT set_config('statement_timeout', '1min', false)")
    assert store.counts() == {}
    store.close()


def test_what_the_url_says_counts(postgres: Callable[[], str]):
    from hubbub.service.store.postgres import connect

    with connect(postgres() + "&connect_timeout=77") as connection:
        assert connection.info.get_parameters()["connect_timeout"] == "77"
        assert connection.execute("SHOW lock_timeout").fetchall() == [("10s",)]
