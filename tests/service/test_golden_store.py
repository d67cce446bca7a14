"""Golden stores are opened, lose nothing that was released, and go on; so do those of another arithmetic."""

import json
import logging
import re
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import asdict

from hubbub.core.migrations import Format, UnknownFormat
from hubbub.questions import StatisticQuestion
from hubbub.service.kept.archive import Archive, kept_reports
from hubbub.service.store import sql
from hubbub.service.store.base import StoreFailed
from hubbub.service.store.postgres import PostgresStore
from hubbub.service.store.schema import VERSION
from hubbub.service.store.sql import Store
from hubbub.service.store.sqlite import SqliteStore
from tests.golden.make_store import HOUR, World
from tests.service.web import logged
from tests.shared.in_process import rows_in

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
    rows = rows_in(world.store, "SELECT question, first, arithmetic FROM eras ORDER BY question, first")
    for question, first, arithmetic in rows:
        found.setdefault(question, []).append((first, arithmetic))
    return found


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
    assert {line["question"] for line in logged(caplog, "new era")} == ended
    assert len(logged(caplog, "new era")) == len(ended)
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
    asked = rows_in(world.store, "SELECT DISTINCT question, step, first FROM asks")
    assert max(Counter((question, step) for question, step, _ in asked).values()) == 1
    world.store.close()
    return world.clock.now()


@pytest.mark.parametrize("ended", [set(), {"flow", "places"}], ids=["same arithmetic", "other arithmetic"])
@pytest.mark.parametrize("name", STORES)
def test_a_store_goes_on(tmp_path: Path, name: str, ended: set[str], caplog: pytest.LogCaptureFixture) -> None:
    """A question whose era was begun with another arithmetic begins a new one, at a step that was never asked."""
    caplog.set_level(logging.WARNING, "hubbub.service")
    folder, expected = golden(name, tmp_path)
    with closing(sqlite3.connect(folder / "store.sqlite")) as database, database:
        database.executemany("UPDATE eras SET arithmetic = 99 WHERE question = ?", [(question,) for question in ended])
    now = check(folder, expected, ended, caplog)
    caplog.clear()
    again = Copied(folder, now + HOUR)  # and is then like any other
    assert logged(caplog, "new era") == []
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

    made = "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL"
    with closing(sqlite3.connect(path)) as source, psycopg.connect(url, autocommit=True) as target:
        for kind, table, sql in source.execute(made).fetchall():
            for plain, own in PostgresStore.types.items():
                sql = re.sub(rf"\b{SqliteStore.types[plain]}\b", own, sql)
            target.execute(sql.encode())
            if kind == "table":
                for row in source.execute(f"SELECT * FROM {table}").fetchall():
                    marks = ", ".join(["%s"] * len(row))
                    target.execute(f"INSERT INTO {table} VALUES ({marks})".encode(), row)
                if "BIGSERIAL" in sql:
                    following = f"(SELECT MAX(number) + 1 FROM {table})"
                    target.execute(f"SELECT setval('{table}_number_seq', {following})".encode())


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
    assert isinstance(question, StatisticQuestion)
    mechanism = question.mechanism_for()
    for step, payload in told.items():
        estimate = mechanism.estimate(mechanism.accumulate(found[step]))
        assert estimate.value.tolist() == pytest.approx(payload["value"])
    world.store.close()


def columns(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """The columns of each table and index."""
    with closing(sqlite3.connect(path)) as database:
        names = database.execute("SELECT name, type FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'").fetchall()
        info = {name: database.execute(f"PRAGMA {kind}_info({name})").fetchall() for name, kind in names}
    return {name: [row[1:] for row in rows] for name, rows in info.items()}


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


STEP = "ALTER TABLE rates ADD COLUMN made_up {real}"
MADE_UP = Format("store", VERSION + 1, {VERSION: (STEP,)})


def test_a_store_is_migrated_once_by_collectors_that_begin_together(
    postgres: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres()
    PostgresStore(url).close()
    monkeypatch.setattr(sql, "FORMAT", MADE_UP)
    with ThreadPoolExecutor(4) as pool:
        opened = list(pool.map(lambda _: PostgresStore(url), range(4)))
    assert rows_in(opened[0], "SELECT value FROM meta WHERE key = 'version'") == [(str(MADE_UP.version),)]
    assert rows_in(opened[0], "SELECT made_up FROM rates") == []
    for store in opened:
        store.close()


def test_a_migration_that_fails_leaves_the_store_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, _ = golden("store-1", tmp_path)
    path = folder / "store.sqlite"
    before = dump(path)
    broken = Format("store", VERSION + 1, {VERSION: (STEP, "INSERT INTO nowhere VALUES (1)")})
    monkeypatch.setattr(sql, "FORMAT", broken)
    with pytest.raises(StoreFailed, match="nowhere"):
        SqliteStore(path)
    assert dump(path) == before
    monkeypatch.setattr(sql, "FORMAT", MADE_UP)
    store = SqliteStore(path)
    assert rows_in(store, "SELECT DISTINCT made_up FROM rates") == [(None,)]
    store.close()


def test_a_newer_store_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    folder, _ = golden("store-1", tmp_path)
    path = folder / "store.sqlite"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE meta SET value = '99' WHERE key = 'version'")
    before = dump(path)
    with pytest.raises(UnknownFormat, match=r"format 99.*a newer one wrote it"):
        SqliteStore(path)
    assert dump(path) == before  # whoever has it open is not thrown out


def dump(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as database:
        return list(database.iterdump())
