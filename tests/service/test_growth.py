"""What the collector does does not grow with what it did before, and grows with its questions in proportion.

Nothing here measures time. Steps of SQLite's machine, blocks of PostgreSQL, and calls of functions are counted.
"""

import gc
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import fields, replace
from inspect import getmembers, isfunction
from itertools import islice
from typing import Any, TypeAlias

import pytest

from hubbub.authoring import load_collection
from hubbub.collection import ManualClock
from hubbub.collection.names import AnswerName
from hubbub.dashboard.reader import Reader
from hubbub.dashboard.results import question_page, results_page
from hubbub.questions.collection import Collection
from hubbub.service.collector.collector import Collector
from hubbub.service.http.metrics import metrics_text
from hubbub.service.http.service import Service
from hubbub.service.rounds.retention import SWEEP
from hubbub.service.rounds.rounds import MARGIN
from hubbub.service.store import base, checksums, sql
from hubbub.service.store.base import Expiry, PassedOver, StoreChanges
from hubbub.service.store.postgres import PostgresStore, connect
from hubbub.service.store.readers import ProtocolReader, ReportReader, StatusReader
from hubbub.service.store.sql import Store
from hubbub.service.store.sqlite import SqliteStore
from tests.service.exact_world import exact_collection
from tests.shared.in_process import KEYS, World, run_in
from tests.shared.small_collections import THEME, collection_text

HOUR = 3600.0
NOW = 90_000
"""The step of an hour in which a collector begins, ten years after the first."""
MOST = 1.2
"""How many times as much may be done with more history."""

C, Q = "c" * 32, "q"
PAYLOAD = (
    '{"published": true, "spent": 0.0, "population": 9.0, "n": 9, "bias": "none", "kind": "share", '
    '"labels": ["light", "dark"], "value": [0.5, 0.5], "variance": [0.1, 0.1]}'
)
Counting: TypeAlias = Callable[[Store], AbstractContextManager[list[int]]]
ALL = 1 << 40


def ask_at(step: int, collection: str = C, question: str = Q) -> base.AskRow:
    name = f"{collection}-{question}-{step}"
    place = {"question": question, "first": 0, "step": step, "round": 1, "part": 0, "spec": f'{{"step": {step}}}'}
    times = {"opens": HOUR * step, "closes": HOUR * (step + 1)}
    return base.AskRow(collection, name, **place, **times, final=True, forgotten=True, sketch=b"sketch")  # type: ignore[arg-type]


def history(first: int, last: int, *, collection: str = C, question: str = Q, files: int = ALL) -> StoreChanges:
    """What hourly steps leave in a store; files of reports only of the last `files` steps."""
    changes = StoreChanges(eras=[base.EraRow(collection, question, 0)])
    changes.counts[collection, "accepted"] = 1
    for step in range(first, last):
        changes.releases.append(base.ReleaseRow(collection, question, step, HOUR * step, PAYLOAD, None))
        changes.alarm_events.append(base.AlarmEventRow(collection, step + 1, "{}"))
        changes.begun_runs.append(base.EraRow(collection, "study", step))
        changes.ended_runs.append(base.EraRow(collection, "study", step))
        ask = ask_at(step, collection, question)
        changes.asks.append(ask)
        changes.counted.append(base.CountRow(collection, question, 0, step, 0, ask.ask, "[]", 1, "[]"))
        if step >= last - files:
            changes.archives.append(base.ArchiveRow(*ask.key, f"{ask.ask}.parquet", 1, "0" * 64))
        changes.shuffled.append(base.ShuffledRow(*ask.key, b"digest", 1, 0, 0, 0))
        changes.id_pages.append(base.IdPage(*ask.key, 0, 0, bytes(24)))
    return changes


