"""A file that only its owner can read; an existing file is never opened, and so never closed."""

import errno
import os
import re
import sqlite3
import stat
import threading
from pathlib import Path

import pytest

import hubbub
from hubbub.core.private_file import make_private_file
from tests.third_parties import locked

SOURCES = sorted(Path(hubbub.__file__).parent.rglob("*.py"))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
def test_it_is_for_its_owner_alone_whatever_the_umask(tmp_path: Path, umask: int):
    before = os.umask(umask)
    try:
        assert make_private_file(tmp_path / "new")
    finally:
        os.umask(before)
    assert mode(tmp_path / "new") == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_what_is_there_is_left_as_it_is(tmp_path: Path):
    path = tmp_path / "old"
    path.write_bytes(b"content")
    path.chmod(0o640)
    before = path.stat()
    assert not make_private_file(path)
    after = path.stat()
    assert (after.st_ino, after.st_mode, after.st_atime_ns) == (before.st_ino, before.st_mode, before.st_atime_ns)
    assert path.read_bytes() == b"content"


def test_locks_of_this_process_survive(tmp_path: Path):
    """Another process still finds the database locked."""
    path = tmp_path / "database"
    make_private_file(path)
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("BEGIN IMMEDIATE")
    make_private_file(path)
    assert locked(path)
    os.close(os.open(path, os.O_RDWR))  # what this is all about: the probe sees a lock that vanishes
    assert not locked(path)
    database.close()


def test_the_target_of_a_link_is_made(tmp_path: Path):
    link, target = tmp_path / "link", tmp_path / "elsewhere" / "target"
    target.parent.mkdir()
    link.symlink_to(target)
    assert make_private_file(link)
    assert link.is_symlink()
    assert mode(target) == 0o600
    assert not make_private_file(link)


def test_of_many_threads_one_makes_it(tmp_path: Path):
    for number in range(20):
        results: list[bool] = []
        path = tmp_path / str(number)
        gate = threading.Barrier(8)

        def make(path: Path = path, gate: threading.Barrier = gate, results: list[bool] = results) -> None:
            gate.wait()
            results.append(make_private_file(path))

        threads = [threading.Thread(target=make) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(results) == [False] * 7 + [True]
    assert len(list(tmp_path.iterdir())) == 20


def test_a_disk_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    path = tmp_path / "new"
    assert make_private_file(path)
    assert not make_private_file(path)
    assert mode(path) == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["new"]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(FileNotFoundError) as caught:
        make_private_file(tmp_path / "nowhere" / "file")
    assert caught.value.filename == str(tmp_path / "nowhere" / "file")


def test_no_source_opens_a_file_to_close_it():
    opens = re.compile(r"os\.close\(\s*os\.open\(")
    assert [source.name for source in SOURCES if opens.search(source.read_text(encoding="utf-8"))] == []
