"""The tables that only a store of several processes has, and how they become those of a store of one process."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from hubbub.core.reports import Sketch
from hubbub.service.store import report_ids
from hubbub.service.store.base import AskKey, StoreFailed
from hubbub.service.store.checksums import changed, row_checksum
from hubbub.service.store.report_ids import Ids
from hubbub.service.store.sql import OWNER

JOINT = "several processes "
"""How the name of the owner begins where several processes use a store."""
JOINT_LOCK = 0x687562627562
"""The lock of the database: shared by the transactions of all processes, held alone by who takes the store over."""

Run = Callable[..., list[Any]]
"""Runs one statement in a transaction. Returns its rows."""

JOINT_TABLES = (
    # Locked for every group of requests: rows are rewritten in place where their page has room.
    """CREATE TABLE IF NOT EXISTS ask_shards (
        collection TEXT NOT NULL, ask TEXT NOT NULL, shard INTEGER NOT NULL, shards INTEGER NOT NULL,
        closed INTEGER NOT NULL DEFAULT 0, version BIGINT NOT NULL DEFAULT 0, PRIMARY KEY (collection, ask, shard)
    ) WITH (fillfactor = 50)""",
    """CREATE TABLE IF NOT EXISTS shard_sketches (
        collection TEXT NOT NULL, ask TEXT NOT NULL, worker TEXT NOT NULL, data BYTEA NOT NULL,
        checksum BIGINT NOT NULL, PRIMARY KEY (collection, ask, worker)
    )""",
    """CREATE TABLE IF NOT EXISTS worker_counts (
        worker TEXT NOT NULL, collection TEXT NOT NULL, outcome TEXT NOT NULL, count BIGINT NOT NULL,
        PRIMARY KEY (worker, collection, outcome)
    ) WITH (fillfactor = 50)""",
    """CREATE TABLE IF NOT EXISTS worker_rates (
        worker TEXT NOT NULL, collection TEXT NOT NULL, minute BIGINT NOT NULL, accepted BIGINT NOT NULL,
        rejected BIGINT NOT NULL, PRIMARY KEY (worker, collection, minute)
    ) WITH (fillfactor = 50)""",
    "CREATE TABLE IF NOT EXISTS workers (worker TEXT PRIMARY KEY, seen TIMESTAMPTZ NOT NULL)",
    """CREATE TABLE IF NOT EXISTS leader (
        number INTEGER PRIMARY KEY, epoch BIGINT NOT NULL, worker TEXT NOT NULL, until TIMESTAMPTZ NOT NULL,
        news BIGINT NOT NULL, expected TEXT NOT NULL
    )""",
    "INSERT INTO leader VALUES (1, 0, '', clock_timestamp(), 0, '[]') ON CONFLICT (number) DO NOTHING",
    "CREATE TABLE IF NOT EXISTS news (number BIGINT PRIMARY KEY, told TEXT NOT NULL)",
)
JOINT_COPIED = {
    "ask_shards": ("collection", "ask", "shard", "shards"),
    "shard_sketches": ("collection", "ask", "worker", "data", "checksum"),
    "worker_counts": ("worker", "collection", "outcome", "count"),
    "worker_rates": ("worker", "collection", "minute", "accepted", "rejected"),
}
"""The tables without which a backup would lose reports, and their columns that it needs."""


def owner_of(run: Run) -> str:
    """The owner of a store; empty if it has none yet."""
    rows = run(OWNER)
    return str(rows[0][0]) if rows else ""


def add_up(run: Run, keys: Iterable[AskKey]) -> None:
    """Add what each process counted to the sketches of some asks, and delete it."""
    for key in keys:
        place = "FROM shard_sketches WHERE collection = ? AND ask = ?"
        rows = [
            (worker, bytes(data), checksum)
            for worker, data, checksum in run(f"SELECT worker, data, checksum {place}", *key)
        ]
        if any(row_checksum(*key, worker, data) != checksum for worker, data, checksum in rows):
            raise changed("shard_sketches")
        if not rows:
            continue
        ((stored, checksum),) = run("SELECT data, checksum FROM sketches WHERE collection = ? AND ask = ?", *key)
        if row_checksum(*key, stored) != checksum:
            raise changed("sketches")
        total = Sketch.from_bytes(bytes(stored))
        for _, data, _ in rows:
            total += Sketch.from_bytes(data)
        summed = total.to_bytes()
        update = "UPDATE sketches SET data = ?, checksum = ? WHERE collection = ? AND ask = ?"
        run(update, summed, row_checksum(*key, summed), *key)
        run(f"DELETE {place}", *key)


def fold_counts(run: Run) -> None:
    """Add the numbers of reports that each process counted to the common ones, and delete them."""
    totals = run("SELECT collection, outcome, SUM(count) FROM worker_counts GROUP BY collection, outcome")
    for collection, outcome, count in totals:
        run(_ADD_COUNT, collection, outcome, int(count))
    rates = run("SELECT collection, minute, SUM(accepted), SUM(rejected) FROM worker_rates GROUP BY collection, minute")
    for collection, minute, accepted, rejected in rates:
        run(_ADD_RATE, collection, minute, int(accepted), int(rejected))
    run("DELETE FROM worker_counts")
    run("DELETE FROM worker_rates")


def leave_to_one(run: Run) -> None:
    """Turn a store of several processes into one of a single process."""
    rows = run("SELECT collection, ask, MAX(shards) FROM ask_shards GROUP BY collection, ask")
    sharded = {AskKey(collection, ask): int(shards) for collection, ask, shards in rows}
    add_up(run, sorted(sharded))
    for key, shards in sharded.items():
        if shards > 1:
            _in_one_shard(run, key)
    fold_counts(run)
    run("DELETE FROM ask_shards")


def _in_one_shard(run: Run, key: AskKey) -> None:
    """Number the pages of ids of an ask as one process does, all full but the last."""
    parts = run("SELECT ids FROM id_pages WHERE collection = ? AND ask = ? ORDER BY page, part", *key)
    ids = Ids.concat(Ids.from_bytes(bytes(part)) for (part,) in parts)
    run("DELETE FROM id_pages WHERE collection = ? AND ask = ?", *key)
    if len(np.unique(np.stack([ids.a, ids.b]), axis=1).T) != len(ids):
        raise StoreFailed("the store holds an id twice")
    for page, at in enumerate(range(0, len(ids), report_ids.PAGE)):
        data = ids.take(slice(at, at + report_ids.PAGE)).to_bytes()
        row = (*key, page, 0, data)
        run(
            "INSERT INTO id_pages (collection, ask, page, part, ids, checksum) VALUES (?, ?, ?, ?, ?, ?)",
            *row,
            row_checksum(*row),
        )


_ADD_COUNT = """INSERT INTO counts VALUES (?, ?, ?)
    ON CONFLICT (collection, outcome) DO UPDATE SET count = counts.count + excluded.count"""
_ADD_RATE = """INSERT INTO rates VALUES (?, ?, ?, ?) ON CONFLICT (collection, minute)
    DO UPDATE SET accepted = rates.accepted + excluded.accepted, rejected = rates.rejected + excluded.rejected"""