READS: dict[str, Callable[[Store, str], object]] = {
    "asks_with_ids": lambda store, c: store.asks_with_ids(),
    "id_pages": lambda store, c: list(store.id_pages(ask_at(5, c).key)),
    "some_id_pages": lambda store, c: store.some_id_pages(ask_at(5, c).key, [0, 2]),
    "count_id_pages": lambda store, c: store.count_id_pages(ask_at(5, c).key),
    "kept_segments": lambda store, c: store.kept_segments(ask_at(5, c).key),
    "archive_of": lambda store, c: store.archive_of(ask_at(5, c).key),
    "asks_to_archive": lambda store, c: store.asks_to_archive(),
    "shuffled_batch": lambda store, c: store.shuffled_batch(ask_at(5, c).key),
    "shuffled_batches": lambda store, c: store.shuffled_batches(c, Q, 3),
    "spot_checks": lambda store, c: store.spot_checks(ask_at(5, c).key),
    "alarm_states": lambda store, c: store.alarm_states(c),
    "alarm_events": lambda store, c: store.alarm_events(c, 5, 3),
    "last_alarm_event": lambda store, c: store.last_alarm_event(c),
    "delivered": lambda store, c: store.delivered(),
    "counts": lambda store, c: store.counts(),
    "rates": lambda store, c: store.rates(c, 5),
    "clock": lambda store, c: store.clock(),
    "calling": lambda store, c: store.calling(),
    "collections": lambda store, c: store.collections(),
    "era": lambda store, c: store.era(c, Q),
    "running_studies": lambda store, c: store.running_studies(c),
    "holds_any": lambda store, c: (store.holds_any(c), store.holds_any("e" * 32)),
    "has_begun": lambda store, c: (store.has_begun(c, "study", 3), store.has_begun(c, "study", ALL)),
    "last_step": lambda store, c: (store.last_step(c, Q), store.last_step(c, Q, 5)),
    "was_asked": lambda store, c: (store.was_asked(c, Q, 5), store.was_asked(c, Q, ALL)),
    "first_unasked": lambda store, c: store.first_unasked(c, Q, ALL, lateness=60.0),
    "snapshots": lambda store, c: store.snapshots(base.EraRow(c, Q, 0)),
    "asks": lambda store, c: list(islice(store.asks(base.EraRow(c, Q, 0), 8), 3)),
    "find_ask": lambda store, c: store.find_ask(base.EraRow(c, Q, 0), 5, ask_at(5, c).spec),
    "knows": lambda store, c: store.knows(c, AnswerName(Q, run=0, step=5, round=1, part=0)),
    "closed_asks": lambda store, c: store.closed_asks(c, Q, 5, 6),
    "counted": lambda store, c: store.counted(base.EraRow(c, Q, 0), 5),
    "release": lambda store, c: store.release(c, Q, 5),
    "releases": lambda store, c: (store.releases(c, Q, 5, 6, 5), store.releases(c, Q, 0, ALL, 5)),
}
"""A call of every query of a store. What is asked for is the same whatever the history."""
WITHOUT_HISTORY = {"meta", "collections", "counts", "webhooks", "reports"}
"""Tables that are read from end to end: rows of versions and outcomes, reports to asks that are open."""
GROW_ALL_THE_SAME = {"archive_names": "the files of reports are compared with the folder; retention bounds them"}


def everything(c: str, next_step: int) -> Iterator[tuple[str, StoreChanges]]:
    """Changes of every kind, each alone: those of a new step, and the deletion of the steps before step 2."""
    ask = ask_at(next_step, c)._replace(final=False, forgotten=False)
    era = base.EraRow(c, "study", ALL)
    changes = StoreChanges(
        collections=[base.CollectionRow(c, c, 1, "{}")],
        eras=[base.EraRow(c, Q, 0)],
        begun_runs=[era],
        ended_runs=[era],
        snapshots=[(base.SnapshotRow(c, Q, 0, next_step, "null"), next_step)],
        asks=[ask],
        id_pages=[base.IdPage(*ask.key, 0, 0, bytes(24))],
        reports=[(ask.key, 1, b"reports")],
        spot_checks=[(ask.key, b"onion")],
        sketches={ask.key: b"another"},
        shuffled=[base.ShuffledRow(*ask.key, b"digest", 1, 0, 0, 0)],
        archives=[base.ArchiveRow(*ask.key, "file", 1, "0" * 64)],
        finals=[ask.key],
        trimmed=[(ask.key, 1)],
        forgotten=[ask.key],
        counted=[base.CountRow(c, Q, 0, next_step, 0, ask.ask, "[]", 1, "[]")],
        releases=[base.ReleaseRow(c, Q, next_step, 0.0, "{}", "few")],
        alarm_states={(c, "watch"): "{}"},
        alarm_events=[base.AlarmEventRow(c, ALL, "{}")],
        delivered={("pager", c): 1},
        counts=Counter({(c, "accepted"): 1}),
        clock="{}",
        calling="[]",
        minute=7,
        passed_over=[PassedOver(c, Q, next_step, -2 * HOUR)],
        expired=[Expiry(c, Q, 2, lateness=60.0), Expiry(c, "study", 2), Expiry(c, "other", ALL, ended=True)],
    )
    for field, value in vars(changes).items():
        assert value, field
        yield field, StoreChanges(**{"minute": 7, field: value})


