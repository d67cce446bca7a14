"""Numbered migrations: each version from the one before, all in one transaction; newer versions are left unchanged."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from hubbub.core.errors import InvalidValue, SpecMismatch
from hubbub.core.migrations import Format, Run, UnknownFormat
from hubbub.ledger.file import LedgerFile, LedgerUnavailable

FIRST = Format("version", 1)
TERMS = {"collection": "demo"}


def told(run: Run) -> None:
    run("UPDATE numbers SET told = number * 10")


THIRD = Format("version", 3, {1: ("ALTER TABLE numbers ADD COLUMN told INTEGER",), 2: told})
TABLES = ("CREATE TABLE numbers (number INTEGER)",)
PRESENT = ("CREATE TABLE numbers (number INTEGER, told INTEGER)",)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of version 1, with two rows."""
    file = LedgerFile(tmp_path / "file", TERMS, TABLES, FIRST)
    with file.transaction():
        for number in (7, 9):
            file.run("INSERT INTO numbers VALUES (?)", number)
    file.close()
    return tmp_path / "file"


def dump(path: Path) -> list[str]:
    database = sqlite3.connect(path)
    lines = list(database.iterdump())
    database.close()
    return lines


def rows(path: Path, terms: dict[str, Any], format: Format) -> list[Any]:
    file = LedgerFile(path, terms, PRESENT, format)
    try:
        return file.run("SELECT * FROM numbers")
    finally:
        file.close()


def test_every_step_is_run_in_order_and_once(path: Path) -> None:
    assert rows(path, TERMS, THIRD) == [(7, 70), (9, 90)]
    after = dump(path)
    assert any('"version":3' in line for line in after)
    assert rows(path, TERMS, THIRD) == [(7, 70), (9, 90)]
    assert dump(path) == after


def test_a_new_file_is_made_in_the_present_format(tmp_path: Path) -> None:
    assert rows(tmp_path / "new", TERMS, THIRD) == []


def test_a_migration_that_fails_changes_nothing(path: Path) -> None:
    before = dump(path)

    def fails(run: Run) -> None:
        run("DELETE FROM numbers")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        LedgerFile(path, TERMS, PRESENT, Format("version", 3, {1: THIRD.migrations[1], 2: fails}))
    with pytest.raises(LedgerUnavailable, match="no such table"):
        LedgerFile(path, TERMS, PRESENT, Format("version", 3, {1: THIRD.migrations[1], 2: ("DELETE FROM missing",)}))
    assert dump(path) == before
    assert rows(path, TERMS, THIRD) == [(7, 70), (9, 90)]


def test_other_terms_are_refused_and_nothing_is_migrated(path: Path) -> None:
    before = dump(path)
    with pytest.raises(SpecMismatch, match="collection"):
        LedgerFile(path, {"collection": "other"}, PRESENT, THIRD)
    assert dump(path) == before


def test_a_migration_may_change_the_terms(path: Path) -> None:
    def renamed(run: Run) -> None:
        run("UPDATE terms SET terms = ?", '{"name": "demo", "version": 1}')

    format = Format("version", 2, {1: renamed})
    assert rows(path, {"name": "demo"}, format) == [(7,), (9,)]
    assert rows(path, {"name": "demo"}, format) == [(7,), (9,)]


@pytest.mark.parametrize("version", [4, 0, None, "3", True, 2.0])
def test_what_cannot_be_read_is_refused_and_left_as_it_is(path: Path, version: object) -> None:
    ran: list[str] = []
    with pytest.raises(UnknownFormat, match=r"version: got .format "):
        THIRD.migrate(version, lambda sql, *values: ran.append(sql) or [])
    assert ran == []
    database = sqlite3.connect(path)
    database.execute("UPDATE terms SET terms = ?", [json.dumps({"collection": "demo", "version": version})])
    database.commit()
    database.close()
    before = dump(path)
    with pytest.raises(LedgerUnavailable, match=r"got .format "):
        LedgerFile(path, TERMS, PRESENT, THIRD)
    assert dump(path) == before


@pytest.mark.parametrize("numbers", [{1}, {1, 3}, {2, 3}, {1, 2, 3}])
def test_no_version_may_be_left_out(numbers: set[int]) -> None:
    with pytest.raises(InvalidValue, match="migrations"):
        Format("version", 3, dict.fromkeys(numbers, ()))
