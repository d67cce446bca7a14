"""Both stores: whole changes or none, one owner, closed sketches for good."""

import random
import sqlite3
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from hubbub.collection.names import AnswerName
from hubbub.core.errors import InvalidValue
from hubbub.service.store import base, checksums, open_store, readers, sql, sqlite
from hubbub.service.store import postgres as postgres_store
from hubbub.service.store.base import AskKey, AskRow, EraRow, Expiry, IdPage, StoreChanges, StoreDamaged, StoreFailed
from hubbub.service.store.checksums import CHECKED, GROWING, row_checksum
from hubbub.service.store.postgres import PostgresStore
from hubbub.service.store.scrub import Scrub
from hubbub.service.store.sql import Store
from hubbub.service.store.sqlite import SqliteStore
from tests.served import wait_for
from tests.shared.in_process import Reopen, rows_in, run_in

ERA = EraRow("c" * 32, "q", 5)


def ask(step: int, phase: int = 1, *, final: bool = False) -> AskRow:
    name = f"{step:030d}{phase:02d}"
    return AskRow(*ERA[:1], name, "q", 5, step, phase, 0, "{}", 1.5, 2.5, final, final, b"sketch")


def page(step: int, number: int, ids: bytes, part: int = 0) -> IdPage:
    return IdPage(*ask(step).key, number, part, ids)


def filled() -> StoreChanges:
    changes = StoreChanges(eras=[ERA], asks=[ask(5), ask(6, 2), ask(6, 1)])
    changes.collections.append(base.CollectionRow("c" * 32, "themes", 1, "{}"))
    changes.id_pages += [page(5, 0, b"one"), page(5, 1, b"two"), page(6, 0, b"three")]
    changes.releases.append(base.ReleaseRow("c" * 32, "q", 5, 9.25, '{"n": 1}', None))
    changes.releases.append(base.ReleaseRow("c" * 32, "q", 6, 9.5, '{"n": 2}', "too few"))
    changes.counts["c" * 32, "late"] += 3
    return changes


def name(step: int, number: int = 1) -> AnswerName:
    return AnswerName("q", run=0, step=step, round=number, part=0)


def counted(outcome: str = "malformed", count: int = 2, collection: str = "") -> StoreChanges:
    changes = StoreChanges()
    changes.counts[collection, outcome] += count
    return changes


def test_everything_comes_back(reopen: Reopen):
    reopen().commit(filled())
    store = reopen()
    assert store.collections() == [base.CollectionRow("c" * 32, "themes", 1, "{}")]
    assert store.era("c" * 32, "q") == ERA
    assert store.era("c" * 32, "other") is None
    assert list(store.asks(ERA)) == [ask(5), ask(6, 1), ask(6, 2)]
    assert list(store.id_pages(ask(5).key)) == [b"one", b"two"]
    assert [row.step for row in store.releases("c" * 32, "q", 0, 99, 10)] == [5, 6]
    assert [row.step for row in store.releases("c" * 32, "q", 0, 99, 1)] == [6]
    assert store.releases("c" * 32, "q", 6, 6, 10) == filled().releases[1:]
    assert store.counts() == {("c" * 32, "late"): 3}
    for step, number in ((5, 1), (6, 1), (6, 2)):
        assert store.knows("c" * 32, name(step, number))
        assert not store.knows("d" * 32, name(step, number))
        assert not store.knows("c" * 32, name(step, number)._replace(question="other"))
        assert not store.knows("c" * 32, name(step, number)._replace(run=1))
        assert not store.knows("c" * 32, name(step, number)._replace(part=1))
    for step, number in ((4, 1), (5, 2), (7, 1), ((1 << 53) - 1, (1 << 31) - 1)):
        assert not store.knows("c" * 32, name(step, number))
    assert [store.last_step("c" * 32, "q", before) for before in (5, 6, 7, None)] == [None, 5, 6, 6]
    assert store.last_step("c" * 32, "other") is None


