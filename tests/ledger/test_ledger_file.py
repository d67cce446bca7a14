"""Parts of a transaction: what is undone when one of them fails, and what a process that was forked leaves alone."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hubbub.core.migrations import Format
from hubbub.ledger.file import LedgerFile, LedgerUnavailable


@pytest.fixture
def file(tmp_path: Path) -> Iterator[LedgerFile]:
    file = LedgerFile(tmp_path / "file", {}, ("CREATE TABLE numbers (number INTEGER)",), Format("version", 1))
    yield file
    file.close()


def fail_in_a_part(file: LedgerFile, statement: str) -> None:
    with file.savepoint():
        file.run(statement)
        raise LedgerUnavailable("the disk is full")


def test_a_part_that_fails_is_undone_and_the_rest_stands(file: LedgerFile) -> None:
    with file.transaction():
        file.run("INSERT INTO numbers VALUES (1)")
        with pytest.raises(LedgerUnavailable):
            fail_in_a_part(file, "INSERT INTO numbers VALUES (2)")
        with file.savepoint():
            file.run("INSERT INTO numbers VALUES (3)")
    assert file.run("SELECT number FROM numbers") == [(1,), (3,)]


def test_where_sqlite_ends_the_transaction_the_error_stays_what_it_was(file: LedgerFile) -> None:
    with pytest.raises(LedgerUnavailable, match="the disk is full"), file.transaction():
        fail_in_a_part(file, "ROLLBACK")  # as SQLite does by itself if a disk is full
    with file.transaction(), file.savepoint():
        file.run("INSERT INTO numbers VALUES (2)")
    assert file.run("SELECT number FROM numbers") == [(2,)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_a_forked_child_that_closes_it_takes_nothing_back(file: LedgerFile, tmp_path: Path) -> None:
    with file.transaction():
        file.run("INSERT INTO numbers VALUES (7)")
        assert (tmp_path / "file-journal").exists()
        child = os.fork()
        if child == 0:
            try:
                file.close()
            finally:
                os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert (tmp_path / "file-journal").exists(), "without it a crash now would leave half of this"
    assert file.run("SELECT number FROM numbers") == [(7,)]
