"""The migration of a client's folder from format 3 to 4: its ledgers become tables of the one database.

Format 3 had a ledger file for asks and one for memos, for every version of the collection.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from hubbub.client.folder import old_ledgers
from hubbub.client.migration_4_to_5 import TABLES_4
from hubbub.client.store import STATES
from hubbub.collection.document import Collection
from hubbub.collection.spending import promises_of
from hubbub.collection.terms import ASKS
from hubbub.core.errors import HubbubError
from hubbub.core.migrations import Run
from hubbub.core.spec import canonical
from hubbub.ledger.book import ANY, TABLES
from hubbub.ledger.clock import TICKS, Observation
from hubbub.ledger.file import LedgerUnavailable
from hubbub.ledger.promise import Budget, Promise, Window

__all__ = ["from_3"]

_OLD = ("versions", "recorded", "enrolled", "memos", "following", "asks", "queue", "cover")


class Grid(NamedTuple):
    """The steps of a ledger file: step t begins at origin + t interval."""

    interval: int
    origin: int


def _grid_of(clock: dict[str, Any]) -> Grid:
    """The grid of a clock, as the terms of a ledger have it."""
    return Grid(int(clock.get("interval", 1)), int(clock.get("origin", 0)))


def _last_tick(grid: Grid, step: int) -> int:
    """The last moment of a step: where only the step of a debit is known, the debit is dated there."""
    return grid.origin + (step + 1) * grid.interval - 1


class OldLedger(NamedTuple):
    """One ledger file of format 3: its limits and grid, the last reading of its clock, and its rows."""

    budget: Budget
    grid: Grid
    lifetime: int
    latest: int
    observation: Observation | None
    debits: list[tuple[int, int, int]]  # step, spent, trusted
    entries: list[tuple[str, int, int, bytes | None]]  # name, step, spent, report


def from_3(run: Run, *, folder: Path, now: float) -> None:
    """Carry all debits, promises, memos and streams over into one file.

    Debits keep their age in their own ledger's trusted time. Format 3 did not store which question a debit was for: it
    counts toward every question. Waiting reports are dropped: servers no longer accept their names.
    """
    from hubbub.client.store import _TABLES

    ledgers = {key: _read(path) for key, path in old_ledgers(folder).items()}
    collection, in_force = _collection(run), _in_force(run)
    _refuse_lost(collection, in_force, ledgers, folder)
    old = {table: run(f"SELECT * FROM {table}") for table in _OLD}  # noqa: S608 - names of our own
    for table in _OLD:
        run(f"DROP TABLE {table}")
    existing = {name for (name,) in run("SELECT name FROM sqlite_master WHERE type = 'table'")}
    for statement in (*TABLES_4, *_TABLES, *TABLES):
        if statement.split()[2] not in existing and statement != STATES:
            run(statement)
    _carry_spending(run, ledgers, {version: int(spent) for version, spent, _ in old["versions"]}, collection, now)
    _carry_promises(run, ledgers, [int(limit) for _, _, limit in old["versions"] if limit is not None], collection)
    _carry_state(run, old, ledgers, collection)
    waiting = sum(row[-1] is not None for row in old["queue"])
    newest = max((version for _, version in ledgers), default=0)
    asks = ledgers.get(("asks", newest))
    waiting += sum(
        report is not None and not name.startswith("stream:") for name, *_, report in (asks.entries if asks else [])
    )
    if waiting:
        run(
            "INSERT INTO counters VALUES ('outdated', ?) "
            "ON CONFLICT (name) DO UPDATE SET count = count + excluded.count",
            waiting,
        )
    run("DELETE FROM documents WHERE name <> 'collection'")
    if in_force is not None:
        text = json.dumps([in_force, "" if collection is None else collection.collection_id])
        run("INSERT OR REPLACE INTO device VALUES ('in force', ?)", text.encode())


def _read(path: Path) -> OldLedger:
    try:
        database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=30.0)
        try:
            ((text,),) = database.execute("SELECT terms FROM terms")
            terms = json.loads(text)
            if terms["version"] != 1:
                raise LedgerUnavailable(
                    f"{path}: format {terms['version']}: a newer one wrote it, and is needed to read it"
                )
            account = "SELECT lifetime, latest, step, wall, monotonic, trusted FROM account"
            ((lifetime, latest, *reading),) = database.execute(account)
            return OldLedger(
                Budget.from_spec(terms["budget"]),
                _grid_of(terms["clock"]),
                int(lifetime),
                latest,
                None if reading[0] is None else Observation(*reading),
                list(database.execute("SELECT step, spent, trusted FROM debits")),
                list(database.execute("SELECT ask_id, step, spent, report FROM entries")),
            )
        finally:
            database.close()
    except (sqlite3.Error, ValueError, KeyError, TypeError) as error:
        raise LedgerUnavailable(f"{path}: {error}") from error


def _collection(run: Run) -> Collection | None:
    """The stored collection, whose signature was checked before it was stored."""
    rows = run("SELECT body FROM documents WHERE name = 'collection'")
    try:
        return Collection.from_spec(json.loads(json.loads(rows[0][0])["payload"])) if rows else None
    except (HubbubError, ValueError, KeyError, TypeError):
        return None


def _in_force(run: Run) -> int | None:
    rows = run("SELECT value FROM device WHERE name = 'in force'")
    return int(json.loads(rows[0][0])[0]) if rows else None


def _refuse_lost(
    collection: Collection | None, in_force: int | None, ledgers: dict[Any, OldLedger], folder: Path
) -> None:
    """Refuse a folder in which a ledger file is missing: an empty one in its place would forget what was spent."""
    if in_force is None:
        return
    spent = sum(ledger.lifetime for ledger in ledgers.values())
    user = None if collection is None else collection.budget.user
    exhausted = user is not None and spent >= user  # then no ledger file was made
    kinds = (
        {"asks"}
        if collection is None
        else {"asks" if terms.account == ASKS else "memos" for terms in collection.terms.values()}
    )
    for kind in sorted(kinds):
        if (kind, in_force) not in ledgers and not exhausted:
            raise LedgerUnavailable(f"{folder / f'{kind}-{in_force}.sqlite'} is missing, and was there before")


def _carry_spending(
    run: Run,
    ledgers: dict[tuple[str, int], OldLedger],
    retired: dict[int, int],
    collection: Collection | None,
    now: float,
) -> None:
    readings = [(version, ledger.observation) for (_, version), ledger in ledgers.items() if ledger.observation]
    newest = max(readings, key=itemgetter(0))[1] if readings else None
    trusted = 0 if newest is None else newest.trusted
    answered_at = [
        ledger.grid.origin + ledger.latest * ledger.grid.interval for ledger in ledgers.values() if ledger.latest >= 0
    ]
    run(
        "UPDATE times SET latest = ?, step = ?, wall = ?, monotonic = ?, trusted = ?",
        *(max(answered_at, default=None), *(newest or (None,) * 4)),
    )
    totals: dict[tuple[str, str], int] = {}

    def debit(account: str, question: str, spent: int, wall: int, trusted_at: int) -> None:
        run(
            "INSERT INTO debits (account, question, spent, wall, trusted) VALUES (?, ?, ?, ?, ?)",
            *(account, question, spent, wall, trusted_at),
        )

    def total(account: str, question: str, spent: int) -> None:
        totals[account, question] = totals.get((account, question), 0) + spent

    for (kind, _), ledger in ledgers.items():
        reading = ledger.observation
        trusted_at = {step: trusted - (reading.trusted - at if reading else 0) for step, _, at in ledger.debits}
        if kind == "asks":
            for step, spent, _ in ledger.debits:
                debit(ASKS, ANY, spent, _last_tick(ledger.grid, step), trusted_at[step])
            total(ASKS, ANY, ledger.lifetime)
            continue
        for name, step, spent, _ in ledger.entries:
            account, question = _memo_scope(name, collection)
            if step in trusted_at:
                debit(account, question, spent, _last_tick(ledger.grid, step), trusted_at[step])
            total(account, question, spent)
        total(ANY, ANY, ledger.lifetime - sum(entry[2] for entry in ledger.entries))
    with_ledger = {version for _, version in ledgers}
    for version, spent in retired.items():
        if version not in with_ledger and spent:
            debit(ANY, ANY, spent, int(now * TICKS), trusted)
            total(ANY, ANY, spent)
    for (account, question), spent in totals.items():
        if spent:
            run("INSERT INTO totals VALUES (?, ?, ?)", account, question, str(spent))


def _memo_scope(name: str, collection: Collection | None) -> tuple[str, str]:
    account = f"memo:{name.rpartition(':')[0]}"
    questions = {} if collection is None else {terms.account: name for name, terms in collection.terms.items()}
    return account, questions.get(account, ANY)


def _carry_promises(
    run: Run, ledgers: dict[tuple[str, int], OldLedger], life_limits: list[int], collection: Collection | None
) -> None:
    """Make promises of the limits of every version, divided among accounts as the version in force divides its own."""
    promises: list[Promise] = []
    if collection is not None:
        promises += [*collection.promises, *(own for terms in collection.terms.values() for own in terms.promises)]
    for version in sorted({version for _, version in ledgers}):
        both = [ledgers[kind, version] for kind in ("asks", "memos") if (kind, version) in ledgers]
        grid, budget = both[0].grid, _combined_budget(both)
        if budget is not None:
            promises += _divided(collection, budget, grid)
    promises += [
        promise for limit in life_limits for promise in _divided(collection, Budget(user=limit), Grid(TICKS, 0))
    ]
    needed: list[Promise] = []
    for promise in promises:
        if not any(earlier.implies(promise) for earlier in needed):
            needed = [earlier for earlier in needed if not promise.replaces(earlier)] + [promise]
    for promise in needed:
        text = canonical(promise.scaled(TICKS).spec())
        run("INSERT INTO promises (scope, promise) VALUES (?, ?)", promise.scope, text)


def _combined_budget(both: list[OldLedger]) -> Budget | None:
    """What the two ledgers of a version could spend together, in a step and in a window."""
    events = [ledger.budget.event for ledger in both if ledger.budget.event is not None]
    windows = [ledger.budget.window for ledger in both if ledger.budget.window is not None]
    if not events and not windows:
        return None
    window = Window(sum(window.limit for window in windows), windows[0].steps) if windows else None
    return Budget(event=sum(events) if events else None, window=window)


def _divided(collection: Collection | None, budget: Budget, grid: Grid) -> Iterator[Promise]:
    seconds = Grid(max(1, grid.interval // TICKS), grid.origin // TICKS)
    if collection is not None:
        yield from promises_of(replace(collection, budget=budget, step_seconds=seconds.interval, origin=seconds.origin))
        return
    if budget.event is not None:
        yield Promise(budget.event, 1, *seconds, parts={ASKS: budget.event})
    if budget.window is not None:
        yield Promise(*budget.window, *seconds, parts={ASKS: budget.window.limit})
    if budget.user is not None:
        yield Promise(budget.user, 0, parts={ASKS: budget.user})


def _carry_state(
    run: Run, old: dict[str, list[Any]], ledgers: dict[tuple[str, int], OldLedger], collection: Collection | None
) -> None:
    for account, public, current in old["enrolled"]:
        run("INSERT INTO enrolled VALUES (?, ?, ?)", f"memo:{account.rstrip(':')}", public, current)
    memos = dict(old["memos"])
    for (kind, _), ledger in ledgers.items():
        if kind == "memos":
            memos |= {name: report for name, _, _, report in ledger.entries if report is not None}
    for name, memo in memos.items():
        account, _, key = name.rpartition(":")
        run("INSERT INTO memos VALUES (?, ?, ?)", f"memo:{account}", int(key), memo)
    if collection is None:  # without the collection, the other rows cannot be interpreted
        return
    for field, step, code in old["recorded"]:
        run("INSERT INTO recorded VALUES (?, ?, ?)", field, float(collection.opens(step)), code)
    for name, state, enrolled, enrolment in old["following"]:
        _, question, horizon = name.split(":")
        terms = collection.terms.get(question)
        if terms is not None and terms.state and terms.account == ASKS:
            (spec_id,) = terms.mechanisms
            stream = json.dumps([int(horizon), spec_id, collection.step_seconds, collection.origin])
            # The report that enrols the device may be among the waiting ones, which are dropped.
            values = (state, enrolled if enrolment is None else 0, None)
            run("INSERT OR REPLACE INTO following VALUES (?, ?, ?, ?, ?)", question, stream, *values)