def test_alarms_come_back_by_the_name_of_their_collection(reopen: Reopen):
    changes = StoreChanges(alarm_states={("themes", "late"): "{}", ("themes", "gone"): "{}"})
    changes.alarm_events += [base.AlarmEventRow("themes", number, f'{{"number": {number}}}') for number in (1, 2, 3)]
    changes.delivered["pager", "themes"] = 2
    reopen().commit(changes)
    again = StoreChanges(alarm_states={("themes", "late"): '{"n": 1}', ("themes", "gone"): None})
    again.delivered["pager", "themes"] = 3
    reopen().commit(again)
    store = reopen()
    assert store.alarm_states("themes") == {"late": '{"n": 1}'}
    assert store.alarm_states("others") == {}
    assert [row.number for row in store.alarm_events("themes", after=1, most=1)] == [2]
    assert store.alarm_events("themes", after=2, most=9) == changes.alarm_events[2:]
    assert (store.last_alarm_event("themes"), store.last_alarm_event("others")) == (3, 0)
    assert store.delivered() == {("pager", "themes"): 3}
    with pytest.raises(StoreFailed):  # a number is given once
        store.commit(StoreChanges(alarm_events=changes.alarm_events[:1]))


def test_many_rows_are_read_in_order(reopen: Reopen):
    store = reopen()
    store.commit(StoreChanges(eras=[ERA], asks=[ask(step) for step in range(5, 605)]))
    store.commit(StoreChanges(id_pages=[page(7, number, b"%d" % number) for number in reversed(range(600))]))
    assert [row.step for row in store.asks(ERA)] == list(range(5, 605))
    assert list(store.id_pages(ask(7).key)) == [b"%d" % number for number in range(600)]
    assert store.count_id_pages(ask(7).key) == 600
    wanted = [0, 3, 4, 5, *range(100, 599, 2), 599]
    assert store.some_id_pages(ask(7).key, wanted) == [b"%d" % number for number in wanted]
    assert store.some_id_pages(ask(7).key, []) == []


def test_a_page_of_ids_stands_for_its_parts_and_pages_are_deleted_from_the_end(reopen: Reopen):
    store = reopen()
    store.commit(filled())
    store.commit(StoreChanges(id_pages=[page(5, 1, b" and more", 3)]))
    store.commit(StoreChanges(id_pages=[page(5, 1, b" and even more", 12)]))
    assert list(store.id_pages(ask(5).key)) == [b"one", b"two", b" and more", b" and even more"]
    assert store.count_id_pages(ask(5).key) == 2
    store.commit(StoreChanges(id_pages=[page(5, 1, b"two and more"), page(5, 2, b"three")]))
    assert list(store.id_pages(ask(5).key)) == [b"one", b"two and more", b"three"]
    store.commit(StoreChanges(trimmed=[(ask(5).key, 1)]))
    assert list(store.id_pages(ask(5).key)) == [b"one"]
    assert list(store.id_pages(ask(6).key)) == [b"three"]
    assert (ask(5).key, False) in store.asks_with_ids()  # not forgotten before all are gone


def test_a_change_that_fails_leaves_nothing_behind(reopen: Reopen):
    store = reopen()
    store.commit(filled())
    again = StoreChanges(id_pages=[page(5, 1, b"lost")], asks=[ask(7), ask(5)])  # the second is there already
    again.counts["c" * 32, "late"] += 1
    with pytest.raises(StoreFailed):
        store.commit(again)
    assert list(store.id_pages(ask(5).key)) == [b"one", b"two"]
    assert not store.knows("c" * 32, name(7))
    assert store.counts() == {("c" * 32, "late"): 3}
    store.commit(StoreChanges(id_pages=[page(5, 2, b"kept")]))  # and it goes on
    assert list(store.id_pages(ask(5).key))[-1] == b"kept"


def test_a_closed_sketch_never_changes(reopen: Reopen):
    store = reopen()
    store.commit(filled())
    store.commit(StoreChanges(sketches={ask(5).key: b"later"}))
    store.commit(StoreChanges(finals=[ask(5).key]))
    for change in (StoreChanges(sketches={ask(5).key: b"too late"}), StoreChanges(finals=[ask(5).key])):
        with pytest.raises(StoreFailed):
            store.commit(change)
    row = next(iter(store.asks(ERA)))
    assert (row.sketch, row.final, row.forgotten) == (b"later", True, False)


def test_only_closed_asks_are_forgotten(reopen: Reopen):
    store = reopen()
    store.commit(filled())
    with pytest.raises(StoreFailed):
        store.commit(StoreChanges(forgotten=[ask(5).key]))
    store.commit(StoreChanges(finals=[ask(5).key]))
    assert sorted(store.asks_with_ids()) == [(ask(5).key, True), (ask(6).key, False), (ask(6, 2).key, False)]
    store.commit(StoreChanges(forgotten=[ask(5).key]))
    assert list(store.id_pages(ask(5).key)) == []
    assert list(store.id_pages(ask(6).key)) == [b"three"]
    assert sorted(store.asks_with_ids()) == [(ask(6).key, False), (ask(6, 2).key, False)]
    assert store.knows("c" * 32, name(5))


