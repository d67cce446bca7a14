"""Golden stores are opened, lose nothing that was released, and go on; so do those of another arithmetic."""

from __future__ import annotations

import json
import logging
import re
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import asdict

from hubbub.core.migrations import Format, UnknownFormat
from hubbub.service.kept.archive import Archive
from hubbub.service.kept.raw_reports import kept_reports
from hubbub.service.store import sql
from hubbub.service.store.base import StoreFailed
from hubbub.service.store.postgres import PostgresStore
from hubbub.service.store.schema import VERSION
from hubbub.service.store.sql import Store
from hubbub.service.store.sqlite import SqliteStore
from tests.golden.make_store import HOUR, World

HERE = Path(__file__).parents[1] / "golden"
STORES = sorted(path.name for path in HERE.glob("store-*"))
HORIZON = 8
"""Steps of the stream of changes."""


class Copied(World):
    """A collector over a copy of a golden store."""

    def __init__(self, folder: Path, now: float, store: Store | None = None) -> None:
        self.given = store
        super().__init__((folder / "collection.toml").read_text(), folder / "store.sqlite", now)

    def open(self, path: Path) -> Store:
        return self.given or super().open(path)


def golden(name: str, place: Path) -> tuple[Path, dict[str, Any]]:
    """A copy of golden files, and what is expected of them."""
    folder = place / name
    shutil.copytree(HERE / name, folder)
    return folder, json.loads((folder / "expected.json").read_text())


def eras(world: World) -> dict[str, list[tuple[int, int]]]:
    """First step and arithmetic of every era, by question."""
    found: dict[str, list[tuple[int, int]]] = {}
    rows = world.store._read("SELECT question, first, arithmetic FROM eras ORDER BY question, first")  # type: ignore[attr-defined]
    for question, first, arithmetic in rows:
        found.setdefault(question, []).append((first, arithmetic))
    return found


