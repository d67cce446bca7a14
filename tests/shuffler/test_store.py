"""The store of a shuffler: formats so far, one holder, and nothing left of what is deleted."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from pathlib import Path

import pytest

from hubbub.collection.names import AnswerName
from hubbub.core.errors import InvalidValue
from hubbub.core.migrations import UnknownFormat
from hubbub.shuffler.store import ShufflerStore

GOLDEN = Path(__file__).parents[1] / "golden"
NAME, ANSWER = "survey:1:popular:0:7:1:0", AnswerName("popular", 0, 7, 1, 0)


@pytest.mark.parametrize("folder", sorted(GOLDEN.glob("shuffler-*")), ids=lambda path: path.name)
def test_every_format_is_read(tmp_path: Path, folder: Path) -> None:
    shutil.copy(folder / "shuffler.db", tmp_path)
    expected = json.loads((folder / "expected.json").read_text())
    store = ShufflerStore(tmp_path / "shuffler.db")
    rows = [[row.name, row.state, row.note, (store.outgoing(row.name) or b"").hex()] for row in store.batches()]
    assert rows == expected["batches"]
    assert [onion.hex() for onion in store.onions(NAME)] == expected["onions"]
    assert store.counts() == expected["counts"]
    store.close()


def test_a_newer_format_is_left_alone(tmp_path: Path) -> None:
    ShufflerStore(tmp_path / "a.db").close()
    with sqlite3.connect(tmp_path / "a.db") as database:
        database.execute("UPDATE meta SET value = '99' WHERE key = 'version'")
    database.close()
    with pytest.raises(UnknownFormat):
        ShufflerStore(tmp_path / "a.db")


def test_one_program_holds_it(tmp_path: Path) -> None:
    store = ShufflerStore(tmp_path / "a.db")
    with pytest.raises(InvalidValue, match=r"no other program holds.*locked"):
        ShufflerStore(tmp_path / "a.db", timeout=0.0)
    store.close()


def test_nothing_is_left_of_reports_that_were_handed_on(tmp_path: Path) -> None:
    """Neither in the file nor in its log: what is deleted is overwritten."""
    path, onion = tmp_path / "a.db", b"a report that nobody should find" * 20
    store = ShufflerStore(path)
    with store.transaction():
        store.begin(NAME, 1, ANSWER, 28800.0)
        store.add(NAME, b"i" * 16, onion)

    def rows() -> bool:
        return any(b"nobody should find" in file.read_bytes() for file in tmp_path.iterdir())

    assert rows()
    store.end(NAME, "handed", "")
    assert not rows()
    assert store.known(NAME, b"i" * 16) is not None  # a retry is still known
    store.forget([NAME])
    assert store.known(NAME, b"i" * 16) is None
    store.close()


def test_only_its_owner_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    store = ShufflerStore(path)
    with store.transaction():
        store.begin(NAME, 1, ANSWER, 28800.0)
    assert {oct(file.stat().st_mode & 0o777) for file in tmp_path.iterdir()} == {"0o600"}
    store.close()


def test_a_file_that_is_damaged_or_no_store_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("a.db")  # errors shorten a long name
    store = ShufflerStore(path)
    with store.transaction():
        store.begin(NAME, 1, ANSWER, 28800.0, random.Random(1).randbytes(50_000))
    store.close()
    content = path.read_bytes()
    # But for the last page, which has the end of the batch: reports are sealed, and a changed one counts as unreadable.
    pages = [content[:at] + bytes(4096) + content[at + 4096 :] for at in range(0, len(content) - 4096, 4096)]
    for damaged in (*pages, content[:-4096], b"no database" * 1000):
        path.write_bytes(damaged)
        with pytest.raises(InvalidValue, match=r"store: got .*a\.db.*(damaged|malformed|not a database)"):
            ShufflerStore(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(InvalidValue, match=r"store: got .*a\.db"):
        ShufflerStore(path)
