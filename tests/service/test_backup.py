"""Backups of both stores: consistent, checked, restored only where nothing is, and what was there is there again."""

import json
import shutil
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hubbub.collection import ManualClock
from hubbub.service.backup import backups
from hubbub.service.backup.backups import check_backup, make_backup, restore_backup
from hubbub.service.backup.copy import MANIFEST, BackupFile, BackupRefused, Manifest, copy_file
from hubbub.service.collector.collector import Collector
from hubbub.service.kept.archive import Archive, ReportsMissing, sha256_of
from hubbub.service.store import open_store
from hubbub.service.store.base import StoreFailed
from hubbub.service.store.checksums import CHECKED, row_checksum
from tests.service.test_kept import CROWD, DAY, HOUR, WORDS, candidate_shares, fill, some_steps
from tests.shared.in_process import released, run_in, start_collector

Databases = Callable[[], str]


def opened(url: str, reports: Path, clock: ManualClock) -> Collector:
    return start_collector(WORDS, clock, open_store(url), archive=Archive(reports))


def filled(url: str, folder: Path, steps: int) -> tuple[Collector, ManualClock]:
    """A collector that has heard of some steps."""
    clock = ManualClock(10 * HOUR)
    collector = opened(url, folder / "reports", clock)
    some_steps(collector, clock, range(steps))
    return collector, clock


def told(collector: Collector) -> list[Any]:
    """All that can be asked of it."""
    releases = [released(collector, name) for name in WORDS.questions]
    candidates = [
        candidate_shares(collector, "words", ["maybe", "yes"]),
        candidate_shares(collector, "ages", ["7", "9"]),
    ]
    return [releases, candidates, collector.counts()]


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    in_postgres = request.param == "postgresql"
    return str(request.getfixturevalue("postgres")()) if in_postgres else f"sqlite:///{tmp_path / 'hubbub.db'}"


@pytest.mark.parametrize("target", ["sqlite", "postgresql"])
def test_what_was_there_is_there_again_in_either_store(store: str, target: str, tmp_path: Path, postgres: Databases):
    collector, clock = filled(store, tmp_path, 3)
    fill(collector, 3)  # an ask that is open: its reports are in the database
    before, now = told(collector), clock.now()
    manifest = make_backup(store, tmp_path / "reports", tmp_path / "backup")  # while it is at work
    assert len(manifest.reports) == 4
    some_steps(collector, clock, range(4, 6))
    collector.store.close()

    again = f"sqlite:///{tmp_path / 'elsewhere' / 'hubbub.db'}" if target == "sqlite" else postgres()
    restore_backup(tmp_path / "backup", again, tmp_path / "elsewhere" / "reports")
    clock = ManualClock(now)
    collector = opened(again, tmp_path / "elsewhere" / "reports", clock)
    assert told(collector) == before
    assert collector.missing == []
    assert not (tmp_path / "elsewhere" / "reports" / "set-aside").exists()
    # It goes on: ids of before are known, and what is new is counted.
    with pytest.raises(AssertionError):
        fill(collector, 3)
    some_steps(collector, clock, range(4, 6))
    assert candidate_shares(collector, "ages", ["7"])["n"] == 5 * CROWD
    collector.store.close()


def test_everything_in_it_is_for_its_owner_alone(store: str, tmp_path: Path):
    collector, _ = filled(store, tmp_path, 2)
    make_backup(store, tmp_path / "reports", tmp_path / "backup")
    collector.store.close()
    again = tmp_path / "again"
    again.mkdir()
    restore_backup(tmp_path / "backup", f"sqlite:///{again / 'hubbub.db'}", again / "reports")
    for path in [tmp_path / "backup", again / "reports", *(tmp_path / "backup").rglob("*"), *again.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    assert sorted(path.name for path in again.iterdir()) == ["hubbub.db", "reports"]


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    """A backup with two files of reports."""
    url = f"sqlite:///{tmp_path / 'hubbub.db'}"
    collector, _ = filled(url, tmp_path, 2)
    collector.store.close()
    make_backup(url, tmp_path / "reports", tmp_path / "backup")
    return tmp_path / "backup"


def some_file(backup: Path) -> Path:
    return sorted((backup / "reports").iterdir())[0]


def again_manifest(backup: Path, **changes: Any) -> None:
    """The manifest, as someone would write it who does not know what a backup is."""
    known = Manifest.read(backup)
    files = [
        vars(BackupFile(file.name, (backup / file.name).stat().st_size, sha256_of(backup / file.name)))
        for file in known.files
        if (backup / file.name).exists()
    ]
    document = {"format": 1, "made": known.made, "hubbub": "0", "store": "sqlite", "files": files, **changes}
    (backup / MANIFEST).write_text(json.dumps(document))


def rewrite(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))


def flipped(content: bytes) -> bytes:
    """One bit is another."""
    place = len(content) // 3
    return content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :]


def flip_and_sign(backup: Path) -> None:
    """A file that was damaged before the backup was made, by a program that did not notice."""
    rewrite(some_file(backup), flipped)
    again_manifest(backup)