@contextmanager
def steps_of_sqlite(store: Store) -> Iterator[list[int]]:
    """Counts the steps that SQLite's machine does."""
    count = [0]

    def step() -> None:
        count[0] += 1

    assert isinstance(store, SqliteStore)
    connections = {store._writer, store._reader}
    for connection in connections:
        connection.set_progress_handler(step, 1)
    yield count
    for connection in connections:
        connection.set_progress_handler(None, 0)


def costs(store: Store, counting: Counting, collection: str, hours: int) -> dict[str, int]:
    """What every query and every change costs, over some hours of history of a collection."""
    counted = {}
    for name, read in READS.items():
        with counting(store) as count:
            read(store, collection)
        counted[name] = count[0]
    for name, changes in everything(collection, hours):
        with counting(store) as count:
            store.commit(changes)
        counted[f"commit {name}"] = count[0]
    return counted


def growing(few: dict[str, int], many: dict[str, int]) -> dict[str, tuple[int, int]]:
    """What costs more than `MOST` times as much."""
    return {name: (few[name], many[name]) for name in few if many[name] > MOST * few[name]}


def over_history(hours: int) -> dict[str, int]:
    store = SqliteStore(":memory:")
    store.commit(history(0, hours))
    return costs(store, steps_of_sqlite, C, hours)


def test_no_query_and_no_change_reads_more_where_there_is_more_history():
    kinds = (ProtocolReader, ReportReader, StatusReader)
    public = {name for kind in kinds for name, _ in getmembers(kind, isfunction) if not name.startswith("_")}
    assert public == READS.keys() | GROW_ALL_THE_SAME.keys()
    assert {name for name, _ in everything(C, 9)} == {field.name for field in fields(StoreChanges)}
    assert growing(over_history(300), over_history(1500)) == {}


_FILLED = """
INSERT INTO releases SELECT '{c}', 'q', step, 0, '{{}}', NULL, 0, 0 FROM generate_series(0, {last}) AS step;
INSERT INTO alarm_events SELECT '{c}', step + 1, '{{}}', 0 FROM generate_series(0, {last}) AS step;
INSERT INTO eras SELECT '{c}', 'study', step, 1, 0 FROM generate_series(0, {last}) AS step;
INSERT INTO eras VALUES ('{c}', 'q', 0, 1, 0);
INSERT INTO asks SELECT '{c}', '{c}-q-' || step, 'q', 0, step, 1, 0, '{{"step": ' || step || '}}', 3600.0 * step,
    3600.0 * (step + 1), 1, 1, 0 FROM generate_series(0, {last}) AS step;
INSERT INTO sketches SELECT '{c}', '{c}-q-' || step, 'sketch', 0 FROM generate_series(0, {last}) AS step;
INSERT INTO candidate_counts SELECT '{c}', 'q', 0, step, 0, '{c}-q-' || step, '[]', 1, '[]', 0
    FROM generate_series(0, {last}) AS step;
INSERT INTO archives SELECT '{c}', '{c}-q-' || step, 'file', 1, '', 0 FROM generate_series(0, {last}) AS step;
INSERT INTO shuffled_batches SELECT '{c}', '{c}-q-' || step, 'digest', 1, 0, 0, 0, 0, 0, 0
    FROM generate_series(0, {last}) AS step;
INSERT INTO id_pages SELECT '{c}', '{c}-q-' || step, 0, 0, 'ids', 0 FROM generate_series(0, {last}) AS step;
ANALYZE;
"""


