"""A database and a folder of reports that do not belong together: nothing is deleted, and what is missing is said."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path

import pytest

from hubbub import Random
from hubbub.collection import ManualClock
from hubbub.service.collector.collector import Collector
from hubbub.service.http.metrics import metrics_text
from hubbub.service.http.problems import Tokens
from hubbub.service.http.server import create_app
from hubbub.service.http.service import Service
from hubbub.service.ingest.frames import Frame
from hubbub.service.kept.archive import Archive, ReportsMissing
from hubbub.service.store.sqlite import SqliteStore
from hubbub.wire.batches import Batch
from tests.service.test_kept import CROWD, DAY, HOUR, WORDS, candidate_shares, fill, start_collector
from tests.service.web import AUTHORIZED, TOKEN, problem
from tests.shared.loopback import running


def opened(folder: Path, clock: ManualClock, archive: bool = True) -> Collector:
    return start_collector(SqliteStore(folder / "store.db"), clock, Archive(folder / "reports") if archive else None)


def step(collector: Collector, clock: ManualClock, seed: int) -> None:
    fill(collector, seed)
    clock.advance(HOUR)
    collector.tick()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_file()) if folder.exists() else []


def test_files_that_an_older_database_does_not_name_are_set_aside_until_their_retention_is_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    clock, aside = ManualClock(10 * HOUR), tmp_path / "reports" / "set-aside"
    collector = opened(tmp_path, clock)
    step(collector, clock, 1)
    step(collector, clock, 2)
    before = names(tmp_path / "reports")
    collector.store.close()
    shutil.copy(tmp_path / "store.db", tmp_path / "older.db")
    collector = opened(tmp_path, clock)
    step(collector, clock, 3)
    step(collector, clock, 4)
    later = sorted(set(names(tmp_path / "reports")) - set(before))
    contents = {name: (tmp_path / "reports" / name).read_bytes() for name in later}
    assert len(later) == 4  # two questions, two steps
    collector.store.close()

    (tmp_path / "older.db").rename(tmp_path / "store.db")
    with caplog.at_level(logging.WARNING, "hubbub.service"):
        collector = opened(tmp_path, clock)
    (record,) = [record for record in caplog.records if record.getMessage() == "set aside"]
    assert set(record.fields["files"]) == {name for name in later if "-12-" in name}  # type: ignore[attr-defined]
    # The reports of step 11 were in the older database too, and were moved again: those files are as they were.
    assert collector.missing == []
    assert candidate_shares(collector, "ages", ["7"])["n"] == 2 * CROWD
    assert {name: (aside / name).read_bytes() for name in names(aside)} == {
        name: content for name, content in contents.items() if name in names(aside)
    }
    collector.store.close()
    clock.set(12 * HOUR + DAY)  # the retention of step 11 is over, not that of step 12
    collector = opened(tmp_path, clock)
    assert names(tmp_path / "reports") == []
    assert len(names(aside)) == 2
    collector.store.close()
    clock.set(14 * HOUR + DAY)
    collector = opened(tmp_path, clock)
    assert names(tmp_path / "reports") == []
    assert not aside.exists(), "deletion was promised"
    collector.store.close()


def test_a_file_with_more_reports_than_an_older_database_knows_is_not_written_over(tmp_path: Path):
    clock = ManualClock(10 * HOUR)
    collector = opened(tmp_path, clock)
    fill(collector, 1)
    collector.store.close()
    shutil.copy(tmp_path / "store.db", tmp_path / "older.db")
    collector = opened(tmp_path, clock)
    more(collector, "ages", 500)
    clock.advance(2 * HOUR)
    collector.tick()
    assert candidate_shares(collector, "ages", ["7"])["n"] == CROWD + 500
    files = {name: (tmp_path / "reports" / name).read_bytes() for name in names(tmp_path / "reports")}
    collector.store.close()
    (tmp_path / "older.db").rename(tmp_path / "store.db")
    collector = opened(tmp_path, clock)
    assert candidate_shares(collector, "ages", ["7"])["n"] == CROWD
    (name,) = names(tmp_path / "reports" / "set-aside")
    assert name.startswith("ages-10-")
    assert (tmp_path / "reports" / "set-aside" / name).read_bytes() == files[name]
    assert names(tmp_path / "reports") == sorted(files)
    collector.store.close()


def more(collector: Collector, question: str, number: int) -> None:
    (open_ask,) = [open_ask for open_ask in collector.board.asks.values() if open_ask.question == question]
    rng = Random(seed=99)
    reports = open_ask.ask.mechanism.randomize([7] * number, rng)
    batch = Batch(WORDS.name, WORDS.version, open_ask.name, rng.bytes(16 * number), reports.to_bare())
    assert collector.ingest([Frame(WORDS.collection_id, batch=batch)])[0].accepted == number


@pytest.mark.parametrize("what", ["no folder", "an empty folder", "half a file", "another file"])
def test_what_is_missing_is_said(tmp_path: Path, what: str, caplog: pytest.LogCaptureFixture):
    clock = ManualClock(10 * HOUR)
    collector = opened(tmp_path, clock)
    step(collector, clock, 1)
    step(collector, clock, 2)
    clock.advance(HOUR)
    collector.tick()
    collector.store.close()
    files = {path.name: path for path in (tmp_path / "reports").iterdir()}
    of_ages = sorted(name for name in files if name.startswith("ages"))
    if what == "half a file":
        files[of_ages[0]].write_bytes(files[of_ages[0]].read_bytes()[:-100])
    elif what == "another file":
        archive = Archive(tmp_path / "reports")
        archive.write(of_ages[0], archive.read(of_ages[1])[:7])
    else:
        shutil.rmtree(tmp_path / "reports")
    with caplog.at_level(logging.ERROR, "hubbub.service"):
        collector = opened(tmp_path, clock, archive=what != "no folder")
    logged = [record.fields for record in caplog.records if record.getMessage() == "reports missing"]  # type: ignore[attr-defined]
    if "folder" in what:
        assert [fields["count"] for fields in logged] == [4]
        assert collector.missing == sorted(files)
        assert "hubbub_missing_files 4" in metrics_text(Service(collector))
    with pytest.raises(ReportsMissing, match=of_ages[0]):
        candidate_shares(collector, "ages", ["7"])
    assert candidate_shares(collector, "sums", ["7"])["n"] == 0  # a question that keeps none misses none
    path = "/v1/collections/words/questions/ages/candidates?candidate=7"
    with running(create_app(Service(collector), Tokens([TOKEN]))) as client:
        answer = client.get(path, headers=AUTHORIZED)
        assert (answer.status_code, problem(answer)) == (409, "reports_missing")
        assert of_ages[0] in json.loads(answer.content)["detail"]
        assert client.get(f"{path}&to=3", headers=AUTHORIZED).json()["n"] == 0  # of steps that it has all of
