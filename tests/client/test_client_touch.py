"""A client's folder: threads that read its files, a device that stops anywhere, newer formats, `hubbub client`."""

import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hubbub.cli.app import app
from hubbub.client import read_status
from hubbub.client.documents import ClientRefusal
from hubbub.client.folder import FILE, MARKER, claim
from hubbub.collection import seal
from hubbub.ledger.file import LedgerUnavailable
from tests.client.device import MIXED, World, store_of
from tests.shared.killed_processes import run_script
from tests.third_parties import locked


@pytest.mark.parametrize("reader", ["status", "client"])
def test_locks_survive_whoever_looks_into_the_folder(folder: Path, reader: str) -> None:
    here = World(folder, MIXED)
    here.spend([5])
    looks: dict[str, Callable[[], object]] = {
        "status": lambda: read_status(folder, here.clock),
        "client": lambda: here.device().close(),
    }
    (path,) = folder.glob("*.sqlite")  # the ledger is in it
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("BEGIN IMMEDIATE")
    looking = threading.Thread(target=looks[reader])
    looking.start()  # waits for this transaction
    time.sleep(0.2)  # the reader's chance to open the file; a slow machine finds no fault that is not there
    still = locked(path)
    database.execute("ROLLBACK")
    looking.join()
    database.close()
    assert still


pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked, and killed")

run = partial(run_script, Path(__file__).with_name("client_crash.py"))


@pytest.mark.parametrize("points", [40, pytest.param(1000, marks=pytest.mark.slow)])
def test_killed_at_any_point_spent_is_at_least_sent(points: int) -> None:
    assert run("points", points) == {"lives": points, "wrong": []}


def test_a_debit_that_comes_after_the_sending_is_caught() -> None:
    """The moments are spread evenly, closer than the time from the sending to the debit: a twentieth of the life."""
    assert 0 < len(run("careless", 60)["wrong"]) < 60


@pytest.mark.parametrize("races", [6, pytest.param(300, marks=pytest.mark.slow)])
def test_two_processes_share_a_folder(races: int) -> None:
    assert run("race", races) == {"lives": races, "wrong": []}


def test_a_folder_that_another_process_makes_meanwhile_is_not_taken_for_a_lost_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exists = Path.exists

    def made_after_the_first_look(path: Path) -> bool:
        there = exists(path)
        for name in (FILE, MARKER):
            (tmp_path / name).write_text("of another process")
        return there

    monkeypatch.setattr(Path, "exists", made_after_the_first_look)
    claim(tmp_path)
    monkeypatch.undo()
    (tmp_path / FILE).unlink()
    with pytest.raises(LedgerUnavailable, match="was there before"):
        claim(tmp_path)


def test_a_newer_format_is_refused_and_the_version_in_force_goes_on(folder: Path) -> None:
    here = World(folder)
    with here.device() as client:
        assert here.live(client, 5, theme="dark") == 1
        newer = {**here.collection.spec(), "format": 2, "version": 2, "colour": 3}
        here.server.documents["/v1/collections/survey"] = seal(newer, here.server.keys.private)
        here.begin(6)
        here.server.publish_asks([], 6, 9e12, {"version": 2})  # which makes the device fetch the collection
        assert client.tick() == 0
        assert client.status().counts["refused: format"] == 1
        assert "format 2" in (client.status().trouble or "")
        assert "a newer one wrote it, and is needed to read it" in (client.status().trouble or "")
        assert here.live(client, 7) == 1


def test_a_kept_document_of_a_newer_format_is_not_taken_for_none(folder: Path) -> None:
    """Such as after going back to an older client: to begin anew would forget what was promised."""
    here = World(folder)
    with here.at(5) as client:
        assert client.tick() == 1
        store = store_of(client)
        with store.transaction():
            document = store.document("collection")
            assert document is not None
            newer = seal({**here.collection.spec(), "format": 9}, here.server.keys.private)
            store.set_document("collection", document._replace(body=json.dumps(newer)))
    with pytest.raises(ClientRefusal, match="format 9"):
        here.device()


def test_the_status_of_a_device(folder: Path) -> None:
    here = World(folder, MIXED, user="8.0\nevent = 4.0")
    with here.device() as client:
        here.live(client, 5, home=3)
        here.begin(6)
        client.tick()
    result = CliRunner().invoke(app, ["client", "status", str(folder)])
    assert result.exit_code == 0, result.output
    lines = {line.split("  ")[0]: line.split() for line in result.stdout.splitlines() if line}
    assert lines["for life"][-3:] == ["3", "5", "8"]  # a memo of 2, two histograms of 0.5
    assert lines["waiting to be sent"][-1] == "2"
    assert lines["permanent answers"][-2:] == ["page", "1"]
    assert lines["sent"][-1] == "2"
    answer = json.loads(CliRunner().invoke(app, ["client", "status", str(folder), "--json"]).stdout)
    assert answer["collection"] == "survey"
    assert answer["user"] == {"spent": answer["spent"], "remaining": 8 - answer["spent"], "limit": 8.0}
    assert answer["window"] is None
    assert answer["queued"] == 2


def test_what_is_not_a_clients_folder_is_refused(folder: Path) -> None:
    result = CliRunner().invoke(app, ["client", "status", str(folder)])
    assert result.exit_code == 2
    assert result.stderr.startswith("hubbub: folder: ")
    assert not any(folder.iterdir())  # and nothing was made there