@contextmanager
def blocks_of_postgresql(store: Store) -> Iterator[list[int]]:
    """Counts the blocks that PostgreSQL reads. It must read no table with history from end to end."""
    count, run = [0], store._write

    def explained(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(sql: str, *values: object) -> Any:
            run("SAVEPOINT before")
            ((plan,),) = run(f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {sql}", *values)
            run("ROLLBACK TO before")
            count[0] += plan[0]["Plan"]["Shared Hit Blocks"] + plan[0]["Plan"]["Shared Read Blocks"]
            scanned = set(re.findall(r'"Seq Scan", [^{}]*"Relation Name": "(\w+)"', json.dumps(plan)))
            assert scanned <= WITHOUT_HISTORY, (sql, scanned)
            return method(sql, *values)

        return call

    reads, changed = store._read, store._changed
    with store._transaction(), pytest.MonkeyPatch.context() as patched:
        patched.setattr(store, "_read", explained(run))
        patched.setattr(store, "_write", explained(run))
        patched.setattr(store, "_changed", explained(changed))
        yield count
    assert store._read == reads


def test_nor_in_postgresql(postgres: Callable[[], str], monkeypatch: pytest.MonkeyPatch):
    url, other = postgres(), "d" * 32
    for module in (checksums, sql):
        monkeypatch.setattr(module, "row_checksum", lambda *values: 0)  # as the rows were filled in
    store = PostgresStore(url)
    with connect(url) as database:
        for collection, hours in ((C, 1500), (other, 6000)):
            for statement in _FILLED.format(c=collection, last=hours - 1).split(";\n")[:-1]:
                database.execute(statement.encode())
    for other_way in ("seqscan", "hashjoin", "mergejoin"):  # tables of this size it would rather read whole
        run_in(store, f"SET enable_{other_way} = off")
    few = costs(store, blocks_of_postgresql, C, 1500)
    many = costs(store, blocks_of_postgresql, other, 6000)
    store.close()
    assert growing({name: blocks + 2 for name, blocks in few.items()}, many) == {}


# -- the collector ---------------------------------------------------------------------------------------------


def hourly() -> Collection:
    return replace(exact_collection(step=3600, lateness=60), retention_days=36525)


def worked(hours: int) -> dict[str, int]:
    """The steps of SQLite for what a collector does, after some hours."""
    world, counted = World(hourly(), NOW * HOUR), {}
    place = {"collection": world.collection.collection_id, "question": "all"}
    world.store.commit(history(NOW - hours, NOW, **place, files=24))
    service = Service(world.collector)
    reader = Reader(service)
    todo: dict[str, Callable[[], object]] = {
        "the step": lambda: world.wait(HOUR),
        "the release": lambda: world.wait(60.0),
        "the deletion of ids": lambda: world.wait(MARGIN),
        "retention": lambda: world.wait(SWEEP),
        "nothing": lambda: world.wait(1.0),
        "metrics": lambda: metrics_text(service),
        "the page of results": lambda: results_page(reader, world.collection),
        "the page of a question": lambda: question_page(reader, world.collection, "all"),
    }
    for name, do in todo.items():
        with steps_of_sqlite(world.store) as count:
            do()
        counted[name] = count[0]
    return counted


def test_a_tick_a_page_and_the_metrics_read_no_more_after_years():
    assert growing(worked(300), worked(1500)) == {}


def many_questions(questions: int, collections: int = 1, version: int = 1) -> list[Collection]:
    """Collections with some questions each, each about a field of its own."""
    return [
        load_collection(
            collection_text(
                f"many{number}",
                version=version,
                schedule={"step": "1h", "lateness": "1m", "retention": "1d"},
                fields={f"f{place}": THEME for place in range(questions)},
                questions={
                    f"q{place}": {"kind": "histogram", "field": f"f{place}", "epsilon": 0.01, "mechanism": "GRR"}
                    for place in range(questions)
                },
                privacy={"event": 2.0, "minimum_batch": 20},
            )
        )
        for number in range(collections)
    ]


class Calls:
    """Counts calls of functions, and the characters that are read from a store."""

    def __init__(self) -> None:
        self.counted: dict[str, int] = {}

    @contextmanager
    def of(self, name: str, store: Store) -> Iterator[None]:
        calls, read = 0, store._read

        def called(frame: object, event: str, argument: object) -> None:
            nonlocal calls
            calls += event in {"call", "c_call"}

        def measured(sql: str, *values: object) -> list[Any]:
            rows = read(sql, *values)
            self.counted[f"{name}: characters"] += sum(
                len(text) for row in rows for text in row if isinstance(text, str)
            )
            return rows

        self.counted[f"{name}: characters"] = 1000
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(store, "_read", measured)
            gc.collect()
            gc.disable()  # what others left would be counted
            sys.setprofile(called)
            try:
                yield
            finally:
                sys.setprofile(None)
                gc.enable()
        self.counted[name] = calls


def lived(questions: int, collections: int = 1) -> dict[str, int]:
    """How much is called and read in the life of a collector of some questions."""
    served, clock, store, calls = (
        many_questions(questions, collections),
        ManualClock(NOW * HOUR),
        SqliteStore(":memory:"),
        Calls(),
    )

    def start(of: list[Collection]) -> Collector:
        return Collector(of, store, clock=clock, keys=KEYS)

    def at(hours: float) -> None:
        clock.set((NOW + hours) * HOUR)
        collector.tick()

    with calls.of("start", store):
        collector = start(served)
    for name, hours in (("step", 1.0), ("release", 1.02), ("ids", 1.04), ("idle", 1.05)):
        with calls.of(name, store):
            at(hours)
    at(26.0)
    with calls.of("retention", store):
        at(27.0)
    for name, new in (("start again", served), ("start of a new version", many_questions(questions, collections, 2))):
        with calls.of(name, store):
            collector = start(new)
    with calls.of("start after the next version", store):
        collector = start(new)
    service = Service(collector)
    reader = Reader(service)
    with calls.of("metrics", store):
        metrics_text(service)
    with calls.of("page", store):
        for collection in new:
            results_page(reader, collection)
    with calls.of("room", store):
        for ask in collector.board.asks.values():
            collector.board.room(ask)
    return calls.counted


def faster_than_linear(lives: Sequence[dict[str, int]]) -> dict[str, tuple[int, ...]]:
    """What grew more from the second life to the third than from the first to the second, which are as far apart.

    What is read has numbers in it that get longer, and a question may be called some times more than another.
    """
    numbers = {name: tuple(life[name] for life in lives) for name in lives[0]}
    return {
        name: (a, b, c)
        for name, (a, b, c) in numbers.items()
        if c - b > (b - a) * (1.02 if "characters" in name else 1.01) + 16
    }


@pytest.mark.parametrize("questions", [(4, 8, 12), pytest.param((10, 40, 70), marks=pytest.mark.slow)], ids=str)
def test_what_the_collector_does_is_in_proportion_to_its_questions(questions: tuple[int, ...]):
    lived(2)  # what is done once in a process
    assert faster_than_linear([lived(number) for number in questions]) == {}


def test_and_to_its_collections():
    lived(1, 2)
    assert faster_than_linear([lived(1, collections) for collections in (2, 5, 8)]) == {}


def test_what_is_asked_is_signed_once_and_not_because_time_passes_or_another_collection_is_due():
    daily, often = (replace(many_questions(1, 2)[place], step_seconds=step) for place, step in ((0, 86400), (1, 600)))
    clock = ManualClock(NOW * HOUR)
    collector = Collector([daily, often], SqliteStore(":memory:"), clock=clock, keys=KEYS)
    signed = collector.asks[daily.name]
    for minute in range(1, 59):
        clock.set(NOW * HOUR + 60.0 * minute)
        collector.tick()
    assert collector.asks[daily.name] is signed
    assert signed.until == NOW * HOUR + 86400
