"""Studies and streams of several rounds and parts, in worlds where anything happens at any time.

Whatever time does, whoever answers, wherever a process dies: what is closed never changes, nothing is counted twice,
every release is what its protocol says of what is stored, and a run that ended stays so.
"""

import json
from dataclasses import replace
from itertools import groupby

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hubbub import Sketch
from hubbub.protocols.driver import Conversation, Count, Release
from hubbub.service.rounds.question_run import QuestionRun
from hubbub.service.rounds.releases import read_count, same_release
from hubbub.service.store.base import EraRow
from tests.service.once_world import Crash, Crashing
from tests.service.study_world import ROUND, START, WordCrowd, study_collection
from tests.shared.in_process import World, as_row, rows_in

CROWD = WordCrowd(160)
COLLECTION = study_collection(stream=True, step=4 * ROUND, every=4 * ROUND)
ID = COLLECTION.collection_id

WAITS = st.sampled_from([1, 10, 60, ROUND, ROUND + 10, 3 * ROUND, 9 * ROUND]).map(lambda seconds: ("wait", seconds))
CRASHES = st.integers(0, 40).map(lambda fuse: ("crash", fuse))
OTHERS = st.sampled_from([("send", 0), ("send", 0), ("tick", 0), ("tick", 0), ("restart", 0)])


class StudyWorld(World):
    """One store through many lives of a collector."""

    def __init__(self) -> None:
        self.crashing = Crashing()
        super().__init__(COLLECTION, START - 20.0, self.crashing)
        self.accepted = 0
        self.finals: dict[str, bytes] = {}
        self.ended: set[tuple[str, str, int]] = set()

    def do(self, what: str, number: int) -> None:
        if what == "wait":
            self.clock.advance(number)
        elif what == "crash":
            self.crashing.fuse = number
        else:
            try:
                if what == "send":
                    self.accepted += CROWD.send_all(self.collector)
                elif what == "tick":
                    self.collector.tick()
                else:
                    self.begin()
            except Crash:
                self.crashing.fuse = None
                self.begin()
        self.crashing.fuse = self.crashing.fuse if what == "crash" else None
        self.look()

    def look(self) -> None:
        """What is closed never changes, and what ended stays so."""
        rows = rows_in(self.store, "SELECT ask, data FROM asks JOIN sketches USING (collection, ask) WHERE final = 1")
        now = {ask: bytes(data) for ask, data in rows}
        assert now.items() >= self.finals.items(), "a closed sketch changed"
        self.finals = now
        eras = rows_in(self.store, "SELECT question, first, running FROM eras WHERE question = 'common'")
        ended = {(question, first, 0) for question, first, running in eras if not running}
        assert ended >= self.ended, "a run began anew"
        self.ended = ended

    def reckon(self) -> None:
        self.crashing.fuse = None
        stored = rows_in(self.store, "SELECT data FROM sketches")
        total = sum(Sketch.from_bytes(bytes(data)).n for (data,) in stored)
        assert self.store.counts()[ID, "accepted"] == total >= self.accepted, "lost, or counted twice"
        for question, first, arithmetic in rows_in(self.store, "SELECT question, first, arithmetic FROM eras"):
            self._replayed(EraRow(ID, question, first, arithmetic))
        self.begin()  # which replays all of it itself

    def _replayed(self, era: EraRow) -> None:
        """The protocol, told what is stored by nobody but this test, says what is stored."""
        study = era.question == "common"
        conversation = Conversation(COLLECTION.protocol(era.question, first=era.first))
        rounds = [list(group) for _, group in groupby(self.store.asks(era), lambda row: (row.step, row.round))]
        counts, number, step = 0, 0, era.first
        while (message := conversation.message) is not None:
            if isinstance(message, Release):
                row = self.store.release(ID, era.question, step, number)
                if row is None:
                    return
                if study and "stopped" in json.loads(row.payload) and message.stopped is None:
                    return  # the collector stopped it
                told = as_row(COLLECTION, era.question, replace(message, step=step), number)
                assert same_release(row, told), "a release that is not the protocol's"
                number, counts, step = (number + 1, counts, step) if study else (0, 0, step + 1)
                conversation.listen()
            elif isinstance(message, Count):
                known = self.store.counted(era, step)
                if len(known) <= counts:
                    return
                assert json.loads(known[counts].candidates) == list(message.candidates)
                conversation.reply_count(read_count(known[counts]))
                counts += 1
            else:
                if not rounds or not all(row.final for row in rounds[0]):
                    return
                rows = rounds.pop(0)
                assert [row.part for row in rows] == list(range(len(conversation.asks)))
                conversation.reply_all([Sketch.from_bytes(row.sketch) for row in rows])
        assert study
        assert not rounds


def world(acts: list[tuple[str, int]]) -> StudyWorld:
    run_world = StudyWorld()
    for what, number in acts:
        run_world.do(what, number)
    run_world.reckon()
    return run_world


ACTS = st.lists(st.one_of(WAITS, CRASHES, OTHERS, OTHERS), min_size=5, max_size=40)
CHECKED = [HealthCheck.too_slow, HealthCheck.filter_too_much]


@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=CHECKED)
@given(ACTS)
def test_whatever_happens(acts: list[tuple[str, int]]):
    world(acts)


@pytest.mark.slow
@settings(max_examples=1000, deadline=None, suppress_health_check=CHECKED)
@given(ACTS)
def test_whatever_happens_many_times(acts: list[tuple[str, int]]):
    world(acts)


def test_a_world_in_which_all_goes_well_has_all_of_it():
    acts = [("wait", 20), ("tick", 0)]
    for _ in range(12):
        acts += [("send", 0), ("wait", ROUND + 10 if len(acts) < 4 else ROUND), ("tick", 0), ("restart", 0)]
    run_world = world(acts)
    runs = rows_in(run_world.store, "SELECT step, withheld FROM releases WHERE question = 'common' ORDER BY step")
    assert [step for step, _ in runs] == [0, 1, 2]
    steps = rows_in(run_world.store, "SELECT step FROM releases WHERE question = 'tested' ORDER BY step")
    assert len(steps) >= 2
    assert rows_in(run_world.store, "SELECT COUNT(*) FROM candidate_counts")[0][0] >= 5
    assert {part for (part,) in rows_in(run_world.store, "SELECT DISTINCT part FROM asks")} == {0, 1}


def test_it_finds_sketches_that_are_taken_for_each_other(monkeypatch: pytest.MonkeyPatch):
    answer = QuestionRun.answer
    monkeypatch.setattr(QuestionRun, "answer", lambda self, sketches: answer(self, sketches[::-1]))
    acts = [("wait", 20), ("tick", 0), ("send", 0), ("wait", ROUND + 10), ("tick", 0)]
    acts += [("send", 0), ("wait", ROUND), ("tick", 0)] * 2
    with pytest.raises(AssertionError):
        world(acts)
