"""The most common words of a collection whose reports are shuffled: found from reports that are kept, without ids."""

import json
from dataclasses import replace
from typing import Any

import numpy as np

from hubbub.client.upload import OnionReports
from hubbub.collection import ManualClock
from hubbub.random.source import Random
from hubbub.service.collector.collector import Collector
from hubbub.service.ingest.frames import Frame
from hubbub.service.rounds.releases import alike
from hubbub.service.store.sqlite import SqliteStore
from hubbub.wire.upload import Entry
from tests.served import wait_for
from tests.shared.asks import randomizer
from tests.shared.in_process import rows_in
from tests.shuffler.shuffle_world import HOUR, KEYS, ShuffleWorld

START, PEOPLE = 1_800_000_000, 240
WORDS = ("hub", "bub", "and", "of")
TOP = {
    "kind": "top",
    "field": "word",
    "epsilon": 4.0,
    "start": "2027-01-15T08:00Z",
    "round": "1h",
    "k": 2,
    "query_limit": 8192,
}


def released(collector: Collector) -> dict[str, Any]:
    """What was found; a long search runs in another thread."""

    def rows() -> list[Any]:
        collector.tick()
        return collector.releases("survey", "words", first=0, last=99, most=9)

    (row,) = wait_for(rows)
    assert row.withheld is None
    return json.loads(row.payload)


def test_top_words_of_shuffled_reports() -> None:
    """Every part of the people is a batch of its own. What is found is what the same reports tell unshuffled."""
    asked: dict[str, Any] = {"fields": {"word": {"kind": "strings", "longest": 4}}, "questions": {"words": TOP}}
    world = ShuffleWorld(fakes=0, now=START + 60.0, **asked)
    rng, chosen = Random(seed=3), np.random.default_rng(7)
    words = chosen.choice(np.array(WORDS), PEOPLE, p=[0.5, 0.3, 0.1, 0.1])
    places = chosen.integers(0, 1 << 32, PEOPLE, dtype=np.uint64)
    plain = replace(world.collection, trust="local", shuffle=None)
    clock = ManualClock(START + 60.0)
    direct = Collector([plain], SqliteStore(":memory:"), clock=clock, keys=KEYS, rng=Random(seed=1))
    seal, sent = OnionReports(world.collection).seal, 0
    opened = world.collector.board.open(world.collection.collection_id, world.clock.now())
    assert len(opened) > 1
    for ask in opened:
        inside = np.flatnonzero(ask.ask.cohort.holds(places))
        codes = [[world.collection.encode("word", str(words[at]))] for at in inside]
        reports = [randomizer(ask.ask).randomize(ask.ask.view(code), rng).to_bare() for code in codes]
        ids = [rng.bytes(16) for _ in reports]
        pairs = list(zip(ids, reports, strict=True))
        world.send(Entry(*ask.name, report_id, seal(ask.name, ask.ask, report)) for report_id, report in pairs)
        direct.ingest([Frame(plain.collection_id, [Entry(*ask.name, *pair) for pair in pairs])])
        sent += len(reports)
    assert sent == PEOPLE
    world.close()
    assert set(world.states(1)) == {"handed"}
    assert not rows_in(world.store, "SELECT * FROM id_pages")
    for moved, collector in ((world.clock, world.collector), (clock, direct)):
        moved.set(START + HOUR + 601.0)
        collector.tick()
    found, expected = released(world.collector), released(direct)
    assert found["labels"] == expected["labels"]
    assert found["labels"][0] == "hub"
    assert alike(found["value"], expected["value"])
    assert alike(found["variance"], expected["variance"])
