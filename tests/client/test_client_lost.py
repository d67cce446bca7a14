"""A lost ledger is never replaced by itself: a missing, empty or garbled one is refused, and recovery spends it all."""

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hubbub.cli.app import app
from hubbub.client import Client, NotReady, read_status
from hubbub.core.errors import HubbubError, InvalidValue
from hubbub.core.event import UNITS_PER_EPSILON
from hubbub.ledger.file import LedgerUnavailable
from tests.client.device import HOUR, MEMO, World
from tests.client.local_server import TEXT

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


@pytest.mark.parametrize("lose", LOSSES.values(), ids=LOSSES)
def test_a_lost_database_is_refused_and_stays_refused(folder: Path, lose: Callable[[Path], object]) -> None:
    here = World(folder, LIFE)
    assert here.spend(range(5, 8)) == 3
    lose(folder / FILE)
    uploads = len(here.server.bodies)
    for _ in range(3):
        with pytest.raises(LedgerUnavailable):
            here.device()
        with pytest.raises(HubbubError):
            read_status(folder, here.clock)
    assert len(here.server.bodies) == uploads
    result = CliRunner().invoke(app, ["client", "status", str(folder)])
    assert result.exit_code != 0


@pytest.mark.parametrize("lose", LOSSES.values(), ids=LOSSES)
def test_recovering_spends_everything_that_is_uncertain(folder: Path, lose: Callable[[Path], object]) -> None:
    here = World(folder, LIFE)
    here.spend(range(5, 7))
    lose(folder / FILE)
    Client.recover(folder, clock=here.clock)
    assert here.spend(range(7, 60)) == 0  # of a life of 3, 2 was spent: nobody knows any more
    status = read_status(folder, here.clock)
    assert status.recovered is not None
    assert status.user is not None
    assert (status.user.remaining, status.spent) == (0, 0)
    with pytest.raises(InvalidValue, match="this one can be used"):
        Client.recover(folder, clock=here.clock)


def test_a_window_is_spent_until_it_has_passed(folder: Path) -> None:
    here = World(folder, WINDOW)
    assert here.spend(range(5, 8)) == 3
    (folder / FILE).unlink()
    here.begin(8)
    Client.recover(folder, clock=here.clock)
    with here.device() as client:
        reports = [here.live(client, step) for step in range(8, 16)]
    assert reports == [0, 0, 0, 0, 1, 1, 1, 1]  # steps 8 to 11 are in the window of the moment


def test_a_clock_set_forward_does_not_bring_the_window_back(folder: Path) -> None:
    here = World(folder, WINDOW)
    here.spend(range(5, 8))
    (folder / FILE).unlink()
    true = [0.0]
    Client.recover(folder, clock=here.clock)
    with here.device(monotonic=lambda: 1000.0 + true[0]) as client:
        here.begin(5000)
        assert client.tick() == 0
        true[0] = 3 * HOUR
        here.begin(5003)
        assert client.tick() == 1


def test_memos_that_were_lost_are_not_drawn_again(folder: Path) -> None:
    here = World(folder, MEMO)
    with here.device() as client:
        assert here.live(client, 5, home=3) == 1
    (folder / FILE).unlink()
    Client.recover(folder, clock=here.clock)
    with here.device() as client:
        for step in range(6, 30):
            assert here.live(client, step, home=step % 6) == 0


def test_a_kept_document_that_is_garbled_is_fetched_again_and_the_promises_hold(folder: Path) -> None:
    here = World(folder, LIFE)
    here.spend(range(5, 7))
    with sqlite3.connect(folder / FILE) as database:
        database.execute("UPDATE documents SET body = 'garbled' WHERE name = 'collection'")
    database.close()
    with pytest.raises(InvalidValue, match="kept document of version 1"):
        read_status(folder, here.clock)
    with here.device() as client, pytest.raises(NotReady, match="cannot be read"):
        client.status()
    assert here.spend(range(7, 20)) == 1
    assert read_status(folder, here.clock).spent == 3 * UNITS_PER_EPSILON