def contents(path: Path) -> dict[str, list[str]]:
    """All rows of a store, but for the token of its owner."""
    with closing(sqlite3.connect(path)) as database:
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        rows = {table: database.execute(f"SELECT * FROM {table}").fetchall() for (table,) in tables}
    return {table: [repr(row) for row in rows[table] if row[0] != "owner"] for table in rows}


def damaged_copies(content: bytes) -> Iterator[bytes]:
    """Copies of a file with damage to any of its pages: zeros, noise, and 60 of single bits, with a fixed seed."""
    rng, size = random.Random(7), 4096
    for start in range(0, len(content), size):
        for damage in (bytes(size), rng.randbytes(size)):
            yield content[:start] + damage + content[start + size :]
    for _ in range(60):
        place = rng.randrange(len(content))
        yield content[:place] + bytes([content[place] ^ 1 << rng.randrange(8)]) + content[place + 1 :]


def with_history(steps: int) -> StoreChanges:
    """What steps leave behind, of which a start looks at the last only, and what is open."""
    changes, rng = filled(), random.Random(5)
    for number in range(9):  # some rows of several pages
        changes.id_pages.append(page(6, number + 1, rng.randbytes(9000)))
    for step in range(7, 7 + steps):
        changes.asks.append(ask(step)._replace(sketch=rng.randbytes(200)))
        changes.releases.append(base.ReleaseRow("c" * 32, "q", step, 9.0, f'{{"n": {rng.getrandbits(1000)}}}', None))
        changes.counted.append(base.CountRow(*ERA[:3], step, 0, ask(step).ask, "[]", step, "[1]"))
        changes.alarm_events.append(base.AlarmEventRow("themes", step, f'{{"number": {rng.getrandbits(64)}}}'))
    return changes


Told = dict[str, list[object] | None]


def told(store: Store, steps: int) -> Told:
    """What a store tells of everything; None where it says that it is damaged."""
    key, place = ask(6).key, ("c" * 32, "q")
    queries: dict[str, Callable[[], Iterable[object]]] = {
        "collections": store.collections,
        "asks": lambda: store.asks(ERA),
        "ids": lambda: store.id_pages(key),
        "releases": lambda: store.releases(*place, 0, 10_000, 10_000),
        "closed": lambda: store.closed_asks(*place, 0, 10_000),
        "events": lambda: store.alarm_events("themes", 0, 10_000),
        "counted": lambda: (row for step in range(7, 7 + steps, 4) for row in store.counted(ERA, step)),
        "release": lambda: (store.release(*place, step) for step in range(5, 7 + steps, 4)),
    }
    answers: Told = {}
    for name, query in queries.items():
        try:
            answers[name] = list(query())
        except StoreFailed:
            answers[name] = None
    return answers