def new_eras(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [record.fields for record in caplog.records if record.getMessage() == "new era"]  # type: ignore[attr-defined]


def check(
    folder: Path,
    expected: dict[str, Any],
    ended: set[str],
    caplog: pytest.LogCaptureFixture,
    store: Store | None = None,
) -> float:
    """See what a store goes on with, and which questions begin anew (`ended`), and let it; the time then."""
    world = Copied(folder, expected["now"], store)
    old = eras(world)
    assert world.stored()["releases"] == expected["releases"]
    assert {line["question"] for line in new_eras(caplog)} == ended
    assert len(new_eras(caplog)) == len(ended)
    now = int(expected["now"] // HOUR)
    horizon = -(-(now + 1) // HORIZON) * HORIZON  # streams of changes begin with one
    for question, spec in world.collection.questions.items():
        assert len(old[question]) == 1 + (question in ended)
        first, arithmetic = old[question][-1]
        assert arithmetic == spec.arithmetic
        if question in ended:
            assert first == (horizon if question == "places" else now + 1)
    held = {key for key, _ in world.store.asks_with_ids()}
    assert held == set(world.collector.board.asks)  # what the ended eras left open is closed and forgotten
    for step in range(now + 1, max(now + 6, horizon + 3 if "places" in ended else 0)):
        world.step(step)
    for question in world.collection.questions:
        rows = world.collector.releases("survey", question, first=0, last=1 << 40, most=1 << 20)
        steps = [row.step for row in rows]
        told = [step for step, *_ in expected["releases"][question]]
        assert steps[: len(told)] == told
        assert len(steps) > len(told)
        if question not in ended:
            assert steps == list(range(steps[0], steps[-1] + 1))
    asked = world.store._read("SELECT DISTINCT question, step, first FROM asks")  # type: ignore[attr-defined]
    assert max(Counter((question, step) for question, step, _ in asked).values()) == 1
    world.store.close()
    return world.clock.now()


@pytest.mark.parametrize("ended", [set(), {"flow", "places"}], ids=["same arithmetic", "other arithmetic"])
@pytest.mark.parametrize("name", STORES)
def test_a_store_goes_on(tmp_path: Path, name: str, ended: set[str], caplog: pytest.LogCaptureFixture) -> None:
    """A question whose era was begun with another arithmetic begins a new one, at a step that was never asked."""
    caplog.set_level(logging.WARNING, "hubbub.service")
    folder, expected = golden(name, tmp_path)
    with sqlite3.connect(folder / "store.sqlite") as database:
        database.executemany("UPDATE eras SET arithmetic = 99 WHERE question = ?", [(question,) for question in ended])
    database.close()
    now = check(folder, expected, ended, caplog)
    caplog.clear()
    again = Copied(folder, now + HOUR)  # and is then like any other
    assert new_eras(caplog) == []
    again.store.close()


@pytest.mark.parametrize("name", STORES)
def test_a_store_in_postgresql_goes_on(
    tmp_path: Path, name: str, postgres: Callable[[], str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "hubbub.service")
    folder, expected = golden(name, tmp_path)
    url = postgres()
    copy_to_postgres(folder / "store.sqlite", url)
    check(folder, expected, set(), caplog, PostgresStore(url))


def copy_to_postgres(path: Path, url: str) -> None:
    """The same tables with the same rows, in the types that PostgreSQL stores always had."""
    import psycopg

    source = sqlite3.connect(path)
    with psycopg.connect(url, autocommit=True) as target:
        for kind, table, sql in source.execute(
            "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL"
        ).fetchall():
            for plain, own in PostgresStore.types.items():
                sql = re.sub(rf"\b{SqliteStore.types[plain]}\b", own, sql)
            target.execute(sql.encode())
            if kind == "table":
                for row in source.execute(f"SELECT * FROM {table}").fetchall():
                    marks = ", ".join(["%s"] * len(row))
                    target.execute(f"INSERT INTO {table} VALUES ({marks})".encode(), row)
                if "BIGSERIAL" in sql:
                    target.execute(
                        f"SELECT setval('{table}_number_seq', (SELECT MAX(number) + 1 FROM {table}))".encode()
                    )
    source.close()


@pytest.mark.parametrize("name", [name for name in STORES if (HERE / name / "reports").exists()])
def test_kept_reports_are_read_from_their_files(tmp_path: Path, name: str) -> None:
    folder, expected = golden(name, tmp_path)
    world = Copied(folder, expected["now"])
    key = world.collection.collection_id
    archive = Archive(folder / "reports")
    found = dict(kept_reports(world.store, archive, key, "kept", first=0, last=99))
    told = {step: payload for step, _, payload in expected["releases"]["kept"]}
    assert set(told) <= set(found)
    assert len(told) >= 5
    question = world.collection.questions["kept"]
    mechanism = question.mechanism_for(world.collection.setting("kept"))
    for step, payload in told.items():
        estimate = mechanism.estimate(mechanism.accumulate(found[step]))
        assert estimate.value.tolist() == pytest.approx(payload["value"])
    world.store.close()


def columns(path: Path) -> dict[str, Any]:
    database = sqlite3.connect(path)
    names = database.execute("SELECT name, type FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'").fetchall()
    found = {
        name: [row[1:] for row in database.execute(f"PRAGMA {'table' if kind == 'table' else 'index'}_info({name})")]
        for name, kind in names
    }
    database.close()
    return found


def test_alarms_go_on_from_a_golden_store(tmp_path: Path) -> None:
    folder, expected = golden("store-1", tmp_path)
    world = Copied(folder, expected["now"])
    alarms = world.collector.alarms
    assert [event.to_json() for event in alarms.events("survey")] == expected["alarm_events"]
    assert "raised" in [event["state"] for event in expected["alarm_events"]]
    assert [asdict(status) for status in alarms.status("survey")] == expected["alarms"]
    assert {status.state for status in alarms.status("survey")} == {"raised", "learning"}
    assert world.store.delivered() == {("pager", "survey"): 1}
    world.store.close()


def test_the_tables_are_those_of_the_golden_store_of_this_version(tmp_path: Path) -> None:
    """If this fails, the tables have changed: increase the number in `store/schema.py`, and write a migration."""
    SqliteStore(tmp_path / "new.sqlite").close()
    assert columns(tmp_path / "new.sqlite") == columns(HERE / f"store-{VERSION}" / "store.sqlite")


MADE_UP = Format("store", VERSION + 1, {VERSION: ("ALTER TABLE rates ADD COLUMN made_up {real}",)})


def test_a_store_is_migrated_once_by_collectors_that_begin_together(
    postgres: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres()
    PostgresStore(url).close()
    monkeypatch.setattr(sql, "FORMAT", MADE_UP)
    with ThreadPoolExecutor(4) as pool:
        opened = list(pool.map(lambda _: PostgresStore(url), range(4)))
    assert opened[0]._read("SELECT value FROM meta WHERE key = 'version'") == [(str(MADE_UP.version),)]
    assert opened[0]._read("SELECT made_up FROM rates") == []
    for store in opened:
        store.close()


def test_a_migration_that_fails_leaves_the_store_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, _ = golden("store-1", tmp_path)
    path = folder / "store.sqlite"
    before = dump(path)
    broken = (*MADE_UP.migrations[VERSION], "INSERT INTO nowhere VALUES (1)")
    monkeypatch.setattr(sql, "FORMAT", Format("store", VERSION + 1, {VERSION: broken}))
    with pytest.raises(StoreFailed, match="nowhere"):
        SqliteStore(path)
    assert dump(path) == before
    monkeypatch.setattr(sql, "FORMAT", MADE_UP)
    store = SqliteStore(path)
    assert store._read("SELECT DISTINCT made_up FROM rates") == [(None,)]
    store.close()


def test_a_newer_store_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    folder, _ = golden("store-1", tmp_path)
    path = folder / "store.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("UPDATE meta SET value = '99' WHERE key = 'version'")
    database.close()
    before = dump(path)
    with pytest.raises(UnknownFormat, match=r"format 99.*a newer one wrote it"):
        SqliteStore(path)
    assert dump(path) == before  # whoever has it open is not thrown out


def dump(path: Path) -> list[str]:
    database = sqlite3.connect(path)
    lines = list(database.iterdump())
    database.close()
    return lines