def test_an_older_version_is_no_way_out_of_a_garbled_document(folder: Path) -> None:
    here = World(folder, LIFE, version="2")
    here.spend(range(5, 6))
    with sqlite3.connect(folder / FILE) as database:
        database.execute("DELETE FROM documents")
    database.close()
    here.serve(LIFE, version="1")
    assert here.spend(range(6, 9)) == 0


def test_the_command_line_recovers(folder: Path) -> None:
    here = World(folder, LIFE)
    here.spend(range(5, 6))
    again = CliRunner().invoke(app, ["client", "recover", str(folder)])
    assert again.exit_code != 0
    (folder / FILE).unlink()
    result = CliRunner().invoke(app, ["client", "recover", str(folder)])
    assert result.exit_code == 0, result.output
    assert "Begun anew" in result.output
    nobody = CliRunner().invoke(app, ["client", "recover", str(folder / "other")])
    assert nobody.exit_code != 0


def test_a_folder_without_its_marker_gets_another(folder: Path) -> None:
    here = World(folder, LIFE)
    here.spend(range(5, 6))
    (folder / "client.json").unlink()
    here.spend(range(6, 7))
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
    here = World(folder, LIFE)
    assert here.spend(range(5, 6)) == 1
    copy = copied(folder, tmp_path / "copy")
    assert here.spend(range(6, 7)) == 1
    uploads = len(here.server.bodies)
    older = restored(folder, copy, how)
    for _ in range(2):
        with pytest.raises(LedgerUnavailable, match="an older copy, after 1 of 2 answers"):
            here.device(str(older))
    Client.recover(older, clock=here.clock)
    assert here.spend(range(7, 9), str(older)) == 0  # the limit is for life
    assert len(here.server.bodies) == uploads


def test_a_copy_put_under_a_running_client_is_refused(folder: Path, tmp_path: Path) -> None:
    here = World(folder, TEXT)
    here.spend(range(5, 6))
    copy = copied(folder, tmp_path / "copy")
    with here.device() as client:
        assert [here.live(client, step, theme="dark") for step in (6, 7)] == [1, 1]
        shutil.copyfile(copy / FILE, folder / FILE)  # into the file that it has open
        uploads = len(here.server.bodies)
        for act in (client.tick, client.upload):
            with pytest.raises(LedgerUnavailable, match="an older copy"):
                act()
        assert len(here.server.bodies) == uploads


def test_a_copy_from_before_an_answer_that_never_left_is_taken(folder: Path, tmp_path: Path) -> None:
    """Nothing was spent: a program that is killed between answering and sending is not locked out."""
    here = World(folder, TEXT)
    here.spend(range(5, 6))
    copy = copied(folder, tmp_path / "copy")
    with here.at(6) as client:
        client.record("theme", "dark")
        assert client.tick() == 1
    restored(folder, copy, "in place")
    with here.device() as client:
        client.record("theme", "dark")
        assert (client.tick(), client.upload()) == (1, 1)


@pytest.mark.parametrize("place", ["XDG_STATE_HOME", "XDG_RUNTIME_DIR"])
def test_either_place_alone_recognises_an_older_copy(
    folder: Path, tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole home was restored, or the machine was started again."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "XDG_STATE_HOME"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "XDG_RUNTIME_DIR"))
    here = World(folder, TEXT)
    here.spend(range(5, 6))
    copy = copied(folder, tmp_path / "copy")
    here.spend(range(6, 7))
    (lost,) = {"XDG_STATE_HOME", "XDG_RUNTIME_DIR"} - {place}
    shutil.rmtree(tmp_path / lost)
    restored(folder, copy, "folder")
    with pytest.raises(LedgerUnavailable, match="an older copy"):
        here.device()
    shutil.rmtree(tmp_path / place)  # without both, it cannot be told: docs/promises.md
    here.device().close()


def test_where_nothing_can_be_written_outside_a_client_works_all_the_same(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    here = World(folder, TEXT)
    assert here.spend(range(5, 7)) == 2