def test_a_damaged_file_tells_nothing_false_and_all_damage_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is damaged: the store does not open, or what it tells is as it was written, and the scrub finds it."""
    monkeypatch.setattr(sqlite, "_NEWEST", 8)
    path, steps = tmp_path / "hubbub.db", 40
    store = SqliteStore(path)
    store.commit(with_history(steps))
    whole = told(store, steps)
    store.close()
    content, before, found_by = path.read_bytes(), contents(path), Counter[str]()
    for number, damaged in enumerate(damaged_copies(content)):
        path = tmp_path / f"{number}.db"  # under one name, SQLite would find what is left of the file before
        path.write_bytes(damaged)
        try:
            store = SqliteStore(path)
        except StoreFailed:
            found_by["start"] += 1
            continue
        answers = told(store, steps)
        for name, answer in answers.items():
            known = whole[name]
            assert answer is None or (known is not None and all(row in [*known, None] for row in answer)), name
        try:
            Scrub(store).check()
        except StoreFailed:
            found_by["reading" if None in answers.values() else "scrub"] += 1
            with pytest.raises(StoreFailed):
                store.commit(counted())
        else:
            assert answers == whole
            assert contents(path) == before  # the damage was in a part that nothing uses
        store.close()
        path.unlink()
    assert min(found_by[way] for way in ("start", "reading", "scrub")) > 5, found_by


@pytest.mark.parametrize("table", sorted(CHECKED.keys() - {"collections", "snapshots"}))
def test_a_changed_value_is_told_by_no_query_and_stops_every_commit(reopen: Reopen, table: str):
    """In history or not, in either store."""
    key = ask(5).key
    changes = with_history(3)
    changes.finals.append(key)
    changes.reports.append((key, 1, b"report"))
    changes.archives.append(base.ArchiveRow(*ask(6).key, "file", 1, "0" * 64))
    changes.shuffled.append(base.ShuffledRow(*ask(7).key, b"d" * 32, 40, 10, 1, 2, 3, 1))
    changes.spot_checks.append((key, b"onion"))
    changes.alarm_states["themes", "late"] = "{}"
    store = reopen()
    store.commit(changes)
    Scrub(store).check()
    column = CHECKED[table][-1]
    run_in(store, NUMBERS.get(table, f"UPDATE {table} SET {column} = substr({column}, 2)"))
    reads: dict[str, Callable[[], object]] = {
        "asks": lambda: list(store.asks(ERA)),
        "sketches": lambda: list(store.asks(ERA)),
        "id_pages": lambda: list(store.id_pages(ask(6).key)),
        "reports": lambda: store.kept_segments(key),
        "archives": store.archive_names,
        "candidate_counts": lambda: store.counted(ERA, 8),
        "releases": lambda: store.releases("c" * 32, "q", 0, 99, 10),
        "shuffled_batches": lambda: store.shuffled_batch(ask(7).key),
        "spot_checks": lambda: store.spot_checks(key),
        "alarm_states": lambda: store.alarm_states("themes"),
        "alarm_events": lambda: store.alarm_events("themes", 0, 9),
    }
    with pytest.raises(StoreDamaged, match=f"a row of the table {table} has changed"):
        reads[table]()
    with pytest.raises(StoreDamaged):
        store.commit(counted())
    with pytest.raises(StoreDamaged):
        store.probe(1.0)
    if table in GROWING and isinstance(store, PostgresStore):
        store = reopen()
    with pytest.raises(StoreDamaged, match=table):
        Scrub(store).check()


NUMBERS = {
    "asks": "UPDATE asks SET closes = closes + 1",
    "releases": "UPDATE releases SET number = number + 1",
    "shuffled_batches": "UPDATE shuffled_batches SET lost = lost + 1",
}


def test_a_start_reads_no_history(tmp_path: Path):
    """Steps of SQLite's machine and rows that are compared, after little and after much."""
    work = []
    for steps in (600, 2400):
        path = tmp_path / f"{steps}.db"
        store = SqliteStore(path)
        store.commit(with_history(steps))
        store.close()
        with counted_steps() as count:
            SqliteStore(path).close()
        work.append(count[0])
    assert work[1] < 1.05 * work[0]


@contextmanager
def counted_steps() -> Iterator[list[int]]:
    """Counts the steps of SQLite's machine, and rows that are compared with their checksums."""
    count = [0]

    def step() -> None:
        count[0] += 1

    def compared(row: Iterable[object], *tables: str) -> list[object]:
        count[0] += 100
        return checksums.compared(row, *tables)

    class Counted(sqlite3.Connection):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self.set_progress_handler(step, 1)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sqlite3, "connect", Counted)
        for module in (sqlite, readers, sql):
            patched.setattr(module, "compared", compared)
        yield count


def test_an_index_that_hides_the_last_step_is_found_at_the_start(tmp_path: Path):
    path = tmp_path / "hubbub.db"
    store = SqliteStore(path)
    store.commit(with_history(300))
    store.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA writable_schema = ON")  # without its index, the table is changed alone
        hidden = "DELETE FROM sqlite_master WHERE name = 'withheld_releases'"
        ((definition,),) = database.execute("SELECT sql FROM sqlite_master WHERE name = 'withheld_releases'")
        ((root,),) = database.execute("SELECT rootpage FROM sqlite_master WHERE name = 'withheld_releases'")
        database.execute(hidden)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA writable_schema = ON")
        values = base.ReleaseRow("c" * 32, "q", 999, 9.0, "{}", "few")
        places = ", ".join("?" * (len(values) + 1))
        columns = ", ".join([*CHECKED["releases"], "checksum"])
        database.execute(f"INSERT INTO releases ({columns}) VALUES ({places})", (*values, row_checksum(*values)))
        database.execute(
            "INSERT INTO sqlite_master VALUES ('index', 'withheld_releases', 'releases', ?, ?)", (root, definition)
        )
    with pytest.raises(StoreDamaged, match="rows are missing in the index withheld_releases"):
        SqliteStore(path)