def flip_value(backup: Path) -> None:
    """A value inside of a row: to SQLite, nothing is wrong."""
    path = backup / "store.db"
    with closing(sqlite3.connect(path)) as database:
        ((data,),) = database.execute("SELECT data FROM sketches LIMIT 1")
    rewrite(path, lambda content: content.replace(data, flipped(data)))
    again_manifest(backup)


def flip_database(backup: Path) -> None:
    def spoilt(content: bytes) -> bytes:
        return bytes(byte ^ 0xFF if place >= 4096 and place % 512 == 0 else byte for place, byte in enumerate(content))

    rewrite(backup / "store.db", spoilt)
    again_manifest(backup)


def execute(backup: Path, *statements: str) -> None:
    """Change the database of a backup."""
    with closing(sqlite3.connect(backup / "store.db")) as database, database:
        database.create_function("row_checksum", -1, row_checksum)
        for statement in statements:
            database.execute(statement)
    again_manifest(backup)


OTHER_NAMES = (
    "UPDATE archives SET name = 'ages-99-' || substr(name, 9)",
    f"UPDATE archives SET checksum = row_checksum({', '.join(CHECKED['archives'])})",
)


def no_database(backup: Path) -> None:
    (backup / "store.db").write_bytes(b"")
    again_manifest(backup)


def lead_elsewhere(backup: Path) -> None:
    (backup.parent / "secret.parquet").write_bytes(b"")
    names = ["store.db", "reports/../../secret.parquet"]
    again_manifest(backup, files=[vars(BackupFile(name, 0, sha256_of(backup / name))) for name in names])


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "lost": (lambda backup: some_file(backup).unlink(), "damaged: 1 missing"),
    "cut": (lambda backup: rewrite(some_file(backup), lambda content: content[:-1]), "damaged: 1 of another size"),
    "flipped": (lambda backup: rewrite(some_file(backup), flipped), "damaged: 1 changed"),
    "flipped and signed": (flip_and_sign, "does not belong to these files"),
    "a flipped value": (flip_value, "a row of the table sketches has changed"),
    "a flipped database": (flip_database, "damaged|malformed|not a database"),
    "newer": (
        lambda backup: execute(backup, "UPDATE meta SET value = '99' WHERE key = 'version'"),
        "tables of version 99",
    ),
    "another database": (lambda backup: execute(backup, *OTHER_NAMES), "does not belong to these files"),
    "no database": (no_database, "no such table"),
    "leads elsewhere": (lead_elsewhere, "names files that no backup has"),
    "a later format": (lambda backup: again_manifest(backup, format=2), "of format 2"),
    "unfinished": (lambda backup: (backup / MANIFEST).unlink(), "not a backup, or one that was not finished"),
    "half a manifest": (lambda backup: rewrite(backup / MANIFEST, lambda content: content[:50]), "cannot be read"),
}


@pytest.mark.parametrize(("damage", "words"), DAMAGE.values(), ids=DAMAGE)
def test_a_backup_that_is_not_whole_is_refused_and_nothing_is_made(
    backup: Path, tmp_path: Path, damage: Callable[[Path], object], words: str
):
    damage(backup)
    target = tmp_path / "target"
    target.mkdir()
    with pytest.raises(BackupRefused, match=words):
        check_backup(backup)
    with pytest.raises(BackupRefused, match=words):
        restore_backup(backup, f"sqlite:///{target / 'hubbub.db'}", target / "reports")
    assert list(target.iterdir()) == []


