"""Single reports, where a question keeps them: each once, wherever it is, and gone when its time is over."""

import json
import logging
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import asdict

from hubbub import GRR, Random, Sketch
from hubbub.authoring import check, load_collection, promise
from hubbub.backends.file_fold import fold_files
from hubbub.backends.folding import FoldPlan
from hubbub.backends.report_files import SketchKey
from hubbub.collection import ManualClock
from hubbub.core.errors import InvalidValue
from hubbub.mechanisms.base import Mechanism
from hubbub.service.collector.candidates import ask_kept
from hubbub.service.collector.collector import Collector
from hubbub.service.http.metrics import metrics_text
from hubbub.service.http.service import Service
from hubbub.service.kept.archive import Archive, ReportsMissing, kept_reports, pack, unpack
from hubbub.service.store.sqlite import SqliteStore
from tests.service.process import deaths
from tests.service.web import AUTHORIZED, logged, problem, site
from tests.shared.in_process import Reopen, open_now, randomized, send_reports, send_values, start_collector
from tests.shared.small_collections import collection_text

KEEPING = collection_text(
    "words",
    "Which words?",
    schedule={"step": "1h", "lateness": "10s", "retention": "1d"},
    privacy={"event": 9.0, "minimum_batch": 20},
    fields={"word": {"kind": "strings", "longest": 16}, "age": {"kind": "ordinal", "size": 100}},
    questions={
        "words": {"kind": "histogram", "field": "word", "epsilon": 4.0, "candidates": ["yes"], "keep_reports": True},
        "ages": {"kind": "histogram", "field": "age", "epsilon": 4.0, "mechanism": "OLH", "keep_reports": True},
        "sums": {"kind": "histogram", "field": "age", "epsilon": 1.0},
    },
)
WORDS = load_collection(KEEPING)
CROWD = 2000
HOUR = 3600.0
DAY = 24 * HOUR