def test_the_background_check_goes_on_and_stops_a_store_that_is_damaged_later(tmp_path: Path):
    store = SqliteStore(tmp_path / "hubbub.db")
    store.commit(with_history(300))
    scrub = Scrub(store, pause=0.0, share=1.0)
    scrub.start()
    wait_for(lambda: scrub.passes >= 2)
    assert scrub.rows > 1200
    assert 0.0 <= scrub.progress <= 1.0
    assert scrub.last > 0
    with closing(sqlite3.connect(tmp_path / "hubbub.db")) as database, database:
        database.execute("UPDATE releases SET payload = '{}' WHERE step = 10")
    wait_for(lambda: store.damage is not None)
    with pytest.raises(StoreDamaged, match="a row of the table releases has changed"):
        store.commit(counted())
    scrub.stop()
    store.close()


def test_a_newer_collector_takes_over_and_the_older_can_change_nothing(reopen: Reopen):
    older = reopen()
    older.commit(filled())
    newer = reopen()
    with pytest.raises(StoreFailed, match="another collector has taken over"):
        older.commit(StoreChanges(id_pages=[page(5, 2, b"from the older")]))
    newer.commit(StoreChanges(id_pages=[page(5, 2, b"from the newer")]))
    assert list(newer.id_pages(ask(5).key)) == [b"one", b"two", b"from the newer"]


def test_the_file_is_for_its_owner_alone_and_commits_reach_the_disk(tmp_path: Path):
    path = tmp_path / "store.db"
    store = open_store(f"sqlite:///{path}")
    assert isinstance(store, SqliteStore)
    store.commit(filled())
    for part in tmp_path.iterdir():
        assert stat.S_IMODE(part.stat().st_mode) == 0o600
    assert sorted(part.name for part in tmp_path.iterdir()) == ["store.db", "store.db-shm", "store.db-wal"]
    assert run_in(store, "PRAGMA synchronous") == [(2,)]  # FULL
    assert run_in(store, "PRAGMA journal_mode") == [("wal",)]
    store.close()


@pytest.mark.parametrize("what", ["database", "log", "replaced"])
def test_nothing_is_acknowledged_that_goes_into_a_file_that_is_gone(tmp_path: Path, what: str):
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    store.commit(filled())
    if what == "replaced":
        (tmp_path / "other").write_bytes(path.read_bytes())
        (tmp_path / "other").replace(path)
    else:
        (path if what == "database" else tmp_path / "store.db-wal").unlink()
    with pytest.raises(StoreFailed, match="deleted, moved or replaced"):
        store.commit(counted())
    store.close()


def test_a_store_behind_a_symbolic_link(tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "store.db").symlink_to(tmp_path / "real" / "store.db")
    for _ in range(2):
        store = SqliteStore(tmp_path / "store.db")
        store.commit(counted())
        store.close()
    assert (tmp_path / "store.db").is_symlink()
    assert stat.S_IMODE((tmp_path / "real" / "store.db").stat().st_mode) == 0o600


@pytest.mark.parametrize("url", ["", "sqlite:", "sqlite:///", "file", "mysql://host/name"])
def test_urls_that_name_no_store_are_refused(url: str):
    with pytest.raises(InvalidValue, match="allowed: sqlite:///path or postgresql://"):
        open_store(url)


def test_a_server_that_is_not_there_is_said_plainly():
    with pytest.raises(StoreFailed):
        open_store("postgresql://nobody@127.0.0.1:1/nothing?connect_timeout=2")


def test_what_came_is_known_to_the_minute_for_a_day(reopen: Reopen):
    store = reopen()
    for minute in (5, 5, 6, 1500):
        changes = StoreChanges(minute=minute)
        changes.counts["c" * 32, "accepted"] += 10
        changes.counts["c" * 32, "late"] += 2
        changes.counts["c" * 32, "duplicate"] += 7
        changes.counts["", "malformed"] += 1
        store.commit(changes)
        if minute == 6:
            assert store.rates("c" * 32, 0) == [(5, 20, 4), (6, 10, 2)]
    store = reopen()
    assert store.rates("c" * 32, 0) == [(1500, 10, 2)]
    assert store.rates("", 1500) == [(1500, 0, 1)]
    assert not StoreChanges(minute=7)


