"""Raising a version hides nothing: a question that goes on is one series, and what ended is a link away."""

import json

import pytest

from hubbub import Random
from hubbub.authoring import load_collection
from hubbub.collection import Keys, ManualClock
from hubbub.service.collector.collector import Collector
from hubbub.service.http.problems import Tokens
from hubbub.service.http.server import create_app
from hubbub.service.http.service import Service
from hubbub.service.ingest.frames import Frame
from hubbub.service.store.sqlite import SqliteStore
from hubbub.wire.batches import Batch
from tests.dashboard.pages_visit import TOKEN, Answered, Get, ask, pages_of
from tests.shared.asks import randomizer
from tests.shared.small_collections import THEME, collection_text

PLAIN = {"kind": "histogram", "field": "theme", "epsilon": 1.0}
TEXT = collection_text(
    "themes",
    "Light or dark?",
    schedule={"step": "100s", "lateness": "10s"},
    privacy={"event": 3.0, "minimum_batch": 20},
    fields={"theme": THEME},
    questions={"same": PLAIN, "changed": PLAIN, "gone": PLAIN},
)
CHANGED = TEXT.partition("[questions.gone]")[0].replace("[questions.changed]", "[questions.changed]\nmechanism = 'OUE'")
VERSIONS = (
    TEXT,
    TEXT.replace("version = 1", "version = 2").replace("Light or dark?", "Dark or light?"),
    CHANGED.replace("version = 1", "version = 3"),
)
KEYS = Keys(b"k" * 32)
STEPS = 3


def answered(collector: Collector) -> None:
    """Sixty devices answer all that is open."""
    (collection,) = collector.collections.values()
    for place, asked in enumerate(collector.board.open(collection.collection_id, collector.clock.now())):
        reports = randomizer(asked.ask).randomize([0, 1, 1] * 20, Random(seed=asked.ask.step))
        ids = Random(seed=1000 * asked.ask.step + place).bytes(16 * len(reports))
        batch = Batch(collection.name, collection.version, asked.name, ids, reports.to_bare())
        collector.ingest([Frame(collection.collection_id, batch=batch)])


@pytest.fixture(scope="module")
def collector() -> Collector:
    """Three versions, each of them for three steps."""
    store, clock = SqliteStore(":memory:"), ManualClock(1000.0)
    for text in VERSIONS:
        collector = Collector([load_collection(text)], store, clock=clock, keys=KEYS, rng=Random(seed=1))
        for _ in range(STEPS):
            answered(collector)
            clock.advance(100)
            collector.tick()
        clock.advance(20)
        collector.tick()
        clock.advance(80)
    collector.tick()
    return collector


def api_of(collector: Collector) -> Get:
    """An answer of a collector's API about questions, to someone who has the token."""
    app, headers = create_app(Service(collector), Tokens([TOKEN])), {"Authorization": f"Bearer {TOKEN}"}
    return lambda path: ask(app, f"/v1/collections/themes/questions/{path}", headers=headers)


@pytest.fixture(scope="module")
def api(collector: Collector) -> Get:
    return api_of(collector)


@pytest.fixture(scope="module")
def page(collector: Collector) -> Get:
    get = pages_of(collector)
    return lambda path: get(f"/results/themes{path}")


def shown(answer: Answered) -> list[tuple[int, int]]:
    return [(release["step"], release["version"]) for release in json.loads(answer.text)["releases"]]


def test_a_question_that_goes_on_is_one_series(api: Get) -> None:
    answer = api("same/releases")
    assert (json.loads(answer.text)["versions"], json.loads(answer.text)["earlier"]) == ([1, 2, 3], [])
    steps = [step for step, _ in shown(answer)]
    assert steps == list(range(10, 10 + len(steps)))
    assert {version for _, version in shown(answer)} == {1, 2, 3}
    assert [version for _, version in shown(answer)] == sorted(version for _, version in shown(answer))
    assert shown(api("same/releases?most=4")) == shown(answer)[-4:]
    assert shown(api("same/releases?from=11&to=13")) == shown(answer)[1:4]
    assert shown(api("same/releases?version=1")) == shown(answer)
    assert json.loads(api("same/releases/latest").text)["version"] == 3


def test_earlier_versions_are_reached_where_it_does_not_go_on(api: Get) -> None:
    now, before = api("changed/releases"), api("changed/releases?version=2")
    assert (json.loads(now.text)["versions"], json.loads(now.text)["earlier"]) == ([3], [2])
    assert json.loads(before.text)["versions"] == [1, 2]
    assert {version for _, version in shown(now)} == {3}
    assert {version for _, version in shown(before)} == {1, 2}
    assert max(shown(before)) < min(shown(now))
    assert api("gone/releases").status == 404
    assert {version for _, version in shown(api("gone/releases?version=1"))} == {1, 2}
    assert api("same/releases?version=4").status == 404


def test_the_page_marks_where_a_version_begins(page: Get) -> None:
    text = page("/same").text
    assert "Nothing is released yet" not in text
    assert (text.count('class="begins"'), text.count("version 2 begins"), text.count("version 3 begins")) == (2, 1, 1)
    assert "in which the question goes on" in text


def test_the_page_leads_to_what_ended(page: Get) -> None:
    links = [link.given["href"] for link in page("/changed").page.all("a")]
    assert "/results/themes/changed?version=2" in links
    earlier = page("/changed?version=2")
    assert "(version 2)" in earlier.text
    assert "version 2 begins" in earlier.text
    assert "so far for step" not in earlier.text
    assert [link for link in earlier.page.all("a") if link.given["href"].endswith("value=1&version=2")]
    assert "/results/themes/gone?version=2" in page("").text
    assert page("/gone?version=2").status == 200
    assert page("/gone").status == page("/changed?version=9").status == 404


def test_a_first_version_without_releases() -> None:
    collector = Collector([load_collection(TEXT)], SqliteStore(":memory:"), clock=ManualClock(1000.0), keys=KEYS)
    api = api_of(collector)
    answer = json.loads(api("same/releases").text)
    assert (answer["versions"], answer["earlier"], answer["releases"]) == ([1], [], [])
    assert api("same/releases/latest").status == 404