def test_what_is_damaged_while_it_is_restored_is_noticed(backup: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("store.db", f"reports/{some_file(backup).name}"):

        def check_then_damage(folder: Path, name: str = name) -> Manifest:
            manifest = check_backup(folder)
            rewrite(folder / name, flipped)
            return manifest

        monkeypatch.setattr(backups, "check_backup", check_then_damage)
        with pytest.raises(BackupRefused, match="damaged: 1 changed"):
            restore_backup(backup, f"sqlite:///{tmp_path / 'again.db'}", tmp_path / "again")
        assert not (tmp_path / "again.db").exists()
        rewrite(backup / name, flipped)  # which undoes it
        shutil.rmtree(tmp_path / "again", ignore_errors=True)


@pytest.mark.parametrize("there", ["hubbub.db", "hubbub.db-wal", "hubbub.db-journal", "reports", "link"])
def test_nothing_is_written_over(backup: Path, tmp_path: Path, there: str):
    target = tmp_path / "target"
    target.mkdir()
    if there == "reports":
        (target / "reports").mkdir()
        (target / "reports" / "mine").write_bytes(b"mine")
    elif there == "link":
        (target / "hubbub.db").symlink_to(tmp_path / "nowhere")
    else:
        (target / there).write_bytes(b"mine")
    before = sorted(target.rglob("*"))
    with pytest.raises(BackupRefused, match="there already"):
        restore_backup(backup, f"sqlite:///{target / 'hubbub.db'}", target / "reports")
    assert sorted(target.rglob("*")) == before
    assert all(path.read_bytes() == b"mine" for path in before if path.is_file())


def test_a_database_of_postgresql_that_is_in_use_is_left_alone(backup: Path, tmp_path: Path, postgres: Databases):
    url = postgres()
    start_collector(WORDS, ManualClock(5 * HOUR), open_store(url)).store.close()
    with pytest.raises(BackupRefused, match="holds a store already"):
        restore_backup(backup, url, tmp_path / "target")
    assert not (tmp_path / "target").exists()
    again = open_store(url)
    assert again.counts() == {}
    assert len(again.collections()) == 1
    again.close()


def test_a_folder_that_is_there_is_not_backed_up_into(backup: Path, tmp_path: Path):
    before = {path: path.read_bytes() for path in backup.rglob("*") if path.is_file()}
    with pytest.raises(BackupRefused, match="there already"):
        make_backup(f"sqlite:///{tmp_path / 'hubbub.db'}", tmp_path / "reports", backup)
    assert {path: path.read_bytes() for path in backup.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("url", ["sqlite:///nowhere.db", "sqlite:///:memory:", "postgresql://127.0.0.1:1/nothing"])
def test_a_store_that_is_not_there_is_not_made(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BackupRefused):
        make_backup(url, tmp_path / "reports", tmp_path / "backup")
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_lacks_a_file_is_not_backed_up_as_if_it_were_whole(tmp_path: Path):
    url = f"sqlite:///{tmp_path / 'hubbub.db'}"
    collector, _ = filled(url, tmp_path, 2)
    name = sorted(path.name for path in (tmp_path / "reports").iterdir())[0]
    (tmp_path / "reports" / name).unlink()
    with pytest.raises(BackupRefused, match=f"1 files are missing that the store names, such as {name}"):
        make_backup(url, tmp_path / "reports", tmp_path / "backup")
    collector.store.close()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("backup")]


@pytest.mark.parametrize("damage", [lambda content: content[:1000], lambda content: b"", flipped])
def test_a_damaged_file_of_reports_is_neither_backed_up_nor_counted(
    store: str, tmp_path: Path, damage: Callable[[bytes], bytes]
):
    collector, _ = filled(store, tmp_path, 3)
    assert candidate_shares(collector, "ages", ["7"])["n"] == 2 * CROWD
    path = sorted((tmp_path / "reports").glob("ages-*"))[0]
    rewrite(path, damage)
    with pytest.raises(BackupRefused, match=f"{path.name}: damaged"):
        make_backup(store, tmp_path / "reports", tmp_path / "backup")
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("backup")]
    with pytest.raises(ReportsMissing, match=f"{path.name} is damaged"):
        candidate_shares(collector, "ages", ["7"])
    collector.store.close()


def test_a_store_with_a_changed_value_is_neither_backed_up_nor_told(store: str, tmp_path: Path):
    collector, _ = filled(store, tmp_path, 3)
    run_in(collector.store, "UPDATE releases SET payload = REPLACE(payload, '1', '2')")
    with pytest.raises(StoreFailed, match="a row of the table releases has changed"):
        told(collector)
    collector.store.close()
    with pytest.raises(BackupRefused, match="a row of the table releases has changed"):
        make_backup(store, tmp_path / "reports", tmp_path / "backup")


def test_when_retention_deletes_files_meanwhile_it_is_done_again(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    collector, clock = filled(store, tmp_path, 3)
    copied: list[str] = []

    def meanwhile(source: Path, target: Path) -> BackupFile:
        if not copied:  # the database was copied, and names the files that now go
            clock.set(13 * HOUR + DAY + HOUR)
            collector.tick()
            fill(collector, 9)
            clock.advance(2 * HOUR)
            collector.tick()
        copied.append(source.name)
        return copy_file(source, target)

    monkeypatch.setattr(backups, "copy_file", meanwhile)
    manifest = make_backup(store, tmp_path / "reports", tmp_path / "backup")
    collector.store.close()
    check_backup(tmp_path / "backup")
    assert len(manifest.reports) == 2
    assert copied[-2:] == manifest.reports
    assert len(copied) > 2


def test_a_store_after_a_crash_is_backed_up_with_its_log(tmp_path: Path):
    """The log next to a database is a part of it."""
    url = f"sqlite:///{tmp_path / 'hubbub.db'}"
    collector, _ = filled(url, tmp_path, 2)
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    for path in tmp_path.glob("hubbub.db*"):
        shutil.copy(path, crashed)  # as a kill would leave them
    counts = collector.counts()
    collector.store.close()
    assert (crashed / "hubbub.db-wal").stat().st_size > 0
    make_backup(f"sqlite:///{crashed / 'hubbub.db'}", tmp_path / "reports", tmp_path / "backup")
    restore_backup(tmp_path / "backup", f"sqlite:///{tmp_path / 'again.db'}", tmp_path / "again")
    store = open_store(f"sqlite:///{tmp_path / 'again.db'}")
    assert store.counts() == counts
    assert counts[WORDS.collection_id, "accepted"] == 6 * CROWD
    store.close()