def fill(collector: Collector, seed: int) -> None:
    """Two in five say maybe, and are seven years old."""
    for open_ask in open_now(collector):
        often, rest = ("maybe", "yes") if open_ask.question == "words" else (7, 9)
        values = [often] * (2 * CROWD // 5) + [rest] * (3 * CROWD // 5)
        assert send_values(collector, open_ask, values, Random(seed=seed)).accepted == CROWD


def some_steps(collector: Collector, clock: ManualClock, seeds: Iterable[int]) -> None:
    for seed in seeds:
        fill(collector, seed)
        clock.advance(HOUR)
        collector.tick()


def candidate_shares(collector: Collector, question: str, candidates: list[str], **options: Any) -> dict[str, Any]:
    steps = {"first": 0, "last": 1 << 40, **options}
    shares = ask_kept(collector.store, collector.archive, WORDS, question, candidates, **steps)
    return asdict(shares)


def test_reports_of_every_mechanism_come_back_from_a_segment_and_a_file(mechanism: Mechanism, tmp_path: Path):
    reports = mechanism.randomize(mechanism.example_values(9) * 4, Random(seed=3))
    assert unpack(pack(reports)) == reports
    archive, key = Archive(tmp_path / "reports"), SketchKey("c", 1, "q", 0, 1, 1, 0, mechanism.spec_id)
    archive.write("q-1-00000000-0000000000000000.parquet", key, mechanism, reports)
    again = archive.read("q-1-00000000-0000000000000000.parquet")
    assert len(again) == len(reports)
    assert mechanism.accumulate(again) == mechanism.accumulate(reports)
    other = Archive(tmp_path / "other")
    order = np.argsort(Random(seed=9).uint64(len(reports)))
    other.write("q-1-00000000-0000000000000000.parquet", key, mechanism, reports[order])
    assert other.read("q-1-00000000-0000000000000000.parquet") == again, "the order tells when they came"


def test_candidates_are_asked_for_later(reopen: Reopen, tmp_path: Path):
    clock, archive = ManualClock(10 * HOUR), Archive(tmp_path / "reports")
    collector = start_collector(WORDS, clock, reopen(), archive=archive)
    some_steps(collector, clock, range(3))
    answer = candidate_shares(collector, "words", ["maybe", "never", "yes"])
    assert answer["n"] == 2 * CROWD  # the third ask is not closed yet
    clock.advance(HOUR)
    collector.tick()
    for again in (collector, *(start_collector(WORDS, clock, reopen(), archive=archive) for _ in range(2))):
        answer = candidate_shares(again, "words", ["maybe", "never", "yes"])
        assert (answer["n"], answer["bias"], answer["withheld"]) == (3 * CROWD, "heuristic", None)
        assert np.allclose(answer["value"], [0.4, 0.0, 0.6], atol=0.1)  # 6,000 reports at epsilon 4: 5 errors and more
        answer = candidate_shares(again, "ages", ["7", "8", "9"], first=11, last=12)
        assert (answer["n"], answer["bias"], answer["labels"]) == (2 * CROWD, "none", ["7", "8", "9"])
        assert np.allclose(answer["value"], [0.4, 0.0, 0.6], atol=6 * max(answer["variance"]) ** 0.5)
    assert len(list((tmp_path / "reports").iterdir())) == 6
    assert candidate_shares(collector, "sums", ["7"])["withheld"] == "0 reports; at least 20 are needed"
    # They are deleted with the rest, and the files too.
    clock.advance(DAY + HOUR)
    collector = start_collector(WORDS, clock, reopen(), archive=archive)
    assert candidate_shares(collector, "words", ["maybe"])["n"] == 0
    assert list((tmp_path / "reports").iterdir()) == []
    assert collector.deleted[WORDS.collection_id, "reports"] == 6 * CROWD
    assert collector.store.asks_to_archive() == []


def test_candidates_of_a_categorical_field_are_its_names():
    themes = load_collection(
        KEEPING.replace('kind = "ordinal"\nsize = 100', 'kind = "categorical"\nnames = ["light", "dark", "dim"]')
    )
    clock = ManualClock(10 * HOUR)
    collector = start_collector(themes, clock)
    open_ask = next(open_ask for open_ask in open_now(collector) if open_ask.question == "ages")
    values = [themes.encode("age", name) for name in ["dark"] * 1500 + ["dim"] * 500]
    send_values(collector, open_ask, values, Random(seed=1))
    clock.advance(2 * HOUR)
    collector.tick()
    answer = asdict(ask_kept(collector.store, None, themes, "ages", ["dim", "dark"], first=0, last=99))
    assert (answer["n"], answer["labels"]) == (CROWD, ["dim", "dark"])
    assert np.allclose(answer["value"], [0.25, 0.75], atol=6 * max(answer["variance"]) ** 0.5)
    with pytest.raises(InvalidValue, match="light, dark, dim"):
        ask_kept(collector.store, None, themes, "ages", ["1"], first=0, last=99)


def test_without_a_folder_they_stay_in_the_store(reopen: Reopen):
    clock = ManualClock(10 * HOUR)
    collector = start_collector(WORDS, clock, reopen())
    fill(collector, 1)
    clock.advance(2 * HOUR)
    collector.tick()
    assert candidate_shares(collector, "ages", ["7"])["n"] == CROWD
    steps = kept_reports(collector.store, None, WORDS.collection_id, "ages", first=10, last=10)
    assert [(step, len(reports)) for step, reports in steps] == [(10, CROWD)]
    clock.advance(DAY + HOUR)
    collector.tick()
    assert candidate_shares(collector, "ages", ["7"])["n"] == 0
    assert collector.deleted[WORDS.collection_id, "reports"] == 2 * CROWD


def test_only_fresh_reports_are_kept_and_only_where_it_is_said(reopen: Reopen):
    clock = ManualClock(10 * HOUR)
    collector = start_collector(WORDS, clock, reopen())
    fill(collector, 1)
    open_asks = {open_ask.question: open_ask for open_ask in collector.board.asks.values()}
    ages, sums = open_asks["ages"], open_asks["sums"]
    assert len(collector.store.kept_segments(sums.key)) == 0
    rng = Random(seed=1)
    reports = randomized(ages.ask, [7] * (2 * CROWD // 5) + [9] * (3 * CROWD // 5), rng)
    receipt = send_reports(collector, ages, reports, rng.bytes(16 * CROWD)[:-16] + bytes(16))
    assert (receipt.accepted, receipt.duplicates) == (1, CROWD - 1)
    assert [len(unpack(segment)) for segment in collector.store.kept_segments(ages.key)] == [CROWD, 1]


def test_the_route(tmp_path: Path):
    clock = ManualClock(10 * HOUR)
    collector = start_collector(WORDS, clock, archive=Archive(tmp_path / "reports"))
    fill(collector, 1)
    clock.advance(2 * HOUR)
    collector.tick()
    path = "/v1/collections/words/questions"
    two = f"{path}/words/candidates?candidate=maybe&candidate=yes&level=0.9"
    with site(collector) as client:
        answer = client.get(two, headers=AUTHORIZED).json()
        assert (answer["n"], answer["labels"], answer["level"]) == (CROWD, ["maybe", "yes"], 0.9)
        assert answer["low"][0] < 0.4 < answer["high"][0]
        few = client.get(f"{path}/ages/candidates?candidate=7&to=3", headers=AUTHORIZED).json()
        assert (few["value"], few["withheld"]) == (None, "0 reports; at least 20 are needed")
        assert problem(client.get(f"{path}/words/candidates?candidate=maybe")) == "no_token"
        assert problem(client.get(f"{path}/sums/candidates?candidate=7", headers=AUTHORIZED)) == "not_found"
        for wrong in ("", "?candidate=seven", "?candidate=7&candidate=7", "?candidate=100000"):
            assert problem(client.get(f"{path}/ages/candidates{wrong}", headers=AUTHORIZED)) == "invalid_parameter"


def test_people_are_told():
    text = promise(WORDS)
    sentence = "The server keeps the single reports of ages and words, and only sums of the reports of other questions"
    assert f"{sentence}, and deletes them 1 day after their step." in text
    notes = [finding.where for finding in check(WORDS) if finding.where.endswith("keep_reports")]
    assert notes == ["questions.ages.keep_reports", "questions.words.keep_reports"]
    without = load_collection(KEEPING.replace("keep_reports = true", ""))
    assert "single reports" not in promise(without)
    assert "keep_reports" not in str(without.spec())
    assert without.collection_id != WORDS.collection_id


def test_memos_and_streams_are_not_kept():
    with pytest.raises(InvalidValue, match="keep_reports"):
        load_collection(
            KEEPING.replace(
                'kind = "histogram"\nfield = "age"\nepsilon = 4.0',
                'kind = "memo"\npermanent = 5.0\nfield = "age"\nepsilon = 1.0',
            ).replace('mechanism = "OLH"', "")
        )


def test_archives_fold_to_the_sketches_of_their_asks(tmp_path: Path):
    clock = ManualClock(10 * HOUR)
    collector = start_collector(WORDS, clock, archive=Archive(tmp_path / "reports"))
    some_steps(collector, clock, (1, 2))
    folded = fold_files([str(tmp_path / "reports")], FoldPlan(), tmp_path / "sketches").folded
    stored = {}
    for question in {key.question for key in folded.sketches}:
        era = collector.store.era(WORDS.collection_id, question)
        assert era is not None
        for ask in collector.store.asks(era):
            sketch = Sketch.from_bytes(ask.sketch)
            place = SketchKey("words", WORDS.version, question, 0, ask.step, ask.round, ask.part, sketch.spec_id)
            stored[place] = sketch
    assert {key.question for key in folded.sketches} == {"ages", "words"}
    assert folded.sketches == {key: stored[key] for key in folded.sketches}


def test_files_of_others_are_left_alone(tmp_path: Path):
    archive = Archive(tmp_path)
    (tmp_path / "letter.txt").write_text("mine")
    (tmp_path / "letter.parquet").write_text("mine")
    oracle, name = GRR(epsilon=1.0, domain=2), archive.name("q", 3, "0" * 32, "1" * 32)
    key = SketchKey("c", 1, "q", 0, 3, 1, 0, oracle.spec_id)
    archive.write(name, key, oracle, oracle.randomize([1], Random(seed=1)))
    (tmp_path / f"{name}.part").write_text("half")
    assert archive.sweep([name], []) == ([], [f"{name}.part"])
    assert archive.sweep([name], []) == ([], [])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["letter.parquet", "letter.txt", name, "set-aside"]


# -- a database and a folder of reports that do not belong together --------------------------------------------


def opened(folder: Path, clock: ManualClock, archive: bool = True) -> Collector:
    place = Archive(folder / "reports") if archive else None
    return start_collector(WORDS, clock, SqliteStore(folder / "store.db"), archive=place)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_file()) if folder.exists() else []


def test_files_that_an_older_database_does_not_name_are_set_aside_until_their_retention_is_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    clock, aside = ManualClock(10 * HOUR), tmp_path / "reports" / "set-aside"
    collector = opened(tmp_path, clock)
    some_steps(collector, clock, (1, 2))
    before = names(tmp_path / "reports")
    collector.store.close()
    shutil.copy(tmp_path / "store.db", tmp_path / "older.db")
    collector = opened(tmp_path, clock)
    some_steps(collector, clock, (3, 4))
    later = sorted(set(names(tmp_path / "reports")) - set(before))
    contents = {name: (tmp_path / "reports" / name).read_bytes() for name in later}
    assert len(later) == 4  # two questions, two steps
    collector.store.close()

    (tmp_path / "older.db").rename(tmp_path / "store.db")
    with caplog.at_level(logging.WARNING, "hubbub.service"):
        collector = opened(tmp_path, clock)
    (fields,) = logged(caplog, "set aside")
    assert set(fields["files"]) == {name for name in later if "-12-" in name}
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
    ages = next(open_ask for open_ask in open_now(collector) if open_ask.question == "ages")
    assert send_values(collector, ages, [7] * 500, Random(seed=99)).accepted == 500
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


@pytest.mark.parametrize("what", ["no folder", "an empty folder", "half a file", "another file"])
def test_what_is_missing_is_said(tmp_path: Path, what: str, caplog: pytest.LogCaptureFixture):
    clock = ManualClock(10 * HOUR)
    collector = opened(tmp_path, clock)
    some_steps(collector, clock, (1, 2))
    clock.advance(HOUR)
    collector.tick()
    collector.store.close()
    files = {path.name: path for path in (tmp_path / "reports").iterdir()}
    of_ages = sorted(name for name in files if name.startswith("ages"))
    if what == "half a file":
        files[of_ages[0]].write_bytes(files[of_ages[0]].read_bytes()[:-100])
    elif what == "another file":
        shutil.copy(files[of_ages[1]], files[of_ages[0]])
    else:
        shutil.rmtree(tmp_path / "reports")
    with caplog.at_level(logging.ERROR, "hubbub.service"):
        collector = opened(tmp_path, clock, archive=what != "no folder")
    if "folder" in what:
        assert [fields["count"] for fields in logged(caplog, "reports missing")] == [4]
        assert collector.missing == sorted(files)
        assert "hubbub_missing_files 4" in metrics_text(Service(collector))
    with pytest.raises(ReportsMissing, match=of_ages[0]):
        candidate_shares(collector, "ages", ["7"])
    assert candidate_shares(collector, "sums", ["7"])["n"] == 0  # a question that keeps none misses none
    path = "/v1/collections/words/questions/ages/candidates?candidate=7"
    with site(collector) as client:
        answer = client.get(path, headers=AUTHORIZED)
        assert (answer.status_code, problem(answer)) == (409, "reports_missing")
        assert of_ages[0] in json.loads(answer.content)["detail"]
        assert client.get(f"{path}&to=3", headers=AUTHORIZED).json()["n"] == 0  # of steps that it has all of


def test_killed_at_points_of_keeping_them():
    assert deaths("keep", 37) >= 6


def test_killed_at_points_of_keeping_them_in_postgresql(postgres: Callable[[], str]):
    assert deaths("keep", 83, *(postgres() for _ in range(3))) == 3


@pytest.mark.slow
def test_killed_at_every_point_of_keeping_them():
    assert deaths("keep", 1) > 200