@pytest.mark.parametrize(("opens", "asked"), [(2.4, True), (3.4, True), (3.5, False)])
def test_a_step_stays_asked_when_its_ask_is_deleted_if_reports_to_it_could_count(
    reopen: Reopen, opens: float, asked: bool
) -> None:
    """An ask that opens after its close still takes late reports; one that opens after that was only passed over."""
    store = reopen()
    store.commit(StoreChanges(eras=[ERA], asks=[ask(5)._replace(opens=opens)]))
    place = ("c" * 32, "q", 5)
    assert (store.first_unasked(*place, lateness=1.0) == 6) == asked
    store.commit(StoreChanges(expired=[Expiry("c" * 32, "q", 6, lateness=1.0)]))
    assert store.was_asked(*place) == asked
    assert (store.first_unasked(*place, lateness=1.0) == 6) == asked


def test_shuffled_batches_and_what_is_looked_for_in_them(reopen: Reopen):
    """A batch takes the reports that were looked for along; retention takes the batch."""
    store = reopen()
    store.commit(filled())
    store.commit(StoreChanges(spot_checks=[(ask(5).key, b"one"), (ask(5).key, b"two"), (ask(6).key, b"three")]))
    assert sorted(store.spot_checks(ask(5).key)) == [b"one", b"two"]
    row = base.ShuffledRow(*ask(5).key, b"d" * 32, 40, 10, 1, 2, 3, 1)
    store.commit(StoreChanges(shuffled=[row]))
    store = reopen()
    assert store.shuffled_batch(ask(5).key) == row
    assert store.shuffled_batch(ask(6).key) is None
    ((asked, batch),) = store.shuffled_batches("c" * 32, "q", 9)
    assert (asked.step, batch) == (5, row)
    assert store.spot_checks(ask(5).key) == []
    assert store.spot_checks(ask(6).key) == [b"three"]
    store.commit(StoreChanges(expired=[Expiry("c" * 32, "q", 6)]))
    assert store.shuffled_batch(ask(5).key) is None


# -- what retention deletes is in no file of a SQLite store any more; nobody waits for a lock for ever ----------

IDS, REPORT, SKETCH, LATER = (word * 50 for word in (b"--ids--", b"--report--", b"--sketch--", b"--later--"))


def with_secrets(store: SqliteStore) -> AskKey:
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
    key = with_secrets(store)
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
    with_secrets(store)
    reader = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT COUNT(*) FROM reports").fetchall()
    store.commit(StoreChanges(expired=[Expiry("c" * 32, "q", 6)]))
    assert found(tmp_path, REPORT)
    reader.close()
    store.commit(counted("malformed", 1))
    assert not any(found(tmp_path, secret) for secret in (IDS, REPORT, SKETCH, LATER))
    assert run_in(store, "PRAGMA busy_timeout") == [(10_000,)]
    store.close()


def test_a_database_that_someone_locks_is_not_waited_for_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sqlite, "PATIENCE", 0.1)
    store = SqliteStore(tmp_path / "store.db")
    other = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreFailed, match="locked"):
        store.commit(counted("malformed", 1))
    other.close()
    store.commit(counted("malformed", 1))
    assert store.counts() == {("", "malformed"): 1}
    store.close()


def test_a_row_that_someone_locks_in_postgresql(postgres: Callable[[], str]):
    import psycopg

    url = postgres()
    store = postgres_store.PostgresStore(url)
    run_in(store, "SELECT set_config('lock_timeout', '100ms', false)")
    with psycopg.connect(url) as other:
        other.execute("SELECT * FROM meta FOR UPDATE")
        with pytest.raises(StoreFailed, match="lock timeout"):
            store.commit(counted("malformed", 1))
    store.commit(counted("malformed", 1))
    assert store.counts() == {("", "malformed"): 1}
    store.close()


def test_a_statement_that_does_not_end_in_postgresql(postgres: Callable[[], str]):
    store = postgres_store.PostgresStore(postgres())
    for query in (rows_in, run_in):
        assert query(store, "SHOW statement_timeout") == [("1min",)]
        query(store, "SELECT set_config('statement_timeout', '200ms', false)")  # now: to open a store may take longer
    with pytest.raises(StoreFailed, match="statement timeout"):
        rows_in(store, "SELECT pg_sleep(60)")
    with pytest.raises(StoreFailed, match="statement timeout"), store._transaction():
        run_in(store, "SELECT pg_sleep(60)")
    rows_in(store, "SELECT set_config('statement_timeout', '1min', false)")
    assert store.counts() == {}
    store.close()


def test_what_the_url_says_counts(postgres: Callable[[], str]):
    with postgres_store.connect(postgres() + "&connect_timeout=77") as connection:
        assert connection.info.get_parameters()["connect_timeout"] == "77"
        assert connection.execute("SHOW lock_timeout").fetchall() == [("10s",)]
