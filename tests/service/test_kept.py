"""Single reports, where a question keeps them: each once, wherever it is, and gone when its time is over."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hubbub import Random, Reports
from hubbub.authoring import check, load_collection, promise
from hubbub.collection import ManualClock
from hubbub.core.errors import InvalidValue
from hubbub.mechanisms.base import Mechanism
from hubbub.service.collector.candidates import ask_kept
from hubbub.service.collector.collector import Collector
from hubbub.service.http.problems import Tokens
from hubbub.service.http.server import create_app
from hubbub.service.http.service import Service
from hubbub.service.ingest.frames import Frame
from hubbub.service.kept.archive import Archive
from hubbub.service.kept.raw_reports import kept_reports, pack, unpack
from hubbub.service.store.sql import Store
from hubbub.service.store.sqlite import SqliteStore
from hubbub.wire.batches import Batch
from tests.service.every_mechanism import all_mechanisms
from tests.service.process import HERE
from tests.service.web import AUTHORIZED, KEYS, TOKEN, problem
from tests.shared.loopback import running
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
    for open_ask in collector.board.open(WORDS.collection_id, collector.clock.now()):
        often, rest = ("maybe", "yes") if open_ask.question == "words" else (7, 9)
        values = [often] * (2 * CROWD // 5) + [rest] * (3 * CROWD // 5)
        rng = Random(seed=seed)
        reports = open_ask.ask.mechanism.randomize(values, rng)
        batch = Batch(WORDS.name, WORDS.version, open_ask.name, rng.bytes(16 * CROWD), reports.to_bare())
        assert collector.ingest([Frame(WORDS.collection_id, batch=batch)])[0].accepted == CROWD


def start_collector(store: Store, clock: ManualClock, archive: Archive | None) -> Collector:
    return Collector([WORDS], store, clock=clock, keys=KEYS, rng=Random(seed=1), archive=archive)


def candidate_shares(collector: Collector, question: str, candidates: list[str], **options: Any) -> dict[str, Any]:
    steps = {"first": 0, "last": 1 << 40, **options}
    return ask_kept(collector.store, collector.archive, WORDS, question, candidates, **steps)


@all_mechanisms
def test_reports_of_every_mechanism_come_back_from_a_segment_and_a_file(mechanism: Mechanism, tmp_path: Path):
    reports = mechanism.randomize(mechanism.example_values(9) * 4, Random(seed=3))
    assert unpack(pack(reports)) == reports
    archive = Archive(tmp_path / "reports")
    archive.write("q-1-00000000-0000000000000000.parquet", reports)
    again = archive.read("q-1-00000000-0000000000000000.parquet")
    assert len(again) == len(reports)
    assert mechanism.accumulate(again) == mechanism.accumulate(reports)
    other = Archive(tmp_path / "other")
    order = np.argsort(Random(seed=9).uint64(len(reports)))
    other.write("q-1-00000000-0000000000000000.parquet", reports[order])
    assert other.read("q-1-00000000-0000000000000000.parquet") == again, "the order tells when they came"


def test_candidates_are_asked_for_later(reopen: Callable[[], Store], tmp_path: Path):
    clock, archive = ManualClock(10 * HOUR), Archive(tmp_path / "reports")
    collector = start_collector(reopen(), clock, archive)
    for seed in range(3):
        fill(collector, seed)
        clock.advance(HOUR)
        collector.tick()
    answer = candidate_shares(collector, "words", ["maybe", "never", "yes"])
    assert answer["n"] == 2 * CROWD  # the third ask is not closed yet
    clock.advance(HOUR)
    collector.tick()
    for again in (collector, start_collector(reopen(), clock, archive), start_collector(reopen(), clock, archive)):
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
    collector = start_collector(reopen(), clock, archive)
    assert candidate_shares(collector, "words", ["maybe"])["n"] == 0
    assert list((tmp_path / "reports").iterdir()) == []
    assert collector.deleted[WORDS.collection_id, "reports"] == 6 * CROWD
    assert [key for key, _, _ in collector.store.asks_to_archive()] == []


def test_candidates_of_a_categorical_field_are_its_names():
    themes = load_collection(
        KEEPING.replace('kind = "ordinal"\nsize = 100', 'kind = "categorical"\nnames = ["light", "dark", "dim"]')
    )
    clock = ManualClock(10 * HOUR)
    collector = Collector([themes], SqliteStore(":memory:"), clock=clock, keys=KEYS, rng=Random(seed=1))
    open_ask = next(open_ask for open_ask in collector.board.asks.values() if open_ask.question == "ages")
    rng = Random(seed=1)
    values = [themes.encode("age", name) for name in ["dark"] * 1500 + ["dim"] * 500]
    reports = open_ask.ask.mechanism.randomize(values, rng)
    batch = Batch(themes.name, themes.version, open_ask.name, rng.bytes(16 * CROWD), reports.to_bare())
    collector.ingest([Frame(themes.collection_id, batch=batch)])
    clock.advance(2 * HOUR)
    collector.tick()
    answer = ask_kept(collector.store, None, themes, "ages", ["dim", "dark"], first=0, last=99)
    assert (answer["n"], answer["labels"]) == (CROWD, ["dim", "dark"])
    assert np.allclose(answer["value"], [0.25, 0.75], atol=6 * max(answer["variance"]) ** 0.5)
    with pytest.raises(InvalidValue, match="light, dark, dim"):
        ask_kept(collector.store, None, themes, "ages", ["1"], first=0, last=99)


def test_without_a_folder_they_stay_in_the_store(reopen: Callable[[], Store]):
    clock = ManualClock(10 * HOUR)
    collector = start_collector(reopen(), clock, None)
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


def test_only_fresh_reports_are_kept_and_only_where_it_is_said(reopen: Callable[[], Store]):
    clock = ManualClock(10 * HOUR)
    collector = start_collector(reopen(), clock, None)
    fill(collector, 1)
    open_asks = {open_ask.question: open_ask for open_ask in collector.board.asks.values()}
    ages, sums = open_asks["ages"], open_asks["sums"]
    assert len(collector.store.kept_segments(sums.key)) == 0
    rng = Random(seed=1)
    reports = ages.ask.mechanism.randomize([7] * (2 * CROWD // 5) + [9] * (3 * CROWD // 5), rng)
    ids = rng.bytes(16 * CROWD)
    batch = Batch(WORDS.name, WORDS.version, ages.name, ids[:-16] + bytes(16), reports.to_bare())
    (receipt,) = collector.ingest([Frame(WORDS.collection_id, batch=batch)])
    assert (receipt.accepted, receipt.duplicates) == (1, CROWD - 1)
    assert [len(unpack(segment)) for segment in collector.store.kept_segments(ages.key)] == [CROWD, 1]


def test_the_route(tmp_path: Path):
    clock = ManualClock(10 * HOUR)
    collector = start_collector(SqliteStore(":memory:"), clock, Archive(tmp_path / "reports"))
    fill(collector, 1)
    clock.advance(2 * HOUR)
    collector.tick()
    path = "/v1/collections/words/questions"
    with running(create_app(Service(collector), Tokens([TOKEN]))) as client:
        answer = client.get(
            f"{path}/words/candidates?candidate=maybe&candidate=yes&level=0.9", headers=AUTHORIZED
        ).json()
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


def test_files_of_others_are_left_alone(tmp_path: Path):
    archive = Archive(tmp_path)
    (tmp_path / "letter.txt").write_text("mine")
    (tmp_path / "letter.parquet").write_text("mine")
    archive.write(name := archive.name("q", 3, "0" * 32, "1" * 32), Reports("0" * 32, private={"v": np.uint8([1])}))
    (tmp_path / f"{name}.part").write_text("half")
    assert archive.sweep([name], []) == ([], [f"{name}.part"])
    assert archive.sweep([name], []) == ([], [])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["letter.parquet", "letter.txt", name, "set-aside"]


def die(folder: Path, stride: int, *urls: str) -> int:
    command = [sys.executable, str(HERE / "keep_and_die.py"), str(folder), str(stride), *urls]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_killed_at_points_of_keeping_them(tmp_path: Path):
    assert die(tmp_path, 37) >= 6


def test_killed_at_points_of_keeping_them_in_postgresql(tmp_path: Path, postgres: Callable[[], str]):
    assert die(tmp_path, 83, *(postgres() for _ in range(3))) == 3


@pytest.mark.slow
def test_killed_at_every_point_of_keeping_them(tmp_path: Path):
    assert die(tmp_path, 1) > 200
