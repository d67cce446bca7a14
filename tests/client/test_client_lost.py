"""A lost ledger is never replaced by itself: a missing, empty or garbled one is refused, and recovery spends it all."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from device import HOUR, MEMO, begin, device
from local_server import TEXT, LocalServer, survey
from typer.testing import CliRunner

from hubbub.cli.app import app
from hubbub.client import Client, NotReady, read_status
from hubbub.collection import ManualClock
from hubbub.core.errors import HubbubError, InvalidValue
from hubbub.core.event import UNITS_PER_EPSILON
from hubbub.privacy.ledger_file import LedgerUnavailable

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
