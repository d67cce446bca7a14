"""A lost ledger is never replaced by itself: a missing, empty or garbled one is refused, and recovery spends it all."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hubbub.cli.app import app
from hubbub.client import Client, NotReady, read_status
from hubbub.collection import ManualClock
from hubbub.core.errors import HubbubError, InvalidValue
from hubbub.core.event import UNITS_PER_EPSILON
from hubbub.ledger.file import LedgerUnavailable
from tests.client.device import HOUR, MEMO, begin, device
from tests.client.local_server import TEXT, LocalServer, survey

FILE = "client.sqlite"
LIFE = TEXT.replace("event = 1.0\nuser = 20.0", "user = 3.0")
WINDOW = TEXT.replace("event = 1.0\nuser = 20.0", "window = {epsilon = 4.0, steps = 4}")


def without_tables(file: Path) -> None:
    file.unlink()
    database = sqlite3.connect(file)
    database.execute("PRAGMA user_version = 7")
    database.close()


LOSSES: dict[str, Callable[[Path], object]] = {
    "missing": Path.unlink,
    "empty": lambda file: file.write_bytes(b""),
    "cut short": lambda file: file.write_bytes(file.read_bytes()[:1000]),
    "garbled": lambda file: file.write_bytes(b"no database" * 999),
    "without tables": without_tables,
}


def spend_some(folder: Path, server: LocalServer, clock: ManualClock, steps: range) -> int:
    with device(folder, server, clock) as client:
        reports = 0
        for step in steps:
            begin(server, clock, step)
            reports += client.tick()
            client.upload()
        return reports


@pytest.mark.parametrize("name", LOSSES)
def test_a_lost_database_is_refused_and_stays_refused(folder: Path, name: str) -> None:
    server, clock = LocalServer(survey(LIFE)), ManualClock()
    assert spend_some(folder, server, clock, range(5, 8)) == 3
    LOSSES[name](folder / FILE)
    uploads = len(server.bodies)
    for _ in range(3):
        with pytest.raises(LedgerUnavailable):
            device(folder, server, clock)
        with pytest.raises(HubbubError):
            read_status(folder, clock)
    assert len(server.bodies) == uploads
    result = CliRunner().invoke(app, ["client", "status", str(folder)])
    assert result.exit_code != 0


@pytest.mark.parametrize("name", LOSSES)
def test_recovering_spends_everything_that_is_uncertain(folder: Path, name: str) -> None:
    server, clock = LocalServer(survey(LIFE)), ManualClock()
    spend_some(folder, server, clock, range(5, 7))
    LOSSES[name](folder / FILE)
    Client.recover(folder, clock=clock)
    assert spend_some(folder, server, clock, range(7, 60)) == 0  # of a life of 3, 2 was spent: nobody knows any more
    status = read_status(folder, clock)
    assert status.recovered is not None
    assert status.user is not None
    assert (status.user.remaining, status.spent) == (0, 0)
    with pytest.raises(InvalidValue, match="this one can be used"):
        Client.recover(folder, clock=clock)


def test_a_window_is_spent_until_it_has_passed(folder: Path) -> None:
    server, clock = LocalServer(survey(WINDOW)), ManualClock()
    assert spend_some(folder, server, clock, range(5, 8)) == 3
    (folder / FILE).unlink()
    begin(server, clock, 8)
    Client.recover(folder, clock=clock)
    reports = []
    with device(folder, server, clock) as client:
        for step in range(8, 16):
            begin(server, clock, step)
            reports.append(client.tick())
    assert reports == [0, 0, 0, 0, 1, 1, 1, 1]  # steps 8 to 11 are in the window of the moment


def test_a_clock_set_forward_does_not_bring_the_window_back(folder: Path) -> None:
    server, clock = LocalServer(survey(WINDOW)), ManualClock()
    spend_some(folder, server, clock, range(5, 8))
    (folder / FILE).unlink()
    true = [0.0]
    Client.recover(folder, clock=clock)
    with device(folder, server, clock, monotonic=lambda: 1000.0 + true[0]) as client:
        begin(server, clock, 5000)
        assert client.tick() == 0
        true[0] = 3 * HOUR
        begin(server, clock, 5003)
        assert client.tick() == 1


def test_memos_that_were_lost_are_not_drawn_again(folder: Path) -> None:
    server, clock = LocalServer(survey(MEMO)), ManualClock()
    with device(folder, server, clock) as client:
        begin(server, clock, 5)
        client.record("home", 3)
        assert client.tick() == 1
    (folder / FILE).unlink()
    Client.recover(folder, clock=clock)
    with device(folder, server, clock) as client:
        for step in range(6, 30):
            begin(server, clock, step)
            client.record("home", step % 6)
            assert client.tick() == 0


def test_a_kept_document_that_is_garbled_is_fetched_again_and_the_promises_hold(folder: Path) -> None:
    server, clock = LocalServer(survey(LIFE)), ManualClock()
    spend_some(folder, server, clock, range(5, 7))
    with sqlite3.connect(folder / FILE) as database:
        database.execute("UPDATE documents SET body = 'garbled' WHERE name = 'collection'")
    database.close()
    with pytest.raises(InvalidValue, match="kept document of version 1"):
        read_status(folder, clock)
    with device(folder, server, clock) as client, pytest.raises(NotReady, match="cannot be read"):
        client.status()
    assert spend_some(folder, server, clock, range(7, 20)) == 1
    assert read_status(folder, clock).spent == 3 * UNITS_PER_EPSILON


def test_an_older_version_is_no_way_out_of_a_garbled_document(folder: Path) -> None:
    server, clock = LocalServer(survey(LIFE, version="2")), ManualClock()
    spend_some(folder, server, clock, range(5, 6))
    with sqlite3.connect(folder / FILE) as database:
        database.execute("DELETE FROM documents")
    database.close()
    older = LocalServer(survey(LIFE, version="1"))
    assert spend_some(folder, older, clock, range(6, 9)) == 0


def test_the_command_line_recovers(folder: Path) -> None:
    server, clock = LocalServer(survey(LIFE)), ManualClock()
    spend_some(folder, server, clock, range(5, 6))
    again = CliRunner().invoke(app, ["client", "recover", str(folder)])
    assert again.exit_code != 0
    (folder / FILE).unlink()
    result = CliRunner().invoke(app, ["client", "recover", str(folder)])
    assert result.exit_code == 0, result.output
    assert "Begun anew" in result.output
    nobody = CliRunner().invoke(app, ["client", "recover", str(folder / "other")])
    assert nobody.exit_code != 0


def test_a_folder_without_its_marker_gets_another(folder: Path) -> None:
    server, clock = LocalServer(survey(LIFE)), ManualClock()
    spend_some(folder, server, clock, range(5, 6))
    (folder / "client.json").unlink()
    spend_some(folder, server, clock, range(6, 7))
    assert (folder / "client.json").exists()


def copied(folder: Path, place: Path) -> Path:
    shutil.rmtree(place, ignore_errors=True)
    return Path(shutil.copytree(folder, place))


def restored(folder: Path, copy: Path, how: str) -> Path:
    """Put back an older copy: over the file, as a new file, the whole folder, or next to the folder."""
    if how == "elsewhere":
        return copied(copy, folder.with_name("elsewhere"))
    if how == "folder":
        return copied(copy, folder)
    if how == "new file":
        (folder / FILE).unlink()
    shutil.copyfile(copy / FILE, folder / FILE)
    return folder


@pytest.mark.parametrize("how", ["in place", "new file", "folder", "elsewhere"])
def test_an_older_copy_is_refused_and_recovered_with_everything_spent(folder: Path, tmp_path: Path, how: str) -> None:
    server, clock = LocalServer(survey(LIFE)), ManualClock()
    assert spend_some(folder, server, clock, range(5, 6)) == 1
    copy = copied(folder, tmp_path / "copy")
    assert spend_some(folder, server, clock, range(6, 7)) == 1
    heard = len(server.bodies)
    older = restored(folder, copy, how)
    for _ in range(2):
        with pytest.raises(LedgerUnavailable, match="an older copy, after 1 of 2 answers"):
            device(older, server, clock)
    Client.recover(older, clock=clock)
    assert spend_some(older, server, clock, range(7, 9)) == 0  # the limit is for life
    assert len(server.bodies) == heard


def test_a_copy_put_under_a_running_client_is_refused(folder: Path, tmp_path: Path) -> None:
    server, clock = LocalServer(survey(TEXT)), ManualClock()
    spend_some(folder, server, clock, range(5, 6))
    copy = copied(folder, tmp_path / "copy")
    with device(folder, server, clock) as client:
        for step, reports in ((6, 1), (7, 1)):
            begin(server, clock, step)
            client.record("theme", "dark")
            assert (client.tick(), client.upload()) == (reports, reports)
        shutil.copyfile(copy / FILE, folder / FILE)  # into the file that it has open
        heard = len(server.bodies)
        for act in (client.tick, client.upload):
            with pytest.raises(LedgerUnavailable, match="an older copy"):
                act()
        assert len(server.bodies) == heard


def test_a_copy_from_before_an_answer_that_never_left_is_taken(folder: Path, tmp_path: Path) -> None:
    """Nothing was spent: a program that is killed between answering and sending is not locked out."""
    server, clock = LocalServer(survey(TEXT)), ManualClock()
    spend_some(folder, server, clock, range(5, 6))
    copy = copied(folder, tmp_path / "copy")
    with device(folder, server, clock) as client:
        begin(server, clock, 6)
        client.record("theme", "dark")
        assert client.tick() == 1
    restored(folder, copy, "in place")
    with device(folder, server, clock) as client:
        client.record("theme", "dark")
        assert (client.tick(), client.upload()) == (1, 1)


@pytest.mark.parametrize("place", ["XDG_STATE_HOME", "XDG_RUNTIME_DIR"])
def test_either_place_alone_recognises_an_older_copy(
    folder: Path, tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole home was restored, or the machine was started again."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "XDG_STATE_HOME"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "XDG_RUNTIME_DIR"))
    server, clock = LocalServer(survey(TEXT)), ManualClock()
    spend_some(folder, server, clock, range(5, 6))
    copy = copied(folder, tmp_path / "copy")
    spend_some(folder, server, clock, range(6, 7))
    (lost,) = {"XDG_STATE_HOME", "XDG_RUNTIME_DIR"} - {place}
    shutil.rmtree(tmp_path / lost)
    restored(folder, copy, "folder")
    with pytest.raises(LedgerUnavailable, match="an older copy"):
        device(folder, server, clock)
    shutil.rmtree(tmp_path / place)  # without both, it cannot be told: docs/promises.md
    device(folder, server, clock).close()


def test_where_nothing_can_be_written_outside_a_client_works_all_the_same(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    server, clock = LocalServer(survey(TEXT)), ManualClock()
    assert spend_some(folder, server, clock, range(5, 7)) == 2
