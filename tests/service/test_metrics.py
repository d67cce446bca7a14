"""What /metrics tells: the names it always had, and the newest estimates, as a Prometheus would read them."""

from __future__ import annotations

from collections.abc import Iterator

import prometheus_client
import pytest
from prometheus_client.parser import text_string_to_metric_families

from hubbub import Random
from hubbub.authoring import load_collection
from hubbub.collection import ManualClock
from hubbub.service.collector.collector import Collector
from hubbub.service.http.metrics import MOST_CATEGORIES, metrics_text
from hubbub.service.http.service import Service
from hubbub.service.store.base import ReleaseRow, StoreChanges
from hubbub.service.store.sqlite import SqliteStore
from hubbub.wire.batches import BATCH_TYPE, encode_batch
from tests.service.web import AUTHORIZED, KEYS, Web, website

ALWAYS = {
    *("hubbub_reports_total", "hubbub_deleted_total", "hubbub_commits_total", "hubbub_commit_seconds_total"),
    *("hubbub_waiting_reports", "hubbub_open_asks", "hubbub_held_ids", "hubbub_id_memory_bytes", "hubbub_shed_total"),
    *("hubbub_connections", "hubbub_closed_total", "hubbub_unfinished_bytes", "hubbub_senders"),
    *("hubbub_missing_files", "hubbub_listeners", "hubbub_clock_in_doubt", "hubbub_clock_ahead_seconds"),
    "hubbub_ready",
}
"""What dashboards and alerts out there may name."""

Samples = dict[tuple[str, ...], float]


def samples(service: Service) -> Samples:
    """The value of each sample, by its name and the values of its labels, sorted by label; no sample is there twice."""
    values: Samples = {}
    for family in text_string_to_metric_families(metrics_text(service)):
        for sample in family.samples:
            key = (sample.name, *(sample.labels[label] for label in sorted(sample.labels)))
            assert key not in values
            values[key] = sample.value
    return values


@pytest.fixture
def web() -> Iterator[Web]:
    with website() as made:
        yield made


def fill(web: Web) -> None:
    """A step of the question `popular`, released; nobody answers `old`."""
    ask = web.ask()
    reports = ask.mechanism.randomize([0, 1] * 20, web.draw)
    frame = encode_batch("themes", 2, web.name(ask), web.draw.bytes(16 * 40), reports)
    assert web.post(BATCH_TYPE, frame).json()["accepted"] == 40
    web.wait_until(1110.0)


def test_the_names_are_those_that_there_always_were(web: Web):
    assert {name for name, *_ in samples(web.service)} >= ALWAYS


def test_the_newest_estimate_is_what_the_api_says(web: Web):
    names = [name for name, *_ in samples(web.service)]  # what the version before released is withheld
    assert not {"hubbub_estimate", "hubbub_estimate_low", "hubbub_estimate_high"}.intersection(names)
    fill(web)
    path = "/v1/collections/themes/questions/popular/releases/latest"
    latest = web.client.get(path, headers=AUTHORIZED).json()
    metrics = samples(web.service)
    for place, category in enumerate(latest["labels"]):
        for name, field in (("estimate", "value"), ("estimate_low", "low"), ("estimate_high", "high")):
            assert metrics[f"hubbub_{name}", category, "themes", "popular"] == latest[field][place]
    assert metrics["hubbub_estimate_reports", "themes", "popular"] == 40
    assert metrics["hubbub_estimate_categories", "themes", "popular"] == 3
    assert metrics["hubbub_release_age_seconds", "themes", "popular"] == 0.0
    web.clock.set(1150.0)
    assert samples(web.service)["hubbub_release_age_seconds", "themes", "popular"] == 40.0


def test_what_is_withheld_has_no_numbers(web: Web):
    fill(web)
    metrics = samples(web.service)
    assert metrics["hubbub_estimate_reports", "themes", "old"] == 0
    assert ("hubbub_release_age_seconds", "themes", "old") in metrics
    assert not any(key[0] == "hubbub_estimate" and key[3] == "old" for key in metrics)


HOSTILE = 'a "quoted" one\\ with\nlines'


def categorical(names: list[str]) -> str:
    return f"""
[fields.which]
kind = "categorical"
names = {names!r}
[questions.popular]
kind = "histogram"
field = "which"
epsilon = 1.0
"""


def stored(question: str, payload: str, step: int = 9) -> Service:
    """A service whose one question has a release with this payload."""
    text = f"""
name = "many"
title = "Which?"
version = 1
[schedule]
step = "100s"
lateness = "10s"
[privacy]
event = 2.0
{question}
"""
    store = SqliteStore(":memory:")
    collector = Collector([load_collection(text)], store, clock=ManualClock(1000.0), keys=KEYS, rng=Random(seed=1))
    collection = collector.collections["many"]
    store.commit(StoreChanges(releases=[ReleaseRow(collection.collection_id, "popular", step, 1000.0, payload, None)]))
    return Service(collector)


def test_what_is_not_known_has_no_sample():
    payload = '{"n": 9, "labels": ["a", "b"], "value": [0.5, null], "variance": [null, null]}'
    metrics = samples(stored(categorical(["a", "b"]), payload))
    assert {key: value for key, value in metrics.items() if key[0].startswith("hubbub_estimate")} == {
        ("hubbub_estimate", "a", "many", "popular"): 0.5,
        ("hubbub_estimate_reports", "many", "popular"): 9,
        ("hubbub_estimate_categories", "many", "popular"): 2,
    }


def test_a_question_has_no_more_series_than_said():
    numbers = [0.001] * 500
    payload = f'{{"n": 9, "labels": null, "value": {numbers}, "variance": {numbers}}}'
    metrics = samples(stored(categorical([f"c{code}" for code in range(500)]), payload))
    for name in ("hubbub_estimate", "hubbub_estimate_low", "hubbub_estimate_high"):
        shown = [key[1] for key in metrics if key[0] == name]
        assert shown == [str(code) for code in range(MOST_CATEGORIES)]
    assert metrics["hubbub_estimate_categories", "many", "popular"] == 500


FOUND_WORDS = """
[fields.word]
kind = "strings"
longest = 8
[questions.popular]
kind = "top"
field = "word"
epsilon = 2.0
k = 2
start = "1970-01-01T00:00Z"
round = "1d"
"""


def test_words_that_were_found_are_no_labels():
    """Whoever reads the port sees ranks: what people typed is for holders of a token."""
    payload = '{"n": 900, "labels": ["maybe", "never"], "value": [0.5, 0.1], "variance": [0.0, 0.0]}'
    service = stored(FOUND_WORDS, payload, step=0)
    assert {key[1] for key in samples(service) if key[0] == "hubbub_estimate"} == {"1", "2"}
    assert "maybe" not in metrics_text(service)


def test_a_name_of_any_kind_is_one_label():
    payload = '{"n": 9, "labels": ["a \\"quoted\\" one\\\\ with\\nlines"], "value": [0.5], "variance": [0.0]}'
    assert samples(stored(categorical(["a", "b"]), payload))["hubbub_estimate", HOSTILE, "many", "popular"] == 0.5


def test_services_of_one_process_are_told_apart(web: Web):
    other = stored(categorical(["a", "b"]), '{"n": 9, "labels": ["a"], "value": [0.5], "variance": [0.0]}')
    assert {key[1] for key in samples(other) if key[0] == "hubbub_reports_total"} == {"many", ""}
    assert {key[1] for key in samples(web.service) if key[0] == "hubbub_reports_total"} == {"themes", ""}
    assert b"hubbub_" not in prometheus_client.generate_latest(prometheus_client.REGISTRY)
